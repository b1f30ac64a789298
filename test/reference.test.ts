import type { APIError } from "better-auth/api";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { CORE_ERROR_CODES } from "../src/core/error-codes";
import { tenantError } from "../src/core/errors";
import { domainError } from "../src/features/domains/errors";
import { TENANT_DOMAIN_ERROR_CODES, tenantDomains } from "../src/features/domains/index";
import { resolveDomainOptions } from "../src/features/domains/options";
import { ENTERPRISE_ERROR_CODES } from "../src/features/enterprise/error-codes";
import { enterpriseError } from "../src/features/enterprise/errors";
import { INTEGRATIONS_ERROR_CODES } from "../src/features/integrations/error-codes";
import { integrationsError } from "../src/features/integrations/errors";
import { TENANT_INVITATION_ERROR_CODES } from "../src/features/invitations/error-codes";
import { invitationError } from "../src/features/invitations/errors";
import { tenantInvitations } from "../src/features/invitations/index";
import { resolveInvitationOptions } from "../src/features/invitations/options";
import { MANAGEMENT_ERROR_CODES } from "../src/features/management/error-codes";
import { managementError } from "../src/features/management/errors";
import { MANAGEMENT_ACTIONS } from "../src/features/management/options";
import { OAUTH_ERROR_CODES } from "../src/features/oauth/error-codes";
import { oauthError } from "../src/features/oauth/errors";
import { POLICY_ERROR_CODES } from "../src/features/policy/error-codes";
import { policyError } from "../src/features/policy/errors";
import * as server from "../src/index";
import { resolveOptions } from "../src/options";
import { allRowsUnder, endpoints, rowsUnder, textUnder } from "./guides/reference";
import { createInstance } from "./support/instance";
import { shareMade } from "./support/world";

type Schema = z.core.JSONSchema.JSONSchema;
interface Endpoint {
  path?: string;
  options: { method: string | string[]; body?: z.ZodType; query?: z.ZodType };
}

type Inviting = ReturnType<typeof tenantInvitations>["endpoints"];

const sendInvitationEmail = () => {};
const served: Record<string, Endpoint> = {
  ...server.tenantAuth().endpoints,
  ...tenantInvitations({ sendInvitationEmail }).endpoints,
  ...tenantDomains().endpoints,
};

describe("endpoints in docs/reference.md", () => {
  it("are all of them, and no others", () => {
    expect(endpoints.length).toBeGreaterThan(20);
    expect(endpoints.map((endpoint) => endpoint.server).toSorted()).toEqual(
      Object.keys(served).sort(),
    );
  });

  it.each(endpoints)("$title: method, path, client and parameters", (endpoint) => {
    const { path, options } = served[endpoint.server] as Endpoint;
    expect(endpoint.path).toBe(path);
    if (path) expect(endpoint.methods).toEqual([options.method].flat());
    else expect(endpoint.who).toBe("server code only");
    expect(endpoint.client).toBe(clientNameOf(path));
    expect(endpoint.parameters).toEqual(parametersOf(endpoint.server));
  });
});

/** As better-auth's client makes paths from names. What providers call has none. */
function clientNameOf(path: string | undefined): string | undefined {
  if (!path || path.includes(":")) return undefined;
  return path
    .slice(1)
    .replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
    .replaceAll("/", ".");
}

function parametersOf(name: string): Record<string, string> {
  const { body, query } = (served[name] as Endpoint).options;
  const parameters = { ...typesIn("body", body), ...typesIn("query", query) };
  // better-auth's sign-up asks for an address. Here it comes from the invitation.
  if (name === "acceptTenantInvitation") parameters["body.email"] = "string";
  return parameters;
}

function typesIn(place: string, schema: z.ZodType | undefined): Record<string, string> {
  if (!schema) return {};
  const whole = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Schema;
  const parts = ((whole.allOf as Schema[]) ?? [whole]).flatMap(({ properties, required = [] }) =>
    Object.entries(properties ?? {}).map(([name, type]) => [
      `${place}.${name}`,
      typeOf(type as Schema) + (required.includes(name) ? ", required" : ""),
    ]),
  );
  return Object.fromEntries(parts);
}

function typeOf({ anyOf, type, items }: Schema): string {
  const kinds = [...new Set((anyOf as Schema[])?.map(typeOf))];
  // The query of a URL has numbers as text.
  if (kinds.includes("number")) return "number";
  if (kinds.length) return kinds.join(" or ");
  if (type === "array") return `${typeOf(items as Schema)}[]`;
  return type === "integer" ? "number" : String(type ?? "object");
}

describe("who may call, in docs/reference.md", () => {
  const overHttp = endpoints.filter(({ path }) => path && !path.includes(":"));
  let asked: string[] = [];
  const shared = shareMade(async (database) => {
    const canManageTenants: server.TenantAuthOptions["canManageTenants"] = (_, { action }) => {
      asked.push(action);
      return false;
    };
    const plugins = [tenantInvitations({ sendInvitationEmail }), tenantDomains()];
    const instance = await createInstance({ database, plugins, tenant: { canManageTenants } });
    const { id: tenantId } = await instance.createTenant("acme");
    const body = { tenantId, email: "ada@example.com", send: false };
    const api = instance.api as unknown as Inviting;
    const { id: invitationId } = await api.createTenantInvitation({ body });
    return { ...instance, tenantId, invitationId };
  });

  const samples: Record<string, string> = {
    name: "Al",
    slug: "globex",
    email: "al@example.com",
    password: "a long password",
    provider: "google",
    providerId: "google",
    clientId: "client",
    clientSecret: "secret",
    token: "nothing",
    userId: "nobody",
    domain: "acme.com",
  };

  it.each(overHttp)("$title", async ({ path = "", who, methods, parameters }) => {
    asked = [];
    const { tenantId, invitationId } = shared;
    const values = {
      ...samples,
      tenantId,
      ...(path.includes("/invitation/") && { id: invitationId }),
    };
    const needed = Object.keys(parameters).filter(
      (name) => parameters[name]?.endsWith("required") || name.endsWith("tenantId"),
    );
    const names = needed.map((name) => name.replace(/^\w+\./, ""));
    const input = Object.fromEntries(
      names.map((name) => [name, values[name as keyof typeof values] ?? ""]),
    );
    const browser = shared.browser();
    const { status, data } = await (methods[0] === "GET"
      ? browser.get(path, { query: input })
      : browser.post(path, input));
    const [, action] = /^requires `([\w:-]+)`/.exec(who) ?? [];
    expect(asked).toEqual(action ? [action] : []);
    if (action) {
      expect([status, data]).toMatchObject([403, { code: "TENANT_MANAGEMENT_NOT_ALLOWED" }]);
    } else {
      expect(who).toBe("public");
      expect(data).not.toMatchObject({ code: "UNAUTHORIZED" });
    }
  });
});

/** The defaults in the table under a heading. */
const defaultsUnder = (heading: string) => {
  const rows = rowsUnder(heading).map(([name, value = ""]) => [name, value.replaceAll("`", "")]);
  const told = rows.filter(([, text]) => text && text !== "required");
  return Object.fromEntries(
    told.map(([name, text = ""]) => [
      name,
      text === "DEFAULT_RESERVED_SLUGS" ? server.DEFAULT_RESERVED_SLUGS : JSON.parse(text),
    ]),
  );
};

// That all options are there, and no others, is for the compiler to say: test/docs.test.ts.
it("options in docs/reference.md have their defaults, and all exports are there", () => {
  const defaults = Object.entries(resolveOptions()).filter(([, value]) => value !== undefined);
  expect(defaultsUnder("### `tenantAuth()`")).toEqual(Object.fromEntries(defaults));
  const { sendInvitationEmail: _, ...ofInvitations } = resolveInvitationOptions({
    sendInvitationEmail,
  });
  expect(defaultsUnder("### `tenantInvitations()`")).toEqual(ofInvitations);
  const { resolveTxt: __, ...ofDomains } = resolveDomainOptions();
  expect(defaultsUnder("### `tenantDomains()`")).toEqual(ofDomains);
  const functions = rowsUnder("## Functions").map(([name]) => name);
  expect(functions.toSorted()).toEqual(Object.keys(server).sort());
});

it("actions in docs/reference.md are all of them", () => {
  const lists = textUnder("### `tenantAuth()`").match(/^- .*$/gm) ?? [];
  const actions = [...lists.join("\n").matchAll(/`([\w-]+:[\w-]+)`/g)].map(([, action]) => action);
  expect(actions.toSorted()).toEqual(MANAGEMENT_ACTIONS.toSorted());
});

/** The error codes of each part of the package, and how it creates an error. */
const ERRORS: [codes: object, create: (code: never) => APIError][] = [
  [CORE_ERROR_CODES, tenantError],
  [MANAGEMENT_ERROR_CODES, managementError],
  [OAUTH_ERROR_CODES, oauthError],
  [POLICY_ERROR_CODES, policyError],
  [ENTERPRISE_ERROR_CODES, enterpriseError],
  [INTEGRATIONS_ERROR_CODES, integrationsError],
  [TENANT_INVITATION_ERROR_CODES, invitationError],
  [TENANT_DOMAIN_ERROR_CODES, domainError],
];

it("error codes in docs/reference.md are all of them, with the status that they are thrown with", () => {
  const rows = allRowsUnder("## Error codes");
  const documented = Object.fromEntries(rows.map(([code, status]) => [code, Number(status)]));
  const codes = [
    server.TENANT_AUTH_ERROR_CODES,
    TENANT_INVITATION_ERROR_CODES,
    TENANT_DOMAIN_ERROR_CODES,
  ];
  const thrown = codes.flatMap(Object.keys).map((code) => {
    const create = ERRORS.find(([known]) => code in known)?.[1];
    const { body, statusCode } = create?.(code as never) ?? {};
    return [body?.code, statusCode];
  });
  // The last one is better-auth's, for every endpoint.
  expect(documented).toEqual({ ...Object.fromEntries(thrown), VALIDATION_ERROR: 400 });
});
