const LOOPBACK = /^(localhost|127\.0\.0\.1|\[::1\])(:|$)/;

/** The machine itself, with or without a port: there is nobody in between who could listen. */
export const isLoopback = (host: string) => LOOPBACK.test(host);

// Letter by letter what may stand in an address. The URL parser forgives a lot (backslashes, tabs,
// credentials, numbers that are an IP address, dots in a path), so what needs forgiving is refused.
const ADDRESS =
  /^(https?):\/\/((?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?::\d{1,5})?)(?:\/[\w~-][\w.~-]*)*$/i;

/**
 * Whether an address that a tenant gave leads to the provider's own hosts or to one that the
 * application trusts, and nowhere else: the server will call it, with the tenant's secret.
 */
export function isTrustedAddress(address: string, own: string[], trusted: string[]): boolean {
  const [, scheme = "", host = ""] = ADDRESS.exec(address.toLowerCase()) ?? [];
  if (!URL.canParse(address) || !isSpelledOut(address, host)) return false;
  const covers = (pattern: string) =>
    pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern;
  if (scheme === "https") return [...own, ...trusted].some(covers);
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
