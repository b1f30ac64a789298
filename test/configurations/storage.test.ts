import type { BetterAuthOptions } from "better-auth";
import { bearer, deviceAuthorization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createPlaces, EMAIL, type Place, type SessionAnswer } from "../plugins/places";
import type { Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import { createInstance, type Instance, PASSWORD } from "../support/instance";
import { CACHES, createAdmin, expectSessionsApart } from "./checks";
import { type Copy, cleanUpCopies, secondCopy } from "./second-copy";
import { afterTenSeconds, createStorage, STORAGE_KINDS, type StorageKind } from "./storages";

/** Three places, with sessions in a storage of a kind, in the database too or not. */
const createStored = (kind: StorageKind, storeSessionInDatabase = false) =>
  createPlaces([bearer()], {
    auth: { secondaryStorage: createStorage(kind), session: { storeSessionInDatabase } },
  });

type Stored = Awaited<ReturnType<typeof createStored>>;

/** The same person in a second browser. */
async function signInAgain({ at }: Stored, place: Place): Promise<Browser> {
  const second = at(place);
  const answer = await second.post("/sign-in/email", { email: EMAIL, password: PASSWORD });
  expect(answer.status).toBe(200);
  return second;
}

describe.each(STORAGE_KINDS)("R10: a storage that $name", (kind) => {
  const keepsIndex = !kind.forgets;

  it("R5: sessions of A are none at B, and stay alive at home", async () => {
    await expectSessionsApart(await createStored(kind));
  });

  it("R5: so they are when the database has them too", async () => {
    await expectSessionsApart(await createStored(kind, true));
  });

  it("R4: a session names its tenant where the request does not", async () => {
    const places = await createStored(kind);
    const { browser, user } = await places.signUp("a");
    const answer = await browser.fork({}).post("/update-user", { name: "Changed" });
    expect(answer.status).toBe(200);
    expect(await places.rows("user", "id = ? and name = 'Changed'", [user.id])).toBe(1);
  });

  it("carries its tenant in what people see, by cookie and by bearer token", async () => {
    const places = await createStored(kind);
    const { browser, token } = await places.signUp("a");
    const byToken = places.instance.browser({ authorization: `Bearer ${token}` });
    for (const window of [browser.fork({}), byToken]) {
      const { data } = await window.get<SessionAnswer>("/get-session");
      expect([data.session.tenantId, data.user.tenantId]).toEqual([places.ids.a, places.ids.a]);
    }
  });

  it("R5: a bearer token of A is none at B, and stays alive at home", async () => {
    const { instance, naming, signUp } = await createStored(kind);
    const { token, user } = await signUp("a");
    const at = (place: Place) =>
      instance.browser({ ...naming(place), authorization: `Bearer ${token}` });
    expect((await at("b").get("/get-session")).data).toBe(null);
    expect((await at("b").post("/sign-out")).status).toBe(200);
    const { data } = await at("a").get<SessionAnswer>("/get-session");
    expect(data?.user.id).toBe(user.id);
  });

  // better-auth writes who somebody is into their sessions by way of the index.
  it.runIf(keepsIndex)("renamed people are renamed in their sessions", async () => {
    const places = await createStored(kind);
    const { browser } = await places.signUp("a");
    const second = await signInAgain(places, "a");
    await browser.post("/update-user", { name: "Changed" });
    for (const window of [browser, second, second.fork({})]) {
      const { data } = await window.get<{ user: { name: string } } | null>("/get-session");
      expect(data?.user.name).toBe("Changed");
    }
  });

  it.runIf(keepsIndex)("lists and revokes the sessions of a person at home", async () => {
    const places = await createStored(kind);
    const { browser } = await places.signUp("a");
    const second = await signInAgain(places, "a");
    expect((await browser.get<object[]>("/list-sessions")).data).toHaveLength(2);
    expect((await browser.post("/revoke-other-sessions")).status).toBe(200);
    expect(await places.whoIs(second, "a")).toBe(null);
    expect(await places.whoIs(browser, "a")).not.toBe(null);
  });
});

describe.each(STORAGE_KINDS)("R10: the admin plugin on a storage that $name", (kind) => {
  async function createAdmins() {
    const places = await createStored(kind);
    const admin = await createAdmin(places, "a");
    return { ...places, admin, operator: await createAdmin(places, "platform") };
  }

  /** What A's admin can ask for about somebody, by id. */
  const ATTEMPTS = [
    ["/admin/revoke-user-sessions", {}],
    ["/admin/ban-user", {}],
    ["/admin/remove-user", {}],
    ["/admin/set-user-password", { newPassword: "a brand new password" }],
    ["/admin/update-user", { data: { name: "Changed" } }],
  ] as const;

  it.runIf(!kind.forgets).each(ATTEMPTS)(
    "R3: %s by A's admin leaves the sessions of B's user and their index",
    async (path, more) => {
      const places = await createAdmins();
      const victim = await places.signUp("b");
      const second = await signInAgain(places, "b");
      for (const window of [places.admin.browser, places.admin.browser.fork({})]) {
        await window.post(path, { userId: victim.user.id, ...more });
      }
      expect((await victim.browser.get<object[]>("/list-sessions")).data).toHaveLength(2);
      expect((await victim.browser.post("/revoke-other-sessions")).status).toBe(200);
      expect(await places.whoIs(second, "b")).toBe(null);
      expect(await places.whoIs(victim.browser, "b")).toMatchObject({ id: victim.user.id });
    },
  );

  it("R3: A's admin sees no sessions of B's user or of the operator", async () => {
    const { admin, operator, signUp } = await createAdmins();
    const victim = await signUp("b");
    for (const { user, token } of [victim, operator]) {
      const body = { userId: user.id };
      for (const window of [admin.browser, admin.browser.fork({})]) {
        const { data } = await window.post("/admin/list-user-sessions", body);
        expect(JSON.stringify(data)).not.toContain(token);
      }
    }
  });

  it("R3: A's admin does not end a session of B's user by its token", async () => {
    const { admin, signUp, whoIs } = await createAdmins();
    const victim = await signUp("b");
    const body = { sessionToken: victim.token };
    for (const window of [admin.browser, admin.browser.fork({})]) {
      await window.post("/admin/revoke-user-session", body);
    }
    expect(await whoIs(victim.browser, "b")).toMatchObject({ id: victim.user.id });
  });

  it.runIf(!kind.forgets)("A's admin ends the sessions of A's own users", async () => {
    const { admin, signUp, whoIs } = await createAdmins();
    const person = await signUp("a");
    const listed = await admin.browser.post("/admin/list-user-sessions", {
      userId: person.user.id,
    });
    expect(JSON.stringify(listed.data)).toContain(person.token);
    await admin.browser.post("/admin/revoke-user-sessions", { userId: person.user.id });
    expect(await whoIs(person.browser, "a")).toBe(null);
  });

  it("an operator who impersonates without naming A gets a session that is A's", async () => {
    const { operator, signUp, whoIs, ids } = await createAdmins();
    const person = await signUp("a");
    const window = operator.browser.fork({});
    const answer = await window.post<SessionAnswer>("/admin/impersonate-user", {
      userId: person.user.id,
    });
    expect(answer.status).toBe(200);
    expect(answer.data.session.tenantId).toBe(ids.a);
    expect(await whoIs(window, "platform")).toMatchObject({ id: person.user.id, tenantId: ids.a });
    expect(await whoIs(window, "a")).toMatchObject({ id: person.user.id, tenantId: ids.a });
    expect(await whoIs(window, "b")).toBe(null);
  });
});

describe.each(STORAGE_KINDS)("R10: a device's session in a storage that $name", (kind) => {
  interface Codes {
    device_code: string;
    user_code: string;
  }
  const GRANT = "urn:ietf:params:oauth:grant-type:device_code";

  async function createDevice() {
    const plugins = [bearer(), deviceAuthorization({ interval: "1s" })];
    const auth = { secondaryStorage: createStorage(kind) };
    const places = await createPlaces(plugins, { auth, tenant: { scopedModels: ["deviceCode"] } });
    const { browser, user } = await places.signUp("a");
    const { data } = await places.at("a").post<Codes>("/device/code", { client_id: "tv" });
    await browser.get("/device", { query: { user_code: data.user_code } });
    await browser.post("/device/approve", { userCode: data.user_code });
    const body = { grant_type: GRANT, device_code: data.device_code, client_id: "tv" };
    const answer = await places.at("a").post<{ access_token: string }>("/device/token", body);
    expect(answer.status).toBe(200);
    const device = (place: Place) =>
      places.instance.browser({
        ...places.naming(place),
        authorization: `Bearer ${answer.data.access_token}`,
      });
    return { ...places, user, device };
  }

  it("is a session at A, and where nothing names a tenant", async () => {
    const { device, user, ids } = await createDevice();
    for (const place of ["a", "platform"] as const) {
      const { data } = await device(place).get<SessionAnswer>("/get-session");
      expect([data?.user.id, data?.session.tenantId], place).toEqual([user.id, ids.a]);
    }
  });

  it("R5: is none at B", async () => {
    const { device } = await createDevice();
    expect((await device("b").get("/get-session")).data).toBe(null);
    expect((await device("b").post("/update-user", { name: "Moved" })).status).toBe(401);
    expect((await device("a").get("/get-session")).data).not.toBe(null);
  });

  it("ends with its tenant", async () => {
    const { device, instance, ids } = await createDevice();
    await instance.api.deleteTenant({ body: { tenantId: ids.a ?? "" } });
    expect((await device("a").get("/get-session")).data).toBe(null);
    expect((await device("platform").get("/get-session")).data).toBe(null);
  });
});

cleanUpCopies();

type Entries = Map<string, string>;
type AuthOptions = (entries: Entries) => Partial<BetterAuthOptions>;

/** Where a session can outlive its tenant. */
const STORES: [name: string, options: AuthOptions][] = [
  ["the database", () => ({})],
  ...STORAGE_KINDS.flatMap((kind): typeof STORES => {
    const secondaryStorage = (entries: Entries) => createStorage(kind, entries);
    const session = { storeSessionInDatabase: true };
    return [
      [
        `a storage that ${kind.name}`,
        (entries) => ({ secondaryStorage: secondaryStorage(entries) }),
      ],
      [
        `such a storage and the database`,
        (entries) => ({ secondaryStorage: secondaryStorage(entries), session }),
      ],
    ];
  }),
  ...CACHES.map(([name, session]): (typeof STORES)[number] => [name, () => ({ session })]),
  ...CACHES.map(([name, session]): (typeof STORES)[number] => [
    `${name} and a storage`,
    (entries) => ({ session, secondaryStorage: createStorage({}, entries) }),
  ]),
];

describe.each(STORES)("R10: deletion, with sessions in %s", (_, options) => {
  /** Two processes with one database and one storage behind them. */
  async function createProcesses() {
    const database = await createDatabase("sqlite");
    const entries: Entries = new Map();
    const start = (tenantAuth?: Copy["tenantAuth"]) =>
      createInstance({ database, migrate: !tenantAuth, tenantAuth, auth: options(entries) });
    // What a process remembers is its own.
    const [here, there] = [await start(), await start((await secondCopy()).tenantAuth)];
    const doomed = (await here.createTenant("doomed")).id;
    const other = (await here.createTenant("other")).id;
    const victim = await here.signUp(doomed, EMAIL);
    const survivor = await here.signUp(other, EMAIL);
    return { here, there, doomed, other, victim, survivor };
  }

  /** Whether a session is one, in a process, with the tenant named and without. */
  async function lives(browser: Browser, tenantId: string, process: Instance) {
    const answers = [];
    for (const headers of [{}, { "x-tenant-id": tenantId }] as Record<string, string>[]) {
      const window = process.browser(headers);
      for (const [name, value] of browser.cookies) window.cookies.set(name, value);
      answers.push((await window.get("/get-session")).data !== null);
      answers.push((await window.post("/update-user", { name: "Here" })).status === 200);
    }
    return answers;
  }
  const ALIVE = [true, true, true, true];
  const DEAD = [false, false, false, false];

  it("ends them at once in its own process", async () => {
    const { here, doomed, other, victim, survivor } = await createProcesses();
    expect(await lives(victim.browser, doomed, here)).toEqual(ALIVE);
    await here.api.deleteTenant({ body: { tenantId: doomed } });
    expect(await lives(victim.browser, doomed, here)).toEqual(DEAD);
    expect(await lives(survivor.browser, other, here)).toEqual(ALIVE);
  });

  it("ends them within ten seconds in every other process", async () => {
    const { here, there, doomed, other, victim, survivor } = await createProcesses();
    // The other process has just seen the tenant.
    expect(await lives(victim.browser, doomed, there)).toEqual(ALIVE);
    await here.api.deleteTenant({ body: { tenantId: doomed } });
    await afterTenSeconds(async () => {
      expect(await lives(victim.browser, doomed, there)).toEqual(DEAD);
      expect(await lives(survivor.browser, other, there)).toEqual(ALIVE);
    });
  });
});

describe("R10: better-auth's index of sessions", () => {
  it("may lose sessions that start at the same moment: they end with their tenant all the same", async () => {
    const entries = new Map<string, string>();
    const kind: StorageKind = { name: "answers slowly" };
    const quick = createStorage(kind, entries);
    const slow = {
      ...quick,
      get: async (key: string) => {
        const value = await quick.get(key);
        await new Promise((resolve) => setTimeout(resolve, 20));
        return value;
      },
    };
    const places = await createPlaces([], { auth: { secondaryStorage: slow } });
    await places.signUp("a");
    const tabs = await Promise.all(
      Array.from({ length: 5 }, () => signInAgain(places as Stored, "a")),
    );
    const indexed = tabs.filter((tab) => {
      const token = tab.cookies.get("better-auth.session_token")?.split(".")[0] ?? "";
      const lists = [...entries].filter(([key]) => key.includes("active-sessions-"));
      return lists.some(([, list]) => list.includes(token));
    });
    expect(indexed.length).toBeLessThan(tabs.length);
    await places.instance.api.deleteTenant({ body: { tenantId: places.ids.a ?? "" } });
    for (const tab of tabs) {
      expect(await places.whoIs(tab, "a")).toBe(null);
      expect(await places.whoIs(tab, "platform")).toBe(null);
    }
  });
});
