import { toJSONSchema, type ZodType } from "zod";
import { PASSWORD } from "../support/instance";

/** An endpoint that the running instance answers over HTTP. */
export interface Endpoint {
  path: string;
  method: string;
  fields: Set<string>;
  body: JsonSchema | undefined;
  query: JsonSchema | undefined;
}

interface JsonSchema {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  items?: JsonSchema;
  minimum?: number;
}

interface ApiEntry {
  path?: string;
  options?: {
    method?: string | string[];
    body?: ZodType;
    query?: ZodType;
    metadata?: { SERVER_ONLY?: boolean; scope?: string };
  };
}

/** Every endpoint that can be reached from outside, with each of its methods. */
export function endpointsOf(api: object): Endpoint[] {
  return Object.values(api as Record<string, ApiEntry>).flatMap(({ path, options = {} }) => {
    if (!path || options.metadata?.SERVER_ONLY) return [];
    const body = describe(options.body);
    const query = describe(options.query);
    const params = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
    const fields = new Set([
      ...Object.keys(fieldsOf(body)),
      ...Object.keys(fieldsOf(query)),
      ...params,
    ]);
    return [options.method ?? "GET"]
      .flat()
      .map((method) => ({ path, method, fields, body, query }));
  });
}

function describe(schema: ZodType | undefined): JsonSchema | undefined {
  if (!schema) return undefined;
  return toJSONSchema(schema, { unrepresentable: "any", io: "input" }) as JsonSchema;
}

/** The fields of a schema; of its first form where it has several. */
function fieldsOf(schema: JsonSchema | undefined): Record<string, JsonSchema> {
  if (!schema) return {};
  const parts = [...(schema.allOf ?? []), ...alternatives(schema).slice(0, 1)];
  return Object.assign({ ...schema.properties }, ...parts.map(fieldsOf));
}

function requiredOf(schema: JsonSchema | undefined): string[] {
  if (!schema) return [];
  const parts = [...(schema.allOf ?? []), ...alternatives(schema).slice(0, 1)];
  return [...(schema.required ?? []), ...parts.flatMap(requiredOf)];
}

const alternatives = ({ anyOf, oneOf }: JsonSchema) => anyOf ?? oneOf ?? [];

type Values = Record<string, unknown>;
export interface Input {
  path: string;
  query: Record<string, string>;
  body: Values | undefined;
}

/**
 * A request to the endpoint with the given values wherever it takes them, and with something
 * plausible in whatever else it asks for. The bare one leaves out all that may be left out.
 */
export function inputFor(endpoint: Endpoint, given: Values, bare = false): Input {
  const values: Values = { ...given, ...overrides(endpoint.path, given) };
  const fill = (schema: JsonSchema | undefined) => {
    const required = new Set(requiredOf(schema));
    const entries = Object.entries(fieldsOf(schema)).flatMap(([name, field]) => {
      const wanted = required.has(name) || (!bare && values[name] !== undefined);
      return wanted ? [[name, values[name] ?? madeUp(name, field)] as const] : [];
    });
    return Object.fromEntries(entries);
  };
  const path = endpoint.path.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(String(values[name] ?? "unknown")),
  );
  const body =
    endpoint.method === "GET" ? undefined : { ...fill(endpoint.body), ...freeForm(endpoint.path) };
  // What the body says need not be said twice.
  const query = Object.fromEntries(
    Object.entries(fill(endpoint.query))
      .filter(([name]) => !(body && name in body))
      .map(([name, value]) => [name, String(value)]),
  );
  return { path, query, body };
}

/** The fields whose name says too little. */
function overrides(
  path: string,
  { userId, passkeyId, keyId, invitationId, tenantId, id }: Values,
): Values {
  if (path === "/admin/get-user") return { id: userId };
  if (path.startsWith("/passkey/")) return { id: passkeyId };
  if (path.startsWith("/api-key/")) return { id: keyId };
  if (path === "/organization/get-invitation") return { id: invitationId };
  if (path === "/tenant/get") return { id: tenantId ?? "unknown" };
  if (path === "/admin/update-user") return { data: { name: "changed" } };
  // Signing out of the provider as well would be another flow.
  return { id: id ?? "gitlab" };
}

/** Bodies that take any field. */
function freeForm(path: string): Values {
  if (path === "/update-user") return { name: "changed", image: "https://example.com/changed.png" };
  if (path === "/update-session") return { userAgent: "changed" };
  return {};
}

const PLAUSIBLE: Values = {
  password: PASSWORD,
  currentPassword: PASSWORD,
  newPassword: "another good password",
  name: "changed",
  slug: "a-new-slug",
  newEmail: "changed@example.com",
  role: "admin",
  provider: "gitlab",
  providerId: "gitlab",
  clientId: "changed",
  clientSecret: "changed",
  callbackURL: "/welcome",
  otp: "000000",
  code: "000000",
  message: "localhost:3000 wants you to sign in",
  permission: { user: ["list"] },
  response: { id: "unknown", response: {} },
};

function madeUp(name: string, schema: JsonSchema): unknown {
  if (name in PLAUSIBLE) return PLAUSIBLE[name];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const [first] = alternatives(schema);
  if (first) return madeUp(name, first);
  const [type] = [schema.type].flat();
  if (type === "boolean") return true;
  if (type === "number" || type === "integer") return schema.minimum ?? 1;
  if (type === "array") return schema.items ? [madeUp("", schema.items)] : [];
  if (type === "object") {
    const fields = Object.entries(schema.properties ?? {});
    return Object.fromEntries(fields.map(([key, field]) => [key, madeUp(key, field)]));
  }
  return "unknown";
}
