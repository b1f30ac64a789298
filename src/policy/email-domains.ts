import { textOf } from "../framework";
import { type TenantPolicy, VERIFIED } from "./schema";

/**
 * Whether an address is of one of the domains: of the domain itself, and of none below it. What
 * others could read in another way is of none: an identity provider may say anything. Verified
 * domains are read with the tenant (`tenants/cache.ts`); where they were not, no address is of them.
 */
export const isInDomains = (
  domains: readonly string[] | typeof VERIFIED,
  email: unknown,
): boolean =>
  domains !== VERIFIED &&
  domains.includes(PLAIN_ADDRESS.exec(textOf(email).toLowerCase())?.[1] ?? "");

/** In the list that "verified" stands for. No address is of it. */
export const EVERY_ADDRESS = "@";

/**
 * Whether an address has to be verified before there is a session. With "verified" each one has to: it
 * may be of a domain that the tenant has lost since.
 */
export const needsProof = (domains: readonly string[] | typeof VERIFIED, email: unknown): boolean =>
  domains.includes(EVERY_ADDRESS) || isInDomains(domains, email);

const PLAIN_ADDRESS = /^[^@\s\p{Cc}]+@([^@\s\p{Cc}]+)$/u;

/** Why a policy does not admit a user with this email, invited or not; undefined if it does. */
export function whyNotAdmitted(policy: TenantPolicy | null | undefined, email: unknown) {
  const { signUp, emailDomains } = policy ?? {};
  if (signUp === "closed") return "SIGN_UP_CLOSED";
  if (emailDomains && !isInDomains(emailDomains, email)) return "EMAIL_DOMAIN_NOT_ALLOWED";
  return undefined;
}
