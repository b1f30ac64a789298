import { oauthError } from "./errors";

/** Returns whether a host, with or without a port, is this machine: http is safe there. */
const isLoopback = (host: string) => /^(localhost|127\.0\.0\.1|\[::1\])(:|$)/.test(host);

// Refuses what the URL parser tolerates: backslashes, tabs, credentials, and path segments that
// begin with a dot.
const ADDRESS =
  /^(https?):\/\/((?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?::\d{1,5})?)((?:\/[\w~-][\w.~-]*)*)$/i;

/**
 * Returns whether an address is at a public host of the provider, or at a host that the application
 * trusts. The server sends the tenant's secret there. On a public host, another customer may
 * control a path, so a path is allowed only if the table says so with `/*`.
 */
export function isTrustedAddress(address: string, own: string[], trusted: string[]): boolean {
  const [, scheme = "", host = "", path = ""] = ADDRESS.exec(address.toLowerCase()) ?? [];
  // Refuses unusual IP addresses: the parser reads 0x7f.1 and 2130706433 as 127.0.0.1.
  if (!URL.canParse(address)) return false;
  if (new URL(address).hostname !== host.replace(/:\d+$/, "")) return false;
  const covers = (pattern: string) =>
    pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern;
  const isOwn = (pattern: string) =>
    pattern.endsWith("/*") ? covers(pattern.slice(0, -2)) : path === "" && covers(pattern);
  if (scheme === "https") return own.some(isOwn) || trusted.some(covers);
  return isLoopback(host) && trusted.some(covers);
}

/** Returns whether a host without a scheme is trusted. The provider puts it into an https URL. */
export function isTrustedHost(host: string, own: string[], trusted: string[]): boolean {
  return !host.includes("/") && isTrustedAddress(`https://${host}`, own, trusted);
}

/** Refuses a redirect URI that is not a plain absolute https URL (http on loopback only). */
export function assertRedirectURI(uri: string | null | undefined): void {
  if (uri != null && !isRedirectURI(uri)) throw oauthError("INVALID_REDIRECT_URI");
}

/**
 * Refuses a redirect URI without the tenant, if the tenant runs the provider's host: at a shared
 * URI, that host would receive the codes of other tenants' providers.
 */
export function assertNamesTenant(uri: string | null | undefined, tenantId: string): void {
  if (!uri) return;
  const [named, ...more] = tenantsIn(uri);
  if (named === tenantId && more.length === 0) return;
  const parameter = `tenant=${encodeURIComponent(tenantId)}`;
  const message = `This provider is not at its public host: add ${parameter} to the query of the redirect URI`;
  throw oauthError("INVALID_REDIRECT_URI", message);
}

function isRedirectURI(uri: string): boolean {
  // Providers compare redirect URIs exactly, so this refuses what the URL parser would change.
  if (!/^https?:\/\/[^/?@]+([/?].*)?$/i.test(uri) || !/^[!-~]+$/.test(uri)) return false;
  if (/[\\<>"^`{|}#]/.test(uri) || !URL.canParse(uri)) return false;
  const url = new URL(uri);
  return url.protocol === "https:" || isLoopback(url.hostname);
}

/**
 * Returns the `tenant` values of a redirect URI. The parameter is not called `tenantId`, because
 * that would name the tenant that the callback runs in.
 */
export function tenantsIn(redirectURI: string): string[] {
  return URL.canParse(redirectURI) ? new URL(redirectURI).searchParams.getAll("tenant") : [];
}
