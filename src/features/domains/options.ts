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
import { assertOptions, type CoreOptions, coreBeside, fn } from "../../core/options";
import { asHostResolver } from "../../core/resolve/resolvers";
import { date, optionalDate, tenantColumn, text } from "../../core/schema";
import type { Tenant } from "../management/tenant";
import { askDNS } from "./dns";

/** Looks up the TXT records of a name. Each is a text, or its parts as in Node's `resolveTxt`. */
export type ResolveTxt = (name: string) => Promise<readonly (string | readonly string[])[]>;

/** The options of `tenantDomains()`. Invalid options are an error at startup. */
export interface TenantDomainsOptions {
  /**
   * Looks up TXT records. An empty list, or an error with the code `ENOTFOUND` or `ENODATA`, means
   * that there is no record. Any other error means that DNS failed.
   * @default Node's resolver, or DNS over HTTPS (Cloudflare) on the edge
   */
  resolveTxt?: ResolveTxt;
  /**
   * How long a lookup may take, in seconds.
   * @default 5
   */
  timeout?: number;
  /**
   * How long a DNS record may be missing before its verification ends, in seconds.
   * @default 604800 (seven days)
   */
  recheckAfter?: number;
  /**
   * How many domains a tenant may have. Your own server code may exceed this limit.
   * @default 20
   */
  maxDomains?: number;
  /** Returns the URL of a tenant's sign-in page, for the response of `discover`. */
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

/** Refuses a setup without `tenantAuth()`, or with options that do not work with `byDomain()`. */
export function assertSetup(ctx: AuthContext): void {
  const { resolveTenantId } = (coreBeside(NAME, ctx).options ?? {}) as CoreOptions;
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
  // The domain while it is verified, otherwise the token. The unique index then lets only one
  // tenant verify a domain. (Unique indexes need required columns.)
  verifiedDomain: { ...text, returned: false },
  // The value of the DNS record. Replaced when the domain is lost or another tenant verifies it.
  token: { ...text, returned: false },
  discoverable: { type: "boolean" as const, required: true, defaultValue: true },
  // False for a domain that is for email addresses only.
  host: { type: "boolean" as const, required: true, defaultValue: true },
  verifiedAt: { ...optionalDate },
  recordSeenAt: { ...optionalDate },
  // When a lookup first found the record missing, after it was last seen.
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
