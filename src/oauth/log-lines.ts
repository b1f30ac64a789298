import type { AuthContext } from "better-auth";
import type { OAuthProvider } from "better-auth/oauth2";

/** There is one config for each tenant and provider. */
export interface OAuthConfigKey {
  tenantId: string;
  providerId: string;
}

export const nameOf = ({ tenantId, providerId }: OAuthConfigKey) =>
  `The OAuth config of tenant ${tenantId} for ${providerId}`;

/**
 * The secret that better-auth uses outside of production if it is given none.
 *
 * Guarded by "better-auth's secret of last resort is the one that we know".
 */
export const DEFAULT_SECRET = "better-auth-secret-12345678901234567890";

/** Credentials that are encrypted with a public secret are not encrypted. */
export function warnOfDefaultSecret(ctx: AuthContext, key: OAuthConfigKey): void {
  if (ctx.secret !== DEFAULT_SECRET) return;
  ctx.logger.warn(
    `${nameOf(key)} is encrypted with better-auth's default secret, which everybody knows. Set BETTER_AUTH_SECRET, and then register the config again: it cannot be read with another secret.`,
  );
}

/** Logs what to do if a provider refuses the code of a callback: better-auth's line names no tenant. */
export function explainingRefusals(
  ctx: AuthContext,
  provider: OAuthProvider,
  { tenantId, providerId }: OAuthConfigKey,
  isOwn: boolean,
): OAuthProvider {
  const place = isOwn
    ? "the tenant's OAuth config, with tenant.oauthConfig.check"
    : `socialProviders.${providerId}: the tenant has no enabled config`;
  return {
    ...provider,
    validateAuthorizationCode: async (data) => {
      try {
        return await provider.validateAuthorizationCode(data);
      } catch (error) {
        ctx.logger.error(
          `The sign-in at tenant ${tenantId} with ${providerId} failed: the provider did not accept the code (${reasonOf(error)}). Check the client id, the client secret and the redirect URI in ${place}.`,
        );
        throw error;
      }
    },
  };
}

/** The OAuth error code of a response. The rest of a response may contain secrets. */
function reasonOf(refusal: unknown): string {
  const { status, error } = (refusal ?? {}) as { status?: unknown; error?: unknown };
  if (typeof error === "string" && /^[a-z_]{1,40}$/.test(error)) return error;
  return typeof status === "number" ? `status ${status}` : "no answer";
}
