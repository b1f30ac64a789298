import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { TENANT_ROUTES } from "../constants";
import { takeStatePrefix } from "../oauth/state";
import { markTenantRoute, type TenantRoute } from "./endpoint";

type OnRequest = NonNullable<BetterAuthPlugin["onRequest"]>;

/**
 * R12: a request to one of our sign-in endpoints goes on under the path of the endpoint that it
 * stands for, before anybody else has looked at it. So it meets the same middlewares, request
 * hooks and endpoint hooks as there, once. What better-auth has looked at by then, the disabled
 * paths and the rate limits, is looked at here and in `limitStandIns`. Whoever comes to another
 * path waits for nothing.
 */
export const rewriteTenantRoute = ((request, ctx) =>
  request.url.includes("/tenant/") ? goOn(request, ctx) : undefined) as OnRequest;

const goOn: OnRequest = async (request, ctx) => {
  const url = new URL(request.url);
  const base = new URL(ctx.baseURL).pathname.replace(/\/$/, "");
  if (!url.pathname.startsWith(`${base}/tenant/`)) return;
  const path = targetPath(url.pathname.slice(base.length), ctx.options);
  if (!path) return;
  if (ctx.options.disabledPaths?.includes(path)) {
    return { response: new Response("Not Found", { status: 404 }) };
  }
  const isCallback = path.startsWith("/callback/");
  // A form post of a provider comes without our cookies: the endpoint turns it into a GET.
  if (request.method !== (isCallback ? "GET" : "POST")) return;
  url.pathname = base + path;
  const callback = isCallback ? { callback: takeStatePrefix(url.searchParams) } : {};
  const standIn: TenantRoute = { path: outerPath(path), ...callback };
  markTenantRoute(ctx, standIn);
  return { request: moved(request, url) };
};

/**
 * The request under another address. To follow the signal of the first one takes longer than all the
 * rest, and hardly anybody asks for it: the signal is that of the first one instead.
 */
function moved(request: Request, url: URL): Request {
  // Cloudflare's requests have more to them, which goes along this way only.
  if ("cf" in request) return new Request(url, request);
  const { method, headers, body, redirect } = request;
  const init = { method, headers, body, redirect, duplex: "half" };
  return Object.defineProperty(new Request(url, init), "signal", { get: () => request.signal });
}

export function targetPath(given: string, { advanced }: BetterAuthOptions): string | undefined {
  const path = advanced?.skipTrailingSlashes ? given.replace(/\/$/, "") : given;
  const [, id] = /^\/tenant\/callback\/([^/]+)$/.exec(path) ?? [];
  return id === undefined ? TENANT_ROUTES[path] : `/callback/${id}`;
}

const outerPath = (path: string) =>
  path.startsWith("/callback/") ? "/tenant/callback/:id" : `/tenant${path}`;

type CustomRules = NonNullable<BetterAuthOptions["rateLimit"]>["customRules"];

/**
 * R12: a limit of an endpoint counts for the one that stands for it, whose path is the same behind
 * "/tenant". Each rule stands beside its twin, because better-auth takes the first that matches.
 */
export function limitTenantRoutes(rules: CustomRules): CustomRules {
  const twins = Object.entries(rules ?? {}).flatMap(([path, rule]) => [
    [path, rule] as const,
    [`/tenant${path}`, rules?.[`/tenant${path}`] ?? rule] as const,
  ]);
  return rules && Object.fromEntries(twins);
}
