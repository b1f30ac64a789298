import { BASE_ERROR_CODES } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { isSignIn, namesAddress, SIGN_UP_PATH } from "../constants";
import { tenantError } from "../errors";
import { errorRedirect, textOf } from "../framework";
import { type Admission, type Row, tenantClause } from "../isolation/isolation";
import { adminTarget, currentEndpoint, type Endpoint, isServerCall } from "../request/endpoint";
import { notes, type Scope } from "../request/scope";
import { isInDomains, whyNotAdmitted } from "./email-domains";
import { invitingOf } from "./inviting";
import {
  allows,
  CONTINUES,
  cannotGoOn,
  methodOfNewUser,
  methodsOf,
  startedMethod,
} from "./methods";
import type { TenantPolicy } from "./schema";

/*
 * What the policy of a tenant says about who becomes a user (R13) and who gets a session (R14),
 * asked where the row is made: by the database adapter, and by better-auth's hooks for sessions
 * that never reach it. Loaded by the first tenant that has a policy.
 */

/** Ways by which somebody has a session at once, and which say nothing about an address. */
const PROVES_NO_ADDRESS = ["siwe", "phone", "anonymous", "passkey"];

const notVerified = () => APIError.from("FORBIDDEN", BASE_ERROR_CODES.EMAIL_NOT_VERIFIED);

/**
 * R13: refuses whom the policy does not admit. The server's own code, the admin plugin's endpoints
 * and the tenant's directory make users in any case: there, a manager or the tenant itself asks.
 */
async function admitUser(
  policy: TenantPolicy,
  user: Row,
  endpoint: Endpoint | undefined = currentEndpoint(),
): Promise<Admission | undefined> {
  // better-auth's own check is not everywhere where users are made.
  const { length } = textOf(endpoint?.body?.password);
  if (length > 0 && length < (policy.password?.minLength ?? 0)) {
    throw APIError.from("BAD_REQUEST", BASE_ERROR_CODES.PASSWORD_TOO_SHORT);
  }
  const ctx = endpoint?.context;
  const openingFor = ctx && invitingOf(ctx)?.openingFor.bind(null, ctx);
  if (isServerCall() || adminTarget(endpoint) || notes().directory) {
    return openingFor?.(user, "a carried one");
  }
  const way = methodOfNewUser(endpoint) ?? (endpoint && startedMethod(endpoint));
  // Somebody who could not get a session must not leave a user behind. A way that is not known
  // makes users without sessions, unless it is called a sign-in.
  const isWay = way !== undefined || isSignIn(endpoint?.path);
  if (isWay && way !== CONTINUES && !allows(policy, way)) {
    throw tenantError("SIGN_IN_METHOD_NOT_ALLOWED");
  }
  const refusal = whyNotAdmitted(policy, user.email);
  if (refusal) throw tenantError(refusal);
  const emailVerified = user.emailVerified === true || isVouchedFor(user.email, way);
  const opening = await openingFor?.({ ...user, emailVerified }, "any invitation");
  // Nor a wallet or phone, which would be a way in once the address is verified by its owner. As for
  // an address that is taken, in whose place better-auth makes up another one.
  const isProven = emailVerified || opening?.data?.emailVerified === true;
  if (policy.emailDomains && !isProven) {
    if (PROVES_NO_ADDRESS.includes(String(way))) throw tenantError("EMAIL_DOMAIN_NOT_ALLOWED");
    // better-auth makes the session in the same transaction, and without it there is no user. Where
    // there are no transactions the user would stay, and the invitation would be used up.
    if (way === "sso") throw notVerified();
  }
  if (policy.signUp === "invited" && !opening) throw tenantError("INVITATION_REQUIRED");
  return opening;
}

/**
 * R13 goes on: whoever came in by an address of `emailDomains` keeps to those, and an address that
 * says who somebody is has to be theirs before they have it.
 */
export async function admitAddress(
  { emailDomains }: TenantPolicy,
  adapter: DBTransactionAdapter,
  where: Where[],
  { email, emailVerified }: Row,
): Promise<void> {
  if (!emailDomains || notes().directory) return;
  if (isServerCall() || adminTarget(currentEndpoint())) return;
  const isAllowed = isInDomains(emailDomains, email);
  if (isAllowed && emailVerified) return;
  const user = await adapter.findOne<Row>({ model: "user", where });
  // A provider's profile is written as a whole, with the address that is there already.
  if (!user || user.email === email) return;
  const error = isAllowed ? notVerified() : tenantError("EMAIL_DOMAIN_NOT_ALLOWED");
  throw asErrorRedirect(currentEndpoint(), error);
}

/**
 * Refuses before better-auth does anything, where it can be told already. No mail is sent, and no
 * password looked at, for a way that is not allowed. An address is refused before anybody looks for
 * it: whether it is taken must not show, and where better-auth hides that, it hides a refusal from
 * where the user is made as well.
 */
export async function refuseEarly(policy: TenantPolicy, endpoint: Endpoint): Promise<void> {
  const way = startedMethod(endpoint);
  const isOwnCode = isServerCall();
  const makesUser = isOwnCode && endpoint.path === SIGN_UP_PATH;
  const isWay = way !== undefined || cannotGoOn(endpoint);
  if (isWay && !makesUser && !allows(policy, way)) {
    throw asErrorRedirect(endpoint, tenantError("SIGN_IN_METHOD_NOT_ALLOWED"));
  }
  if (isOwnCode || !namesAddress(endpoint.path)) return;
  const { email, newEmail } = endpoint.body ?? {};
  if (endpoint.path !== SIGN_UP_PATH) {
    const isRefused = policy.emailDomains && !isInDomains(policy.emailDomains, newEmail);
    if (isRefused) throw tenantError("EMAIL_DOMAIN_NOT_ALLOWED");
  } else if (typeof email === "string") {
    await admitUser(policy, { email: email.toLowerCase(), emailVerified: false }, endpoint);
  }
}

/**
 * R14: refuses a session by a way that the policy does not allow, or for an address that has to be
 * verified first. Returns by when the session has to end.
 */
async function admitSession(
  policy: TenantPolicy,
  adapter: DBTransactionAdapter,
  scope: Scope,
  session: Row,
): Promise<{ expiresAt?: Date }> {
  const endpoint = currentEndpoint();
  // The policy may have changed since the first step.
  const ways = methodsOf(endpoint);
  if (!ways.includes(CONTINUES)) {
    const isAllowed = ways.some((way) => way !== CONTINUES && allows(policy, way));
    if (!isAllowed) throw asErrorRedirect(endpoint, tenantError("SIGN_IN_METHOD_NOT_ALLOWED"));
    const isVerified = await hasVerifiedAddress(policy, adapter, scope, session, ways[0]);
    if (!isVerified) throw asErrorRedirect(endpoint, notVerified());
  }
  return capExpiry(policy, session);
}

/** An address of `emailDomains` says who somebody is, so it has to be theirs. */
async function hasVerifiedAddress(
  { emailDomains }: TenantPolicy,
  adapter: DBTransactionAdapter,
  scope: Scope,
  session: Row,
  way: string | undefined,
): Promise<boolean> {
  if (!emailDomains) return true;
  const userId = String(session.userId);
  const known = notes().knownUsers.get(userId);
  if (known?.email !== undefined && known.emailVerified) return true;
  // What was read before may have been changed since: a code or a link verifies the address.
  const where = [{ field: "id", value: userId }, ...tenantClause(scope)];
  const user = await adapter.findOne<Row>({ model: "user", where });
  if (!user || user.emailVerified || !isInDomains(emailDomains, user.email)) return true;
  return isVouchedFor(user.email, way);
}

/** A tenant's identity provider says whose the addresses of a domain are that was verified for it. */
function isVouchedFor(email: unknown, way: string | undefined): boolean {
  return way === "sso" && isInDomains(notes().vouchedDomains ?? [], email);
}

/** Either of both, by the model of a new row, which is changed as the policy says. */
export async function admitRow(
  policy: TenantPolicy,
  model: "user" | "session",
  scope: Scope,
  row: Row,
  adapter: DBTransactionAdapter,
): Promise<Admission | undefined> {
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
  if (!limits?.expiresIn) return {};
  const latest = Date.now() + limits.expiresIn * 1000;
  const given = new Date(expiresAt as Date | string).getTime();
  // To better-auth a session that does not end at any date never ends.
  return given <= latest ? {} : { expiresAt: new Date(latest) };
}

/**
 * Somebody who follows a link has a browser, and no program that reads an answer. What is refused to
 * them is told to the page that the link names, as better-auth tells it what it refuses itself.
 */
export function asErrorRedirect(endpoint: Endpoint | undefined, error: APIError): APIError {
  const { request, query, context } = endpoint ?? {};
  const page: unknown = query?.errorCallbackURL ?? query?.callbackURL;
  if (!context || request?.method !== "GET" || typeof page !== "string") return error;
  if (!context.isTrustedOrigin(page, { allowRelativePaths: true })) return error;
  return errorRedirect(context, String(error.body?.code), page);
}
