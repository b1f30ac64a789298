import { getCurrentAdapter } from "@better-auth/core/context";
import { type AuthContext, BASE_ERROR_CODES } from "better-auth";
import { APIError, isAPIError } from "better-auth/api";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { namesAddress, SIGN_UP_PATH, VERIFY_EMAIL } from "../constants";
import { tenantError } from "../errors";
import {
  type BeforeHook,
  claimsIn,
  clauses,
  errorRedirect,
  silentHook,
  textOf,
} from "../framework";
import { type Guard, type Isolation, type Row, tenantClause } from "../isolation/isolation";
import { knownUsers } from "../isolation/users";
import {
  adminTarget,
  currentEndpoint,
  type Endpoint,
  effectiveScope,
  isServerCall,
} from "../request/endpoint";
import { requestSlot, type Scope, type SessionRow, scopeOf } from "../request/scope";
import { appliedPolicy } from "../setup/overrides";
import { policyOf } from "../tenants/cache";
import { type Admission, invitingOf } from "../tenants/plugins";
import { isInDomains, needsProof, whyNotAdmitted } from "./email-domains";
import { changeOf, mayRemoveAdmin, requireAnotherAdmin } from "./last-admin";
import {
  allows,
  CONTINUES,
  changesSecondFactorByKey,
  isSignIn,
  methodOfNewUser,
  methodsOf,
  startedMethod,
} from "./methods";
import type { SignInMethod, TenantPolicy } from "./schema";
import { admitFactors, cannotSatisfy } from "./second-factor";

/*
 * What the policy of a tenant, or of the platform, says about who becomes a user (R13) and who gets a
 * session (R14), checked where the row is created, for every endpoint.
 */

/** True if the tenant's directory makes the request: it creates users that the tenant wants. */
export const isDirectoryRequest = requestSlot<boolean>();

/** The verified domains of the tenant's identity provider that the request comes from. */
export const vouchedDomains = requestSlot<readonly string[]>();

/** Methods that give a session at once and prove no email. */
const PROVES_NO_EMAIL = ["siwe", "phone", "anonymous", "passkey"];

const notVerified = () => APIError.from("FORBIDDEN", BASE_ERROR_CODES.EMAIL_NOT_VERIFIED);

/**
 * A link is followed by a browser: an error leads to the page that the link names, as better-auth's
 * own errors do.
 */
export function asErrorRedirect(error: APIError): APIError {
  const { request, query, context } = currentEndpoint() ?? {};
  const page: unknown = query?.errorCallbackURL ?? query?.callbackURL;
  if (!context || request?.method !== "GET" || typeof page !== "string") return error;
  if (!context.isTrustedOrigin(page, { allowRelativePaths: true })) return error;
  return errorRedirect(context, String(error.body?.code), page);
}

/** R13: refuses a new user that the policy does not admit. May change the row. */
export async function admitUser(
  { ctx }: Isolation,
  tenantId: string | null,
  row: Row,
  adapter: DBTransactionAdapter,
): Promise<Admission | undefined> {
  const policy = await policyOf(ctx, tenantId, adapter);
  // Deleted in the meantime, or a wrong id in `runInTenant`.
  if (policy === undefined) throw tenantError("TENANT_NOT_FOUND");
  // Where everyone is admitted, an invitation still says in which role.
  const isInviting = tenantId !== null && invitingOf(currentEndpoint()?.context ?? ctx);
  if (!policy && !isInviting) return undefined;
  const admission = await admit(policy ?? {}, row);
  Object.assign(row, admission?.data);
  return admission;
}

async function admit(
  policy: TenantPolicy,
  user: Row,
  endpoint: Endpoint | undefined = currentEndpoint(),
): Promise<Admission | undefined> {
  // better-auth does not check this everywhere where users are created.
  const { length } = textOf(endpoint?.body?.password);
  if (length > 0 && length < (policy.password?.minLength ?? 0)) {
    throw APIError.from("BAD_REQUEST", BASE_ERROR_CODES.PASSWORD_TOO_SHORT);
  }
  // The platform has no invitations.
  const ctx = effectiveScope().tenantId === null ? undefined : endpoint?.context;
  const openingFor = ctx && invitingOf(ctx)?.openingFor.bind(null, ctx);
  // Server code, admin endpoints and the tenant's directory create users in any case.
  if (isServerCall() || adminTarget(endpoint) || isDirectoryRequest.get()) {
    return openingFor?.(user, "a carried one");
  }
  const method = methodOfNewUser(endpoint) ?? (endpoint && startedMethod(endpoint));
  // A caller who could not get a session must not leave a user behind. An unknown endpoint creates
  // users without sessions, unless it is called a sign-in.
  const isMethod = method !== undefined || isSignIn(endpoint?.path);
  const refusal =
    (isMethod && method !== CONTINUES && whyNotBy(policy, endpoint, method)) ||
    whyNotAdmitted(policy, user.email);
  if (refusal) throw tenantError(refusal);
  const emailVerified = user.emailVerified === true || isVouchedFor(user.email, method);
  const admission = await openingFor?.({ ...user, emailVerified }, "any invitation");
  const isProven = emailVerified || admission?.data?.emailVerified === true;
  if (policy.emailDomains && !isProven) {
    // A wallet or phone would be a way in once the owner of the email has verified it.
    if (PROVES_NO_EMAIL.includes(String(method))) throw tenantError("EMAIL_DOMAIN_NOT_ALLOWED");
    // better-auth creates the session in the same transaction. Without transactions, the user would
    // stay, and the invitation would be used up.
    if (method === "sso") throw notVerified();
  }
  if (policy.signUp === "invited" && !admission) throw tenantError("INVITATION_REQUIRED");
  return admission;
}

/** Why a policy does not let users sign in by a method; undefined if it does. */
function whyNotBy(
  policy: TenantPolicy,
  endpoint: Endpoint | undefined,
  method: SignInMethod | undefined,
) {
  if (!allows(policy, method)) return "SIGN_IN_METHOD_NOT_ALLOWED";
  return cannotSatisfy(policy, endpoint, method) ? "TWO_FACTOR_REQUIRED" : undefined;
}

/** An identity provider of the tenant proves the emails of its verified domains. */
const isVouchedFor = (email: unknown, method: string | undefined) =>
  method === "sso" && isInDomains(vouchedDomains.get() ?? [], email);

/**
 * R14: refuses a session by a method that the policy does not allow, for an email that has to be
 * verified first, or without a second factor. Returns what the policy changes in the session.
 */
export async function admitSession(
  policy: TenantPolicy,
  adapter: DBTransactionAdapter,
  tenantId: string | null,
  session: Row,
): Promise<Row> {
  const methods = methodsOf(currentEndpoint());
  if (!methods.includes(CONTINUES)) {
    const isAllowed = methods.some((method) => method !== CONTINUES && allows(policy, method));
    if (!isAllowed) throw asErrorRedirect(tenantError("SIGN_IN_METHOD_NOT_ALLOWED"));
    const isVerified = await hasVerifiedEmail(policy, adapter, tenantId, session, methods[0]);
    if (!isVerified) throw asErrorRedirect(notVerified());
  }
  if (!policy.twoFactor?.required) return cappedExpiry(policy, session);
  const changes = await admitFactors(policy, adapter, session as SessionRow).catch((error) => {
    throw isAPIError(error) ? asErrorRedirect(error) : error;
  });
  return { ...changes, ...cappedExpiry(policy, { ...session, ...changes }) };
}

/** An email of `emailDomains` says who a user is, so it has to be verified. */
async function hasVerifiedEmail(
  { emailDomains }: TenantPolicy,
  adapter: DBTransactionAdapter,
  tenantId: string | null,
  session: Row,
  method: string | undefined,
): Promise<boolean> {
  if (!emailDomains) return true;
  const userId = String(session.userId);
  const known = knownUsers.get().get(userId);
  if (known?.email !== undefined && known.emailVerified) return true;
  // A code or link may have verified the email since it was read.
  const where = [...clauses({ id: userId }), ...tenantClause(scopeOf(tenantId))];
  const user = await adapter.findOne<Row>({ model: "user", where });
  if (!user || user.emailVerified || !needsProof(emailDomains, user.email)) return true;
  return isVouchedFor(user.email, method);
}

/** When a session of the scope has to end, if that is before the end that it is given. */
export async function capExpiry(
  ctx: AuthContext,
  { tenantId }: Scope,
  session: Row,
  adapter?: DBTransactionAdapter,
): Promise<{ expiresAt?: Date }> {
  if (!("expiresAt" in session)) return {};
  return cappedExpiry((await policyOf(ctx, tenantId, adapter)) ?? {}, session);
}

function cappedExpiry({ session: limits }: TenantPolicy, { expiresAt }: Row) {
  if (!limits?.expiresIn) return {};
  const latest = Date.now() + limits.expiresIn * 1000;
  const given = new Date(expiresAt as Date | string).getTime();
  // Written so that an invalid date is capped as well.
  return given <= latest ? {} : { expiresAt: new Date(latest) };
}

/** Changes of users that the policy, or the tenant's need for an administrator, may refuse. */
export function guardUsers(isolation: Isolation): Guard {
  const { ctx, options } = isolation;
  const roles = Object.keys(options.tenantRoles);
  return ({ method, call, model, transaction }, next) => {
    if (model !== "user") return undefined;
    const change = changeOf(method, call);
    const isAboutAdmins = roles.length > 0 && mayRemoveAdmin(method, call);
    if (change?.email === undefined && !isAboutAdmins) return undefined;
    const { where = [] } = call;
    const check = async () => {
      const { tenantId } = effectiveScope();
      let admitted = call;
      if (change?.email !== undefined) {
        const adapter = transaction ?? (await getCurrentAdapter(ctx.adapter));
        const policy = await policyOf(ctx, tenantId, adapter);
        const proof = policy && (await admitEmail(policy, adapter, where, change));
        if (proof) admitted = { ...call, update: { ...change, ...proof } };
      }
      const affected = { where, update: change };
      if (isAboutAdmins) await requireAnotherAdmin(isolation, affected, transaction);
      return next(admitted);
    };
    return check();
  };
}

/**
 * R13 holds for changed emails: a user keeps to `emailDomains`, and proves the new email first. A link
 * mailed to that email proves it. better-auth 1.7.7 stores that itself; 1.7.24 leaves an unverified
 * user unverified, who could then not sign in.
 */
async function admitEmail(
  { emailDomains }: TenantPolicy,
  adapter: DBTransactionAdapter,
  where: Where[],
  { email, emailVerified }: Row,
): Promise<Row | undefined> {
  if (!emailDomains || isDirectoryRequest.get()) return undefined;
  if (isServerCall() || adminTarget(currentEndpoint())) return undefined;
  const isAllowed = isInDomains(emailDomains, email);
  if (isAllowed && emailVerified) return undefined;
  if (isAllowed && isProvenByLink(currentEndpoint(), email)) return { emailVerified: true };
  const user = await adapter.findOne<Row>({ model: "user", where });
  // A provider's profile is written as a whole, with the email that is there already.
  if (!user || user.email === email) return undefined;
  throw asErrorRedirect(isAllowed ? notVerified() : tenantError("EMAIL_DOMAIN_NOT_ALLOWED"));
}

/** Whether the request follows the link that was mailed to a new email. */
function isProvenByLink(endpoint: Endpoint | undefined, email: unknown): boolean {
  if (endpoint?.path !== VERIFY_EMAIL) return false;
  const { requestType, updateTo } = claimsIn(endpoint.query?.token);
  return requestType === "change-email-verification" && updateTo === email;
}

/** Refuses what the policy does not allow before better-auth does anything. */
export const askPolicy: BeforeHook = {
  matcher: ({ path }) => Boolean(appliedPolicy.get()) && (namesAddress(path) || isSignIn(path)),

  handler: silentHook((ctx) => refuseEarly(ctx as Endpoint)),
};

/**
 * No mail is sent, and no password checked, for a method that is not allowed. An email is refused
 * before it is looked up: the response must not show whether it is taken.
 */
export async function refuseEarly(endpoint: Endpoint): Promise<void> {
  const policy = await policyOf(endpoint.context, effectiveScope().tenantId);
  if (!policy) return;
  const method = startedMethod(endpoint);
  const isServer = isServerCall();
  const createsUser = isServer && endpoint.path === SIGN_UP_PATH;
  const isMethod = method !== undefined || changesSecondFactorByKey(endpoint);
  const refusal = isMethod && !createsUser && whyNotBy(policy, endpoint, method);
  if (refusal) throw asErrorRedirect(tenantError(refusal));
  if (isServer || !namesAddress(endpoint.path)) return;
  const { email, newEmail } = endpoint.body ?? {};
  if (endpoint.path !== SIGN_UP_PATH) {
    const isRefused = policy.emailDomains && !isInDomains(policy.emailDomains, newEmail);
    if (isRefused) throw tenantError("EMAIL_DOMAIN_NOT_ALLOWED");
  } else if (typeof email === "string") {
    await admit(policy, { email: email.toLowerCase(), emailVerified: false }, endpoint);
  }
}
