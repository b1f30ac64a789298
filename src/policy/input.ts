import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import * as z from "zod";
import { tenantError } from "../errors";
import { isolationOf } from "../isolation/isolation";
import { applicationProviders } from "../oauth/application-providers";
import { listOAuthConfigs } from "../oauth/config-store";
import { offeredProviders } from "../oauth/provider";
import type { ResolvedOptions } from "../options";
import { runInScope, scopeOf } from "../request/scope";
import type { TenantActor } from "../tenants/events";
import { limited } from "../tenants/input";
import { DOMAIN, isInDomains } from "./email-domains";
import { allows } from "./methods";
import type { SignInMethod, TenantPolicy } from "./schema";

/** The plugins that the ways of a policy come from, by their id. */
const PLUGINS: Partial<Record<SignInMethod, string[]>> = {
  "magic-link": ["magic-link"],
  "email-otp": ["email-otp"],
  phone: ["phone-number"],
  passkey: ["passkey"],
  sso: ["sso"],
  siwe: ["siwe"],
  anonymous: ["anonymous"],
  device: ["device-authorization"],
};

const METHOD = /^(password|social|social:.+)$/;

const isMethod = (name: unknown): name is SignInMethod =>
  typeof name === "string" && (METHOD.test(name) || Object.hasOwn(PLUGINS, name));

/** Strict: what is not understood must not look as if it were enforced. */
const schema = (ctx: AuthContext) =>
  z.strictObject({
    signUp: z.enum(["open", "invited", "closed"]).optional(),
    emailDomains: z
      .array(limited(253).toLowerCase().regex(DOMAIN, "expected a domain: example.com"))
      .min(1)
      .max(100)
      .optional(),
    methods: z.array(z.custom<SignInMethod>(isMethod, "unknown method")).min(1).max(100).optional(),
    password: z
      .strictObject({
        minLength: z
          .int()
          .min(ctx.password.config.minPasswordLength)
          .max(ctx.password.config.maxPasswordLength)
          .optional(),
      })
      .optional(),
    session: z
      .strictObject({ expiresIn: z.int().min(60).max(ctx.sessionConfig.expiresIn).optional() })
      .optional(),
  });

/** A policy as it is stored; null where it decides nothing. Anything else is a 400 that says why. */
export async function parsePolicy(
  ctx: AuthContext,
  tenantId: string | undefined,
  input: unknown,
): Promise<TenantPolicy | null> {
  if (input === null) return null;
  // Outside of every tenant: the limits are the application's own.
  const parsed = await runInScope(scopeOf(null), async () => schema(ctx).safeParse(input));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalid(["policy", ...(issue?.path ?? [])].join("."), issue?.message ?? "invalid");
  }
  const policy = withoutUndefined(parsed.data);
  const missing = await missingWay(ctx, tenantId, policy.methods ?? []);
  if (missing) throw invalid("policy.methods", `${missing} is not set up in this application`);
  if (policy.emailDomains && allows(policy, "password")) warnUnlessVerifiable(ctx);
  return Object.keys(policy).length ? policy : null;
}

/** Nothing is refused: people may come by a provider, a magic link or SSO. */
function warnUnlessVerifiable({ options, logger }: AuthContext): void {
  const { emailAndPassword, emailVerification, plugins } = options;
  if (!emailAndPassword?.enabled || emailVerification?.sendVerificationEmail) return;
  if (plugins?.some(({ id }) => id === "email-otp")) return;
  logger.warn(
    "A policy with emailDomains lets nobody in who signs up with a password and cannot verify the address. Set emailVerification.sendVerificationEmail.",
  );
}

const invalid = (path: string, message: string) =>
  new APIError("BAD_REQUEST", { code: "VALIDATION_ERROR", message: `[body.${path}] ${message}` });

/** One by one: databases store no undefined, and a list has each entry once. */
function withoutUndefined(policy: z.infer<ReturnType<typeof schema>>): TenantPolicy {
  const entries = Object.entries(policy).filter(([, value]) => value !== undefined);
  const unique = entries.map(([key, value]) => [
    key,
    Array.isArray(value) ? [...new Set(value)] : value,
  ]);
  return Object.fromEntries(unique);
}

/** The first way that the application does not have: nobody could ever come in by it. */
async function missingWay(
  ctx: AuthContext,
  tenantId: string | undefined,
  methods: SignInMethod[],
): Promise<SignInMethod | undefined> {
  const installed = new Set((ctx.options.plugins ?? []).map(({ id }) => id));
  const isSocial = methods.some((method) => method.startsWith("social"));
  const providers = await providersOf(ctx, isSocial ? tenantId : undefined);
  return methods.find((method) => {
    if (method === "password") return !ctx.options.emailAndPassword?.enabled;
    if (method === "social") return providers.size === 0;
    if (method.startsWith("social:")) return !providers.has(method.slice("social:".length));
    return !PLUGINS[method]?.some((id) => installed.has(id));
  });
}

/** The providers that people can sign in with: the application's, and those of the tenant's own. */
async function providersOf(ctx: AuthContext, tenantId: string | undefined): Promise<Set<string>> {
  const configs = tenantId ? await listOAuthConfigs(ctx, tenantId) : [];
  const own = configs.filter(({ enabled }) => enabled).map(({ providerId }) => providerId);
  return new Set([...applicationProviders(ctx).byId.keys(), ...own, ...byOneTap(ctx)]);
}

/** One Tap is Google, and may have a client of its own. */
const byOneTap = ({ options: { plugins } }: AuthContext) =>
  plugins?.some(({ id, options }) => id === "one-tap" && options?.clientId) ? ["google"] : [];

/**
 * A tenant's own administrator must be able to sign in again under the policy that they set: with
 * an account, a passkey or an address that fits it.
 */
export async function assertNotLockedOut(
  ctx: AuthContext,
  actor: TenantActor,
  tenantId: string,
  policy: TenantPolicy,
  options: ResolvedOptions,
): Promise<void> {
  if (actor === "server" || !actor.userId || actor.tenantId !== tenantId) return;
  const { userId } = actor;
  const hasOne = await runInScope(scopeOf(tenantId), async () => {
    const adapter = await getCurrentAdapter(ctx.adapter);
    const where = [{ field: "id", value: userId }];
    const user = await adapter.findOne<Person>({ model: "user", where });
    if (!user) return false;
    const isVerified = user.emailVerified || !isInDomains(policy.emailDomains ?? [], user.email);
    return isVerified && (!policy.methods || (await hasWay(ctx, tenantId, user, policy, options)));
  });
  if (!hasOne) throw tenantError("POLICY_LOCKS_OUT");
}

interface Person {
  id: string;
  email: string;
  emailVerified: boolean;
  phoneNumber?: string | null;
  phoneNumberVerified?: boolean | null;
}

/** Not `anonymous`, which is somebody else each time, nor `device`, which takes a session. */
async function hasWay(
  ctx: AuthContext,
  tenantId: string,
  user: Person,
  policy: TenantPolicy,
  { trustedProviderHosts }: ResolvedOptions,
): Promise<boolean> {
  const has = (way: SignInMethod | undefined) => allows(policy, way);
  // Nobody may read the mails of an address that was never verified: a phone or a wallet has one.
  if (user.emailVerified && (has("magic-link") || has("email-otp"))) return true;
  if (user.phoneNumber && user.phoneNumberVerified && has("phone")) return true;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = [{ field: "userId", value: user.id }];
  const accounts = await adapter.findMany<{ providerId: string }>({ model: "account", where });
  // An account may be left over from a provider that is gone, or that nobody can sign in with.
  const sso = await isolationOf(ctx)?.identityProviders?.usable(tenantId);
  const offered = await offeredProviders(ctx, tenantId, trustedProviderHosts);
  const social = new Set([...offered.map(({ id }) => id), ...byOneTap(ctx)]);
  const ways = accounts.map(({ providerId }): SignInMethod | undefined => {
    if (providerId === "credential") return "password";
    if (providerId === "siwe") return "siwe";
    if (sso?.has(providerId)) return "sso";
    return social.has(providerId) ? `social:${providerId}` : undefined;
  });
  if (ways.some(has)) return true;
  return Boolean(
    has("passkey") && ctx.tables.passkey && (await adapter.count({ model: "passkey", where })),
  );
}
