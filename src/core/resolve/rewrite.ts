import type { AuthContext, BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { TENANT_ROUTES } from "../constants";
import { markTenantRoute } from "../endpoint";
import { isolationOf } from "../isolation";

type OnRequest = NonNullable<BetterAuthPlugin["onRequest"]>;

/**
 * R12: rewrites a request from a tenant route to better-auth's own path, so that its middlewares
 * and hooks run, and run once. better-auth has already checked disabled paths and rate limits for
 * the tenant route. Those of the target are applied here and in `limitTenantRoutes`.
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
  // A form post of a provider arrives without our cookies, so the endpoint redirects it to a GET.
  if (request.method !== (isCallback ? "GET" : "POST")) return undefined;
  url.pathname = base + path;
  markTenantRoute(
    ctx,
    isCallback
      ? { path: TENANT_CALLBACK, extracted: extractFrom(ctx, TENANT_CALLBACK, url.searchParams) }
      : { path: `/tenant${path}` },
  );
  return { request: moved(request, url) };
}

const TENANT_CALLBACK = "/tenant/callback/:id";

/** Lets an extension remove values from the query of a tenant route. Returns these values. */
function extractFrom(ctx: AuthContext, path: string, query: URLSearchParams) {
  const extension = isolationOf(ctx)?.extensions.find(
    ({ extractFromQuery }) => path in (extractFromQuery ?? {}),
  );
  return extension?.extractFromQuery?.[path]?.(query);
}

/**
 * Returns the request with another URL. Reads its signal only on demand: passing the signal on
 * costs more than everything else here.
 */
function moved(request: Request, url: URL): Request {
  // Only this form keeps the extra properties of Cloudflare's requests.
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

/**
 * R12: applies the rule of a path to its tenant route as well. better-auth takes the first rule
 * that matches.
 */
export function limitTenantRoutes(rules: CustomRules): CustomRules {
  const twins = Object.entries(rules ?? {}).flatMap(([path, rule]) => [
    [path, rule] as const,
    [`/tenant${path}`, rules?.[`/tenant${path}`] ?? rule] as const,
  ]);
  return rules && Object.fromEntries(twins);
}
