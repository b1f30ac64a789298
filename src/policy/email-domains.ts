import { textOf } from "../framework";
import type { TenantPolicy } from "./schema";

/**
 * Whether an address is of one of the domains: of the domain itself, and of none below it. What
 * others could read in another way is of none: an identity provider may say anything.
 */
export const isInDomains = (domains: readonly string[], email: unknown): boolean =>
  domains.includes(PLAIN_ADDRESS.exec(textOf(email).toLowerCase())?.[1] ?? "");

const PLAIN_ADDRESS = /^[^@\s\p{Cc}]+@([^@\s\p{Cc}]+)$/u;

/** Why a policy does not admit a user with this email, invited or not; undefined if it does. */
export function whyNotAdmitted(policy: TenantPolicy | null | undefined, email: unknown) {
  const { signUp, emailDomains } = policy ?? {};
  if (signUp === "closed") return "SIGN_UP_CLOSED";
  if (emailDomains && !isInDomains(emailDomains, email)) return "EMAIL_DOMAIN_NOT_ALLOWED";
  return undefined;
}
