import { APIError, createAuthMiddleware } from "better-auth/api";
import type { BeforeHook } from "../framework";

export const ACS = "/sso/saml2/sp/acs/:providerId";

/** A declaration (not a comment, not CDATA), which no SAML message has (SAML core, 1.3.1). */
const DECLARATION = /<!(?!--|\[CDATA\[)/;

/** An ID that has a reference in it, such as `&#95;`. */
const ENCODED_ID = /\bID\s*=\s*(?:"[^"<&]*&|'[^'<&]*&|[^\s"'<>&=]*&)/;

/**
 * better-auth reads a response with two parsers: one for the signature, and one for the ID by which
 * the assertion is good only once. The second one does not decode references in the ID, and finds no
 * ID behind a long DTD. So a used response could be sent again, written differently: with a provider
 * of `defaultSSO` to other tenants, too. What the parsers may disagree about is refused.
 */
export const refuseAmbiguousResponse: BeforeHook = {
  matcher: ({ path }) => path === ACS,

  handler: createAuthMiddleware(async ({ body }) => {
    const given: unknown = body?.SAMLResponse;
    if (typeof given !== "string") return;
    const xml = decoded(given);
    if (xml === undefined) {
      throw refused("SAML_INVALID_ENCODING", "Invalid base64-encoded SAML response");
    }
    if (DECLARATION.test(xml) || ENCODED_ID.test(xml)) {
      const message = "A SAML response has no DOCTYPE, and no character references in an ID";
      throw refused("SAML_INVALID_XML", message);
    }
  }),
};

/** With better-auth's own codes. */
const refused = (code: string, message: string) => new APIError("BAD_REQUEST", { code, message });

/** The bytes as a string: all of the markup is ASCII. Undefined if it is not base64. */
function decoded(given: string): string | undefined {
  try {
    return atob(given.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return undefined;
  }
}
