import type { AuthContext } from "better-auth";
import { APIError, isAPIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import type { ResolvedOptions } from "../options";
import {
  type OAuthConfigInput,
  type OAuthConfigKey,
  type StoredOAuthConfig,
  tryDecrypt,
} from "./config-store";
import { globalProviders } from "./configured";
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
  subject: "options" | "authorization" | "token" | "discovery";
  ok: boolean;
  /** The error that a sign-in would end with. */
  code?: string;
  message: string;
}

/** What a check of a config has found, without a user and without storing anything. */
export interface OAuthConfigCheck {
  providerId: string;
  /** True if every finding is ok. */
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
  loading: Promise<ClientInput>,
  options: ResolvedOptions,
): Promise<OAuthConfigCheck> {
  const { providerId } = key;
  const input = await loading.catch(() => null);
  const callback = redirectURIOf(ctx, key, redirectURI, input?.options ?? {});
  const findings = await findOut(ctx, key, callback, loading, options);
  return { providerId, ok: findings.every(({ ok }) => ok), redirectURI: callback, findings };
}

async function findOut(
  ctx: AuthContext,
  key: OAuthConfigKey,
  redirectURI: string,
  loading: Promise<ClientInput>,
  options: ResolvedOptions,
): Promise<OAuthConfigFinding[]> {
  try {
    const { provider, authorization } = await readClient(ctx, key, await loading, options);
    const issuer = issuerOf(key.providerId, provider.options ?? {});
    const asked = await Promise.all([
      find("authorization", () => answers(authorization.origin + authorization.pathname)),
      find("token", () => acceptsClient(provider, redirectURI)),
      ...(issuer ? [find("discovery", () => describesItself(issuer))] : []),
    ]);
    return [{ subject: "options", ...good("The options are complete") }, ...asked];
  } catch (error) {
    if (!isAPIError(error)) throw error;
    const code = error.body?.code;
    return [{ subject: "options", ...bad(error.message), ...(code && { code }) }];
  }
}

async function find(
  subject: OAuthConfigFinding["subject"],
  ask: () => Promise<Verdict>,
): Promise<OAuthConfigFinding> {
  const verdict = ask().catch(() => bad("The provider cannot be reached"));
  return { subject, ...(await inTime(verdict)) };
}

async function answers(address: string): Promise<Verdict> {
  const { status, body } = await ask(address);
  await body?.cancel();
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
    if (typeof status !== "number") return good("Nothing more can be said without a user");
    if (code === "invalid_client" || code === "unauthorized_client" || status === 401) {
      return bad("The provider does not know this client id and secret");
    }
    if (status !== 400 && status !== 403) return bad(`The address answers with ${status}`);
  }
  return good("The address answers");
}

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

async function inTime(verdict: Promise<Verdict>): Promise<Verdict> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Verdict>((resolve) => {
    timer = setTimeout(resolve, TIMEOUT, bad("The provider does not answer in time"));
  });
  return Promise.race([verdict, late]).finally(() => clearTimeout(timer));
}

const good = (message: string): Verdict => ({ ok: true, message });
const bad = (message: string): Verdict => ({ ok: false, message });

/** A client as a manager describes it. */
export type ClientInput = Partial<TenantClient> & { clientId: string; clientSecret: string };

/** Checks everything that can be checked without asking the provider; answers what to store. */
export async function readClient(
  ctx: AuthContext,
  key: OAuthConfigKey,
  { clientId, clientSecret, scopes = null, redirectURI = null, options = null }: ClientInput,
  { trustedProviderHosts }: ResolvedOptions,
) {
  const { providerId: id } = key;
  if (!isBuiltIn(id)) {
    throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.UNSUPPORTED_PROVIDER);
  }
  assertRedirectURI(redirectURI);
  const own = parseOwnOptions(id, options, trustedProviderHosts);
  const client = { clientId, clientSecret, scopes, redirectURI, options: options && own };
  const global = globalProviders(ctx).find((provider) => provider.id === id);
  const provider = await fromClient(ctx, key, client, own, global);
  const callback = redirectURIOf(ctx, key, redirectURI, own);
  const authorization = await authorizationURL(provider, callback);
  return { client, provider, authorization };
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
