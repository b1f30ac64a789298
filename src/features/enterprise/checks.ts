import type { AuthContext } from "better-auth";
import type { ModelRules } from "../../core/extension";
import { refuse } from "../../core/schema";

const because = "would sign users in, or create users, in every tenant and on the platform";

export const models: ModelRules = { neverShared: { sso: { because }, scim: { because } } };

/**
 * Refuses a callback that all identity providers share. A malicious provider could redirect users
 * to another tenant's provider and receive that provider's code. The issuer in the response (RFC
 * 9207) does not help: each tenant registers the issuer itself.
 */
export function assertOwnCallbacks({ options }: AuthContext): void {
  const isShared = options.plugins?.some(
    ({ id, options }) => id === "sso" && options?.redirectURI?.trim(),
  );
  if (!isShared) return;
  refuse(
    "redirectURI of sso(): identity providers of different tenants cannot share a callback, because one could obtain the codes of another.",
    "Leave it out, and register each identity provider's own redirect URI there:",
    `  ${options.basePath ?? "/api/auth"}/sso/callback/<providerId>`,
  );
}
