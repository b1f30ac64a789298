import { apiKey } from "@better-auth/api-key";
import { createAuthMiddleware } from "better-auth/api";
import { bearer, multiSession } from "better-auth/plugins";
import { describe, expect, it, vi } from "vitest";
import { Browser } from "../support/browser";
import { BASE_URL, createStateless, PASSWORD } from "../support/instance";
import { sample } from "../support/matrix";
import { createStorage, SORTS, STORAGE_KINDS, STORES, type Store } from "../support/stores";
import {
  createWorld,
  EMAIL,
  outcome,
  type Person,
  PLACES,
  type SessionAnswer,
  shareWorld,
  type Where,
} from "../support/world";

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

  it("R5: elsewhere a session is no session, and lives on where it belongs", async () => {
    const people = await world.strangers();
    for (const by of CREDENTIALS) {
      for (const [home, elsewhere] of CROSSINGS) {
        const label = `${home} at ${elsewhere} by ${by}`;
        const person = people[home];
        const window = () => windowOf(person, elsewhere, by);
        const seen = await window().get("/get-session");
        expect([seen.status, seen.data], label).toEqual([200, null]);
        const answers = await Promise.all([
          window().get("/list-sessions"),
          window().post("/update-user", { name: "Across" }),
          window().post("/revoke-sessions"),
        ]);
        for (const answer of answers) expect(outcome(answer), label).toEqual(UNAUTHORIZED);
        const { data } = await windowOf(person, "platform", by).get<SessionAnswer>("/get-session");
        expect(data.user, label).toMatchObject({ id: person.id });
      }
    }
    expect(await world.rows("user", "name = 'Across'")).toBe(0);
    for (const place of PLACES) expect((await alive(people[place]))?.name).toBe("Somebody");
  });

  it("R5: its cookies stay in the browser that looks or signs out elsewhere", async () => {
    const people = await world.strangers();
    for (const [home, elsewhere] of CROSSINGS.slice(1, 3)) {
      const label = `${home} at ${elsewhere}`;
      const window = windowOf(people[home], elsewhere);
      const token = window.cookies.get("better-auth.session_token");
      await window.get("/get-session");
      await window.post("/update-user", { name: "Across" });
      expect(window.cookies.get("better-auth.session_token"), label).toBe(token);
      expect((await window.post("/sign-out")).status).toBe(200);
      const byToken = windowOf(people[home], elsewhere, "bearer token");
      expect((await byToken.post("/sign-out")).status).toBe(200);
      expect(await world.whoIs(window, "platform"), label).toMatchObject({ id: people[home].id });
    }
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
        const { data } = await read(window);
        const [before, after] = [first[n]?.data, data].map((it) =>
          Date.parse(it?.session.expiresAt ?? ""),
        );
        expect(after).toBeGreaterThan(before ?? 0);
        expect(data?.session.tenantId).toBe(world.ids[place]);
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

describe("without a database, sessions in an encrypted cookie", () => {
  async function createTenants() {
    const { handler, api } = createStateless();
    const createTenant = async (slug: string) =>
      (await api.createTenant({ body: { name: slug, slug } })).id;
    const [acme, globex] = [await createTenant("acme"), await createTenant("globex")];
    const signUp = async (tenantId?: string) => {
      const window = new Browser(handler, BASE_URL);
      const path = tenantId ? "/tenant/sign-up/email" : "/sign-up/email";
      const body = { name: "S", email: EMAIL, password: PASSWORD, tenantId };
      const { status, data } = await window.post<{ user: { id: string } }>(path, body);
      expect(status).toBe(200);
      return { window, id: data.user.id };
    };
    return { api, acme, globex, signUp };
  }

  it("R4, R5: a session is its own tenant's", async () => {
    const { acme, globex, signUp } = await createTenants();
    for (const [home, elsewhere] of [
      [acme, [globex]],
      [globex, [acme]],
      [undefined, [acme, globex]],
    ] as const) {
      const { window, id } = await signUp(home);
      const { data } = await window.get<SessionAnswer>("/get-session");
      expect([data.user.id, data.session.tenantId]).toEqual([id, home ?? null]);
      for (const tenantId of elsewhere) {
        const there = window.fork({ "x-tenant-id": tenantId });
        expect((await there.get("/get-session")).data).toBeNull();
        const used = await there.post("/update-user", { name: "Across" });
        expect(outcome(used)).toEqual(UNAUTHORIZED);
        // The session token is there as well, so what was cached can be read again at home.
        const again = await there.fork({}).get<SessionAnswer>("/get-session");
        expect(again.data.user).toMatchObject({ id, name: "S" });
      }
    }
  });

  it("threat: sessions survive deletion: a cookie of a deleted tenant is dead", async () => {
    const { api, acme, globex, signUp } = await createTenants();
    const [victim, survivor] = [await signUp(acme), await signUp(globex)];
    await api.deleteTenant({ body: { tenantId: acme } });
    expect((await victim.window.fork().get("/get-session")).data).toBeNull();
    const used = await victim.window.fork().post("/update-user", { name: "Still here" });
    expect(outcome(used)).toEqual(UNAUTHORIZED);
    expect((await survivor.window.get("/get-session")).data).not.toBeNull();
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
