import { apiKey } from "@better-auth/api-key";
import type { BetterAuthOptions } from "better-auth";
import { bearer } from "better-auth/plugins";
import { afterEach, describe, expect, it, vi } from "vitest";
import { runInTenant } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { createInstance, PASSWORD } from "../../support/instance";
import { sample } from "../../support/matrix";
import { createStorage, mapStorage, STORAGE_KINDS } from "../../support/stores";
import {
  createWorld,
  EMAIL,
  expectRefused,
  outcome,
  shareWorld,
  type Where,
} from "../../support/world";

afterEach(() => vi.useRealTimers());

const cookieCache = { enabled: true, maxAge: 300 };
const losesIndex = STORAGE_KINDS.find(({ forgets }) => forgets) ?? {};
const inMap = () => ({ secondaryStorage: mapStorage().storage });

type Options = Partial<BetterAuthOptions>;
const STORES: [string, () => Options][] = [
  ["in the database", () => ({})],
  ["in a cached cookie", () => ({ session: { cookieCache } })],
  ["in secondary storage", inMap],
  ["in both", () => ({ ...inMap(), session: { storeSessionInDatabase: true } })],
  ["in a storage that loses its index", () => ({ secondaryStorage: createStorage(losesIndex) })],
  ["in secondary storage and a cached cookie", () => ({ ...inMap(), session: { cookieCache } })],
];

const suspended = { status: "suspended" } as const;
const active = { status: "active" } as const;
const SUSPENDED = [403, "TENANT_SUSPENDED"];
const credentials = { name: "N", email: "n@example.com", password: PASSWORD };

describe.each(STORES)("R10: sessions %s", (_store, auth) => {
  it("end when their tenant is suspended: at once, for good, and those of this tenant only", async () => {
    const world = await createWorld({ auth: auth(), plugins: [bearer()] });
    const { whoIs, change, naming } = world;
    const { acme: jane, ...others } = await world.janes();
    const authorization = { authorization: `Bearer ${jane.token}`, ...naming("acme") };
    const windows = [jane.fork({}), jane.fork(), world.browser(authorization)];
    for (const window of windows) expect(await whoIs(window)).toMatchObject({ id: jane.id });
    const cookies = windows.map(({ cookies }) => new Map(cookies));

    expect(await change("acme", suspended)).toMatchObject(suspended);
    for (const window of windows) {
      expect(await whoIs(window.fork())).toBeNull();
      const used = await window.fork().post("/update-user", { name: "Still here" });
      // Without a name it is the session that is missing.
      const isNamed = window.headers["x-tenant-id"];
      expect(outcome(used)).toEqual(isNamed ? SUSPENDED : [401, "UNAUTHORIZED"]);
    }
    expectRefused(await world.signIn("acme"), 403, "TENANT_SUSPENDED");
    for (const other of Object.values(others)) {
      expect(await whoIs(other)).toMatchObject({ id: other.id });
    }

    await change("acme", active);
    // A cookie that a browser has kept stays what it was: nothing.
    for (const [index, window] of windows.entries()) {
      for (const [name, value] of cookies[index] ?? []) window.cookies.set(name, value);
      expect(await whoIs(window)).toBeNull();
    }
    const { person: again } = await world.signIn("acme");
    expect(await whoIs(again)).toMatchObject({ id: jane.id });
    expect((await again.get<unknown[]>("/list-sessions")).data.length).toBeLessThanOrEqual(1);
  });
});

it.each(sample(STORES, 2))(
  "R10: no session is left alive where 50 sign in meanwhile, %s",
  async (_, auth) => {
    const { as, at, change, whoIs, context, rows } = await createWorld({ auth: auth() });
    await as("jane", "acme");
    const browsers = Array.from({ length: 50 }, () => at("acme"));
    const signIns = browsers.map(async (browser, index) => {
      await new Promise((resolve) => setTimeout(resolve, index % 10));
      return browser.post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    });
    await new Promise((resolve) => setTimeout(resolve, 4));
    await change("acme", suspended);
    for (const { status } of await Promise.all(signIns)) expect([200, 403]).toContain(status);
    for (const browser of browsers) expect(await whoIs(browser.fork({}))).toBeNull();
    if (context.tables.session) expect(await rows("session")).toBe(0);
    await change("acme", active);
    for (const browser of browsers) expect(await whoIs(browser)).toBeNull();
  },
);

describe("a request that names a suspended tenant", () => {
  it("is refused, however it names the tenant, and changes nothing", async () => {
    const world = await createWorld({
      tenant: {
        resolveTenantId: ({ headers, request }) => {
          const given = (headers ?? request?.headers)?.get("x-by");
          return given?.startsWith("slug:") ? { slug: given.slice(5) } : given;
        },
      },
    });
    const { browser, at, change } = world;
    const tenantId = world.ids.acme;
    await change("acme", suspended);
    const body = { ...credentials, tenantId };
    const answers = await world.unchanged(async () => [
      await browser().post("/tenant/sign-up/email", body),
      await browser().post("/sign-up/email", credentials, { query: { tenantId } }),
      await at("acme").post("/sign-up/email", credentials),
      await browser({ "x-by": tenantId }).post("/sign-up/email", credentials),
      await browser({ "x-by": "slug:acme" }).post("/sign-up/email", credentials),
      await at("acme").post("/request-password-reset", credentials),
      await at("acme").get("/list-sessions"),
      await at("acme").get("/ok"),
    ]);
    expect(answers.map(outcome)).toEqual(answers.map(() => SUSPENDED));
    const call = world.api.signUpEmailTenant({ body });
    await expect(call).rejects.toMatchObject({ body: { code: "TENANT_SUSPENDED" } });
    // A sign-in page can say so.
    const { status, data } = await at("acme").get("/tenant/sign-in-methods");
    const tenant = { id: tenantId, name: "ACME", slug: "acme", ...suspended };
    expect([status, data.tenant]).toEqual([200, tenant]);
  });

  it("may carry an API key: it is no session, and one again afterwards", async () => {
    const { as, browser, change, whoIs, naming } = await createWorld({
      plugins: [apiKey({ enableSessionForAPIKeys: true })],
      tenant: { scopedModels: ["apikey"] },
    });
    const jane = await as("jane", "acme");
    const { data } = await jane.post<{ key: string }>("/api-key/create", { name: "Robot" });
    const robot = browser({ ...naming("acme"), "x-api-key": data.key });
    expect(await whoIs(robot)).toMatchObject({ id: jane.id });
    await change("acme", suspended);
    expect(await whoIs(robot)).toBeNull();
    expect((await robot.post("/update-user", { name: "X" })).code).toBe("TENANT_SUSPENDED");
    await change("acme", active);
    expect(await whoIs(robot)).toMatchObject({ id: jane.id });
  });
});

describe("who manages a suspended tenant", () => {
  const world = shareWorld();
  async function create() {
    const { id } = await world.createTenant();
    return { id, member: await world.signUp(id) };
  }
  const window = (where: Where, of: Browser) => world.at(where, of);

  it("operators do, over HTTP and through the admin plugin", async () => {
    const { id: tenantId, member } = await create();
    const operator = await world.operator();
    const update = (body: object) => operator.post("/tenant/update", { tenantId, ...body });
    // To say that it is active as it is signs nobody out.
    expect((await update(active)).status).toBe(200);
    expect(await world.whoIs(member)).toMatchObject({ id: member.id });
    expect((await update(suspended)).data).toMatchObject(suspended);
    expect((await update({ name: "New" })).data).toMatchObject({ name: "New", ...suspended });
    const there = window(tenantId, operator);
    const listed = await there.get<{ users: object[] }>("/admin/list-users");
    expect(listed.data.users).toMatchObject([{ id: member.id }]);
    const userId = member.id;
    for (const browser of [there, operator]) {
      const data = { name: "By the operator" };
      expect((await browser.post("/admin/update-user", { userId, data })).status).toBe(200);
      const impersonated = await browser.fork().post("/admin/impersonate-user", { userId });
      expect(outcome(impersonated)).toEqual(SUSPENDED);
    }
    expect((await there.post("/admin/create-user", credentials)).status).toBe(200);
    expect(await world.whoIs(operator)).toMatchObject({ id: operator.id });
  });

  it("its own users do not, nor ordinary users of the platform, nor callers without a session", async () => {
    const { id: tenantId, member } = await create();
    await world.setRole(member.id, "admin");
    const ordinary = await world.as("jane", "platform");
    await world.change(tenantId, suspended);
    const ask = async (browser: Browser) =>
      outcome(await window(tenantId, browser).get("/admin/list-users"));
    expect(await ask(member)).toEqual(SUSPENDED);
    expect(await ask(world.at(null))).toEqual(SUSPENDED);
    // As at any tenant: a session of the platform is none there, unless it is an operator's.
    expect(await ask(ordinary)).toEqual([401, undefined]);
    for (const browser of [member.fork({}), ordinary]) {
      const taken = await browser.post("/tenant/update", { tenantId, ...active });
      expect([401, 403]).toContain(taken.status);
    }
  });

  it("the server's own code does, inside the tenant, but signs no user in", async () => {
    const { id, member } = await create();
    await world.change(id, suspended);
    const { internalAdapter, adapter } = world.context;
    const { updateUser, findUserById, createSession, findSession } = internalAdapter;
    const now = new Date();
    const expiresAt = new Date(now.getTime() + 1_000_000);
    const session = { userId: member.id, token: id, expiresAt, createdAt: now, updatedAt: now };
    await runInTenant(id, async () => {
      await updateUser(member.id, { name: "By the server" });
      expect(await findUserById(member.id)).toMatchObject({ name: "By the server" });
      const { signInEmail, signUpEmail } = world.api;
      const calls = [
        () => createSession(member.id),
        () => signInEmail({ body: { email: EMAIL, password: PASSWORD } }),
        () => signUpEmail({ body: credentials }),
      ];
      for (const call of calls) {
        await expect(call()).rejects.toMatchObject({ body: { code: "TENANT_SUSPENDED" } });
      }
      // One that a plugin writes past better-auth is none, then and later.
      await adapter.create({ model: "session", data: session as never });
      expect(await findSession(id)).toBeNull();
    });
    // Nobody is left behind by the sign-up that was refused.
    expect(await world.rowsIn(id, "user")).toHaveLength(1);
    await world.change(id, active);
    expect(await runInTenant(id, () => findSession(id))).toBeNull();
    expect(await world.rowsIn(id, "session")).toHaveLength(0);
  });
});

it("R10: a session that another process makes is dead within ten seconds", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
  const { database, change, as, naming, whoIs, signIn } = await createWorld();
  const there = await createInstance({ database, migrate: false });
  await as("jane", "acme");
  const late = there.browser(naming("acme"));
  const enter = () => late.post("/sign-in/email", { email: EMAIL, password: PASSWORD });
  await enter();
  await change("acme", suspended);
  expect((await enter()).status).toBe(200);
  vi.setSystemTime(Date.now() + 10_001);
  expect(await whoIs(late)).toBeNull();
  expect((await enter()).code).toBe("TENANT_SUSPENDED");
  await change("acme", active);
  vi.setSystemTime(Date.now() + 10_001);
  expect(await whoIs(late)).toBeNull();
  expect((await signIn("acme")).status).toBe(200);
});

it.each(STORES.filter(([store]) => /in the database|secondary storage$/.test(store)))(
  "sessions stay when the policy changes, unless the update ends them: %s",
  async (_, auth) => {
    const { signUp, whoIs, change } = await createWorld({ auth: auth() });
    const people = [await signUp("acme"), await signUp("acme", "other@example.com")];
    const areIn = async () => [
      await whoIs(people[0] as Browser),
      await whoIs(people[1] as Browser),
    ];
    await change("acme", { policy: { signUp: "closed", emailDomains: ["acme.com"] } });
    expect(await areIn()).toMatchObject(people.map(({ id }) => ({ id })));
    await change("acme", { policy: null, endSessions: true });
    expect(await areIn()).toEqual([null, null]);
  },
);
