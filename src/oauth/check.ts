import type { AuthContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import type { ResolvedOptions } from "../options";
import { type ClientInput, readClient, redirectURIOf, VERIFIER } from "./client";
import { issuerOf } from "./provider-options";

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
  /** Whether every finding is. */
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
  providerId: string,
  redirectURI: string | null | undefined,
  load: () => Promise<ClientInput>,
  options: ResolvedOptions,
): Promise<OAuthConfigCheck> {
  const callback = redirectURIOf(ctx, providerId, redirectURI);
  const findings = await findOut(ctx, providerId, callback, load, options);
  return { providerId, ok: findings.every(({ ok }) => ok), redirectURI: callback, findings };
}

async function findOut(
  ctx: AuthContext,
  id: string,
  redirectURI: string,
  load: () => Promise<ClientInput>,
  options: ResolvedOptions,
): Promise<OAuthConfigFinding[]> {
  try {
    const { provider, authorization } = await readClient(ctx, id, await load(), options);
    const issuer = issuerOf(id, provider.options ?? {});
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

/** Hands in a code that nobody was given: who is refused for the code alone was let in. */
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
