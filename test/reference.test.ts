import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { statusCodes } from "better-call";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import * as server from "../src/index";
import { TENANT_INVITATION_ERROR_CODES, tenantInvitations } from "../src/invitations/index";
import { resolveInvitationOptions } from "../src/invitations/options";
import { resolveOptions } from "../src/options";
import { createInstance } from "./support/instance";
import { allRowsUnder, type DocumentedEndpoint, endpoints, root, rowsUnder } from "./support/pages";
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
};

describe("endpoints in docs/reference.md", () => {
  it("are all of them, and no others", () => {
    expect(endpoints.length).toBeGreaterThan(20);
    expect(endpoints.map((endpoint) => endpoint.server).toSorted()).toEqual(
      Object.keys(served).sort(),
    );
  });

  it.each(endpoints.map((endpoint) => [endpoint.title, endpoint] as const))(
    "%s: method, path, client and parameters",
    (_, endpoint) => {
      const { path, options } = served[endpoint.server] as Endpoint;
      expect(endpoint.path).toBe(path);
      if (path) expect(endpoint.methods).toEqual([options.method].flat());
      expect(endpoint.client).toBe(clientNameOf(path));
      expect(endpoint.parameters).toEqual(parametersOf(endpoint.server));
    },
  );
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
  const isManagement = ({ who }: DocumentedEndpoint) => who.startsWith("managers");

  let asked: string[] = [];
  const shared = shareMade(async (database) => {
    const canManageTenants: server.TenantAuthOptions["canManageTenants"] = (_, { action }) => {
      asked.push(action);
      return false;
    };
    const plugins = [tenantInvitations({ sendInvitationEmail })];
    const instance = await createInstance({ database, plugins, tenant: { canManageTenants } });
    const { id: tenantId } = await instance.createTenant("acme");
    const body = { tenantId, email: "ada@example.com", send: false };
    const api = instance.api as unknown as Inviting;
    const { id: invitationId } = await api.createTenantInvitation({ body });
    return { ...instance, tenantId, invitationId };
  });

  it.each(overHttp.map((endpoint) => [endpoint.title, endpoint] as const))(
    "%s",
    async (_, endpoint) => {
      asked = [];
      const values = samples(shared.tenantId);
      if (endpoint.path?.includes("/invitation/")) values.id = shared.invitationId;
      const input = Object.fromEntries(
        Object.entries(endpoint.parameters)
          .filter(([name, type]) => type.endsWith("required") || name.endsWith("tenantId"))
          .map(([name]) => name.replace(/^\w+\./, ""))
          .map((name) => [name, values[name] ?? ""]),
      );
      const { status, data } = await (endpoint.methods[0] === "GET"
        ? shared.browser().get(endpoint.path ?? "", { query: input })
        : shared.browser().post(endpoint.path ?? "", input));
      if (isManagement(endpoint)) {
        expect([status, data]).toMatchObject([403, { code: "TENANT_MANAGEMENT_NOT_ALLOWED" }]);
        const [, action] = /^managers, `([\w:-]+)`/.exec(endpoint.who) ?? [];
        expect(asked).toEqual([action]);
      } else {
        expect(asked).toEqual([]);
        expect(data).not.toMatchObject({ code: "UNAUTHORIZED" });
      }
    },
  );

  const samples = (tenantId: string): Record<string, string> => ({
    tenantId,
    name: "Al",
    slug: "globex",
    email: "al@example.com",
    password: "a long password",
    provider: "google",
    providerId: "google",
    clientId: "client",
    clientSecret: "secret",
    token: "nothing",
  });
});

describe("options in docs/reference.md", () => {
  const defaultsUnder = (heading: string) =>
    rowsUnder(heading).flatMap(([name, value = ""]) => {
      const text = value.replaceAll("`", "");
      if (!text || text === "required") return [];
      const isName = text === "DEFAULT_RESERVED_SLUGS";
      return [[name, isName ? server.DEFAULT_RESERVED_SLUGS : JSON.parse(text)]];
    });

  // That all of them are there, and no others, is for the compiler to say: test/docs.test.ts.
  it("have their defaults", () => {
    expect(Object.fromEntries(defaultsUnder("### `tenantAuth()`"))).toEqual(
      Object.fromEntries(
        Object.entries(resolveOptions()).filter(([, value]) => value !== undefined),
      ),
    );
    const { sendInvitationEmail: _, ...defaults } = resolveInvitationOptions({
      sendInvitationEmail,
    });
    expect(Object.fromEntries(defaultsUnder("### `tenantInvitations()`"))).toEqual(defaults);
  });
});

it("what the server entry exports is in docs/reference.md", () => {
  expect(
    rowsUnder("## Functions")
      .map(([name]) => name)
      .toSorted(),
  ).toEqual(Object.keys(server).sort());
});

describe("error codes in docs/reference.md", () => {
  const documented = new Map(
    allRowsUnder("## Error codes").map(([code, status]) => [code, Number(status)]),
  );
  const known = { ...server.TENANT_AUTH_ERROR_CODES, ...TENANT_INVITATION_ERROR_CODES };

  it("are all of them, and no others", () => {
    // The one that better-auth has for every endpoint.
    expect([...documented.keys()].sort()).toEqual(
      ["VALIDATION_ERROR", ...Object.keys(known)].sort(),
    );
  });

  it("have the status that the code is thrown with", () => {
    const thrown = sources().flatMap((text) =>
      [...text.matchAll(/"([A-Z_]+)",\s*TENANT_\w+_ERROR_CODES\.([A-Z_]+)/g)].map(
        ([, status = "", code = ""]) =>
          [code, statusCodes[status as keyof typeof statusCodes]] as const,
      ),
    );
    expect(new Set(thrown.map(([code]) => code)).size).toBeGreaterThan(20);
    for (const [code, status] of thrown)
      expect([code, documented.get(code)]).toEqual([code, status]);
  });

  function sources(): string[] {
    return readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => readFileSync(join(root, "src", name), "utf8"));
  }
});
