import { type BetterAuthOptions, type BetterAuthPlugin, betterAuth } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { getMigrations } from "better-auth/db/migration";
import { bearer, magicLink } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { getTenantId, runInTenant, tenantAuth } from "../../src/index";
import { createPlaces, EMAIL } from "../plugins/places";
import { mapStorage } from "../sessions/stores";
import { Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import { BASE_URL, createInstance, type Instance, PASSWORD } from "../support/instance";
import { CACHES, expectSessionsApart } from "./checks";
import { createMemory } from "./memory";
import { type Copy, cleanUpCopies, secondCopy } from "./second-copy";

cleanUpCopies();

const person = (email = EMAIL) => ({ name: "Somebody", email, password: PASSWORD });

describe("two copies of the package in one process", () => {
  const WAYS = [
    ["its own", async (): Promise<Pick<Copy, "runInTenant">> => ({ runInTenant })],
    ["the other", secondCopy],
  ] as const;

  it.each(WAYS)("runInTenant of %s copy runs in the tenant", async (_, load) => {
    const { instance, ids, rows } = await createPlaces([]);
    const copy = await load();
    const { api } = instance;
    await copy.runInTenant(ids.a ?? "", () => api.signUpEmail({ body: person() }));
    expect(await rows("user", '"tenantId" = ?', [ids.a])).toBe(1);
    expect(await rows("user")).toBe(1);
  });

  it("runInTenant of the copy that was there first runs in the tenant", async () => {
    const copy = await secondCopy();
    const { instance, ids, rows } = await createPlaces([], { tenantAuth: copy.tenantAuth });
    const run = () => instance.api.signUpEmail({ body: person() });
    await runInTenant(ids.a ?? "", run);
    expect(await rows("user", '"tenantId" = ?', [ids.a])).toBe(1);
    await copy.runInTenant(ids.b ?? "", run);
    expect(await rows("user", '"tenantId" = ?', [ids.b])).toBe(1);
  });

  it("getTenantId of both copies knows the tenant in every hook and sender", async () => {
    const copy = await secondCopy();
    const seen: unknown[] = [];
    const note = async () => void seen.push([getTenantId(), copy.getTenantId()]);
    const { signUp, at, ids } = await createPlaces([], {
      auth: {
        hooks: { before: createAuthMiddleware(note), after: createAuthMiddleware(note) },
        databaseHooks: { user: { create: { after: note } } },
        emailAndPassword: { enabled: true, sendResetPassword: note },
      },
    });
    await signUp("a");
    seen.length = 0;
    await at("a").post("/request-password-reset", { email: EMAIL });
    expect(seen.length).toBeGreaterThan(2);
    expect(new Set(seen.map(String))).toEqual(new Set([`${ids.a},${ids.a}`]));
  });

  it("tenants of one copy inside tenants of the other do not mix", async () => {
    const copy = await secondCopy();
    const seen = await runInTenant("outer", async () => [
      copy.getTenantId(),
      await copy.runInTenant("inner", async () => [getTenantId(), copy.getTenantId()]),
      getTenantId(),
    ]);
    expect(seen).toEqual(["outer", ["inner", "inner"], "outer"]);
    expect([getTenantId(), copy.getTenantId()]).toEqual([null, null]);
  });

  it("a request of one instance that calls one of the other copy stays in its tenant", async () => {
    const copy = await secondCopy();
    const database = await createDatabase("sqlite");
    const inner = await createInstance({ database, tenantAuth: copy.tenantAuth });
    const body = person("inner@example.com");
    const before = createAuthMiddleware(async ({ path }) => {
      if (path === "/sign-in/email") await inner.api.signUpEmail({ body });
    });
    const outer = await createInstance({ database, migrate: false, auth: { hooks: { before } } });
    const a = (await outer.createTenant("aa")).id;
    const window = outer.browser({ "x-tenant-id": a });
    await window.post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    expect(await outer.rows("user", '"tenantId" = ?', [a])).toBe(1);
  });

  it.each(["here", "there"])("deletes a tenant with all that is in it (%s)", async (where) => {
    const copy = await secondCopy();
    const database = await createDatabase("sqlite");
    const first = await createInstance({ database });
    const second = await createInstance({
      database,
      migrate: false,
      tenantAuth: copy.tenantAuth,
    });
    const { id } = await first.createTenant("aa");
    await first.signUp(id);
    const { api } = where === "here" ? first : second;
    await api.deleteTenant({ body: { tenantId: id } });
    expect(await first.rows("user")).toBe(0);
    expect(await first.rows("session")).toBe(0);
  });
});

describe("two instances over one", () => {
  it("secondary storage, each with a database: sessions stay apart in both", async () => {
    const auth = { secondaryStorage: mapStorage().storage };
    const first = await createPlaces([], { auth });
    const second = await createPlaces([], { auth });
    await expectSessionsApart(first);
    await expectSessionsApart(second);
  });

  it("secondary storage and database: both see the same sessions, each where it belongs", async () => {
    const database = await createDatabase("sqlite");
    const { storage } = mapStorage();
    const auth = { secondaryStorage: storage };
    const first = await createInstance({ database, auth });
    const second = await createInstance({ database, auth, migrate: false });
    await expectShared(first, second);
  });

  it("adapter: both see the same rows, each where they belong", async () => {
    let adapter: DBAdapter | undefined;
    const { database } = createMemory((made) => {
      adapter ??= made;
      return adapter;
    });
    const first = await createInstance({ database, migrate: false });
    const second = await createInstance({ database, migrate: false });
    await expectShared(first, second);
  });

  it("adapter, the second one of another copy: the same", async () => {
    let adapter: DBAdapter | undefined;
    const { database } = createMemory((made) => {
      adapter ??= made;
      return adapter;
    });
    const copy = await secondCopy();
    const first = await createInstance({ database, migrate: false });
    const second = await createInstance({
      database,
      migrate: false,
      tenantAuth: copy.tenantAuth,
    });
    await expectShared(first, second);
  });

  it("secondary storage, the second one of another copy: the same", async () => {
    const database = await createDatabase("sqlite");
    const auth = { secondaryStorage: mapStorage().storage };
    const copy = await secondCopy();
    const first = await createInstance({ database, auth });
    const second = await createInstance({
      database,
      auth,
      migrate: false,
      tenantAuth: copy.tenantAuth,
    });
    await expectShared(first, second);
  });

  it.each(CACHES)("options object, with sessions in %s: the same", async (_, session) => {
    const { first, second } = await createTwins({ session });
    await expectShared(first, second);
  });

  it("options object, with secondary storage: the same", async () => {
    const { first, second } = await createTwins({ secondaryStorage: mapStorage().storage });
    await expectShared(first, second);
  });

  it("options object: links are sealed once, and lead home in both", async () => {
    const urls: string[] = [];
    const sendMagicLink = async ({ url }: { url: string }) => void urls.push(url);
    const { first, second } = await createTwins({}, [magicLink({ sendMagicLink })]);
    const a = (await first.createTenant("aa")).id;
    for (const instance of [first, second]) {
      const body = { email: EMAIL };
      await instance.browser({ "x-tenant-id": a }).post("/sign-in/magic-link", body);
      const stranger = instance.browser();
      await stranger.get(urls.at(-1) ?? "");
      const { data } = await stranger.get<{ session: { tenantId: string } }>("/get-session");
      expect(data?.session.tenantId).toBe(a);
    }
  });

  it("plugin object, each with a secret of its own: links lead home in both", async () => {
    const urls: string[] = [];
    const shared = magicLink({ sendMagicLink: async ({ url }) => void urls.push(url) });
    for (const name of ["first", "second"]) {
      const secret = `the ${name} secret, which is long enough for everybody`;
      const { at, whoIs, ids } = await createPlaces([shared], { auth: { secret } });
      await at("a").post("/sign-in/magic-link", { email: EMAIL });
      const stranger = at("platform");
      await stranger.get(urls.at(-1) ?? "");
      expect(await whoIs(stranger, "platform"), name).toMatchObject({ tenantId: ids.a });
    }
  });

  it("process, with numbers for ids: a deletion in one ends no sessions of the other", async () => {
    const auth = {
      session: { cookieCache: { enabled: true, maxAge: 300 } },
      advanced: { database: { generateId: "serial" } },
    } as const;
    const [first, second] = [await createInstance({ auth }), await createInstance({ auth })];
    const [one, same] = [await first.createTenant("aa"), await second.createTenant("aa")];
    expect(one.id).toBe(same.id);
    await first.api.deleteTenant({ body: { tenantId: one.id } });
    const { browser } = await second.signUp(same.id);
    // Once in a while the tenant is looked up; that is not counted.
    expect((await browser.get("/get-session")).data).not.toBe(null);
    second.database.statements.length = 0;
    expect((await browser.get("/get-session")).data).not.toBe(null);
    // The cookie was enough.
    expect(second.database.statements).toEqual([]);
  });
});

describe("an instance made anew while requests run", () => {
  it("changes nothing for them, and sees what they do", async () => {
    const database = await createDatabase("sqlite");
    const auth = { secondaryStorage: mapStorage().storage };
    const first = await createInstance({ database, auth });
    const a = (await first.createTenant("aa")).id;
    const b = (await first.createTenant("bb")).id;
    const signUps = Array.from({ length: 20 }, (_, n) =>
      first.signUp(n % 2 ? a : b, `user-${n}@example.com`),
    );
    const second = await createInstance({ database, auth, migrate: false });
    const people = await Promise.all(signUps);
    for (const [n, { browser, user }] of people.entries()) {
      const home = n % 2 ? a : b;
      for (const instance of [first, second]) {
        expect(await whoIs(instance, browser, home)).toBe(user.id);
        expect(await whoIs(instance, browser, home === a ? b : a)).toBe(null);
      }
    }
  });
});

// Last, since whatever this file loads late from here on is new.
describe("hot reload", () => {
  it("an instance goes on after its modules were loaded anew", async () => {
    const instance = await createInstance();
    const { id } = await instance.createTenant("aa");
    const { browser } = await instance.signUp(id);
    vi.resetModules();
    const fresh: Copy = await import("../../src/index");
    expect(fresh.tenantAuth).not.toBe(tenantAuth);
    const body = person("new@example.com");
    await fresh.runInTenant(id, () => instance.api.signUpEmail({ body }));
    expect(await instance.rows("user", '"tenantId" = ?', [id])).toBe(2);
    // What is loaded late comes from the new modules.
    await instance.api.deleteTenant({ body: { tenantId: id } });
    expect(await instance.rows("user")).toBe(0);
    expect((await browser.get("/get-session")).data).toBe(null);
  });
});

/** Who a browser is at a tenant of an instance, or where it names none. */
async function whoIs(instance: Pick<Instance, "browser">, browser: Browser, tenantId?: string) {
  const window = instance.browser(tenantId ? { "x-tenant-id": tenantId } : {});
  for (const [name, value] of browser.cookies) window.cookies.set(name, value);
  const { data } = await window.get<{ user: { id: string } } | null>("/get-session");
  return data?.user.id ?? null;
}

/** Everybody is who they are in both instances, in their own tenant and nowhere else. */
async function expectShared(first: Twin, second: Twin) {
  const a = (await first.createTenant("aa")).id;
  const b = (await second.createTenant("bb")).id;
  for (const [home, elsewhere, made] of [
    [a, b, first],
    [b, a, second],
  ] as const) {
    const { browser, user } = await made.signUp(home, EMAIL);
    expect(user.tenantId).toBe(home);
    for (const instance of [first, second]) {
      expect(await whoIs(instance, browser, home)).toBe(user.id);
      expect(await whoIs(instance, browser)).toBe(user.id);
      expect(await whoIs(instance, browser, elsewhere)).toBe(null);
      const again = instance.browser({ "x-tenant-id": home });
      const body = { email: EMAIL, password: PASSWORD };
      expect((await again.post("/sign-in/email", body)).status).toBe(200);
      expect(await whoIs(instance, again, elsewhere)).toBe(null);
    }
  }
}

type Twin = Pick<Instance, "browser" | "signUp" | "createTenant">;

/** Two instances of the very same options object: plugins, senders, storage and all. */
async function createTwins(auth: Partial<BetterAuthOptions>, plugins: BetterAuthPlugin[] = []) {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  const options = {
    baseURL: "http://localhost:3000",
    secret: "a test secret that is long enough for everybody",
    database: database.option,
    emailAndPassword: { enabled: true },
    ...auth,
    plugins: [tenantAuth(), bearer(), ...plugins],
  } satisfies BetterAuthOptions;
  const make = async (): Promise<Twin> => {
    const { api, handler, $context } = betterAuth(options);
    await $context;
    const browser = (headers?: Record<string, string>) => new Browser(handler, BASE_URL, headers);
    const twin: Pick<Twin, "browser" | "createTenant"> = {
      browser,
      createTenant: (slug = "") => api.createTenant({ body: { name: slug, slug } }),
    };
    return { ...twin, signUp: (tenantId, email) => signUp(browser(), tenantId, email) };
  };
  const first = await make();
  await (await getMigrations(options)).runMigrations();
  return { first, second: await make() };
}

async function signUp(browser: Browser, tenantId: string | null, email = EMAIL) {
  const body = { ...person(email), tenantId };
  const { data, status } = await browser.post<{
    token: string;
    user: { id: string; email: string; tenantId: string | null };
  }>("/tenant/sign-up/email", body);
  expect(status).toBe(200);
  return { ...data, browser, email };
}
