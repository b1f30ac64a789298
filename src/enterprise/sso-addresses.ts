import type { HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { type BeforeHook, parseJSON, textOf } from "../framework";
import type { Row } from "../isolation/isolation";
import type { ResolvedOptions } from "../options";
import { askForHosts } from "../request/addresses";
import { currentEndpoint } from "../request/endpoint";
import { defaultProviders } from "./exact";
import { isForDomain } from "./sso-domains";
import { isAboutSSO } from "./sso-trust";

/*
 * R9 for identity providers. Where a resolver goes by the host, an address that nobody has asked it
 * about is trusted nowhere. better-auth asks about the addresses of a provider (where to discover
 * its endpoints, a provider in a private network, where to go after a sign-in that the provider has
 * started) at a moment when nobody can wait for the resolver. So they are looked up before.
 */

/** Looks up the hosts in rows, and in the JSON that these hold. */
export type AskForHosts = (rows: unknown) => Promise<void>;

export const hostsAskedFor =
  (options: ResolvedOptions): AskForHosts =>
  async (rows) => {
    const endpoint = currentEndpoint() as HookEndpointContext | undefined;
    if (!options.resolveTenantId || !endpoint) return;
    await askForHosts(endpoint, options, [rows].flat().map(contents), "what is stored");
  };

const contents = (row: unknown) =>
  typeof row === "object" && row ? Object.values(row).map(parsed) : [];

const parsed = (value: unknown) =>
  typeof value === "string" && value.startsWith("{") ? parseJSON(value) : value;

/**
 * The providers that better-auth goes on with. Of a list that is those for the domain of whoever
 * signs in: there may be a hundred of others, and the resolver may ask a database for each host.
 */
export function providersInUse(found: unknown): unknown {
  if (!Array.isArray(found)) return found;
  const { path, body } = currentEndpoint() ?? {};
  if (path !== "/sign-in/sso") return [];
  const { domain, email } = (body ?? {}) as { domain?: unknown; email?: unknown };
  const asked = textOf(domain) || (textOf(email).split("@")[1] ?? "");
  return found.filter((row: Row) => isForDomain(row.domain, asked));
}

/** A relay state says where to go after a sign-in, and is read at an address of no tenant's. */
export const hasRelayState = () => currentEndpoint()?.path?.startsWith("/sso/saml2/") === true;

const REGISTERS = ["/sso/register", "/sso/update-provider"];

/** The same for a provider that is about to be registered, and for the endpoints that it has. */
export const askForWrittenHosts = (options: ResolvedOptions): BeforeHook => ({
  matcher: ({ path }) => options.resolveTenantId !== undefined && REGISTERS.includes(path ?? ""),

  handler: createAuthMiddleware(async (given) => {
    const ctx = given as HookEndpointContext;
    await askForHosts(ctx, options, ctx.body, "the caller");
    await askForHosts(ctx, options, await discoveryDocument(ctx), "the caller");
  }),
});

/**
 * And for what better-auth reads from nowhere else: the application's own providers, where a flow
 * starts or comes back, and the page to go to after a sign-out at a provider.
 */
export const askForGivenHosts = (options: ResolvedOptions): BeforeHook => ({
  matcher: ({ path }) => options.resolveTenantId !== undefined && isAboutSSO(path),

  handler: createAuthMiddleware(async (given) => {
    const ctx = given as HookEndpointContext;
    await askForHosts(ctx, options, defaultProviders(ctx.context), "what is stored");
    const relayed = [ctx.query?.RelayState, ctx.body?.RelayState];
    await askForHosts(ctx, options, relayed, "the caller");
  }),
});

const TIMEOUT = 10_000;

/**
 * The document that better-auth is about to read: endpoints may be at another host than the issuer,
 * as Google's are. Read as better-auth does, at a trusted address and without following redirects,
 * so that nobody sends this server to addresses in its own network.
 */
async function discoveryDocument({ path, body, context }: HookEndpointContext): Promise<unknown> {
  const { issuer, oidcConfig } = (body ?? {}) as {
    issuer?: unknown;
    oidcConfig?: { skipDiscovery?: unknown; discoveryEndpoint?: unknown } | null;
  };
  if (path !== "/sso/register" || !oidcConfig || oidcConfig.skipDiscovery) return undefined;
  const { discoveryEndpoint } = oidcConfig;
  const address =
    textOf(discoveryEndpoint) ||
    `${textOf(issuer).replace(/\/$/, "")}/.well-known/openid-configuration`;
  if (!/^https?:/.test(address) || !context.isTrustedOrigin(address)) return undefined;
  try {
    const signal = AbortSignal.timeout(TIMEOUT);
    return await (await fetch(address, { redirect: "manual", signal })).json();
  } catch {
    // better-auth reads it again, and says what is wrong.
    return undefined;
  }
}
