import type { AuthContext, BetterAuthOptions } from "better-auth";
import { parseUserInput } from "better-auth/db";
import { currentEndpoint } from "../../core/endpoint";
import { serviceOf } from "../../core/extensions";
import { type BeforeHook, plainHook } from "../../core/hooks";
import { isolationOf } from "../../core/isolation";
import { currentRequest, getTenantId } from "../../core/request";
import { needsProof } from "./email-domains";
import { policyOf } from "./policy-of";
import { policyRequest } from "./request";
import type { TenantPolicy } from "./schema";

/*
 * Applies the policy of a tenant, or of the platform, to better-auth's configuration, in the
 * context of one call. better-auth then sends its usual responses and mails. Another plugin that
 * uses the context from its `init` still sees the configuration of the application.
 */

export const applyOverrides: BeforeHook = {
  matcher: () => true,

  handler: plainHook(async ({ context }) => apply(context, await policyOf(context, getTenantId()))),
};

function apply(context: AuthContext, policy: TenantPolicy | null | undefined) {
  if (policy) Object.assign(context, overridesOf(context, policy));
  policyRequest.get().policy = policy;
}

function overridesOf({ options, sessionConfig, password }: AuthContext, policy: TenantPolicy) {
  const { expiresIn } = sessionConfig;
  const { minPasswordLength } = password.config;
  return {
    options: { ...options, ...optionsOf(options, policy) },
    sessionConfig: {
      ...sessionConfig,
      expiresIn: Math.min(expiresIn, policy.session?.expiresIn ?? expiresIn),
    },
    password: {
      ...password,
      config: {
        ...password.config,
        minPasswordLength: Math.max(minPasswordLength, policy.password?.minLength ?? 0),
      },
    },
  };
}

function optionsOf(
  { user, emailAndPassword, emailVerification }: BetterAuthOptions,
  policy: TenantPolicy,
): Partial<BetterAuthOptions> {
  const { changeEmail } = user ?? {};
  return {
    ...(user &&
      changeEmail &&
      policy.emailDomains && {
        // Users are admitted by the domain of their address, so a new address must be verified.
        user: { ...user, changeEmail: { ...changeEmail, updateEmailWithoutVerification: false } },
      }),
    ...(emailAndPassword && {
      emailAndPassword: {
        ...emailAndPassword,
        get requireEmailVerification() {
          if (isProven()) return false;
          return emailAndPassword.requireEmailVerification || requiresVerification(policy);
        },
      },
    }),
    ...(emailVerification && {
      emailVerification: {
        ...emailVerification,
        // Stays a getter, because the answer depends on the sign-up (see `trustMailedInvitations`).
        // The spread alone would evaluate it now.
        get sendOnSignUp() {
          return emailVerification.sendOnSignUp;
        },
        get autoSignInAfterVerification() {
          return emailVerification.autoSignInAfterVerification && allowsVerifiedSignIn(policy);
        },
      },
    }),
  };
}

/** Returns whether the address in a request must be verified before there is a session. */
export function requiresVerification(policy = policyRequest.get().policy): boolean {
  const { emailDomains } = policy ?? {};
  if (!emailDomains) return false;
  const [user] = [...currentRequest().users.values()].slice(-1);
  const email: unknown = currentEndpoint()?.body?.email ?? user?.email;
  return email === undefined || needsProof(emailDomains, email);
}

/**
 * Returns whether the policy allows a session after an address was verified. Otherwise the refused
 * session would turn the verification into an error.
 */
function allowsVerifiedSignIn({ methods, twoFactor }: TenantPolicy): boolean {
  // better-auth asks for no second factor after a link or a code, so the session would be refused.
  if (twoFactor?.required) return false;
  const isCode = currentEndpoint()?.path === "/email-otp/verify-email";
  return methods?.includes(isCode ? "email-otp" : "password") ?? true;
}

/** Returns whether a mailed invitation proves the address of the running sign-up. */
const isProven = () => writtenByInvitation().emailVerified === true;

/** Skips email verification for sign-ups whose address a mailed invitation proves. */
export function trustMailedInvitations(options: BetterAuthOptions): void {
  const { emailAndPassword, emailVerification } = options;
  if (emailAndPassword) {
    const { requireEmailVerification, customSyntheticUser = makeSyntheticUser } = emailAndPassword;
    options.emailAndPassword = {
      ...emailAndPassword,
      // The invitation's values win for a real user, so they must win for a synthetic user.
      // Otherwise, the response would show that the email is taken.
      customSyntheticUser: (given) => ({ ...customSyntheticUser(given), ...writtenByInvitation() }),
      get requireEmailVerification() {
        return requireEmailVerification && !isProven();
      },
    };
  }
  if (emailVerification?.sendOnSignUp) {
    options.emailVerification = {
      ...emailVerification,
      get sendOnSignUp() {
        return !isProven();
      },
    };
  }
}

/**
 * Returns the synthetic user that better-auth sends to hide that an email is taken. better-auth
 * fills in the defaults of columns, but not the values that plugins write into new users. A user
 * without these values, such as a role, would reveal that the email is taken.
 */
const makeSyntheticUser: NonNullable<
  NonNullable<BetterAuthOptions["emailAndPassword"]>["customSyntheticUser"]
> = ({ coreFields, additionalFields, id }) => {
  const { body, context } = currentEndpoint() ?? {};
  if (!context) return { ...coreFields, ...additionalFields, id };
  // Reads the fields from the body, because `additionalFields` lacks the fields of plugins.
  const { name, email, password, image, callbackURL, rememberMe, ...rest } = body;
  const given = parseUserInput(context.options, rest, "create");
  // Hooks of official plugins write these into real users. better-auth drops values without a
  // column.
  const admin = context.options.plugins?.find((plugin) => plugin.id === "admin");
  const role = admin && { role: admin.options?.defaultRole ?? "user" };
  return { lastLoginMethod: "email", ...role, ...coreFields, ...given, id };
};

/** Returns the values that the invitation of a sign-up writes into the user. */
function writtenByInvitation(): Record<string, unknown> {
  const { context, body } = currentEndpoint() ?? {};
  const isolation = context && isolationOf(context);
  return serviceOf(isolation, "invitations")?.writtenInto(body?.email) ?? {};
}
