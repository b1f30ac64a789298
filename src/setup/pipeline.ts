import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { PLUGIN_ID } from "../constants";
import { type BeforeHook, type Hooks, inOrder } from "../framework";
import { rewriteTenantRoute, targetPath } from "../request/rewrite";

/**
 * The plugins in the order their hooks run. Ours run first, so that every other hook runs inside the
 * scope, and last, so that they see what others did to the response. The application's own hooks,
 * which better-auth would run before all plugins', come after our first; plugins that pass cookies to
 * a framework come after our last. The plugin itself keeps its place, because the order of schemas is
 * the order of keys in responses.
 */
export function pluginsAtRunTime(
  options: BetterAuthOptions,
  schema: BetterAuthPluginDBSchema,
  { resolve, entered, beforeEndpoint, afterEndpoint, afterPlugins }: Hooks,
): BetterAuthPlugin[] {
  const { plugins = [], hooks: applicationHooks = {} } = options;
  // better-auth would run them before those of all plugins.
  options.hooks = {};
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
  return [
    {
      id: `${PLUGIN_ID}-first`,
      hooks: { before: [inOrder([...resolve, ...addProviders, ...entered])], after: afterEndpoint },
      onRequest: rewriteTenantRoute,
    },
    {
      id: "application-hooks",
      hooks: {
        before: runAlways(applicationHooks.before),
        after: runAlways(applicationHooks.after),
      },
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
 * Since 1.7.24, a hook of genericOAuth() adds a provider that did not answer at startup. It has to do
 * so before tenants are given theirs.
 */
const ADDS_PROVIDERS = "generic-oauth";

/** Integrations that read the cookies of a response in a hook, and have to be last. */
const PASSES_COOKIES = /-cookies(-|$)/;

/**
 * better-call responds to unexpected errors (an unreachable database) with an empty 500. This gives
 * the response a code.
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

const runAlways = (handler: BeforeHook["handler"] | undefined) =>
  handler ? [{ matcher: () => true, handler: handler as never }] : [];

/** A plugin may be an instance of a class. */
const withChanges = (plugin: BetterAuthPlugin, changes: Partial<BetterAuthPlugin>) =>
  Object.assign(Object.create(Object.getPrototypeOf(plugin)), plugin, changes) as BetterAuthPlugin;

const beforeHooksOf = (plugins: BetterAuthPlugin[]) =>
  plugins.flatMap(({ hooks }) => hooks?.before ?? []);

/** What is left of a plugin whose before-hooks run elsewhere. */
const withoutBeforeHooks = (plugin: BetterAuthPlugin) =>
  withChanges(plugin, { hooks: { after: plugin.hooks?.after ?? [] } });

type Limit = NonNullable<BetterAuthPlugin["rateLimit"]>[number];

/**
 * R12: a tenant route has the limit of the endpoint that it is rewritten to, or ours if no plugin
 * limits that one. Rules for the tenant route alone count if they are stricter.
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

/** The limit that allows fewer requests in the same time. */
const stricter = (one: Limit | undefined, other: Limit) =>
  one && one.max * other.window <= other.max * one.window ? one : other;
