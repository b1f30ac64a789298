import { getCurrentAdapter } from "@better-auth/core/context";
import { createAuthMiddleware, isAPIError } from "better-auth/api";
import { setSessionCookie } from "better-auth/cookies";
import type { DBTransactionAdapter } from "better-auth/types";
import * as z from "zod";
import { tenantError } from "../errors";
import { type AfterHook, type BeforeHook, clauses, silentHook } from "../framework";
import { OF_KEY } from "../isolation/isolation";
import { readUser } from "../isolation/users";
import { currentEndpoint, type Endpoint } from "../request/endpoint";
import { isFollowing, removedCookies } from "../request/prefix";
import { requestSlot, type SessionRow } from "../request/scope";
import { appliedPolicy } from "../setup/overrides";
import { allows, CONTINUES, methodOf } from "./methods";
import type { SignInMethod, TenantPolicy } from "./schema";

/*
 * `policy.twoFactor`. better-auth asks for a second factor where the user has one. What is here
 * decides which sessions count as signed in with two factors, and turns the first session of a user
 * without a second factor into a setup session, which is valid for setting one up and nothing else.
 */

/** In front of the `signInMethod` of a setup session. */
const SETUP = "setup:";
const SETUP_MS = 10 * 60_000;
/** As long as better-auth keeps a session that ends with the browser. */
const DAY_S = 86_400;

/** better-auth asks for the second factor after these, and deletes the session they created. */
const FIRST_STEPS = ["/sign-in/email", "/sign-in/username", "/sign-in/phone-number"];

const VERIFY = "/two-factor/verify-";
const REGISTER_PASSKEY = "/passkey/verify-registration";

/**
 * Where a setup session is valid. Not `/two-factor/get-totp-uri`, which would show the secret that
 * another session of the user is about to verify: `/two-factor/enable` returns the URI.
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

/**
 * What counts besides valid sessions: a setup session while one of these endpoints runs, and not in
 * the hooks of other plugins around it, which may issue tokens for the session that they find; any
 * session while this file itself completes or ends one.
 */
const counting = requestSlot<"setup" | "any">();

async function countingAny(run: () => Promise<unknown>): Promise<void> {
  counting.set("any");
  await run().finally(() => counting.set(undefined));
}

/** A setup session was found that may not set up what the request asks for. */
const isRefused = requestSlot<boolean>();

/** Endpoints that a second factor can follow, or that verify two at once. */
const CAN_SATISFY = [
  ...FIRST_STEPS,
  "/sign-up/email",
  "/passkey/generate-register-options",
  "/passkey/verify-authentication",
  REGISTER_PASSKEY,
];

type Factors = Pick<SessionRow, "signInMethod" | "secondFactorAt">;

export const isSetup = ({ signInMethod }: Factors): boolean =>
  signInMethod?.startsWith(SETUP) ?? false;

const isExempt = ({ twoFactor }: TenantPolicy, method: string | null | undefined) =>
  method != null && allows({ methods: twoFactor?.exemptMethods ?? [] }, method as SignInMethod);

/** Whether a session has the factors that a policy requires. */
export const satisfies = (policy: TenantPolicy, session: Factors): boolean =>
  !policy.twoFactor?.required ||
  Boolean(session.secondFactorAt) ||
  isExempt(policy, session.signInMethod);

/** Whether the policy lets a session count at the running endpoint. */
export function countsUnder(policy: TenantPolicy | null | undefined, session: SessionRow) {
  // better-auth moves the end of a session that is used.
  if (isSetup(session) && isOver(session)) return counting.get() === "any";
  if (!policy || satisfies(policy, session) || counting.get() === "any") return true;
  if (isFollowing.get()) return isSetup(session);
  const endpoint = currentEndpoint();
  const { path = "", body, context } = endpoint ?? {};
  // Its user ends it: it must not come back once the policy is another.
  if (path === "/revoke-session" && body?.token === session.token) return true;
  if (!isSetup(session) || !context) return false;
  const isEnrolling = counting.get() === "setup" && ENROLLS.includes(path);
  if (isEnrolling && path === "/sign-out") return true;
  // `get-session` would delete the cookie of a session that it does not find.
  const replacesCookie = path === "/sign-out" || FIRST_STEPS.includes(path);
  if (!replacesCookie) removedCookies.get().add(context.authCookies.sessionToken.name);
  return isEnrolling && endpoint ? mayEnroll(policy, endpoint, String(session.userId)) : false;
}

const isOver = ({ createdAt }: SessionRow) =>
  !(Date.now() - new Date(createdAt ?? "").getTime() < SETUP_MS);

/**
 * Whether a setup session may set up what the request asks for. This is asked where the session is
 * found, so no kind of credential leads past it: another session of the user may have set up a second
 * factor meanwhile, and a thief who only knows the password must not add another.
 */
async function mayEnroll(policy: TenantPolicy, endpoint: Endpoint, userId: string) {
  const { path = "", body, context } = endpoint;
  const isWeak = path === REGISTER_PASSKEY && !isUserVerified(endpoint);
  // It would be on before a code has ever reached the user.
  const isUnverified = path === "/two-factor/enable" && body?.method === "otp";
  const isForbidden = path.startsWith("/passkey/") && !allows(policy, "passkey");
  const adapter = await getCurrentAdapter(context.adapter);
  const isAllowed =
    !isWeak && !isUnverified && !isForbidden && !(await secondFactorOf(policy, adapter, userId));
  if (!isAllowed) isRefused.set(true);
  return isAllowed;
}

/** Whether a policy refuses a sign-in because no second factor can follow it. */
export const cannotSatisfy = (
  policy: TenantPolicy,
  endpoint: Endpoint | undefined,
  method: SignInMethod | undefined,
): boolean =>
  policy.twoFactor?.required === true &&
  !isExempt(policy, method) &&
  !CAN_SATISFY.includes(endpoint?.path ?? "");

/** Whether users can sign in by a method: see the endpoints above. */
export const canHaveSecondFactor = (policy: TenantPolicy, method: SignInMethod): boolean =>
  !policy.twoFactor?.required ||
  isExempt(policy, method) ||
  ["password", "phone", "passkey"].includes(method);

/** Not what a policy calls them: one is a password, the other continues a session unseen. */
const RECORDED: Readonly<Record<string, string>> = {
  "/sign-in/phone-number": "password",
  "/electron/token": "electron",
};

/** What a session that is created now says about how its user has signed in. */
export function currentFactors(tenantId: string | null): Factors {
  const endpoint = currentEndpoint();
  const method = methodOf(endpoint);
  const own: SessionRow | undefined = endpoint?.context.session?.session;
  const { path = "" } = endpoint ?? {};
  const now = new Date();
  if (method !== CONTINUES) {
    const hasBoth = method === "passkey" && isUserVerified(endpoint);
    const signInMethod = RECORDED[path] ?? method ?? null;
    return { signInMethod, secondFactorAt: hasBoth ? now : null };
  }
  if (path.startsWith(VERIFY)) return { signInMethod: firstMethod(own), secondFactorAt: now };
  // An operator who impersonates a user has signed in on the platform, by the platform's policy.
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
 * becomes a setup session. Where better-auth is about to ask for the second factor, the session stays
 * invalid until `completeFactors`: better-auth deletes it, or knows the device.
 */
export async function admitFactors(
  policy: TenantPolicy,
  adapter: DBTransactionAdapter,
  session: SessionRow,
): Promise<Partial<SessionRow>> {
  const { path = "" } = currentEndpoint() ?? {};
  const userId = String(session.userId);
  if (satisfies(policy, session)) {
    if (await isByUnverifiedApp(path, adapter, userId)) throw tenantError("TWO_FACTOR_REQUIRED");
    return {};
  }
  const ends = { expiresAt: new Date(Date.now() + SETUP_MS) };
  if (isSetup(session)) return ends;
  const isFirstStep = FIRST_STEPS.includes(path);
  if (!isFirstStep && path !== "/sign-up/email") throw tenantError("TWO_FACTOR_REQUIRED");
  const factor = await secondFactorOf(policy, adapter, userId);
  if (factor === "passkey") throw tenantError("TWO_FACTOR_REQUIRED", "Sign in with your passkey");
  if (factor) return { signInMethod: null };
  // A new user has nothing, and would wait for others' codes: no index leads to these.
  if (isFirstStep) await startOver(adapter, userId);
  return { signInMethod: `${SETUP}${session.signInMethod}`, ...ends };
}

/**
 * better-auth accepts the backup codes of an app that was never verified. Anyone who knows the
 * password could have had some made.
 */
const isByUnverifiedApp = async (path: string, adapter: DBTransactionAdapter, userId: string) =>
  path === `${VERIFY}backup-code` && !(await hasApp(adapter, userId));

async function hasApp(adapter: DBTransactionAdapter, userId: string): Promise<boolean> {
  const where = clauses({ userId });
  const row = await adapter.findOne<{ verified?: boolean }>({ model: "twoFactor", where });
  return row !== null && row.verified !== false;
}

/** The second factor of a user: an authenticator app, codes by mail or phone, or a passkey. */
async function secondFactorOf(policy: TenantPolicy, adapter: DBTransactionAdapter, userId: string) {
  const user = await readUser(adapter, userId);
  if (user?.twoFactorEnabled) return (await hasApp(adapter, userId)) ? "app" : "otp";
  if (!currentEndpoint()?.context.tables.passkey || !allows(policy, "passkey")) return undefined;
  const count = await adapter.count({ model: "passkey", where: clauses({ userId }) });
  return count > 0 ? "passkey" : undefined;
}

/**
 * A user who sets up a second factor has none. Nothing of an earlier one, or of another setup,
 * survives: someone who knows the password may have left it behind. A trusted device is a
 * verification with the user's id, as links that reset a password are, whose identifier may be hashed;
 * one in a secondary storage cannot be found, and expires.
 */
async function startOver(adapter: DBTransactionAdapter, userId: string): Promise<void> {
  const { internalAdapter, tables } = currentEndpoint()?.context ?? {};
  await countingAny(async () => {
    for (const session of (await internalAdapter?.listSessions(userId)) ?? []) {
      const { token, secondFactorAt, impersonatedBy, ...rest }: SessionRow = session;
      const isEarlier = isSetup(rest) || (secondFactorAt && !impersonatedBy);
      if (isEarlier) await internalAdapter?.deleteSession(String(token));
    }
  });
  await adapter.deleteMany({ model: "twoFactor", where: clauses({ userId }) });
  if (!tables?.verification) return;
  await adapter.deleteMany({ model: "verification", where: clauses({ value: userId }) });
}

/** While a policy requires a second factor, it is not switched off; setup sessions set one up. */
export const openEnrollment: BeforeHook = {
  matcher: ({ path = "" }) =>
    [...ENROLLS, "/two-factor/disable", "/admin/update-user"].includes(path) &&
    appliedPolicy.get()?.twoFactor?.required === true,

  handler: silentHook(({ path = "", body }) => {
    const isSwitch = path === "/two-factor/disable" || body?.data?.twoFactorEnabled !== undefined;
    if (isSwitch) throw tenantError("TWO_FACTOR_REQUIRED");
    if (ENROLLS.includes(path)) counting.set("setup");
  }),
};

export const closeEnrollment: AfterHook = {
  matcher: () => counting.get() !== undefined,

  handler: silentHook(({ context }) => {
    counting.set(undefined);
    const { returned } = context;
    const isUnauthorized = isAPIError(returned) && returned.statusCode === 401;
    if (isUnauthorized && isRefused.get()) context.returned = tenantError("TWO_FACTOR_REQUIRED");
  }),
};

type Found = { session: SessionRow; user: { twoFactorEnabled?: boolean } };

/** The session that has had both factors by the end of a request, and does not say so yet. */
function completed({ path = "", context }: Parameters<AfterHook["matcher"]>[0]): Found | undefined {
  const { newSession, session, returned } = context as {
    newSession: Found | null;
    session: Found | null;
    returned?: unknown;
  };
  if (isAPIError(returned)) return undefined;
  // Otherwise the caller's own session was extended.
  if (newSession && newSession.session.token !== session?.session.token) {
    const { signInMethod, secondFactorAt } = newSession.session;
    // better-auth knows the device: otherwise it would have deleted the session.
    const isPending = signInMethod === null && !secondFactorAt && FIRST_STEPS.includes(path);
    return isPending && newSession.user.twoFactorEnabled ? newSession : undefined;
  }
  if (!session || session.session.secondFactorAt || OF_KEY in session.session) return undefined;
  if (path.startsWith(VERIFY)) return session;
  return path === REGISTER_PASSKEY && isSetup(session.session) ? session : undefined;
}

/** Makes a session a normal one once both factors were verified. */
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

/** Tells the page that a second factor has to be set up, and other plugins nothing. */
export const answerWithSetup: AfterHook = {
  matcher: ({ context }) => isSetup((context.newSession?.session ?? {}) as SessionRow),

  handler: silentHook(({ path = "", context }) => {
    const { token } = context.newSession?.session ?? {};
    const isSignIn = [...FIRST_STEPS, "/sign-up/email"].includes(path);
    if (isSignIn) context.returned = { twoFactorSetupRequired: true, token };
    // Some issue tokens for a new session.
    context.setNewSession(null);
  }),
};

const USER_VERIFIED = 0x04;
const FLAGS_AT = 32;

/**
 * Whether the passkey in the body has verified its user, by a PIN or a fingerprint. The flag is in
 * the data that the authenticator signs, and the plugin verifies the signature before it creates a
 * session. Only base64url without anything else: the plugin's decoder must not read other bytes.
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
 * Where the authenticator's data begins in an attestation object: CBOR, in which it is the last
 * entry, as a byte string with one or two bytes of length. What a new passkey says of itself is not
 * signed by anything the server knows, so this need not be safe from its owner.
 */
function authDataIn(bytes: Uint8Array): number {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const header = text.lastIndexOf("hauthData") + "hauthData".length;
  return header + (bytes[header] === 0x59 ? 3 : 2);
}
