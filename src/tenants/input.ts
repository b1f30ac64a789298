import * as z from "zod";

const METADATA_BYTES = 64 * 1024;
// MariaDB stops at 32.
const METADATA_DEPTH = 30;

// PostgreSQL stores neither NUL nor half of a surrogate pair, as text or inside jsonb.
const UNSTORABLE = /\0|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;

/** Text that every database stores and gives back as it is. */
export const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((value) => !UNSTORABLE.test(value), "contains characters that cannot be stored");

export const tenantName = text(255)
  .refine((name) => name.trim() !== "", "must not be blank")
  .meta({ description: "Display name of the tenant" });

export const tenantSlug = z
  .string()
  .meta({ description: "Unique, URL-friendly name: 2 to 63 lowercase letters, digits, hyphens" });

export const tenantId = z.string().meta({ description: "Id of the tenant" });

/** Any JSON object. Not z.record(): that one rebuilds the object, and loses a key on the way. */
export const metadata = z
  .custom<Record<string, unknown>>(isObject, "expected an object")
  .superRefine((value, issues) => {
    const problem = whyNotStorable(value);
    if (problem) issues.addIssue({ code: "custom", message: problem });
  })
  .meta({ description: "Any JSON object, up to 64 KiB and 30 levels deep" });

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
  if (typeof value === "string") return !UNSTORABLE.test(value);
  if (typeof value !== "object" || value === null) return true;
  if (depth > METADATA_DEPTH) return false;
  return Object.entries(value).every(
    ([key, item]) => !UNSTORABLE.test(key) && check(item, depth + 1),
  );
}
