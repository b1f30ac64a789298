import type { AuthContext } from "better-auth";
import type { Endpoint } from "../../core/request";
import type { SignInMethod } from "../../core/sign-in-endpoints";
import {
  CONTINUES,
  isSignIn,
  type Method,
  methodOf,
  SIGN_IN_METHODS,
  type STARTS_SIGN_IN,
} from "../../core/sign-in-endpoints";
import type { TenantPolicy } from "./schema";

/** Lists the sign-in methods that the application has in a tenant, or on the platform (null). */
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

/**
 * Returns the method by which a new user signs up. An application may create users when a passkey
 * is registered.
 */
export const methodOfNewUser = (endpoint: Endpoint | undefined) =>
  endpoint?.path === "/passkey/generate-register-options" ? "passkey" : methodOf(endpoint);

/**
 * The methods after which better-auth asks for a second factor.
 *
 * Guarded by "a second factor is asked for after a password or a phone number".
 */
const FIRST_STEPS: SignInMethod[] = ["password", "phone"];

/**
 * Returns the methods that the sign-in may have used: at the second factor, the first is not known.
 * The policy must allow one of them.
 */
export function methodsOf(endpoint: Endpoint | undefined): ReturnType<typeof methodOf>[] {
  const isSecondStep = endpoint?.path?.startsWith("/two-factor/verify-");
  return isSecondStep && !endpoint?.context.session ? FIRST_STEPS : [methodOf(endpoint)];
}

const optionsOf = ({ context: { options } }: Endpoint, plugin: string): Record<string, unknown> =>
  options.plugins?.find(({ id }) => id === plugin)?.options ?? {};

/**
 * The method of a device code. Undefined if another plugin sets `grant`: then the code may be for
 * an OAuth token, which is not a session.
 */
const device = (endpoint: Endpoint): SignInMethod | undefined =>
  optionsOf(endpoint, "device-authorization").grant ? undefined : "device";

/** Endpoints that start a sign-in, some of them only with certain values in the body. */
const STARTS: Readonly<Record<(typeof STARTS_SIGN_IN)[number], Method>> = {
  "/sign-in/magic-link": "magic-link",
  "/sign-in/sso": "sso",
  "/device/code": device,
  "/device/approve": device,
  "/email-otp/send-verification-otp": ({ body }) =>
    body?.type === "sign-in" ? "email-otp" : undefined,
  "/phone-number/verify": ({ body }) =>
    body?.updatePhoneNumber || body?.disableSession ? undefined : "phone",
};

/**
 * Callbacks of providers. `oauth` and `enterprise` call `refuseEarly` there, before an account is
 * linked.
 */
const CALLBACKS = ["/callback/:id", "/sso/callback/:providerId", "/sso/saml2/sp/acs/:providerId"];

/**
 * Returns the method that an endpoint starts or completes, if it does nothing else. The session is
 * checked as well, but only after better-auth has changed the user: when a link or code proves the
 * email, it first removes a password that was never proven.
 */
export function startedMethod(endpoint: Endpoint): SignInMethod | undefined {
  const { path = "" } = endpoint;
  if (!isSignIn(path) && !CALLBACKS.includes(path)) return undefined;
  const method = Object.hasOwn(STARTS, path)
    ? STARTS[path as keyof typeof STARTS]
    : methodOf(endpoint);
  if (typeof method === "function") return method(endpoint);
  return method === CONTINUES ? undefined : method;
}

/**
 * Returns whether an API key is about to switch on a second factor. better-auth then creates a
 * session, but by the time that session is refused, the factor is on.
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

/**
 * Endpoints that switch a second factor on. `/two-factor/verify-backup-code` cannot: backup codes
 * exist only afterwards.
 */
const SWITCHES_ON = ["/two-factor/verify-totp", "/two-factor/verify-otp"];

/** Returns whether a policy allows a method. A policy without `methods` allows every method. */
export function allows(
  { methods }: Pick<TenantPolicy, "methods">,
  method: SignInMethod | undefined,
): boolean {
  if (!methods) return true;
  if (method === undefined) return false;
  return methods.includes(method) || (method.startsWith("social:") && methods.includes("social"));
}
