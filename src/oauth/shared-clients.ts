import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { parseJSON, withChanges } from "../framework";
import { fromText } from "../naming/oauth-state";
import type { Endpoint } from "../scope/endpoint";
import { configuredOptions, genericConfigs, isConfigured, resolvedProviders } from "./configured";
import { accountsInHand } from "./stored-tokens";

/*
 * Where a token is a sign-in, at every tenant and on the platform: at the application's providers
 * that take tokens of its client. A client may be there under several names, and One Tap may have
 * one of its own.
 */

/** What better-auth answers with, as far as it matters. */
export interface Tokens {
  accessToken?: unknown;
  idToken?: unknown;
  refreshToken?: unknown;
}

/** Tokens of an account as they leave its tenant: see `keepSharedTokens`. */
export async function withoutShared(endpoint: Endpoint, tokens: Tokens): Promise<Tokens> {
  const { context, body } = endpoint;
  const accountId = body?.accountId;
  // Somebody may have read a part of it before. Without an id it is the one in the cookie.
  const account = (await accountsInHand(context, endpoint)).findLast(
    ({ id, providerId }) => providerId && (!accountId || id === accountId),
  );
  if (!account) throw ofSharedClient();
  const { idToken, refreshToken, ...rest } = tokens;
  const { isSignIn, byAccessToken } = await asSignIn(context, String(account.providerId), tokens);
  if (byAccessToken) throw ofSharedClient();
  return isSignIn ? rest : tokens;
}

/** What tokens of a provider of this name are good for, elsewhere. */
export async function asSignIn(context: AuthContext, id: string, tokens: Tokens) {
  const globals = await resolvedProviders(context);
  const own = [...clientsOf(context, globals, id), ...audienceOf(tokens.idToken)];
  const askedFor = audienceOf(tokens.accessToken);
  const takers = (await takersOf(context, globals)).map((taker) => ({
    ...taker,
    isHere: taker.id === id || isOneOf(taker, own),
    // Nobody knows what a provider of a plugin takes that does not say whose client it has.
    isUnknown: taker.clients.length === 0,
  }));
  return {
    isSignIn: takers.some(({ isHere, isUnknown }) => isHere || isUnknown),
    byAccessToken: takers.some(
      (taker) =>
        isOneOf(taker, askedFor) || ((taker.isHere || taker.isUnknown) && !taker.readsIdTokenAlone),
    ),
  };
}

const isOneOf = (taker: Taker, clients: unknown[]) =>
  taker.clients.some((client) => clients.includes(client));

/** What takes id tokens on the platform, and in every tenant without a config. */
interface Taker {
  id: string;
  /** The clients whose tokens it takes. */
  clients: unknown[];
  /** Whether an access token is no sign-in there. */
  readsIdTokenAlone: boolean;
}

async function takersOf(context: AuthContext, globals: OAuthProvider[]): Promise<Taker[]> {
  const loaded = globals.filter(takesIdTokens).map((provider) => ({
    id: provider.id,
    clients: clientsOf(context, globals, provider.id),
    readsIdTokenAlone: readsIdTokenAlone(context, globals, provider),
  }));
  // A process that started while the provider was away does not know what others do.
  const discovered = genericConfigs(context.options)
    .filter(({ discoveryUrl }) => discoveryUrl)
    .map(({ providerId: id }) => ({
      id,
      clients: clientsOf(context, globals, id),
      readsIdTokenAlone: false,
    }));
  return [...loaded, ...discovered, ...(await oneTapOf(context))];
}

/** As better-auth decides it. */
const takesIdTokens = ({ idToken, options }: OAuthProvider) =>
  !options?.disableIdTokenSignIn && Boolean(idToken || options?.verifyIdToken);

/** One Tap takes Google's id tokens, as of the client that it was told, or of Google's. */
async function oneTapOf(context: AuthContext): Promise<Taker[]> {
  const plugin = context.options.plugins?.find(({ id }) => id === "one-tap");
  if (!plugin) return [];
  const { clientId } = await configuredOptions(context, "google", undefined);
  const clients = known([plugin.options?.clientId || clientId]);
  return clients.length ? [{ id: "google", clients, readsIdTokenAlone: true }] : [];
}

/** The application's clients at the providers of this name. Some have one that is for apps. */
function clientsOf(context: AuthContext, globals: OAuthProvider[], id: string): unknown[] {
  const providers = globals.filter((provider) => provider.id === id);
  const generic = genericConfigs(context.options).filter(({ providerId }) => providerId === id);
  return known([
    ...generic.map(({ clientId }) => clientId),
    ...providers.flatMap(({ options, idToken }) => [
      options?.clientId,
      idToken && "audience" in idToken ? idToken.audience : undefined,
    ]),
  ]);
}

const known = (clients: unknown[]) => clients.flat().filter((client) => client !== undefined);

/**
 * better-auth's own providers that read who somebody is from an id token alone. All others ask with
 * the access token that is sent along with it, or take one in its place.
 *
 * Guarded by "who somebody is, %s reads from an id token alone".
 */
export const BY_ID_TOKEN = ["apple", "cognito", "google", "line", "microsoft"];

/** Whether an access token is no sign-in at this provider. */
function readsIdTokenAlone(
  context: AuthContext,
  globals: OAuthProvider[],
  { id, options }: OAuthProvider,
): boolean {
  // A plugin may have put another one beside better-auth's own.
  const isOnly = globals.filter((known) => known.id === id).length === 1;
  const isAsMade = isOnly && !options?.getUserInfo && !options?.verifyIdToken;
  return BY_ID_TOKEN.includes(id) && isConfigured(context, id) && isAsMade;
}

/** Whom a token is for, if it is one that says so. */
const audienceOf = (token: unknown) => known([claimsOf(token).aud]);

function claimsOf(token: unknown): { aud?: unknown; sub?: unknown } {
  const [, payload = ""] = String(token).split(".");
  return Object(parseJSON(fromText(payload)));
}

/**
 * A provider for a sign-in with an id token. Whoever sends one may send an access token of somebody
 * else along, from any client at the same identity provider, and some providers ask with that one
 * who somebody is. The same token in both places (Facebook's) is one person's anyway.
 */
export function aboutOnePerson(context: AuthContext, provider: OAuthProvider): OAuthProvider {
  const getUserInfo: OAuthProvider["getUserInfo"] = async (tokens) => {
    const found = await provider.getUserInfo(tokens);
    const { idToken, accessToken, ...rest } = tokens;
    if (!found || !accessToken || accessToken === idToken) return found;
    const { sub } = claimsOf(idToken);
    const profile = Object(found.data);
    // Whoever sees the id token may read the subject from there: the question is whose the other is.
    const known = { tokens: { ...rest, accessToken }, profile };
    const isSame =
      profile.sub === undefined
        ? isSubject(await subjectOf(provider, known), `${sub}`)
        : `${profile.sub}` === `${sub}`;
    if (isSame && sub !== undefined) return found;
    context.logger.error(`${provider.id}: the access token is not of the person in the id token`);
    return null;
  };
  return withChanges(provider, { getUserInfo });
}

type Known = Parameters<OAuthProvider["accountSubject"]>[0];

const subjectOf = async (provider: OAuthProvider, known: Known): Promise<unknown> => {
  try {
    return await provider.accountSubject(known);
  } catch {
    return undefined;
  }
};

/** A tenant's own provider may have its host in front of the subject. */
const isSubject = (subject: unknown, sub: string) =>
  `${subject}` === sub || `${subject}`.endsWith(`#${sub}`);

const ofSharedClient = () =>
  new APIError("FORBIDDEN", {
    code: "TOKEN_OF_SHARED_CLIENT",
    message:
      "An access token of this provider can be a sign-in, at every tenant that shares the client. Ask on the server, without headers",
  });
