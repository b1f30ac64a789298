import { textOf } from "../../core/utils";
import { type TenantPolicy, VERIFIED } from "./schema";

/**
 * Returns whether an address belongs to one of the domains. Subdomains do not count. Only plain
 * addresses count, because an identity provider may send a text that other software reads as
 * another address. Returns false for `VERIFIED`, which `withVerifiedDomains` replaces by a list.
 */
export const isInDomains = (
  domains: readonly string[] | typeof VERIFIED,
  email: unknown,
): boolean =>
  domains !== VERIFIED &&
  domains.includes(PLAIN_ADDRESS.exec(textOf(email).toLowerCase())?.[1] ?? "");

/**
 * An entry in the list that `withVerifiedDomains` writes instead of "verified". It says that every
 * address needs proof, and matches no address itself.
 */
export const EVERY_ADDRESS = "@";

/**
 * Returns whether an address must be verified before its user gets a session. With "verified", this
 * is true for every address, because the tenant may have lost the domain of the address since.
 */
export const needsProof = (domains: readonly string[] | typeof VERIFIED, email: unknown): boolean =>
  domains.includes(EVERY_ADDRESS) || isInDomains(domains, email);

const PLAIN_ADDRESS = /^[^@\s\p{Cc}]+@([^@\s\p{Cc}]+)$/u;

/** Returns why a policy refuses a user with this email, even if invited, or undefined. */
export function whyNotAdmitted(policy: TenantPolicy | null | undefined, email: unknown) {
  const { signUp, emailDomains } = policy ?? {};
  if (signUp === "closed") return "SIGN_UP_CLOSED";
  if (emailDomains && !isInDomains(emailDomains, email)) return "EMAIL_DOMAIN_NOT_ALLOWED";
  return undefined;
}
