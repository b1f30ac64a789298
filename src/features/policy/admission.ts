import { getCurrentAdapter } from "@better-auth/core/context";
import { BASE_ERROR_CODES } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { SIGN_UP_PATH, setsEmail, VERIFY_EMAIL_PATH } from "../../core/constants";
import { CHANGES, changeOf, clauses, type Guard, type Row } from "../../core/database";
import { asErrorRedirect, currentEndpoint, isServerCall } from "../../core/endpoint";
import type { AdmittedSession, Candidate } from "../../core/extension";
import { serviceOf } from "../../core/extensions";
import { type BeforeHook, plainHook } from "../../core/hooks";
import { askAboutUser, isTrustedWithUsers } from "../../core/isolate/admission";
import { tenantClause } from "../../core/isolate/in-scope";
import { type Isolation, isolationOf } from "../../core/isolation";
import { currentRequest, type Endpoint, getTenantId, scopeOf } from "../../core/request";
import { CONTINUES, isSignIn, type SignInMethod } from "../../core/sign-in-endpoints";
import { claimsIn, textOf } from "../../core/utils";
import { isInDomains, needsProof, whyNotAdmitted } from "./email-domains";
import { policyError } from "./errors";
import {
  allows,
  changesSecondFactorByKey,
  methodOfNewUser,
  methodsOf,
  startedMethod,
} from "./methods";
import { policyOf } from "./policy-of";
import { policyRequest } from "./request";
import type { TenantPolicy } from "./schema";
import { cannotSatisfy } from "./second-factor";

/*
 * Checks new users (R13) and new sessions (R14) against the policy of the tenant or the platform.
 * The checks run where the row is created, so they cover every endpoint.
 */

/** Methods that create a session without proving an email. */
const PROVES_NO_EMAIL = ["siwe", "phone", "anonymous", "passkey"];

const notVerified = () => APIError.from("FORBIDDEN", BASE_ERROR_CODES.EMAIL_NOT_VERIFIED);

/** R13: refuses a new user that the policy does not admit. */
export async function admitUser(candidate: Candidate): Promise<void> {
  const { ctx, tenantId, adapter, row: user, isTrusted } = candidate;
  const policy = await policyOf(ctx, tenantId, adapter);
  if (!policy) return;
  const endpoint = currentEndpoint();
  // Checked here too, because not every endpoint that creates users checks the password's length.
  const { length } = textOf(endpoint?.body?.password);
  if (length > 0 && length < (policy.password?.minLength ?? 0)) {
    throw APIError.from("BAD_REQUEST", BASE_ERROR_CODES.PASSWORD_TOO_SHORT);
  }
  if (isTrusted) return;
  const method = methodOfNewUser(endpoint) ?? (endpoint && startedMethod(endpoint));
  // A sign-in that will be refused must not leave a user behind, so this checks the method. The
  // method of an unknown endpoint is not checked, because such endpoints create users without
  // sessions, unless the path says that it is a sign-in.
  const isMethod = method !== undefined || isSignIn(endpoint?.path);
  const refusal =
    (isMethod && method !== CONTINUES && whyNotBy(policy, endpoint, method)) ||
    whyNotAdmitted(policy, user.email);
  if (refusal) throw policyError(refusal);
  const admission = await candidate.findAdmission();
  const isProven =
    user.emailVerified === true ||
    isVouchedFor(isolationOf(ctx), user.email) ||
    admission?.data?.emailVerified === true;
  if (policy.emailDomains && !isProven) {
    // Otherwise an attacker could sign up by wallet or phone with another person's email, and would
    // get in once that person verifies the email.
    if (PROVES_NO_EMAIL.includes(String(method))) throw policyError("EMAIL_DOMAIN_NOT_ALLOWED");
    // If only the session were refused, a database without transactions would keep the user, and
    // the invitation would be used up.
    if (method === "sso") throw notVerified();
  }
  if (policy.signUp === "invited" && !admission) throw policyError("INVITATION_REQUIRED");
}

/** Returns why a policy refuses sign-in by a method, or undefined. */
function whyNotBy(
  policy: TenantPolicy,
  endpoint: Endpoint | undefined,
  method: SignInMethod | undefined,
) {
  if (!allows(policy, method)) return "SIGN_IN_METHOD_NOT_ALLOWED";
  return cannotSatisfy(policy, endpoint, method) ? "TWO_FACTOR_REQUIRED" : undefined;
}

/**
 * R14: refuses a session by a method that the policy does not allow, or for an email that must be
 * verified first. Shortens the session if the policy sets `expiresIn`.
 */
export async function admitSession(
  isolation: Isolation,
  { tenantId, session, isNew, adapter }: AdmittedSession,
): Promise<Row | undefined> {
  const policy = await policyOf(isolation.ctx, tenantId, adapter);
  if (!policy) return undefined;
  if (isNew) await refuseSession(isolation, policy, adapter, tenantId, session);
  const { expiresIn } = policy.session ?? {};
  return expiresIn ? { expiresAt: new Date(Date.now() + expiresIn * 1000) } : undefined;
}

async function refuseSession(
  isolation: Isolation,
  policy: TenantPolicy,
  adapter: DBTransactionAdapter,
  tenantId: string | null,
  session: Row,
): Promise<void> {
  const methods = methodsOf(currentEndpoint());
  if (methods.includes(CONTINUES)) return;
  const isAllowed = methods.some((method) => method !== CONTINUES && allows(policy, method));
  if (!isAllowed) throw asErrorRedirect(policyError("SIGN_IN_METHOD_NOT_ALLOWED"));
  const isVerified = await hasVerifiedEmail(isolation, policy, adapter, tenantId, session);
  if (!isVerified) throw asErrorRedirect(notVerified());
}

/** Returns whether the user's email is verified, if `emailDomains` requires that. */
async function hasVerifiedEmail(
  isolation: Isolation,
  { emailDomains }: TenantPolicy,
  adapter: DBTransactionAdapter,
  tenantId: string | null,
  session: Row,
): Promise<boolean> {
  if (!emailDomains) return true;
  const userId = String(session.userId);
  const known = currentRequest().users.get(userId);
  if (known?.email !== undefined && known.emailVerified) return true;
  // Reads the user again: a code or link may have verified the email in the meantime.
  const where = [...clauses({ id: userId }), ...tenantClause(scopeOf(tenantId))];
  const user = await adapter.findOne<Row>({ model: "user", where });
  if (!user || user.emailVerified || !needsProof(emailDomains, user.email)) return true;
  return isVouchedFor(isolation, user.email);
}

/** Returns whether the tenant's identity provider that the user comes from proves an email. */
export const isVouchedFor = (isolation: Isolation | undefined, email: unknown): boolean =>
  serviceOf(isolation, "identityProviders")?.vouchesFor(email) === true;

/** Refuses changes of email addresses that the policy does not allow. */
export const guardEmails = ({ ctx }: Isolation): Guard => ({
  models: ["user"],
  methods: CHANGES,
  async run({ method, call, transaction }, next) {
    const change = changeOf(method, call);
    if (change?.email === undefined) return next(call);
    const adapter = transaction ?? (await getCurrentAdapter(ctx.adapter));
    const policy = await policyOf(ctx, getTenantId(), adapter);
    const proof = policy && (await admitEmail(policy, adapter, call.where ?? [], change));
    return next(proof ? { ...call, update: { ...change, ...proof } } : call);
  },
});

/**
 * R13 for changed emails: the new email must be in `emailDomains`, and proven first. A link mailed
 * to it is the proof. Then this returns `emailVerified: true` to write with the email. better-auth
 * 1.7.24, unlike 1.7.7, leaves an unverified user unverified, and the policy would refuse that
 * user's sessions.
 */
async function admitEmail(
  { emailDomains }: TenantPolicy,
  adapter: DBTransactionAdapter,
  where: Where[],
  { email, emailVerified }: Row,
): Promise<Row | undefined> {
  if (!emailDomains || isTrustedWithUsers()) return undefined;
  const isAllowed = isInDomains(emailDomains, email);
  if (isAllowed && emailVerified) return undefined;
  if (isAllowed && isProvenByLink(currentEndpoint(), email)) return { emailVerified: true };
  const user = await adapter.findOne<Row>({ model: "user", where });
  // Allowed if the email stays the same: better-auth writes a provider's profile as a whole.
  if (!user || user.email === email) return undefined;
  throw asErrorRedirect(isAllowed ? notVerified() : policyError("EMAIL_DOMAIN_NOT_ALLOWED"));
}

/** Returns whether the request follows the link that better-auth mailed to a new email. */
function isProvenByLink(endpoint: Endpoint | undefined, email: unknown): boolean {
  if (endpoint?.path !== VERIFY_EMAIL_PATH) return false;
  const { requestType, updateTo } = claimsIn(endpoint.query?.token);
  return requestType === "change-email-verification" && updateTo === email;
}

/** Refuses sign-ins and emails that the policy does not allow, before the endpoint runs. */
export const askPolicy: BeforeHook = {
  matcher: ({ path }) => Boolean(policyRequest.get().policy) && (setsEmail(path) || isSignIn(path)),

  handler: plainHook((ctx) => refuseEarly(ctx as Endpoint)),
};

/**
 * Refuses a method before better-auth sends a mail or checks a password. Refuses an email before
 * better-auth looks it up, so that the response does not show whether it is taken.
 */
export async function refuseEarly(endpoint: Endpoint): Promise<void> {
  const policy = await policyOf(endpoint.context, getTenantId());
  if (!policy) return;
  const method = startedMethod(endpoint);
  const isServer = isServerCall();
  const createsUser = isServer && endpoint.path === SIGN_UP_PATH;
  const isMethod = method !== undefined || changesSecondFactorByKey(endpoint);
  const refusal = isMethod && !createsUser && whyNotBy(policy, endpoint, method);
  if (refusal) throw asErrorRedirect(policyError(refusal));
  if (isServer || !setsEmail(endpoint.path)) return;
  const { email, newEmail } = endpoint.body ?? {};
  if (endpoint.path !== SIGN_UP_PATH) {
    const isRefused = policy.emailDomains && !isInDomains(policy.emailDomains, newEmail);
    if (isRefused) throw policyError("EMAIL_DOMAIN_NOT_ALLOWED");
  } else if (typeof email === "string") {
    const isolation = isolationOf(endpoint.context) as Isolation;
    const user = { email: email.toLowerCase(), emailVerified: false };
    await askAboutUser(isolation, getTenantId(), user);
  }
}
