import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import { tenantError } from "../errors";
import { isolationOf } from "../isolation/isolation";
import { applicationProviders } from "../oauth/application-providers";
import { listOAuthConfigs } from "../oauth/config-store";
import { offeredProviders } from "../oauth/provider";
import { runInScope, scopeOf } from "../request/scope";
import type { TenantActor } from "../tenants/events";
import { isInDomains } from "./email-domains";
import { allows } from "./methods";
import type { SignInMethod, TenantPolicy } from "./schema";

/** The policy to store, or null if it decides nothing. A 400 if this application cannot enforce it. */
export async function parsePolicy(
  ctx: AuthContext,
  tenantId: string | undefined,
  input: TenantPolicy,
): Promise<TenantPolicy | null> {
  // The context of the call may have the limits of the tenant's present policy.
  const { password, sessionConfig } = isolationOf(ctx)?.ctx ?? ctx;
  const { minPasswordLength, maxPasswordLength } = password.config;
  assertWithin(
    "password.minLength",
    [minPasswordLength, maxPasswordLength],
    input.password?.minLength,
  );
  assertWithin("session.expiresIn", [60, sessionConfig.expiresIn], input.session?.expiresIn);
  const missing = await missingMethod(ctx, tenantId, input.methods ?? []);
  if (missing) throw invalid("methods", `${missing} is not set up in this application`);
  if (input.emailDomains && allows(input, "password")) warnUnlessVerifiable(ctx);
  // Without undefined, which not every database stores.
  const policy: TenantPolicy = JSON.parse(JSON.stringify(input));
  return Object.keys(policy).length ? policy : null;
}

function assertWithin(path: string, [min, max]: [number, number], given = min): void {
  if (given < min || given > max) throw invalid(path, `must be ${min} to ${max}`);
}

const invalid = (path: string, problem: string) =>
  new APIError("BAD_REQUEST", {
    code: "VALIDATION_ERROR",
    message: `[body.policy.${path}] ${problem}`,
  });

/** A warning only: users may sign in by a provider, a magic link or SSO. */
function warnUnlessVerifiable({ options, logger }: AuthContext): void {
  const { emailAndPassword, emailVerification, plugins } = options;
  if (!emailAndPassword?.enabled || emailVerification?.sendVerificationEmail) return;
  if (plugins?.some(({ id }) => id === "email-otp")) return;
  logger.warn(
    "With emailDomains in a policy, users who sign up with a password have to verify their address, and cannot. Set emailVerification.sendVerificationEmail.",
  );
}

/** The plugins of sign-in methods that have another name. */
const PLUGIN_IDS: Partial<Record<SignInMethod, string>> = {
  phone: "phone-number",
  device: "device-authorization",
};

/** The first sign-in method that the application does not have. */
async function missingMethod(
  ctx: AuthContext,
  tenantId: string | undefined,
  methods: SignInMethod[],
): Promise<SignInMethod | undefined> {
  const isSocial = methods.some((method) => method.startsWith("social"));
  const configs = isSocial && tenantId ? await listOAuthConfigs(ctx, tenantId) : [];
  const providers = new Set([
    ...applicationProviders(ctx).byId.keys(),
    ...configs.filter(({ enabled }) => enabled).map(({ providerId }) => providerId),
    ...byOneTap(ctx),
  ]);
  return methods.find((method) => {
    if (method === "password") return !ctx.options.emailAndPassword?.enabled;
    if (method === "social") return providers.size === 0;
    if (method.startsWith("social:")) return !providers.has(method.slice("social:".length));
    return !ctx.options.plugins?.some(({ id }) => id === (PLUGIN_IDS[method] ?? method));
  });
}

/** One Tap is Google, and may have a client of its own. */
const byOneTap = ({ options: { plugins } }: AuthContext) =>
  plugins?.some(({ id, options }) => id === "one-tap" && options?.clientId) ? ["google"] : [];

interface Person {
  id: string;
  email: string;
  emailVerified: boolean;
  phoneNumber?: string | null;
  phoneNumberVerified?: boolean | null;
}

/** A tenant's administrator must be able to sign in again under the policy they set. */
export async function assertNotLockedOut(
  ctx: AuthContext,
  actor: TenantActor,
  tenantId: string,
  policy: TenantPolicy,
): Promise<void> {
  if (actor === "server" || !actor.userId || actor.tenantId !== tenantId) return;
  const where = [{ field: "id", value: actor.userId }];
  const canSignIn = await runInScope(scopeOf(tenantId), async () => {
    const adapter = await getCurrentAdapter(ctx.adapter);
    const user = await adapter.findOne<Person>({ model: "user", where });
    if (!user) return false;
    if (!user.emailVerified && isInDomains(policy.emailDomains ?? [], user.email)) return false;
    return !policy.methods || hasMethod(ctx, tenantId, user, policy);
  });
  if (!canSignIn) throw tenantError("POLICY_LOCKS_OUT");
}

/** Not `anonymous`, which is a new user each time, nor `device`, which requires a session. */
async function hasMethod(
  ctx: AuthContext,
  tenantId: string,
  user: Person,
  policy: TenantPolicy,
): Promise<boolean> {
  const has = (method: SignInMethod | undefined) => allows(policy, method);
  // An unverified address may be made up: users of a phone or a wallet have one.
  if (user.emailVerified && (has("magic-link") || has("email-otp"))) return true;
  if (user.phoneNumber && user.phoneNumberVerified && has("phone")) return true;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = [{ field: "userId", value: user.id }];
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
