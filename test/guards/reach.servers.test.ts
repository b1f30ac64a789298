import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware, sessionMiddleware } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { mapStorage } from "../sessions/stores";
import { createOrdered } from "./ordered";
import {
  carrying,
  createReach,
  KINDS,
  type Kind,
  type Place,
  type Reach,
  type Role,
} from "./reach";

interface UserList {
  users: { id: string; email: string }[];
}

const everybody = ({ people }: Reach) =>
  Object.values(people).flatMap(({ user, admin }) => [user.id, admin.id]);
const idsIn = (data: unknown) =>
  ((data as UserList | null)?.users ?? []).map(({ id }) => id).toSorted();
const idsOf = ({ people }: Reach, place: Place) =>
  [people[place].user.id, people[place].admin.id].toSorted();

/** What an admin endpoint could be made to do to somebody. */
const HARM: [path: string, body: (reach: Reach) => Record<string, unknown>][] = [
  ["/admin/set-role", ({ people }) => ({ userId: people.platform.user.id, role: "admin" })],
  ["/admin/set-role", ({ people }) => ({ userId: people.b.user.id, role: "admin" })],
  ["/admin/ban-user", ({ people }) => ({ userId: people.platform.admin.id })],
  ["/admin/impersonate-user", ({ people }) => ({ userId: people.platform.admin.id })],
  ["/admin/impersonate-user", ({ people }) => ({ userId: people.b.user.id })],
  ["/admin/remove-user", ({ people }) => ({ userId: people.b.user.id })],
  [
    "/admin/set-user-password",
    ({ people }) => ({ userId: people.platform.admin.id, newPassword: "a brand new password" }),
  ],
  ["/admin/update-user", ({ people }) => ({ userId: people.b.user.id, data: { name: "Changed" } })],
  ["/admin/revoke-user-sessions", ({ people }) => ({ userId: people.platform.admin.id })],
  ["/admin/revoke-user-session", ({ people }) => ({ sessionToken: people.b.user.token })],
  ["/admin/list-user-sessions", ({ people }) => ({ userId: people.platform.admin.id })],
  ["/admin/list-user-sessions", ({ people }) => ({ userId: people.b.admin.id })],
];

/** Whose cookie and whose bearer token come in one request, from different places. */
const PAIRS: [cookie: [Place, Role], bearer: [Place, Role]][] = [
  [
    ["platform", "user"],
    ["a", "admin"],
  ],
  [
    ["platform", "admin"],
    ["a", "admin"],
  ],
  [
    ["platform", "admin"],
    ["a", "user"],
  ],
  [
    ["a", "admin"],
    ["platform", "user"],
  ],
  [
    ["b", "user"],
    ["a", "admin"],
  ],
];

describe.each(KINDS)("two credentials of different places in one request, by %s", (kind) => {
  const pairs = PAIRS.map(([cookie, token]) => [cookie.join(" "), token.join(" "), cookie, token]);

  it.each(pairs as [string, string, [Place, Role], [Place, Role]][])(
    "cookie of %s, token of %s: harms nobody and shows nobody of elsewhere",
    async (_, __, [cookieOf, cookieRole], [tokenOf, tokenRole]) => {
      const reach = await createReach(kind);
      const { people, at, dump } = reach;
      const caller = at("platform", people[cookieOf][cookieRole].browser);
      const both = carrying(people[tokenOf][tokenRole].token);
      const before = await dump();
      const list = await caller.get<UserList>("/admin/list-users", both);
      // Who holds a token of A's admin sees A's people anyway: by the token alone.
      const known = tokenOf === "a" && tokenRole === "admin" ? idsOf(reach, "a") : [];
      expect(idsIn(list.data).filter((id) => !known.includes(id))).toEqual([]);
      for (const [path, body] of HARM) {
        const answer = await at("platform", people[cookieOf][cookieRole].browser).post(
          path,
          body(reach),
          both,
        );
        expect(JSON.stringify(answer.data), path).not.toMatch(/@example\.com|"token"/);
        expect(await dump(), path).toEqual(before);
      }
    },
  );

  it.each(pairs as [string, string, [Place, Role], [Place, Role]][])(
    "cookie of %s, token of %s: together they are no credential",
    async (_, __, [cookieOf, cookieRole], [tokenOf, tokenRole]) => {
      const { people, at } = await createReach(kind);
      const both = carrying(people[tokenOf][tokenRole].token);
      const { browser } = people[cookieOf][cookieRole];
      const list = await at("platform", browser).get("/admin/list-users", both);
      expect([401, 403]).toContain(list.status);
    },
  );

  it.each(pairs as [string, string, [Place, Role], [Place, Role]][])(
    "cookie of %s, token of %s: manages no tenants",
    async (_, __, [cookieOf, cookieRole], [tokenOf, tokenRole]) => {
      const { people, at, dump } = await createReach(kind);
      const caller = () => at("platform", people[cookieOf][cookieRole].browser);
      const both = carrying(people[tokenOf][tokenRole].token);
      const before = await dump();
      const list = await caller().get("/tenant/list", both);
      expect([401, 403]).toContain(list.status);
      const created = await caller().post("/tenant/create", { name: "x", slug: "xx" }, both);
      expect([401, 403]).toContain(created.status);
      expect(await dump()).toEqual(before);
    },
  );

  it("at A, a stranger's cookie beside the token of A's admin widens nothing", async () => {
    const reach = await createReach(kind);
    const { people, at, dump } = reach;
    for (const cookieOf of [people.platform.user, people.platform.admin, people.b.admin]) {
      const caller = () => at("a", cookieOf.browser);
      const both = carrying(people.a.admin.token);
      const before = await dump();
      const list = await caller().get<UserList>("/admin/list-users", both);
      const strangers = everybody(reach).filter((id) => !idsOf(reach, "a").includes(id));
      expect(idsIn(list.data).filter((id) => strangers.includes(id))).toEqual([]);
      for (const [path, body] of HARM) {
        const answer = await caller().post(path, body(reach), both);
        expect(JSON.stringify(answer.data), path).not.toMatch(/@example\.com|"token"/);
        expect(await dump(), path).toEqual(before);
      }
    }
  });

  it("control: two credentials of one place are the one that better-auth takes", async () => {
    const reach = await createReach(kind);
    const { people, at } = reach;
    const operator = carrying(people.platform.admin.token);
    const list = await at("platform", people.platform.user.browser).get<UserList>(
      "/admin/list-users",
      operator,
    );
    expect(idsIn(list.data)).toEqual(everybody(reach).toSorted());
    const ordinary = carrying(people.platform.user.token);
    const refused = await at("platform", people.platform.admin.browser).get(
      "/admin/list-users",
      ordinary,
    );
    expect(refused.status).toBe(403);
  });

  it("an operator sees all by token alone as well", async () => {
    const reach = await createReach(kind);
    const operator = carrying(reach.people.platform.admin.token);
    const all = await reach.at("platform").get<UserList>("/admin/list-users", operator);
    expect(idsIn(all.data)).toEqual(everybody(reach).toSorted());
  });

  it("control: each credential alone does what it may", async () => {
    const reach = await createReach(kind);
    const { people, at } = reach;
    const operator = carrying(people.platform.admin.token);
    const all = await at("platform", people.platform.admin.browser).get("/admin/list-users");
    expect(idsIn(all.data)).toEqual(everybody(reach).toSorted());
    expect((await at("platform").get("/tenant/list", operator)).status).toBe(200);
    const visit = await at("a").get<UserList>("/admin/list-users", operator);
    expect(idsIn(visit.data)).toEqual(idsOf(reach, "a"));
    const own = await at("a").get<UserList>("/admin/list-users", carrying(people.a.admin.token));
    expect(idsIn(own.data)).toEqual(idsOf(reach, "a"));
  });
});

const STORES: [name: string, storage: boolean, both: boolean][] = [
  ["the database", false, false],
  ["secondary storage", true, false],
  ["both", true, true],
];

describe.each(KINDS)("an admin of a tenant, by %s", (kind) => {
  const stored = (storage: boolean, both: boolean) =>
    storage
      ? { secondaryStorage: mapStorage().storage, session: { storeSessionInDatabase: both } }
      : {};

  it.each(STORES)(
    "sees and ends no session of the operator or of B, sessions in %s",
    async (_, storage, both) => {
      const reach = await createReach(kind, { auth: stored(storage, both) });
      const { people, at } = reach;
      const { token } = people.a.admin;
      // Named and, where there are no hosts, by the session alone; by cookie and by token.
      const ways = kind === "names" ? (["a", "platform"] as const) : (["a"] as const);
      for (const place of ways) {
        for (const caller of [
          () => ({ by: at(place, people.a.admin.browser), options: {} }),
          () => ({ by: at(place), options: carrying(token) }),
        ]) {
          for (const victim of [people.platform.admin, people.platform.user, people.b.user]) {
            const userId = victim.id;
            for (const path of ["/admin/list-user-sessions", "/admin/revoke-user-sessions"]) {
              const { by, options } = caller();
              const answer = await by.post(path, { userId }, options);
              expect(JSON.stringify(answer.data), path).not.toContain(victim.token);
            }
            const { by, options } = caller();
            await by.post("/admin/revoke-user-session", { sessionToken: victim.token }, options);
          }
        }
      }
      for (const home of ["platform", "b"] as const) {
        const alive = await at(home, people[home].user.browser).get("/get-session");
        expect(alive.data, home).toMatchObject({ user: { id: people[home].user.id } });
      }
    },
  );

  it.each(STORES)(
    "control: sees the sessions of its own people, in %s",
    async (_, storage, both) => {
      const { people, at } = await createReach(kind, { auth: stored(storage, both) });
      const body = { userId: people.a.user.id };
      const { data } = await at("a", people.a.admin.browser).post(
        "/admin/list-user-sessions",
        body,
      );
      expect(JSON.stringify(data)).toContain(people.a.user.token);
    },
  );

  it.each(STORES)(
    "control: an operator visits, and sees those sessions, in %s",
    async (_, storage, both) => {
      const { people, at } = await createReach(kind, { auth: stored(storage, both) });
      const body = { userId: people.a.user.id };
      for (const place of ["a", "platform"] as const) {
        const caller = at(place, people.platform.admin.browser);
        const { data, status } = await caller.post("/admin/list-user-sessions", body);
        expect([place, status]).toEqual([place, 200]);
        expect(JSON.stringify(data), place).toContain(people.a.user.token);
      }
    },
  );
});

/** An endpoint of the application's own that shows whoever the border lets it see. */
const showing = (path: `/${string}`) =>
  createAuthEndpoint(path, { method: "GET", use: [sessionMiddleware] }, async (ctx) =>
    ctx.json({ users: await ctx.context.adapter.findMany<{ id: string }>({ model: "user" }) }),
  );

const backOffice = (id: string): BetterAuthPlugin => ({
  id,
  endpoints: { everyone: showing("/admin/everyone"), people: showing("/back-office/people") },
});

describe.each(KINDS)("endpoints of the application's own under /admin, by %s", (kind) => {
  it.each(["admin", "back-office"])("a plugin called %s gets no reach", async (id) => {
    const reach = await createReach(kind, { plugins: [backOffice(id)] });
    const { people, at } = reach;
    for (const role of ["user", "admin"] as const) {
      for (const path of ["/admin/everyone", "/back-office/people"]) {
        const platform = await at("platform", people.platform[role].browser).get(path);
        expect(idsIn(platform.data), `${role} ${path}`).toEqual(idsOf(reach, "platform"));
        const tenant = await at("a", people.a[role].browser).get(path);
        expect(idsIn(tenant.data), `${role} ${path}`).toEqual(idsOf(reach, "a"));
        const visitor = await at("a", people.platform[role].browser).get(path);
        expect([visitor.status, idsIn(visitor.data)], `${role} ${path}`).toEqual([401, []]);
      }
    }
  });
});

describe("a plugin of the application's own in place of better-auth's admin plugin", () => {
  it("gets no reach by its name and its paths", async () => {
    const plugin = { id: "admin", endpoints: { listUsers: showing("/admin/list-users") } };
    const instance = await createOrdered("first", [plugin]);
    const { id } = await instance.createTenant("aa");
    const person = { name: "X", password: "correct horse battery" };
    await instance
      .browser({ "x-tenant-id": id })
      .post("/sign-up/email", { ...person, email: "a@example.com" });
    const platform = instance.browser();
    await platform.post("/sign-up/email", { ...person, email: "p@example.com" });
    const { data } = await platform.get<UserList>("/admin/list-users");
    expect(data.users.map(({ email }) => email)).toEqual(["p@example.com"]);
  });
});

// By hosts alone: where nothing names a tenant, a call from a hook does not come back (root 12).
describe.each(["hosts"] as const)("calls from inside a request, by %s", (kind) => {
  /** Calls whatever a test wants while a request to some path is on its way. */
  function nesting(path: string) {
    const nested: { call?: (headers: Headers) => Promise<unknown>; answers: unknown[] } = {
      answers: [],
    };
    const handler = createAuthMiddleware(async ({ headers }) => {
      if (headers) nested.answers.push(await nested.call?.(headers));
    });
    const matcher = (ctx: { path?: string }) => ctx.path === path;
    const plugin: BetterAuthPlugin = {
      id: "nesting",
      hooks: { before: [{ matcher, handler }], after: [{ matcher, handler }] },
    };
    return { plugin, nested };
  }

  type Api = Record<string, (input: { headers: Headers }) => Promise<unknown>>;

  it("what an admin endpoint's hooks call gets no reach of an operator's", async () => {
    const { plugin, nested } = nesting("/admin/list-users");
    const reach = await createReach(kind, { plugins: [plugin, backOffice("back-office")] });
    const { people, at, auth } = reach;
    nested.call = (headers) =>
      (auth.api as unknown as Api).people?.({ headers }) as Promise<unknown>;
    const { data } = await at("platform", people.platform.admin.browser).get("/admin/list-users");
    // Control: the request itself has it.
    expect(idsIn(data)).toEqual(everybody(reach).toSorted());
    expect(nested.answers.map(idsIn)).toEqual([idsOf(reach, "platform"), idsOf(reach, "platform")]);
  });

  it("an admin endpoint that is called from elsewhere in a request gets none", async () => {
    const { plugin, nested } = nesting("/list-sessions");
    const reach = await createReach(kind, { plugins: [plugin] });
    const { people, at, auth } = reach;
    const api = auth.api as unknown as {
      listUsers: (input: { headers: Headers; query: object }) => Promise<unknown>;
    };
    nested.call = (headers) => api.listUsers({ headers, query: {} });
    await at("platform", people.platform.admin.browser).get("/list-sessions");
    expect(nested.answers.map(idsIn)).toEqual([idsOf(reach, "platform"), idsOf(reach, "platform")]);
  });

  it("control: code of the server's own that calls it with an operator's headers has it", async () => {
    const reach = await createReach(kind);
    const { people, auth } = reach;
    const api = auth.api as unknown as {
      listUsers: (input: { headers: Headers; query: object }) => Promise<unknown>;
    };
    const headers = new Headers({
      cookie: people.platform.admin.browser.cookieHeader(),
      host: "example.com",
    });
    expect(idsIn(await api.listUsers({ headers, query: {} }))).toEqual(everybody(reach).toSorted());
  });
});

/** An operator who has become somebody else. */
async function impersonate(reach: Reach, place: Place, role: Role, where: Place = "platform") {
  const { people, at } = reach;
  const operator = at(where, people.platform.admin.browser);
  const answer = await operator.post("/admin/impersonate-user", { userId: people[place][role].id });
  expect(answer.status, JSON.stringify(answer.data)).toBe(200);
  return operator.browser;
}

describe.each(KINDS)("impersonation, by %s", (kind) => {
  const STORAGE = [
    ["the database", () => ({})],
    ["secondary storage", () => ({ secondaryStorage: mapStorage().storage })],
  ] as const;

  it.each(STORAGE)(
    "as A's admin one is A's admin and no more, sessions in %s",
    async (_, storage) => {
      const reach = await createReach(kind, { auth: storage() });
      const { people, at } = reach;
      const browser = await impersonate(reach, "a", "admin", "a");
      const list = await at("a", browser).get<UserList>("/admin/list-users");
      expect(idsIn(list.data)).toEqual(idsOf(reach, "a"));
      for (const victim of [people.platform.admin, people.platform.user, people.b.user]) {
        const body = { userId: victim.id };
        for (const path of ["/admin/list-user-sessions", "/admin/revoke-user-sessions"]) {
          const answer = await at("a", browser).post(path, body);
          expect(JSON.stringify(answer.data), path).not.toContain(victim.token);
        }
        const got = await at("a", browser).get("/admin/get-user", { query: { id: victim.id } });
        expect(got.status).toBe(404);
      }
      for (const home of ["platform", "b"] as const) {
        const alive = await at(home, people[home].user.browser).get("/get-session");
        expect(alive.data).toMatchObject({ user: { id: people[home].user.id } });
      }
    },
  );

  it.each(STORAGE)(
    "an operator becomes a user of A and oneself again, sessions in %s",
    async (_, storage) => {
      const reach = await createReach(kind, { auth: storage() });
      const { people, at } = reach;
      const browser = await impersonate(reach, "a", "user");
      const now = await at("a", browser).get("/get-session");
      expect(now.data).toMatchObject({ user: { id: people.a.user.id } });
      const back = at("a", browser);
      expect((await back.post("/admin/stop-impersonating")).status).toBe(200);
      const again = await at("platform", back.browser).get("/get-session");
      expect(again.data).toMatchObject({ user: { id: people.platform.admin.id } });
    },
  );

  it("stop-impersonating is nothing to those who impersonate nobody", async () => {
    const { people, at, dump } = await createReach(kind);
    const before = await dump();
    for (const [place, person] of [
      ["a", people.a.admin],
      ["platform", people.platform.admin],
    ] as const) {
      const answer = await at(place, person.browser).post("/admin/stop-impersonating");
      expect(answer.status).toBe(400);
    }
    const elsewhere = await at("b", people.a.admin.browser).post("/admin/stop-impersonating");
    expect(elsewhere.status).toBe(401);
    expect(await dump()).toEqual(before);
  });

  const CALLS: [method: "get" | "post", path: string, body?: (r: Reach) => object][] = [
    ["get", "/tenant/list"],
    ["post", "/tenant/create", () => ({ name: "x", slug: "xx" })],
    ["post", "/tenant/update", ({ ids }) => ({ tenantId: ids.a, name: "Changed" })],
    ["post", "/tenant/delete", ({ ids }) => ({ tenantId: ids.b })],
    [
      "post",
      "/tenant/oauth-config/register",
      ({ ids }) => ({
        tenantId: ids.a,
        providerId: "google",
        clientId: "i",
        clientSecret: "s-s-s",
      }),
    ],
  ];

  async function expectManagesNothing(reach: Reach, browser: Parameters<Reach["at"]>[1]) {
    const before = await reach.dump();
    for (const [method, path, body] of CALLS) {
      const caller = reach.at("platform", browser);
      const answer =
        method === "get" ? await caller.get(path) : await caller.post(path, body?.(reach));
      expect([401, 403], path).toContain(answer.status);
    }
    expect(await reach.dump()).toEqual(before);
  }

  it("an impersonated operator manages no tenants", async () => {
    const reach = await createReach(kind);
    const { people, at, database } = reach;
    await database.query(`update "user" set role = 'admin' where id = ?`, [
      people.platform.user.id,
    ]);
    // Control: as themselves both do.
    for (const { browser } of Object.values(people.platform)) {
      expect((await at("platform", browser).get("/tenant/list")).status).toBe(200);
    }
    await expectManagesNothing(reach, await impersonate(reach, "platform", "user"));
  });

  it("nor does somebody impersonated who may by their id", async () => {
    const adminUserIds: string[] = [];
    const reach = await createReach(kind, { tenant: { adminUserIds } });
    adminUserIds.push(reach.people.platform.user.id);
    const browser = reach.people.platform.user.browser;
    expect((await reach.at("platform", browser).get("/tenant/list")).status).toBe(200);
    await expectManagesNothing(reach, await impersonate(reach, "platform", "user"));
  });

  it("nor where canManageTenants would let everybody in who is signed in", async () => {
    const canManageTenants: NonNullable<
      NonNullable<Parameters<typeof createReach>[1]>["tenant"]
    >["canManageTenants"] = (_, { session }) => session !== null;
    const reach = await createReach(kind, { tenant: { canManageTenants } });
    const { people, at } = reach;
    const control = at("platform", people.platform.user.browser);
    expect((await control.get("/tenant/list")).status).toBe(200);
    await expectManagesNothing(reach, await impersonate(reach, "platform", "user"));
  });

  it("nor at A, where canManageTenants lets a tenant's own admins set up its providers", async () => {
    const reach = await createReach(kind, {
      tenant: {
        canManageTenants: (_, { tenantId, session }) =>
          session?.user.role === "admin" && session.session.tenantId === tenantId,
      },
    });
    const { people, at, ids, dump } = reach;
    const list = `/tenant/oauth-config/list?tenantId=${ids.a}`;
    expect((await at("a", people.a.admin.browser).get(list)).status).toBe(200);
    const browser = await impersonate(reach, "a", "admin", "a");
    const before = await dump();
    const body = { tenantId: ids.a, providerId: "google", clientId: "i", clientSecret: "s-s-s" };
    const registered = await at("a", browser).post("/tenant/oauth-config/register", body);
    expect([401, 403]).toContain(registered.status);
    expect([401, 403]).toContain((await at("a", browser).get(list)).status);
    expect(await dump()).toEqual(before);
  });
});

/** Database hooks that note which tenant they run in. */
function listening() {
  const heard: [what: string, tenantId: string | null][] = [];
  const note = (what: string) => async () => void heard.push([what, getTenantId()]);
  const pair = (what: string) => ({ before: note(what), after: note(what) });
  const databaseHooks = {
    user: { create: pair("create user"), update: pair("update user"), delete: pair("delete user") },
    session: { create: pair("create session"), delete: pair("delete session") },
    account: { update: pair("update account") },
  };
  return { heard, databaseHooks };
}

describe.each(KINDS)("getTenantId() in database hooks while an operator acts, by %s", (kind) => {
  const ACTS: [path: string, body: (userId: string) => Record<string, unknown>, what: string][] = [
    ["/admin/update-user", (userId) => ({ userId, data: { name: "Changed" } }), "update user"],
    ["/admin/set-role", (userId) => ({ userId, role: "user" }), "update user"],
    ["/admin/ban-user", (userId) => ({ userId }), "update user"],
    ["/admin/unban-user", (userId) => ({ userId }), "update user"],
    [
      "/admin/set-user-password",
      (userId) => ({ userId, newPassword: "a brand new password" }),
      "update account",
    ],
    ["/admin/impersonate-user", (userId) => ({ userId }), "create session"],
    ["/admin/revoke-user-sessions", (userId) => ({ userId }), "delete session"],
    ["/admin/remove-user", (userId) => ({ userId }), "delete user"],
  ];
  const WAYS = [
    ["A's user, A not named", "a", "platform"],
    ["A's user, A named", "a", "a"],
    ["control: a user of the platform", "platform", "platform"],
  ] as const;
  const cases = ACTS.flatMap(([path, body, what]) =>
    WAYS.map(([way, of, where]) => [path, way, of, where, body, what] as const),
  );

  it.each(cases)("%s, about %s", async (path, _, of, where, body, what) => {
    const { heard, databaseHooks } = listening();
    const { people, at, ids } = await createReach(kind, { auth: { databaseHooks } });
    heard.length = 0;
    const operator = at(where, people.platform.admin.browser);
    const { status } = await operator.post(path, body(people[of].user.id));
    expect(status).toBe(200);
    const about = heard.filter(([heardOf]) => heardOf === what);
    expect(about.length).toBeGreaterThan(0);
    expect([...new Set(about.map(([, tenantId]) => tenantId))]).toEqual([ids[of]]);
  });
});

describe.each(KINDS)("an operator creates a user of the platform, by %s", (kind) => {
  it("whose e-mail somebody in a tenant has already", async () => {
    const { people, at, ids } = await createReach(kind);
    const body = { name: "New", email: people.a.user.email, password: "a brand new password" };
    const operator = at("platform", people.platform.admin.browser);
    const { data, status } = await operator.post("/admin/create-user", body);
    expect(status, JSON.stringify(data)).toBe(200);
    expect(data).toMatchObject({ user: { email: body.email, tenantId: ids.platform } });
  });

  it("control: and is refused where somebody on the platform has it", async () => {
    const { people, at } = await createReach(kind as Kind);
    const body = { name: "New", email: people.platform.user.email, password: "a new password" };
    const operator = at("platform", people.platform.admin.browser);
    expect((await operator.post("/admin/create-user", body)).status).toBe(400);
  });
});
