/** The fields of a session that isolation needs. Read from the database, a storage or a cookie. */
export type SessionRow = {
  token?: string;
  userId?: string;
  tenantId?: string | null;
  expiresAt?: Date | string;
  createdAt?: Date | string;
  impersonatedBy?: string | null;
  generation?: string | null;
};

/**
 * Marks the session that better-auth makes for a request with an API key. No sign-in can continue
 * from it.
 */
export const OF_KEY = Symbol.for("better-auth-tenant:session-of-key");
