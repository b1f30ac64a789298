import { type core, toJSONSchema, type ZodType } from "zod";
import type { Subject } from "./subject";

export type Schema = core.JSONSchema.BaseSchema;

/** An endpoint that the running instance answers over HTTP. */
export interface Endpoint {
  /** Method and path: what reports call it. */
  name: string;
  path: string;
  method: string;
  fields: Set<string>;
  body: Schema | undefined;
  query: Schema | undefined;
  /** The body takes fields that it does not name. */
  freeForm: boolean;
  /** Of the application, not of better-auth or one of its packages. */
  isOwn: boolean;
}

interface ApiEntry {
  path?: string;
  options?: {
    method?: string | string[];
    body?: ZodType;
    query?: ZodType;
    metadata?: { SERVER_ONLY?: boolean };
  };
}

/** Plugins of better-auth and of this package; all others are the application's. */
const OFFICIAL = new Set(
  `admin anonymous api-key bearer captcha custom-session device-authorization dub electron
  electron-proxy email-otp expo generic-oauth have-i-been-pwned i18n jwt last-login-method magic-link
  mcp multi-session next-cookies oauth-popup oauth-provider oauth-proxy oidc-provider one-tap
  one-time-token open-api organization passkey phone-number polar scim siwe sso stripe
  tanstack-start-cookies svelte-kit-cookies tenant-auth tenant-domains tenant-invitations test-utils
  two-factor username`.split(/\s+/),
);

/** Every endpoint that can be reached from outside, with each of its methods. */
export function endpointsOf({ api, ctx, plugins }: Subject): Endpoint[] {
  const own = plugins.filter(({ id }) => !OFFICIAL.has(id));
  const ownEntries = own.flatMap(({ endpoints }) => Object.values(endpoints ?? {}) as ApiEntry[]);
  const ownPaths = new Set(ownEntries.map(({ path }) => path));
  const disabled = ctx.options.disabledPaths ?? [];
  return Object.values(api as unknown as Record<string, ApiEntry>).flatMap((entry) => {
    const { path, options = {} } = entry;
    if (!path || options.metadata?.SERVER_ONLY || disabled.includes(path)) return [];
    const [body, query] = [describe(options.body), describe(options.query)];
    const params = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
    const named = Object.keys(fieldsOf(body));
    const fields = new Set([...named, ...Object.keys(fieldsOf(query)), ...params]);
    const freeForm = body !== undefined && body.additionalProperties !== false && !named.length;
    const rest = { path, fields, body, query, freeForm, isOwn: ownPaths.has(path) };
    const methods = [options.method ?? "GET"].flat();
    return methods.map((method) => ({ name: `${method} ${path}`, method, ...rest }));
  });
}

/** A schema of another library says nothing about its fields: such an input has to be given. */
function describe(schema: ZodType | undefined): Schema | undefined {
  if (!schema) return undefined;
  try {
    return toJSONSchema(schema, { unrepresentable: "any", io: "input" });
  } catch {
    return {};
  }
}

/** A schema and its parts; of several forms, the first one. */
const partsOf = (schema: Schema | undefined): Schema[] =>
  schema
    ? [schema, ...[...(schema.allOf ?? []), ...formsOf(schema).slice(0, 1)].flatMap(partsOf)]
    : [];

export const fieldsOf = (schema: Schema | undefined): Record<string, Schema> =>
  Object.assign({}, ...partsOf(schema).map(({ properties }) => properties));

export const requiredOf = (schema: Schema | undefined): string[] =>
  partsOf(schema).flatMap(({ required = [] }) => required);

export const formsOf = ({ anyOf, oneOf }: Schema) => anyOf ?? oneOf ?? [];
