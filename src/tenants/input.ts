import * as z from "zod";

const METADATA_BYTES = 64 * 1024;

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

export const tenantId = z
  .string()
  .meta({ description: "The tenant; may also come from the header" });

/** Any JSON object. Not z.record(): that one rebuilds the object, and loses a key on the way. */
export const metadata = z
  .custom<Record<string, unknown>>(isObject, "expected an object")
  .superRefine((value, issues) => {
    const json = JSON.stringify(value);
    if (new TextEncoder().encode(json).length > METADATA_BYTES) {
      issues.addIssue({ code: "custom", message: "must not be larger than 64 KiB" });
    }
    if (containsUnstorable(value)) {
      issues.addIssue({ code: "custom", message: "contains characters that cannot be stored" });
    }
  })
  .meta({ description: "Any JSON object, up to 64 KiB" });

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function containsUnstorable(value: unknown): boolean {
  if (typeof value === "string") return UNSTORABLE.test(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([key, item]) => UNSTORABLE.test(key) || containsUnstorable(item),
  );
}
