import { normalizePathname } from "@better-auth/core/utils/url";
import { type AuthContext, isDynamicBaseURLConfig } from "better-auth";
import { isAPIError } from "better-auth/api";
import { type BeforeHook, silentHook } from "../framework";
import { isolationOf } from "../isolation/isolation";
import type { ResolveTenantContext } from "../options";
import { hostNameOf, isAtApplicationHost, verifiedHosts } from "../request/resolvers";
import { getTenantId, runAsResolver } from "../request/scope";

/*
 * better-auth's `allowedHosts` are a static list. At every other host it runs with `fallback` as base
 * URL, and refuses requests of the pages there. At a verified domain it has to run with that domain.
 */

/** Runs before better-auth checks the origin. An unknown host is refused, whatever the endpoint. */
export async function prepareHost(request: Request, context: AuthContext) {
  const path = normalizePathname(request.url, new URL(context.baseURL).pathname);
  const asked = { context, request, headers: request.headers, path };
  try {
    if (isElsewhere(asked)) await runAtVerifiedHost(asked);
  } catch (error) {
    // Other errors come again in the hook that asks the resolver, where better-auth handles them.
    if (!isAPIError(error) || error.statusCode !== 404) return undefined;
    return { response: Response.json(error.body, { status: 404 }) };
  }
  return undefined;
}

/** The same for calls of `auth.api` with the headers of a request, in the tenant of their host. */
export const prepareCall: BeforeHook = {
  matcher: (ctx) => isElsewhere(ctx),
  handler: silentHook((ctx) => runAtVerifiedHost(ctx, getTenantId())),
};

/** Whether better-auth takes its base URL from the request, and does not know this host. */
const isElsewhere = (ctx: ResolveTenantContext) =>
  isDynamicBaseURLConfig(isolationOf(ctx.context)?.ctx.options.baseURL) &&
  !isAtApplicationHost(ctx);

/**
 * The base URL is `fallback` with another host name: neither the port nor the protocol in the headers
 * of a caller gets into the links of a mail. Only if the resolver goes by verified domains: otherwise
 * the links of one tenant could lead to the domain of another.
 */
async function runAtVerifiedHost(ctx: ResolveTenantContext, here?: string | null): Promise<void> {
  const { context, request, headers } = ctx;
  const resolve = isolationOf(context)?.options.resolveTenantId;
  const name = hostNameOf(ctx);
  if (!resolve || !name) return;
  const url = new URL(context.baseURL);
  if (url.hostname === name) return;
  const tenantId = await runAsResolver(() => resolve(ctx));
  const isVerified = tenantId && tenantId === verifiedHosts.get(request ?? headers ?? {});
  if (!isVerified || (here !== undefined && here !== tenantId)) return;
  url.hostname = name;
  context.baseURL = url.href.replace(/\/$/, "");
  context.options = { ...context.options, baseURL: url.origin };
  context.trustedOrigins = [...context.trustedOrigins, url.origin];
}
