import type { OAuthProvider } from "better-auth/oauth2";
import { parseJSON } from "../framework";
import { fromText } from "../naming/oauth-state";
import { currentEndpoint } from "../scope/endpoint";

/**
 * A sign-in with an id token may send an access token along, and some providers identify the user by
 * that one. Without this check, a user could send their own id token with the access token of
 * another user, which any client at the same identity provider receives.
 */
export function withMatchingTokens(provider: OAuthProvider): OAuthProvider {
  const getUserInfo: OAuthProvider["getUserInfo"] = async (tokens) => {
    const found = await provider.getUserInfo(tokens);
    const { context, body } = currentEndpoint() ?? {};
    const { idToken, accessToken, ...rest } = tokens;
    if (!found || !context || !body?.idToken || !accessToken) return found;
    // Facebook accepts an access token in the place of an id token.
    if (accessToken === idToken) return found;
    const { sub } = claimsOf(idToken);
    const profile = Object(found.data);
    // `accountSubject` could read the subject from the id token, so it does not get that one.
    const subject = profile.sub ?? (await subjectOf(provider, { ...rest, accessToken }, profile));
    if (sub !== undefined && `${subject}` === `${sub}`) return found;
    context.logger.error(
      `${provider.id}: the access token and the id token are of different users`,
    );
    return null;
  };
  return { ...provider, getUserInfo };
}

type Subject = Parameters<OAuthProvider["accountSubject"]>[0];

const subjectOf = async (
  provider: OAuthProvider,
  tokens: Subject["tokens"],
  profile: Subject["profile"],
): Promise<unknown> => {
  try {
    return await provider.accountSubject({ tokens, profile });
  } catch {
    return undefined;
  }
};

function claimsOf(token: unknown): { sub?: unknown } {
  const [, payload = ""] = String(token).split(".");
  return Object(parseJSON(fromText(payload)));
}
