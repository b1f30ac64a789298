import { queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { TenantPolicy } from "../policy/schema";
import type { Tenant } from "./cache";

/**
 * Who has done something: somebody with a session, or `"server"` for the application's own code.
 * `userId` is null for callers without a session whom `canManageTenants` has let through.
 */
export type TenantActor = "server" | { userId: string | null; tenantId: string | null };

/** What has happened to a tenant. Everything in it may be stored: there is never a secret in it. */
export type TenantEvent = {
  tenantId: string;
  /** Who has done it. `tenantId` in it is where that user belongs: null is the platform. */
  actor: TenantActor;
  at: Date;
} & TenantChange;

/** What differs from event to event. */
export type TenantChange =
  | { type: "tenant:created"; tenant: Tenant }
  /** `changed` names what was changed; status and policy have events of their own. */
  | { type: "tenant:updated"; tenant: Tenant; changed: ("name" | "slug" | "metadata")[] }
  | { type: "tenant:suspended"; tenant: Tenant }
  | { type: "tenant:resumed"; tenant: Tenant }
  | { type: "tenant:deletion-scheduled"; tenant: Tenant; deleteAt: Date }
  | { type: "tenant:restored"; tenant: Tenant }
  /** `rows` has the number of deleted rows of each model. */
  | { type: "tenant:deleted"; rows: Record<string, number> }
  | { type: "policy:changed"; before: TenantPolicy | null; after: TenantPolicy | null }
  | { type: "oauth-config:registered"; providerId: string }
  /** `changed` names the fields that were given. */
  | { type: "oauth-config:changed"; providerId: string; changed: string[] }
  | { type: "oauth-config:deleted"; providerId: string }
  | {
      type: "invitation:created" | "invitation:resent" | "invitation:revoked";
      invitation: TenantInvitation;
    }
  /**
   * `userId` in it is who has become a user by it; that is the actor as well. `replacedUserId` is the
   * user who had the address before, and never verified it.
   */
  | { type: "invitation:accepted"; invitation: TenantInvitation; replacedUserId?: string };

/** Called after the commit with what has happened to a tenant. */
export type TenantEventHandler = (event: TenantEvent) => void | Promise<void>;

/**
 * Tells the application, once the transaction around this call is committed. A handler that throws
 * is logged, and breaks nothing: what it is told about has happened.
 */
export async function emit(
  ctx: AuthContext,
  { onTenantEvent }: { onTenantEvent?: TenantEventHandler | undefined },
  actor: TenantActor,
  tenantId: string,
  change: TenantChange,
): Promise<void> {
  if (!onTenantEvent) return;
  // A copy: what the handler does to it must not show in the answer of the call.
  const event = structuredClone({ ...change, tenantId, actor, at: new Date() });
  await queueAfterTransactionHook(async () => {
    try {
      await onTenantEvent(event);
    } catch (error) {
      ctx.logger.error(`onTenantEvent failed for ${event.type} of tenant ${tenantId}`, error);
    }
  });
}

/** One that has expired can be sent again. */
export type InvitationStatus = "pending" | "accepted" | "expired" | "revoked";

/** An invitation, as managers see it. */
export interface TenantInvitation {
  id: string;
  tenantId: string;
  email: string;
  /** The role of the admin plugin that the user gets; null is the default one. */
  role: string | null;
  status: InvitationStatus;
  /** Who has invited; null is the server itself, or somebody without a session. */
  inviterId: string | null;
  /** The inviter's name at that time. */
  inviterName: string | null;
  /** Who has become a user by it. */
  userId: string | null;
  /** The page that the link leads to. */
  redirectTo: string | null;
  expiresAt: Date;
  acceptedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
}
