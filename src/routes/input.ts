import * as z from "zod";
import type { TenantPolicy } from "../policy";
import { isText } from "../tenants/find";

const METADATA_BYTES = 64 * 1024;
// MariaDB stops at 32.
const METADATA_DEPTH = 30;

const UNSTORABLE_MESSAGE = "contains characters that cannot be stored";

/**
 * Text up to a length. zod runs the checks behind a failed `.max()` unless it aborts: without that,
 * they see all of what a caller has sent.
 */
export const limited = (max: number) => z.string().max(max, { abort: true });

/** Text that every database stores and gives back as it is. */
export const text = (max: number) => limited(max).min(1).refine(isText, UNSTORABLE_MESSAGE);

/** It goes into the headers of mails. */
const isName = (name: string) => name.trim() !== "" && !/\p{Cc}/u.test(name);

const tenantName = text(255)
  .refine(isName, "must not be blank, or contain control characters")
  .meta({ description: "Display name of the tenant" });

const tenantSlug = z
  .string()
  .meta({ description: "Unique, URL-friendly name: 2 to 63 lowercase letters, digits, hyphens" });

export const tenantId = z.string().meta({ description: "Id of the tenant" });

/** A whole number that every database takes. The query of a URL has it as text. */
const wholeNumber = z
  .number()
  .or(limited(10).regex(/^\d+$/).transform(Number))
  .pipe(z.int32().nonnegative());

export const TENANT_SORTS = ["createdAt", "-createdAt", "slug", "-slug"] as const;

/** How much of a list, and from where. */
export const limit = wholeNumber
  .refine((limit) => limit > 0 && limit <= 1000, "must be 1 to 1000")
  .optional();
export const offset = wholeNumber.optional();

/** The part of the list of tenants that is asked for. */
export const listQuery = z.object({
  limit,
  offset,
  search: limited(255).refine(isText, UNSTORABLE_MESSAGE).optional(),
  sort: z.enum(TENANT_SORTS).optional(),
});

/** Any JSON object. Not z.record(): that one rebuilds the object, and loses a key on the way. */
export const jsonObject = z.custom<Record<string, unknown>>(isObject, "expected an object");

const metadata = jsonObject
  .superRefine((value, issues) => {
    const problem = whyNotStorable(value);
    if (problem) issues.addIssue({ code: "custom", message: problem });
  })
  .meta({ description: "Any JSON object, up to 64 KiB and 30 levels deep" });

/** Looked at closely by those who load `routes/policy-input.ts`. */
const policy = jsonObject as unknown as z.ZodType<TenantPolicy, TenantPolicy>;

export const createBody = z.object({
  name: tenantName,
  slug: tenantSlug,
  metadata: metadata.nullish(),
  policy: policy.nullish(),
});

/** What may be changed of a tenant. */
export const updateBody = z.object({
  tenantId: tenantId.optional(),
  name: tenantName.optional(),
  slug: tenantSlug.optional(),
  metadata: metadata.nullish().meta({ description: "Replaces the metadata; null clears it" }),
  status: z.enum(["active", "suspended"]).optional().meta({
    description: "Suspending ends all sessions. Takes back a deletion that is not due yet",
  }),
  policy: policy.nullish().meta({ description: "Replaces the policy; null clears it" }),
  endSessions: z.boolean().optional().meta({ description: "Ends all sessions of the tenant" }),
});

const NINETY_DAYS = 90 * 24 * 60 * 60;

export const deleteBody = z.object({
  tenantId,
  dryRun: z.boolean().optional().meta({ description: "Only counts what would be deleted" }),
  after: z.int().nonnegative().max(NINETY_DAYS).optional().meta({
    description: "Seconds until it may be deleted; suspended until then, and can be taken back",
  }),
});

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function whyNotStorable(metadata: object): string | undefined {
  if (!check(metadata, 1))
    return "is nested too deep, or contains characters that cannot be stored";
  const bytes = new TextEncoder().encode(JSON.stringify(metadata)).length;
  return bytes > METADATA_BYTES ? "must not be larger than 64 KiB" : undefined;
}

function check(value: unknown, depth: number): boolean {
  if (typeof value === "string") return isText(value);
  if (typeof value !== "object" || value === null) return true;
  if (depth > METADATA_DEPTH) return false;
  return Object.entries(value).every(([key, item]) => isText(key) && check(item, depth + 1));
}
