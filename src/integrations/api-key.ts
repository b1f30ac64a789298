import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { isolationOf, OF_KEY, type Row } from "../isolation/isolation";
import { isAccepted } from "../isolation/sessions";
import { refuseEarly } from "../policy/admission";
import type { Endpoint } from "../request/endpoint";
import { runInScope, type SessionRow, scopeOf } from "../request/scope";
import { refuse } from "../schema";

/** Where a configuration of @better-auth/api-key keeps its keys. */
type Place = "database" | "secondaryStorage" | "customStorage";

const placesOf = new WeakMap<BetterAuthPlugin, Set<Place>>();

const isApiKey = ({ id }: BetterAuthPlugin) => id === "api-key";

/** Looks where the keys of this application are kept. `assertKeysConfined` goes by it. */
export async function findKeyStorages(plugins: BetterAuthPlugin[] = []): Promise<void> {
  for (const plugin of plugins.filter(isApiKey)) placesOf.set(plugin, await findPlaces(plugin));
}

/**
 * The plugin shows nobody its configurations, and so its storages. But its list of keys asks all of
 * them, each in its turn: the context for its secondary storage, unless there is a custom one, and
 * then the database, or a storage by the id of the user. We stop it there, so nothing is read.
 *
 * Guarded by "R11: keys in %s".
 */
async function findPlaces({ endpoints }: BetterAuthPlugin): Promise<Set<Place>> {
  const places = new Set<Place>();
  let storage: Place = "customStorage";
  const stop = (place: Place): never => {
    places.add(place);
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
  const list = endpoints?.listApiKeys as ((input: object) => Promise<unknown>) | undefined;
  await list?.({ context }).catch(() => {});
  return places;
}

/**
 * R10: a storage of the plugin's own would be past the isolation. A key in there would be valid in
 * every tenant, and after the deletion of its own.
 */
export function assertKeysConfined(plugins: BetterAuthPlugin[]): void {
  for (const plugin of plugins.filter(isApiKey)) {
    const places = placesOf.get(plugin);
    if (!places) {
      refuse("api-key is brought by another plugin. Write it into the plugins of better-auth.");
    }
    if (places.size === 0) {
      refuse(
        "it cannot be seen where api-key keeps its keys. Leave its endpoint listApiKeys as it is, and use a version of @better-auth/api-key that tenantAuth() is tested with (1.7).",
      );
    }
    if (places.has("customStorage")) {
      refuse(
        "the customStorage of api-key cannot be confined: a key of one tenant would be valid in all others.",
        "Leave customStorage out, and give the storage to better-auth itself:",
        "  secondaryStorage: storage,",
        'Or keep the keys in the database, with storage: "database".',
      );
    }
  }
}

/** What would come of sharing keys between tenants, if anything. */
export function whyKeysAreScoped(
  { options: { plugins, advanced } }: AuthContext,
  plugin: BetterAuthPlugin,
): string | undefined {
  if (!isApiKey(plugin)) return undefined;
  // Each tenant has entries of its own there, so a copy in another one is nobody's to delete.
  if (placesOf.get(plugin)?.has("secondaryStorage")) {
    return "would be copied into the secondary storage of others, and be valid there after it is deleted";
  }
  const { generateId } = advanced?.database ?? {};
  const areNumbers = generateId === "serial" || generateId === false;
  // Deleting the keys of a tenant's users would delete those of somebody else's organizations.
  return areNumbers && plugins?.some(({ id }) => id === "organization")
    ? "could not be deleted with the tenant: a key of user 1 looks like one of organization 1"
    : undefined;
}

/**
 * The session that an API key stands for is made by its plugin, which knows nothing of tenants.
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
        const session: SessionRow = Object.assign(found.session, {
          tenantId: found.user.tenantId ?? null,
          [OF_KEY]: true,
        });
        const isolation = isolationOf(ctx.context);
        if (!session.tenantId) continue;
        if (isolation && (await isAccepted(isolation, session))) {
          const endpoint = { ...ctx, context: { ...ctx.context, session: found } } as Endpoint;
          const ask = async () => refuseEarly(endpoint);
          await runInScope(scopeOf(session.tenantId), ask);
          continue;
        }
        // `get-session` comes here without its tenant having been looked at.
        ctx.context.session = null;
        return {};
      }
      return answer;
    }) as typeof handler,
  }));
  return { ...plugin, hooks: { ...plugin.hooks, before } };
}

type KeySession = { session?: Row; user?: Row };
type KeyContext = { context?: { session?: KeySession } };
