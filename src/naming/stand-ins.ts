import type { BetterAuthOptions, BetterAuthPlugin, HookEndpointContext } from "better-auth";
import { answeringInside } from "../border/answers";
import { STANDS_FOR } from "../constants";
import { lazy } from "../framework";
import { apart, cameTo, isAskedByAnother, markStandIn, type StandIn } from "../scope/endpoint";

/** Loaded with the first social sign-in. */
export const oauthState = lazy(() => import("./oauth-state"));

type OnRequest = NonNullable<BetterAuthPlugin["onRequest"]>;

/**
 * R12: a request to one of our sign-in endpoints goes on under the path of the endpoint that it
 * stands for, before anybody else has looked at it. So it meets the same middlewares, request
 * hooks and endpoint hooks as there, once. What better-auth has looked at by then, the disabled
 * paths and the rate limits, is looked at here and in `limitStandIns`.
 */
export const goOnAtEndpoint: OnRequest = async (request, ctx) => {
  if (isAskedByAnother(ctx)) return { response: await (await apart()).answerApart(request, ctx) };
  const url = request.url.includes("/tenant/") ? new URL(request.url) : undefined;
  const base = url && new URL(ctx.baseURL).pathname.replace(/\/$/, "");
  if (!url?.pathname.startsWith(`${base}/tenant/`) || base === undefined) return;
  const path = innerPath(url.pathname.slice(base.length), ctx.options);
  if (!path) return;
  if (ctx.options.disabledPaths?.includes(path)) {
    return { response: new Response("Not Found", { status: 404 }) };
  }
  const isCallback = path.startsWith("/callback/");
  // A form post of a provider comes without our cookies: the endpoint turns it into a GET.
  if (request.method !== (isCallback ? "GET" : "POST")) return;
  url.pathname = base + path;
  const callback = isCallback ? { callback: (await oauthState()).takeLabel(url.searchParams) } : {};
  const standIn: StandIn = { path: outerPath(path), ...callback };
  markStandIn(ctx, standIn);
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

function innerPath(given: string, { advanced }: BetterAuthOptions): string | undefined {
  const path = advanced?.skipTrailingSlashes ? given.replace(/\/$/, "") : given;
  const [, id] = /^\/tenant\/callback\/([^/]+)$/.exec(path) ?? [];
  return id === undefined ? STANDS_FOR[path] : `/callback/${id}`;
}

const outerPath = (path: string) =>
  path.startsWith("/callback/") ? "/tenant/callback/:id" : `/tenant${path}`;

type Hooks = NonNullable<BetterAuthPlugin["hooks"]>;
type Hook = NonNullable<Hooks["before"]>[number] & NonNullable<Hooks["after"]>[number];

/**
 * A hook for the path that a request came to runs as well, besides those for the path that it goes
 * on under. One that is for both runs once; the application's own, which sees the path, for each.
 */
export const alsoWhereItCame = (hook: Hook, runsForBoth = false): Hook => ({
  matcher: (ctx) => {
    const path = cameTo(ctx);
    if (path === undefined || (!runsForBoth && hook.matcher(ctx))) return false;
    return hook.matcher({ ...ctx, path });
  },
  handler: ((ctx: HookEndpointContext) =>
    hook.handler({ ...ctx, path: cameTo(ctx) } as never)) as Hook["handler"],
});

/** A hook before an endpoint, for both paths. What it answers itself is the answer. */
export const beforeBoth = (hook: Hook, runsForBoth?: boolean): Hook[] =>
  [alsoWhereItCame(hook, runsForBoth), hook].map(answeringInside);

type CustomRules = NonNullable<BetterAuthOptions["rateLimit"]>["customRules"];

/**
 * R12: a limit of an endpoint counts for the one that stands for it, whose path is the same behind
 * "/tenant". Each rule stands beside its twin, because better-auth takes the first that matches.
 */
export function limitStandIns(rules: CustomRules): CustomRules {
  const twins = Object.entries(rules ?? {}).flatMap(([path, rule]) => [
    [path, rule] as const,
    [`/tenant${path}`, rules?.[`/tenant${path}`] ?? rule] as const,
  ]);
  return rules && Object.fromEntries(twins);
}

/** A plugin whose limits and hooks count for our endpoints as for those that they stand for. */
export function guardingStandIns(plugin: BetterAuthPlugin): BetterAuthPlugin {
  const { hooks, rateLimit } = plugin;
  if (!hooks && !rateLimit) return plugin;
  const { before, after } = hooks ?? {};
  return {
    ...plugin,
    ...(rateLimit && { rateLimit: limitLikeEndpoint(rateLimit) }),
    ...(hooks && {
      hooks: {
        ...(before && { before: before.flatMap((hook) => beforeBoth(hook as Hook)) }),
        ...(after && { after: after.flatMap((hook) => [hook, alsoWhereItCame(hook as Hook)]) }),
      },
    }),
  };
}

function limitLikeEndpoint(rules: NonNullable<BetterAuthPlugin["rateLimit"]>) {
  return rules.map((rule) => ({
    ...rule,
    pathMatcher: (path: string) =>
      rule.pathMatcher(path) || rule.pathMatcher(innerPath(path, {}) ?? path),
  }));
}
