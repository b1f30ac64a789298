import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant, type TenantAuthOptions, tenantAuth } from "../../src/index";
import { createInstance, PASSWORD } from "../support/instance";
import { createWays, STORES } from "./ways-in";

const ROLES: TenantAuthOptions["tenantRoles"] = {
  admin: ["tenant:get", "tenant:list", "tenant:update", "policy:update", "oauth-config:*"],
  viewer: ["tenant:get"],
};
const GOOGLE = { providerId: "google", clientId: "id", clientSecret: "secret" };

async function createWorld(tenant: TenantAuthOptions = { tenantRoles: ROLES }) {
  const instance = await createInstance({
    tenant,
    plugins: [magicLink({ sendMagicLink: async () => {} })],
    auth: { socialProviders: { google: { clientId: "id", clientSecret: "secret" } } },
  });
  const [a, b] = [await instance.createTenant("aa"), await instance.createTenant("bb")];
  const join = async (tenantId: string, role: string) => {
    const person = await instance.signUp(tenantId);
    const { quote, query } = instance.database;
    await query(`update ${quote("user")} set role = ? where id = ?`, [role, person.user.id]);
    return person;
  };
  return { instance, a, b, join };
}

describe("a tenant's own administrator", () => {
  it("manages that tenant, which need not be named", async () => {
    const { instance, a, join } = await createWorld();
    const { browser } = await join(a.id, "user,admin");
    expect((await browser.get("/tenant/get")).data).toMatchObject({ id: a.id });
    expect((await browser.get("/tenant/get", { query: { id: a.id } })).status).toBe(200);
    expect((await browser.get("/tenant/get", { query: { slug: "aa" } })).status).toBe(200);
    const list = await browser.get<{ id: string }[]>("/tenant/list");
    expect(list.data.map(({ id }) => id)).toEqual([a.id]);
    const body = { name: "Renamed", metadata: { a: 1 }, policy: { signUp: "closed" } };
    const updated = await browser.post("/tenant/update", body);
    expect([updated.status, updated.data]).toMatchObject([200, { ...body, id: a.id }]);
    expect((await browser.post("/tenant/oauth-config/register", GOOGLE)).status).toBe(200);
    const configs = await browser.get<{ tenantId: string }[]>("/tenant/oauth-config/list");
    expect(configs.data).toMatchObject([{ tenantId: a.id, providerId: "google" }]);
    const gone = await browser.post("/tenant/oauth-config/delete", { providerId: "google" });
    expect(gone.status).toBe(200);
    expect((await instance.api.getTenant({ query: { id: a.id } })).name).toBe("Renamed");
  });

  it("never its slug or status, nor another tenant, a new one or its end", async () => {
    const { instance, a, b, join } = await createWorld();
    const { browser } = await join(a.id, "admin");
    const before = await instance.api.listTenants();
    const calls: [method: "get" | "post", path: string, input: Record<string, string>][] = [
      ["post", "/tenant/update", { slug: "mine" }],
      ["post", "/tenant/update", { name: "Both", slug: "mine" }],
      ["post", "/tenant/update", { tenantId: b.id, name: "Mine" }],
      ["post", "/tenant/update", { tenantId: "no-such-tenant", name: "Mine" }],
      ["post", "/tenant/create", { name: "New", slug: "new" }],
      ["post", "/tenant/delete", { tenantId: a.id }],
      ["get", "/tenant/get", { id: b.id }],
      ["get", "/tenant/get", { slug: "bb" }],
      ["get", "/tenant/get", { slug: "no-such-slug" }],
      ["get", "/tenant/get", { id: "no-such-tenant" }],
      ["get", "/tenant/oauth-config/list", { tenantId: b.id }],
      ["post", "/tenant/oauth-config/register", { ...GOOGLE, tenantId: b.id }],
    ];
    for (const [method, path, input] of calls) {
      const answer =
        method === "get"
          ? await browser.get(path, { query: input })
          : await browser.post(path, input);
      const label = `${path} ${JSON.stringify(input)}`;
      expect([label, answer.status, answer.code]).toEqual([
        label,
        403,
        "TENANT_MANAGEMENT_NOT_ALLOWED",
      ]);
    }
    const elsewhere = await browser.fork({ "x-tenant-id": b.id }).get("/tenant/oauth-config/list");
    expect(elsewhere.status).toBe(403);
    expect(await instance.api.listTenants()).toEqual(before);
  });

  it("no more than the role allows; nobody without a role, elsewhere or impersonated", async () => {
    const { instance, a, b, join } = await createWorld();
    const viewer = await join(a.id, "viewer");
    expect((await viewer.browser.get("/tenant/get")).status).toBe(200);
    expect((await viewer.browser.get("/tenant/list")).status).toBe(403);
    expect((await viewer.browser.post("/tenant/update", { name: "X" })).status).toBe(403);
    expect((await viewer.browser.post("/tenant/update", { policy: null })).status).toBe(403);
    for (const role of ["user", "toString", "administrator", ""]) {
      const { browser } = await join(a.id, role);
      expect([role, (await browser.get("/tenant/get")).status]).toEqual([role, 403]);
    }
    const stranger = await join(b.id, "admin");
    const query = { id: a.id };
    expect((await stranger.browser.get("/tenant/get", { query })).status).toBe(403);
    const operator = (await instance.operator()).browser;
    const userId = viewer.user.id;
    expect((await operator.post("/admin/impersonate-user", { userId })).status).toBe(200);
    expect((await operator.get("/tenant/get", { query })).status).toBe(403);
  });

  it("is nobody by default, and canManageTenants decides alone", async () => {
    const { a, join } = await createWorld({});
    const { browser } = await join(a.id, "admin");
    expect((await browser.get("/tenant/get", { query: { id: a.id } })).status).toBe(403);
    const asked: string[] = [];
    const decided = await createWorld({
      tenantRoles: ROLES,
      canManageTenants: (_, { action, tenantId }) => asked.push(`${action} ${tenantId}`) < 0,
    });
    const other = await decided.join(decided.a.id, "admin");
    const body = { name: "A", policy: null };
    expect((await other.browser.post("/tenant/update", body)).status).toBe(403);
    expect(asked).toEqual(["policy:update undefined"]);
  });

  it("with a cookie for each tenant, the request names it", async () => {
    const { a, join } = await createWorld({ tenantRoles: ROLES, sessionCookies: "per-tenant" });
    const { browser } = await join(a.id, "admin");
    const named = browser.fork({ "x-tenant-id": a.id });
    expect((await named.get("/tenant/get")).data).toMatchObject({ id: a.id });
    expect((await named.post("/tenant/update", { name: "Renamed" })).status).toBe(200);
    expect((await browser.fork({}).get("/tenant/get")).status).toBe(401);
  });

  it("with a cookie for each tenant, whoever is signed in there acts, not an operator beside", async () => {
    const tenant: TenantAuthOptions = { tenantRoles: ROLES, sessionCookies: "per-tenant" };
    const { instance, a, b, join } = await createWorld(tenant);
    const { browser } = await instance.operator();
    for (const role of ["admin", "user"]) {
      const { email } = await join(a.id, role);
      const named = browser.fork({ "x-tenant-id": a.id });
      const signedIn = await named.post("/sign-in/email", { email, password: PASSWORD });
      expect(signedIn.status).toBe(200);
      const isAdmin = role === "admin";
      const update = (body: object) => named.post("/tenant/update", body);
      expect((await update({ name: "Renamed" })).status).toBe(isAdmin ? 200 : 403);
      expect((await update({ slug: "mine" })).status).toBe(403);
      expect((await update({ tenantId: b.id, name: "Mine" })).status).toBe(403);
      const locksOut = await update({ policy: { methods: ["social:google"] } });
      expect(locksOut.status).toBe(isAdmin ? 409 : 403);
      // Without a name, or at a tenant where only the operator is, it is the operator.
      const asOperator = { tenantId: a.id, name: "Renamed" };
      expect((await named.fork({}).post("/tenant/update", asOperator)).status).toBe(200);
      const elsewhere = named.fork({ "x-tenant-id": b.id });
      expect((await elsewhere.post("/tenant/update", { tenantId: b.id, slug: "bb" })).status).toBe(
        200,
      );
    }
  });

  it("is refused where the request names another tenant, in whichever place", async () => {
    const { instance, a, b, join } = await createWorld({
      tenantRoles: ROLES,
      resolveTenantId: ({ request }) => request?.headers.get("x-resolved"),
    });
    const { browser } = await join(a.id, "admin");
    const elsewhere = (headers: Record<string, string>) => browser.fork(headers);
    const [header, host] = [elsewhere({ "x-tenant-id": b.id }), elsewhere({ "x-resolved": b.id })];
    const attempts = [
      await browser.post(`/tenant/update?tenantId=${b.id}`, { name: "X" }),
      await browser.post("/tenant/update", { tenantId: b.id, name: "X" }),
      await header.post("/tenant/update", { name: "X" }),
      await host.post("/tenant/update", { name: "X" }),
      await header.get("/tenant/get"),
      await header.get("/tenant/list"),
      await header.get("/tenant/oauth-config/list"),
      await host.get("/tenant/list"),
    ];
    expect(attempts.map(({ status }) => status)).toEqual(attempts.map(() => 403));
    expect((await instance.api.listTenants()).map(({ name }) => name)).toEqual(["AA", "BB"]);
    for (const name of ["x-tenant-id", "x-resolved"]) {
      const headers = { [name]: a.id };
      expect((await elsewhere(headers).get("/tenant/list")).status).toBe(200);
      const renamed = await elsewhere(headers).post("/tenant/update", { name: "Mine" });
      expect([renamed.status, renamed.data.id]).toEqual([200, a.id]);
    }
  });

  it("manages nothing once they are demoted, banned or gone, wherever the session is kept", async () => {
    for (const store of STORES) {
      const world = await createWays(store, { tenant: { tenantRoles: ROLES } });
      const { internalAdapter } = world.context;
      const changes: [string, (id: string) => Promise<unknown>][] = [
        ["demoted", (id) => internalAdapter.updateUser(id, { role: "user" })],
        ["banned", (id) => internalAdapter.updateUser(id, { banned: true })],
        ["gone", (id) => internalAdapter.deleteUser(id)],
      ];
      for (const [name, change] of changes) {
        const { id, email, password } = await world.settle();
        await runInTenant(world.tenantId, () => internalAdapter.updateUser(id, { role: "admin" }));
        const browser = world.at();
        await browser.post("/sign-in/email", { email, password });
        const rename = () => browser.post("/tenant/update", { name: "Renamed" });
        expect([store, name, (await rename()).status]).toEqual([store, name, 200]);
        await runInTenant(world.tenantId, () => change(id));
        const { status } = await rename();
        expect([store, name, [401, 403].includes(status)]).toEqual([store, name, true]);
      }
    }
  });

  it("refuses options that grant what cannot be granted", () => {
    for (const action of ["tenant:create", "tenant:delete", "tenant:*", "nothing"]) {
      const options = { tenantRoles: { admin: [action] } } as TenantAuthOptions;
      expect(() => tenantAuth(options)).toThrow(/tenantRoles/);
    }
  });
});

describe("POLICY_LOCKS_OUT", () => {
  it("not a policy under which they could not sign in again themselves", async () => {
    const { instance, a, join } = await createWorld();
    const { browser, email, user } = await join(a.id, "admin");
    const set = async (policy: object) =>
      (await browser.post("/tenant/update", { policy })).code ?? "set";
    expect(await set({ methods: ["social:google"] })).toBe("POLICY_LOCKS_OUT");
    expect(await set({ emailDomains: ["example.com"] })).toBe("POLICY_LOCKS_OUT");
    expect((await instance.api.getTenant({ query: { id: a.id } })).policy).toBeNull();
    expect(await set({ methods: ["password", "social:google"] })).toBe("set");
    // Nobody knows whether they read the mails of that address: a phone's is made up, for one.
    expect(await set({ methods: ["magic-link"] })).toBe("POLICY_LOCKS_OUT");
    expect(await set({ emailDomains: ["elsewhere.com"] })).toBe("set");
    await instance.database.query(
      `insert into account (id, "accountId", "providerId", "userId", "tenantId", "createdAt", "updatedAt") values ('g', 'g', 'google', ?, ?, 1, 1)`,
      [user.id, a.id],
    );
    expect(await set({ methods: ["social:google"] })).toBe("set");
    await instance.database.query('update "user" set "emailVerified" = 1 where id = ?', [user.id]);
    expect(await set({ methods: ["magic-link"] })).toBe("set");
    expect(await set({ methods: ["password"], emailDomains: ["example.com"] })).toBe("set");
    const again = instance.browser({ "x-tenant-id": a.id });
    const signedIn = await again.post("/sign-in/email", { email, password: PASSWORD });
    expect(signedIn.status).toBe(200);
    // Operators and the server have their own way in.
    const operator = (await instance.operator()).browser;
    const policy = { methods: ["social:google"] };
    const byOperator = await operator.post("/tenant/update", { tenantId: a.id, policy });
    expect(byOperator.status).toBe(200);
  });
});
