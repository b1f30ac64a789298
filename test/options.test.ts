import { betterAuth } from "better-auth";
import { describe, expect, it } from "vitest";
import * as client from "../src/client";
import {
  DEFAULT_RESERVED_SLUGS,
  TENANT_AUTH_ERROR_CODES,
  type TenantAuthOptions,
  tenantAuth,
} from "../src/index";
import { createInstance } from "./support/instance";

/** Options as somebody without a type checker might write them. */
const build = (options: Record<string, unknown>) => tenantAuth(options as TenantAuthOptions);

describe("mistakes in the options show when the plugin is built", () => {
  it.each<[string, Record<string, unknown>]>([
    ["resolveTenantId", { resolveTenantId: "acme" }],
    ["canManageTenants", { canManageTenants: true }],
    ["tenantHeader", { tenantHeader: 1 }],
    ["tenantHeader", { tenantHeader: "" }],
    ["tenantHeader", { tenantHeader: "x tenant" }],
    ["tenantHeader", { tenantHeader: "x-tenant:" }],
    ["tenantHeader", { tenantHeader: "x-tenant\n" }],
    ["tenantHeader", { tenantHeader: "x-mieter-ä" }],
    ["adminUserIds", { adminUserIds: "somebody" }],
    ["adminUserIds", { adminUserIds: [1] }],
    ["adminUserIds", { adminUserIds: [""] }],
    ["adminRoles", { adminRoles: "admin" }],
    ["adminRoles", { adminRoles: [""] }],
    ["adminRoles", { adminRoles: [null] }],
    ["reservedSlugs", { reservedSlugs: "www" }],
    ["reservedSlugs", { reservedSlugs: [1] }],
    ["keepEmailGloballyUnique", { keepEmailGloballyUnique: "yes" }],
    ["scopedModels", { scopedModels: "organization" }],
    ["scopedModels", { scopedModels: [""] }],
    ["sharedModels", { sharedModels: "organization" }],
    ["sharedModels", { sharedModels: [1] }],
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
    ["tenantheader", { tenantheader: "x-org" }],
  ])("%s: %j", (name, options) => {
    expect(() => build(options)).toThrow(/^tenantAuth\(\)/);
    expect(() => build(options)).toThrow(name);
  });

  it("says nothing about options that are right, left out or undefined", () => {
    expect(() => tenantAuth()).not.toThrow();
    expect(() => tenantAuth({})).not.toThrow();
    expect(() =>
      tenantAuth({
        resolveTenantId: undefined,
        tenantHeader: undefined,
        adminUserIds: undefined,
        adminRoles: undefined,
        canManageTenants: undefined,
        reservedSlugs: undefined,
        keepEmailGloballyUnique: undefined,
        scopedModels: undefined,
        sharedModels: undefined,
        schema: undefined,
      }),
    ).not.toThrow();
    expect(() =>
      tenantAuth({
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
      }),
    ).not.toThrow();
  });

  it("leaves the object that it was given as it was", () => {
    const options = { schema: { tenant: { fields: { name: "title" } } } };
    tenantAuth(options);
    expect(options).toEqual({ schema: { tenant: { fields: { name: "title" } } } });
  });
});

it("cannot be installed twice", async () => {
  const { database } = await createInstance();
  const start = betterAuth({
    secret: "a test secret that is long enough for everybody",
    database: database.option,
    plugins: [tenantAuth(), tenantAuth()],
  }).$context;
  await expect(start).rejects.toThrow(/tenantAuth\(\) is installed more than once/);
});

describe("tenantHeader", () => {
  it("R1: names the tenant in place of x-tenant-id, whatever its case", async () => {
    const instance = await createInstance({ tenant: { tenantHeader: "X-Org" } });
    const { id } = await instance.createTenant();
    const { browser } = await instance.signUp(id);
    const session = (header: string, value: string) =>
      browser.get<{ session: { tenantId: string } } | null>("/get-session", {
        headers: { [header]: value },
      });
    expect((await session("x-org", id)).data?.session.tenantId).toBe(id);
    expect((await session("X-ORG", "another")).data).toBeNull();
    // The default name means nothing any more.
    expect((await session("x-tenant-id", "another")).data?.session.tenantId).toBe(id);
  });
});

describe("reservedSlugs", () => {
  it("has a list of its own, which the option replaces", async () => {
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
});

describe("error codes", () => {
  const CODES = [
    "TENANT_NOT_FOUND",
    "TENANT_ID_REQUIRED",
    "TENANT_ID_OR_SLUG_REQUIRED",
    "TENANT_ALREADY_EXISTS",
    "INVALID_SLUG",
    "SLUG_RESERVED",
    "UNAUTHORIZED",
    "TENANT_MANAGEMENT_NOT_ALLOWED",
    "UNSUPPORTED_PROVIDER",
    "PROVIDER_NOT_FOUND",
    "OAUTH_CONFIG_NOT_FOUND",
    "OAUTH_CREDENTIAL_DECRYPT_FAILED",
    "INVALID_REDIRECT_URI",
  ] as const;

  it.each(CODES)("%s has its name for a code, and a message", (code) => {
    expect(TENANT_AUTH_ERROR_CODES[code].code).toBe(code);
    expect(TENANT_AUTH_ERROR_CODES[code].message).toMatch(/\w+/);
  });

  it("are the same on the plugin, on the instance and in the client entry", async () => {
    const instance = await createInstance();
    expect(tenantAuth().$ERROR_CODES).toBe(TENANT_AUTH_ERROR_CODES);
    expect(client.TENANT_AUTH_ERROR_CODES).toBe(TENANT_AUTH_ERROR_CODES);
    for (const code of CODES) {
      const { message } = TENANT_AUTH_ERROR_CODES[code];
      expect(instance.auth.$ERROR_CODES[code]).toMatchObject({ code, message });
    }
  });

  it("carry the message that the endpoints answer with", async () => {
    const instance = await createInstance();
    const answer = await instance.browser().post("/tenant/sign-in/email", {
      tenantId: "nobody",
      email: "a@example.com",
      password: "password",
    });
    const { code, message } = TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND;
    expect(answer.data).toEqual({ code, message });
  });
});
