import type { AuthContext, BetterAuthPlugin } from "better-auth";
import type { Row } from "../../core/database";
import { passesTenantAndExtensions } from "../../core/isolate/sessions";
import { isolationOf } from "../../core/isolation";
import { type Endpoint, runInScope, scopeOf } from "../../core/request";
import { refuse } from "../../core/schema";
import { OF_KEY, type SessionRow } from "../../core/session";
import { refuseEarly } from "../policy/admission";
import { policyOptions } from "../policy/options";

/** Where a configuration of @better-auth/api-key stores its keys. */
type KeyStorage = "database" | "secondaryStorage" | "customStorage";

const storagesOf = new WeakMap<BetterAuthPlugin, Set<KeyStorage>>();

const isApiKey = ({ id }: BetterAuthPlugin) => id === "api-key";

/**
 * Finds out where api-key stores keys. That plugin does not expose its options, so this calls its
 * endpoint `listApiKeys` with a fake context. For each configuration, the endpoint first reads
 * `secondaryStorage` of the context, unless the configuration has a custom storage. Then it reads
 * the database or the user's id. The fake context throws there, so no key is read.
 *
 * Guarded by "R11: keys in %s are confined".
 */
export async function findKeyStorages(plugins: BetterAuthPlugin[] = []): Promise<void> {
  for (const plugin of plugins.filter(isApiKey)) {
    const storages = new Set<KeyStorage>();
    let storage: KeyStorage = "customStorage";
    const stop = (found: KeyStorage): never => {
      storages.add(found);
      storage = "customStorage";
      throw new Error("stopped");
    };
    const context = {
      session: { session: {}, user: { id: { toString: () => stop(storage) } } },
      get secondaryStorage() {
        storage = "secondaryStorage";
        return {};
      },
      get adapter() {
        return stop("database");
      },
    };
    const list = plugin.endpoints?.listApiKeys as ((input: object) => Promise<unknown>) | undefined;
    await list?.({ context }).catch(() => {});
    storagesOf.set(plugin, storages);
  }
}

/** R10: refuses a storage that isolation does not see. Its keys would be valid in all tenants. */
export function assertKeysIsolated(plugins: BetterAuthPlugin[]): void {
  for (const plugin of plugins.filter(isApiKey)) {
    const storages = storagesOf.get(plugin) ?? new Set();
    if (storages.size === 0) {
      refuse(
        "it cannot be seen where api-key keeps its keys. Leave its endpoint listApiKeys as it is, and use a version of @better-auth/api-key that tenantAuth() is tested with (1.7).",
      );
    }
    if (storages.has("customStorage")) {
      refuse(
        "the customStorage of api-key cannot be isolated: a key of one tenant would be valid in all others.",
        "Leave customStorage out, and give the storage to better-auth itself:",
        "  secondaryStorage: storage,",
        'Or keep the keys in the database, with storage: "database".',
      );
    }
  }
}

/** Returns why tenants cannot share keys in this setup, or undefined if they can. */
export function whyKeysAreScoped(
  { options: { plugins, advanced } }: AuthContext,
  plugin: BetterAuthPlugin,
): string | undefined {
  if (!isApiKey(plugin)) return undefined;
  // Each tenant has its own entries in secondary storage, so deleting a key misses its copies in
  // other tenants.
  if (storagesOf.get(plugin)?.has("secondaryStorage")) {
    return "would be copied into the secondary storage of others, and be valid there after it is deleted";
  }
  const { generateId } = advanced?.database ?? {};
  const areNumbers = generateId === "serial" || generateId === false;
  return areNumbers && plugins?.some(({ id }) => id === "organization")
    ? "could not be deleted with the tenant: a key of user 1 looks like one of organization 1"
    : undefined;
}

type KeySession = { session?: Row; user?: Row };
type KeyContext = { context?: { session?: KeySession } };

/**
 * Adds the tenant to the session that api-key creates for a key. Ignores or refuses a key whose
 * session the tenant or its policy does not accept.
 *
 * Guarded by "a session by API key carries the tenant of its user".
 */
export function sessionsOfKeys(plugin: BetterAuthPlugin): BetterAuthPlugin {
  if (!isApiKey(plugin) || !plugin.hooks?.before) return plugin;
  const before = plugin.hooks.before.map(({ matcher, handler }) => ({
    matcher,
    handler: (async (ctx: Parameters<typeof handler>[0] & Pick<Endpoint, "context">) => {
      const answer = (await handler(ctx)) as { response?: KeySession & { context?: KeyContext } };
      const made = [answer?.response, answer?.response?.context?.context?.session];
      for (const found of made) {
        if (!found?.session || !found.user) continue;
        const tenantId = found.user.tenantId ?? null;
        const session: SessionRow = Object.assign(found.session, { tenantId, [OF_KEY]: true });
        const isolation = isolationOf(ctx.context);
        if (!tenantId && !(isolation && policyOptions(isolation.ctx).platformPolicy)) continue;
        if (
          !isolation ||
          (tenantId && !(await passesTenantAndExtensions(isolation, session, {})))
        ) {
          // Ignores the key. Its tenant may be suspended: at `get-session`, this hook runs before
          // the tenant is checked.
          ctx.context.session = null;
          return {};
        }
        const endpoint = { ...ctx, context: { ...ctx.context, session: found } } as Endpoint;
        await runInScope(scopeOf(tenantId), () => refuseEarly(endpoint));
      }
      return answer;
    }) as typeof handler,
  }));
  return { ...plugin, hooks: { ...plugin.hooks, before } };
}
