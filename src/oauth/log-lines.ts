import type { AuthContext } from "better-auth";
import type { OAuthProvider } from "better-auth/oauth2";
import { withChanges } from "../framework";

/** Whose config it is, and for which provider: there is one for each pair. */
export interface OAuthConfigKey {
  tenantId: string;
  providerId: string;
}

export const nameOf = ({ tenantId, providerId }: OAuthConfigKey) =>
  `The OAuth config of tenant ${tenantId} for ${providerId}`;

/**
 * What better-auth takes where it is given no secret, outside of production.
 *
 * Guarded by "better-auth's secret of last resort is the one that we know".
 */
export const DEFAULT_SECRET = "better-auth-secret-12345678901234567890";

/** Credentials that are stored with a secret that everybody knows are stored in the clear. */
export function warnOfDefaultSecret(ctx: AuthContext, key: OAuthConfigKey): void {
  if (ctx.secret !== DEFAULT_SECRET) return;
  ctx.logger.warn(
    `${nameOf(key)} is encrypted with better-auth's default secret, which everybody knows. Set BETTER_AUTH_SECRET, and then register the config again: it cannot be read with another secret.`,
  );
}

/**
 * A provider for a callback, which tells the operator what to do where the provider does not accept
 * the code. better-auth's own line has neither the tenant nor the provider in it.
 */
export function explainingRefusals(
  ctx: AuthContext,
  provider: OAuthProvider,
  key: OAuthConfigKey,
  isOwn: boolean,
): OAuthProvider {
  return withChanges(provider, {
    validateAuthorizationCode: async (data) => {
      try {
        return await provider.validateAuthorizationCode(data);
      } catch (error) {
        const { tenantId, providerId } = key;
        ctx.logger.error(
          `The sign-in at tenant ${tenantId} with ${providerId} failed: the provider did not accept the code (${reasonOf(error)}). ${adviceFor(error, key, isOwn)}`,
        );
        throw error;
      }
    },
  });
}

type Refusal = { status?: unknown; error?: unknown };

/** The provider's word for it, if it is one: the rest of its answer may have anything in it. */
function reasonOf(refusal: unknown): string {
  const { status, error } = (refusal ?? {}) as Refusal;
  if (typeof error === "string" && /^[a-z_]{1,40}$/.test(error)) return error;
  return typeof status === "number" ? `status ${status}` : "no answer";
}

function adviceFor(refusal: unknown, { providerId }: OAuthConfigKey, isOwn: boolean): string {
  const { status } = (refusal ?? {}) as Refusal;
  const reason = reasonOf(refusal);
  if (status === 401 || /client/.test(reason)) {
    return isOwn
      ? "The client id or the client secret in the tenant's OAuth config is wrong or has expired: try it with tenant.oauthConfig.check, and register the new one."
      : `The tenant has no enabled config of its own, and the credentials in socialProviders.${providerId} are wrong or have expired.`;
  }
  if (reason === "no answer") return "The provider cannot be reached from this server.";
  return "Mostly the redirect URI is not the one that is registered at the provider, or the code was used before or is too old.";
}
