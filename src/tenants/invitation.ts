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
