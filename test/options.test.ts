import { describe, expect, it } from "vitest";
import * as client from "../src/client";
import { TENANT_AUTH_ERROR_CODES, type TenantAuthOptions, tenantAuth } from "../src/index";
import { createInstance } from "./support/instance";
import { createWorld } from "./support/world";

/** Options as somebody without a type checker might write them. */
const build = (options: Record<string, unknown>) => tenantAuth(options as TenantAuthOptions);

describe("mistakes in the options show when the plugin is built", () => {
  it.each<[string, Record<string, unknown>]>([
    ["resolveTenantId", { resolveTenantId: "acme" }],
    ["canManageTenants", { canManageTenants: true }],
    ["tenantHeader", { tenantHeader: "" }],
    ["tenantHeader", { tenantHeader: "x tenant" }],
    ["tenantHeader", { tenantHeader: "x-mieter-ä" }],
    ["adminUserIds", { adminUserIds: "somebody" }],
    ["adminUserIds", { adminUserIds: [""] }],
    ["adminRoles", { adminRoles: "admin" }],
    ["adminRoles", { adminRoles: [""] }],
    ["reservedSlugs", { reservedSlugs: "www" }],
    ["keepEmailGloballyUnique", { keepEmailGloballyUnique: "yes" }],
    ["scopedModels", { scopedModels: "organization" }],
    ["scopedModels", { scopedModels: [""] }],
    ["sharedModels", { sharedModels: "organization" }],
    ["sharedModels", { scopedModels: ["passkey"], sharedModels: ["passkey"] }],
    ["schema", { schema: "tenant" }],
    ["schema", { schema: { tenant: "organisations" } }],
    ["schema", { schema: { tenant: { modelName: "" } } }],
    ["schema", { schema: { tenant: { modelname: "organisations" } } }],
    ["schema", { schema: { tenant: { fields: { name: 1 } } } }],
    ["schema", { schema: { tenants: { modelName: "organisations" } } }],
    ["schema", { schema: { tenant: { fields: { title: "label" } } } }],
    // Tables of better-auth are renamed by its own options; here the name would do nothing.
    ["schema", { schema: { user: { modelName: "people" } } }],
    ["header", { header: "x-org" }],
  ])("%s: %j", (name, options) => {
    expect(() => build(options)).toThrow(/^tenantAuth\(\)/);
    expect(() => build(options)).toThrow(name);
  });

  const RIGHT: TenantAuthOptions = {
    resolveTenantId: async () => null,
    tenantHeader: "X-Org",
    adminUserIds: ["somebody"],
    adminRoles: [],
    canManageTenants: () => false,
    reservedSlugs: [],
    keepEmailGloballyUnique: true,
    scopedModels: ["organization"],
    sharedModels: ["passkey"],
    schema: { tenant: { modelName: "organisations", fields: { name: "title" } } },
  };

  it("says nothing about options that are right, left out or undefined", () => {
    const absent = Object.fromEntries(Object.keys(RIGHT).map((name) => [name, undefined]));
    const before = structuredClone(RIGHT.schema);
    for (const options of [undefined, {}, absent, RIGHT]) {
      expect(() => tenantAuth(options)).not.toThrow();
    }
    // The object stays as it was given.
    expect(RIGHT.schema).toEqual(before);
  });
});

it("cannot be installed twice", async () => {
  const start = createInstance({ arrange: (ours, others) => [ours, ...others, tenantAuth()] });
  await expect(start).rejects.toThrow(/tenantAuth\(\): it is in `plugins` more than once/);
});

it("error codes are the same everywhere, each with its name and a message", async () => {
  const world = await createWorld();
  expect(tenantAuth().$ERROR_CODES).toBe(TENANT_AUTH_ERROR_CODES);
  expect(client.TENANT_AUTH_ERROR_CODES).toBe(TENANT_AUTH_ERROR_CODES);
  expect(client.tenantAuthClient().$ERROR_CODES).toBe(TENANT_AUTH_ERROR_CODES);
  const known = Object.entries(TENANT_AUTH_ERROR_CODES);
  expect(known.length).toBeGreaterThan(12);
  for (const [name, { code, message }] of known) {
    expect(code).toBe(name);
    expect(message).toMatch(/\w+/);
    expect(world.auth.$ERROR_CODES).toMatchObject({ [name]: { code, message } });
  }
  const body = { tenantId: "nobody", email: "a@example.com", password: "password" };
  const answer = await world.browser().post("/tenant/sign-in/email", body);
  const { code, message } = TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND;
  expect(answer.data).toEqual({ code, message });
});
