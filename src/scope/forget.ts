import type { AuthContext } from "better-auth";
import { deletedKey } from "./storage";

/** From now on nobody gets a session in a tenant that is gone. */
export async function refuseSessions(ctx: AuthContext, tenantId: string) {
  await ctx.options.secondaryStorage?.set(deletedKey(tenantId), "1", ctx.sessionConfig.expiresIn);
}

/** Ends the sessions of users of a deleted tenant. Runs inside its scope. */
export async function forgetSessions(ctx: AuthContext, userIds: string[]) {
  const storage = ctx.options.secondaryStorage;
  if (!storage) return;
  for (const userId of userIds) {
    const listKey = `active-sessions-${userId}`;
    const list = await storage.get(listKey);
    const sessions = (typeof list === "string" ? JSON.parse(list) : list) as { token: string }[];
    for (const { token } of sessions ?? []) await storage.delete(token);
    await storage.delete(listKey);
  }
}
