import { tenantError } from "../errors";

/** The machine itself, with or without a port: http is safe there. */
const isLoopback = (host: string) => /^(localhost|127\.0\.0\.1|\[::1\])(:|$)/.test(host);

// The URL parser accepts backslashes, tabs, credentials, numeric IP addresses and dots in a path.
// An address that contains any of these is refused.
const ADDRESS =
  /^(https?):\/\/((?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?::\d{1,5})?)((?:\/[\w~-][\w.~-]*)*)$/i;

/**
 * Whether a tenant's address leads to the provider's public hosts or to a host that the application
 * trusts: the server sends the tenant's secret there. On public hosts, another customer may control
 * a path, so none is allowed unless the table says so with `/*`.
 */
export function isTrustedAddress(address: string, own: string[], trusted: string[]): boolean {
  const [, scheme = "", host = "", path = ""] = ADDRESS.exec(address.toLowerCase()) ?? [];
  // The parser reads 0x7f.1 and 2130706433 as 127.0.0.1.
  if (!URL.canParse(address)) return false;
  if (new URL(address).hostname !== host.replace(/:\d+$/, "")) return false;
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

/** An absolute https URL (http on loopback only) without a fragment, credentials or tricks. */
export function assertRedirectURI(uri: string | null | undefined): void {
  if (uri != null && !isRedirectURI(uri)) throw tenantError("INVALID_REDIRECT_URI");
}

/**
 * A tenant that brought the provider's host cannot share its redirect URI with other tenants: it
 * would receive the codes of their providers.
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
  // A provider compares the redirect URI exactly, so nothing is accepted that the parser changes.
  if (!/^https?:\/\/[^/?@]+([/?].*)?$/i.test(uri) || !/^[!-~]+$/.test(uri)) return false;
  if (/[\\<>"^`{|}#]/.test(uri) || !URL.canParse(uri)) return false;
  const url = new URL(uri);
  return url.protocol === "https:" || isLoopback(url.hostname);
}

/** The tenants that a redirect URI names, usually none. `tenantId` would be that of the request. */
export function tenantsIn(redirectURI: string): string[] {
  return URL.canParse(redirectURI) ? new URL(redirectURI).searchParams.getAll("tenant") : [];
}
