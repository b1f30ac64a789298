import { BASE_ERROR_CODES } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { SIGN_UP_PATH } from "../constants";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import type { TenantPolicy } from "../policy";
import { adminTarget, currentEndpoint, type Endpoint } from "../scope/endpoint";
import { notes, type Settled } from "../scope/scope";
import { type Opening, type Row, tenantClause } from "./border";
import { isAddressOf } from "./late-policy";
import { isTrusted, openerOf } from "./trusted";
import { allows, CONTINUES, startedWay, wayOf } from "./ways";

/*
 * What the policy of a tenant says about who becomes a user (R13) and who gets a session (R14),
 * asked where the row is made: by the database adapter, and by better-auth's hooks for sessions
 * that never reach it. Loaded by the first tenant that has a policy.
 */

const refused = (code: keyof typeof TENANT_AUTH_ERROR_CODES) =>
  APIError.from("FORBIDDEN", TENANT_AUTH_ERROR_CODES[code]);

/**
 * R13: refuses whom the policy does not admit. The server's own code and the admin plugin's
 * endpoints make users in any case: there, a manager or the tenant's own administrator asks.
 */
async function admitUser(
  policy: TenantPolicy,
  user: Row,
  endpoint: Endpoint | undefined = currentEndpoint(),
): Promise<Opening | undefined> {
  const opener = openerOf(endpoint?.context.adapter);
  if (isTrusted() || adminTarget(endpoint)) return opener?.(user, "a carried one");
  const way = wayOf(endpoint);
  // Somebody who could not get a session must not leave a user behind. A way that is not known
  // makes users without sessions: a directory that provisions them, say.
  if (way && way !== CONTINUES && !allows(policy, way)) throw refused("SIGN_IN_METHOD_NOT_ALLOWED");
  if (policy.signUp === "closed") throw refused("SIGN_UP_CLOSED");
  if (policy.emailDomains && !isAddressOf(policy.emailDomains, user.email)) {
    throw refused("EMAIL_DOMAIN_NOT_ALLOWED");
  }
  const opening = await opener?.(user, "any invitation");
  if (policy.signUp === "invited" && !opening) throw refused("INVITATION_REQUIRED");
  return opening;
}

/**
 * Refuses before better-auth does anything, where it can be told already. No mail is sent, and no
 * password looked at, for a way that is not allowed. A sign-up is refused before the address is
 * looked for: whether it is taken must not show, and where better-auth hides that, it hides a
 * refusal from where the user is made as well.
 */
export async function refuseEarly(policy: TenantPolicy, endpoint: Endpoint): Promise<void> {
  if (isTrusted()) return;
  const way = startedWay(endpoint);
  if (way && !allows(policy, way)) throw refused("SIGN_IN_METHOD_NOT_ALLOWED");
  const email: unknown = endpoint.body?.email;
  if (endpoint.path !== SIGN_UP_PATH || typeof email !== "string") return;
  await admitUser(policy, { email: email.toLowerCase(), emailVerified: false }, endpoint);
}

/**
 * R14: refuses a session by a way that the policy does not allow, or for an address that has to be
 * verified first. Returns by when the session has to end.
 */
async function admitSession(
  policy: TenantPolicy,
  adapter: DBTransactionAdapter,
  scope: Settled,
  session: Row,
): Promise<{ expiresAt?: Date }> {
  const way = wayOf(currentEndpoint());
  if (way !== CONTINUES) {
    if (!allows(policy, way)) throw refused("SIGN_IN_METHOD_NOT_ALLOWED");
    await requireVerifiedAddress(policy, adapter, scope, String(session.userId));
  }
  return capExpiry(policy, session);
}

/** An address of `emailDomains` says who somebody is, so it has to be theirs. */
async function requireVerifiedAddress(
  { emailDomains }: TenantPolicy,
  adapter: DBTransactionAdapter,
  scope: Settled,
  userId: string,
): Promise<void> {
  if (!emailDomains) return;
  const known = notes().knownUsers.get(userId);
  if (known?.email !== undefined && known.emailVerified) return;
  // What was read before may have been changed since: a code or a link verifies the address.
  const where = [{ field: "id", value: userId }, ...tenantClause(scope)];
  const user = await adapter.findOne<Row>({ model: "user", where });
  if (!user || user.emailVerified || !isAddressOf(emailDomains, user.email)) return;
  throw APIError.from("FORBIDDEN", BASE_ERROR_CODES.EMAIL_NOT_VERIFIED);
}

/** Either of both, by the model of a new row, which is changed as the policy says. */
export async function admitRow(
  policy: TenantPolicy,
  model: "user" | "session",
  scope: Settled,
  row: Row,
  adapter: DBTransactionAdapter,
): Promise<Opening | undefined> {
  if (model === "session") {
    Object.assign(row, await admitSession(policy, adapter, scope, row));
    return undefined;
  }
  const opening = await admitUser(policy, row);
  Object.assign(row, opening?.data);
  return opening;
}

/** A session ends when the policy says, whoever makes or prolongs it. */
export function capExpiry({ session: limits }: TenantPolicy, { expiresAt }: Row) {
  if (!limits?.expiresIn || !expiresAt) return {};
  const latest = Date.now() + limits.expiresIn * 1000;
  const given = new Date(expiresAt as Date | string).getTime();
  return given > latest ? { expiresAt: new Date(latest) } : {};
}
