import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import { tenantError } from "../errors";
import { clauses } from "../framework";
import { isolationOf, type Row } from "../isolation/isolation";
import { readUser } from "../isolation/users";
import { applicationProviders } from "../oauth/application-providers";
import { listOAuthConfigs } from "../oauth/config-store";
import { offeredProviders } from "../oauth/provider";
import { runInScope, type SessionRow, scopeOf } from "../request/scope";
import { refuse } from "../schema";
import { withVerifiedDomains } from "../tenants/cache";
import type { TenantActor } from "../tenants/events";
import { domainsIn } from "../tenants/plugins";
import { needsProof } from "./email-domains";
import { allows, availableMethods } from "./methods";
import { type SignInMethod, type TenantPolicy, VERIFIED } from "./schema";
import { canHaveSecondFactor, satisfies } from "./second-factor";

/** The policy to store, or null if it decides nothing. A 400 if this application cannot enforce it. */
export async function parsePolicy(
  ctx: AuthContext,
  tenantId: string | undefined,
  input: TenantPolicy,
): Promise<TenantPolicy | null> {
  const named = [...(input.methods ?? []), ...(input.twoFactor?.exemptMethods ?? [])];
  const isAboutProviders =
    input.twoFactor?.required || named.some((method) => method.startsWith("social"));
  const configs = isAboutProviders && tenantId ? await listOAuthConfigs(ctx, tenantId) : [];
  const own = configs.filter(({ enabled }) => enabled).map(({ providerId }) => providerId);
  assertEnforceable(ctx, tenantId ?? "", input, own, (path, problem) => {
    const message = `[body.policy.${path}] ${problem}`;
    throw new APIError("BAD_REQUEST", { code: "VALIDATION_ERROR", message });
  });
  // Without undefined, which not every database stores.
  const policy: TenantPolicy = JSON.parse(JSON.stringify(input));
  return Object.keys(policy).length ? policy : null;
}

/** At startup, once all plugins have brought their providers. */
export function assertPlatformPolicy(ctx: AuthContext, policy: TenantPolicy | undefined): void {
  if (!policy) return;
  assertEnforceable(ctx, null, policy, [], (path, problem) =>
    refuse(`platformPolicy.${path}: ${problem}`),
  );
}

/** Refuses what this application cannot enforce. */
function assertEnforceable(
  ctx: AuthContext,
  tenantId: string | null,
  policy: TenantPolicy,
  ownProviders: string[],
  fail: (path: string, problem: string) => never,
): void {
  // The context of the call may have the limits of the tenant's present policy.
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
  const { byId, ofPlugins } = applicationProviders(ctx);
  const providers = [...byId.keys(), ...ofPlugins, ...ownProviders, ...byOneTap(ctx)];
  const available = availableMethods(ctx, tenantId, providers);
  const { methods, twoFactor } = policy;
  const lists = { methods, "twoFactor.exemptMethods": twoFactor?.exemptMethods };
  for (const [path, named = []] of Object.entries(lists)) {
    const isSetUp = (method: SignInMethod) =>
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
    if (!domainsIn(ctx)) fail("emailDomains", "tenantDomains() is not set up in this application");
  }
  if (policy.emailDomains && allows(policy, "password")) warnUnlessVerifiable(ctx);
}

/** A warning only: users may sign in by a provider, a magic link or SSO. */
function warnUnlessVerifiable({ options, logger }: AuthContext): void {
  const { emailAndPassword, emailVerification, plugins } = options;
  if (!emailAndPassword?.enabled || emailVerification?.sendVerificationEmail) return;
  if (plugins?.some(({ id }) => id === "email-otp")) return;
  logger.warn(
    "With emailDomains in a policy, users who sign up with a password have to verify their address, and cannot. Set emailVerification.sendVerificationEmail.",
  );
}

/** One Tap is Google, and may have a client of its own. */
export const byOneTap = ({ options: { plugins } }: AuthContext) =>
  plugins?.some(({ id, options }) => id === "one-tap" && options?.clientId) ? ["google"] : [];

/** A tenant's administrator must be able to sign in again under the policy they set. */
export async function assertNotLockedOut(
  ctx: AuthContext,
  actor: TenantActor,
  tenantId: string,
  given: TenantPolicy,
  session: SessionRow | undefined,
): Promise<void> {
  if (actor === "server" || !actor.userId || actor.tenantId !== tenantId) return;
  if (!satisfies(given, session ?? {})) throw tenantError("POLICY_LOCKS_OUT");
  const { userId } = actor;
  const policy = await withVerifiedDomains(ctx, tenantId, given);
  const canSignIn = await runInScope(scopeOf(tenantId), async () => {
    const user = await readUser(await getCurrentAdapter(ctx.adapter), userId);
    if (!user) return false;
    if (!user.emailVerified && needsProof(policy.emailDomains ?? [], user.email)) return false;
    return !policy.methods || hasMethod(ctx, tenantId, user, policy);
  });
  if (!canSignIn) throw tenantError("POLICY_LOCKS_OUT");
}

/** Not `anonymous`, which is a new user each time, nor `device`, which requires a session. */
async function hasMethod(ctx: AuthContext, tenantId: string, user: Row, policy: TenantPolicy) {
  const has = (method: SignInMethod | undefined) =>
    allows(policy, method) && (method === undefined || canHaveSecondFactor(policy, method));
  // An unverified address may be made up: users of a phone or a wallet have one.
  if (user.emailVerified && (has("magic-link") || has("email-otp"))) return true;
  if (user.phoneNumber && user.phoneNumberVerified && has("phone")) return true;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = clauses({ userId: String(user.id) });
  const accounts = await adapter.findMany<{ providerId: string }>({ model: "account", where });
  // The provider of an account may be gone, or not offered for sign-in.
  const sso = await isolationOf(ctx)?.identityProviders?.usable(tenantId);
  const offered = await offeredProviders(ctx, tenantId);
  const social = new Set([...offered.map(({ id }) => id), ...byOneTap(ctx)]);
  const methods = accounts.map(({ providerId }): SignInMethod | undefined => {
    if (providerId === "credential") return "password";
    if (providerId === "siwe") return "siwe";
    if (sso?.has(providerId)) return "sso";
    return social.has(providerId) ? `social:${providerId}` : undefined;
  });
  if (methods.some(has)) return true;
  if (!has("passkey") || !ctx.tables.passkey) return false;
  return (await adapter.count({ model: "passkey", where })) > 0;
}
