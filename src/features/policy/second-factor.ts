import { getCurrentAdapter } from "@better-auth/core/context";
import { createAuthMiddleware, isAPIError } from "better-auth/api";
import { setSessionCookie } from "better-auth/cookies";
import type { DBTransactionAdapter } from "better-auth/types";
import * as z from "zod";
import { clauses, type Row } from "../../core/database";
import { asErrorRedirect, currentEndpoint } from "../../core/endpoint";
import type { AdmittedSession, SessionSource } from "../../core/extension";
import { type AfterHook, type BeforeHook, plainHook } from "../../core/hooks";
import { readUser } from "../../core/isolate/users";
import type { Isolation } from "../../core/isolation";
import { currentRequest, type Endpoint } from "../../core/request";
import { OF_KEY } from "../../core/session";
import { keepCookie } from "../../core/session-tokens";
import { CONTINUES, methodOf, type SignInMethod } from "../../core/sign-in-endpoints";
import { policyError } from "./errors";
import { allows } from "./methods";
import { policyOf } from "./policy-of";
import { policyRequest } from "./request";
import type { TenantPolicy } from "./schema";
import type { SessionWithMethod } from "./tables";

/*
 * Enforces `policy.twoFactor`. better-auth asks for a second factor if the user has one. This file
 * decides which sessions count as signed in with two factors. A user without a second factor gets a
 * setup session, which is valid for setting one up and nothing else.
 */

/** The prefix of `signInMethod` in a setup session. */
const SETUP = "setup:";
const SETUP_MS = 10 * 60_000;
/** The lifetime that better-auth gives to a session that ends with the browser. */
const DAY_S = 86_400;

/**
 * Endpoints after which better-auth asks for the second factor. It then deletes the session that
 * the endpoint created.
 */
const FIRST_STEPS = ["/sign-in/email", "/sign-in/username", "/sign-in/phone-number"];

const VERIFY = "/two-factor/verify-";
const REGISTER_PASSKEY = "/passkey/verify-registration";

/**
 * Endpoints where a setup session is valid. Excludes `/two-factor/get-totp-uri`, which would show
 * the secret that another session of the user is about to verify. `/two-factor/enable` also returns
 * the URI.
 */
const ENROLLS = [
  "/two-factor/enable",
  "/two-factor/verify-totp",
  "/two-factor/send-otp",
  "/two-factor/verify-otp",
  "/passkey/generate-register-options",
  REGISTER_PASSKEY,
  "/sign-out",
];

async function countingAny(run: () => Promise<unknown>): Promise<void> {
  const request = policyRequest.get();
  request.counting = "any";
  try {
    await run();
  } finally {
    request.counting = undefined;
  }
}

/** Endpoints that a second factor can follow, or that verify two factors at once. */
const CAN_SATISFY = [
  ...FIRST_STEPS,
  "/sign-up/email",
  "/passkey/generate-register-options",
  "/passkey/verify-authentication",
  REGISTER_PASSKEY,
];

type Factors = Pick<SessionWithMethod, "signInMethod" | "secondFactorAt">;

const isSetup = ({ signInMethod }: Factors): boolean => signInMethod?.startsWith(SETUP) ?? false;

const isExempt = ({ twoFactor }: TenantPolicy, method: string | null | undefined) =>
  method != null && allows({ methods: twoFactor?.exemptMethods ?? [] }, method as SignInMethod);

/** Returns whether a session has the factors that a policy requires. */
export const satisfies = (policy: TenantPolicy, session: Factors): boolean =>
  !policy.twoFactor?.required ||
  Boolean(session.secondFactorAt) ||
  isExempt(policy, session.signInMethod);

/** Returns whether the policy accepts a session at the running endpoint. */
export async function acceptsSession(
  { ctx }: Isolation,
  session: SessionWithMethod,
  { adapter, isFromCookie }: SessionSource,
): Promise<boolean> {
  // The session of an API key has no factors. `refuseEarly` limits what API keys can do.
  if (OF_KEY in session) return true;
  // A setup session counts only if it is stored. A new one deletes the earlier ones, but their
  // cached copies in cookies still look valid.
  if (isFromCookie && isSetup(session)) return false;
  const policy = await policyOf(ctx, session.tenantId ?? null, adapter);
  const { isAccepted, keptCookie, isEnrollmentRefused } = await judge(policy, session);
  // Otherwise, `/get-session` would delete the cookie, because it does not find the session.
  if (keptCookie) keepCookie(keptCookie);
  if (isEnrollmentRefused) policyRequest.get().isEnrollmentRefused = true;
  return isAccepted;
}

interface Verdict {
  /** The session counts at the running endpoint. */
  isAccepted: boolean;
  /** The name of a cookie that stays in the browser, although the session does not count. */
  keptCookie?: string | undefined;
  /** The session is for setting up a second factor, but not for the one that is asked for. */
  isEnrollmentRefused?: boolean;
}

const ACCEPTED: Verdict = { isAccepted: true };
const REFUSED: Verdict = { isAccepted: false };

async function judge(
  policy: TenantPolicy | null | undefined,
  session: SessionWithMethod,
): Promise<Verdict> {
  const { counting } = policyRequest.get();
  // Goes by `createdAt`, because better-auth extends `expiresAt` of a session that is used.
  if (isSetup(session) && isOver(session)) return counting === "any" ? ACCEPTED : REFUSED;
  if (!policy || satisfies(policy, session) || counting === "any") return ACCEPTED;
  if (currentRequest().isCheckingPrefix) return isSetup(session) ? ACCEPTED : REFUSED;
  const endpoint = currentEndpoint();
  const { path = "", body } = endpoint ?? {};
  // The user may revoke this session although it does not count. Otherwise it would be valid again
  // once the policy changes.
  if (path === "/revoke-session" && body?.token === session.token) return ACCEPTED;
  if (!isSetup(session) || !endpoint) return REFUSED;
  const isEnrolling = counting === "setup" && ENROLLS.includes(path);
  if (path === "/sign-out") return isEnrolling ? ACCEPTED : REFUSED;
  const { name } = endpoint.context.authCookies.sessionToken;
  const keptCookie = FIRST_STEPS.includes(path) ? undefined : name;
  if (!isEnrolling) return { ...REFUSED, keptCookie };
  const isAccepted = await mayEnroll(policy, endpoint, String(session.userId));
  return { isAccepted, keptCookie, isEnrollmentRefused: !isAccepted };
}

const isOver = ({ createdAt }: SessionWithMethod) =>
  !(Date.now() - new Date(createdAt ?? "").getTime() < SETUP_MS);

/**
 * Returns whether a setup session may set up the factor that the request asks for. Another session
 * of the user may have set up a second factor meanwhile. Then a thief who only knows the password
 * must not add another. Every lookup of a session ends here, by cookie or by bearer token.
 */
async function mayEnroll(policy: TenantPolicy, endpoint: Endpoint, userId: string) {
  const { path = "", body, context } = endpoint;
  const isUnproven = path === REGISTER_PASSKEY && !isUserVerified(endpoint);
  // With this method, the endpoint would switch the factor on before any code has reached the user.
  const isSwitchedOnEarly = path === "/two-factor/enable" && body?.method === "otp";
  const isForbidden = path.startsWith("/passkey/") && !allows(policy, "passkey");
  const adapter = await getCurrentAdapter(context.adapter);
  if (isUnproven || isSwitchedOnEarly || isForbidden) return false;
  return !(await secondFactorOf(policy, adapter, userId));
}

/** Returns whether a policy refuses a sign-in because no second factor can follow it. */
export const cannotSatisfy = (
  policy: TenantPolicy,
  endpoint: Endpoint | undefined,
  method: SignInMethod | undefined,
): boolean =>
  policy.twoFactor?.required === true &&
  !isExempt(policy, method) &&
  !CAN_SATISFY.includes(endpoint?.path ?? "");

/** Returns whether users can get two factors by a method, or need only one: see `CAN_SATISFY`. */
export const canHaveSecondFactor = (policy: TenantPolicy, method: SignInMethod): boolean =>
  !policy.twoFactor?.required ||
  isExempt(policy, method) ||
  ["password", "phone", "passkey"].includes(method);

/**
 * The methods to record, if not those of the policy. Sign-in by phone number takes a password.
 * electron() continues a session of the browser, which this request does not carry.
 */
const RECORDED: Readonly<Record<string, string>> = {
  "/sign-in/phone-number": "password",
  "/electron/token": "electron",
};

/**
 * R14: records the sign-in method and factor of a new session. Refuses a session that cannot have
 * the two factors that the policy requires.
 */
export async function admitSession(
  { ctx }: Isolation,
  { tenantId, session, isNew, adapter }: AdmittedSession,
): Promise<Row | undefined> {
  if (!isNew) return undefined;
  const policy = await policyOf(ctx, tenantId);
  // Without a policy, sessions of the platform stay as better-auth creates them.
  if (tenantId === null && !policy) return undefined;
  const factors = currentFactors(tenantId);
  if (!policy?.twoFactor?.required) return factors;
  const changes = await admitFactors(policy, adapter, { ...session, ...factors }).catch((error) => {
    throw isAPIError(error) ? asErrorRedirect(error) : error;
  });
  return { ...factors, ...changes };
}

/** Returns the sign-in method and factor to record in the new session. */
function currentFactors(tenantId: string | null): Factors {
  const endpoint = currentEndpoint();
  const method = methodOf(endpoint);
  const own: SessionWithMethod | undefined = endpoint?.context.session?.session;
  const { path = "" } = endpoint ?? {};
  const now = new Date();
  if (method !== CONTINUES) {
    const hasBoth = method === "passkey" && isUserVerified(endpoint);
    const signInMethod = RECORDED[path] ?? method ?? null;
    return { signInMethod, secondFactorAt: hasBoth ? now : null };
  }
  if (path.startsWith(VERIFY)) return { signInMethod: firstMethod(own), secondFactorAt: now };
  // An operator who impersonates a tenant's user has signed in under the platform's policy. So the
  // tenant's policy asks for no second factor.
  const isOperator = path === "/admin/impersonate-user" && (own?.tenantId ?? null) !== tenantId;
  if (isOperator) return { signInMethod: null, secondFactorAt: now };
  const isOff = path === "/two-factor/disable";
  const secondFactorAt = (!isOff && own?.secondFactorAt) || null;
  return { signInMethod: own?.signInMethod ?? null, secondFactorAt };
}

const firstMethod = (own: Factors | undefined) =>
  own ? (own.signInMethod?.replace(SETUP, "") ?? null) : "password";

/**
 * Refuses a new session that cannot have two factors. The session of a user without a second factor
 * becomes a setup session. If better-auth is about to ask for the second factor, the session stays
 * invalid. better-auth then deletes it or, for a trusted device, `completeFactors` completes it.
 */
async function admitFactors(
  policy: TenantPolicy,
  adapter: DBTransactionAdapter,
  session: SessionWithMethod,
): Promise<Partial<SessionWithMethod>> {
  const { path = "" } = currentEndpoint() ?? {};
  const userId = String(session.userId);
  if (satisfies(policy, session)) {
    if (await isByUnverifiedApp(path, adapter, userId)) throw policyError("TWO_FACTOR_REQUIRED");
    return {};
  }
  const ends = { expiresAt: new Date(Date.now() + SETUP_MS) };
  if (isSetup(session)) return ends;
  const isFirstStep = FIRST_STEPS.includes(path);
  if (!isFirstStep && path !== "/sign-up/email") throw policyError("TWO_FACTOR_REQUIRED");
  const factor = await secondFactorOf(policy, adapter, userId);
  if (factor === "passkey") throw policyError("TWO_FACTOR_REQUIRED", "Sign in with your passkey");
  if (factor) return { signInMethod: null };
  // Not for a new user, who has nothing to remove: the deletion uses no index, and would wait for
  // locks on the codes of other users.
  if (isFirstStep) await startOver(adapter, userId);
  return { signInMethod: `${SETUP}${session.signInMethod}`, ...ends };
}

/**
 * Returns whether a backup code belongs to an authenticator app that was never verified.
 * better-auth accepts these codes, and anyone who knows the password can create them.
 */
const isByUnverifiedApp = async (path: string, adapter: DBTransactionAdapter, userId: string) =>
  path === `${VERIFY}backup-code` && !(await hasApp(adapter, userId));

async function hasApp(adapter: DBTransactionAdapter, userId: string): Promise<boolean> {
  const where = clauses({ userId });
  const row = await adapter.findOne<{ verified?: boolean }>({ model: "twoFactor", where });
  return row !== null && row.verified !== false;
}

/** Returns a user's second factor: an authenticator app, codes by mail or phone, or a passkey. */
async function secondFactorOf(policy: TenantPolicy, adapter: DBTransactionAdapter, userId: string) {
  const user = await readUser(adapter, userId);
  if (user?.twoFactorEnabled) return (await hasApp(adapter, userId)) ? "app" : "otp";
  if (!currentEndpoint()?.context.tables.passkey || !allows(policy, "passkey")) return undefined;
  const count = await adapter.count({ model: "passkey", where: clauses({ userId }) });
  return count > 0 ? "passkey" : undefined;
}

/**
 * Removes all of an earlier second factor or setup before a user sets one up: an attacker who knows
 * the password may have left it behind. Trusted devices are verifications with the user's id. So
 * are links that reset a password, which are deleted too, because their identifiers may be hashed,
 * and then look alike. Trusted devices in secondary storage cannot be found, and expire.
 */
async function startOver(adapter: DBTransactionAdapter, userId: string): Promise<void> {
  const { internalAdapter, tables } = currentEndpoint()?.context ?? {};
  await countingAny(async () => {
    for (const session of (await internalAdapter?.listSessions(userId)) ?? []) {
      const { token, secondFactorAt, impersonatedBy, ...rest }: SessionWithMethod = session;
      const isEarlier = isSetup(rest) || (secondFactorAt && !impersonatedBy);
      if (isEarlier) await internalAdapter?.deleteSession(String(token));
    }
  });
  await adapter.deleteMany({ model: "twoFactor", where: clauses({ userId }) });
  if (!tables?.verification) return;
  await adapter.deleteMany({ model: "verification", where: clauses({ value: userId }) });
}

/**
 * Refuses to switch off a second factor that the policy requires. Lets setup sessions count at the
 * endpoints that set one up.
 */
export const openEnrollment: BeforeHook = {
  matcher: ({ path = "" }) =>
    [...ENROLLS, "/two-factor/disable", "/admin/update-user"].includes(path) &&
    policyRequest.get().policy?.twoFactor?.required === true,

  handler: plainHook(({ path = "", body }) => {
    const isSwitch = path === "/two-factor/disable" || body?.data?.twoFactorEnabled !== undefined;
    if (isSwitch) throw policyError("TWO_FACTOR_REQUIRED");
    if (ENROLLS.includes(path)) policyRequest.get().counting = "setup";
  }),
};

export const closeEnrollment: AfterHook = {
  matcher: () => policyRequest.get().counting !== undefined,

  handler: plainHook(({ context }) => {
    const request = policyRequest.get();
    request.counting = undefined;
    const { returned } = context;
    const isUnauthorized = isAPIError(returned) && returned.statusCode === 401;
    if (isUnauthorized && request.isEnrollmentRefused)
      context.returned = policyError("TWO_FACTOR_REQUIRED");
  }),
};

type Found = { session: SessionWithMethod; user: { twoFactorEnabled?: boolean } };

/** Returns the session that now has both factors, if that is not recorded in it yet. */
function completed({ path = "", context }: Parameters<AfterHook["matcher"]>[0]): Found | undefined {
  const { newSession, session, returned } = context as {
    newSession: Found | null;
    session: Found | null;
    returned?: unknown;
  };
  if (isAPIError(returned)) return undefined;
  // A session with the caller's token is not new: better-auth has only extended the caller's
  // session.
  if (newSession && newSession.session.token !== session?.session.token) {
    const { signInMethod, secondFactorAt } = newSession.session;
    // A session without factors that still exists is of a trusted device. For other devices,
    // better-auth deletes the session and asks for the second factor.
    const isPending = signInMethod === null && !secondFactorAt && FIRST_STEPS.includes(path);
    return isPending && newSession.user.twoFactorEnabled ? newSession : undefined;
  }
  if (!session || session.session.secondFactorAt || OF_KEY in session.session) return undefined;
  if (path.startsWith(VERIFY)) return session;
  return path === REGISTER_PASSKEY && isSetup(session.session) ? session : undefined;
}

/** Turns a setup session or a pending session into a normal session after both factors. */
export const completeFactors: AfterHook = {
  matcher: (ctx) => completed(ctx) !== undefined,

  handler: createAuthMiddleware(async (ctx) => {
    const { session, user } = completed(ctx as never) as Found;
    const { internalAdapter, sessionConfig } = ctx.context;
    if (await isByUnverifiedApp(ctx.path, ctx.context.adapter, String(session.userId))) return;
    const isShort = ctx.body?.rememberMe === false ? [true] : [];
    const seconds = Math.min(
      sessionConfig.expiresIn,
      isShort.length ? DAY_S : Number.POSITIVE_INFINITY,
    );
    const change = {
      signInMethod: session.signInMethod ? firstMethod(session) : "password",
      secondFactorAt: new Date(),
      expiresAt: new Date(Date.now() + seconds * 1000),
    };
    await countingAny(() => internalAdapter.updateSession(String(session.token), change));
    const changed = { session: { ...session, ...change }, user };
    await setSessionCookie(ctx, changed as never, ...isShort);
  }),
};

/** Tells the page that the user must set up a second factor, and hides the setup session. */
export const answerWithSetup: AfterHook = {
  matcher: ({ context }) => isSetup((context.newSession?.session ?? {}) as SessionWithMethod),

  handler: plainHook(({ path = "", context }) => {
    const { token } = context.newSession?.session ?? {};
    const isSignIn = [...FIRST_STEPS, "/sign-up/email"].includes(path);
    if (isSignIn) context.returned = { twoFactorSetupRequired: true, token };
    // Other plugins may issue tokens for a new session, so they must not see a setup session.
    context.setNewSession(null);
  }),
};

const USER_VERIFIED = 0x04;
const FLAGS_AT = 32;

/**
 * Returns whether the passkey in the body has verified its user, by a PIN or a fingerprint. The
 * flag is in the data that the authenticator signs. The passkey plugin verifies the signature
 * before it creates a session. Accepts plain base64url only: that plugin's decoder must not read
 * other bytes.
 */
function isUserVerified(endpoint: Endpoint | undefined): boolean {
  const { authenticatorData, attestationObject } = endpoint?.body?.response?.response ?? {};
  const isSignIn = endpoint?.path !== REGISTER_PASSKEY;
  const sent: unknown = isSignIn ? authenticatorData : attestationObject;
  if (typeof sent !== "string" || sent.length > 100_000 || !/^[\w-]+$/.test(sent)) return false;
  const bytes = z.util.base64urlToUint8Array(sent);
  const start = isSignIn ? 0 : authDataIn(bytes);
  return ((bytes[start + FLAGS_AT] ?? 0) & USER_VERIFIED) !== 0;
}

/**
 * Returns where the authenticator's data begins in an attestation object. The object is CBOR, and
 * the data is its last entry, a byte string with one or two bytes of length. The object is not
 * verified: without attestation the server knows no key that signs it, and users could only weaken
 * their own passkeys.
 */
function authDataIn(bytes: Uint8Array): number {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const header = text.lastIndexOf("hauthData") + "hauthData".length;
  return header + (bytes[header] === 0x59 ? 3 : 2);
}
