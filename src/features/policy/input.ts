import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { Row } from "../../core/database";
import { clauses } from "../../core/database";
import { serviceOf } from "../../core/extensions";
import { readUser } from "../../core/isolate/users";
import { isolationOf } from "../../core/isolation";
import { runInScope, scopeOf } from "../../core/request";
import { refuse } from "../../core/schema";
import type { SignInMethod } from "../../core/sign-in-endpoints";
import { needsProof } from "./email-domains";
import { policyError } from "./errors";
import { allows, availableMethods } from "./methods";
import { withVerifiedDomains } from "./policy-of";
import { type TenantPolicy, VERIFIED } from "./schema";
import { canHaveSecondFactor, satisfies } from "./second-factor";
import type { SessionWithMethod } from "./tables";

/**
 * Returns the policy to store, or null if it is empty. Throws a 400 if this application cannot
 * enforce it.
 */
export async function parsePolicy(
  ctx: AuthContext,
  tenantId: string | undefined,
  input: TenantPolicy,
): Promise<TenantPolicy | null> {
  const named = [...(input.methods ?? []), ...(input.twoFactor?.exemptMethods ?? [])];
  const isAboutProviders =
    input.twoFactor?.required || named.some((method) => method.startsWith("social"));
  const social = serviceOf(isolationOf(ctx), "socialProviders");
  const own = isAboutProviders && tenantId ? ((await social?.configuredBy(tenantId)) ?? []) : [];
  assertEnforceable(ctx, tenantId ?? "", input, own, (path, problem) => {
    const message = `[body.policy.${path}] ${problem}`;
    throw new APIError("BAD_REQUEST", { code: "VALIDATION_ERROR", message });
  });
  // Removes undefined values, which some databases cannot store.
  const policy: TenantPolicy = JSON.parse(JSON.stringify(input));
  return Object.keys(policy).length ? policy : null;
}

/** Checks `platformPolicy` at startup, after all plugins have added their providers. */
export function assertPlatformPolicy(ctx: AuthContext, policy: TenantPolicy | undefined): void {
  if (!policy) return;
  assertEnforceable(ctx, null, policy, [], (path, problem) =>
    refuse(`platformPolicy.${path}: ${problem}`),
  );
}

/** Refuses a policy that this application cannot enforce. */
function assertEnforceable(
  ctx: AuthContext,
  tenantId: string | null,
  policy: TenantPolicy,
  ownProviders: string[],
  fail: (path: string, problem: string) => never,
): void {
  // Reads the application's own limits. The context of the call may contain those of the tenant's
  // current policy.
  const { password, sessionConfig } = isolationOf(ctx)?.ctx ?? ctx;
  const { minPasswordLength, maxPasswordLength } = password.config;
  const limits = {
    "password.minLength": [policy.password?.minLength, minPasswordLength, maxPasswordLength],
    "session.expiresIn": [policy.session?.expiresIn, 60, sessionConfig.expiresIn],
  } as const;
  for (const [path, [given, min, max]] of Object.entries(limits)) {
    const isOutside = given !== undefined && !(given >= min && given <= max);
    if (isOutside) fail(path, `${given} is not ${min} to ${max}`);
  }
  const shared = serviceOf(isolationOf(ctx), "socialProviders")?.ofApplication() ?? [];
  const available = availableMethods(ctx, tenantId, [...shared, ...ownProviders]);
  const { methods, twoFactor } = policy;
  const lists = { methods, "twoFactor.exemptMethods": twoFactor?.exemptMethods };
  for (const [path, named = []] of Object.entries(lists)) {
    // A tenant may set up its first provider later, so it can always allow "social".
    const isSetUp = (method: SignInMethod) =>
      (method === "social" && tenantId !== null) ||
      available.some((one) => allows({ methods: [method] }, one));
    const missing = named.find((method) => !isSetUp(method));
    const has = `It has: ${available.join(", ")}`;
    if (missing) fail(path, `${missing} is not set up in this application. ${has}`);
  }
  if (twoFactor?.exemptMethods?.includes("password")) {
    fail("twoFactor.exemptMethods", "a password is one factor");
  }
  if (twoFactor?.required && !ctx.options.plugins?.some(({ id }) => id === "two-factor")) {
    fail("twoFactor", "this application has no twoFactor() plugin");
  }
  const isUsable = (method: SignInMethod) =>
    allows(policy, method) && canHaveSecondFactor(policy, method);
  if (twoFactor?.required && !available.some(isUsable)) {
    fail("twoFactor", "none of the methods can have a second factor");
  }
  if (policy.emailDomains === VERIFIED) {
    if (tenantId === null) fail("emailDomains", "the platform has no verified domains: list them");
    if (!serviceOf(isolationOf(ctx), "domains"))
      fail("emailDomains", "tenantDomains() is not set up in this application");
  }
  if (policy.emailDomains && allows(policy, "password")) warnUnlessVerifiable(ctx);
}

/**
 * Warns if users cannot verify their address after sign-up with a password. Does not refuse,
 * because they may sign in by a provider, a magic link or SSO.
 */
function warnUnlessVerifiable({ options, logger }: AuthContext): void {
  const { emailAndPassword, emailVerification, plugins } = options;
  if (!emailAndPassword?.enabled || emailVerification?.sendVerificationEmail) return;
  if (plugins?.some(({ id }) => id === "email-otp")) return;
  logger.warn(
    "With emailDomains in a policy, users who sign up with a password have to verify their address, and cannot. Set emailVerification.sendVerificationEmail.",
  );
}

/** Refuses a policy that would keep the administrator who sets it from signing in again. */
export async function assertNotLockedOut(
  ctx: AuthContext,
  tenantId: string,
  given: TenantPolicy,
  { userId, session }: { userId: string; session: SessionWithMethod | undefined },
): Promise<void> {
  if (!satisfies(given, session ?? {})) throw policyError("POLICY_LOCKS_OUT");
  const policy = await withVerifiedDomains(ctx, tenantId, given);
  const canSignIn = await runInScope(scopeOf(tenantId), async () => {
    const user = await readUser(await getCurrentAdapter(ctx.adapter), userId);
    if (!user) return false;
    if (!user.emailVerified && needsProof(policy.emailDomains ?? [], user.email)) return false;
    return !policy.methods || hasMethod(ctx, tenantId, user, policy);
  });
  if (!canSignIn) throw policyError("POLICY_LOCKS_OUT");
}

/**
 * Returns whether the user can sign in by an allowed method. Ignores `anonymous`, which creates a
 * new user each time, and `device`, which requires a session.
 */
async function hasMethod(ctx: AuthContext, tenantId: string, user: Row, policy: TenantPolicy) {
  const has = (method: SignInMethod | undefined) =>
    allows(policy, method) && (method === undefined || canHaveSecondFactor(policy, method));
  // An unverified address may be made up, as for users who signed up with a phone or a wallet. They
  // would receive no mail.
  if (user.emailVerified && (has("magic-link") || has("email-otp"))) return true;
  if (user.phoneNumber && user.phoneNumberVerified && has("phone")) return true;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = clauses({ userId: String(user.id) });
  const accounts = await adapter.findMany<{ providerId: string }>({ model: "account", where });
  // An account counts only if its provider is offered: it may have been removed since.
  const sso = await serviceOf(isolationOf(ctx), "identityProviders")?.usable(tenantId);
  const social = await serviceOf(isolationOf(ctx), "socialProviders")?.usable(tenantId);
  const methods = accounts.map(({ providerId }): SignInMethod | undefined => {
    if (providerId === "credential") return "password";
    if (providerId === "siwe") return "siwe";
    if (sso?.has(providerId)) return "sso";
    return social?.has(providerId) ? `social:${providerId}` : undefined;
  });
  if (methods.some(has)) return true;
  if (!has("passkey") || !ctx.tables.passkey) return false;
  return (await adapter.count({ model: "passkey", where })) > 0;
}
