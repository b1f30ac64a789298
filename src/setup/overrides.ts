import type { AuthContext, BetterAuthOptions } from "better-auth";
import { parseUserInput } from "better-auth/db";
import { after, type BeforeHook, silentHook, textOf } from "../framework";
import { knownUsers } from "../isolation/users";
import { needsProof } from "../policy/email-domains";
import type { TenantPolicy } from "../policy/schema";
import { currentEndpoint } from "../request/endpoint";
import { getTenantId, requestSlot } from "../request/scope";
import { policyOf } from "../tenants/cache";
import { invited } from "../tenants/plugins";

/*
 * What the policy of a tenant, or of the platform, changes in better-auth's configuration, assigned
 * once to the context of the call. better-auth then gives its own responses and sends its own mails. A
 * context that a plugin has kept from its `init` has the configuration of the application.
 */

export const applyOverrides: BeforeHook = {
  matcher: () => true,

  handler: silentHook(({ context }) =>
    after(policyOf(context, getTenantId()), (policy) => apply(context, policy)),
  ),
};

/** For code that cannot wait for a lookup. */
export const appliedPolicy = requestSlot<TenantPolicy | null>();

function apply(context: AuthContext, policy: TenantPolicy | null | undefined) {
  if (policy) Object.assign(context, overridesOf(context, policy));
  appliedPolicy.set(policy);
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
        // An address of a domain says who a user is.
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

/** Whether the address that a request is about has to be verified before there is a session. */
export function requiresVerification({ emailDomains }: TenantPolicy): boolean {
  if (!emailDomains) return false;
  const [user] = [...knownUsers.get().values()].slice(-1);
  const email: unknown = currentEndpoint()?.body?.email ?? user?.email;
  return email === undefined || needsProof(emailDomains, email);
}

/** The address is verified in any case; a session by a method that is not allowed is an error. */
function allowsVerifiedSignIn({ methods, twoFactor }: TenantPolicy): boolean {
  // No second factor follows a link or a code.
  if (twoFactor?.required) return false;
  const isCode = currentEndpoint()?.path === "/email-otp/verify-email";
  return methods?.includes(isCode ? "email-otp" : "password") ?? true;
}

/** Whether the request has proven that the address it signs up with is its own. */
const isProven = () => writtenByInvitation().emailVerified === true;

/** What holds on the platform and in every tenant: invitations that came by mail prove an address. */
export function trustMailedInvitations(options: BetterAuthOptions): void {
  const { emailAndPassword, emailVerification } = options;
  if (emailAndPassword) {
    const { requireEmailVerification, customSyntheticUser = makeSyntheticUser } = emailAndPassword;
    options.emailAndPassword = {
      ...emailAndPassword,
      // An invitation decides last about a new user, so it does about an invented one.
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
 * The user that better-auth invents to hide that an email is taken. By itself, better-auth knows the
 * defaults of all columns, but not what plugins write into new users: a user without a role would
 * show that the email is taken.
 */
const makeSyntheticUser: NonNullable<
  NonNullable<BetterAuthOptions["emailAndPassword"]>["customSyntheticUser"]
> = ({ coreFields, additionalFields, id }) => {
  const { body, context } = currentEndpoint() ?? {};
  if (!context) return { ...coreFields, ...additionalFields, id };
  // `additionalFields` lacks the fields of plugins.
  const { name, email, password, image, callbackURL, rememberMe, ...rest } = body;
  const given = parseUserInput(context.options, rest, "create");
  // Written by hooks of official plugins. better-auth drops values without a column.
  const admin = context.options.plugins?.find((plugin) => plugin.id === "admin");
  const role = admin && { role: admin.options?.defaultRole ?? "user" };
  return { lastLoginMethod: "email", ...role, ...coreFields, ...given, id };
};

/** What the invitation that came with a sign-up writes into the user. */
function writtenByInvitation(): Record<string, unknown> {
  const { email, data = {} } = invited.get() ?? {};
  return textOf(currentEndpoint()?.body?.email).toLowerCase() === email ? data : {};
}
