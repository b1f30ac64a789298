/*
 * R4: the token of a tenant's session begins with `<tenantId>~`. The prefix only tells where to
 * look: the plugin looks up the whole token inside that tenant, where a forged token does not
 * exist.
 */

export const SEPARATOR = "~";

/**
 * Matches the ids that tenants may have. The prefix must fit into cookies, names of cookies, bearer
 * tokens (which are split at ".") and MySQL's columns of 255 characters.
 */
export const TENANT_ID = /^[\w-]{1,128}$/;

export const withPrefix = (tenantId: string, value: string) => tenantId + SEPARATOR + value;

/**
 * Returns the tenant in the prefix of a token; null for a token of the platform. The token `~x` has
 * an empty prefix, which is the id of no tenant.
 */
export function tenantInPrefix(token: string): string | null {
  const at = token.indexOf(SEPARATOR);
  return at < 0 ? null : token.slice(0, at);
}
