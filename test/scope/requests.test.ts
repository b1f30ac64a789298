import { createAuthMiddleware } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { createInstance, type Instance, PASSWORD } from "../support/instance";

const UNKNOWN = "no-such-tenant";

let count = 0;
const newcomer = () => ({
  name: "New",
  email: `new-${++count}@example.com`,
  password: PASSWORD,
});

type Answer = { user: { id: string; tenantId: string | null } };

/** Signs somebody up, and says in which tenant they ended up according to the database. */
async function whereSignUpLands(
  instance: Instance,
  path: string,
  { body = {}, headers = {} }: { body?: object; headers?: Record<string, string> } = {},
) {
  const person = newcomer();
  const answer = await instance.browser(headers).post<Answer>(path, { ...person, ...body });
  expect(answer.status, JSON.stringify(answer.data)).toBe(200);
  const { database } = instance;
  const rows = await database.query(
    `select * from ${database.quote("user")} where ${database.quote("email")} = ?`,
    [person.email],
  );
  expect(rows).toHaveLength(1);
  expect(answer.data.user.tenantId).toBe(rows[0]?.tenantId || null);
  return answer.data.user.tenantId;
}

describe("R1: who names the tenant", () => {
  const twoTenants = async (instance: Instance) =>
    [(await instance.createTenant("aa")).id, (await instance.createTenant("bb")).id] as [
      string,
      string,
    ];

  it("R1: the header and the query name it on better-auth's own endpoints", async () => {
    const instance = await createInstance();
    const [a, b] = await twoTenants(instance);
    const lands = (path: string, headers = {}) => whereSignUpLands(instance, path, { headers });
    expect(await lands("/sign-up/email")).toBeNull();
    expect(await lands("/sign-up/email", { "x-tenant-id": a })).toBe(a);
    expect(await lands("/sign-up/email", { "X-Tenant-ID": b })).toBe(b);
    expect(await lands(`/sign-up/email?tenantId=${a}`)).toBe(a);
    expect(await lands(`/sign-up/email?tenantId=${a}`, { "x-tenant-id": b })).toBe(a);
  });

  it("R1: what is empty is no answer, and the next place is asked", async () => {
    const instance = await createInstance();
    const [a, b] = await twoTenants(instance);
    const lands = (path: string, headers = {}) => whereSignUpLands(instance, path, { headers });
    const twice = `/sign-up/email?tenantId=${a}&tenantId=${b}`;
    const { status, code } = await instance.browser().post(twice, newcomer());
    expect([status, code]).toEqual([400, "VALIDATION_ERROR"]);
    expect(await lands("/sign-up/email", { "x-tenant-id": "" })).toBeNull();
    expect(await lands("/sign-up/email?tenantId=", { "x-tenant-id": a })).toBe(a);
    expect(await lands("/sign-up/email?tenantId=")).toBeNull();
    expect(
      await whereSignUpLands(instance, `/tenant/sign-up/email?tenantId=${b}`, {
        body: { tenantId: "" },
      }),
    ).toBe(b);
  });

  it("R1: the body names it on /tenant/* only", async () => {
    const instance = await createInstance();
    const [a, b] = await twoTenants(instance);
    const body = { tenantId: a };
    const usersOf = (tenantId: string) => instance.rows("user", `"tenantId" = ?`, [tenantId]);
    for (const headers of [undefined, { "x-tenant-id": b }]) {
      const answer = await instance
        .browser(headers)
        .post("/sign-up/email", { ...newcomer(), ...body });
      // To better-auth it is a field that nobody may set. It overlooks or refuses such fields.
      expect([200, 400]).toContain(answer.status);
      if (answer.status === 400) expect(answer.code).toBe("FIELD_NOT_ALLOWED");
      expect(await usersOf(a)).toBe(0);
    }
    expect(await whereSignUpLands(instance, "/tenant/sign-up/email", { body })).toBe(a);
    const headers = { "x-tenant-id": b };
    expect(await whereSignUpLands(instance, "/tenant/sign-up/email", { body, headers })).toBe(a);
    expect(await usersOf(a)).toBe(2);
  });

  it("R1: on /tenant/* it is the body, then the query, then the header", async () => {
    const instance = await createInstance();
    const [a, b] = await twoTenants(instance);
    const c = (await instance.createTenant("cc")).id;
    const headers = { "x-tenant-id": c };
    const path = "/tenant/sign-up/email";
    const lands = (query: string, body = {}) =>
      whereSignUpLands(instance, path + query, { headers, body });
    expect(await lands(`?tenantId=${b}`, { tenantId: a })).toBe(a);
    expect(await lands(`?tenantId=${b}`)).toBe(b);
    expect(await lands("")).toBe(c);
  });

  it("R1: the resolver comes before everything else, asked once for each request", async () => {
    const asked: (string | undefined)[] = [];
    const instance = await createInstance({
      tenant: {
        resolveTenantId: async ({ headers, path }) => {
          asked.push(path);
          return headers?.get("x-resolve");
        },
      },
    });
    const [a, b] = await twoTenants(instance);
    const headers = { "x-resolve": a, "x-tenant-id": b };
    const body = { tenantId: b };
    asked.length = 0;
    for (const path of ["/sign-up/email", "/tenant/sign-up/email"]) {
      expect(await whereSignUpLands(instance, `${path}?tenantId=${b}`, { headers, body })).toBe(a);
      expect(asked).toEqual([path]);
      // An empty answer lets the others speak.
      const quiet = { ...headers, "x-resolve": "" };
      expect(await whereSignUpLands(instance, path, { headers: quiet, body })).toBe(b);
      asked.length = 0;
    }
    expect(await whereSignUpLands(instance, "/sign-up/email")).toBeNull();
  });

  it.each([null, undefined, ""])("R1: a resolver that says %j says nothing", async (nothing) => {
    const instance = await createInstance({ tenant: { resolveTenantId: () => nothing } });
    const [a] = await twoTenants(instance);
    expect(await whereSignUpLands(instance, "/sign-up/email")).toBeNull();
    const headers = { "x-tenant-id": a };
    expect(await whereSignUpLands(instance, "/sign-up/email", { headers })).toBe(a);
  });

  it("R1: a resolver that fails fails the request, and nothing is written", async () => {
    const instance = await createInstance({
      tenant: {
        resolveTenantId: ({ headers }) => {
          if (headers?.has("x-fail")) throw new Error("resolver is down");
          return null;
        },
      },
    });
    const [a] = await twoTenants(instance);
    for (const path of ["/sign-up/email", "/tenant/sign-up/email"]) {
      const browser = instance.browser({ "x-fail": "1", "x-tenant-id": a });
      expect((await browser.post(path, newcomer())).status).toBe(500);
    }
    expect(await instance.rows("user")).toBe(0);
  });

  it("R1: tenantHeader is the one header that is read", async () => {
    const instance = await createInstance({ tenant: { tenantHeader: "X-Workspace" } });
    const [a, b] = await twoTenants(instance);
    const headers = { "x-workspace": a, "x-tenant-id": b };
    expect(await whereSignUpLands(instance, "/sign-up/email", { headers })).toBe(a);
    expect(await whereSignUpLands(instance, "/tenant/sign-up/email", { headers })).toBe(a);
    const other = { "x-tenant-id": b };
    expect(await whereSignUpLands(instance, "/sign-up/email", { headers: other })).toBeNull();
  });
});

describe("R2: the tenant has to exist", () => {
  const endpoints: ["GET" | "POST", string, object?][] = [
    ["POST", "/sign-up/email", newcomer()],
    ["POST", "/sign-in/email", { email: "user@example.com", password: PASSWORD }],
    ["POST", "/request-password-reset", { email: "user@example.com" }],
    ["POST", "/reset-password", { token: "t", newPassword: PASSWORD }],
    ["POST", "/send-verification-email", { email: "user@example.com" }],
    ["POST", "/update-user", { name: "Changed" }],
    ["POST", "/sign-out", {}],
    ["GET", "/list-sessions"],
    ["GET", "/list-accounts"],
    ["GET", "/admin/list-users"],
    ["POST", "/tenant/sign-up/email", newcomer()],
    ["POST", "/tenant/sign-in/email", { email: "user@example.com", password: PASSWORD }],
    ["POST", "/tenant/sign-in/social", { provider: "google" }],
  ];

  it.each(endpoints)("R2: %s %s in an unknown tenant is a 404", async (method, path, body) => {
    const hooked: string[] = [];
    const instance = await createInstance({
      tenant: { resolveTenantId: ({ headers }) => headers?.get("x-resolve") },
      auth: {
        emailAndPassword: {
          enabled: true,
          sendResetPassword: async () => void hooked.push("mail"),
        },
        hooks: { before: createAuthMiddleware(async (ctx) => void hooked.push(ctx.path)) },
      },
    });
    const { browser } = await instance.signUp(null, "user@example.com");
    const cookies = browser.cookieHeader();
    const ways = [
      browser.fork({ "x-tenant-id": UNKNOWN }),
      browser.fork({ "x-resolve": UNKNOWN }),
      browser.fork(),
    ];
    for (const [index, window] of ways.entries()) {
      hooked.length = 0;
      instance.database.statements.length = 0;
      const query = index === 2 ? { query: { tenantId: UNKNOWN } } : {};
      const answer = await window.send(path, { method, body, ...query });
      expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      // The look for the tenant, and whether it is a slug, are all that reached the database.
      expect(instance.database.statements).toHaveLength(2);
      for (const sql of instance.database.statements) {
        expect(sql).toMatch(/^select .* from "tenant" /);
      }
      // The application's hook of better-auth's own endpoint has not run either.
      expect(hooked.filter((entry) => !entry.startsWith("/tenant/"))).toEqual([]);
      expect(answer.headers.getSetCookie()).toEqual([]);
      expect(window.cookieHeader()).toBe(cookies);
    }
  });

  it("R2: get-session in an unknown tenant is null, and the cookie stays", async () => {
    const instance = await createInstance();
    const tenant = await instance.createTenant();
    for (const tenantId of [null, tenant.id]) {
      const { browser, token } = await instance.signUp(tenantId);
      const cookies = browser.cookieHeader();
      for (const window of [browser.fork({ "x-tenant-id": UNKNOWN }), browser.fork()]) {
        const query: Record<string, string> = window.headers["x-tenant-id"]
          ? {}
          : { tenantId: UNKNOWN };
        const answer = await window.get("/get-session", { query });
        expect([answer.status, answer.data]).toEqual([200, null]);
        expect(window.cookieHeader()).toBe(cookies);
      }
      const { data } = await browser.get<{ session: { token: string } }>("/get-session");
      expect(data.session.token).toBe(token);
    }
  });

  it("R2: a tenant that was deleted is an unknown one", async () => {
    const instance = await createInstance();
    const tenant = await instance.createTenant();
    const { browser } = await instance.signUp(tenant.id);
    await instance.api.deleteTenant({ body: { tenantId: tenant.id } });
    const headers = { "x-tenant-id": tenant.id };
    const answer = await browser.fork(headers).post("/sign-up/email", newcomer());
    expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    const session = await browser.fork(headers).get("/get-session");
    expect([session.status, session.data]).toEqual([200, null]);
    expect(await instance.rows("user")).toBe(0);
  });

  it("R2: the slug, the name or another spelling of the id are not the id", async () => {
    const instance = await createInstance();
    const { id, slug, name } = await instance.createTenant("acme");
    const swapped = id.replace(/[a-z]/i, (letter) =>
      letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
    );
    for (const wrong of [slug, name, swapped, `${id}x`, id.slice(1), "%", "*", "null", "0"]) {
      const browser = instance.browser({ "x-tenant-id": wrong });
      const answer = await browser.post("/sign-up/email", newcomer());
      expect([wrong, answer.status, answer.code]).toEqual([wrong, 404, "TENANT_NOT_FOUND"]);
    }
    expect(await instance.rows("user")).toBe(0);
  });

  const needy: ["GET" | "POST", string, object?][] = [
    ["POST", "/tenant/sign-up/email", newcomer()],
    ["POST", "/tenant/sign-in/email", { email: "user@example.com", password: PASSWORD }],
    ["POST", "/tenant/sign-in/social", { provider: "google" }],
    [
      "POST",
      "/tenant/oauth-config/register",
      { providerId: "google", clientId: "i", clientSecret: "s" },
    ],
    ["GET", "/tenant/oauth-config/list"],
    ["POST", "/tenant/oauth-config/delete", { providerId: "google" }],
  ];

  it.each(needy)("R2: %s %s without a tenant is a 400", async (method, path, body) => {
    const instance = await createInstance();
    const { browser } = await instance.operator();
    const users = await instance.rows("user");
    for (const empty of [{}, { tenantId: "" }]) {
      const answer = await browser.send(path, {
        method,
        ...(body ? { body: { ...body, ...empty } } : { query: empty as Record<string, string> }),
      });
      expect([answer.status, answer.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
    }
    expect(await instance.rows("user")).toBe(users);
    expect(await instance.rows("tenantOauthConfig")).toBe(0);
  });

  it("R2: a session does not name the tenant of an endpoint that needs one", async () => {
    const instance = await createInstance();
    const tenant = await instance.createTenant();
    const { browser, email } = await instance.signUp(tenant.id);
    const answer = await browser.post("/tenant/sign-in/email", { email, password: PASSWORD });
    expect([answer.status, answer.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
    expect(await instance.rows("session")).toBe(1);
  });
});
