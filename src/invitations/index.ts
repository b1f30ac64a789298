export type { InvitationStatus, TenantInvitation } from "../tenants/events";
export type { OpenInvitation } from "./accept";
export { INVITATION_HEADER, TENANT_INVITATION_ERROR_CODES } from "./error-codes";
export type { SentInvitation } from "./manage";
export type { InvitationMail, Inviter, TenantInvitationsOptions } from "./options";
export { tenantInvitations } from "./plugin";
export type { AcceptInput } from "./routes";
export type { TenantInvitationsSchema } from "./schema";
