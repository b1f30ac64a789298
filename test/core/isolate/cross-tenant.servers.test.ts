import type { BetterAuthPlugin } from "better-auth";
import {
  createAuthEndpoint,
  createAuthMiddleware,
  getSessionFromCtx,
  sessionMiddleware,
} from "better-auth/api";
import { admin, bearer } from "better-auth/plugins";
import { createAccessControl } from "better-auth/plugins/access";
import { adminAc, defaultStatements } from "better-auth/plugins/admin/access";
import { afterEach, describe, expect, it, vi } from "vitest";
import { getTenantId, runInTenant } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { combine } from "../../support/matrix";
import { createStorage, type Store } from "../../support/stores";
import {
  createWorld,
  ELSEWHERE,
  EMAIL,
  expectRefused,
  type Hosts,
  type Person,
  PLACES,
  type Place,
  type SessionAnswer,
  SUBDOMAINS,
  shareWorld,
  type World,
  type WorldOptions,
} from "../../support/world";

/** How requests say where they are: by name alone, or by hosts, of which the platform has one. */
const KINDS: [kind: string, hosts: Hosts | undefined][] = [
  ["names", undefined],
  ["hosts", SUBDOMAINS],
];

const reaching = (hosts?: Hosts, more: WorldOptions = {}): WorldOptions => ({
  plugins: [bearer(), admin({ allowImpersonatingAdmins: true })],
  ...(hosts && { hosts }),
  ...more,
});

type Role = "jane" | "admin";
type People = Record<Place, Record<Role, Person>>;

/** In each place a user and an admin, each signed in; the admin of the platform is an operator. */
async function meet(world: World): Promise<People> {
  const people = {} as People;
  for (const place of PLACES) {
    const jane = await world.as("jane", place);
    people[place] = { jane, admin: await world.as("admin", place) };
  }
  return people;
}

type UserList = { users: { id: string }[] };

const idsIn = (data: unknown) =>
  ((data as UserList | null)?.users ?? []).map(({ id }) => id).toSorted();
const idsOf = (people: People, ...places: Place[]) =>
  places.flatMap((place) => [people[place].jane.id, people[place].admin.id]).toSorted();
const carrying = ({ token }: Person) => ({ headers: { authorization: `Bearer ${token}` } });
const NEW_PASSWORD = "a brand new password";

/** What an admin endpoint could be made to do to somebody. */
const HARM: [path: string, body: (people: People) => object][] = [
  ["set-role", ({ platform }) => ({ userId: platform.jane.id, role: "admin" })],
  ["ban-user", ({ platform }) => ({ userId: platform.admin.id })],
  ["impersonate-user", ({ platform }) => ({ userId: platform.admin.id })],
  ["remove-user", ({ globex }) => ({ userId: globex.jane.id })],
  ["update-user", ({ globex }) => ({ userId: globex.jane.id, data: { name: "Changed" } })],
  ["revoke-user-session", ({ globex }) => ({ sessionToken: globex.jane.token })],
  ["list-user-sessions", ({ platform }) => ({ userId: platform.admin.id })],
];

describe.each(KINDS)("two credentials of different tenants in one request, by %s", (_, hosts) => {
  const world = shareWorld(reaching(hosts));

  it.each<[at: Place, cookieOf: Role, cookieAt: Place, tokenOf: Role, tokenAt: Place]>([
    ["platform", "jane", "platform", "admin", "acme"],
    ["platform", "admin", "platform", "jane", "acme"],
    ["platform", "admin", "acme", "jane", "platform"],
    ["platform", "jane", "globex", "admin", "acme"],
    // Here the token is good, and a stranger's cookie beside it widens nothing.
    ["acme", "admin", "platform", "admin", "acme"],
  ])(
    "at %s, a cookie of %s at %s and a token of %s at %s change no data and manage nothing",
    async (at, cookieOf, cookieAt, tokenOf, tokenAt) => {
      const people = await meet(world);
      const both = carrying(people[tokenAt][tokenOf]);
      const caller = () => world.at(at, people[cookieAt][cookieOf]);
      await world.unchanged(async () => {
        for (const [path, body] of HARM) {
          const { data } = await caller().post(`/admin/${path}`, body(people), both);
          expect(JSON.stringify(data), path).not.toMatch(/@example\.com|"token"/);
        }
      });
      if (at === "acme") return;
      for (const path of ["/admin/list-users", "/tenant/list"]) {
        expect([401, 403]).toContain((await caller().get(path, both)).status);
      }
    },
  );

  it.each<[cookieOf: Role, cookieAt: Place, tokenOf: Role, tokenAt: Place]>([
    ["admin", "acme", "admin", "platform"],
    ["admin", "platform", "admin", "acme"],
    ["jane", "globex", "admin", "platform"],
  ])(
    "a cookie of %s at %s and a token of %s at %s are none in auth.api, by headers or by a request",
    async (cookieOf, cookieAt, tokenOf, tokenAt) => {
      const people = await meet(world);
      const { token } = people[tokenAt][tokenOf];
      const cookie = people[cookieAt][cookieOf].cookieHeader();
      const host = hosts?.names.platform ?? "localhost";
      const headers = new Headers({ cookie, host, authorization: `Bearer ${token}` });
      const alone = new Headers({ host, authorization: `Bearer ${token}` });
      const [both, bare] = [headers, alone].map(
        (headers) => new Request(`http://${host}/`, { headers }),
      );
      const api = world.api as unknown as Record<string, (input: object) => Promise<unknown>>;
      for (const call of [{ headers }, { request: both }, { headers, request: bare }]) {
        for (const name of ["listUsers", "listTenants"]) {
          const answer = api[name]?.({ query: {}, asResponse: false, ...call });
          await expect(answer, name).rejects.toMatchObject({ statusCode: 401 });
        }
      }
    },
  );

  it("control: each credential alone, or two of one tenant, does what it may", async () => {
    const people = await meet(world);
    const { jane, admin: operator } = people.platform;
    const list = (at: Browser, by?: Person) => at.get("/admin/list-users", by && carrying(by));
    const [acme, platform] = [world.at("acme"), world.at("platform")];
    const everybody = idsOf(people, ...PLACES);
    expect(idsIn((await list(platform, operator)).data)).toEqual(everybody);
    expect((await platform.get("/tenant/list", carrying(operator))).status).toBe(200);
    for (const admin of [operator, people.acme.admin]) {
      expect(idsIn((await list(acme, admin)).data)).toEqual(idsOf(people, "acme"));
    }
    // better-auth takes the token.
    expect(idsIn((await list(world.at("platform", jane), operator)).data)).toEqual(everybody);
    expect((await list(world.at("platform", operator), jane)).status).toBe(403);
    // Even a stale credential of another place beside it: their rights must never add up.
    const former = world.at(
      "acme",
      await world.signUp("acme", `${crypto.randomUUID()}@example.com`),
    );
    await former.fork().post("/sign-out");
    expect((await list(world.at("platform", former), operator)).status).toBe(401);
  });
});

const storage = () => createStorage();
const STORES: Store[] = [
  { name: "the database" },
  { name: "a storage", storage },
  { name: "both", storage, session: { storeSessionInDatabase: true } },
];

/** An operator who has become somebody else. */
async function impersonate(world: World, { id }: Person, where: Place = "platform") {
  const operator = world.at(where, await world.operator());
  const answer = await operator.post("/admin/impersonate-user", { userId: id });
  expect(answer.status, JSON.stringify(answer.data)).toBe(200);
  return operator;
}

describe.each(
  combine(KINDS, STORES).map(([[kind, hosts], store]) => [kind, store.name, hosts, store] as const),
)("by %s, sessions in %s", (_, __, hosts, store) => {
  const world = shareWorld(reaching(hosts, { store }));

  it("Acme's admin sees Acme's sessions, and so does an operator, visiting or not", async () => {
    const { acme, platform } = await meet(world);
    const body = { userId: acme.jane.id };
    for (const caller of [acme.admin, world.at("acme", platform.admin), platform.admin]) {
      const { status, data } = await caller.post("/admin/list-user-sessions", body);
      expect(status).toBe(200);
      expect(JSON.stringify(data)).toContain(acme.jane.token);
    }
  });

  it("Acme's admin, impersonated or not, sees and ends no session of elsewhere", async () => {
    const people = await meet(world);
    const { admin } = people.acme;
    const victims = [people.platform.admin, people.globex.jane];
    const impersonator = await impersonate(world, admin, "acme");
    // Where there are no hosts, the last is at Acme by its session alone.
    const alone = world.at(hosts ? "acme" : null);
    for (const [caller, by] of [
      [impersonator, {}],
      [admin, {}],
      [alone, carrying(admin)],
    ] as const) {
      const { data } = await caller.get<UserList>("/admin/list-users", by);
      expect(idsIn(data)).toEqual(idsOf(people, "acme"));
      for (const { id, token } of victims) {
        const shown = await caller.get("/admin/get-user", { query: { id }, ...by });
        expect(shown.status).toBe(404);
        const body = { userId: id, sessionToken: token };
        for (const path of ["list-user-sessions", "revoke-user-sessions", "revoke-user-session"]) {
          const answer = await caller.post(`/admin/${path}`, body, by);
          expect(JSON.stringify(answer.data), path).not.toContain(token);
        }
      }
    }
    for (const victim of victims) {
      expect(await world.whoIs(victim)).toMatchObject({ id: victim.id });
    }
  });

  it.each(["revoke-user-sessions", "revoke-user-session"])(
    "an operator who ends their own by %s, visiting Acme, leaves none that is not listed",
    async (path) => {
      const { acme, platform } = await meet(world);
      const one = await world.join("platform", "admin");
      const signIn = async () => (await world.signIn("platform", one.email)).person;
      const [two, three] = [await signIn(), await signIn()];
      const body = { userId: one.id, sessionToken: three.token };
      expect((await world.at("acme", two).post(`/admin/${path}`, body)).status).toBe(200);
      const ended = path === "revoke-user-session" ? [three] : [one, two, three];
      const listed = await platform.admin.post("/admin/list-user-sessions", { userId: one.id });
      for (const person of [one, two, three]) {
        const isLeft = !ended.includes(person);
        expect((await world.whoIs(person)) !== null).toBe(isLeft);
        expect(JSON.stringify(listed.data).includes(person.token)).toBe(isLeft);
      }
      await platform.admin.post("/admin/ban-user", { userId: one.id });
      for (const person of [one, two, three]) expect(await world.whoIs(person)).toBe(null);
      expect(await world.whoIs(acme.jane)).not.toBe(null);
    },
  );

  it("an operator impersonates a user of Acme and stops, and no other user does", async () => {
    const { acme, platform } = await meet(world);
    const there = world.at("acme", await impersonate(world, acme.jane));
    expect(await world.whoIs(there, "acme")).toMatchObject({ id: acme.jane.id });
    expect(await world.whoIs(there, "globex")).toBe(null);
    expect((await there.post("/admin/stop-impersonating")).status).toBe(200);
    expect(await world.whoIs(there, "platform")).toMatchObject({ id: platform.admin.id });
    await world.unchanged(async () => {
      for (const [place, person, status] of [
        ["acme", acme.admin, 400],
        ["platform", platform.admin, 400],
        ["globex", acme.admin, 401],
      ] as const) {
        const window = world.at(place, person);
        expect((await window.post("/admin/stop-impersonating")).status).toBe(status);
      }
    });
  });
});

it("an operator who is impersonated manages no tenant, and sees no users there", async () => {
  const world = await createWorld(reaching());
  const operator = await world.join("platform", "admin");
  expect((await operator.get("/tenant/list")).status).toBe(200);
  const { id } = await world.as("jane", "acme");
  const impersonator = await impersonate(world, operator);
  expect([401, 403]).toContain((await impersonator.get("/tenant/list")).status);
  const seen = idsIn((await impersonator.get("/admin/list-users")).data);
  expect([seen.includes(operator.id), seen.includes(id)]).toEqual([true, false]);
});

/** An endpoint of the application's own that shows the users whom isolation lets it see. */
const showing = (path: `/${string}`) =>
  createAuthEndpoint(path, { method: "GET", use: [sessionMiddleware] }, async (ctx) =>
    ctx.json({ users: await ctx.context.adapter.findMany<{ id: string }>({ model: "user" }) }),
  );

const backOffice: BetterAuthPlugin = {
  id: "back-office",
  endpoints: { everyone: showing("/admin/everyone"), people: showing("/back-office/people") },
};

it("a plugin of the application's own gets no reach under /admin", async () => {
  const world = await createWorld(reaching(undefined, { plugins: [backOffice] }));
  const people = await meet(world);
  const { admin: operator } = people.platform;
  const { data } = await operator.get("/admin/everyone");
  expect(idsIn(data)).toEqual(idsOf(people, "platform"));
  expect((await world.at("acme", operator).get("/admin/everyone")).status).toBe(401);
});

const byEmail = [{ field: "email", value: EMAIL }];

// An operator's reach is for the endpoint: a hook that says it runs on the platform sees that.
it("R3: an after hook finds the platform's user by e-mail, for an operator too", async () => {
  const seen: unknown[] = [];
  const after = createAuthMiddleware(async (ctx) => {
    if (ctx.path !== "/admin/list-users") return;
    // That it looks for the operator's session does not make an operator of it.
    await ctx.context.internalAdapter.findSession(ctx.context.session?.session.token ?? "");
    const everybody = await ctx.context.adapter.findMany({ model: "user", where: byEmail });
    seen.push(everybody.length);
    const found = await ctx.context.internalAdapter.findUserByEmail(EMAIL);
    seen.push({ in: getTenantId(), user: found?.user });
  });
  const world = await createWorld({ auth: { hooks: { after } } });
  const operator = await world.operator();
  await world.janes();
  expect((await operator.get("/admin/list-users")).status).toBe(200);
  expect(seen).toEqual([1, { in: null, user: expect.objectContaining({ tenantId: null }) }]);
});

it("R3: a before hook that asks who is there sees and changes the platform's, for an operator too", async () => {
  const seen: unknown[] = [];
  const before = createAuthMiddleware(async (ctx) => {
    if (!ctx.path?.startsWith("/admin/")) return;
    await getSessionFromCtx(ctx);
    const { adapter } = ctx.context;
    const update = { image: "seen" };
    seen.push(await adapter.updateMany({ model: "user", where: byEmail, update }));
  });
  const world = await createWorld({ auth: { hooks: { before } } });
  const operator = await world.operator();
  const { acme } = await world.janes();
  expect((await operator.get<{ total: number }>("/admin/list-users")).data.total).toBe(4);
  const body = { userId: acme.id, data: { name: "Changed" } };
  expect((await operator.post("/admin/update-user", body)).status).toBe(200);
  const [row] = await world.rowsIn("acme", "user");
  expect(row).toMatchObject({ name: "Changed", image: null });
  expect(seen).toEqual([1, 1]);
});

it("an operator by adminUserIds ends a session of Acme by its token, and the server enters where no caller does", async () => {
  const adminUserIds: string[] = [];
  let resolved: string | undefined;
  const world = await createWorld({
    plugins: [admin({ adminUserIds })],
    tenant: { adminUserIds, resolveTenantId: () => resolved },
  });
  const [operator, jane] = [await world.as("jane", "platform"), await world.as("jane", "acme")];
  const end = () => operator.post("/admin/revoke-user-session", { sessionToken: jane.token });
  expect((await end()).status).toBe(403);
  expect(await world.whoIs(jane)).not.toBeNull();
  adminUserIds.push(operator.id);
  expect((await end()).status).toBe(200);
  expect(await world.whoIs(jane)).toBeNull();

  const tenantId = world.ids.acme;
  await world.api.updateTenant({ body: { tenantId, status: "suspended" } });
  const body = { name: "New", email: "new@example.com", password: NEW_PASSWORD };
  type AdminApi = { createUser(input: { body: object; headers?: Headers }): Promise<unknown> };
  const api = world.api as unknown as AdminApi;
  const made = await runInTenant(tenantId, () => api.createUser({ body }));
  expect(made).toMatchObject({ user: { tenantId } });
  resolved = tenantId;
  const named = { ...body, email: "named@example.com" };
  expect(await api.createUser({ body: named })).toMatchObject({ user: { tenantId } });
  const call = api.createUser({ body: named, headers: new Headers() });
  await expect(call).rejects.toMatchObject({ body: { code: "TENANT_SUSPENDED" } });
  resolved = undefined;
  // Whoever is signed in elsewhere gets to know no more than anybody else.
  for (const stranger of [jane, await world.as("jane", "globex")]) {
    const answer = await world.at("acme", stranger).get("/admin/list-users");
    expectRefused(answer, 403, "TENANT_SUSPENDED");
  }
  expect((await world.at("acme", operator).get("/admin/list-users")).status).toBe(200);
});

describe("an operator who acts", () => {
  const heard: [what: string, tenantId: string | null][] = [];
  const note = (what: string) => async () => void heard.push([what, getTenantId()]);
  const databaseHooks = {
    user: { update: { before: note("update user") }, delete: { after: note("delete user") } },
    session: { create: { before: note("create session") } },
  };
  const world = shareWorld(reaching(undefined, { auth: { databaseHooks } }));

  it.each<[path: string, what: string, body?: object]>([
    ["update-user", "update user", { data: { name: "Changed" } }],
    ["impersonate-user", "create session"],
    ["remove-user", "delete user"],
  ])("%s: database hooks run in the tenant of the user", async (path, what, body) => {
    const operator = await world.operator();
    for (const [of, where] of [
      ["acme", "platform"],
      ["acme", "acme"],
      ["platform", "platform"],
    ] as const) {
      const { id: userId } = await world.signUp(of, `${path}-${where}-${of}@example.com`);
      heard.length = 0;
      const window = world.at(where, operator);
      expect((await window.post(`/admin/${path}`, { userId, ...body })).status).toBe(200);
      expect(heard.filter(([it]) => it === what)).toEqual([[what, world.ids[of]]]);
    }
  });

  it("creates a user with an email that is free in the tenant, also if it is taken elsewhere", async () => {
    for (const [place, taken, status] of [
      ["platform", "acme", 200],
      ["platform", "platform", 400],
      ["acme", "platform", 200],
      ["acme", "acme", 400],
    ] as const) {
      const { email } = await world.signUp(taken, `${place}-${taken}@example.com`);
      const body = { email, name: "New", password: NEW_PASSWORD };
      const window = world.at(place, await world.operator());
      const answer = await window.post("/admin/create-user", body);
      expect([place, taken, answer.status]).toEqual([place, taken, status]);
      if (status === 200) expect(answer.data.user).toMatchObject({ tenantId: world.ids[place] });
    }
  });

  it("cannot, visiting a tenant, reach a user of another or of the platform", async () => {
    const visitor = world.at("acme", await world.operator());
    for (const place of ELSEWHERE) {
      const body = { userId: (await world.as("jane", place)).id };
      for (const path of ["/admin/impersonate-user", "/admin/ban-user"]) {
        const refused = await world.unchanged(() => visitor.post(path, body));
        expectRefused(refused, 404, "USER_NOT_FOUND");
      }
    }
  });

  it("an admin of a tenant manages the tenant's users, and cannot choose their tenant", async () => {
    const admin = await world.as("admin", "acme");
    const { id: userId } = await world.signUp("acme", "bob@example.com");
    const bob = async () => (await world.rowsIn("acme", "user")).find(({ id }) => id === userId);
    expect((await admin.post("/admin/ban-user", { userId })).status).toBe(200);
    expect(await bob()).toMatchObject({ banned: 1 });
    expect((await admin.post("/admin/unban-user", { userId })).status).toBe(200);
    const data = { tenantId: world.ids.globex };
    const body = { name: "New", email: "new@example.com", password: NEW_PASSWORD, data };
    await world.touchesOnly("acme", async () => {
      const created = await admin.post("/admin/create-user", body);
      expect(created.data).toMatchObject({ user: { tenantId: world.ids.acme } });
      await admin.post("/admin/update-user", { userId, data });
    });
    expect(await bob()).toBeDefined();
    const browser = world.at("acme", admin);
    expect((await browser.post("/admin/impersonate-user", { userId })).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ id: userId, tenantId: world.ids.acme });
    // As the admin plugin says: an hour.
    const { session } = (await browser.get<SessionAnswer>("/get-session")).data;
    expect(Date.parse(String(session.expiresAt)) - Date.now()).toBeLessThanOrEqual(3_600_000);
    expect((await browser.post("/admin/stop-impersonating")).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ id: admin.id });
  });
});

it("a token of no session leads an operator to no user", async () => {
  const world = await createWorld();
  const operator = await world.operator();
  await world.unchanged(async () => {
    for (const place of PLACES) {
      const revoke = { sessionToken: "none" };
      const answer = await world.at(place, operator).post("/admin/revoke-user-session", revoke);
      expect([place, answer.status]).toEqual([place, 200]);
    }
  });
});

// As in better-auth's own docs: ordinary users have permissions of the application's.
const ac = createAccessControl({ ...defaultStatements, project: ["create", "share"] } as const);
const roles = {
  user: ac.newRole({ project: ["create"] }),
  support: ac.newRole({ user: ["list"] }),
  auditor: ac.newRole({ session: ["list"] }),
  admin: ac.newRole({ project: ["create", "share"], ...adminAc.statements }),
};
const withRoles = () => admin({ ac, roles }) as unknown as BetterAuthPlugin;

it("R5: a role of the application visits if it is in adminRoles, and is signed out there if not", async () => {
  const adminRoles = ["admin", "support", "auditor"];
  const world = await createWorld({ plugins: [withRoles()], tenant: { adminRoles } });
  const { platform, acme } = await world.janes();
  const visit = world.at("globex", platform);
  expect(await world.whoIs(visit)).toBe(null);
  expect((await visit.get("/admin/list-users")).status).toBe(401);
  const body = { permissions: { project: ["create"] } };
  expect((await visit.post("/admin/has-permission", body)).status).toBe(401);
  const atAcme = async (role: string) => world.at("acme", await world.join("platform", role));
  const { data } = await (await atAcme("user,support")).get("/admin/list-users");
  expect(idsIn(data)).toEqual([acme.id]);
  const sessionsOf = { userId: acme.id };
  const audited = await (await atAcme("auditor")).post("/admin/list-user-sessions", sessionsOf);
  expect(JSON.stringify(audited.data)).toContain(acme.token);
  // A role that the application has no longer.
  expect((await (await atAcme("former")).get("/admin/list-users")).status).toBe(401);
  // What is about nobody but oneself is asked at home.
  expect((await (await atAcme("admin")).post("/admin/has-permission", body)).status).toBe(401);
});

describe("an operator's session that is prolonged", () => {
  afterEach(() => void vi.useRealTimers());

  const tenMinutesLater = () => vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 600_000 });

  it.each([
    ["platform", "storage"],
    ["acme", "storage"],
    ["acme", "database"],
  ] as const)("at %s stays the platform's, in the %s", async (place, store) => {
    const entries = new Map<string, string>();
    const session = { updateAge: 60, expiresIn: 1000 };
    const inStorage = store === "storage" && { secondaryStorage: createStorage({}, entries) };
    const world = await createWorld({ auth: { ...inStorage, session } });
    const operator = await world.operator();
    tenMinutesLater();
    expect((await world.at(place, operator).get("/admin/list-users")).status).toBe(200);
    // Past the old end, before the new one.
    tenMinutesLater();
    expect(await world.whoIs(operator)).not.toBe(null);
    expect([...entries.keys()].filter((key) => key.includes(world.ids.acme))).toEqual([]);
    const { person } = await world.signIn("platform", operator.email);
    expect((await person.post("/revoke-other-sessions")).status).toBe(200);
    expect(await world.whoIs(operator)).toBe(null);
    expect((await world.at("acme", operator).get("/admin/list-users")).status).toBe(401);
  });
});
