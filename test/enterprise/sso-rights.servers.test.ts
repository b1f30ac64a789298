import { describe, expect, it } from "vitest";
import type { TenantAuthOptions, TenantManagementRequest } from "../../src/index";
import type { Browser } from "../support/browser";
import { databases } from "../support/servers";
import { createSSOWorld, named, type SSOWorld, whoIs } from "./sso-world";

const DNS = { domainVerification: { enabled: true } } as const;

type Call = { path: string; body?: object; query?: Record<string, string> };

/** Every call about identity providers that is not a sign-in. */
const calls = (world: SSOWorld, providerId = "acme-okta"): Call[] => [
  { path: "/sso/register", body: world.oidc("acme-another") },
  { path: "/sso/providers" },
  { path: "/sso/get-provider", query: { providerId } },
  { path: "/sso/update-provider", body: { providerId, domain: "other.example" } },
  { path: "/sso/request-domain-verification", body: { providerId } },
  { path: "/sso/verify-domain", body: { providerId } },
  { path: "/sso/delete-provider", body: { providerId } },
];

const send = (browser: Browser, { path, body, query = {} }: Call, tenantId: string | null = null) =>
  browser.send(path, {
    method: body ? "POST" : "GET",
    query,
    headers: named(tenantId),
    ...(body && { body }),
  });

async function worldWithProvider(options: Parameters<typeof createSSOWorld>[0] = {}) {
  const world = await createSSOWorld({ sso: DNS, ...options });
  const { status } = await world.acme.admin.browser.post("/sso/register", world.oidc("acme-okta"));
  expect(status).toBe(200);
  return world;
}

describe.each(databases)("who manages the identity providers of a tenant, on %s", (database) => {
  it("is nobody ordinary, in the tenant, elsewhere or on the platform", async () => {
    const world = await worldWithProvider({ database });
    const ordinary = await world.signUp(null);
    const everything = `select * from ${world.database.quote("ssoProvider")}`;
    const before = await world.database.query(everything);
    for (const call of calls(world)) {
      for (const [browser, tenantId] of [
        [world.acme.member.browser, null],
        [world.acme.member.browser, world.acme.id],
        [world.globex.member.browser, null],
        [ordinary.browser, null],
      ] as const) {
        const answer = await send(browser, call, tenantId);
        expect([call.path, answer.status, answer.code]).toEqual([
          call.path,
          403,
          "TENANT_MANAGEMENT_NOT_ALLOWED",
        ]);
      }
      // R5: elsewhere, a session is no session.
      for (const { browser } of [ordinary, world.globex.admin, { browser: world.browser() }]) {
        expect((await send(browser, call, world.acme.id)).status).toBe(401);
      }
    }
    expect(await world.database.query(everything)).toEqual(before);
  });

  it.each<[name: string, tenant: TenantAuthOptions]>([
    [
      "that its host names",
      {
        resolveTenantId: ({ headers, path }) =>
          path?.startsWith("/tenant/") ? undefined : (headers?.get("x-tenant-id") ?? false),
      },
    ],
    ["where each tenant has a cookie of its own", { sessionCookies: "per-tenant" }],
  ])("is no administrator of a tenant on the platform %s", async (_, tenant) => {
    const world = await createSSOWorld({
      sso: DNS,
      tenant: { scopedModels: ["ssoProvider"], tenantRoles: { admin: ["sso:*"] }, ...tenant },
    });
    const { operator, acme } = world;
    const registered = await operator.post("/sso/register", world.oidc("platform-okta"));
    expect([registered.status, registered.data]).toMatchObject([200, {}]);
    const before = await world.database.query("select * from ssoProvider");
    const { browser } = acme.admin;
    for (const call of calls(world, "platform-okta")) {
      // On these paths the body names no tenant, and the query is overruled by the host.
      const inBody = call.body && { ...call, body: { ...call.body, tenantId: acme.id } };
      for (const tried of [call, ...(inBody ? [inBody] : [])]) {
        const { status } = await send(browser, tried);
        expect([call.path, status]).toEqual([call.path, 401]);
      }
    }
    expect(await world.database.query("select * from ssoProvider")).toEqual(before);
    const own = await send(browser, { path: "/sso/providers" }, acme.id);
    expect([own.status, own.data]).toEqual([200, { providers: [] }]);
  });

  it("is none whom the role does not allow this very thing", async () => {
    const world = await createSSOWorld({
      database,
      tenant: { tenantRoles: { admin: ["sso:list"] } },
    });
    const admin = world.acme.admin.browser;
    expect((await admin.get("/sso/providers")).status).toBe(200);
    expect((await admin.post("/sso/register", world.oidc("acme-okta"))).status).toBe(403);
  });

  it("are all administrators of the tenant, whoever has registered it", async () => {
    const world = await worldWithProvider({ database });
    const second = await world.signUp(world.acme.id);
    await world.makeAdmin(second.user.id);
    const { browser } = second;
    const { data } = await browser.get<{ providers: { providerId: string }[] }>("/sso/providers");
    expect(data.providers.map(({ providerId }) => providerId)).toEqual(["acme-okta"]);
    const query = { providerId: "acme-okta" };
    expect((await browser.get("/sso/get-provider", { query })).status).toBe(200);
    const update = { providerId: "acme-okta", domain: "new.example" };
    const changed = await browser.post("/sso/update-provider", update);
    expect(changed.data).toMatchObject({ domain: "new.example" });
    const asked = await browser.post("/sso/request-domain-verification", query);
    expect(asked.status).toBe(201);
    expect((await browser.post("/sso/delete-provider", query)).status).toBe(200);
    expect(await world.rows("ssoProvider")).toBe(0);
  });

  it("see nothing of another tenant", async () => {
    const world = await worldWithProvider({ database });
    const { browser } = world.globex.admin;
    expect((await browser.get("/sso/providers")).data).toEqual({ providers: [] });
    for (const call of calls(world).filter(({ body, query }) => body ?? query)) {
      if (call.path === "/sso/register") continue;
      expect([call.path, (await send(browser, call)).status]).toEqual([call.path, 404]);
    }
  });

  it("are operators of the platform, in the tenant that they name", async () => {
    const world = await worldWithProvider({ database });
    const { operator, acme } = world;
    const body = world.oidc("acme-entra", { domain: "entra.example" });
    const registered = await operator.post("/sso/register", body, { headers: named(acme.id) });
    expect(registered.status).toBe(200);
    const list = async (browser: Browser, tenantId: string | null) =>
      (
        await browser.get<{ providers: { providerId: string }[] }>("/sso/providers", {
          headers: named(tenantId),
        })
      ).data.providers
        .map(({ providerId }) => providerId)
        .sort();
    expect(await list(operator, acme.id)).toEqual(["acme-entra", "acme-okta"]);
    expect(await list(operator, null)).toEqual([]);
    expect(await list(operator, world.globex.id)).toEqual([]);
    expect(await list(acme.admin.browser, null)).toEqual(["acme-entra", "acme-okta"]);
    for (const call of calls(world, "acme-entra")) {
      if (call.path === "/sso/verify-domain") continue;
      const { status } = await send(operator, call, acme.id);
      expect([call.path, Math.floor(status / 100)]).toEqual([call.path, 2]);
    }
    // The right is for this call: the operator is nobody in the tenant afterwards.
    const session = await operator.get("/get-session", { headers: named(acme.id) });
    expect(session.data).toBeNull();
    expect(await whoIs(operator)).toMatchObject({ tenantId: null });
  });

  it("is none who acts as somebody else", async () => {
    const world = await worldWithProvider({ database });
    const { id: userId } = world.acme.member.user;
    const acting = await world.operator.post("/admin/impersonate-user", { userId });
    expect(acting.status).toBe(200);
    // better-auth lets nobody act as an administrator, but roles change.
    await world.makeAdmin(userId);
    expect((await world.acme.member.browser.get("/sso/providers")).status).toBe(200);
    expect((await world.operator.get("/sso/providers")).status).toBe(403);
  });

  it.each([undefined, null, [], { providerId: "acme-okta", oidcConfig: null }])(
    "gets an answer to the change %j",
    async (body) => {
      const world = await worldWithProvider({ database });
      const { browser } = world.acme.admin;
      const { status } = await browser.send("/sso/update-provider", { method: "POST", body });
      expect(status).toBe(400);
    },
  );

  it("is whom canManageTenants lets, and nobody else", async () => {
    const asked: Pick<TenantManagementRequest, "action" | "tenantId">[] = [];
    const world = await createSSOWorld({
      database,
      tenant: {
        canManageTenants: (_, { action, tenantId, session }) => {
          asked.push({ action, tenantId });
          return session?.user.email === "member@acme.example";
        },
      },
    });
    const { acme } = world;
    const body = world.oidc("acme-okta");
    expect((await acme.admin.browser.post("/sso/register", body)).status).toBe(403);
    expect((await acme.member.browser.post("/sso/register", body)).status).toBe(200);
    expect((await world.operator.post("/sso/register", world.oidc("x"))).status).toBe(403);
    expect(asked).toEqual([
      { action: "sso:register", tenantId: acme.id },
      { action: "sso:register", tenantId: acme.id },
      { action: "sso:register", tenantId: undefined },
    ]);
  });
});

describe.each(databases)("the id of a provider, on %s", (database) => {
  it("is unique across all tenants, and the answer says what to do", async () => {
    const world = await createSSOWorld({ database });
    const body = world.oidc("okta");
    expect((await world.acme.admin.browser.post("/sso/register", body)).status).toBe(200);
    for (const browser of [world.globex.admin.browser, world.operator]) {
      const taken = await browser.post("/sso/register", body);
      expect(taken.status).toBe(422);
      expect(taken.data).toMatchObject({ code: "VALUE_TAKEN" });
      expect(taken.data.message).toContain('as in "acme-okta"');
    }
  });

  it("is given once when two tenants ask for it at the same time", async () => {
    const world = await createSSOWorld({ database });
    const body = world.oidc("okta");
    const admins = [world.acme.admin.browser, world.globex.admin.browser];
    const answers = await Promise.all(admins.map((admin) => admin.post("/sso/register", body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422]);
    expect(await world.rows("ssoProvider")).toBe(1);
  });
});
