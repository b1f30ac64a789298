import { queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { TenantPolicy } from "../policy/schema";
import { managementOptions } from "./options";
import type { Tenant } from "./tenant";

/**
 * The caller: a user, or `"server"` for the application's own code. `userId` is null for callers
 * without a session that `canManageTenants` allowed. `tenantId` is the tenant of the user, or null
 * for the platform.
 */
export type TenantActor = "server" | { userId: string | null; tenantId: string | null };

/** A change to a tenant, for `onTenantEvent`. Events contain no secrets. */
export type TenantEvent = { tenantId: string; actor: TenantActor; at: Date } & TenantChange;

export type TenantChange =
  | { type: "tenant:created"; tenant: Tenant }
  /** Status and policy have their own events. */
  | { type: "tenant:updated"; tenant: Tenant; changed: ("name" | "slug" | "metadata")[] }
  | { type: "tenant:suspended"; tenant: Tenant }
  | { type: "tenant:resumed"; tenant: Tenant }
  | { type: "tenant:deletion-scheduled"; tenant: Tenant; deleteAt: Date }
  | { type: "tenant:restored"; tenant: Tenant }
  /** `rows` has the number of deleted rows of each model. */
  | { type: "tenant:deleted"; rows: Record<string, number> }
  | { type: "policy:changed"; before: TenantPolicy | null; after: TenantPolicy | null }
  | { type: "user:two-factor-reset"; userId: string }
  | { type: "oauth-config:registered"; providerId: string }
  | { type: "oauth-config:changed"; providerId: string; changed: string[] }
  | { type: "oauth-config:deleted"; providerId: string }
  | {
      type: "invitation:created" | "invitation:resent" | "invitation:revoked";
      invitation: TenantInvitation;
    }
  /**
   * The actor is the user who accepted, `invitation.userId`. `replacedUserId` is a user who had the
   * address before and never verified it.
   */
  | { type: "invitation:accepted"; invitation: TenantInvitation; replacedUserId?: string }
  /** `host`: whether the domain also resolves the tenant as a host, once it is verified. */
  | (DomainChange & { domain: string; host: boolean });

export type DomainChange =
  | { type: "domain:added" | "domain:updated" | "domain:removed" }
  /** Sent each time a call finds the DNS record, even if the domain was already verified. */
  | { type: "domain:verified" }
  /** Another tenant has verified the domain, or the record is gone. The actor is the server. */
  | { type: "domain:lost"; reason: "claimed" | "record-gone" };

/** Handles an event, after the commit. */
export type TenantEventHandler = (event: TenantEvent) => void | Promise<void>;

/** Calls the application's handler after the commit. Its errors are only logged. */
export async function emit(
  ctx: AuthContext,
  actor: TenantActor,
  tenantId: string,
  change: TenantChange,
): Promise<void> {
  const { onTenantEvent } = managementOptions(ctx);
  if (!onTenantEvent) return;
  // A copy: changes by the handler must not appear in the response.
  const event = structuredClone({ ...change, tenantId, actor, at: new Date() });
  await queueAfterTransactionHook(async () => {
    try {
      await onTenantEvent(event);
    } catch (error) {
      ctx.logger.error(`onTenantEvent failed for ${event.type} of tenant ${tenantId}`, error);
    }
  });
}

/** The status of an invitation. An expired invitation can be sent again. */
export type InvitationStatus = "pending" | "accepted" | "expired" | "revoked";

/** An invitation, as managers see it. */
export interface TenantInvitation {
  id: string;
  tenantId: string;
  email: string;
  /** The role that the user gets (of the admin plugin). Null is the default role. */
  role: string | null;
  status: InvitationStatus;
  /** The user who invited. Null for the server, or for a caller without a session. */
  inviterId: string | null;
  inviterName: string | null;
  /** The user who accepted it. */
  userId: string | null;
  /** The page that the link leads to. Null is the default page. */
  redirectTo: string | null;
  expiresAt: Date;
  acceptedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
}
