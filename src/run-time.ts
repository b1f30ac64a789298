import type { BetterAuthOptions, BetterAuthPlugin, HookEndpointContext } from "better-auth";
import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { answeringInside } from "./border/answers";
import { PLUGIN_ID } from "./constants";
import {
  type BeforeHook,
  defineLate,
  givenOf,
  NOTHING,
  type OwnHooks,
  oncePerObject,
  readThrough,
  silentHook,
  withChanges,
} from "./framework";
import { goOnAtEndpoint, innerPath } from "./naming/stand-ins";
import { cameTo } from "./scope/endpoint";

/**
 * The plugins in the order their hooks run in. Ours come first, so that every other hook runs
 * inside the scope, and last, so that what others do to an answer comes before the last word on
 * it. Only a plugin that hands cookies over to a framework comes after that, with its hooks for
 * answers. The application's own hooks, which better-auth would run before all plugins', come behind
 * our first. The plugin itself stays where it is: the order of schemas is the order of keys in
 * answers. `auth.options`, which migrations and the CLI read, stays as it is.
 */
export function pluginsAtRunTime(
  plugins: BetterAuthPlugin[],
  applicationHooks: () => ApplicationHooks[],
  schema: BetterAuthPluginDBSchema,
  { before, afterNaming, beforeEndpoint, afterEndpoint, afterPlugins }: OwnHooks,
): BetterAuthPlugin[] {
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
      hooks: { before: [...before, ...afterNaming].map(saidAgain), after: afterEndpoint },
      onRequest: goOnAtEndpoint,
    },
    {
      id: "application-hooks",
      get hooks() {
        const all = applicationHooks();
        if (!all.some(({ before, after }) => before || after)) return undefined;
        const before = all.flatMap((hooks) => runAlways(hooks.before));
        const after = all.flatMap((hooks) => runAlways(hooks.after));
        return ofApplication({ before, after });
      },
    },
    ...others.filter((plugin) => !isLast(plugin)),
    {
      id: `${PLUGIN_ID}-last`,
      hooks: {
        before: [
          ...lastOnes.flatMap((plugin) => plugin.hooks?.before ?? []),
          ...beforeEndpoint,
          sayAgain,
        ],
        after: afterPlugins,
      },
      rateLimit: ownLimits.map(limit),
      // Nobody waits for it.
      onResponse: explainFailure as unknown as BetterAuthPlugin["onResponse"],
    },
    ...lastOnes.map((plugin) =>
      changedPlugin(plugin, { hooks: () => ({ after: plugin.hooks?.after ?? [] }) }),
    ),
  ];
}

type ApplicationHooks = NonNullable<BetterAuthOptions["hooks"]>;

/**
 * The application's own hooks, which better-auth would run before all plugins', and does not see any
 * more; and those that are written to its options at run time. They come on top: whoever writes them
 * has not seen the others, and none of these may be a guard that is gone.
 */
export function takeHooks(options: BetterAuthOptions): () => ApplicationHooks[] {
  const { hooks: given = {} } = options;
  const none = { before: () => undefined, after: () => undefined };
  const shown = oncePerObject((hooks: ApplicationHooks) => readThrough(hooks, none));
  let written: ApplicationHooks = {};
  defineLate(
    options,
    "hooks",
    () => shown(written),
    (next) => {
      written = givenOf(next as ApplicationHooks | undefined) ?? {};
    },
  );
  return () => [given, written];
}

/** What our hooks have handed back, by the context of the call. */
const handedBack = new WeakMap<object, object>();

const remember = (context: object, changes: object) =>
  handedBack.set(context, { ...handedBack.get(context), ...changes });

/**
 * better-auth goes on with what hooks hand back, and of two the later one counts. Many hand back the
 * whole call as they were given it, and that is without what ours have changed. So ours say it
 * again, behind all others; and a hook for the path that a request came to does not hand that back.
 *
 * Guarded by "of what two hooks hand back the later counts, and neither sees the other's".
 */
const saidAgain = (hook: BeforeHook): BeforeHook => ({
  matcher: (ctx) => hook.matcher(ctx),
  handler: ((ctx: HookEndpointContext) => {
    const running = hook.handler(ctx as never) as Promise<HookAnswer>;
    if (running === NOTHING) return running;
    return running.then((answer) => {
      const changes = answer?.response?.context;
      if (changes) remember(ctx.context, changes);
      return answer;
    });
  }) as unknown as BeforeHook["handler"],
});

type HookAnswer = { response?: { context?: object } } | undefined;

const sayAgain: BeforeHook = {
  matcher: ({ context }) => handedBack.has(context),
  handler: silentHook(async ({ context }) => ({ context: handedBack.get(context) })),
};

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

type Hooks = NonNullable<BetterAuthPlugin["hooks"]>;
type Hook = NonNullable<Hooks["before"]>[number] & NonNullable<Hooks["after"]>[number];

/**
 * A hook for the path that a request came to runs as well, besides those for the path that it goes
 * on under. One that is for both runs once; the application's own, which sees the path, for each.
 */
const alsoWhereItCame = (hook: Hook, runsForBoth: boolean): Hook => ({
  matcher: (ctx) => {
    const path = cameTo(ctx);
    if (path === undefined || (!runsForBoth && hook.matcher(ctx))) return false;
    return hook.matcher({ ...ctx, path });
  },
  handler: ((ctx: HookEndpointContext) => {
    remember(ctx.context, { path: ctx.path });
    return hook.handler({ ...ctx, path: cameTo(ctx) } as never);
  }) as Hook["handler"],
});

/**
 * Hooks for both paths, as they are at the moment: better-auth asks for them at every endpoint. What
 * one before an endpoint answers itself is the answer.
 */
function forBothPaths(runsForBoth: boolean) {
  const here = (hook: Hook) => alsoWhereItCame(hook, runsForBoth);
  const both = oncePerObject((hook: Hook) => [here(hook), hook].map(answeringInside));
  const bothAfter = oncePerObject((hook: Hook) => [hook, here(hook)]);
  return (hooks: Hooks | null | undefined): Hooks => ({
    before: (hooks?.before ?? []).flatMap((hook) => both(hook as Hook)),
    after: (hooks?.after ?? []).flatMap((hook) => bothAfter(hook as Hook)),
  });
}

const ofPlugins = forBothPaths(false);
const ofApplication = forBothPaths(true);
const always = oncePerObject(
  (handler: Hook["handler"]): Hook => ({ matcher: () => true, handler }),
);

const runAlways = (handler: BeforeHook["handler"] | null | undefined) =>
  handler ? [always(handler as Hook["handler"])] : [];

/** Most are plain objects, and are read for each request. An instance of a class has its methods there. */
function changedPlugin(plugin: BetterAuthPlugin, shown: Shown): BetterAuthPlugin {
  if (Object.getPrototypeOf(plugin) === Object.prototype) return readThrough(plugin, shown);
  return withChanges(plugin, readThrough({}, shown));
}

type Shown = { hooks?: () => Hooks; rateLimit?: () => Limit[] };

/** A plugin whose limits and hooks count for our endpoints as for those that they stand for. */
function guardingStandIns(
  plugin: BetterAuthPlugin,
  limit: (rule: Limit) => Limit,
): BetterAuthPlugin {
  const { hooks, rateLimit } = plugin;
  if (!hooks && !rateLimit) return plugin;
  const limits = rateLimit?.map(limit);
  return changedPlugin(plugin, {
    ...(limits && { rateLimit: () => limits }),
    ...(hooks && { hooks: () => ofPlugins(plugin.hooks) }),
  });
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
      const inner = innerPath(path, {});
      return inner === undefined ? rule.pathMatcher(path) : ruleFor(path, inner) === rule;
    },
  });
}

/** The limit that lets fewer through in the same time. */
const stricter = (one: Limit | undefined, other: Limit) =>
  one && one.max * other.window <= other.max * one.window ? one : other;
