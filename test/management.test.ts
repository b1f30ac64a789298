import { beforeEach, describe, expect, it } from "vitest";
import { createManagedTenant, manage, managementCalls, storedState } from "./management-calls";
import type { Browser } from "./support/browser";
import { createInstance, type Instance } from "./support/instance";
import { interceptFetch } from "./support/providers";

beforeEach(() => {
  interceptFetch({});
});

async function setRole({ database }: Instance, userId: string, role: string) {
  const table = database.quote("user");
  await database.query(`update ${table} set role = ? where id = ?`, [role, userId]);
}

/** All ten calls are refused in this way, and nothing at all has changed. */
async function expectRefused(
  instance: Instance,
  browser: Browser,
  tenantId: string,
  [status, code]: [number, string],
) {
  const before = await storedState(instance);
  for (const call of managementCalls) {
    const answer = await manage(browser, call, tenantId);
    expect([call.action, answer.status, answer.code]).toEqual([call.action, status, code]);
    expect(Object.keys(answer.data).sort()).toEqual(["code", "message"]);
  }
  expect(await storedState(instance)).toEqual(before);
}

/** All ten calls succeed, each on a tenant of its own. */
async function expectAllowed(instance: Instance, browser: Browser) {
  for (const call of managementCalls) {
    const tenant = await createManagedTenant(instance);
    const answer = await manage(browser, call, tenant.id);
    expect([call.action, answer.status]).toEqual([call.action, 200]);
  }
}

const UNAUTHORIZED: [number, string] = [401, "UNAUTHORIZED"];
const FORBIDDEN: [number, string] = [403, "TENANT_MANAGEMENT_NOT_ALLOWED"];

describe("closed by default", () => {
  it("threat: authority from the body. Nobody without a session manages anything", async () => {
    const instance = await createInstance();
    const { id } = await createManagedTenant(instance);
    await expectRefused(instance, instance.browser(), id, UNAUTHORIZED);
  });

  it("takes a forged session cookie for no session", async () => {
    const instance = await createInstance();
    const { id } = await createManagedTenant(instance);
    const operator = await instance.operator();
    const forger = instance.browser();
    for (const [name, value] of operator.browser.cookies) {
      forger.cookies.set(
        name,
        value.replace(/\..*$/, ".AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%3D"),
      );
    }
    expect(forger.cookies.size).toBeGreaterThan(0);
    await expectRefused(instance, forger, id, UNAUTHORIZED);
  });

  it("threat: ordinary user registers providers. A user of the platform is no operator", async () => {
    const instance = await createInstance();
    const { id } = await createManagedTenant(instance);
    const { browser } = await instance.signUp(null);
    await expectRefused(instance, browser, id, FORBIDDEN);
  });

  it("threat: ordinary user registers providers. A tenant's user is no operator", async () => {
    const instance = await createInstance();
    const { id } = await createManagedTenant(instance);
    const { browser } = await instance.signUp(id);
    await expectRefused(instance, browser, id, FORBIDDEN);
  });

  it("threat: ordinary user registers providers. A tenant's admin is no operator, not even at home", async () => {
    const instance = await createInstance();
    const { id } = await createManagedTenant(instance);
    const other = await createManagedTenant(instance);
    const { browser, user } = await instance.signUp(id);
    await setRole(instance, user.id, "admin");
    await expectRefused(instance, browser, id, FORBIDDEN);
    await expectRefused(instance, browser, other.id, FORBIDDEN);
    await expectRefused(instance, browser.fork({ "x-tenant-id": id }), id, FORBIDDEN);
  });

  it("tells those who may not manage nothing about tenants, not even which exist", async () => {
    const instance = await createInstance();
    await createManagedTenant(instance, "acme");
    const { browser } = await instance.signUp(null);
    await expectRefused(instance, browser, "no-such-tenant", FORBIDDEN);
    await expectRefused(instance, instance.browser(), "no-such-tenant", UNAUTHORIZED);
    const queries: Record<string, string>[] = [{ slug: "acme" }, { slug: "nobody" }, {}];
    for (const query of queries) {
      const answer = await browser.get("/tenant/get", { query });
      expect([answer.status, answer.code]).toEqual(FORBIDDEN);
    }
    for (const slug of ["acme", "admin", "-"]) {
      const answer = await browser.post("/tenant/create", { name: "Name", slug });
      expect([answer.status, answer.code]).toEqual(FORBIDDEN);
    }
  });

  it("lets a platform user with the admin role do all of it", async () => {
    const instance = await createInstance();
    const { browser } = await instance.operator();
    await expectAllowed(instance, browser);
  });
});

describe("adminRoles", () => {
  const mayManage = async (adminRoles: string[] | undefined, role: string) => {
    const instance = await createInstance({ tenant: adminRoles ? { adminRoles } : {} });
    const { browser, user } = await instance.signUp(null);
    await setRole(instance, user.id, role);
    const { status, code } = await browser.get("/tenant/list");
    if (status !== 200) expect([status, code]).toEqual(FORBIDDEN);
    return status === 200;
  };

  it.each<[string[] | undefined, string, boolean]>([
    [undefined, "admin", true],
    [undefined, "user,admin", true],
    [undefined, "user, admin", true],
    [undefined, "user", false],
    [undefined, "administrator", false],
    [undefined, "Admin", false],
    [undefined, "not-admin", false],
    [undefined, "admin.", false],
    [undefined, "", false],
    [undefined, ",", false],
    [["owner", "ops"], "ops", true],
    [["owner", "ops"], "owner", true],
    [["owner", "ops"], "user,ops,editor", true],
    [["owner", "ops"], "admin", false],
    [["owner", "ops"], "owner ops", false],
    [[], "admin", false],
    [[], "", false],
  ])("%j and a user with the role %j: %s", async (adminRoles, role, expected) => {
    expect(await mayManage(adminRoles, role)).toBe(expected);
  });

  it("lets the right role do all of it", async () => {
    const instance = await createInstance({ tenant: { adminRoles: ["owner", "ops"] } });
    const { browser, user } = await instance.signUp(null);
    await setRole(instance, user.id, "support,ops");
    await expectAllowed(instance, browser);
  });

  it("takes a role away at once", async () => {
    const instance = await createInstance({
      auth: { session: { cookieCache: { enabled: true, maxAge: 300 } } },
    });
    const { id } = await createManagedTenant(instance);
    const operator = await instance.operator();
    await operator.browser.get("/get-session");
    expect((await operator.browser.get("/tenant/list")).status).toBe(200);
    await setRole(instance, operator.user.id, "user");
    await expectRefused(instance, operator.browser, id, FORBIDDEN);
  });
});

describe("adminUserIds", () => {
  /** Ids are known only once there is a user, so the list is filled afterwards. */
  async function start() {
    const adminUserIds: string[] = [];
    const instance = await createInstance({ tenant: { adminUserIds } });
    return { instance, adminUserIds };
  }

  it("lets these users do all of it, without any role, and nobody else", async () => {
    const { instance, adminUserIds } = await start();
    const { id } = await createManagedTenant(instance);
    const chosen = await instance.signUp(null);
    const other = await instance.signUp(null);
    adminUserIds.push("somebody-else", chosen.user.id);
    await expectAllowed(instance, chosen.browser);
    await expectRefused(instance, other.browser, id, FORBIDDEN);
  });

  it("leaves the roles as they are", async () => {
    const { instance, adminUserIds } = await start();
    adminUserIds.push("somebody-else");
    const { browser } = await instance.operator();
    expect((await browser.get("/tenant/list")).status).toBe(200);
  });

  it("does not help a tenant's user", async () => {
    const { instance, adminUserIds } = await start();
    const { id } = await createManagedTenant(instance);
    const { browser, user } = await instance.signUp(id);
    adminUserIds.push(user.id);
    await setRole(instance, user.id, "admin");
    await expectRefused(instance, browser, id, FORBIDDEN);
  });
});

describe("R7: the target grants nothing", () => {
  it("threat: authority from the body. A userId, a role or a session in the body or query is nothing", async () => {
    const adminUserIds: string[] = [];
    const instance = await createInstance({ tenant: { adminUserIds } });
    const { id } = await createManagedTenant(instance);
    const operator = await instance.operator();
    adminUserIds.push(operator.user.id);
    const ordinary = await instance.signUp(null);
    const ofTenant = await instance.signUp(id);
    const extra = {
      userId: operator.user.id,
      role: "admin",
      session: operator.token,
      token: operator.token,
    };
    const callers: [Browser, [number, string]][] = [
      [instance.browser(), UNAUTHORIZED],
      [ordinary.browser, FORBIDDEN],
      [ofTenant.browser, FORBIDDEN],
    ];
    const before = await storedState(instance);
    for (const [browser, refusal] of callers) {
      for (const call of managementCalls) {
        const answer = await manage(browser, call, id, { extra });
        const expected = call.strict ? [400, "VALIDATION_ERROR"] : refusal;
        expect([call.action, answer.status, answer.code]).toEqual([call.action, ...expected]);
      }
    }
    expect(await storedState(instance)).toEqual(before);
  });

  it("the header does not move the caller: an operator stays one, a tenant's user none", async () => {
    const instance = await createInstance();
    const { id } = await createManagedTenant(instance);
    const home = await instance.createTenant();
    const admin = await instance.signUp(home.id);
    await setRole(instance, admin.user.id, "admin");
    for (const header of [id, home.id, "no-such-tenant", "null", "platform"]) {
      await expectRefused(instance, admin.browser.fork({ "x-tenant-id": header }), id, FORBIDDEN);
    }
    const operator = await instance.operator();
    await expectAllowed(instance, operator.browser.fork({ "x-tenant-id": id }));
    const session = await operator.browser.get<{ user: { id: string } }>("/get-session");
    expect(session.data.user.id).toBe(operator.user.id);
  });

  it("the header does not give a session of another tenant: nobody is nobody", async () => {
    const instance = await createInstance();
    const { id } = await createManagedTenant(instance);
    const nobody = instance.browser({ "x-tenant-id": id });
    await expectRefused(instance, nobody, id, UNAUTHORIZED);
  });

  it("the header names the target of the OAuth configs only", async () => {
    const instance = await createInstance();
    const operator = await instance.operator();
    for (const call of managementCalls.filter(({ target }) => target)) {
      const tenant = await createManagedTenant(instance);
      const { status, code } = await manage(operator.browser, call, undefined, {
        headers: { "x-tenant-id": tenant.id },
      });
      if (call.header) expect([call.action, status]).toEqual([call.action, 200]);
      else {
        const codes: Record<string, string> = {
          "tenant:get": "TENANT_ID_OR_SLUG_REQUIRED",
          // A tenant's own administrator need not name it.
          "tenant:update": "TENANT_ID_REQUIRED",
        };
        const expected = codes[call.action] ?? "VALIDATION_ERROR";
        expect([call.action, status, code]).toEqual([call.action, 400, expected]);
      }
      expect(await instance.rows("tenant", "id = ? and name = ?", [tenant.id, tenant.name])).toBe(
        1,
      );
    }
  });

  it("body and query win over the header, which is the one that is not touched", async () => {
    const instance = await createInstance();
    const operator = await instance.operator();
    const bystander = await createManagedTenant(instance);
    const stateOf = async () => ({
      tenant: await instance.api.getTenant({ query: { id: bystander.id } }),
      configs: await instance.api.listTenantOAuthConfigs({ query: { tenantId: bystander.id } }),
    });
    const before = await stateOf();
    for (const call of managementCalls) {
      const target = await createManagedTenant(instance);
      const { status, data } = await manage(operator.browser, call, target.id, {
        headers: { "x-tenant-id": bystander.id },
      });
      expect([call.action, status]).toEqual([call.action, 200]);
      if (call.action === "tenant:get") expect(data.id).toBe(target.id);
      if (call.action === "oauth-config:register") expect(data.tenantId).toBe(target.id);
      if (call.action === "oauth-config:update") expect(data.tenantId).toBe(target.id);
      if (call.action === "oauth-config:list")
        expect(data).toMatchObject([{ tenantId: target.id }]);
    }
    expect(await stateOf()).toEqual(before);
  });

  it("a header that names nobody gets in the way of nothing that has a target", async () => {
    const instance = await createInstance();
    const operator = await instance.operator();
    await expectAllowed(instance, operator.browser.fork({ "x-tenant-id": "no-such-tenant" }));
  });
});

describe.each([
  ["without a cookie cache", undefined],
  ["with a cookie cache", { enabled: true, maxAge: 300 }],
])("a session that is no more, %s", (_, cookieCache) => {
  async function start() {
    const instance = await createInstance({ auth: { session: { cookieCache } } });
    const { id } = await createManagedTenant(instance);
    const operator = await instance.operator();
    // Fills the cache, if there is one.
    await operator.browser.get("/get-session");
    expect((await operator.browser.get("/tenant/list")).status).toBe(200);
    return { instance, id, operator, thief: operator.browser.fork() };
  }

  it("cannot manage once it is signed out", async () => {
    const { instance, id, operator, thief } = await start();
    await operator.browser.post("/sign-out");
    await expectRefused(instance, thief, id, UNAUTHORIZED);
  });

  it("cannot manage once it is revoked", async () => {
    const { instance, id, operator, thief } = await start();
    const { status } = await operator.browser.post("/revoke-sessions");
    expect(status).toBe(200);
    await expectRefused(instance, thief, id, UNAUTHORIZED);
  });

  it("cannot manage once it is expired", async () => {
    const { instance, id, operator, thief } = await start();
    await instance.context.internalAdapter.updateSession(operator.token, {
      expiresAt: new Date(Date.now() - 1000),
    });
    await expectRefused(instance, thief, id, UNAUTHORIZED);
  });
});
