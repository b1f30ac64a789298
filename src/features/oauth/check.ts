import type { AuthContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { isolationOf } from "../../core/isolation";
import { asHostResolver } from "../../core/resolve/resolvers";
import { lookUpTenant } from "../../core/tenants/tenants";
import { within } from "../../core/utils";
import { findPolicyRefusals } from "../policy/provider-findings";
import {
  findOAuthConfig,
  type OAuthConfigInput,
  type OAuthConfigKey,
  type StoredOAuthConfig,
  type TenantClient,
  tryDecrypt,
} from "./config-store";
import { oauthError } from "./errors";
import { oauthOptions } from "./options";
import { callbackPath, fromClient, isBuiltIn } from "./provider";
import { callProvider } from "./provider-calls";
import {
  invalid,
  isAtForeignHost,
  issuerOf,
  locationOf,
  type OwnOptions,
  parseOwnOptions,
} from "./provider-options";
import { callbackBase } from "./return-host";
import { assertNamesTenant, assertRedirectURI } from "./trusted-addresses";

/** Result of one check of a config. */
export interface OAuthConfigFinding {
  subject: "options" | "authorization" | "token" | "discovery" | "redirectURI" | "policy";
  /** Null if the server cannot check this. */
  ok: boolean | null;
  /** Error code that a sign-in with this config would end with. */
  code?: string;
  message: string;
}

/** Results of all checks of a config. The checks need no user and store nothing. */
export interface OAuthConfigCheck {
  providerId: string;
  /** False if a check failed. Parts that the server cannot check have `ok: null` in `findings`. */
  ok: boolean;
  /** Redirect URI (callback URL) to register at the provider. */
  redirectURI: string;
  findings: OAuthConfigFinding[];
}

type Verdict = Pick<OAuthConfigFinding, "ok" | "message">;

const good = (message: string): Verdict => ({ ok: true, message });
const bad = (message: string): Verdict => ({ ok: false, message });
const unseen = (message: string): Verdict => ({ ok: null, message });

const TIMEOUT = 5_000;

/**
 * Checks the given config, or else the stored one. Without either, the result only says what to
 * register at the provider. Stores nothing, and returns no secrets.
 */
export async function checkConfig(
  ctx: AuthContext,
  key: OAuthConfigKey,
  given: Partial<TenantClient>,
): Promise<OAuthConfigCheck> {
  const isGiven = Object.values(given).some((value) => value != null);
  const row = isGiven ? null : await findOAuthConfig(ctx, key);
  const clear = row && (await tryDecrypt(ctx, row));
  const input = row ? clear && { ...row, ...clear } : given;
  const overridden = (row ?? given).redirectURI;
  const redirectURI = await redirectURIOf(ctx, key, overridden, input?.options ?? {});
  const findings: OAuthConfigFinding[] = [
    ...(await findOut(ctx, key, redirectURI, input).catch(asFinding)),
    ...(await findPolicyRefusals(ctx, key.tenantId, `social:${key.providerId}`)),
  ];
  const ok = findings.every((finding) => finding.ok !== false);
  return { providerId: key.providerId, ok, redirectURI, findings };
}

/** Turns a refusal by this server into a finding about the options. */
function asFinding(error: unknown): OAuthConfigFinding[] {
  if (!isAPIError(error)) throw error;
  const code = error.body?.code;
  return [{ subject: "options", ...bad(error.message), ...(code && { code }) }];
}

/** Runs the checks. `input` is null if the stored config cannot be decrypted. */
async function findOut(
  ctx: AuthContext,
  key: OAuthConfigKey,
  redirectURI: string,
  input: Partial<TenantClient> | null,
): Promise<OAuthConfigFinding[]> {
  if (!input) throw oauthError("OAUTH_CREDENTIAL_DECRYPT_FAILED");
  const complete: OAuthConfigFinding = { subject: "options", ...good("The options are complete") };
  const { clientId, clientSecret } = input;
  if (clientId === undefined || clientSecret === undefined) {
    readOptions(ctx, key.providerId, input);
    const code = "OAUTH_CONFIG_NOT_FOUND";
    const missing = { ...bad("There is no client id and secret yet"), code };
    return [complete, { subject: "token", ...missing }];
  }
  const client = { ...input, clientId, clientSecret };
  const { provider, authorization } = await readClient(ctx, key, client);
  const issuer = issuerOf(key.providerId, provider.options ?? {});
  const visit = visitQuietly(authorization);
  const asked = await Promise.all([
    find("authorization", async () => answers(await visit)),
    find("token", () => acceptsClient(provider, redirectURI)),
    ...(issuer ? [find("discovery", () => describesItself(issuer))] : []),
    find("redirectURI", async () => leadsBack(await visit, redirectURI), unseen),
  ]);
  return [complete, ...asked];
}

async function find(
  subject: OAuthConfigFinding["subject"],
  ask: () => Promise<Verdict>,
  failed = bad,
): Promise<OAuthConfigFinding> {
  const verdict = ask().catch(() => failed("The provider cannot be reached"));
  const late = () => failed("The provider does not answer in time");
  return { subject, ...(await within(TIMEOUT, verdict).catch(late)) };
}

/**
 * Returns options for `fetch`: a time limit, and no redirects, because the provider could redirect
 * the server into its private network.
 */
const options = () => ({ redirect: "manual", signal: AbortSignal.timeout(TIMEOUT) }) as const;

/**
 * Opens the authorization URL with `prompt=none`. The provider must then report that no user is
 * signed in, and may do so only at a registered redirect URI. A redirect to our URI therefore
 * proves that it is registered. Some providers show a page instead, which proves nothing.
 */
async function visitQuietly(authorization: URL): Promise<Response> {
  const address = new URL(authorization);
  address.searchParams.set("prompt", "none");
  const page = await fetch(address, options());
  await page.body?.cancel();
  return page;
}

const answers = ({ status }: Response) =>
  status < 500 ? good("The address answers") : bad(`The address answers with ${status}`);

/** Sends a made-up code: if the provider refuses only the code, it accepts the client. */
async function acceptsClient(provider: OAuthProvider, redirectURI: string): Promise<Verdict> {
  const unknown = unseen(
    "The address answers. Only the first sign-in shows whether it accepts the credentials",
  );
  try {
    await provider.validateAuthorizationCode({ code: "-", codeVerifier: VERIFIER, redirectURI });
    return unknown;
  } catch (error) {
    const { status, error: code } = (error ?? {}) as { status?: number; error?: string };
    // A TypeError is a failed fetch, so the caller reports that the provider cannot be reached. An
    // error without a status is a refusal whose reason is unknown.
    if (error instanceof TypeError || Number(status) >= 500) throw error;
    if (typeof status !== "number") return unknown;
    if (code === "invalid_client" || code === "unauthorized_client" || status === 401) {
      return bad("The provider does not know this client id and secret");
    }
    if (status !== 400 && status !== 403) return bad(`The address answers with ${status}`);
    // A provider authenticates the client before it looks at the code (RFC 6749, 5.2). So a refused
    // code means that the credentials are right.
    return code === "invalid_grant" ? good("Credentials accepted") : unknown;
  }
}

const leadsBack = ({ headers }: Response, redirectURI: string) =>
  headers.get("location")?.startsWith(redirectURI)
    ? good("The redirect URI is registered")
    : unseen(
        "Whether the redirect URI is registered cannot be seen from here: compare it with the provider's settings",
      );

async function describesItself(issuer: string): Promise<Verdict> {
  const address = `${issuer}/.well-known/openid-configuration`;
  const answer = await callProvider(address, options());
  const document = await answer.json().catch(() => null);
  return typeof document?.issuer === "string"
    ? good("The provider describes itself")
    : bad("There is no discovery document where there should be one");
}

/** Checks a config without a request to the provider, and returns what to store. */
export async function readClient(ctx: AuthContext, key: OAuthConfigKey, input: TenantClient) {
  const { clientId, clientSecret, scopes = null, redirectURI = null, options = null } = input;
  const own = readOptions(ctx, key.providerId, input);
  const client = { clientId, clientSecret, scopes, redirectURI, options: options && own };
  const { provider } = fromClient(ctx, key, client, own);
  const callback = await redirectURIOf(ctx, key, redirectURI, own);
  const authorization = await authorizationURL(provider, callback);
  return { client, provider, authorization };
}

function readOptions(ctx: AuthContext, id: string, input: Partial<TenantClient>): OwnOptions {
  if (!isBuiltIn(id)) throw oauthError("UNSUPPORTED_PROVIDER");
  assertRedirectURI(input.redirectURI);
  return parseOwnOptions(id, input.options, oauthOptions(ctx).trustedProviderHosts);
}

/** Checks changes of a stored config, and returns what to store. */
export async function readChanges(
  ctx: AuthContext,
  row: StoredOAuthConfig,
  changes: Partial<OAuthConfigInput>,
): Promise<Partial<OAuthConfigInput>> {
  const { tenantId, providerId } = row;
  const { clientSecret, options, redirectURI = row.redirectURI } = changes;
  assertRedirectURI(changes.redirectURI);
  // Other changes need no check. So a manager can disable a config even if its options are invalid.
  if (options === undefined && changes.redirectURI === undefined) return changes;
  const stored = await tryDecrypt(ctx, row);
  const before = stored && (stored.options ?? {});
  const isSet = options !== undefined;
  const { trustedProviderHosts } = oauthOptions(ctx);
  const own = isSet ? parseOwnOptions(providerId, options, trustedProviderHosts) : (before ?? {});
  if (isSet && clientSecret === undefined) assertStays(providerId, before, own);
  if (isAtForeignHost(providerId, own)) assertNamesTenant(redirectURI, tenantId);
  return options ? { ...changes, options: own } : changes;
}

/**
 * Refuses options that would send the stored secret to another host. The caller may not know the
 * secret, and could read it at that host.
 */
function assertStays(id: string, before: OwnOptions | null, after: OwnOptions): void {
  const location = locationOf(id);
  if (location.every((key) => before && before[key] === after[key])) return;
  const names = location.map((key) => `options.${key}`);
  throw invalid(`${names.join(", ")}: give the clientSecret as well to change where it is sent`);
}

export async function redirectURIOf(
  ctx: AuthContext,
  { tenantId, providerId }: OAuthConfigKey,
  overridden: string | null | undefined,
  options: OwnOptions,
): Promise<string> {
  const owner = isAtForeignHost(providerId, options) ? tenantId : undefined;
  return overridden ?? (await baseAt(ctx, tenantId)) + callbackPath(providerId, owner);
}

/** Returns the base URL at the tenant's host, where flows start. */
async function baseAt(ctx: AuthContext, tenantId: string): Promise<string> {
  const { redirectBaseURL, resolveTenantId } = oauthOptions(ctx);
  const base = callbackBase(ctx);
  const isFixed = redirectBaseURL || isolationOf(ctx)?.ctx.baseURL;
  if (isFixed || !URL.canParse(base)) return base;
  const tenant = await lookUpTenant(ctx, tenantId);
  const hosts = (tenant && asHostResolver(resolveTenantId)?.hostsOf(tenant)) ?? [];
  const url = new URL(base);
  if (!hosts.includes(url.hostname)) url.hostname = hosts[0] ?? url.hostname;
  return url.href.replace(/\/$/, "");
}

/**
 * Returns the URL to send users to. Some providers report missing options only here, so every error
 * is reported as invalid options.
 */
async function authorizationURL(provider: OAuthProvider, redirectURI: string): Promise<URL> {
  try {
    const flow = { state: "-", codeVerifier: VERIFIER, redirectURI };
    return await provider.createAuthorizationURL(flow);
  } catch {
    throw invalid("This provider cannot be set up with these options");
  }
}

const VERIFIER = "-".repeat(43);
