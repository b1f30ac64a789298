import type { ProviderOptions } from "better-auth/oauth2";
import * as z from "zod";
import { tenantError } from "../errors";
import { read } from "../framework";
import { additionalClientIds, entryOf, type ProviderEntry, shared } from "./provider-table";
import { isTrustedAddress, isTrustedHost } from "./trusted-addresses";

/** Options of a provider as a tenant gives them, checked. */
export type OwnOptions = Record<string, unknown>;

/** The options that a tenant gives for a provider, if they are complete and lead nowhere strange. */
export function parseOwnOptions(id: string, given: unknown, trusted: string[]): OwnOptions {
  const entry = entryOf(id);
  const schema = schemas.get(entry) ?? schemaOf(entry);
  schemas.set(entry, schema);
  const { data, error } = schema.safeParse(given ?? {});
  if (error) throw invalid(error.issues.slice(0, 5).map(describe).join("; "));
  assertTrusted(data, entry.addresses, (url, own) => isTrustedAddress(url, own, trusted));
  assertTrusted(data, entry.hosts, (host, own) => isTrustedHost(host, own, trusted));
  return data;
}

/** Building one takes longer than decrypting the credentials beside it. */
const schemas = new Map<ProviderEntry, ReturnType<typeof schemaOf>>();

function schemaOf({ options, clientId }: ProviderEntry) {
  const more = clientId === "first of several" ? { additionalClientIds } : {};
  const rules = Object.entries({ ...shared, ...options, ...more });
  return z.strictObject(
    Object.fromEntries(rules.filter((rule) => rule[1] !== null)) as z.ZodRawShape,
  );
}

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
    throw tenantError("UNTRUSTED_PROVIDER_HOST", `options.${key}: ${reason}`);
  }
}

/** Names the option, and never says what was in it. */
function describe(issue: z.core.$ZodIssue): string {
  const unknown = issue.code === "unrecognized_keys";
  const keys = unknown ? issue.keys.slice(0, 5) : [issue.path.join(".")];
  const named = keys.map((key) => `options.${key.slice(0, 64)}`).join(", ");
  return `${named}: ${unknown ? "this provider takes no such option" : issue.message}`;
}

export const invalid = (message: string) => tenantError("INVALID_PROVIDER_OPTIONS", message);

/**
 * What better-auth's provider is built from: the tenant's client, on the application's terms. Those
 * are read late: they may come from a class, and change at run time.
 */
export function mergeOptions(
  id: string,
  client: Pick<ProviderOptions, "redirectURI" | "scope"> & {
    clientId: string;
    clientSecret: string;
  },
  own: OwnOptions,
  global: () => ProviderOptions,
): ProviderOptions {
  const { options: possible, clientId: kind } = entryOf(id);
  const location = locationOf(id);
  const { additionalClientIds = [], ...options } = own as { additionalClientIds?: string[] };
  const elsewhere = location.some((key) => key in own)
    ? [...location, "authorizationEndpoint"]
    : [];
  const dropped = [...GOES_WITH_THE_CLIENT, ...elsewhere];
  const { clientId, ...rest } = client;
  const ids = additionalClientIds.length ? [clientId, ...additionalClientIds] : clientId;
  const name = kind === "key" ? { clientKey: clientId } : { clientId: ids };
  const merged: ProviderOptions = { ...options, ...rest, ...name };
  // An option that better-auth adds tomorrow may be a credential: what is not known stays behind.
  for (const key of Object.keys({ ...shared, ...possible })) {
    if (dropped.includes(key) || Object.hasOwn(merged, key)) continue;
    // One that is not there may come later, and must not stand for better-auth's default until then.
    const enumerable = key in global();
    const get = () => read(global(), key);
    const set = (value: unknown) => Object.defineProperty(merged, key, { value, writable: true });
    Object.defineProperty(merged, key, { get, set, enumerable, configurable: true });
  }
  return merged;
}

/** Where a provider with these options describes itself, if it does. */
export function issuerOf(id: string, options: OwnOptions): string | undefined {
  const { issuer } = entryOf(id);
  return typeof issuer === "function" ? issuer(options) : issuer;
}

/** The issuer exactly as the provider spells it, where that is certain. */
export function certainIssuerOf(id: string, options: OwnOptions): string | undefined {
  const issuer = entryOf(id).hasCertainIssuer ? issuerOf(id, options) : undefined;
  // Providers write their host in lower case, and better-auth compares letter by letter.
  return issuer && URL.canParse(issuer) ? new URL(issuer).href.replace(/\/$/, "") : undefined;
}

/**
 * Who gives out the ids of people: nobody in particular for the provider's own hosts, else the
 * address that the options name. A GitLab of one's own numbers its users as gitlab.com does.
 */
export function authorityOf(id: string, options: OwnOptions): string {
  const { addresses, hosts } = entryOf(id);
  const named = Object.entries({ ...addresses, ...hosts }).flatMap(([key, own]) => {
    const value = options[key] === undefined ? "" : String(options[key]);
    const isOwn = isTrustedAddress(value, own, []) || isTrustedHost(value, own, []);
    return value && !isOwn ? [value.toLowerCase()] : [];
  });
  return named.join(" ");
}

/** Whether options that a tenant gave, checked or not, name a host that is not the provider's own. */
export function isAtForeignHost(id: string, own: OwnOptions): boolean {
  const spelled = (value: unknown) =>
    typeof value === "string" ? value.replace(/\/$/, "") : value;
  const entries = Object.entries(own).map(([key, value]) => [key, spelled(value)]);
  return authorityOf(id, Object.fromEntries(entries)) !== "";
}

/** Whether a change of a tenant's options would send its secret to another place. */
export function isMove(id: string, from: OwnOptions, to: OwnOptions): boolean {
  return locationOf(id).some((key) => from[key] !== to[key]);
}

/** The options that say where at the provider a client lives. */
export const locationOf = (id: string): string[] => entryOf(id).location ?? [];

/** Never taken over from the global provider: its credentials, and what acts or speaks for them. */
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
