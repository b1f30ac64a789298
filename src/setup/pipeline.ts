import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { PLUGIN_ID } from "../constants";
import { type BeforeHook, type Hooks, inOrder } from "../framework";
import { rewriteTenantRoute, targetPath } from "../request/rewrite";

/**
 * The plugins in the order their hooks run in. Ours come first, so that every other hook runs
 * inside the scope, and last, so that what others do to an answer comes before the last word on
 * it. Only a plugin that hands cookies over to a framework comes after that, with its hooks for
 * answers. The application's own hooks, which better-auth would run before all plugins', come behind
 * our first. The plugin itself stays where it is: the order of schemas is the order of keys in
 * answers. `auth.options`, which migrations and the CLI read, stays as it is.
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
  const limit = limitStandInsAlike(plugins, ownLimits);
  const others = plugins.map((plugin) =>
    plugin === ours
      ? { id: PLUGIN_ID, schema, options: ours.options, endpoints: ours.endpoints ?? {} }
      : guardingStandIns(plugin, limit),
  );
  const isLast = ({ id }: BetterAuthPlugin) => HANDS_COOKIES_OVER.test(id);
  const lastOnes = others.filter(isLast);
  return [
    {
      id: `${PLUGIN_ID}-first`,
      hooks: { before: [inOrder([...resolve, ...entered])], after: afterEndpoint },
      onRequest: rewriteTenantRoute,
    },
    {
      id: "application-hooks",
      hooks: {
        before: runAlways(applicationHooks.before),
        after: runAlways(applicationHooks.after),
      },
    },
    ...others.filter((plugin) => !isLast(plugin)),
    {
      id: `${PLUGIN_ID}-last`,
      hooks: {
        before: [...lastOnes.flatMap((plugin) => plugin.hooks?.before ?? []), ...beforeEndpoint],
        after: afterPlugins,
      },
      rateLimit: ownLimits.map(limit),
      // Nobody waits for it.
      onResponse: explainFailure as unknown as BetterAuthPlugin["onResponse"],
    },
    ...lastOnes.map((plugin) =>
      withChanges(plugin, { hooks: { after: plugin.hooks?.after ?? [] } }),
    ),
  ];
}

/** Integrations that read the cookies of an answer in a hook, and have to stand last for that. */
const HANDS_COOKIES_OVER = /-cookies(-|$)/;

/**
 * better-call answers what it did not expect (an unreachable database) without a word, and without a
 * header. Any other empty answer is somebody's own, and so is what another plugin's `onResponse` has
 * made of it: better-auth asks no further then.
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

type PluginHooks = NonNullable<BetterAuthPlugin["hooks"]>;
type Hook = NonNullable<PluginHooks["before"]>[number] & NonNullable<PluginHooks["after"]>[number];

const runAlways = (handler: BeforeHook["handler"] | undefined) =>
  handler ? [{ matcher: () => true, handler: handler as Hook["handler"] }] : [];

/** A plugin may be an instance of a class. */
const withChanges = (plugin: BetterAuthPlugin, changes: Partial<BetterAuthPlugin>) =>
  Object.assign(Object.create(Object.getPrototypeOf(plugin)), plugin, changes) as BetterAuthPlugin;

/** A plugin whose limits and hooks count for our endpoints as for those that they stand for. */
function guardingStandIns(
  plugin: BetterAuthPlugin,
  limit: (rule: Limit) => Limit,
): BetterAuthPlugin {
  const limits = plugin.rateLimit?.map(limit);
  return limits ? withChanges(plugin, { rateLimit: limits }) : plugin;
}

type Limit = NonNullable<BetterAuthPlugin["rateLimit"]>[number];

/**
 * R12: one of our endpoints has the limit of the endpoint that it stands for, which is our own where
 * plugins leave that one to better-auth. Rules for its path alone count where they are stricter: a
 * looser one may be meant for everything but better-auth's sign-in.
 */
function limitStandInsAlike(plugins: BetterAuthPlugin[], own: Limit[]) {
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

/** The limit that lets fewer through in the same time. */
const stricter = (one: Limit | undefined, other: Limit) =>
  one && one.max * other.window <= other.max * one.window ? one : other;
