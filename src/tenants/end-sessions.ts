import type { AuthContext } from "better-auth";
import { runInScope, settled } from "../scope/scope";
import { ALL } from "./find";

/** Ends every session of a tenant, where it is kept. A cookie that caches one is good until it expires. */
export async function endSessions(ctx: AuthContext, tenantId: string): Promise<void> {
  await runInScope(settled(tenantId), async () => {
    const { adapter, internalAdapter, options, tables } = ctx;
    if (tables.session) await adapter.deleteMany({ model: "session", where: [] });
    if (!options.secondaryStorage) return;
    const users = await adapter.findMany<{ id: string }>({
      model: "user",
      select: ["id"],
      limit: ALL,
    });
    for (const { id } of users) await internalAdapter.deleteUserSessions(id);
  });
}
