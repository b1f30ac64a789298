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

/** What a tenant has set up. */
export function methodsOf(providerIds: string[], hasSSO: boolean): SignInMethod[] {
  const social = providerIds.toSorted(byName).map((id): SignInMethod => `${SOCIAL}${id}`);
  return ["password", ...(hasSSO ? (["sso"] as const) : []), ...social, "magic-link", "passkey"];
}

/** People sign in elsewhere, and may have a second factor there: also with providers set up later. */
const ELSEWHERE: SignInMethod[] = ["sso", "social"];

/** The methods that need no second factor: as stored, without providers that are gone or off. */
export function exemptMethods(policy: TenantPolicy | null, setUp: SignInMethod[]): SignInMethod[] {
  if (!policy?.twoFactor?.required) return ELSEWHERE;
  const stored = policy.twoFactor.exemptMethods ?? [];
  return stored.filter((method) => !method.startsWith(SOCIAL) || setUp.includes(method));
}

/** Sets or removes one value, and keeps the others that are stored. */
function withValue<T extends object>(stored: T | undefined, change: Partial<T>): T | undefined {
  const merged = Object.entries({ ...stored, ...change }).filter(
    ([, value]) => value !== undefined,
  );
  return merged.length > 0 ? (Object.fromEntries(merged) as T) : undefined;
}

/** The policy of a form. What is left empty is as the application has it, what is not in there as stored. */
export function policyFrom(form: FormData, stored: TenantPolicy | null): TenantPolicy {
  const text = (name: string) => String(form.get(name) ?? "").trim();
  const signUp = text("signUp") as NonNullable<TenantPolicy["signUp"]>;
  const names = text("emailDomains")
    .split(/[\s,;]+/)
    .filter(Boolean);
  const isVerified = names.length === 1 && names[0] === "verified";
  const emailDomains = isVerified ? "verified" : names.map((name) => name.replace(/^@/, ""));
  const methods = form.getAll("methods") as SignInMethod[];
  const exempt = form.getAll("exempt") as SignInMethod[];
  const numberOf = (name: string) => (text(name) ? Number(text(name)) : undefined);
  const hours = numberOf("sessionHours");
  return {
    ...stored,
    signUp: signUp === "open" ? undefined : signUp,
    emailDomains: names.length > 0 ? emailDomains : undefined,
    methods: text("limited") ? methods : undefined,
    twoFactor: form.has("twoFactor")
      ? {
          ...stored?.twoFactor,
          required: true,
          exemptMethods: exempt.length > 0 ? exempt : undefined,
        }
      : undefined,
    password: withValue(stored?.password, { minLength: numberOf("minLength") }),
    session: withValue(stored?.session, {
      expiresIn: hours === undefined ? undefined : Math.round(hours * 3600),
    }),
  };
}
