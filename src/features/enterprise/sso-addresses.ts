import type { GenericEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import type { BeforeHook } from "../../core/hooks";
import { badRequest, writesProvider } from "./sso-providers";

/*
 * better-fetch changes an address before it calls it: for
 * `https://idp.example/http://10.0.0.5/secret` it calls `http://10.0.0.5/secret`, and it encodes
 * paths and queries again. But better-auth has checked the original address. So the server calls
 * only addresses that better-fetch leaves unchanged.
 */

// Allows only characters that better-fetch does not encode, and no empty segment.
const UNCHANGED = /^https?:\/\/[^\s/?#@\\]+(?:\/[\w.~!*'()-]+)*\/?(?:\?([^?#]+))?$/;

/** Returns whether better-fetch calls this address unchanged. */
export function isCalledAsWritten(address: string): boolean {
  const match = UNCHANGED.exec(address);
  if (!match || !URL.canParse(address)) return false;
  const [, query = ""] = match;
  return new URLSearchParams(query).toString().replaceAll("+", "%20") === query;
}

const CALLED = ["tokenEndpoint", "userInfoEndpoint", "jwksEndpoint", "discoveryEndpoint"];

/** Refuses to store a provider with an address that better-fetch would change. */
export const refuseChangedAddresses: BeforeHook = {
  matcher: writesProvider,

  handler: createAuthMiddleware(async (given) => {
    const { issuer, oidcConfig } = Object((given as GenericEndpointContext).body);
    if (!oidcConfig) return;
    const addresses = CALLED.map((name) => [`oidcConfig.${name}`, oidcConfig[name]]);
    // Without a `discoveryEndpoint`, the server calls the issuer for its discovery document.
    if (!oidcConfig.skipDiscovery) addresses.push(["issuer", issuer]);
    for (const [name, address] of addresses) {
      if (typeof address !== "string" || !address || isCalledAsWritten(address)) continue;
      throw badRequest(
        "INVALID_PROVIDER_ADDRESS",
        `[body.${name}] Expected an address with letters, digits and -._~!*'() in its path and an encoded query: no "//", colon, backslash or % in the path, no credentials, no fragment`,
      );
    }
  }),
};
