import { apiKey } from "@better-auth/api-key";
import type { BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { bearer, multiSession } from "better-auth/plugins";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { EXTENSION } from "../../../src/core/extensions";
import type { Browser } from "../../support/browser";
import {
  cleanUpCopies,
  createInstance,
  type Instance,
  newcomer,
  PASSWORD,
  secondCopy,
} from "../../support/instance";
import { combine, sample } from "../../support/matrix";
import {
  afterTenSeconds,
  CACHES,
  createStorage,
  SORTS,
  STORAGE_KINDS,
  STORES,
  type Store,
} from "../../support/stores";
import {
  createWorld,
  EMAIL,
  outcome,
  type Person,
  PLACES,
  type SessionAnswer,
  shareWorld,
  type Where,
} from "../../support/world";

cleanUpCopies();

/** Whose session is no session where. A request that names no tenant follows its session. */
const CROSSINGS = [
  ["acme", "globex"],
  ["globex", "acme"],
  ["platform", "acme"],
  ["platform", "globex"],
] as const;

const CREDENTIALS = ["cookie", "bearer token"] as const;

const UNAUTHORIZED = [401, "UNAUTHORIZED"];

/** Where sessions live: in `npm test`, one of each sort. */
const ALL: (Store & { losesIndex?: boolean })[] = [
  ...STORES,
  ...STORAGE_KINDS.slice(1).map((kind) => ({
    name: `a storage that ${kind.name}`,
    storage: () => createStorage(kind),
    losesIndex: !!kind.forgets,
  })),
];
const TRIED = sample(ALL, 5);

describe.each(TRIED)("sessions in $name", ({ losesIndex, ...store }) => {
  const world = shareWorld({ store, plugins: [bearer()] }, store.database);

  /** A window of a person at a place; the platform has no name. */
  const windowOf = (
    person: Person,
    where: Where = "platform",
    by: (typeof CREDENTIALS)[number] = "cookie",
  ) =>
    by === "cookie"
      ? world.at(where, person)
      : world.browser({ ...world.naming(where), authorization: `Bearer ${person.token}` });

  /** Who the server says a session is, past whatever a cookie says. */
  async function alive(person: Person) {
    const query = { disableCookieCache: "true" };
    const { data } = await windowOf(person).get<SessionAnswer | null>("/get-session", { query });
    return data?.user;
  }

  it("R5: elsewhere a session is no session, and lives on with its cookies where it belongs", async () => {
    const people = await world.strangers();
    for (const [home, elsewhere] of CROSSINGS) {
      const label = `${home} at ${elsewhere}`;
      for (const by of CREDENTIALS) {
        const window = windowOf(people[home], elsewhere, by);
        expect(await world.whoIs(window), label).toBe(null);
        const change = await window.post("/update-user", { name: "Across" });
        expect(outcome(change), label).toEqual(UNAUTHORIZED);
        expect((await window.post("/sign-out")).status).toBe(200);
        if (by === "bearer token") continue;
        expect(window.cookies.size, label).toBe(people[home].cookies.size);
        const back = await world.whoIs(window, "platform");
        expect(back, label).toMatchObject({ id: people[home].id });
      }
    }
    for (const place of PLACES) expect((await alive(people[place]))?.name).toBe("Somebody");
  });

  it("R4: a request that names no tenant runs in the tenant of its session", async () => {
    const people = await world.strangers();
    for (const by of CREDENTIALS) {
      for (const place of PLACES) {
        const { id, email } = people[place];
        const tenantId = world.ids[place];
        const window = () => windowOf(people[place], "platform", by);
        const { data } = await window().get<SessionAnswer>("/get-session");
        expect([data.session.tenantId, data.user.tenantId], by).toEqual([tenantId, tenantId]);
        // This endpoint finds somebody by e-mail, and never asks for a session.
        world.mails.length = 0;
        await window().post("/request-password-reset", { email });
        expect(world.mails, by).toMatchObject([{ userId: id, sentIn: tenantId }]);
        expect((await window().post("/update-user", { name: by })).status).toBe(200);
        expect(await world.rows("user", "id = ? and name = ?", [id, by])).toBe(1);
      }
    }
  });

  it.skipIf(losesIndex)("R3: list, revoke, update-user and sign-out stay inside", async () => {
    const people = await world.strangers();
    const { acme, globex, platform } = people;
    const second = (await world.signIn("acme", acme.email)).person;
    // better-auth writes who somebody is into all of their sessions.
    expect((await windowOf(acme).post("/update-user", { name: "Renamed" })).status).toBe(200);
    const names = [second, globex, platform].map(async (one) => (await alive(one))?.name);
    expect(await Promise.all(names)).toEqual(["Renamed", "Somebody", "Somebody"]);
    const listed = await windowOf(acme).get<{ token: string }[]>("/list-sessions");
    expect(listed.data.map(({ token }) => token).sort()).toEqual([acme.token, second.token].sort());
    for (const { token } of [globex, platform]) {
      await windowOf(acme).post("/revoke-session", { token });
    }
    expect((await windowOf(acme).post("/revoke-other-sessions")).status).toBe(200);
    expect(await alive(second)).toBe(undefined);
    for (const place of PLACES) expect((await alive(people[place]))?.id).toBe(people[place].id);
    expect((await windowOf(acme).post("/revoke-sessions")).status).toBe(200);
    expect(await alive(acme)).toBe(undefined);
    expect((await windowOf(globex).post("/sign-out")).status).toBe(200);
    expect(await alive(globex)).toBe(undefined);
    expect((await alive(platform))?.id).toBe(platform.id);
  });

  it("a refreshed session keeps its tenant", async () => {
    const people = await world.strangers();
    const read = (window: Browser) => window.get<SessionAnswer | null>("/get-session");
    const first = await Promise.all(PLACES.map((place) => read(windowOf(people[place]))));
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 2 * 86_400_000 });
    try {
      for (const [n, place] of PLACES.entries()) {
        const window = windowOf(people[place]);
        const { session } = (await read(window)).data ?? {};
        const before = Date.parse(first[n]?.data?.session.expiresAt ?? "");
        expect(Date.parse(session?.expiresAt ?? "")).toBeGreaterThan(before);
        expect(session?.tenantId).toBe(world.ids[place]);
        expect((await read(window)).data?.session.tenantId).toBe(world.ids[place]);
      }
      for (const [home, elsewhere] of CROSSINGS) {
        expect((await read(windowOf(people[home], elsewhere))).data).toBeNull();
      }
    } finally {
      vi.useRealTimers();
    }
  });
});

it("a session by API key carries the tenant of its user", async () => {
  const seen: unknown[] = [];
  const after = createAuthMiddleware(async ({ context, path }) => {
    if (path === "/update-user") seen.push(context.session?.session.tenantId);
  });
  const { at, as, ids } = await createWorld({
    plugins: [apiKey({ enableSessionForAPIKeys: true })],
    tenant: { scopedModels: ["apikey"] },
    auth: { hooks: { after } },
  });
  for (const place of ["acme", "platform"] as const) {
    const jane = await as("jane", place);
    const made = await jane.post<{ key: string }>("/api-key/create", { name: "Robot" });
    const headers = { "x-api-key": made.data.key };
    const { data } = await at(place).get<SessionAnswer>("/get-session", { headers });
    expect([data.user.tenantId, data.session.tenantId]).toEqual([ids[place], ids[place]]);
    await at(place).post("/update-user", { name: "Robot" }, { headers });
    expect(seen.at(-1) ?? null, place).toBe(ids[place]);
  }
});

it.each(SORTS.slice(0, 2))(
  "R4, R5: multiSession that names no tenant goes by the session cookie alone, in $name",
  async (store) => {
    const world = await createWorld({ store, plugins: [multiSession()] });
    const janes = await world.janes();
    // One browser, signed in at one place after the other; the last session is the active one.
    const browser = world.at("platform");
    for (const place of ["platform", "acme", "globex"] as const) {
      const path = place === "platform" ? "/sign-in/email" : "/tenant/sign-in/email";
      const body = { email: EMAIL, password: PASSWORD, tenantId: world.ids[place] ?? undefined };
      expect((await browser.post(path, body)).status).toBe(200);
    }
    const kept = browser.fork({});
    const { data } = await browser.get<SessionAnswer[]>("/multi-session/list-device-sessions");
    expect(data.map(({ user }) => user.id)).toEqual([janes.globex.id]);
    // It signs out of the active one alone.
    expect((await browser.post("/sign-out")).status).toBe(200);
    expect(await world.whoIs(kept, "globex")).toBe(null);
    const [name, value] = [...kept.cookies].filter(([key]) => key.includes("_multi-")).at(-2) ?? [];
    expect(name).toBeDefined();
    kept.cookies.set("better-auth.session_token", value ?? "");
    expect(await world.whoIs(kept, "acme")).toMatchObject({ id: janes.acme.id });
  },
);

type Options = (entries: Map<string, string>) => Partial<BetterAuthOptions>;

/** Where a session can outlive its tenant. */
const OUTLIVING: [name: string, options: Options][] = [
  ["the database", () => ({})],
  ...combine(STORAGE_KINDS, [false, true]).map(([kind, storeSessionInDatabase]) => {
    const name = `a storage that ${kind.name}${storeSessionInDatabase ? ", and the database" : ""}`;
    const session = { storeSessionInDatabase };
    const options: Options = (entries) => ({
      secondaryStorage: createStorage(kind, entries),
      session,
    });
    return [name, options] as (typeof OUTLIVING)[number];
  }),
  ...combine(CACHES, [false, true]).map(([{ name, session = {} }, stored]) => {
    const options: Options = (entries) => ({
      session,
      ...(stored && { secondaryStorage: createStorage({}, entries) }),
    });
    return [`${name}${stored ? " and a storage" : ""}`, options] as (typeof OUTLIVING)[number];
  }),
];

/** Two processes with one database and one storage behind them. */
function shareProcesses(options: Options) {
  const entries = new Map<string, string>();
  const both = () => ({ auth: options(entries), plugins: [bearer()] });
  const here = shareWorld(both());
  const there = {} as Instance;
  beforeAll(async () => {
    // What a process remembers is its own, so the other one has a copy of the package.
    const { tenantAuth } = await secondCopy();
    const { database } = here;
    const more = { database, tenantAuth, migrate: false };
    Object.assign(there, await createInstance({ ...both(), ...more }));
  });
  return { here, there };
}

const namings = (id: string): Record<string, string>[] => [{}, { "x-tenant-id": id }];

/** Whether somebody is signed in in a process, with their tenant named and without. */
async function lives(process: Pick<Instance, "browser">, { cookies }: Browser, id: string) {
  const answers = [];
  for (const headers of namings(id)) {
    const window = process.browser(headers);
    for (const [name, value] of cookies) window.cookies.set(name, value);
    answers.push((await window.get("/get-session")).data !== null);
    answers.push((await window.post("/update-user", { name: "Here" })).status === 200);
  }
  return answers;
}
const ALIVE = [true, true, true, true];
const DEAD = [false, false, false, false];

describe.each(sample(OUTLIVING, 4))(
  "R10: when a tenant is deleted, sessions in %s",
  (_, options) => {
    const { here, there } = shareProcesses(options);

    it("end at once, and within ten seconds in every other process", async () => {
      const { id: other } = await here.createTenant();
      const { id: doomed } = await here.createTenant();
      const [victim, survivor] = [await here.signUp(doomed), await here.signUp(other)];
      // The other process has just seen the tenant.
      for (const process of [here, there]) {
        expect(await lives(process, victim, doomed)).toEqual(ALIVE);
      }
      await here.api.deleteTenant({ body: { tenantId: doomed } });
      expect(await lives(here, victim, doomed)).toEqual(DEAD);
      const bearer = here.browser({ authorization: `Bearer ${victim.token}` });
      expect((await bearer.get("/get-session")).data).toBe(null);
      // Nor does its cookie put a sign-up into a tenant.
      const { data } = await here.at(null, victim).post("/sign-up/email", newcomer());
      expect(data.user).toMatchObject({ tenantId: null });
      await afterTenSeconds(async () => {
        expect(await lives(there, victim, doomed)).toEqual(DEAD);
        for (const process of [here, there]) {
          expect(await lives(process, survivor, other)).toEqual(ALIVE);
        }
      });
    });
  },
);

it.each([
  ["the request", undefined],
  ["a list of hosts", { allowedHosts: ["localhost:3000"], fallback: "http://localhost:3000" }],
])("R5, R10: sessions stay apart in a cache where %s says the base URL", async (_, baseURL) => {
  const session = { cookieCache: { enabled: true } };
  const auth = { baseURL: baseURL as BetterAuthOptions["baseURL"], session };
  const world = await createWorld({ auth });
  const jane = await world.signUp("acme");
  expect([...jane.cookies.keys()]).toContain("better-auth.session_data");
  expect(await world.whoIs(jane, "acme")).toMatchObject({ id: jane.id });
  expect(await world.whoIs(jane, "globex")).toBe(null);
});

it.each(["token", "tenantId", "userId", "generation"])(
  "R14: a feature that changes the %s of a new session is refused",
  async (column) => {
    const meddling = { changes: {} as Record<string, unknown> };
    const extension = () => ({
      name: "meddler",
      admitSession: async ({ isNew }: { isNew: boolean }) => (isNew ? meddling.changes : undefined),
    });
    const meddler = { ...{ [EXTENSION]: extension }, id: "meddler" };
    const world = await createWorld({ plugins: [meddler] });
    const jane = await world.signUp("acme");
    meddling.changes = { [column]: world.ids.globex };
    const { status } = await world
      .at("acme")
      .post("/sign-in/email", { email: jane.email, password: PASSWORD });
    expect(status).toBe(500);
    meddling.changes = { userAgent: "changed" };
    const again = await world
      .at("acme")
      .post("/sign-in/email", { email: jane.email, password: PASSWORD });
    expect(again.status).toBe(200);
  },
);
