import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext, BetterAuthOptions, GenericEndpointContext } from "better-auth";
import { type Border, vouchForUser } from "./border/border";
import { tenantError } from "./errors";
import { lazy } from "./framework";
import { settledScope } from "./scope/endpoint";
import { getTenantId, notes, type SessionRow } from "./scope/scope";
import { settle } from "./scope/settle";
import { recentlySeen } from "./tenants/find";

const deletion = lazy(() => import("./tenants/delete"));

/** What better-auth asks before and after it writes, also where nothing reaches the database. */
export function databaseHooks(
  border: Border,
  models: string[],
): BetterAuthOptions["databaseHooks"] {
  const { ctx } = border;
  return {
    user: {
      create: {
        after: async (user: { id: string }, endpoint: GenericEndpointContext | null) => {
          if (!settledScope()?.tenantId) return;
          if (!(await (await deletion()).undoIfTenantIsGone(ctx, user.id))) return;
          endpoint?.responseHeaders?.delete("set-cookie");
          throw tenantError("TENANT_NOT_FOUND");
        },
      },
    },
    verification: {
      create: {
        after: async () => {
          const { tenantId } = settledScope() ?? {};
          if (tenantId) (await deletion()).sweepUnlessThere(ctx, tenantId, models);
        },
      },
    },
    session: { create: sessionHooks(border) },
  } as BetterAuthOptions["databaseHooks"];
}

function sessionHooks(border: Border) {
  const { ctx } = border;
  return {
    // R8, also for a session that is kept in secondary storage only.
    before: async (session: { userId: string; token: string }) => {
      const scope = await settle(border.readSession);
      const adapter = await getCurrentAdapter(ctx.adapter);
      const tenantId = await vouchForUser(border, adapter, scope, session.userId);
      const error = await refusalAt(ctx, tenantId);
      if (error) throw error;
      // R14, where the row may never reach the adapter.
      const data = { ...session, tenantId };
      await border.policy.admitRow("session", { ...scope, tenantId }, data, adapter);
      notes().sessionTokens.set(session.token, { userId: session.userId, tenantId });
      return { data };
    },
    // Refused while the session was on its way: those that are there are being ended or deleted.
    after: async (session: SessionRow | null, endpoint: GenericEndpointContext | null) => {
      if (!session?.token) return;
      const refusal = await refusalAt(ctx, session.tenantId);
      const error = refusal ?? (await border.secondLook?.(session));
      if (!error) return;
      await ctx.internalAdapter.deleteSession(session.token);
      endpoint?.responseHeaders?.delete("set-cookie");
      throw error;
    },
  };
}

/** Why nobody gets a session at a tenant: it is suspended, or gone, perhaps with its number given again. */
async function refusalAt(ctx: AuthContext, tenantId: string | null | undefined) {
  if (!tenantId) return undefined;
  const tenant = await recentlySeen(ctx, tenantId);
  const { since } = tenantId === getTenantId() ? notes() : {};
  if (!tenant || tenant.since !== (since ?? tenant.since)) {
    return tenantError("TENANT_NOT_FOUND");
  }
  if (tenant.status === "active") return undefined;
  return tenantError("TENANT_SUSPENDED");
}
