import { parse } from "tldts";
import { DOMAIN } from "../policy/schema";
import { domainError } from "./errors";

/** The first label of the record's name. Keeps it apart from records for mail and the website. */
const LABEL = "_tenant-verification";

/** Returns the DNS name of the record that proves a domain. */
export const recordNameOf = (domain: string) => `${LABEL}.${domain}`;

/** The longest domain: in DNS, the name of its record may have at most 253 characters. */
const MOST = 253 - recordNameOf("").length;

/**
 * Characters with a special meaning in URLs. A text with one of them is refused, because the URL
 * parser would read only a part of it as the name.
 */
const NOT_A_NAME = /[\s\p{Cc}/\\:@?#%*[\]_]/u;

/** Normalizes a domain to lower-case ASCII (`xn--…`) without a trailing dot; "" if invalid. */
export function normalizeDomain(input: string): string {
  // 253 characters and a trailing dot. Checked first, so that the next checks see a short text.
  const isName = input.length <= 254 && !NOT_A_NAME.test(input);
  const address = `http://${input}`;
  // The URL parser applies the rules for IDN, and recognizes IP addresses in any notation.
  const host = isName && URL.canParse(address) ? new URL(address).hostname : "";
  return host.replace(/\.$/, "");
}

/**
 * Returns the normalized domain. Refuses names that no tenant can own: public suffixes (`co.uk`,
 * `github.io`), IP addresses, `localhost`.
 */
export function requireDomain(input: string): string {
  const name = normalizeDomain(input);
  const isLong = name.length > MOST || name.split(".").some((label) => label.length > 63);
  const { domain, isIp } = parse(name, { allowPrivateDomains: true, extractHostname: false });
  if (!DOMAIN.test(name) || isLong || !domain || isIp || name.endsWith(".localhost")) {
    throw domainError("INVALID_DOMAIN");
  }
  return name;
}
