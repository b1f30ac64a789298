import type { BetterAuthOptions, BetterAuthPlugin, HookEndpointContext } from "better-auth";
import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { answeringInside } from "./border/answers";
import { PLUGIN_ID } from "./constants";
import type { BeforeHook, OwnHooks } from "./framework";
import { goOnAtEndpoint, innerPath } from "./naming/stand-ins";
import { cameTo } from "./scope/endpoint";

/**
 * The plugins in the order their hooks run in. Ours come first, so that every other hook runs
 * inside the scope, and last, so that what others do to an answer comes before the last word on
 * it. Only a plugin that hands cookies over to a framework comes after that. The application's own
 * hooks, which better-auth would run before all plugins', come behind our first. The plugin itself
 * stays where it is: the order of schemas is the order of keys in answers. `auth.options`, which
 * migrations and the CLI read, stays as it is.
 */
export function pluginsAtRunTime(
  { plugins = [], hooks }: BetterAuthOptions,
  schema: BetterAuthPluginDBSchema,
  { before, afterNaming, afterEndpoint, afterPlugins }: OwnHooks,
): BetterAuthPlugin[] {
  const ours = plugins.find(({ id }) => id === PLUGIN_ID);
  const always = (handler: BeforeHook["handler"] | undefined) =>
    handler ? [{ matcher: () => true, handler }] : [];
  const others = plugins.map((plugin) =>
    plugin === ours
      ? { id: PLUGIN_ID, schema, options: ours.options, endpoints: ours.endpoints ?? {} }
      : guardingStandIns(plugin),
  );
  const isLast = ({ id }: BetterAuthPlugin) => HANDS_COOKIES_OVER.test(id);
  return [
    {
      id: `${PLUGIN_ID}-first`,
      hooks: { before: [...before, ...afterNaming], after: afterEndpoint },
      onRequest: goOnAtEndpoint,
    },
    {
      id: "application-hooks",
      hooks: {
        before: always(hooks?.before).flatMap((hook) => beforeBoth(hook, true)),
        after: always(hooks?.after).flatMap((hook) => [hook, alsoWhereItCame(hook, true)]),
      },
    },
    ...others.filter((plugin) => !isLast(plugin)),
    {
      id: `${PLUGIN_ID}-last`,
      hooks: { after: afterPlugins },
      ...(ours?.rateLimit && { rateLimit: ours.rateLimit }),
      onResponse: lastLook,
    },
    ...others.filter(isLast),
  ];
}

/** Integrations that read the cookies of an answer in a hook, and have to stand last for that. */
const HANDS_COOKIES_OVER = /-cookies(-|$)/;

/**
 * better-auth answers what it did not expect (an unreachable database) without a word. XML may be
 * what a tenant's administrator has written, as the metadata of SAML, and a browser would run the
 * scripts in it where everybody else is signed in.
 */
async function lastLook(answer: Response): Promise<{ response: Response } | undefined> {
  const { status, body } = answer;
  if (status >= 500 && !body) {
    const failure = { code: "INTERNAL_SERVER_ERROR", message: "Internal Server Error" };
    return { response: Response.json(failure, { status, headers: answer.headers }) };
  }
  if (!answer.headers.get("content-type")?.includes("xml")) return undefined;
  const headers = new Headers(answer.headers);
  for (const [name, value] of Object.entries(WITHOUT_SCRIPTS)) headers.set(name, value);
  return { response: new Response(body, { status, headers }) };
}

const WITHOUT_SCRIPTS = {
  "content-security-policy": "default-src 'none'; sandbox",
  "content-disposition": "attachment",
  "x-content-type-options": "nosniff",
};

type Hooks = NonNullable<BetterAuthPlugin["hooks"]>;
type Hook = NonNullable<Hooks["before"]>[number] & NonNullable<Hooks["after"]>[number];

/**
 * A hook for the path that a request came to runs as well, besides those for the path that it goes
 * on under. One that is for both runs once; the application's own, which sees the path, for each.
 */
const alsoWhereItCame = (hook: Hook, runsForBoth = false): Hook => ({
  matcher: (ctx) => {
    const path = cameTo(ctx);
    if (path === undefined || (!runsForBoth && hook.matcher(ctx))) return false;
    return hook.matcher({ ...ctx, path });
  },
  handler: ((ctx: HookEndpointContext) =>
    hook.handler({ ...ctx, path: cameTo(ctx) } as never)) as Hook["handler"],
});

/** A hook before an endpoint, for both paths. What it answers itself is the answer. */
const beforeBoth = (hook: Hook, runsForBoth?: boolean): Hook[] =>
  [alsoWhereItCame(hook, runsForBoth), hook].map(answeringInside);

/** A plugin whose limits and hooks count for our endpoints as for those that they stand for. */
function guardingStandIns(plugin: BetterAuthPlugin): BetterAuthPlugin {
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
