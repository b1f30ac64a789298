import {
  type AuthContext,
  BetterAuthError,
  type BetterAuthOptions,
  isDynamicBaseURLConfig,
  matchesHostPattern,
} from "better-auth";
import {
  type BetterAuthPluginDBSchema,
  type InferDBFieldsOutput,
  mergeSchema,
} from "better-auth/db";
import type { InferOptionSchema } from "better-auth/types";
import * as z from "zod";
import { assertOptions, coreBeside, fn, type TenantAuthOptions } from "../options";
import { asHostResolver } from "../request/resolvers";
import { date, optionalDate, tenantColumn, text } from "../schema";
import type { Tenant } from "../tenants/cache";
import { askDNS } from "./dns";

/** Looks up the TXT records of a name, each as a text or in parts, as Node's `resolveTxt` does. */
export type ResolveTxt = (name: string) => Promise<readonly (string | readonly string[])[]>;

/** The options of `tenantDomains()`. A mistake in them is an error at startup. */
export interface TenantDomainsOptions {
  /**
   * Looks up TXT records, instead of Node's resolver or, on the edge, DNS over HTTPS (Cloudflare). An
   * error with the code `ENOTFOUND` or `ENODATA`, or an empty list, means that there is no record;
   * any other error, that DNS has failed.
   */
  resolveTxt?: ResolveTxt;
  /**
   * How long a lookup may take, in seconds.
   * @default 5
   */
  timeout?: number;
  /**
   * A verification ends once its record has been gone for so long, in seconds.
   * @default 604800 (seven days)
   */
  recheckAfter?: number;
  /**
   * How many domains a tenant may have. Your own server code may exceed it.
   * @default 20
   */
  maxDomains?: number;
  /** The sign-in page of a tenant, for `discover`. */
  signInURL?: (tenant: Pick<Tenant, "id" | "name" | "slug">) => string;
  /** Other names for the table and its columns. */
  schema?: TenantDomainsSchema;
}

export type ResolvedDomainOptions = ReturnType<typeof resolveDomainOptions>;

const NAME = "tenantDomains";
const IN_SECONDS = "expected a duration in seconds";
const WEEK = 7 * 24 * 60 * 60;
const optionsSchema = z.strictObject({
  resolveTxt: fn,
  timeout: z.number().positive(IN_SECONDS).max(60, IN_SECONDS),
  recheckAfter: z.number().positive(IN_SECONDS),
  maxDomains: z.int().positive(),
  signInURL: fn.optional(),
  schema: z.looseObject({}).optional(),
});

export function resolveDomainOptions(options: TenantDomainsOptions = {}) {
  const { timeout = 5, recheckAfter = WEEK, maxDomains = 20 } = options;
  const { resolveTxt = askDNS(timeout) } = options;
  const resolved = { ...options, resolveTxt, timeout, recheckAfter, maxDomains };
  assertOptions(NAME, optionsSchema, resolved);
  return resolved;
}

/** What tenantDomains() needs beside it, and of better-auth where verified domains are hosts. */
export function assertSetup(ctx: AuthContext): void {
  const { resolveTenantId } = (coreBeside(NAME, ctx).options ?? {}) as TenantAuthOptions;
  const { readsVerified } = asHostResolver(resolveTenantId) ?? {};
  const problem = readsVerified && problemWithHosts(ctx.options);
  if (problem) throw new BetterAuthError(`${NAME}(): ${problem}`);
}

function problemWithHosts({ baseURL, advanced }: BetterAuthOptions): string | undefined {
  if (!isDynamicBaseURLConfig(baseURL) || !baseURL.fallback) {
    return 'byDomain() has to know the hosts of the application. Set: baseURL: { allowedHosts: ["example.com"], fallback: "https://example.com" }';
  }
  if (baseURL.allowedHosts.some((pattern) => matchesHostPattern("unknown.invalid", pattern))) {
    return "baseURL.allowedHosts has a pattern for any host, which would be the platform. List the hosts of the application: verified domains need no entry.";
  }
  return advanced?.crossSubDomainCookies?.enabled
    ? "advanced.crossSubDomainCookies: browsers refuse such cookies at a tenant's own domain. Remove the option."
    : undefined;
}

/** Renames the table and its columns, as in better-auth's own plugins. */
export type TenantDomainsSchema = InferOptionSchema<{
  tenantDomain: { fields: ReturnType<typeof fields> };
}>;

/** A row of the table. better-auth's type lacks the columns that are not returned. */
export type StoredDomain = InferDBFieldsOutput<ReturnType<typeof fields>> &
  Record<"id" | "verifiedDomain" | "token", string>;

const fields = () => ({
  tenantId: { ...tenantColumn },
  domain: { ...text, index: true },
  // The domain while it is verified, the token otherwise: so a domain is verified by one tenant at a
  // time, even if two verify it at once. (A unique index takes required columns only.)
  verifiedDomain: { ...text, returned: false },
  // The value of the DNS record. A new one each time that the domain is added, lost, or proven by another tenant.
  token: { ...text, returned: false },
  discoverable: { type: "boolean" as const, required: true, defaultValue: true },
  // False for a domain that is for addresses only.
  host: { type: "boolean" as const, required: true, defaultValue: true },
  verifiedAt: { ...optionalDate },
  recordSeenAt: { ...optionalDate },
  // When the record was first missing, since it was last seen.
  recordGoneAt: { ...optionalDate },
  createdAt: { ...date },
  updatedAt: { ...date },
});

export function domainSchema(names?: TenantDomainsSchema): BetterAuthPluginDBSchema {
  const indexes = [
    { fields: ["tenantId", "domain"], unique: true },
    { fields: ["verifiedDomain"], unique: true },
  ] as const;
  return mergeSchema({ tenantDomain: { fields: fields(), indexes } }, names);
}
