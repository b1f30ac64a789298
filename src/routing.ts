import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { dispatchAuthEndpoint } from "better-auth/api";
import { isOwnPath, SHARED_ROUTE } from "./constants";
import { type BeforeHook, silentHook, standIn } from "./framework";

/*
 * better-auth puts its router together anew for every request, from what the plugins list, and each
 * route takes time from every request to anything. So our endpoints share one route there, behind
 * which a hook finds them.
 */

type Endpoints = NonNullable<BetterAuthPlugin["endpoints"]>;
type Endpoint = Endpoints[string];

const notFound = () => new Response(null, { status: 404, statusText: "Not Found" });

const tenantRoute = standIn(
  SHARED_ROUTE,
  { method: ["GET", "POST"], cloneRequest: true },
  async () => ({ response: notFound() }),
);

/** What plugins of ours list, and what they would list without the shared route. */
const lists = new WeakMap<Endpoints, Endpoints>();

/** Lists that stay whole, for the sake of some instance: instances may share a plugin. */
const whole = new WeakSet<Endpoints>();

/** A plugin's endpoints, with a route each. */
export const endpointsOf = ({ endpoints = {} }: BetterAuthPlugin): Endpoints =>
  lists.get(endpoints) ?? endpoints;

/**
 * Shortens what our plugins list, in place. The hook that finds an endpoint has to come before all
 * others, which then run for that endpoint alone.
 *
 * Guarded by "better-auth reads what plugins list anew for every request, and auth.api at the start".
 */
export function shareRoute({ plugins = [] }: BetterAuthOptions): BeforeHook {
  const all: Endpoint[] = Object.values(Object.assign({}, ...plugins.map(endpointsOf)));
  const shared = all.filter(isShared);
  const isCrossed = all.some(({ path }) => !isOwnPath(path) && CROSSES.test(path));
  for (const plugin of plugins) {
    const { endpoints: list } = plugin;
    const own = { ...endpointsOf(plugin) };
    if (!list || !Object.isExtensible(list) || !Object.values(own).some(isShared)) continue;
    lists.set(list, own);
    if (isCrossed) whole.add(list);
    shorten(list, own, whole.has(list));
  }
  return {
    matcher: ({ path }) => path === SHARED_ROUTE,

    handler: silentHook(async (ctx) => {
      const path = `/tenant/${ctx.params?.path}`;
      const endpoint = shared.find((one) => one.path === path && hasMethod(one, ctx.method));
      return endpoint ? dispatchAuthEndpoint(endpoint, { ...ctx, params: {} }) : notFound();
    }),
  };
}

const isShared = ({ path, options }: Endpoint) =>
  isOwnPath(path) && !path.includes(":") && !options.metadata?.SERVER_ONLY;

/** A route with a pattern in it that the shared one could hide, or that could hide the shared one. */
const CROSSES = /^\/(tenant\/.*|[^/]*)[:*({]/;

const hasMethod = ({ options }: Endpoint, method: string | undefined) =>
  [options.method].flat().includes(method as never);

function shorten(list: Endpoints, all: Endpoints, isWhole: boolean): void {
  for (const [key, endpoint] of Object.entries(all)) {
    list[key] = isWhole || !isShared(endpoint) ? endpoint : withoutRoute(endpoint);
  }
  if (isWhole) delete list.tenantRoute;
  else list.tenantRoute = tenantRoute;
}

/** For calls of `auth.api`: better-auth has no route for what is for server code only. */
const withoutRoute = (endpoint: Endpoint) =>
  standIn(
    endpoint.path,
    { ...endpoint.options, metadata: { ...endpoint.options.metadata, SERVER_ONLY: true } },
    (ctx) => endpoint(ctx),
  );
