import type { BetterAuthPlugin } from "better-auth";
import type { Row } from "./border";

/**
 * The session that an API key stands for is made by its plugin, which knows nothing of tenants.
 *
 * Guarded by "a session by API key carries the tenant of its user".
 */
export function withTenants(plugin: BetterAuthPlugin): BetterAuthPlugin {
  if (!plugin.hooks?.before) return plugin;
  const before = plugin.hooks.before.map(({ matcher, handler }) => ({
    matcher,
    handler: (async (ctx: Parameters<typeof handler>[0]) => {
      const answer = (await handler(ctx)) as { response?: KeySession & { context?: KeyContext } };
      const made = [answer?.response, answer?.response?.context?.context?.session];
      for (const found of made) {
        if (found?.session && found.user) found.session.tenantId = found.user.tenantId ?? null;
      }
      return answer;
    }) as typeof handler,
  }));
  return { ...plugin, hooks: { ...plugin.hooks, before } };
}

type KeySession = { session?: Row; user?: Row };
type KeyContext = { context?: { session?: KeySession } };
