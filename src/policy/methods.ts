import type { AuthContext } from "better-auth";
import { OF_KEY } from "../isolation/isolation";
import { adminPlugin, type Endpoint } from "../request/endpoint";
import type { SignInMethod, TenantPolicy } from "./schema";

/** Not a sign-in method: the caller has signed in by another one before. */
export const CONTINUES = "continues";

type Method = SignInMethod | typeof CONTINUES | ((endpoint: Endpoint) => SignInMethod | undefined);

const social = (id: unknown): SignInMethod | undefined =>
  typeof id === "string" ? `social:${id}` : undefined;

/**
 * R14: the sign-in method of every endpoint of better-auth and its official plugins that creates
 * sessions. `test/policy/methods.servers.test.ts` goes through the plugins: a missing endpoint fails
 * that test, and is refused in tenants whose policy lists methods.
 */
export const SIGN_IN_METHODS: Readonly<Record<string, Method>> = {
  "/sign-up/email": "password",
  "/sign-in/email": "password",
  "/sign-in/username": "password",
  // The link of a sign-up. A mailed code is a method of its own, see below.
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
  // A second factor follows a first step, which was checked when it created a session.
  "/two-factor/verify-totp": CONTINUES,
  "/two-factor/verify-otp": CONTINUES,
  "/two-factor/verify-backup-code": CONTINUES,
  // These replace the caller's session.
  "/two-factor/enable": CONTINUES,
  "/two-factor/disable": CONTINUES,
  "/change-password": CONTINUES,
  "/admin/impersonate-user": CONTINUES,
};

/** The sign-in methods that the application has at a tenant, or on the platform (null). */
export function availableMethods(
  { options }: AuthContext,
  tenantId: string | null,
  providers: Iterable<string>,
): SignInMethod[] {
  const { emailAndPassword, plugins = [], disabledPaths = [] } = options;
  const endpoints = plugins.flatMap((plugin) => Object.values(plugin.endpoints ?? {}));
  const paths = new Set(["/sign-in/email", ...endpoints.map(({ path }) => path)]);
  // electron() works on the platform only.
  if (tenantId !== null) paths.delete("/electron/token");
  const methods = Object.entries(SIGN_IN_METHODS).map(([path, method]) =>
    paths.has(path) && !disabledPaths.includes(path) ? method : CONTINUES,
  );
  const isMethod = (method: Method): method is SignInMethod =>
    typeof method === "string" && method !== CONTINUES && !method.startsWith("social:");
  const isSetUp = (method: SignInMethod) => method !== "password" || emailAndPassword?.enabled;
  const social = [...providers].map((id): SignInMethod => `social:${id}`);
  return [...new Set([...methods.filter(isMethod).filter(isSetUp), ...social])];
}

/** The method by which a new user comes. An application may create users when a passkey is registered. */
export const methodOfNewUser = (endpoint: Endpoint | undefined) =>
  endpoint?.path === "/passkey/generate-register-options" ? "passkey" : methodOf(endpoint);

/**
 * better-auth asks for a second factor after these.
 *
 * Guarded by "a second factor is asked for after a password or a phone number".
 */
const FIRST_STEPS: SignInMethod[] = ["password", "phone"];

/** The methods that a new session may come from. The policy has to allow one of them. */
export function methodsOf(endpoint: Endpoint | undefined): ReturnType<typeof methodOf>[] {
  const isSecondStep = endpoint?.path?.startsWith("/two-factor/verify-");
  return isSecondStep && !endpoint?.context.session ? FIRST_STEPS : [methodOf(endpoint)];
}

const optionsOf = ({ context: { options } }: Endpoint, plugin: string): Record<string, unknown> =>
  options.plugins?.find(({ id }) => id === plugin)?.options ?? {};

/** With another plugin's grant, a code may be for an OAuth token, which is not a session. */
const device = (endpoint: Endpoint): SignInMethod | undefined =>
  optionsOf(endpoint, "device-authorization").grant ? undefined : "device";

/** Endpoints that start a sign-in which ends at one of those above, or that do so only sometimes. */
const STARTS: Readonly<Record<string, Method>> = {
  "/sign-in/magic-link": "magic-link",
  "/sign-in/sso": "sso",
  "/device/code": device,
  "/device/approve": device,
  "/email-otp/send-verification-otp": ({ body }) =>
    body?.type === "sign-in" ? "email-otp" : undefined,
  "/phone-number/verify": ({ body }) =>
    body?.updatePhoneNumber || body?.disableSession ? undefined : "phone",
};

/** Endpoints that complete a sign-in, and do nothing else. */
const COMPLETES = [
  "/magic-link/verify",
  "/one-tap/callback",
  "/siwe/verify",
  "/passkey/verify-authentication",
  "/device/token",
  // Deprecated: it does not name its provider, so it is refused if the policy lists methods.
  "/oauth-proxy-callback",
];

/** Endpoints that only sign in, or send a link or code to sign in with. */
export const isSignIn = (path = "") =>
  /^\/sign-(in|up)\//.test(path) || COMPLETES.includes(path) || Object.hasOwn(STARTS, path);

/** Checked later, before an account is linked: where the flow gets its provider, and in `enterprise`. */
const CALLBACKS = ["/callback/:id", "/sso/callback/:providerId", "/sso/saml2/sp/acs/:providerId"];

/**
 * The method that an endpoint starts or completes, if it does nothing else. The session would be
 * refused as well, but too late: better-auth removes an unproven password once a link or code proves
 * the email.
 */
export function startedMethod(endpoint: Endpoint): SignInMethod | undefined {
  const { path = "" } = endpoint;
  if (!isSignIn(path) && !CALLBACKS.includes(path)) return undefined;
  const method = Object.hasOwn(STARTS, path) ? STARTS[path] : methodOf(endpoint);
  if (typeof method === "function") return method(endpoint);
  return method === CONTINUES ? undefined : method;
}

/**
 * Whether an API key is about to switch on a second factor, after which only a session could go on.
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

/** Backup codes exist only after that. */
const SWITCHES_ON = ["/two-factor/verify-totp", "/two-factor/verify-otp"];

/** The sign-in method of an endpoint; undefined if it is not known. */
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

/** Whether a policy allows a method. A policy that lists none allows all. */
export function allows(
  { methods }: Pick<TenantPolicy, "methods">,
  method: SignInMethod | undefined,
): boolean {
  if (!methods) return true;
  if (method === undefined) return false;
  return methods.includes(method) || (method.startsWith("social:") && methods.includes("social"));
}
