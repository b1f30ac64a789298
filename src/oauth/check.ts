import type { AuthContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { type ErrorCode, tenantError } from "../errors";
import { resolved } from "../framework";
import type { ResolvedOptions } from "../options";
import { type OAuthConfigInput, type StoredOAuthConfig, tryDecrypt } from "./config-store";
import { byId, resolvedProviders } from "./configured";
import type { OAuthConfigKey } from "./log-lines";
import { callbackPath, fromClient, isBuiltIn, type TenantClient } from "./provider";
import {
  invalid,
  isAtForeignHost,
  isMove,
  issuerOf,
  locationOf,
  type OwnOptions,
  parseOwnOptions,
} from "./provider-options";
import { assertNamesTenant, assertRedirectURI } from "./trusted-addresses";

/** One thing that was looked at when a config was checked. */
export interface OAuthConfigFinding {
  /** What was looked at. */
  subject: "options" | "authorization" | "token" | "discovery" | "redirectURI";
  /** Null where it could not be seen from here. */
  ok: boolean | null;
  /** The error that a sign-in would end with. */
  code?: string;
  message: string;
}

/** What a check of a config has found, without a user and without storing anything. */
export interface OAuthConfigCheck {
  providerId: string;
  /** Whether nothing failed that was tried. What could not be seen has `ok: null` in `findings`. */
  ok: boolean;
  /** What has to be registered at the provider as redirect URI or callback URL. */
  redirectURI: string;
  findings: OAuthConfigFinding[];
}

type Verdict = Pick<OAuthConfigFinding, "ok" | "message">;

const TIMEOUT = 5_000;

/** What can be known of a config without a user. Nothing is stored, and nothing secret is told. */
export async function checkConfig(
  ctx: AuthContext,
  key: OAuthConfigKey,
  redirectURI: string | null | undefined,
  loading: Promise<Partial<ClientInput>>,
  options: ResolvedOptions,
): Promise<OAuthConfigCheck> {
  const { providerId } = key;
  const input = await loading.catch(() => null);
  const callback = redirectURIOf(ctx, key, redirectURI, input?.options ?? {});
  const findings = await findOut(ctx, key, callback, loading, options);
  const ok = findings.every((finding) => finding.ok !== false);
  return { providerId, ok, redirectURI: callback, findings };
}

async function findOut(
  ctx: AuthContext,
  key: OAuthConfigKey,
  redirectURI: string,
  loading: Promise<Partial<ClientInput>>,
  options: ResolvedOptions,
): Promise<OAuthConfigFinding[]> {
  const complete: OAuthConfigFinding = { subject: "options", ...good("The options are complete") };
  try {
    const input = await loading;
    if (!hasCredentials(input)) {
      readOptions(key.providerId, input, options);
      return [complete, WITHOUT_CREDENTIALS];
    }
    const { provider, authorization } = await readClient(ctx, key, input, options);
    const issuer = issuerOf(key.providerId, provider.options ?? {});
    const visit = visitQuietly(authorization);
    const asked = await Promise.all([
      find("authorization", () => answers(visit)),
      find("token", () => acceptsClient(provider, redirectURI)),
      ...(issuer ? [find("discovery", () => describesItself(issuer))] : []),
      find("redirectURI", () => leadsBack(visit, redirectURI), unseen),
    ]);
    return [complete, ...asked];
  } catch (error) {
    if (!isAPIError(error)) throw error;
    const code = error.body?.code;
    return [{ subject: "options", ...bad(error.message), ...(code && { code }) }];
  }
}

const hasCredentials = (input: Partial<ClientInput>): input is ClientInput =>
  input.clientId !== undefined && input.clientSecret !== undefined;

/** Before there is a config, a manager wants to know what to register at the provider. */
const WITHOUT_CREDENTIALS: OAuthConfigFinding = {
  subject: "token",
  ok: false,
  code: "OAUTH_CONFIG_NOT_FOUND" satisfies ErrorCode,
  message: "There is no client id and secret yet",
};

async function find(
  subject: OAuthConfigFinding["subject"],
  ask: () => Promise<Verdict>,
  failed = bad,
): Promise<OAuthConfigFinding> {
  const verdict = ask().catch(() => failed("The provider cannot be reached"));
  return { subject, ...(await inTime(verdict, failed)) };
}

/**
 * Goes where people would be sent to, with `prompt=none`: nobody is signed in there, which is an
 * error, and providers send errors back to registered addresses only. Those that do not know it show
 * a page.
 */
async function visitQuietly(authorization: URL): Promise<Response> {
  const address = new URL(authorization);
  address.searchParams.set("prompt", "none");
  const page = await ask(address.href);
  await page.body?.cancel();
  return page;
}

async function answers(visit: Promise<Response>): Promise<Verdict> {
  const { status } = await visit;
  return status < 500 ? good("The address answers") : bad(`The address answers with ${status}`);
}

/** Hands in a made-up code: if only the code is refused, the client was accepted. */
async function acceptsClient(provider: OAuthProvider, redirectURI: string): Promise<Verdict> {
  try {
    await provider.validateAuthorizationCode({ code: "-", codeVerifier: VERIFIER, redirectURI });
  } catch (error) {
    const { status, error: code } = (error ?? {}) as { status?: number; error?: string };
    // That is how fetch fails. Other errors without a status are the provider's own way to refuse.
    if (error instanceof TypeError || Number(status) >= 500) throw error;
    if (typeof status !== "number") return UNSEEN_CREDENTIALS;
    if (code === "invalid_client" || code === "unauthorized_client" || status === 401) {
      return bad("The provider does not know this client id and secret");
    }
    if (status !== 400 && status !== 403) return bad(`The address answers with ${status}`);
    // Who is refused for the code alone has been recognised before (RFC 6749, 5.2).
    if (code === "invalid_grant") return good("Credentials accepted");
  }
  return UNSEEN_CREDENTIALS;
}

const UNSEEN_CREDENTIALS = unseen(
  "The address answers. Whether it accepts the credentials is seen at the first sign-in only",
);

async function leadsBack(visit: Promise<Response>, redirectURI: string): Promise<Verdict> {
  const { headers } = await visit;
  return headers.get("location")?.startsWith(redirectURI)
    ? good("The redirect URI is registered")
    : UNSEEN_REDIRECT;
}

const UNSEEN_REDIRECT = unseen(
  "Whether the redirect URI is registered cannot be seen from here: compare it with the provider's settings",
);

async function describesItself(issuer: string): Promise<Verdict> {
  const answer = await ask(`${issuer}/.well-known/openid-configuration`);
  const document = await answer.json().catch(() => null);
  return typeof document?.issuer === "string"
    ? good("The provider describes itself")
    : bad("There is no discovery document where there should be one");
}

/** Follows no redirect: it might lead into the network. */
const ask = (address: string) =>
  fetch(address, { redirect: "manual", signal: AbortSignal.timeout(TIMEOUT) });

async function inTime(verdict: Promise<Verdict>, failed: typeof bad): Promise<Verdict> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Verdict>((resolve) => {
    timer = setTimeout(resolve, TIMEOUT, failed("The provider does not answer in time"));
  });
  return Promise.race([verdict, late]).finally(() => clearTimeout(timer));
}

const good = (message: string): Verdict => ({ ok: true, message });
const bad = (message: string): Verdict => ({ ok: false, message });

function unseen(message: string): Verdict {
  return { ok: null, message };
}

/** A client as a manager describes it. */
export type ClientInput = Partial<TenantClient> & { clientId: string; clientSecret: string };

/** Checks everything that can be checked without asking the provider; answers what to store. */
export async function readClient(
  ctx: AuthContext,
  key: OAuthConfigKey,
  input: ClientInput,
  tenantOptions: ResolvedOptions,
) {
  const { providerId: id } = key;
  const { clientId, clientSecret, scopes = null, redirectURI = null, options = null } = input;
  const own = readOptions(id, input, tenantOptions);
  const client = { clientId, clientSecret, scopes, redirectURI, options: options && own };
  const global = await resolved(byId(await resolvedProviders(ctx)).get(id));
  const provider = await fromClient(ctx, key, client, own, global);
  const callback = redirectURIOf(ctx, key, redirectURI, own);
  const authorization = await authorizationURL(provider, callback);
  return { client, provider, authorization };
}

function readOptions(
  id: string,
  { redirectURI = null, options = null }: Partial<ClientInput>,
  { trustedProviderHosts }: ResolvedOptions,
): OwnOptions {
  if (!isBuiltIn(id)) throw tenantError("UNSUPPORTED_PROVIDER");
  assertRedirectURI(redirectURI);
  return parseOwnOptions(id, options, trustedProviderHosts);
}

/** Checks what a manager wants to change in a stored config; answers what to store. */
export async function readChanges(
  ctx: AuthContext,
  row: StoredOAuthConfig,
  changes: Partial<OAuthConfigInput>,
  { trustedProviderHosts }: ResolvedOptions,
): Promise<Partial<OAuthConfigInput>> {
  const { tenantId, providerId } = row;
  const { clientSecret, options, redirectURI = row.redirectURI } = changes;
  assertRedirectURI(changes.redirectURI);
  // Whatever is wrong with a config, it can be switched off.
  if (options === undefined && changes.redirectURI === undefined) return changes;
  const stored = await tryDecrypt(ctx, row);
  const before = stored && (stored.options ?? {});
  const own =
    options === undefined
      ? (before ?? {})
      : parseOwnOptions(providerId, options, trustedProviderHosts);
  if (options !== undefined && clientSecret === undefined) assertStays(providerId, before, own);
  if (isAtForeignHost(providerId, own)) assertNamesTenant(redirectURI, tenantId);
  return options ? { ...changes, options: own } : changes;
}

/** The stored secret must not go to another host at the word of somebody who does not know it. */
function assertStays(id: string, before: OwnOptions | null, after: OwnOptions): void {
  const stays = before ? !isMove(id, before, after) : locationOf(id).length === 0;
  if (stays) return;
  const names = locationOf(id).map((key) => `options.${key}`);
  throw invalid(`${names.join(", ")}: give the clientSecret as well to change where it is sent`);
}

/** The address that has to be registered at the provider. */
export function redirectURIOf(
  ctx: AuthContext,
  { tenantId, providerId }: OAuthConfigKey,
  overridden: string | null | undefined,
  options: OwnOptions,
): string {
  const owner = isAtForeignHost(providerId, options) ? tenantId : undefined;
  return overridden ?? ctx.baseURL + callbackPath(providerId, owner);
}

/** Where people would be sent to. Some providers find out only here that they miss something. */
async function authorizationURL(provider: OAuthProvider, redirectURI: string): Promise<URL> {
  try {
    const flow = { state: "-", codeVerifier: VERIFIER, redirectURI };
    return await provider.createAuthorizationURL(flow);
  } catch {
    throw invalid("This provider cannot be set up with these options");
  }
}

/** Stands where a flow would have a random one. */
const VERIFIER = "-".repeat(43);
