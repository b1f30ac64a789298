import { adminPlugin } from "./admin-endpoints";
import type { Endpoint } from "./request";
import { OF_KEY } from "./session";
/*
 * Sign-in methods of the endpoints of better-auth and its official plugins.
 */

export const METHOD_NAMES = [
  "password",
  "social",
  "magic-link",
  "email-otp",
  "phone",
  "passkey",
  "sso",
  "siwe",
  "anonymous",
  "device",
] as const;

/** A sign-in method. `social:google` is the social sign-in with Google. */
export type SignInMethod = (typeof METHOD_NAMES)[number] | `social:${string}`;

/** Stands for endpoints that continue an earlier sign-in. It is not a sign-in method. */
export const CONTINUES = "continues";

export type Method =
  | SignInMethod
  | typeof CONTINUES
  | ((endpoint: Endpoint) => SignInMethod | undefined);

const social = (id: unknown): SignInMethod | undefined =>
  typeof id === "string" ? `social:${id}` : undefined;

/**
 * R14: the sign-in method of every endpoint of better-auth and its official plugins that creates
 * sessions. `test/features/policy/methods.servers.test.ts` fails if an endpoint is missing. Tenants
 * whose policy lists methods refuse a missing endpoint.
 */
export const SIGN_IN_METHODS: Readonly<Record<string, Method>> = {
  "/sign-up/email": "password",
  "/sign-in/email": "password",
  "/sign-in/username": "password",
  // The link mailed at sign-up. A mailed code is a different method, see below.
  "/verify-email": "password",
  "/sign-in/social": ({ body }) => social(body?.provider),
  "/callback/:id": ({ params }) => social(params?.id),
  "/callback/:id/oauth-proxy": ({ params }) => social(params?.id),
  "/one-tap/callback": "social:google",
  "/magic-link/verify": "magic-link",
  "/sign-in/email-otp": "email-otp",
  // Accepts a mailed code, also for an email that is verified already.
  "/email-otp/verify-email": "email-otp",
  "/sign-in/phone-number": "phone",
  "/phone-number/verify": "phone",
  "/passkey/verify-authentication": "passkey",
  "/passkey/verify-registration": "passkey",
  "/sso/callback": "sso",
  "/sso/callback/:providerId": "sso",
  "/sso/saml2/sp/acs/:providerId": "sso",
  "/siwe/verify": "siwe",
  "/sign-in/anonymous": "anonymous",
  "/device/token": "device",
  "/electron/token": "device",
  // The policy checked the sign-in method at the first step of the sign-in.
  "/two-factor/verify-totp": CONTINUES,
  "/two-factor/verify-otp": CONTINUES,
  "/two-factor/verify-backup-code": CONTINUES,
  // These replace the caller's session.
  "/two-factor/enable": CONTINUES,
  "/two-factor/disable": CONTINUES,
  "/change-password": CONTINUES,
  "/admin/impersonate-user": CONTINUES,
};

/** Returns the sign-in method of an endpoint; undefined if it is not known. */
export function methodOf(
  endpoint: Endpoint | undefined,
): SignInMethod | typeof CONTINUES | undefined {
  const path = endpoint?.path ?? "";
  if (!endpoint || !Object.hasOwn(SIGN_IN_METHODS, path)) return undefined;
  const method = SIGN_IN_METHODS[path];
  if (typeof method === "function") return method(endpoint);
  if (method !== CONTINUES) return method;
  const { context } = endpoint;
  if (path.startsWith("/admin/") && !adminPlugin(context)) return undefined;
  return OF_KEY in (context.session?.session ?? {}) ? undefined : CONTINUES;
}

/** Endpoints that may start a sign-in which another call completes. */
export const STARTS_SIGN_IN = [
  "/sign-in/magic-link",
  "/sign-in/sso",
  "/device/code",
  "/device/approve",
  "/email-otp/send-verification-otp",
  "/phone-number/verify",
] as const;

/** Endpoints that complete a sign-in or a sign-up, by paths without `/sign-in/`. */
const COMPLETES = [
  "/magic-link/verify",
  "/one-tap/callback",
  "/siwe/verify",
  "/passkey/verify-authentication",
  "/device/token",
  // Deprecated. It does not name its provider, so a policy that lists methods refuses it.
  "/oauth-proxy-callback",
];

/**
 * Returns whether an endpoint signs in or up, or may send a link or code to sign in with. Some also
 * do other things: `/phone-number/verify` may change a number.
 */
export const isSignIn = (path = "") =>
  /^\/sign-(in|up)\//.test(path) ||
  COMPLETES.includes(path) ||
  (STARTS_SIGN_IN as readonly string[]).includes(path);
