import type { AuthContext } from "better-auth";
import { getAccountCookie } from "better-auth/cookies";
import { symmetricDecrypt } from "better-auth/crypto";
import type { OAuthProvider } from "better-auth/oauth2";
import { tenantError } from "../errors";
import { withChanges } from "../framework";
import { currentEndpoint } from "../scope/endpoint";
import { notes } from "../scope/scope";

type Stored = Record<string, unknown>;

/**
 * A provider that is sent no token of somebody else's. better-auth finds it by the name alone, which
 * a tenant may have moved to a host of its own since people got their tokens, or back. Whose tokens
 * an account has is in the id that it was stored with, in front of the subject.
 */
export function keepingTokens(
  context: AuthContext,
  provider: OAuthProvider,
  prefix: string,
): OAuthProvider {
  const isOwn = ({ accountId }: Stored) =>
    prefix ? String(accountId).startsWith(prefix) : !String(accountId).includes("#");

  const assertOwn = async (token: unknown) => {
    for (const account of await accountsInHand(context)) {
      if (account.providerId !== provider.id || isOwn(account)) continue;
      for (const stored of [account.accessToken, account.refreshToken]) {
        if (stored && (await decrypted(context, String(stored))) === token) throw movedAway();
      }
    }
  };

  const refresh = provider.refreshAccessToken?.bind(provider);
  return withChanges(provider, {
    ...(refresh && {
      refreshAccessToken: async (token, ctx) => {
        await assertOwn(token);
        return refresh(token, ctx);
      },
    }),
    getUserInfo: async (tokens) => {
      await assertOwn(tokens.accessToken);
      return provider.getUserInfo(tokens);
    },
  });
}

/** What the request has read: from the database, or from the cookie that better-auth keeps it in. */
export async function accountsInHand(
  { options }: AuthContext,
  endpoint = currentEndpoint(),
): Promise<Stored[]> {
  const accounts = notes().accounts ?? [];
  const hasCookie = endpoint && options.account?.storeAccountCookie;
  const kept = hasCookie ? await getAccountCookie(endpoint as never) : undefined;
  return kept ? [...accounts, kept as unknown as Stored] : accounts;
}

/** As better-auth stores tokens. One from before `encryptOAuthTokens` was set is not encrypted. */
async function decrypted({ options, secretConfig }: AuthContext, token: string): Promise<string> {
  if (!options.account?.encryptOAuthTokens) return token;
  return symmetricDecrypt({ key: secretConfig, data: token }).catch(() => token);
}

const movedAway = () =>
  tenantError(
    "PROVIDER_NOT_FOUND",
    "This account is from another host than the provider has now. Link it again.",
  );
