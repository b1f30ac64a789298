/** The page where somebody accepts an invitation, at a tenant's address. */
export const acceptAddress = (base: string, token: string) =>
  `${base}/accept-invitation?token=${encodeURIComponent(token)}`;

/**
 * Where the link of an invitation leads to. It names the tenant by its id: the slug may change
 * before somebody follows the link.
 */
export const invitationPage = (tenantId: string) => `/accept-invitation?tenant=${tenantId}`;

export const ROLES = { user: "User", admin: "Administrator" };

export const roleName = (role: string | null) => ROLES[role as keyof typeof ROLES] ?? ROLES.user;
