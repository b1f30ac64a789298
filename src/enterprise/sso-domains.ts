import { APIError } from "better-auth/api";
import type { Row } from "../isolation/isolation";
import { DOMAIN } from "../policy/schema";

/*
 * The one place that reads the `domain` of a provider. better-auth splits it at commas, and takes
 * the host of each part: of "evil.example/ acme.example" it verifies evil.example. Only a plain name
 * means the same to everybody who reads it, so nothing else is stored, and nothing else that is
 * stored already proves an address.
 */

/** As better-auth splits it. */
const partsOf = (domain: unknown) =>
  String(domain)
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

const isPlain = (part: string) => DOMAIN.test(part);

/** The names that were verified as they stand there, where the domain of the provider was verified. */
export const plainDomains = (domain: unknown): string[] =>
  partsOf(domain)
    .filter(isPlain)
    .map((name) => name.toLowerCase());

/**
 * Whether better-auth may take a provider for that of a domain, or of one below it. It reads the
 * host of parts that are addresses, from before.
 */
export function isForDomain(domain: unknown, asked: string): boolean {
  const name = `.${asked.trim().toLowerCase()}`;
  const hosts = String(domain)
    .toLowerCase()
    .split(/[\s,/:@?#]+/);
  return hosts.some((host) => host !== "" && name.endsWith(`.${host}`));
}

/** Refuses to store anything else, whichever endpoint asks for it. */
export function assertPlainDomains({ domain }: Row): void {
  if (domain === undefined) return;
  const parts = partsOf(domain);
  if (parts.length > 0 && parts.every(isPlain)) return;
  // The code that better-auth has for it where the domain is verified.
  throw new APIError("BAD_REQUEST", {
    code: "INVALID_DOMAIN",
    message: `[body.domain] Expected domain names, separated by commas: "acme.com,acme.org"`,
  });
}
