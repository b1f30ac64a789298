import type { BetterAuthPlugin } from "better-auth";
import {
  APIError,
  createAuthEndpoint,
  createAuthMiddleware,
  sessionMiddleware,
} from "better-auth/api";
import { admin, bearer } from "better-auth/plugins";
import { createAccessControl } from "better-auth/plugins/access";
import { adminAc, defaultStatements } from "better-auth/plugins/admin/access";
import { afterEach, describe, expect, it, vi } from "vitest";
import { getTenantId, type TenantAuthOptions } from "../../src/index";
import type { Browser } from "../support/browser";
import { combine } from "../support/matrix";
import { createStorage, type Store } from "../support/stores";
import {
  createWorld,
  EMAIL,
  type Hosts,
  type Person,
  PLACES,
  type Place,
  SUBDOMAINS,
  shareWorld,
  type World,
  type WorldOptions,
} from "../support/world";

/** How requests say where they are: by name alone, or by hosts, of which the platform has one. */
const KINDS: [kind: string, hosts: Hosts | undefined][] = [
  ["names", undefined],
  ["hosts", SUBDOMAINS],
];

/** Every row of a table by every kind; a sample has each row once, and both kinds. */
const byKinds = <Row extends unknown[]>(rows: Row[]) =>
  combine(rows, KINDS).map(([row, [kind, hosts]]): [string, ...Row, Hosts | undefined] => [
    kind,
    ...row,
    hosts,
  ]);

const reaching = (hosts: Hosts | undefined, more: WorldOptions = {}): WorldOptions => ({
  plugins: [bearer(), admin({ allowImpersonatingAdmins: true })],
  ...(hosts && { hosts }),
  ...more,
});

const ROLES = ["jane", "admin"] as const;
type Role = (typeof ROLES)[number];
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

interface UserList {
  users: { id: string }[];
}

const idsIn = (data: unknown) =>
  ((data as UserList | null)?.users ?? []).map(({ id }) => id).toSorted();
const idsOf = (people: People, ...places: Place[]) =>
  places.flatMap((place) => [people[place].jane.id, people[place].admin.id]).toSorted();
const carrying = ({ token }: Person) => ({ headers: { authorization: `Bearer ${token}` } });
const NEW_PASSWORD = "a brand new password";
const SHOWS_SOMEBODY = /@example\.com|"token"/;

/** What an admin endpoint could be made to do to somebody. */
const HARM: [path: string, body: (people: People) => object][] = [
  ["set-role", ({ platform }) => ({ userId: platform.jane.id, role: "admin" })],
  ["set-role", ({ globex }) => ({ userId: globex.jane.id, role: "admin" })],
  ["ban-user", ({ platform }) => ({ userId: platform.admin.id })],
  ["impersonate-user", ({ platform }) => ({ userId: platform.admin.id })],
  ["impersonate-user", ({ globex }) => ({ userId: globex.jane.id })],
  ["remove-user", ({ globex }) => ({ userId: globex.jane.id })],
  [
    "set-user-password",
    ({ platform }) => ({ userId: platform.admin.id, newPassword: NEW_PASSWORD }),
  ],
  ["update-user", ({ globex }) => ({ userId: globex.jane.id, data: { name: "Changed" } })],
  ["revoke-user-sessions", ({ platform }) => ({ userId: platform.admin.id })],
  ["revoke-user-session", ({ globex }) => ({ sessionToken: globex.jane.token })],
  ["list-user-sessions", ({ platform }) => ({ userId: platform.admin.id })],
  ["list-user-sessions", ({ globex }) => ({ userId: globex.admin.id })],
];

describe.each(KINDS)("two credentials of different places in one request, by %s", (_, hosts) => {
  const world = shareWorld(reaching(hosts));

  /** Nothing of all that shows or changes anybody. */
  async function expectNoHarm(people: People, caller: () => Browser, both: object) {
    await world.unchanged(async () => {
      for (const [path, body] of HARM) {
        const { data } = await caller().post(`/admin/${path}`, body(people), both);
        expect(JSON.stringify(data), path).not.toMatch(SHOWS_SOMEBODY);
      }
    });
  }

  it.each<[Role, Place, Role, Place]>([
    ["jane", "platform", "admin", "acme"],
    ["admin", "platform", "admin", "acme"],
    ["admin", "platform", "jane", "acme"],
    ["admin", "acme", "jane", "platform"],
    ["jane", "globex", "admin", "acme"],
  ])(
    "cookie of %s at %s, token of %s at %s: are no credential, harm nobody and manage nothing",
    async (cookieOf, cookieAt, tokenOf, tokenAt) => {
      const people = await meet(world);
      const both = carrying(people[tokenAt][tokenOf]);
      const caller = () => world.at("platform", people[cookieAt][cookieOf]);
      await expectNoHarm(people, caller, both);
      await world.unchanged(async () => {
        const answers = [
          await caller().get("/admin/list-users", both),
          await caller().get("/tenant/list", both),
          await caller().post("/tenant/create", { name: "x", slug: "xx" }, both),
        ];
        for (const { status } of answers) expect([401, 403]).toContain(status);
      });
    },
  );

  it("at Acme, a stranger's cookie beside the token of Acme's admin widens nothing", async () => {
    const people = await meet(world);
    const both = carrying(people.acme.admin);
    const strangers = idsOf(people, "globex", "platform");
    for (const stranger of [people.platform.jane, people.platform.admin, people.globex.admin]) {
      const caller = () => world.at("acme", stranger);
      const { data } = await caller().get<UserList>("/admin/list-users", both);
      expect(idsIn(data).filter((id) => strangers.includes(id))).toEqual([]);
      await expectNoHarm(people, caller, both);
    }
  });

  it("control: each credential alone, or two of one place, does what it may", async () => {
    const people = await meet(world);
    const { jane, admin: operator } = people.platform;
    const list = (at: Browser, by?: Person) => at.get("/admin/list-users", by && carrying(by));
    const [acme, platform] = [world.at("acme"), world.at("platform")];
    const everybody = idsOf(people, ...PLACES);
    expect(idsIn((await list(platform, operator)).data)).toEqual(everybody);
    expect(idsIn((await list(operator)).data)).toEqual(everybody);
    expect((await platform.get("/tenant/list", carrying(operator))).status).toBe(200);
    for (const admin of [operator, people.acme.admin]) {
      expect(idsIn((await list(acme, admin)).data)).toEqual(idsOf(people, "acme"));
    }
    // better-auth takes the token.
    expect(idsIn((await list(world.at("platform", jane), operator)).data)).toEqual(everybody);
    expect((await list(world.at("platform", operator), jane)).status).toBe(403);
  });
});

const storage = () => createStorage();
const STORES: [string, Store][] = [
  ["the database", { name: "the database" }],
  ["a storage", { name: "a storage", storage }],
  ["both", { name: "both", storage, session: { storeSessionInDatabase: true } }],
];

/** An operator who has become somebody else. */
async function impersonate(world: World, { id }: Person, where: Place = "platform") {
  const operator = world.at(where, await world.operator());
  const answer = await operator.post("/admin/impersonate-user", { userId: id });
  expect(answer.status, JSON.stringify(answer.data)).toBe(200);
  return operator;
}

describe.each(byKinds(STORES))("by %s, sessions in %s", (_, __, store, hosts) => {
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
    const victims = [people.platform.admin, people.platform.jane, people.globex.jane];
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
        const body = { userId: id, sessionToken: token };
        for (const path of ["list-user-sessions", "revoke-user-sessions", "revoke-user-session"]) {
          const answer = await caller.post(`/admin/${path}`, body, by);
          expect(JSON.stringify(answer.data), path).not.toContain(token);
        }
        const got = await caller.get("/admin/get-user", { ...by, query: { id } });
        expect(got.status).toBe(404);
      }
    }
    for (const victim of victims) {
      expect(await world.whoIs(victim)).toMatchObject({ id: victim.id });
    }
  });

  it("an operator becomes a user of Acme and oneself again", async () => {
    const { acme, platform } = await meet(world);
    const there = world.at("acme", await impersonate(world, acme.jane));
    expect(await world.whoIs(there)).toMatchObject({ id: acme.jane.id });
    expect((await there.post("/admin/stop-impersonating")).status).toBe(200);
    expect(await world.whoIs(there, "platform")).toMatchObject({ id: platform.admin.id });
  });

  it("stop-impersonating is nothing to those who impersonate nobody", async () => {
    const { acme, platform } = await meet(world);
    await world.unchanged(async () => {
      for (const [place, person, status] of [
        ["acme", acme.admin, 400],
        ["platform", platform.admin, 400],
        ["globex", acme.admin, 401],
      ] as const) {
        const answer = await world.at(place, person).post("/admin/stop-impersonating");
        expect(answer.status).toBe(status);
      }
    });
  });
});

/** To which a test adds somebody once they have an id. */
const adminUserIds: string[] = [];
const ownTenant: TenantAuthOptions["canManageTenants"] = (_, { tenantId, session }) =>
  session?.user.role === "admin" && session.session.tenantId === tenantId;

describe.each(
  byKinds<[string, "acme" | "platform", TenantAuthOptions]>([
    ["by their role", "platform", {}],
    ["by their id", "platform", { adminUserIds }],
    ["as everybody", "platform", { canManageTenants: (_, { session }) => session !== null }],
    ["as an admin of Acme's", "acme", { canManageTenants: ownTenant }],
  ]),
)("by %s, somebody who manages tenants %s", (_, how, place, tenant, hosts) => {
  it("manages none while they are impersonated", async () => {
    const world = await createWorld(reaching(hosts, { tenant }));
    const person = (await meet(world))[place][place === "acme" ? "admin" : "jane"];
    if (how === "by their role") await world.setRole(person.id, "admin");
    adminUserIds.push(person.id);
    const tenantId = world.ids.acme;
    const config = { tenantId, providerId: "google", clientId: "i", clientSecret: "s-s-s" };
    const list = `/tenant/oauth-config/list?tenantId=${tenantId}`;
    expect((await person.get(list)).status).toBe(200);
    const impersonator = await impersonate(world, person, place);
    await world.unchanged(async () => {
      for (const { status } of [
        await impersonator.get(list),
        await impersonator.get("/tenant/list"),
        await impersonator.post("/tenant/create", { name: "x", slug: "xx" }),
        await impersonator.post("/tenant/update", { tenantId, name: "Changed" }),
        await impersonator.post("/tenant/delete", { tenantId }),
        await impersonator.post("/tenant/oauth-config/register", config),
      ]) {
        expect([401, 403]).toContain(status);
      }
    });
  });
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

describe("endpoints of the application's own", () => {
  it.each(byKinds<[string]>([["admin"], ["back-office"]]))(
    "by %s: a plugin called %s gets no reach under /admin",
    async (_, id, hosts) => {
      const arrange: WorldOptions["arrange"] = (ours, others) => [ours, backOffice(id), ...others];
      const world = await createWorld(reaching(hosts, { arrange }));
      const people = await meet(world);
      for (const role of ROLES) {
        for (const path of ["/admin/everyone", "/back-office/people"]) {
          const platform = await people.platform[role].get(path);
          expect(idsIn(platform.data), `${role} ${path}`).toEqual(idsOf(people, "platform"));
          const tenant = await people.acme[role].get(path);
          expect(idsIn(tenant.data), `${role} ${path}`).toEqual(idsOf(people, "acme"));
          const visitor = await world.at("acme", people.platform[role]).get(path);
          expect([visitor.status, idsIn(visitor.data)], `${role} ${path}`).toEqual([401, []]);
        }
      }
    },
  );

  it("in place of better-auth's admin plugin have no reach by its name and its paths", async () => {
    const plugin = { id: "admin", endpoints: { listUsers: showing("/admin/list-users") } };
    const world = await createWorld({ plugins: [plugin] });
    const { platform } = await world.janes();
    const { data } = await platform.get<UserList>("/admin/list-users");
    expect(idsIn(data)).toEqual([platform.id]);
  });
});

type Api = Record<string, (input: { headers: Headers; query?: object }) => Promise<unknown>>;

// By hosts alone: where nothing names a tenant, a call from a hook does not come back (root 12).
describe("calls from inside a request, by hosts", () => {
  /** Calls whatever a test wants while a request to some path is on its way. */
  const nested = {
    path: "",
    call: async (_: Headers): Promise<unknown> => undefined,
    seen: [] as unknown[],
  };
  const handler = createAuthMiddleware(async ({ headers }) => {
    if (headers) nested.seen.push(await nested.call(headers));
  });
  const matcher = (ctx: { path?: string }) => ctx.path === nested.path;
  const hooks = { before: [{ matcher, handler }], after: [{ matcher, handler }] };
  const plugins = [{ id: "nesting", hooks }, backOffice("back-office"), bearer(), admin()];
  const world = shareWorld({ hosts: SUBDOMAINS, plugins });
  const api = () => world.auth.api as unknown as Api;
  const listUsers = (headers: Headers) => api().listUsers?.({ headers, query: {} });

  it.each<[string, string, (headers: Headers) => Promise<unknown> | undefined]>([
    [
      "what an admin endpoint's hooks call",
      "/admin/list-users",
      (headers) => api().people?.({ headers }),
    ],
    ["an admin endpoint that is called from elsewhere in a request", "/list-sessions", listUsers],
  ])("%s has no reach of an operator's", async (_, path, call) => {
    const people = await meet(world);
    Object.assign(nested, { path, call, seen: [] });
    const { data } = await people.platform.admin.get(path);
    nested.path = "";
    // Control: the request itself has it.
    if (path === "/admin/list-users") expect(idsIn(data)).toEqual(idsOf(people, ...PLACES));
    const own = idsOf(people, "platform");
    expect(nested.seen.map(idsIn)).toEqual([own, own]);
  });

  it("control: code of the server's own that calls it with an operator's headers has it", async () => {
    const people = await meet(world);
    const cookie = people.platform.admin.cookieHeader();
    const headers = new Headers({ cookie, host: SUBDOMAINS.names.platform });
    expect(idsIn(await listUsers(headers))).toEqual(idsOf(people, ...PLACES));
  });
});

// An operator's reach is for the endpoint: a hook that says it runs on the platform sees that.
it.each(["/get-session", "/admin/list-users"])(
  "R3: an after hook of %s finds the platform's user by e-mail, for an operator too",
  async (path) => {
    const seen: unknown[] = [];
    const after = createAuthMiddleware(async (ctx) => {
      if (ctx.path !== path) return;
      const found = await ctx.context.internalAdapter.findUserByEmail(EMAIL);
      seen.push({ in: getTenantId(), user: found?.user });
    });
    const world = await createWorld({ auth: { hooks: { after } } });
    const operator = await world.operator();
    await world.janes();
    seen.length = 0;
    expect((await operator.get(path)).status).toBe(200);
    expect(seen).toEqual([{ in: null, user: expect.objectContaining({ tenantId: null }) }]);
  },
);

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

describe.each(KINDS)("an operator who acts, by %s", (_, hosts) => {
  const { heard, databaseHooks } = listening();
  const world = shareWorld(reaching(hosts, { auth: { databaseHooks } }));

  const ACTS: [path: string, what: string, body?: object][] = [
    ["update-user", "update user", { data: { name: "Changed" } }],
    ["set-role", "update user", { role: "user" }],
    ["ban-user", "update user"],
    ["unban-user", "update user"],
    ["set-user-password", "update account", { newPassword: NEW_PASSWORD }],
    ["impersonate-user", "create session"],
    ["revoke-user-sessions", "delete session"],
    ["remove-user", "delete user"],
  ];

  it.each(ACTS)("%s: database hooks run in the tenant of the user", async (path, what, body) => {
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
      const about = heard.filter(([heardOf]) => heardOf === what);
      expect(about.length).toBeGreaterThan(0);
      expect([...new Set(about.map(([, tenantId]) => tenantId))]).toEqual([world.ids[of]]);
    }
  });

  it("creates a user of the platform whose e-mail somebody in a tenant has already, once", async () => {
    const operator = await world.operator();
    const { email } = await world.signUp("acme", "in-a-tenant@example.com");
    const body = { name: "New", email, password: NEW_PASSWORD };
    const { data, status } = await operator.post("/admin/create-user", body);
    expect(status, JSON.stringify(data)).toBe(200);
    expect(data).toMatchObject({ user: { email, tenantId: null } });
    expect((await operator.post("/admin/create-user", body)).status).toBe(400);
  });
});

// As in better-auth's own docs: ordinary users have permissions of the application's.
const ac = createAccessControl({ ...defaultStatements, project: ["create", "share"] } as const);
const roles = {
  user: ac.newRole({ project: ["create"] }),
  admin: ac.newRole({ project: ["create", "share"], ...adminAc.statements }),
};

describe.each([
  ["better-auth's own roles", () => admin()],
  ["roles of the application's", () => admin({ ac, roles }) as unknown as BetterAuthPlugin],
])("an ordinary user of the platform at Globex, with %s", (name, create) => {
  const body = { permissions: { project: ["create"] } };

  it("R5: is nobody, and for the server that asks for the request of a page", async () => {
    const world = await createWorld({ plugins: [create()] });
    const { acme, platform } = await world.janes();
    const visit = world.at("globex", platform);
    expect(await world.whoIs(visit)).toBe(null);
    expect((await visit.get("/admin/list-users")).status).toBe(401);
    expect((await visit.post("/admin/has-permission", body)).status).toBe(401);
    /** The instance is made with better-auth's own roles, as far as the compiler knows. */
    const { userHasPermission } = world.api as unknown as Record<
      string,
      (input: object) => Promise<{ success: boolean }>
    >;
    const ask = async (person: Person, where: Place) => {
      const headers = new Headers({ ...world.naming(where), cookie: person.cookieHeader() });
      return userHasPermission?.({ body, headers }).then(
        ({ success }) => success,
        (error: unknown) => error instanceof APIError && error.statusCode,
      );
    };
    expect(await ask(platform, "platform")).toBe(name === "roles of the application's");
    expect(await ask(acme, "globex")).toBe(401);
    expect(await ask(platform, "globex")).toBe(401);
  });
});

describe("an operator's session that is prolonged", () => {
  afterEach(() => void vi.useRealTimers());

  const tenMinutesLater = () => vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 600_000 });

  /** An operator whose session is prolonged by what they do at a place. */
  async function createProlonged(place: Place) {
    const entries = new Map<string, string>();
    const session = { updateAge: 60, expiresIn: 1000 };
    const world = await createWorld({
      auth: { secondaryStorage: createStorage({}, entries), session },
    });
    const operator = await world.operator();
    tenMinutesLater();
    expect((await world.at(place, operator).get("/admin/list-users")).status).toBe(200);
    return { world, entries, operator };
  }

  it.each(["platform", "acme"] as const)("at %s ends with revoke-other-sessions", async (place) => {
    const { world, operator } = await createProlonged(place);
    // Past the old end, before the new one.
    tenMinutesLater();
    const { person } = await world.signIn("platform", operator.email);
    expect((await person.post("/revoke-other-sessions")).status).toBe(200);
    expect(await world.whoIs(operator)).toBe(null);
    expect((await world.at("acme", operator).get("/admin/list-users")).status).toBe(401);
  });

  it("R10: on a visit to Acme is not kept among what is Acme's", async () => {
    const { world, entries } = await createProlonged("acme");
    const tenantId = world.ids.acme;
    await world.api.deleteTenant({ body: { tenantId } });
    expect([...entries.keys()].filter((key) => key.includes(tenantId))).toEqual([]);
  });
});
