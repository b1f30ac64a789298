import type { AuthContext, BetterAuthOptions } from "better-auth";
import { oncePerObject, readThrough, textOf } from "../framework";
import type { TenantPolicy } from "../policy";
import { currentEndpoint } from "../scope/endpoint";
import { notes } from "../scope/scope";
import type { PolicyOf } from "./border";
import { makeUpUser, withInvitation, writtenByInvitation } from "./made-up-user";

/*
 * What better-auth reads from its options and context, and a tenant's policy may change: read
 * late, from the scope of the moment. So better-auth gives its own answers and sends its own mails.
 */

/** A plain domain name: no address, no wildcard, and ASCII only. */
export const DOMAIN =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$/i;

/**
 * Whether an address is of one of the domains: of the domain itself, and of none below it. What
 * others could read in another way is of none: an identity provider may say anything.
 */
export const isAddressOf = (domains: readonly string[], email: unknown): boolean =>
  domains.includes(PLAIN_ADDRESS.exec(textOf(email).toLowerCase())?.[1] ?? "");

const PLAIN_ADDRESS = /^[^@\s\p{Cc}]+@([^@\s\p{Cc}]+)$/u;

/** Why a policy admits nobody with this address, invited or not; undefined where it does. */
export function refusalOf(policy: TenantPolicy | null | undefined, email: unknown) {
  const { signUp, emailDomains } = policy ?? {};
  if (signUp === "closed") return "SIGN_UP_CLOSED";
  if (emailDomains && !isAddressOf(emailDomains, email)) return "EMAIL_DOMAIN_NOT_ALLOWED";
  return undefined;
}

/** Whether the address that a request is about has to be verified before there is a session. */
export function requiresVerification(policy: TenantPolicy | null | undefined): boolean {
  const { emailDomains } = policy ?? {};
  if (!emailDomains) return false;
  const [user] = [...notes().knownUsers.values()].slice(-1);
  const email: unknown = currentEndpoint()?.body?.email ?? user?.email;
  return email === undefined || isAddressOf(emailDomains, email);
}

/** Whether the request has shown that the address it signs up with is its own. */
const isProven = () => writtenByInvitation().emailVerified === true;

type Given<Name extends keyof BetterAuthOptions> = NonNullable<BetterAuthOptions[Name]>;
type Changes = NonNullable<Given<"user">["changeEmail"]>;

/** What of `user`, `emailAndPassword` and `emailVerification` a policy changes. */
export const latePolicyOptions = (policy: PolicyOf) => ({
  user: (user: Given<"user">) => {
    const late = oncePerObject((changes: Changes) =>
      readThrough(changes, {
        // An address of a domain says who somebody is.
        updateEmailWithoutVerification: () =>
          changes.updateEmailWithoutVerification && !policy.now()?.emailDomains,
      }),
    );
    return readThrough(user, { changeEmail: () => user.changeEmail && late(user.changeEmail) });
  },
  emailAndPassword: (password: Given<"emailAndPassword">) => {
    const madeUp = oncePerObject(withInvitation);
    return readThrough(password, {
      requireEmailVerification: () =>
        !isProven() && (password.requireEmailVerification || policy.requiresVerification()),
      customSyntheticUser: () => madeUp(password.customSyntheticUser ?? makeUpUser),
    });
  },
  emailVerification: (mails: Given<"emailVerification">) =>
    readThrough(mails, {
      // Nobody is asked to verify an address that is proven already.
      sendOnSignUp: () => mails.sendOnSignUp && !isProven(),
      autoSignInAfterVerification: () => {
        if (!mails.autoSignInAfterVerification) return false;
        // The address is verified in any case; a session by a way that is not allowed is an error.
        const isCode = currentEndpoint()?.path === "/email-otp/verify-email";
        const { methods } = policy.now() ?? {};
        return methods?.includes(isCode ? "email-otp" : "password") ?? true;
      },
    }),
});

/** How long sessions last, and how long passwords are. */
export function latePolicyContext(ctx: AuthContext, policy: PolicyOf): void {
  const { sessionConfig, password } = ctx;
  ctx.sessionConfig = readThrough(sessionConfig, {
    expiresIn: () => {
      const { expiresIn } = sessionConfig;
      return Math.min(expiresIn, policy.now()?.session?.expiresIn ?? expiresIn);
    },
  });
  const config = readThrough(password.config, {
    minPasswordLength: () =>
      Math.max(password.config.minPasswordLength, policy.now()?.password?.minLength ?? 0),
  });
  ctx.password = { ...password, config };
}
