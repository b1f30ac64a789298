import { normalizePathname } from "@better-auth/core/utils/url";
import { type AuthContext, isDynamicBaseURLConfig } from "better-auth";
import { isAPIError } from "better-auth/api";
import { type BeforeHook, plainHook } from "../../core/hooks";
import { isolationOf } from "../../core/isolation";
import type { ResolveTenantContext } from "../../core/options";
import { getTenantId, runAsResolver } from "../../core/request";
import { hostNameOf, isAtApplicationHost, verifiedHosts } from "../../core/resolve/resolvers";

/*
 * Makes better-auth work at verified domains. At hosts that are not in the static `allowedHosts`,
 * better-auth uses `fallback` as base URL, and refuses requests from pages of the host. So at a
 * verified domain, this file puts that domain into the base URL.
 */

/**
 * Sets the base URL before better-auth checks the origin. Refuses a host that the resolver does not
 * know, on every path.
 */
export async function prepareHost(request: Request, context: AuthContext) {
  const path = normalizePathname(request.url, new URL(context.baseURL).pathname);
  const asked = { context, request, headers: request.headers, path };
  try {
    if (isElsewhere(asked)) await runAtVerifiedHost(asked);
  } catch (error) {
    // Only an unknown host is refused here. The hook that enters the tenant calls the resolver
    // again, and better-auth handles other errors there.
    if (!isAPIError(error) || error.statusCode !== 404) return undefined;
    return { response: Response.json(error.body, { status: 404 }) };
  }
  return undefined;
}

/**
 * Sets the base URL for calls of `auth.api` with headers, if their host is a verified domain of the
 * current tenant.
 */
export const prepareCall: BeforeHook = {
  matcher: (ctx) => isElsewhere(ctx),
  handler: plainHook((ctx) => runAtVerifiedHost(ctx, getTenantId())),
};

/** Returns whether better-auth takes its base URL from the request, and does not know the host. */
const isElsewhere = (ctx: ResolveTenantContext) =>
  isDynamicBaseURLConfig(isolationOf(ctx.context)?.ctx.options.baseURL) &&
  !isAtApplicationHost(ctx);

/**
 * Puts a verified host name into the base URL. Keeps the port and protocol of `fallback`, because
 * callers could send others, which would get into the links of mails. The resolver must have found
 * the tenant by this domain: otherwise links of one tenant could lead to the domain of another.
 */
async function runAtVerifiedHost(ctx: ResolveTenantContext, here?: string | null): Promise<void> {
  const { context, request, headers } = ctx;
  const resolve = isolationOf(context)?.options.resolveTenantId;
  const name = hostNameOf(ctx);
  if (!resolve) return;
  const url = new URL(context.baseURL);
  if (url.hostname === name) return;
  // Asks about a host without a name as well (an IPv6 address), because the resolver refuses
  // unknown hosts.
  const tenantId = await runAsResolver(() => resolve(ctx));
  if (!name) return;
  const isVerified = tenantId && tenantId === verifiedHosts.get(request ?? headers ?? {});
  if (!isVerified || (here !== undefined && here !== tenantId)) return;
  url.hostname = name;
  context.baseURL = url.href.replace(/\/$/, "");
  context.options = { ...context.options, baseURL: url.origin };
  context.trustedOrigins = [...context.trustedOrigins, url.origin];
}
