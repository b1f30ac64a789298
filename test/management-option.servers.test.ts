import { beforeEach, describe, expect, it } from "vitest";
import type { TenantAuthOptions, TenantManagementRequest } from "../src/index";
import { createManagedTenant, manage, managementCalls, storedState } from "./management-calls";
import { createInstance, type Instance } from "./support/instance";
import { interceptFetch } from "./support/providers";
import { databases } from "./support/servers";

let atProviders: ReturnType<typeof interceptFetch>;

beforeEach(() => {
  atProviders = interceptFetch({});
});

type CanManage = NonNullable<TenantAuthOptions["canManageTenants"]>;

/** The option, as a function that notes what it is asked. */
function asking(answer: (request: TenantManagementRequest) => unknown) {
  const asked: TenantManagementRequest[] = [];
  const canManageTenants: CanManage = async (_, request) => {
    asked.push(request);
    // Some tests give answers that the types rule out, as JavaScript can.
    return answer(request) as boolean;
  };
  return { asked, canManageTenants };
}

const FORBIDDEN = [403, "TENANT_MANAGEMENT_NOT_ALLOWED"];

/** The ten calls of the server API, about a tenant. */
function serverCalls({ api }: Instance, tenantId: string, headers?: Headers) {
  const google = { tenantId, providerId: "google" };
  const credentials = { clientId: "new-id", clientSecret: "new-secret" };
  return [
    () => api.listTenants({ headers }),
    () => api.getTenant({ query: { id: tenantId }, headers }),
    () => api.createTenant({ body: { name: "New", slug: "brand-new" }, headers }),
    () => api.updateTenant({ body: { tenantId, name: "Changed" }, headers }),
    () => api.registerTenantOAuthConfig({ body: { ...google, ...credentials }, headers }),
    () => api.listTenantOAuthConfigs({ query: { tenantId }, headers }),
    () => api.updateTenantOAuthConfig({ body: { ...google, enabled: false }, headers }),
    () => api.checkTenantOAuthConfig({ body: google, headers }),
    () => api.deleteTenantOAuthConfig({ body: google, headers }),
    () => api.deleteTenant({ body: { tenantId }, headers }),
  ];
}

describe("canManageTenants", () => {
  it("hears the action, the target and the session of all ten calls", async () => {
    const { asked, canManageTenants } = asking(() => true);
    const instance = await createInstance({ tenant: { canManageTenants } });
    const { browser, user } = await instance.signUp(null);
    for (const call of managementCalls) {
      const tenant = await createManagedTenant(instance);
      const { status } = await manage(browser, call, tenant.id);
      expect([call.action, status]).toEqual([call.action, 200]);
      expect(asked).toHaveLength(1);
      const [request] = asked.splice(0);
      expect(Object.keys(request ?? {}).sort()).toEqual(["action", "session", "tenantId"]);
      expect(request?.action).toBe(call.action);
      expect(request?.tenantId).toBe(call.target ? tenant.id : undefined);
      expect(request?.session?.user.id).toBe(user.id);
      expect(request?.session?.session.tenantId).toBeNull();
    }
  });

  it("hears the id of a tenant that is asked for by its slug", async () => {
    const { asked, canManageTenants } = asking(() => true);
    const instance = await createInstance({ tenant: { canManageTenants } });
    const { id } = await instance.createTenant("acme");
    await instance.browser().get("/tenant/get", { query: { slug: "acme" } });
    await instance.browser().get("/tenant/get", { query: { slug: "nobody" } });
    expect(asked.map(({ tenantId }) => tenantId)).toEqual([id, undefined]);
  });

  it("hears of a tenant's session as well, and of none", async () => {
    const { asked, canManageTenants } = asking(() => false);
    const instance = await createInstance({ tenant: { canManageTenants } });
    const { id } = await instance.createTenant();
    const { browser, user } = await instance.signUp(id);
    await browser.get("/tenant/list");
    await instance.browser().get("/tenant/list");
    expect(asked[0]?.session).toMatchObject({
      user: { id: user.id, tenantId: id },
      session: { tenantId: id },
    });
    expect(asked[1]?.session).toBeNull();
  });

  it("true lets in, without a session too", async () => {
    const { canManageTenants } = asking(() => true);
    const instance = await createInstance({ tenant: { canManageTenants } });
    for (const call of managementCalls) {
      const { id } = await createManagedTenant(instance);
      const { status } = await manage(instance.browser(), call, id);
      expect([call.action, status]).toEqual([call.action, 200]);
    }
  });

  it.each<[description: string, answer: unknown]>([
    ["false", false],
    ["undefined", undefined],
    ["null", null],
    ["0", 0],
    ["1", 1],
    ["a string", "true"],
    ["an object", { allowed: true }],
    ["an empty array", []],
  ])("%s keeps everybody out, the operator and nobody alike", async (_, answer) => {
    const { canManageTenants } = asking(() => answer);
    const adminUserIds: string[] = [];
    const instance = await createInstance({ tenant: { canManageTenants, adminUserIds } });
    const { id } = await createManagedTenant(instance);
    const operator = await instance.operator();
    adminUserIds.push(operator.user.id);
    const before = await storedState(instance);
    for (const browser of [operator.browser, instance.browser()]) {
      for (const call of managementCalls) {
        const { status, code } = await manage(browser, call, id);
        expect([call.action, status, code]).toEqual([call.action, ...FORBIDDEN]);
      }
    }
    expect(await storedState(instance)).toEqual(before);
  });

  it("keeps everybody out when it throws", async () => {
    const { canManageTenants } = asking(() => {
      throw new Error("the policy server is down");
    });
    const instance = await createInstance({ tenant: { canManageTenants } });
    const { id } = await createManagedTenant(instance);
    const operator = await instance.operator();
    const before = await storedState(instance);
    for (const call of managementCalls) {
      const { status, data } = await manage(operator.browser, call, id);
      expect([call.action, status]).toEqual([call.action, 500]);
      expect(JSON.stringify(data)).not.toContain("policy server");
    }
    expect(await storedState(instance)).toEqual(before);
  });

  it("can let a tenant's own user manage its own tenant, and no other", async () => {
    const { canManageTenants } = asking(
      ({ session, tenantId }) => tenantId !== undefined && session?.user.tenantId === tenantId,
    );
    const instance = await createInstance({ tenant: { canManageTenants } });
    const other = await createManagedTenant(instance);
    for (const call of managementCalls) {
      const home = await createManagedTenant(instance);
      const { browser } = await instance.signUp(home.id);
      const manners: Record<string, string>[] = [{}, { "x-tenant-id": home.id }];
      for (const headers of manners) {
        const before = await storedState(instance);
        const refused = await manage(browser, call, other.id, { headers });
        expect([call.action, refused.status, refused.code]).toEqual([call.action, ...FORBIDDEN]);
        expect(await storedState(instance)).toEqual(before);
      }
      const { status } = await manage(browser, call, home.id);
      expect([call.action, status]).toEqual([call.action, call.target ? 200 : 403]);
    }
  });

  it("R7: the manager of a tenant works in its own scope, whatever the target is", async () => {
    const { canManageTenants } = asking(() => true);
    const instance = await createInstance({ tenant: { canManageTenants } });
    const target = await createManagedTenant(instance);
    const home = await instance.createTenant();
    const resident = await instance.signUp(target.id);
    const manager = await instance.signUp(home.id);
    const { status } = await manager.browser.post("/tenant/delete", { tenantId: target.id });
    expect(status).toBe(200);
    expect(await instance.rows("user", "id = ?", [resident.user.id])).toBe(0);
    const session = await manager.browser.get<{ user: { tenantId: string } }>("/get-session");
    expect(session.data.user.tenantId).toBe(home.id);
  });
});

describe("threat: checked one id, acted on another", () => {
  it.each(managementCalls.filter(({ header }) => header))(
    "R1: four names on $path, and the one that is asked about is the one acted on",
    async (call) => {
      const { asked, canManageTenants } = asking(() => true);
      let resolved: string | undefined;
      const instance = await createInstance({
        tenant: { canManageTenants, resolveTenantId: () => resolved },
      });
      const [fromBody, fromQuery, fromHeader, fromResolver] = await Promise.all(
        [1, 2, 3, 4].map(() => createManagedTenant(instance)),
      );
      if (!fromBody || !fromQuery || !fromHeader || !fromResolver) throw new Error("no tenants");
      const { browser } = await instance.signUp(null);
      const query = { tenantId: fromQuery.id };
      const headers = { "x-tenant-id": fromHeader.id };
      const send = async (target: string | undefined, rest: object) => {
        const { status } = await manage(browser, call, target, rest);
        expect(status).toBe(200);
        return asked.splice(0).map(({ tenantId }) => tenantId);
      };
      /** Who has got, lost or switched off a config, or whose client was tried at the provider. */
      const touched = async () => {
        const tenants = [fromBody, fromQuery, fromHeader, fromResolver];
        const tried = atProviders.map(({ params }) => params.get("client_id"));
        const found = await Promise.all(
          tenants.map(async ({ id }) => {
            const configs = await instance.api.listTenantOAuthConfigs({ query: { tenantId: id } });
            const untouched = configs.length === 1 && configs[0]?.enabled;
            return untouched && !tried.includes(`client-${id}`) ? [] : [id];
          }),
        );
        return found.flat();
      };
      const acted: string[] = [];
      const expectActedOn = async (seen: (string | undefined)[], id: string) => {
        acted.push(id);
        expect(seen).toEqual([id]);
        if (call.method === "POST") expect((await touched()).sort()).toEqual(acted.toSorted());
      };
      await expectActedOn(await send(undefined, { headers }), fromHeader.id);
      await expectActedOn(await send(undefined, { headers, query }), fromQuery.id);
      if (call.method === "POST") {
        await expectActedOn(await send(fromBody.id, { headers, query }), fromBody.id);
      }
      resolved = fromResolver.id;
      await expectActedOn(await send(undefined, { headers }), fromResolver.id);
      // R7: the resolver names one tenant, the body or the query another.
      const refused = await manage(browser, call, fromBody.id, { headers, query });
      expect([refused.status, refused.code]).toEqual([409, "TENANT_SCOPE_CONFLICT"]);
      if (call.method === "POST") expect((await touched()).sort()).toEqual(acted.toSorted());
    },
  );

  describe.each(databases)("on %s", (database) => {
    // MariaDB compares text without regard to case and to spaces at the end.
    it.each([
      ["in the other case", (id: string) => id.replace(/[a-z]/i, swapCase)],
      ["with a space at the end", (id: string) => `${id} `],
      ["with an accent", (id: string) => id.replace(/[a-z]/i, (letter) => `${letter}\u0301`)],
    ])("an id %s is another id", async (_, disguise) => {
      const instance = await createInstance({
        database,
        tenant: {
          // A rule that names one tenant: a disguise of its id must not get around it.
          canManageTenants: (_, { tenantId }) => tenantId !== protectedId,
        },
      });
      const tenant = await createManagedTenant(instance);
      const protectedId = tenant.id;
      const before = await storedState(instance);
      const disguised = disguise(tenant.id);
      expect(disguised).not.toBe(tenant.id);
      for (const call of managementCalls.filter(({ target }) => target)) {
        const { status } = await manage(instance.browser(), call, disguised);
        expect([403, 404]).toContain(status);
      }
      expect(await storedState(instance)).toEqual(before);
    });
  });
});

describe("calls of the server API", () => {
  it("are trusted without request and headers, whatever canManageTenants says", async () => {
    const { asked, canManageTenants } = asking(() => false);
    const instance = await createInstance({ tenant: { canManageTenants } });
    const { id } = await createManagedTenant(instance);
    for (const call of serverCalls(instance, id)) await call();
    expect(asked).toEqual([]);
    expect((await instance.api.listTenants()).map(({ slug }) => slug)).toEqual(["brand-new"]);
  });

  it("are not trusted with headers, even empty ones", async () => {
    const instance = await createInstance();
    const { id } = await createManagedTenant(instance);
    const { browser } = await instance.signUp(null);
    const cases: [Headers, number, string][] = [
      [new Headers(), 401, "UNAUTHORIZED"],
      [new Headers({ "x-tenant-id": id }), 401, "UNAUTHORIZED"],
      [new Headers({ cookie: browser.cookieHeader() }), 403, "TENANT_MANAGEMENT_NOT_ALLOWED"],
    ];
    const before = await storedState(instance);
    for (const [headers, statusCode, code] of cases) {
      for (const call of serverCalls(instance, id, headers)) {
        await expect(call()).rejects.toMatchObject({ statusCode, body: { code } });
      }
    }
    expect(await storedState(instance)).toEqual(before);
  });

  it("are not trusted with a request", async () => {
    const instance = await createInstance();
    const request = new Request("http://localhost:3000/api/auth/tenant/create", { method: "POST" });
    const body = { name: "New", slug: "brand-new" };
    const answer = await instance.api.createTenant({ body, request, asResponse: true });
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({ code: "UNAUTHORIZED" });
    expect(await instance.rows("tenant")).toBe(0);
  });

  it("may carry an operator's headers", async () => {
    const instance = await createInstance();
    const { id } = await createManagedTenant(instance);
    const { browser } = await instance.operator();
    const headers = new Headers({ cookie: browser.cookieHeader() });
    for (const call of serverCalls(instance, id, headers)) await call();
    expect((await instance.api.listTenants()).map(({ slug }) => slug)).toEqual(["brand-new"]);
  });

  it("ask canManageTenants when they carry headers", async () => {
    const { asked, canManageTenants } = asking(() => false);
    const instance = await createInstance({ tenant: { canManageTenants } });
    const { id } = await createManagedTenant(instance);
    for (const call of serverCalls(instance, id, new Headers())) {
      await expect(call()).rejects.toMatchObject({ statusCode: 403 });
    }
    expect(new Set(asked.map(({ action }) => action))).toEqual(
      new Set(managementCalls.map(({ action }) => action)),
    );
  });
});

function swapCase(letter: string): string {
  return letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
}
