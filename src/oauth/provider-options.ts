import { APIError } from "better-auth/api";
import type { ProviderOptions } from "better-auth/oauth2";
import * as z from "zod";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { isTrustedAddress, isTrustedHost } from "./hosts";
import { additionalClientIds, type ProviderTerms, shared, termsOf } from "./terms";

/** Options of a provider as a tenant gives them, checked. */
export type OwnOptions = Record<string, unknown>;

/** The options that a tenant gives for a provider, if they are complete and lead nowhere strange. */
export function parseOwnOptions(id: string, given: unknown, trusted: string[]): OwnOptions {
  const terms = termsOf(id);
  const schema = schemas.get(terms) ?? schemaOf(terms);
  schemas.set(terms, schema);
  const { data, error } = schema.safeParse(given ?? {});
  if (error) throw invalid(error.issues.slice(0, 5).map(describe).join("; "));
  assertTrusted(data, terms.addresses, (url, own) => isTrustedAddress(url, own, trusted));
  assertTrusted(data, terms.hosts, (host, own) => isTrustedHost(host, own, trusted));
  return data;
}

/** Building one takes longer than decrypting the credentials beside it. */
const schemas = new Map<ProviderTerms, ReturnType<typeof schemaOf>>();

function schemaOf({ takes, clientId }: ProviderTerms) {
  const more = clientId === "first of several" ? { additionalClientIds } : {};
  const rules = Object.entries({ ...shared, ...takes, ...more });
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
    const { code, message } = TENANT_AUTH_ERROR_CODES.UNTRUSTED_PROVIDER_HOST;
    throw APIError.from("BAD_REQUEST", { code, message: `options.${key}: ${message}` });
  }
}

/** Names the option, and never says what was in it. */
function describe(issue: z.core.$ZodIssue): string {
  const unknown = issue.code === "unrecognized_keys";
  const keys = unknown ? issue.keys.slice(0, 5) : [issue.path.join(".")];
  const named = keys.map((key) => `options.${key.slice(0, 64)}`).join(", ");
  return `${named}: ${unknown ? "this provider takes no such option" : issue.message}`;
}

export function invalid(message: string) {
  const { code } = TENANT_AUTH_ERROR_CODES.INVALID_PROVIDER_OPTIONS;
  return APIError.from("BAD_REQUEST", { code, message });
}

/** What better-auth's provider is built from: the tenant's client, on the application's terms. */
export function mergeOptions(
  id: string,
  client: { clientId: string; clientSecret: string; redirectURI?: string | undefined },
  own: OwnOptions,
  global: ProviderOptions,
): ProviderOptions {
  const { takes, place = [], clientId: kind } = termsOf(id);
  const { additionalClientIds = [], ...options } = own as { additionalClientIds?: string[] };
  const elsewhere = place.some((key) => key in own) ? [...place, "authorizationEndpoint"] : [];
  const dropped = [...GOES_WITH_THE_CLIENT, ...elsewhere];
  // An option that better-auth adds tomorrow may be a credential: what is not known stays behind.
  const known = { ...shared, ...takes };
  const behaviour = Object.entries(global).filter(
    ([key]) => Object.hasOwn(known, key) && !dropped.includes(key),
  );
  const { clientId, ...rest } = client;
  const ids = additionalClientIds.length ? [clientId, ...additionalClientIds] : clientId;
  const name = kind === "key" ? { clientKey: clientId } : { clientId: ids };
  return { ...Object.fromEntries(behaviour), ...options, ...rest, ...name };
}

/** Where a provider with these options describes itself, if it does. */
export function issuerOf(id: string, options: OwnOptions): string | undefined {
  const { issuer } = termsOf(id);
  return typeof issuer === "function" ? issuer(options) : issuer;
}

/**
 * Who gives out the ids of people: nobody in particular for the provider's own hosts, else the
 * address that the options name. A GitLab of one's own numbers its users as gitlab.com does.
 */
export function authorityOf(id: string, options: OwnOptions): string {
  const { addresses, hosts } = termsOf(id);
  const named = Object.entries({ ...addresses, ...hosts }).flatMap(([key, own]) => {
    const value = options[key] === undefined ? "" : String(options[key]);
    const isOwn = isTrustedAddress(value, own, []) || isTrustedHost(value, own, []);
    return value && !isOwn ? [value.toLowerCase()] : [];
  });
  return named.join(" ");
}

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
  "tokenEndpointAuthMethod",
  "verifyIdToken",
];
