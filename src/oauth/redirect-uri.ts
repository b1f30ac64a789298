import { APIError } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { isLoopback } from "./hosts";

/** An absolute https URL (http on loopback only) without a fragment, credentials or tricks. */
export function assertRedirectURI(uri: string | null | undefined): void {
  if (uri !== undefined && uri !== null && !isRedirectURI(uri)) {
    throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.INVALID_REDIRECT_URI);
  }
}

function isRedirectURI(uri: string): boolean {
  // The parser forgives backslashes, control characters and spaces. A provider compares the
  // redirect URI letter by letter, so what needs forgiving is refused.
  if (!/^https?:\/\/[^/?@]+([/?].*)?$/i.test(uri) || !/^[!-~]+$/.test(uri)) return false;
  if (/[\\<>"^`{|}#]/.test(uri) || !URL.canParse(uri)) return false;
  const url = new URL(uri);
  return url.protocol === "https:" || isLoopback(url.hostname);
}
