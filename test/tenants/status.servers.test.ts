import { apiKey } from "@better-auth/api-key";
import { type BetterAuthOptions, betterAuth } from "better-auth";
import { bearer, magicLink } from "better-auth/plugins";
import { afterEach, describe, expect, it, vi } from "vitest";
import { runInTenant, tenantAuth } from "../../src/index";
import { createStorage, STORAGE_KINDS } from "../configurations/storages";
import { mapStorage } from "../sessions/stores";
import { Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import { BASE_URL, createInstance, type Instance, PASSWORD } from "../support/instance";

afterEach(() => vi.useRealTimers());

const cookieCache = { enabled: true, maxAge: 300 };
const losesIndex = STORAGE_KINDS.find(({ forgets }) => forgets) ?? {};

const STORES: [string, () => Partial<BetterAuthOptions>][] = [
  ["in the database", () => ({})],
  ["in a cached cookie", () => ({ session: { cookieCache } })],
  ["in secondary storage", () => ({ secondaryStorage: mapStorage().storage })],
  [
    "in both",
    () => ({ secondaryStorage: mapStorage().storage, session: { storeSessionInDatabase: true } }),
  ],
  ["in a storage that loses its index", () => ({ secondaryStorage: createStorage(losesIndex) })],
  [
    "in secondary storage and a cached cookie",
    () => ({ secondaryStorage: mapStorage().storage, session: { cookieCache } }),
  ],
];

const suspend = ({ api }: Instance, tenantId: string) =>
  api.updateTenant({ body: { tenantId, status: "suspended" } });
const resume = ({ api }: Instance, tenantId: string) =>
  api.updateTenant({ body: { tenantId, status: "active" } });
const named = (tenantId: string) => ({ "x-tenant-id": tenantId });
const whoIs = async (browser: Browser) =>
  (await browser.fork().get<{ user: { id: string } } | null>("/get-session")).data?.user.id;

describe.each(STORES)("R10: suspending ends every session, %s", (_, options) => {
  it("at once, for good, and those of this tenant only", async () => {
    const instance = await createInstance({ auth: options(), plugins: [bearer()] });
    const [tenant, other] = [await instance.createTenant(), await instance.createTenant()];
    const email = "same@example.com";
    const victim = await instance.signUp(tenant.id, email);
    const others = [await instance.signUp(other.id, email), await instance.signUp(null, email)];
    const authorization = { authorization: `Bearer ${victim.token}` };
    const windows = [
      victim.browser,
      victim.browser.fork(named(tenant.id)),
      instance.browser(authorization),
      instance.browser({ ...authorization, ...named(tenant.id) }),
    ];
    for (const window of windows) expect(await whoIs(window)).toBe(victim.user.id);

    const { status } = await suspend(instance, tenant.id);
    expect(status).toBe("suspended");
    for (const window of windows) {
      expect(await whoIs(window)).toBeUndefined();
      const used = await window.fork().post("/update-user", { name: "Still here" });
      // Without a name it is the session that is missing.
      expect([used.status, used.code]).toEqual(
        window.headers["x-tenant-id"] ? [403, "TENANT_SUSPENDED"] : [401, "UNAUTHORIZED"],
      );
    }
    for (const { browser, user } of others) expect(await whoIs(browser)).toBe(user.id);

    await resume(instance, tenant.id);
    // A cookie that a browser has kept stays what it was: nothing.
    for (const window of windows) expect(await whoIs(window)).toBeUndefined();
    const again = instance.browser(named(tenant.id));
    const body = { tenantId: tenant.id, email, password: PASSWORD };
    expect((await again.post("/tenant/sign-in/email", body)).status).toBe(200);
    expect(await whoIs(again)).toBe(victim.user.id);
    const { data } = await again.get<unknown[]>("/list-sessions");
    expect(data.length).toBeLessThanOrEqual(1);
  });
});

it("R10: the same where there is no database, and a session is in its cookie alone", async () => {
  const auth = betterAuth({
    secret: "a test secret that is long enough for everybody",
    baseURL: "http://localhost:3000",
    emailAndPassword: {
      enabled: true,
      password: { hash: async (password) => password, verify: async () => true },
    },
    session: { cookieCache: { enabled: true, strategy: "jwe", refreshCache: true } },
    logger: { disabled: true },
    plugins: [tenantAuth()],
  });
  const { id: tenantId } = await auth.api.createTenant({ body: { name: "Acme", slug: "acme" } });
  const window = new Browser(auth.handler, BASE_URL);
  const body = { tenantId, name: "S", email: "s@example.com", password: PASSWORD };
  await window.post("/tenant/sign-up/email", body);
  const id = await whoIs(window);
  expect(id).toBeDefined();
  await auth.api.updateTenant({ body: { tenantId, status: "suspended" } });
  expect(await whoIs(window)).toBeUndefined();
  const refused = await window.fork().post("/tenant/sign-in/email", body);
  expect([refused.status, refused.code]).toEqual([403, "TENANT_SUSPENDED"]);
  await auth.api.updateTenant({ body: { tenantId, status: "active" } });
  expect(await whoIs(window)).toBeUndefined();
  expect((await window.post("/tenant/sign-in/email", body)).status).toBe(200);
  expect(await whoIs(window)).toBe(id);
});

describe("a request that names a suspended tenant", () => {
  it("is refused, whichever way it names it, and changes nothing", async () => {
    const byName = "x-by";
    const instance = await createInstance({
      tenant: {
        resolveTenantId: ({ headers, request }) => {
          const given = (headers ?? request?.headers)?.get(byName);
          return given?.startsWith("slug:") ? { slug: given.slice(5) } : given;
        },
      },
    });
    const { id, slug } = await instance.createTenant();
    await suspend(instance, id);
    const body = { name: "N", email: "n@example.com", password: PASSWORD };
    const answers = [
      await instance.browser().post("/tenant/sign-up/email", { ...body, tenantId: id }),
      await instance.browser().post("/sign-up/email", body, { query: { tenantId: id } }),
      await instance.browser(named(id)).post("/sign-up/email", body),
      await instance.browser({ [byName]: id }).post("/sign-up/email", body),
      await instance.browser({ [byName]: `slug:${slug}` }).post("/sign-up/email", body),
      await instance.browser(named(id)).post("/request-password-reset", body),
      await instance.browser(named(id)).get("/list-sessions"),
      await instance.browser(named(id)).get("/ok"),
    ];
    for (const { status, code } of answers)
      expect([status, code]).toEqual([403, "TENANT_SUSPENDED"]);
    expect(await instance.rows("user")).toBe(0);
    const call = instance.api.signUpEmailTenant({ body: { ...body, tenantId: id } });
    await expect(call).rejects.toMatchObject({ body: { code: "TENANT_SUSPENDED" } });
  });

  it("is told by sign-in-methods, so that the page can say so", async () => {
    const instance = await createInstance();
    const { id } = await instance.createTenant("acme");
    const ask = () => instance.browser(named(id)).get("/tenant/sign-in-methods");
    expect((await ask()).data.tenant).toMatchObject({ slug: "acme", status: "active" });
    await suspend(instance, id);
    const { status, data } = await ask();
    expect([status, data.tenant]).toEqual([
      200,
      { id, name: "ACME", slug: "acme", status: "suspended" },
    ]);
  });

  it("may come by a link: it is refused, and good again when the tenant is", async () => {
    const links: string[] = [];
    const plugins = [magicLink({ sendMagicLink: async ({ url }) => void links.push(url) })];
    const instance = await createInstance({ plugins });
    const { id } = await instance.createTenant();
    await instance.browser(named(id)).post("/sign-in/magic-link", { email: "m@example.com" });
    await suspend(instance, id);
    const [url = ""] = links;
    const { status, location } = await instance.browser().get(url);
    expect([status, location]).toEqual([302, "/?error=TENANT_SUSPENDED"]);
    await resume(instance, id);
    const window = instance.browser();
    await window.get(url);
    expect(await whoIs(window)).toBeDefined();
  });

  it("may carry an API key: it is no session, and one again afterwards", async () => {
    const instance = await createInstance({
      plugins: [apiKey({ enableSessionForAPIKeys: true })],
      tenant: { scopedModels: ["apikey"] },
    });
    const { id } = await instance.createTenant();
    const { browser, user } = await instance.signUp(id);
    const { data } = await browser.post<{ key: string }>("/api-key/create", { name: "Robot" });
    const robot = instance.browser({ ...named(id), "x-api-key": data.key });
    expect(await whoIs(robot)).toBe(user.id);
    await suspend(instance, id);
    expect(await whoIs(robot)).toBeUndefined();
    expect((await robot.post("/update-user", { name: "X" })).code).toBe("TENANT_SUSPENDED");
    await resume(instance, id);
    expect(await whoIs(robot)).toBe(user.id);
  });

  it("is refused with cookies of each tenant's own, and others stay signed in", async () => {
    const instance = await createInstance({ tenant: { sessionCookies: "per-tenant" } });
    const [a, b] = [await instance.createTenant(), await instance.createTenant()];
    const { browser, email } = await instance.signUp(a.id);
    const there = browser.fork(named(b.id));
    await there.post("/sign-up/email", { name: "B", email, password: PASSWORD });
    await suspend(instance, a.id);
    expect(await whoIs(there.fork(named(a.id)))).toBeUndefined();
    expect((await there.fork(named(a.id)).post("/sign-out")).code).toBe("TENANT_SUSPENDED");
    expect(await whoIs(there)).toBeDefined();
  });
});

describe("who manages a suspended tenant", () => {
  it("operators do, over HTTP and through the admin plugin", async () => {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    const { user } = await instance.signUp(tenantId);
    const { browser: operator } = await instance.operator();
    const suspended = await operator.post("/tenant/update", { tenantId, status: "suspended" });
    expect([suspended.status, suspended.data.status]).toEqual([200, "suspended"]);
    const renamed = await operator.post("/tenant/update", { tenantId, name: "Renamed" });
    expect(renamed.data).toMatchObject({ name: "Renamed", status: "suspended" });

    const there = operator.fork(named(tenantId));
    const listed = await there.get<{ users: { id: string }[] }>("/admin/list-users");
    expect(listed.data.users.map(({ id }) => id)).toEqual([user.id]);
    const data = { name: "By the operator" };
    for (const window of [there, operator]) {
      const changed = await window.post("/admin/update-user", { userId: user.id, data });
      expect(changed.status).toBe(200);
      const impersonated = await window.fork().post("/admin/impersonate-user", { userId: user.id });
      expect([impersonated.status, impersonated.code]).toEqual([403, "TENANT_SUSPENDED"]);
    }
    const body = { email: "new@example.com", password: PASSWORD, name: "New" };
    expect((await there.post("/admin/create-user", body)).status).toBe(200);
    expect(await whoIs(operator)).toBeDefined();
  });

  it("its own people do not, nor ordinary users of the platform, nor nobody", async () => {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    const own = await instance.signUp(tenantId);
    await instance.database.query(`update "user" set role = 'admin' where id = ?`, [own.user.id]);
    const ordinary = await instance.signUp(null);
    await suspend(instance, tenantId);
    const ask = (browser: Browser) => browser.fork(named(tenantId)).get("/admin/list-users");
    expect((await ask(own.browser)).code).toBe("TENANT_SUSPENDED");
    expect((await ask(instance.browser())).code).toBe("TENANT_SUSPENDED");
    // As at any tenant: a session of the platform is none there, unless it is an operator's.
    expect((await ask(ordinary.browser)).status).toBe(401);
    for (const { browser } of [own, ordinary]) {
      const taken = await browser.fork().post("/tenant/update", { tenantId, status: "active" });
      expect([401, 403]).toContain(taken.status);
    }
  });

  it("the server's own code does, inside the tenant, but signs nobody in", async () => {
    const instance = await createInstance();
    const { id } = await instance.createTenant();
    const { user, email } = await instance.signUp(id);
    await suspend(instance, id);
    await runInTenant(id, async () => {
      const { internalAdapter } = instance.context;
      expect((await internalAdapter.findUserById(user.id))?.id).toBe(user.id);
      await internalAdapter.updateUser(user.id, { name: "By the server" });
      const refused = { body: { code: "TENANT_SUSPENDED" } };
      await expect(internalAdapter.createSession(user.id)).rejects.toMatchObject(refused);
      const credentials = { email, password: PASSWORD };
      await expect(instance.api.signInEmail({ body: credentials })).rejects.toMatchObject(refused);
      const newcomer = { name: "N", email: "n@example.com", password: PASSWORD };
      await expect(instance.api.signUpEmail({ body: newcomer })).rejects.toMatchObject(refused);
    });
    // Nobody is left behind by the sign-up that was refused.
    expect(await instance.rows("user")).toBe(1);
    expect(await instance.rows("session")).toBe(0);
  });

  it("takes active and suspended, and nothing else", async () => {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    const { browser } = await instance.operator();
    for (const status of ["deleting", "Active", "", null, 1, ["active"]]) {
      const answer = await browser.post("/tenant/update", { tenantId, status });
      expect([answer.status, answer.code], String(status)).toEqual([400, "VALIDATION_ERROR"]);
    }
    // As it is: nothing happens, and nobody is signed out.
    const { browser: person, user } = await instance.signUp(tenantId);
    await browser.post("/tenant/update", { tenantId, status: "active" });
    expect(await whoIs(person)).toBe(user.id);
  });
});

describe("races", () => {
  it.each(STORES)("suspending while 50 sign in leaves no session alive, %s", async (_, options) => {
    const instance = await createInstance({ auth: options() });
    const { id: tenantId } = await instance.createTenant();
    const { email } = await instance.signUp(tenantId);
    const body = { tenantId, email, password: PASSWORD };
    const browsers = Array.from({ length: 50 }, () => instance.browser());
    const signIns = browsers.map(async (browser, index) => {
      await new Promise((resolve) => setTimeout(resolve, index % 10));
      return browser.post("/tenant/sign-in/email", body);
    });
    await new Promise((resolve) => setTimeout(resolve, 4));
    await suspend(instance, tenantId);
    const answers = await Promise.all(signIns);
    for (const { status } of answers) expect([200, 403]).toContain(status);
    for (const browser of browsers) expect(await whoIs(browser)).toBeUndefined();
    if (instance.context.tables.session) expect(await instance.rows("session")).toBe(0);
    await resume(instance, tenantId);
    for (const browser of browsers) expect(await whoIs(browser)).toBeUndefined();
  });

  it("R10: a session that another process makes is dead within ten seconds", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
    const database = await createDatabase("sqlite");
    const [here, there] = [
      await createInstance({ database }),
      await createInstance({ database, migrate: false }),
    ];
    const { id: tenantId } = await here.createTenant();
    const { email } = await there.signUp(tenantId);
    await suspend(here, tenantId);
    const late = there.browser();
    const body = { tenantId, email, password: PASSWORD };
    expect((await late.post("/tenant/sign-in/email", body)).status).toBe(200);
    vi.setSystemTime(Date.now() + 10_001);
    expect(await whoIs(late)).toBeUndefined();
    expect((await late.fork().post("/tenant/sign-in/email", body)).code).toBe("TENANT_SUSPENDED");
    await resume(here, tenantId);
    vi.setSystemTime(Date.now() + 10_001);
    expect(await whoIs(late)).toBeUndefined();
    expect((await late.post("/tenant/sign-in/email", body)).status).toBe(200);
    expect(await whoIs(late)).toBeDefined();
    await database.close();
  });

  it("a tenant that is looked up while it is suspended is not remembered as active", async () => {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    const { email } = await instance.signUp(tenantId);
    const body = { tenantId, email, password: PASSWORD };
    for (let round = 0; round < 10; round++) {
      const browser = instance.browser();
      await Promise.all([
        browser.post("/tenant/sign-in/email", body),
        suspend(instance, tenantId),
        browser.fork().post("/tenant/sign-in/email", body),
      ]);
      expect((await browser.post("/tenant/sign-in/email", body)).code).toBe("TENANT_SUSPENDED");
      await resume(instance, tenantId);
      expect((await instance.browser().post("/tenant/sign-in/email", body)).status).toBe(200);
    }
  });
});
