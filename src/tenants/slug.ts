import { APIError } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";

// What DNS takes as a label, so that every slug can be a subdomain.
const SLUG = /^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/;

export function assertSlug(slug: string, reserved: readonly string[]): void {
  if (!SLUG.test(slug)) throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.INVALID_SLUG);
  if (reserved.includes(slug)) {
    throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.SLUG_RESERVED);
  }
}
