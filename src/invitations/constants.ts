/** Carries the token of an invitation along with any other way in: social sign-in, say. */
export const INVITATION_HEADER = "x-tenant-invitation";
