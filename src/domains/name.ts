import { parse } from "tldts";
import { DOMAIN } from "../policy/schema";
import { domainError } from "./errors";

/** In front of the domain, so that the record says nothing about mail or the website. */
const LABEL = "_tenant-verification";

/** Where the record of a domain has to be. */
export const recordNameOf = (domain: string) => `${LABEL}.${domain}`;

/** The longest name in DNS is 253 characters, and the record has to have one. */
const MOST = 253 - recordNameOf("").length;

/** Everything that a URL has besides a name. The URL parser would read it as something else. */
const NOT_A_NAME = /[\s\p{Cc}/\\:@?#%*[\]_]/u;

/** The one form of a domain: ASCII (an IDN as `xn--…`), lower case, without a trailing dot. */
export function normalizeDomain(input: string): string {
  // One more for a trailing dot. First: what follows sees a short text.
  const isName = input.length <= 254 && !NOT_A_NAME.test(input);
  const address = `http://${input}`;
  // The parser of the runtime knows the rules for IDN, and what is an IP address in disguise.
  const host = isName && URL.canParse(address) ? new URL(address).hostname : "";
  return host.replace(/\.$/, "");
}

/** Refuses what no tenant can own: public suffixes (`co.uk`, `github.io`), IP addresses, `localhost`. */
export function requireDomain(input: string): string {
  const name = normalizeDomain(input);
  const isLong = name.length > MOST || name.split(".").some((label) => label.length > 63);
  const { domain, isIp } = parse(name, { allowPrivateDomains: true, extractHostname: false });
  if (!DOMAIN.test(name) || isLong || !domain || isIp || name.endsWith(".localhost")) {
    throw domainError("INVALID_DOMAIN");
  }
  return name;
}
