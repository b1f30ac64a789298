import { tenantError } from "../errors";

const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:|$)/;

/** The machine itself, with or without a port: there is nobody in between who could listen. */
const isLoopback = (host: string) => LOOPBACK.test(host);

// Letter by letter what may stand in an address. The URL parser forgives a lot (backslashes, tabs,
// credentials, numbers that are an IP address, dots in a path), so what needs forgiving is refused.
const ADDRESS =
  /^(https?):\/\/((?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?::\d{1,5})?)((?:\/[\w~-][\w.~-]*)*)$/i;

/**
 * Whether an address that a tenant gave leads to the provider's own hosts or to one that the
 * application trusts, and nowhere else: the server will call it, with the tenant's secret. On the
 * provider's own hosts a path could be a page that somebody else has put there, so there is none,
 * unless the table says so with `/*`.
 */
export function isTrustedAddress(address: string, own: string[], trusted: string[]): boolean {
  const [, scheme = "", host = "", path = ""] = ADDRESS.exec(address.toLowerCase()) ?? [];
  if (!URL.canParse(address) || !isSpelledOut(address, host)) return false;
  const covers = (pattern: string) =>
    pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern;
  const isOwn = (pattern: string) =>
    pattern.endsWith("/*") ? covers(pattern.slice(0, -2)) : path === "" && covers(pattern);
  if (scheme === "https") return own.some(isOwn) || trusted.some(covers);
  return isLoopback(host) && trusted.some(covers);
}

/** The same for a bare host, which the provider puts into an https address. */
export function isTrustedHost(host: string, own: string[], trusted: string[]): boolean {
  return !host.includes("/") && isTrustedAddress(`https://${host}`, own, trusted);
}

/** 0x7f.1 and 2130706433 are 127.0.0.1 to the parser: such a host is not what it looks like. */
function isSpelledOut(address: string, host: string): boolean {
  return new URL(address).hostname === host.replace(/:\d+$/, "");
}

/** An absolute https URL (http on loopback only) without a fragment, credentials or tricks. */
export function assertRedirectURI(uri: string | null | undefined): void {
  if (uri !== undefined && uri !== null && !isRedirectURI(uri)) {
    throw tenantError("INVALID_REDIRECT_URI");
  }
}

/**
 * A tenant that brought the provider's host cannot choose an address that others use as well: the
 * codes of another tenant's provider would be taken for its own.
 */
export function assertNamesTenant(uri: string | null | undefined, tenantId: string): void {
  if (!uri) return;
  const [named, ...more] = tenantsIn(uri);
  if (named === tenantId && more.length === 0) return;
  const parameter = `tenant=${encodeURIComponent(tenantId)}`;
  const message = `This provider is not at its public host: add ${parameter} to the query of the redirect URI`;
  throw tenantError("INVALID_REDIRECT_URI", message);
}

function isRedirectURI(uri: string): boolean {
  // The parser forgives backslashes, control characters and spaces. A provider compares the
  // redirect URI letter by letter, so what needs forgiving is refused.
  if (!/^https?:\/\/[^/?@]+([/?].*)?$/i.test(uri) || !/^[!-~]+$/.test(uri)) return false;
  if (/[\\<>"^`{|}#]/.test(uri) || !URL.canParse(uri)) return false;
  const url = new URL(uri);
  return url.protocol === "https:" || isLoopback(url.hostname);
}

/** The tenants that a redirect URI names: usually none, and one where the address is its own. */
export function tenantsIn(redirectURI: string): string[] {
  return URL.canParse(redirectURI)
    ? new URL(redirectURI).searchParams.getAll(TENANT_PARAMETER)
    : [];
}

/** Not `tenantId`: that parameter names the tenant of a request, and here the state does. */
export const TENANT_PARAMETER = "tenant";
