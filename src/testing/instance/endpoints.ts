import { toJSONSchema, type ZodType } from "zod";
import type { Subject } from "./subject";

/** An endpoint that the running instance answers over HTTP. */
export interface Endpoint {
  path: string;
  method: string;
  fields: Set<string>;
  body: JsonSchema | undefined;
  query: JsonSchema | undefined;
  /** The body takes fields that it does not name. */
  freeForm: boolean;
  /** Of the application, not of better-auth or one of its packages. */
  isOwn: boolean;
}

export interface JsonSchema {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  format?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  items?: JsonSchema;
  minimum?: number;
  additionalProperties?: unknown;
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

/** Plugins of better-auth and of this package; whatever else is installed is the application's. */
const OFFICIAL = new Set(
  `admin anonymous api-key bearer captcha custom-session device-authorization dub electron
  electron-proxy email-otp expo generic-oauth have-i-been-pwned i18n jwt last-login-method magic-link
  mcp multi-session next-cookies oauth-popup oauth-provider oauth-proxy oidc-provider one-tap
  one-time-token open-api organization passkey phone-number polar scim siwe sso stripe
  tanstack-start-cookies svelte-kit-cookies tenant-auth tenant-invitations test-utils two-factor
  username`.split(/\s+/),
);

function ownPathsOf({ plugins }: Subject): Set<string | undefined> {
  const own = plugins.filter(({ id }) => !OFFICIAL.has(id));
  const entries = own.flatMap(({ endpoints }) => Object.values(endpoints ?? {}) as ApiEntry[]);
  return new Set(entries.map(({ path }) => path));
}

/** Every endpoint that can be reached from outside, with each of its methods. */
export function endpointsOf(subject: Subject): Endpoint[] {
  const { api, ctx } = subject;
  const ownPaths = ownPathsOf(subject);
  const disabled = ctx.options.disabledPaths ?? [];
  return Object.values(api as unknown as Record<string, ApiEntry>).flatMap((entry) => {
    const { path, options = {} } = entry;
    if (!path || options.metadata?.SERVER_ONLY || disabled.includes(path)) return [];
    const body = describe(options.body);
    const query = describe(options.query);
    const params = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
    const names = [body, query].flatMap((schema) => Object.keys(fieldsOf(schema)));
    const fields = new Set([...names, ...params]);
    const freeForm =
      body !== undefined &&
      body.additionalProperties !== false &&
      Object.keys(fieldsOf(body)).length === 0;
    return [options.method ?? "GET"].flat().map((method) => ({
      path,
      method,
      fields,
      body,
      query,
      freeForm,
      isOwn: ownPaths.has(path),
    }));
  });
}

/** A schema of another library says nothing about its fields: such an input has to be given. */
function describe(schema: ZodType | undefined): JsonSchema | undefined {
  if (!schema) return undefined;
  try {
    return toJSONSchema(schema, { unrepresentable: "any", io: "input" }) as JsonSchema;
  } catch {
    return {};
  }
}

/** The fields of a schema; of its first form where it has several. */
export function fieldsOf(schema: JsonSchema | undefined): Record<string, JsonSchema> {
  if (!schema) return {};
  const parts = [...(schema.allOf ?? []), ...alternatives(schema).slice(0, 1)];
  return Object.assign({ ...schema.properties }, ...parts.map(fieldsOf));
}

export function requiredOf(schema: JsonSchema | undefined): string[] {
  if (!schema) return [];
  const parts = [...(schema.allOf ?? []), ...alternatives(schema).slice(0, 1)];
  return [...(schema.required ?? []), ...parts.flatMap(requiredOf)];
}

export const alternatives = ({ anyOf, oneOf }: JsonSchema) => anyOf ?? oneOf ?? [];
