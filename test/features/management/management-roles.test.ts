import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant, type TenantAuthOptions, tenantAuth } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { PASSWORD } from "../../support/instance";
import { createWorld, outcome } from "../../support/world";
import { createWays, STORES } from "../policy/sign-ins";

const ROLES: TenantAuthOptions["tenantRoles"] = {
  admin: ["tenant:get", "tenant:list", "tenant:update", "policy:update", "oauth-config:*"],
  viewer: ["tenant:get"],
};
const GOOGLE = { providerId: "google", clientId: "id", clientSecret: "secret" };

const create = (tenant: TenantAuthOptions = {}) =>
  createWorld({
    tenant: { tenantRoles: ROLES, ...tenant },
    plugins: [magicLink({ sendMagicLink: async () => {} })],
    auth: { socialProviders: { google: { clientId: "id", clientSecret: "secret" } } },
  });

const rename = async (browser: Browser, body: object = { name: "Renamed" }) =>
  (await browser.post("/tenant/update", body)).status;

describe("a tenant's own administrator", () => {
  it("manages that tenant, which need not be named", async () => {
    const { ids, join } = await create();
    const { acme: id } = ids;
    const admin = (await join("acme", "user,admin")).fork({});
    for (const query of ["", `id=${id}`, "slug=acme"]) {
      expect((await admin.get(`/tenant/get?${query}`)).data).toMatchObject({ id });
    }
    expect((await admin.get("/tenant/list")).data).toMatchObject([{ id }]);
    const body = { name: "Renamed", metadata: { a: 1 }, policy: { signUp: "closed" } };
    const updated = await admin.post("/tenant/update", body);
    expect([updated.status, updated.data]).toMatchObject([200, { ...body, id }]);
    expect((await admin.post("/tenant/oauth-config/register", GOOGLE)).status).toBe(200);
    const { data } = await admin.get("/tenant/oauth-config/list");
    expect(data).toMatchObject([{ tenantId: id, providerId: "google" }]);
    const gone = await admin.post("/tenant/oauth-config/delete", { providerId: "google" });
    expect(gone.status).toBe(200);
  });

  it("never its slug or status, nor another tenant, a new one or its end", async () => {
    const world = await create();
    const { acme, globex: tenantId } = world.ids;
    const admin = (await world.join("acme", "admin")).fork({});
    const posts: [path: string, ...bodies: object[]][] = [
      ["/tenant/update", { slug: "mine" }, { name: "Both", slug: "mine" }, { status: "suspended" }],
      ["/tenant/update", { tenantId, name: "X" }, { tenantId: "no-such-tenant", name: "X" }],
      ["/tenant/create", { name: "New", slug: "new" }],
      ["/tenant/delete", { tenantId: acme }],
      ["/tenant/oauth-config/register", { ...GOOGLE, tenantId }],
    ];
    const others = [`id=${tenantId}`, "slug=globex", "slug=x", "id=x"];
    await world.unchanged(async () => {
      const answers = [await admin.get("/tenant/oauth-config/list", { query: { tenantId } })];
      for (const [path, ...bodies] of posts) {
        for (const body of bodies) answers.push(await admin.post(path, body));
      }
      for (const query of others) answers.push(await admin.get(`/tenant/get?${query}`));
      const refused = [403, "TENANT_MANAGEMENT_NOT_ALLOWED"];
      expect(answers.map(outcome)).toEqual(answers.map(() => refused));
    });
  });

  it("no more than the role allows; no caller without a role, of another tenant or impersonated", async () => {
    const { ids, join } = await create();
    const viewer = await join("acme", "viewer");
    expect((await viewer.get("/tenant/get")).status).toBe(200);
    expect((await viewer.get("/tenant/list")).status).toBe(403);
    expect(await rename(viewer)).toBe(403);
    expect(await rename(viewer, { policy: null })).toBe(403);
    for (const role of ["user", "toString", "administrator", ""]) {
      const { status } = await (await join("acme", role)).get("/tenant/get");
      expect([role, status]).toEqual([role, 403]);
    }
    const query = { id: ids.acme };
    const stranger = await join("globex", "admin");
    expect((await stranger.get("/tenant/get", { query })).status).toBe(403);
    const operator = await join(null, "admin");
    const userId = viewer.id;
    expect((await operator.post("/admin/impersonate-user", { userId })).status).toBe(200);
    expect((await operator.get("/tenant/get", { query })).status).toBe(403);
  });

  it("with a cookie for each tenant, the user who is signed in there acts, not an operator beside", async () => {
    const { join, naming, ids } = await create({
      sessionCookies: "per-tenant",
      resolveTenantId: ({ request }) => request?.headers.get("x-resolved"),
    });
    const alone = await join("acme", "admin");
    expect((await alone.get("/tenant/get")).data).toMatchObject({ id: ids.acme });
    expect((await alone.fork({}).get("/tenant/get")).status).toBe(401);
    const operator = await join(null, "admin");
    for (const role of ["admin", "user"]) {
      const { email } = await join("acme", role);
      const both = operator.fork(naming("acme"));
      const signedIn = await both.post("/sign-in/email", { email, password: PASSWORD });
      expect(signedIn.status).toBe(200);
      const isAdmin = role === "admin";
      expect(await rename(both)).toBe(isAdmin ? 200 : 403);
      expect(await rename(both.fork({ "x-resolved": ids.acme }))).toBe(isAdmin ? 200 : 403);
      expect(await rename(both, { slug: "mine" })).toBe(403);
      expect(await rename(both, { tenantId: ids.globex, name: "Mine" })).toBe(403);
      const locksOut = { policy: { methods: ["social:google"] } };
      expect(await rename(both, locksOut)).toBe(isAdmin ? 409 : 403);
      // Without a name, or at a tenant where only the operator is, it is the operator.
      expect(await rename(both.fork({}), { tenantId: ids.acme, name: "Renamed" })).toBe(200);
      const elsewhere = both.fork(naming("globex"));
      expect(await rename(elsewhere, { tenantId: ids.globex, slug: "globex" })).toBe(200);
    }
  });

  it("is refused where the request names another tenant, in the query, the body or a header", async () => {
    const { ids, join, api } = await create({
      resolveTenantId: ({ request }) => request?.headers.get("x-resolved"),
    });
    const admin = (await join("acme", "admin")).fork({});
    const attempts = [await admin.post(`/tenant/update?tenantId=${ids.globex}`, { name: "X" })];
    for (const name of ["x-tenant-id", "x-resolved"]) {
      const elsewhere = admin.fork({ [name]: ids.globex });
      attempts.push(await elsewhere.post("/tenant/update", { name: "X" }));
      for (const path of ["/tenant/get", "/tenant/list", "/tenant/oauth-config/list"]) {
        attempts.push(await elsewhere.get(path));
      }
    }
    expect(attempts.map(({ status }) => status)).toEqual(attempts.map(() => 403));
    expect((await api.listTenants()).map(({ name }) => name)).toEqual(["ACME", "GLOBEX"]);
    for (const name of ["x-tenant-id", "x-resolved"]) {
      const home = admin.fork({ [name]: ids.acme });
      expect((await home.get("/tenant/list")).status).toBe(200);
      const renamed = await home.post("/tenant/update", { name: "Mine" });
      expect([renamed.status, renamed.data.id]).toEqual([200, ids.acme]);
    }
  });

  it.each(STORES)("manages nothing once demoted, banned or gone: sessions in %s", async (store) => {
    const world = await createWays(store, { tenant: { tenantRoles: ROLES } });
    const { updateUser, deleteUser } = world.context.internalAdapter;
    const changes: Record<string, (id: string) => Promise<unknown>> = {
      demoted: (id) => updateUser(id, { role: "user" }),
      banned: (id) => updateUser(id, { banned: true }),
      gone: (id) => deleteUser(id),
    };
    for (const [name, change] of Object.entries(changes)) {
      const { id, email } = await world.settle();
      await runInTenant(world.ids.acme, () => updateUser(id, { role: "admin" }));
      const { person } = await world.signIn("acme", email);
      expect([name, await rename(person)]).toEqual([name, 200]);
      await runInTenant(world.ids.acme, () => change(id));
      expect([name, [401, 403].includes(await rename(person))]).toEqual([name, true]);
    }
  });
});

it("options that grant what cannot be granted, or that have no role to go by, are refused", async () => {
  for (const action of ["tenant:create", "tenant:delete", "tenant:*", "nothing"]) {
    const options = { tenantRoles: { admin: [action] } } as TenantAuthOptions;
    expect(() => tenantAuth(options)).toThrow(/tenantRoles/);
  }
  const { $context } = betterAuth({
    database: memoryAdapter({}),
    plugins: [tenantAuth({ tenantRoles: { admin: [] } })],
  });
  await expect($context).rejects.toThrow(/tenantRoles: users have no role/);
});
