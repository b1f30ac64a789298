import type { AuthContext, BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { TENANT_ROUTES } from "../constants";
import { takeStatePrefix } from "../oauth/state-prefix";
import { markTenantRoute } from "./endpoint";

type OnRequest = NonNullable<BetterAuthPlugin["onRequest"]>;

/**
 * R12: a request to a tenant route is rewritten to better-auth's own path, so that its middlewares
 * and hooks apply, once. better-auth has checked disabled paths and rate limits by then: the target's
 * are applied here and in `limitTenantRoutes`.
 */
export const rewriteTenantRoute = ((request: Request, ctx: AuthContext) =>
  request.url.includes("/tenant/") ? rewrite(request, ctx) : undefined) as unknown as OnRequest;

function rewrite(request: Request, ctx: AuthContext) {
  const url = new URL(request.url);
  const base = new URL(ctx.baseURL).pathname.replace(/\/$/, "");
  if (!url.pathname.startsWith(`${base}/tenant/`)) return undefined;
  const path = targetPath(url.pathname.slice(base.length), ctx.options);
  if (!path) return undefined;
  if (ctx.options.disabledPaths?.includes(path)) {
    return { response: new Response("Not Found", { status: 404 }) };
  }
  const isCallback = path.startsWith("/callback/");
  // A form post of a provider comes without our cookies: the endpoint turns it into a GET.
  if (request.method !== (isCallback ? "GET" : "POST")) return undefined;
  url.pathname = base + path;
  markTenantRoute(
    ctx,
    isCallback
      ? { path: "/tenant/callback/:id", callback: takeStatePrefix(url.searchParams) }
      : { path: `/tenant${path}` },
  );
  return { request: moved(request, url) };
}

/** The request under another URL. Following its signal costs more than everything else here. */
function moved(request: Request, url: URL): Request {
  // Cloudflare's requests have properties that only this keeps.
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

type CustomRules = NonNullable<BetterAuthOptions["rateLimit"]>["customRules"];

/** R12: the rule of a path counts for its tenant route. better-auth takes the first that matches. */
export function limitTenantRoutes(rules: CustomRules): CustomRules {
  const twins = Object.entries(rules ?? {}).flatMap(([path, rule]) => [
    [path, rule] as const,
    [`/tenant${path}`, rules?.[`/tenant${path}`] ?? rule] as const,
  ]);
  return rules && Object.fromEntries(twins);
}
