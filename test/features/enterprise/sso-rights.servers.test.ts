import { organization } from "better-auth/plugins";
import { beforeAll, describe, expect, it } from "vitest";
import type { TenantAuthOptions, TenantManagementRequest } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { databases } from "../../support/database";
import { expectRefused, outcome } from "../../support/world";
import { createSSOWorld, type SSOWorld, shareSSOWorld } from "./world";

const DNS = { domainVerification: { enabled: true } } as const;

const NOT_ALLOWED = [403, "TENANT_MANAGEMENT_NOT_ALLOWED"];

type Call = { path: string; body?: object; query?: Record<string, string> };

/** Every call about identity providers that is not a sign-in. */
const calls = (world: SSOWorld, providerId: string): Call[] => [
  { path: "/sso/register", body: world.oidc(`${providerId}-2`) },
  { path: "/sso/providers" },
  { path: "/sso/get-provider", query: { providerId } },
  { path: "/sso/update-provider", body: { providerId, domain: "other.example" } },
  { path: "/sso/request-domain-verification", body: { providerId } },
  { path: "/sso/verify-domain", body: { providerId } },
  { path: "/sso/delete-provider", body: { providerId } },
];

const send = (browser: Browser, { path, body, query = {} }: Call, headers = {}) =>
  browser.send(path, { method: body ? "POST" : "GET", query, headers, ...(body && { body }) });

async function listed(browser: Browser) {
  type List = { providers: { providerId: string }[] };
  const { data } = await browser.get<List>("/sso/providers");
  return data.providers.map(({ providerId }) => providerId).sort();
}

describe.each(databases)("who manages the identity providers of a tenant, on %s", (database) => {
  const tenant: TenantAuthOptions = { tenantRoles: { admin: ["sso:*"], auditor: ["sso:list"] } };
  const world = shareSSOWorld({ sso: DNS, tenant }, database);
  beforeAll(() => world.register("acme", "acme-okta"));

  it("is no ordinary user, in the tenant, elsewhere or on the platform", async () => {
    const { acme, globex, platform } = await world.janes();
    const admin = await world.as("admin", "globex");
    const unnamed = (browser: Browser) => world.at("platform", browser);
    await world.unchanged(async () => {
      for (const call of calls(world, "acme-okta")) {
        for (const browser of [unnamed(acme), acme, unnamed(globex), platform]) {
          expect(outcome(await send(browser, call)), call.path).toEqual(NOT_ALLOWED);
        }
        // R5: elsewhere, a session is no session.
        for (const browser of [platform, admin, world.at("acme")]) {
          const { status } = await send(browser, call, world.naming("acme"));
          expect(status, call.path).toBe(401);
        }
      }
    });
  });

  it("is no user whose role does not allow this action", async () => {
    const auditor = await world.join("acme", "auditor");
    expect(await listed(auditor)).toEqual(["acme-okta"]);
    const answer = await auditor.post("/sso/register", world.oidc("acme-another"));
    expect(outcome(answer)).toEqual(NOT_ALLOWED);
  });

  it("are all administrators of the tenant, not only the one who registered it", async () => {
    const { id, providerId } = await world.newTenant();
    const second = world.at("platform", await world.join(id, "admin"));
    expect(await listed(second)).toEqual([providerId]);
    for (const call of calls(world, providerId)) {
      if (call.path === "/sso/verify-domain") continue;
      expect((await send(second, call)).status, call.path).toBeLessThan(300);
    }
  });

  it("are operators of the platform, in the tenant that they name", async () => {
    const { id, providerId, slug, admin } = await world.newTenant();
    const operator = await world.operator();
    const atTenant = world.at(id, operator);
    const body = world.oidc(`${slug}-entra`, { domain: "entra.example" });
    expect((await atTenant.post("/sso/register", body)).status).toBe(200);
    expect(await listed(atTenant)).toEqual([`${slug}-entra`, providerId]);
    expect(await listed(admin)).toEqual([`${slug}-entra`, providerId]);
    expect(await listed(operator)).toEqual([]);
    const update = { providerId, domain: "new.example" };
    expect((await atTenant.post("/sso/update-provider", update)).status).toBe(200);
    // The right is for this call: the operator is nobody in the tenant afterwards.
    expect(await world.whoIs(atTenant)).toBe(null);
    expect(await world.whoIs(operator)).toMatchObject({ tenantId: null });
  });

  it("is no caller who impersonates", async () => {
    const { id } = await world.newTenant();
    const member = await world.signUp(id);
    const operator = world.at("platform", await world.operator());
    const acting = await operator.post("/admin/impersonate-user", { userId: member.id });
    expect(acting.status).toBe(200);
    // better-auth lets nobody act as an administrator, but roles change.
    await world.setRole(member.id, "admin");
    expect((await member.get("/sso/providers")).status).toBe(200);
    expect((await operator.get("/sso/providers")).status).toBe(403);
  });

  it.each([undefined, [], { providerId: "acme-okta", oidcConfig: null }])(
    "gets an answer to the change %j",
    async (body) => {
      const admin = await world.as("admin", "acme");
      const { status } = await admin.send("/sso/update-provider", { method: "POST", body });
      expect(status).toBe(400);
    },
  );
});

it.each<[name: string, tenant: TenantAuthOptions]>([
  [
    "is named by its host",
    { resolveTenantId: ({ headers }) => headers?.get("x-tenant-id") ?? false },
  ],
  ["has a cookie of its own", { sessionCookies: "per-tenant" }],
])("no administrator of a tenant manages the platform's where it %s", async (_, tenant) => {
  const world = await createSSOWorld({ sso: DNS, tenant });
  await world.register("platform", "platform-okta");
  const admin = await world.as("admin", "acme");
  const unnamed = world.at("platform", admin);
  await world.unchanged(async () => {
    for (const call of calls(world, "platform-okta")) {
      expect((await send(unnamed, call)).status, call.path).toBe(401);
      // On these paths the body names no tenant.
      const body = { ...call.body, tenantId: world.ids.acme };
      if (call.body) expect((await send(unnamed, { ...call, body })).status, call.path).toBe(401);
    }
  });
  expect(await listed(admin)).toEqual([]);
});

it.each(["shared", "per-tenant"] as const)(
  "R5: no call at Globex refreshes a session of Acme; at home one does, with its cookie: cookies %s",
  async (sessionCookies) => {
    const world = await createSSOWorld({ sso: DNS, tenant: { sessionCookies } });
    const admin = await world.as("admin", "acme");
    // Two days after the sign-in.
    const expiresAt = new Date(Date.now() + 5 * 86_400_000).toISOString();
    await world.write("session", { expiresAt });
    await world.unchanged(async () => {
      for (const call of calls(world, "acme-okta")) {
        expect((await send(world.at("globex", admin), call)).status, call.path).toBe(401);
      }
    });
    const { headers } = await admin.get("/sso/providers");
    expect(headers.getSetCookie().join()).toMatch(/session_token[^=]*=[^;]+; Max-Age=604800/);
  },
);

it("canManageTenants alone decides", async () => {
  const asked: Pick<TenantManagementRequest, "action" | "tenantId">[] = [];
  const world = await createSSOWorld({
    tenant: {
      canManageTenants: (_, { action, tenantId, session }) => {
        asked.push({ action, tenantId });
        return session?.user.email === "jane@example.com";
      },
    },
  });
  const body = world.oidc("acme-okta");
  for (const [name, where, status] of [
    ["admin", "acme", 403],
    ["jane", "acme", 200],
    ["admin", "platform", 403],
  ] as const) {
    const person = await world.as(name, where);
    expect((await person.post("/sso/register", body)).status).toBe(status);
    const tenantId = world.ids[where] ?? undefined;
    expect(asked.splice(0)).toEqual([{ action: "sso:register", tenantId }]);
  }
});

it("cannot be shared: the start is refused", async () => {
  const tenant = { scopedModels: [], sharedModels: ["ssoProvider"] };
  await expect(createSSOWorld({ tenant })).rejects.toThrow('scopedModels: ["ssoProvider"]');
});

// threat: an administrator who has left the company leaves a way in behind that nobody sees.
it("no identity provider is bound to an organization, in a tenant or on the platform", async () => {
  const world = await createSSOWorld({
    plugins: [organization()],
    sso: DNS,
    tenant: {
      scopedModels: ["ssoProvider", "organization", "member", "invitation"],
      tenantRoles: { admin: ["sso:*"] },
    },
  });
  for (const [place, admin] of [
    ["acme", await world.join("acme", "admin")],
    ["platform", await world.operator()],
  ] as const) {
    const organizationBody = { name: "Mine", slug: `mine-${place}` };
    const { data } = await admin.post<{ id: string }>("/organization/create", organizationBody);
    const body = { ...world.oidc(`${place}-okta`), organizationId: data.id };
    expectRefused(await admin.post("/sso/register", body), 400, "VALIDATION_ERROR");
    expect(await world.rows("ssoProvider")).toBe(0);
  }
});

it("with a cookie for each tenant, an operator who is also signed in at the tenant manages it by the query", async () => {
  const world = await createSSOWorld({ tenant: { sessionCookies: "per-tenant" } });
  await world.register("acme", "acme-okta");
  const jane = await world.as("jane", "acme");
  const operator = await world.operator();
  const browser = world.browser();
  for (const [name, value] of [...jane.cookies, ...operator.cookies]) {
    browser.cookies.set(name, value);
  }
  const query = { tenantId: world.ids.acme };
  const { data } = await browser.get<{ providers: object[] }>("/sso/providers", { query });
  expect(data.providers).toMatchObject([{ providerId: "acme-okta" }]);
  // A page of the tenant names it in the header: there, Jane asks.
  const asJane = await browser.get("/sso/providers", { headers: world.naming("acme") });
  expect(outcome(asJane)).toEqual(NOT_ALLOWED);
});
