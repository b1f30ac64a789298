import { describe, expect, it } from "vitest";
import * as client from "../src/client";
import {
  DEFAULT_RESERVED_SLUGS,
  TENANT_AUTH_ERROR_CODES,
  type TenantAuthOptions,
  tenantAuth,
} from "../src/index";
import { createInstance, PASSWORD } from "./support/instance";
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
    for (const options of [undefined, {}, absent, RIGHT]) {
      expect(() => tenantAuth(options)).not.toThrow();
    }
  });

  it("leaves the object that it was given as it was", () => {
    const options = { schema: { tenant: { fields: { name: "title" } } } };
    tenantAuth(options);
    expect(options).toEqual({ schema: { tenant: { fields: { name: "title" } } } });
  });
});

it("cannot be installed twice", async () => {
  const start = createInstance({ arrange: (ours, others) => [ours, ...others, tenantAuth()] });
  await expect(start).rejects.toThrow(/tenantAuth\(\) is installed more than once/);
});

it("R1: tenantHeader names the tenant in place of x-tenant-id, whatever its case", async () => {
  const world = await createWorld({ tenant: { tenantHeader: "X-Org" } });
  const { acme, globex } = world.ids;
  const browser = world.browser();
  const person = { name: "A", email: "a@example.com", password: PASSWORD, tenantId: acme };
  await browser.post("/tenant/sign-up/email", person);
  const whoIs = (headers: Record<string, string>) => world.whoIs(browser.fork(headers));
  expect(await whoIs({ "x-org": acme })).toMatchObject({ tenantId: acme });
  expect(await whoIs({ "X-ORG": globex })).toBeNull();
  // The default name means nothing any more.
  expect(await whoIs({ "x-tenant-id": globex })).toMatchObject({ tenantId: acme });
});

it("reservedSlugs has a list of its own, which the option replaces", async () => {
  expect(DEFAULT_RESERVED_SLUGS).toEqual(expect.arrayContaining(["admin", "api", "www"]));
  const standard = await createInstance();
  await expect(standard.createTenant("admin")).rejects.toMatchObject({
    statusCode: 400,
    body: { code: "SLUG_RESERVED" },
  });
  const instance = await createInstance({ tenant: { reservedSlugs: ["acme"] } });
  await expect(instance.createTenant("acme")).rejects.toMatchObject({
    body: { code: "SLUG_RESERVED" },
  });
  expect(await instance.createTenant("admin")).toMatchObject({ slug: "admin" });
});

it("error codes are the same everywhere, each with its name and a message", async () => {
  const world = await createWorld();
  expect(tenantAuth().$ERROR_CODES).toBe(TENANT_AUTH_ERROR_CODES);
  expect(client.TENANT_AUTH_ERROR_CODES).toBe(TENANT_AUTH_ERROR_CODES);
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
