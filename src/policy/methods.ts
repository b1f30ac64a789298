import { isSignIn } from "../constants";
import { OF_KEY } from "../isolation/isolation";
import { adminPlugin, type Endpoint } from "../request/endpoint";
import type { SignInMethod, TenantPolicy } from "./schema";

/** Not a way of its own: who comes here has come in by another way already. */
export const CONTINUES = "continues";

type Way = SignInMethod | typeof CONTINUES | ((endpoint: Endpoint) => SignInMethod | undefined);

const social = (id: unknown): SignInMethod | undefined =>
  typeof id === "string" ? `social:${id}` : undefined;

/**
 * R14: the way in that an endpoint is, for every endpoint of better-auth and its official plugins
 * that makes a session. `test/policy/methods.servers.test.ts` walks through the plugins: one that is missing
 * here is a failing test, and refused in tenants whose policy names ways.
 */
export const SIGN_IN_METHODS: Readonly<Record<string, Way>> = {
  "/sign-up/email": "password",
  "/sign-in/email": "password",
  "/sign-in/username": "password",
  // The mail of a sign-up; a code that was mailed is a way of its own, see below.
  "/verify-email": "password",
  "/sign-in/social": ({ body }) => social(body?.provider),
  "/callback/:id": ({ params }) => social(params?.id),
  "/one-tap/callback": "social:google",
  "/magic-link/verify": "magic-link",
  "/sign-in/email-otp": "email-otp",
  // Takes a code from whoever reads the mailbox, also for an address that is verified already.
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
  // A browser that is signed in hands over to an app, as it does to a device.
  "/electron/token": "device",
  // A second factor follows a first step that has made a session, and was looked at there.
  "/two-factor/verify-totp": CONTINUES,
  "/two-factor/verify-otp": CONTINUES,
  "/two-factor/verify-backup-code": CONTINUES,
  // A session in place of the one that the caller has.
  "/two-factor/enable": CONTINUES,
  "/two-factor/disable": CONTINUES,
  "/change-password": CONTINUES,
  "/admin/impersonate-user": CONTINUES,
};

/** The way that a new user comes by. An application may make one for whom a passkey is registered. */
export const methodOfNewUser = (endpoint: Endpoint | undefined) =>
  endpoint?.path === "/passkey/generate-register-options" ? "passkey" : methodOf(endpoint);

/**
 * What a second factor ends: better-auth asks for one after these.
 *
 * Guarded by "a second factor is asked for after a password or a phone number".
 */
const FIRST_STEPS: SignInMethod[] = ["password", "phone"];

/** The ways that a new session may be by, one of which the policy has to allow. */
export function methodsOf(endpoint: Endpoint | undefined): ReturnType<typeof methodOf>[] {
  const isSecondStep = endpoint?.path?.startsWith("/two-factor/verify-");
  return isSecondStep && !endpoint?.context.session ? FIRST_STEPS : [methodOf(endpoint)];
}

/** What the application has set up a plugin with. */
const optionsOf = ({ context: { options } }: Endpoint, plugin: string): Record<string, unknown> =>
  options.plugins?.find(({ id }) => id === plugin)?.options ?? {};

/** With a grant of another plugin, a code may be for a token of OAuth, which is no session. */
const device = (endpoint: Endpoint): SignInMethod | undefined =>
  optionsOf(endpoint, "device-authorization").grant ? undefined : "device";

/** Where a way in begins that ends at one of the endpoints above. */
const STARTS: Readonly<Record<string, Way>> = {
  // Asked where the flow gets its provider: what it is for is in its state.
  "/callback/:id": ({ params }) => social(params?.id),
  "/sign-in/magic-link": "magic-link",
  "/sign-in/sso": "sso",
  // Asked before the account is linked, see `enterprise/sso-state.ts`.
  "/sso/callback/:providerId": "sso",
  "/sso/saml2/sp/acs/:providerId": "sso",
  "/device/code": device,
  "/device/approve": device,
  "/email-otp/send-verification-otp": ({ body }) =>
    body?.type === "sign-in" ? "email-otp" : undefined,
  "/phone-number/verify": ({ body }) =>
    body?.updatePhoneNumber || body?.disableSession ? undefined : "phone",
};

/**
 * The way in that an endpoint starts or is, if it is there for nothing else. A session would be
 * refused as well, but too late: whoever proves an address for the first time, by a link or a code,
 * loses the password of before.
 */
export function startedMethod(endpoint: Endpoint): SignInMethod | undefined {
  const { path = "" } = endpoint;
  const start = Object.hasOwn(STARTS, path) ? STARTS[path] : undefined;
  if (typeof start === "function") return start(endpoint);
  const way = start ?? (isSignIn(path) ? methodOf(endpoint) : undefined);
  return way === CONTINUES ? undefined : way;
}

/**
 * Whether an API key is about to change its user where only a session could go on afterwards: where
 * a second factor is switched on.
 *
 * Guarded by "R14: an API key switches no second factor on by %s".
 */
export function changesSecondFactorByKey(endpoint: Endpoint): boolean {
  const { path, body, context } = endpoint;
  const switchesOn =
    path === "/two-factor/enable"
      ? body?.method === "otp" || optionsOf(endpoint, "two-factor").skipVerificationOnEnable
      : SWITCHES_ON.includes(path ?? "") && !context.session?.user.twoFactorEnabled;
  return Boolean(switchesOn) && methodOf(endpoint) === undefined;
}

/** Not a backup code, which nobody has before. */
const SWITCHES_ON = ["/two-factor/verify-totp", "/two-factor/verify-otp"];

/** The way in that an endpoint is; undefined where nobody knows. */
export function methodOf(
  endpoint: Endpoint | undefined,
): SignInMethod | typeof CONTINUES | undefined {
  const path = endpoint?.path ?? "";
  if (!endpoint || !Object.hasOwn(SIGN_IN_METHODS, path)) return undefined;
  const way = SIGN_IN_METHODS[path];
  if (typeof way === "function") return way(endpoint);
  if (way !== CONTINUES) return way;
  const { context } = endpoint;
  // A plugin of the application that calls itself `admin` gets no further than any other.
  if (path.startsWith("/admin/") && !adminPlugin(context)) return undefined;
  return OF_KEY in (context.session?.session ?? {}) ? undefined : CONTINUES;
}

/** Whether a policy lets people in by a way. One that names no ways lets them in by all. */
export function allows(
  { methods }: Pick<TenantPolicy, "methods">,
  way: SignInMethod | undefined,
): boolean {
  if (!methods) return true;
  if (way === undefined) return false;
  return methods.includes(way) || (way.startsWith("social:") && methods.includes("social"));
}
