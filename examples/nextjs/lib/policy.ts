import type { SignInMethod, Tenant, TenantPolicy } from "better-auth-tenant";
import { byName, providerName } from "./providers";

/** Within these a tenant decides. They are better-auth's own, and the server has the last word. */
export const LIMITS = { minPassword: 8, maxPassword: 128, sessionHours: 7 * 24 };

/** How long a new password has to be. */
export const passwordLength = ({ policy }: Pick<Tenant, "policy">) =>
  policy?.password?.minLength ?? LIMITS.minPassword;

/** The ways to sign in as people call them. A new one in the plugin is a type error here. */
const METHODS: Record<Exclude<SignInMethod, `social:${string}`>, string> = {
  password: "Password",
  social: "Every social provider",
  "magic-link": "Magic link",
  "email-otp": "Email code",
  phone: "Phone number",
  passkey: "Passkey",
  sso: "Single sign-on (SSO)",
  siwe: "Ethereum wallet",
  anonymous: "Guest access",
  device: "Device code",
};

const SOCIAL = "social:";

export function methodName(method: SignInMethod): string {
  if (method in METHODS) return METHODS[method as keyof typeof METHODS];
  return providerName(method.slice(SOCIAL.length));
}

/** The providers among some methods, by their ids. */
export const socialIn = (methods: SignInMethod[]) =>
  methods
    .filter((method) => method.startsWith(SOCIAL))
    .map((method) => method.slice(SOCIAL.length))
    .sort(byName);

/** What a tenant can choose from: what it has, and what it has chosen already. */
export function offeredMethods(
  { providerIds, hasSSO }: { providerIds: string[]; hasSSO: boolean },
  policy: TenantPolicy | null,
): SignInMethod[] {
  const social = providerIds.toSorted(byName).map((id): SignInMethod => `${SOCIAL}${id}`);
  const sso: SignInMethod[] = hasSSO ? ["sso"] : [];
  const offered: SignInMethod[] = ["password", ...sso, ...social, "passkey"];
  return [...new Set([...offered, ...(policy?.methods ?? [])])];
}

/** The policy of a form. What is left empty is as the application has it. */
export function policyFrom(form: FormData): TenantPolicy {
  const text = (name: string) => String(form.get(name) ?? "").trim();
  const signUp = text("signUp") as NonNullable<TenantPolicy["signUp"]>;
  const names = text("emailDomains")
    .split(/[\s,;]+/)
    .filter(Boolean);
  const isVerified = names.length === 1 && names[0] === "verified";
  const emailDomains = isVerified ? "verified" : names.map((name) => name.replace(/^@/, ""));
  const methods = form.getAll("methods") as SignInMethod[];
  const exempt = form.getAll("exempt") as SignInMethod[];
  const hours = text("sessionHours");
  return {
    ...(signUp !== "open" && { signUp }),
    ...(names.length > 0 && { emailDomains }),
    ...(text("limited") && { methods }),
    // Social providers and single sign-on have a second factor of their own.
    ...(form.has("twoFactor") && {
      twoFactor: { required: true, ...(exempt.length > 0 && { exemptMethods: exempt }) },
    }),
    ...(text("minLength") && { password: { minLength: Number(text("minLength")) } }),
    ...(hours && { session: { expiresIn: Math.round(Number(hours) * 3600) } }),
  };
}
