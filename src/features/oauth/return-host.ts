import type { AuthContext, HookEndpointContext } from "better-auth";
import { callbackOAuth } from "better-auth/api";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import type { OAuthProvider } from "better-auth/oauth2";
import { changeCall, currentEndpoint } from "../../core/endpoint";
import { deriveKeys } from "../../core/keys";
import { ownerOf } from "../../core/resolve/addresses";
import { hostOf } from "../../core/resolve/resolvers";
import { parseJSON, redirect, textOf } from "../../core/utils";
import { oauthOptions } from "./options";
import { type Callback, isSignedFor, prefixState, type ReturnedState, sign } from "./state-prefix";

/*
 * With `redirectBaseURL`, all tenants share one redirect URI. A provider sends users to the base
 * host. The plugin redirects the callback to the host where the flow started, because only that
 * host gets the flow's cookies. The state contains that host, signed. The redirect is refused if
 * the host no longer belongs to the tenant (R9).
 */

const SEALED_CODE = "sealed_code";

const pathOf = ({ baseURL, options }: AuthContext) =>
  URL.canParse(baseURL)
    ? new URL(baseURL).pathname.replace(/\/$/, "")
    : (options.basePath ?? "/api/auth");

/** Returns the part of a tenant's redirect URI before `/tenant/callback/...`. */
export function callbackBase(ctx: AuthContext): string {
  const { redirectBaseURL } = oauthOptions(ctx);
  return redirectBaseURL ? redirectBaseURL + pathOf(ctx) : ctx.baseURL;
}

/**
 * Makes a provider exchange codes with the redirect URI that the flow started with. better-auth
 * would use the host that the callback was redirected to.
 */
export function withRedirectURI(ctx: AuthContext, provider: OAuthProvider): OAuthProvider {
  const redirectURI = callbackBase(ctx) + provider.callbackPath;
  const validateAuthorizationCode: OAuthProvider["validateAuthorizationCode"] = (data) =>
    provider.validateAuthorizationCode({ ...data, redirectURI });
  return oauthOptions(ctx).redirectBaseURL ? { ...provider, validateAuthorizationCode } : provider;
}

const bindingOf = (tenantId: string, host: string) => ({
  tenantId,
  providerId: "redirectBaseURL",
  credentials: host,
});

/** Returns the state to send to the provider, with its tenant and the host to return to. */
export async function startedState(ctx: AuthContext, state: string, tenantId: string) {
  const host = startHost(ctx);
  if (!host) return prefixState(state, tenantId);
  const signature = await sign(ctx, state, bindingOf(tenantId, host));
  return prefixState(state, tenantId, signature, host);
}

/** Returns the host to return to. A caller may send any host, so only a trusted origin counts. */
function startHost(ctx: AuthContext): string | undefined {
  const { redirectBaseURL, resolveTenantId } = oauthOptions(ctx);
  const endpoint = currentEndpoint();
  const host = redirectBaseURL && resolveTenantId && endpoint && hostOf(endpoint);
  if (!host) return undefined;
  const base = new URL(redirectBaseURL);
  const isTrusted = host !== base.host && ctx.isTrustedOrigin(`${base.protocol}//${host}`);
  return isTrusted ? host : undefined;
}

/**
 * Redirects a callback at the base host to the host where its flow started. Returns false if the
 * state was changed, or if that host no longer belongs to the tenant.
 */
export async function sendToStartHost(
  ctx: HookEndpointContext,
  state: ReturnedState,
  { tenant }: Pick<Callback, "tenant">,
): Promise<boolean> {
  const { tenantId, host } = state;
  const { redirectBaseURL } = oauthOptions(ctx.context);
  const base = redirectBaseURL ? new URL(redirectBaseURL) : undefined;
  // A callback at another host stays there, so redirects cannot loop.
  if (!host || !base || base.host !== hostOf(ctx)) return true;
  const { context, query = {}, params } = ctx;
  const origin = `${base.protocol}//${host}`;
  if (!(await isSignedFor(context, state, bindingOf(tenantId, host)))) return false;
  if ((await ownerOf(ctx, origin)) !== tenantId) {
    context.logger.error(`A sign-in was started at ${origin}, which is not of tenant ${tenantId}`);
    return false;
  }
  // Passes on only what better-auth reads. Other values may be tokens of the shared client, which
  // the tenant's host must not get.
  const { code, ...rest } = callbackOAuth.options.query.safeParse(query).data ?? {};
  const sent = new URLSearchParams(rest);
  sent.set("state", prefixState(state.state, tenantId, state.signature, host));
  if (tenant !== undefined) sent.set("tenant", tenant);
  if (code !== undefined) sent.set(SEALED_CODE, await sealCode(context, state, textOf(code)));
  // "#" removes the fragment, which browsers keep across redirects: it contains tokens if an
  // attacker lures a user into the implicit flow of the shared client.
  throw redirect(`${origin}${pathOf(context)}/tenant/callback/${params?.id}?${sent}#`);
}

/**
 * Encrypts a code with its state, so that the code works in this flow only. Without this, a tenant
 * could lure users into its flow, read their codes at its own host, and use them in another
 * tenant's flow if the provider lacks PKCE.
 */
async function sealCode(ctx: AuthContext, { state }: ReturnedState, code: string) {
  const key = await deriveKeys("code", ctx.secretConfig);
  return symmetricEncrypt({ key, data: JSON.stringify([state, code]) });
}

/** Decrypts the code in a redirected callback. Returns false if it belongs to another flow. */
export async function openSealedCode(ctx: HookEndpointContext, { state }: ReturnedState) {
  const sealed: unknown = ctx.query?.[SEALED_CODE];
  if (sealed === undefined) return true;
  const key = await deriveKeys("code", ctx.context.secretConfig);
  const text = await symmetricDecrypt({ key, data: textOf(sealed) }).catch(() => undefined);
  const [of, code] = (parseJSON(text) as [string, string] | undefined) ?? [];
  if (of !== state) return false;
  changeCall("query", { code });
  return true;
}
