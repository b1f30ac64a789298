import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import type { BetterAuthOptions, BetterAuthPlugin, HookEndpointContext } from "better-auth";
import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { PLUGIN_ID } from "../constants";
import {
  type AfterHook,
  type BeforeHook,
  combineAfterHooks,
  combineBeforeHooks,
  type Hooks,
} from "../hooks";
import { rewriteTenantRoute, targetPath } from "../resolve/rewrite";

/**
 * Returns the plugins in the order in which their hooks run. Our hooks run first, to enter the
 * scope, and last, to see how others changed the response. better-auth runs the application's hooks
 * (`options.hooks`) before those of all plugins, so our first hooks are put in front of them there.
 * Plugins that pass cookies to a framework come after our last hooks. The plugin itself keeps its
 * place, because the order of schemas is the order of keys in responses.
 */
export function pluginsAtRunTime(
  options: BetterAuthOptions,
  schema: BetterAuthPluginDBSchema,
  { resolve, entered, beforeEndpoint, afterEndpoint, afterPlugins }: Hooks,
): BetterAuthPlugin[] {
  const { plugins = [], hooks: { before, after } = {} } = options;
  const ours = plugins.find(({ id }) => id === PLUGIN_ID);
  const ownLimits = ours?.rateLimit ?? [];
  const limit = limitAlike(plugins, ownLimits);
  const others = plugins.map((plugin) =>
    plugin === ours
      ? { id: PLUGIN_ID, schema, options: ours.options, endpoints: ours.endpoints ?? {} }
      : withChanges(plugin, plugin.rateLimit ? { rateLimit: plugin.rateLimit.map(limit) } : {}),
  );
  const isLast = ({ id }: BetterAuthPlugin) => PASSES_COOKIES.test(id);
  const isAdding = ({ id }: BetterAuthPlugin) => id === ADDS_PROVIDERS;
  const lastOnes = others.filter(isLast);
  const addProviders = beforeHooksOf(others.filter(isAdding)) as BeforeHook[];
  const first = [...resolve, ...addProviders, ...entered];
  options.hooks = {
    ...(before && { before: combineBeforeHooks([...first, runLast(before)]).handler }),
    ...(after && { after: combineAfterHooks(afterEndpoint, after as AfterHook["handler"]) }),
  } as BetterAuthOptions["hooks"];
  return [
    {
      id: `${PLUGIN_ID}-first`,
      // If the application has hooks, ours are in `options.hooks` already.
      hooks: {
        before: before ? [] : [combineBeforeHooks(first)],
        after: after ? [] : afterEndpoint,
      },
      onRequest: rewriteTenantRoute,
    },
    ...others
      .filter((plugin) => !isLast(plugin))
      .map((plugin) => (isAdding(plugin) ? withoutBeforeHooks(plugin) : plugin)),
    {
      id: `${PLUGIN_ID}-last`,
      hooks: {
        before: [...beforeHooksOf(lastOnes), ...beforeEndpoint],
        after: afterPlugins,
      },
      rateLimit: ownLimits.map(limit),
      onResponse: explainFailure as unknown as BetterAuthPlugin["onResponse"],
    },
    ...lastOnes.map(withoutBeforeHooks),
  ];
}

/**
 * The plugin with a before-hook that adds providers. Since 1.7.24, genericOAuth() adds a provider
 * there that did not respond at startup. Our hooks that give tenants their providers must run after
 * it.
 */
const ADDS_PROVIDERS = "generic-oauth";

/** Matches integrations that read the cookies of a response in a hook, and must be last. */
const PASSES_COOKIES = /-cookies(-|$)/;

/**
 * Adds a code to the empty 500 with which better-call responds to unexpected errors, such as an
 * unreachable database.
 *
 * Guarded by "what better-auth did not expect is an empty 500 without headers".
 */
function explainFailure(answer: Response): { response: Response } | undefined {
  const { status, statusText, body, headers } = answer;
  const isUnexpected = status === 500 && statusText === "Internal Server Error" && !body;
  if (!isUnexpected || [...headers].length > 0) return undefined;
  const failure = { code: "INTERNAL_SERVER_ERROR", message: statusText };
  return { response: Response.json(failure, { status, statusText }) };
}

type RunBefore = (ctx: HookEndpointContext) => Promise<unknown>;

/** Wraps the application's before-hook, so that it sees what earlier hooks changed in the call. */
const runLast = (handler: unknown): BeforeHook => ({
  matcher: () => true,
  handler: ((ctx: HookEndpointContext) => {
    const current = tryGetCurrentAuthEndpointContext() ?? ctx;
    return (handler as RunBefore)({ ...current, returnHeaders: true } as HookEndpointContext);
  }) as unknown as BeforeHook["handler"],
});

/**
 * Copies a plugin with changes. Keeps its prototype, because a plugin may be an instance of a
 * class.
 */
const withChanges = (plugin: BetterAuthPlugin, changes: Partial<BetterAuthPlugin>) =>
  Object.assign(Object.create(Object.getPrototypeOf(plugin)), plugin, changes) as BetterAuthPlugin;

const beforeHooksOf = (plugins: BetterAuthPlugin[]) =>
  plugins.flatMap(({ hooks }) => hooks?.before ?? []);

/** Copies a plugin without its before-hooks, which run elsewhere. */
const withoutBeforeHooks = (plugin: BetterAuthPlugin) =>
  withChanges(plugin, { hooks: { after: plugin.hooks?.after ?? [] } });

type Limit = NonNullable<BetterAuthPlugin["rateLimit"]>[number];

/**
 * R12: limits a tenant route like the endpoint to which it is rewritten, or by our rule if no
 * plugin limits that endpoint. A rule for the tenant route alone counts if it is stricter.
 */
function limitAlike(plugins: BetterAuthPlugin[], own: Limit[]) {
  const all = plugins.flatMap(({ rateLimit = [] }) => rateLimit);
  const rules = all.filter((rule) => !own.includes(rule));
  const ruleFor = (path: string, inner: string) => {
    const alike =
      rules.find((rule) => rule.pathMatcher(inner)) ?? own.find((rule) => rule.pathMatcher(path));
    const alone = rules.filter((rule) => rule.pathMatcher(path) && !rule.pathMatcher(inner));
    return alone.reduce(stricter, alike);
  };
  return (rule: Limit): Limit => ({
    ...rule,
    pathMatcher: (path) => {
      const inner = targetPath(path, {});
      return inner === undefined ? rule.pathMatcher(path) : ruleFor(path, inner) === rule;
    },
  });
}

/** Returns the limit that allows fewer requests in the same time. */
const stricter = (one: Limit | undefined, other: Limit) =>
  one && one.max * other.window <= other.max * one.window ? one : other;
