import type { AuthContext, HookEndpointContext } from "better-auth";
import { callbackOAuth } from "better-auth/api";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import type { OAuthProvider } from "better-auth/oauth2";
import { parseJSON, redirect, textOf } from "../framework";
import { tenantAuthOptions } from "../isolation/isolation";
import { deriveKeys } from "../keys";
import { ownerOf } from "../request/addresses";
import {
  changeCall,
  currentEndpoint,
  type ReturnedState,
  type TenantRoute,
} from "../request/endpoint";
import { hostOf } from "../request/resolvers";
import { isSignedFor, prefixState, sign } from "./state-prefix";

/*
 * One redirect URI for all hosts (`redirectBaseURL`): a provider sends users back to the base host, and
 * from there the callback goes on to the host where the flow was started, which has its cookies. That
 * host is in the state, signed. It still has to be the tenant's (R9).
 */

const SEALED_CODE = "sealed_code";

const pathOf = ({ baseURL, options }: AuthContext) =>
  URL.canParse(baseURL)
    ? new URL(baseURL).pathname.replace(/\/$/, "")
    : (options.basePath ?? "/api/auth");

/** What comes before `/tenant/callback/...` in the redirect URIs of tenants. */
export function callbackBase(ctx: AuthContext): string {
  const { redirectBaseURL } = tenantAuthOptions(ctx);
  return redirectBaseURL ? redirectBaseURL + pathOf(ctx) : ctx.baseURL;
}

/** A provider that exchanges codes with the redirect URI that the flow was started with. */
export function withRedirectURI(ctx: AuthContext, provider: OAuthProvider): OAuthProvider {
  const redirectURI = callbackBase(ctx) + provider.callbackPath;
  const validateAuthorizationCode: OAuthProvider["validateAuthorizationCode"] = (data) =>
    provider.validateAuthorizationCode({ ...data, redirectURI });
  return tenantAuthOptions(ctx).redirectBaseURL
    ? { ...provider, validateAuthorizationCode }
    : provider;
}

const bindingOf = (tenantId: string, host: string) => ({
  tenantId,
  providerId: "redirectBaseURL",
  credentials: host,
});

/** The state that a flow sends to its provider: with its tenant, and with its host if needed. */
export async function startedState(ctx: AuthContext, state: string, tenantId: string) {
  const host = startHost(ctx);
  if (!host) return prefixState(state, tenantId);
  const signature = await sign(ctx, state, bindingOf(tenantId, host));
  return prefixState(state, tenantId, signature, host);
}

/** A caller may send any host, so it has to be one that the application trusts. */
function startHost(ctx: AuthContext): string | undefined {
  const { redirectBaseURL, resolveTenantId } = tenantAuthOptions(ctx);
  const endpoint = currentEndpoint();
  const host = redirectBaseURL && resolveTenantId && endpoint && hostOf(endpoint);
  if (!host) return undefined;
  const base = new URL(redirectBaseURL);
  const isTrusted = host !== base.host && ctx.isTrustedOrigin(`${base.protocol}//${host}`);
  return isTrusted ? host : undefined;
}

/**
 * Sends a callback that arrives at the base host on to the host of its flow. False if it has to go
 * there and must not: the state was changed, or the host is not the tenant's any more.
 */
export async function sendToStartHost(
  ctx: HookEndpointContext,
  state: ReturnedState,
  { tenant }: Pick<NonNullable<TenantRoute["callback"]>, "tenant">,
): Promise<boolean> {
  const { tenantId, host } = state;
  const { redirectBaseURL } = tenantAuthOptions(ctx.context);
  const base = redirectBaseURL ? new URL(redirectBaseURL) : undefined;
  // At any other host it has arrived, so there is no loop.
  if (!host || !base || base.host !== hostOf(ctx)) return true;
  const { context, query = {}, params } = ctx;
  const origin = `${base.protocol}//${host}`;
  if (!(await isSignedFor(context, state, bindingOf(tenantId, host)))) return false;
  if ((await ownerOf(ctx, origin)) !== tenantId) {
    context.logger.error(`A sign-in was started at ${origin}, which is not of tenant ${tenantId}`);
    return false;
  }
  // What better-auth reads, and nothing else: tokens of the shared client stay here.
  const { code, ...rest } = callbackOAuth.options.query.safeParse(query).data ?? {};
  const sent = new URLSearchParams(rest);
  sent.set("state", prefixState(state.state, tenantId, state.signature, host));
  if (tenant !== undefined) sent.set("tenant", tenant);
  if (code !== undefined) sent.set(SEALED_CODE, await sealCode(context, state, textOf(code)));
  // "#" drops the fragment, which browsers take along otherwise: a user lured into the implicit flow
  // of the shared client would bring its tokens to the tenant's host.
  throw redirect(`${origin}${pathOf(context)}/tenant/callback/${params?.id}?${sent}#`);
}

/**
 * All tenants share the redirect URI, so a provider without PKCE would accept a code in the flow of
 * another tenant. A tenant that runs its own host must not get the codes of users who were lured into
 * its flows: encrypted with its state, a code is worth nothing elsewhere.
 */
async function sealCode(ctx: AuthContext, { state }: ReturnedState, code: string) {
  const key = await deriveKeys("code", ctx.secretConfig);
  return symmetricEncrypt({ key, data: JSON.stringify([state, code]) });
}

/** Puts the code back into a callback that came by the base host. False if it is of another flow. */
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
