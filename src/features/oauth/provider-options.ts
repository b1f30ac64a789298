import type { ProviderOptions } from "better-auth/oauth2";
import * as z from "zod";
import { oncePerObject } from "../../core/utils";
import { oauthError } from "./errors";
import { additionalClientIds, entryOf, type ProviderEntry, shared } from "./provider-table";
import { isTrustedAddress, isTrustedHost } from "./trusted-addresses";

/** Checked options that a tenant set for a provider. */
export type OwnOptions = Record<string, unknown>;

/** Returns a tenant's options, checked to be complete and to have only trusted addresses. */
export function parseOwnOptions(id: string, given: unknown, trusted: string[]): OwnOptions {
  const entry = entryOf(id);
  const { data, error } = schemaOf(entry).safeParse(given ?? {});
  if (error) throw invalid(error.issues.slice(0, 5).map(describe).join("; "));
  assertTrusted(data, entry.addresses, (url, own) => isTrustedAddress(url, own, trusted));
  assertTrusted(data, entry.hosts, (host, own) => isTrustedHost(host, own, trusted));
  return data;
}

/** Builds the schema once per provider: building takes longer than decrypting the credentials. */
const schemaOf = oncePerObject(({ options, clientId }: ProviderEntry) => {
  const more = clientId === "first of several" ? { additionalClientIds } : {};
  const rules = Object.entries({ ...shared, ...options, ...more }).filter(([, rule]) => rule);
  return z.strictObject(Object.fromEntries(rules) as z.ZodRawShape);
});

function assertTrusted(
  options: OwnOptions,
  named: Record<string, string[]> = {},
  isTrusted: (value: string, own: string[]) => boolean,
) {
  for (const [key, own] of Object.entries(named)) {
    const value = options[key];
    if (value === undefined || isTrusted(String(value), own)) continue;
    const [origin = ""] = /^https:\/\/[^/]+/i.exec(String(value)) ?? [];
    const reason = isTrusted(origin, own) ? "Leave out the path" : "Untrusted provider host";
    throw oauthError("UNTRUSTED_PROVIDER_HOST", `options.${key}: ${reason}`);
  }
}

/** Describes an issue by the name of the option, never by its value, which may be a secret. */
function describe(issue: z.core.$ZodIssue): string {
  const unknown = issue.code === "unrecognized_keys";
  const keys = unknown ? issue.keys.slice(0, 5) : [issue.path.join(".")];
  const named = keys.map((key) => `options.${key.slice(0, 64)}`).join(", ");
  return `${named}: ${unknown ? "this provider takes no such option" : issue.message}`;
}

export const invalid = (message: string) => oauthError("INVALID_PROVIDER_OPTIONS", message);

/** Combines a tenant's client and options with the behavior of the application's provider. */
export function mergeOptions(
  id: string,
  client: ProviderOptions & { clientId: string },
  own: OwnOptions,
  application: ProviderOptions,
): ProviderOptions {
  const { options: possible, clientId: kind } = entryOf(id);
  const location = locationOf(id);
  const isElsewhere = location.some((key) => key in own);
  const dropped = [
    ...GOES_WITH_THE_CLIENT,
    ...(isElsewhere ? [...location, "authorizationEndpoint"] : []),
  ];
  // Takes known options only. An option that better-auth adds later may be a credential of the
  // application, which a tenant must not get.
  const behavior = Object.entries(application).filter(
    ([key]) => (key in shared || key in possible) && !dropped.includes(key),
  );
  const { additionalClientIds = [], ...options } = own as { additionalClientIds?: string[] };
  const { clientId, ...rest } = client;
  const ids = additionalClientIds.length ? [clientId, ...additionalClientIds] : clientId;
  const name = kind === "key" ? { clientKey: clientId } : { clientId: ids };
  return { ...Object.fromEntries(behavior), ...options, ...rest, ...name };
}

/** Returns the base of the provider's discovery URL, if the provider has one. */
export function issuerOf(id: string, options: OwnOptions): string | undefined {
  const { issuer, discovery = issuer } = entryOf(id);
  return typeof discovery === "function" ? discovery(options) : discovery;
}

/** Returns the issuer exactly as the provider spells it, if that is certain. */
export function certainIssuerOf(id: string, options: OwnOptions): string | undefined {
  const issuer = entryOf(id).issuer && issuerOf(id, options);
  // Written in lower case, like providers do: better-auth compares exactly, so other spellings
  // would refuse every sign-in.
  return issuer && URL.canParse(issuer) ? new URL(issuer).href.replace(/\/$/, "") : undefined;
}

/**
 * Returns the host that issues account ids, or "" for the provider's public hosts. Account ids of
 * two hosts may be equal: a self-hosted GitLab numbers its users as gitlab.com does.
 */
export function authorityOf(id: string, options: OwnOptions): string {
  const { addresses, hosts } = entryOf(id);
  const named = Object.entries({ ...addresses, ...hosts }).flatMap(([key, own]) => {
    const value = String(options[key] ?? "").replace(/\/$/, "");
    const isOwn = isTrustedAddress(value, own, []) || isTrustedHost(value, own, []);
    return value && !isOwn ? [value.toLowerCase()] : [];
  });
  return named.join(" ");
}

/** Returns whether a tenant's options, checked or not, name a host other than the public ones. */
export const isAtForeignHost = (id: string, own: OwnOptions) => authorityOf(id, own) !== "";

/** Returns the names of the options that select the provider's server (see provider-table.ts). */
export const locationOf = (id: string): string[] => entryOf(id).location ?? [];

/** Options that a tenant never gets from the application: credentials, and what uses them. */
const GOES_WITH_THE_CLIENT = [
  "appBundleIdentifier",
  "audience",
  "clientAssertion",
  "clientId",
  "clientKey",
  "clientSecret",
  "configId",
  "redirectURI",
  "refreshAccessToken",
  "tokenEndpointAuth",
  "tokenEndpointAuthMethod",
  "verifyIdToken",
];
