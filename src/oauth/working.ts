import type { AuthContext } from "better-auth";
import { tenantProvider } from "./choose";
import { byId } from "./providers";
import { listOAuthConfigs, oldestFirst } from "./store";

/** The providers that a sign-in at the tenant would find: its own, else the global one. */
export async function workingProviders(ctx: AuthContext, tenantId: string, trustedHosts: string[]) {
  const rows = (await listOAuthConfigs(ctx, tenantId)).filter(({ enabled }) => enabled);
  const own = new Map(rows.toSorted(oldestFirst).map((row) => [row.providerId, row]));
  const globals = byId(ctx.socialProviders);
  const ids = [...new Set([...globals.keys(), ...own.keys()])];
  // A config that cannot be used is not offered, and the global one does not stand in for it.
  const built = await Promise.all(
    ids.map((id) =>
      tenantProvider(ctx, own.get(id), globals.get(id), trustedHosts).catch(() => undefined),
    ),
  );
  return built.flatMap((found) =>
    found ? [{ id: found.provider.id, name: found.provider.name }] : [],
  );
}
