import { sso } from "@better-auth/sso";
import { createAuthMiddleware } from "better-auth/api";
import type { SecondaryStorage } from "better-auth/db";
import { jwt, magicLink } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { borderOf } from "../src/border/border";
import { getTenantId, runInTenant, tenantAuth } from "../src/index";
import type { Browser } from "./support/browser";
import { createDatabase, type TestDatabase } from "./support/database";
import {
  type Copy,
  cleanUpCopies,
  createInstance,
  createPlainInstance,
  type Instance,
  type InstanceOptions,
  PASSWORD,
  secondCopy,
} from "./support/instance";
import { CACHES, createMemory, mapStorage } from "./support/stores";
import {
  createMailbox,
  createWorld,
  EMAIL,
  expectRefused,
  expectSessionsApart,
  type WorldOptions,
} from "./support/world";

cleanUpCopies();

const person = (email = EMAIL) => ({ name: "Somebody", email, password: PASSWORD });

/** As much of an instance as a browser can see. */
type Process = Pick<Instance, "browser">;

async function openDatabase(): Promise<TestDatabase> {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  return database;
}

/** Who a browser is at a tenant of an instance, or where it names none. */
async function whoIs({ browser }: Process, { cookies }: Browser, tenantId?: string) {
  const window = browser(tenantId ? { "x-tenant-id": tenantId } : {});
  for (const [name, value] of cookies) window.cookies.set(name, value);
  const { data } = await window.get<{ user: { id: string } } | null>("/get-session");
  return data?.user.id ?? null;
}

/** Everybody is who they are in both instances, in their own tenant and nowhere else. */
async function expectShared(processes: [Process, Process], acme: string, globex: string) {
  for (const [home, elsewhere, made] of [
    [acme, globex, processes[0]],
    [globex, acme, processes[1]],
  ] as const) {
    const browser = made.browser({ "x-tenant-id": home });
    const { data } = await browser.post<{ user: { id: string } }>("/sign-up/email", person());
    expect(data.user).toMatchObject({ tenantId: home });
    for (const process of processes) {
      expect(await whoIs(process, browser, home)).toBe(data.user.id);
      expect(await whoIs(process, browser)).toBe(data.user.id);
      expect(await whoIs(process, browser, elsewhere)).toBe(null);
      const again = process.browser({ "x-tenant-id": home });
      expect((await again.post("/sign-in/email", person())).status).toBe(200);
      expect(await whoIs(process, again, elsewhere)).toBe(null);
    }
  }
}

describe("two copies of the package in one process", () => {
  it("runInTenant of one copy runs in the tenant of an instance of the other", async () => {
    const copy = await secondCopy();
    for (const [installed, run] of [
      [tenantAuth, copy.runInTenant],
      [copy.tenantAuth, runInTenant],
    ] as const) {
      const { api, ids, rowsIn, rows } = await createWorld({ tenantAuth: installed });
      await run(ids.acme, () => api.signUpEmail({ body: person() }));
      expect([(await rowsIn("acme", "user")).length, await rows("user")]).toEqual([1, 1]);
    }
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

  it("one deletes a tenant of the other with all that is in it", async () => {
    const database = await openDatabase();
    const here = await createWorld({ database });
    const { tenantAuth } = await secondCopy();
    const there = await createInstance({ database, migrate: false, tenantAuth });
    await here.as("jane", "acme");
    await there.api.deleteTenant({ body: { tenantId: here.ids.acme } });
    expect([await here.rows("user"), await here.rows("session")]).toEqual([0, 0]);
  });
});

describe("two instances over one", () => {
  /** An adapter that the second instance is given as well. */
  async function oneAdapter(): Promise<InstanceOptions> {
    let adapter: DBAdapter | undefined;
    const { database } = createMemory((made) => {
      adapter ??= made;
      return adapter;
    });
    return { database, migrate: false };
  }
  const oneStorage = async (): Promise<InstanceOptions> => ({
    database: await openDatabase(),
    auth: { secondaryStorage: mapStorage().storage },
  });

  const ours = tenantAuth();
  it.each<[string, string, () => Promise<Partial<Copy>>, () => Promise<InstanceOptions>]>([
    ["adapter", "the same copy", async () => ({}), oneAdapter],
    ["adapter", "another copy", secondCopy, oneAdapter],
    ["secondary storage and database", "another copy", secondCopy, oneStorage],
    [
      "plugin, storage and database",
      "one copy",
      async () => ({ tenantAuth: () => ours }),
      oneStorage,
    ],
  ])("%s, the second one of %s: both see the same", async (_, copy, made, create) => {
    const options = await create();
    const { tenantAuth: plugin = tenantAuth } = await made();
    const first = await createInstance(
      copy === "one copy" ? { ...options, tenantAuth: plugin } : options,
    );
    const second = await createInstance({ ...options, tenantAuth: plugin, migrate: false });
    const [acme, globex] = [await first.createTenant("acme"), await second.createTenant("globex")];
    await expectShared([first, second], acme.id, globex.id);
  });

  it("adapter, the second one with fewer plugins: what the first has confined stays so", async () => {
    const options = await oneAdapter();
    const notes = {
      id: "notes",
      schema: { note: { fields: { text: { type: "string" as const } } } },
    };
    const tenant = { scopedModels: ["note"] };
    const { context, createTenant } = await createInstance({
      ...options,
      plugins: [notes],
      tenant,
    });
    const [acme, globex] = [await createTenant("acme"), await createTenant("globex")];
    const { adapter } = context;
    await runInTenant(acme.id, () => adapter.create({ model: "note", data: { text: "Acme's" } }));
    const count = ({ id }: { id: string }) =>
      runInTenant(id, () => adapter.count({ model: "note" }));
    for (let made = 0; made < 2; made++) {
      expect([await count(acme), await count(globex)]).toEqual([1, 0]);
      await createInstance(options);
    }
  });

  it("adapter, the second one without single sign-on: the first keeps its secrets to itself", async () => {
    const options = await oneAdapter();
    const tenant = { scopedModels: ["ssoProvider"], trustedProviderHosts: ["idp.example.com"] };
    const { context, createTenant } = await createInstance({
      ...options,
      plugins: [sso()],
      tenant,
    });
    const acme = await createTenant("acme");
    await createInstance(options);
    const oidcConfig = JSON.stringify({ clientId: "acme", clientSecret: "told to nobody" });
    const data = { providerId: "okta", issuer: "https://idp.example.com", domain: "acme.com" };
    await runInTenant(acme.id, () =>
      context.adapter.create({ model: "ssoProvider", data: { ...data, oidcConfig } }),
    );
    const rows = await borderOf(context)?.raw.findMany({ model: "ssoProvider" });
    expect(rows).toMatchObject([{ providerId: "okta" }]);
    expect(JSON.stringify(rows)).not.toContain("told to nobody");
  });

  it("plugin object, each with a secret of its own: links are sealed once, and lead home in both", async () => {
    const { mails, send } = createMailbox();
    const plugins = [magicLink({ sendMagicLink: send("link") })];
    for (const name of ["first", "second"]) {
      const secret = `the ${name} secret, which is long enough for everybody`;
      const { at, whoIs, ids } = await createWorld({ plugins, auth: { secret } });
      await at("acme").post("/sign-in/magic-link", { email: EMAIL });
      const stranger = at("platform");
      await stranger.get(mails.at(-1)?.url ?? "");
      expect(await whoIs(stranger), name).toMatchObject({ tenantId: ids.acme });
    }
  });

  it("process, with numbers for ids: a deletion in one ends no sessions of the other", async () => {
    const auth = { advanced: { database: { generateId: "serial" } } } as const;
    const [store = { name: "" }] = CACHES;
    const [first, second] = [
      await createWorld({ auth, store }),
      await createWorld({ auth, store }),
    ];
    expect(first.ids).toEqual(second.ids);
    await first.api.deleteTenant({ body: { tenantId: first.ids.acme } });
    const jane = await second.as("jane", "acme");
    // Once in a while the tenant is looked up; that is not counted.
    expect(await second.whoIs(jane)).not.toBe(null);
    second.database.statements.length = 0;
    expect(await second.whoIs(jane)).not.toBe(null);
    // The cookie was enough.
    expect(second.database.statements).toEqual([]);
  });

  it.each([
    ["asks", (ask: () => Promise<unknown>) => ask()],
    ["asks in a tenant", (ask: () => Promise<unknown>, id: string) => runInTenant(id, ask)],
  ])(
    "process, with numbers for ids: what a hook of one %s the other opens nothing there",
    async (_, run) => {
      const advanced = { database: { generateId: "serial" } } as const;
      const other = await createWorld({ auth: { advanced } });
      const after = createAuthMiddleware(async () => {
        await run(() => other.api.ok(), other.ids.acme);
      });
      const asking = await createWorld({ auth: { advanced, hooks: { after } } });
      await other.as("jane", "acme");
      await other.change("acme", { status: "suspended" });
      await asking.as("jane", "acme");
      expectRefused(await other.signIn("acme"), 403, "TENANT_SUSPENDED");
    },
  );

  describe("process, with numbers for ids: what a hook of one asks the other", () => {
    const auth = { advanced: { database: { generateId: "serial" } } } as const;

    it.each(["before", "after"] as const)(
      "in a request is that request's, %s an endpoint",
      async (moment) => {
        const other = await createWorld({ auth });
        const guest = await other.as("jane", "globex");
        const seen: unknown[] = [];
        const hook = createAuthMiddleware(async ({ path }) => {
          if (path !== "/sign-in/email") return;
          const around = getTenantId();
          seen.push((await other.signIn("globex")).status, await whoIs(other, guest));
          seen.push((await other.signIn("platform")).status, getTenantId() === around);
        });
        const asking = await createWorld({ auth: { ...auth, hooks: { [moment]: hook } } });
        const jane = await asking.as("jane", "acme");
        expect((await asking.signIn("acme")).status).toBe(200);
        expect(seen).toEqual([200, guest.id, 401, true]);
        expect(await asking.whoIs(jane, "globex")).toBe(null);
      },
    );

    it("in a call or in its tables is the platform's, and leaves the request as it was", async () => {
      const other = await createWorld({ auth });
      await other.as("jane", "acme");
      const ask = vi.fn(async () => {
        await other.api.signUpEmail({ body: person("new@example.com") });
        return other.context.adapter.findMany<{ email: string }>({ model: "user" });
      });
      const before = createAuthMiddleware(async ({ path }) => {
        if (path === "/list-sessions") await ask();
      });
      const asking = await createWorld({ auth: { ...auth, hooks: { before } } });
      const jane = await asking.as("jane", "acme");
      // Its session alone says where it belongs, and that is asked after the hook.
      expect((await jane.fork({}).get("/list-sessions")).status).toBe(200);
      expect(await ask.mock.results[0]?.value).toMatchObject([{ email: "new@example.com" }]);
    });

    it.each(["with the plugin", "without it"])(
      "in several calls is told apart, where the asking one is %s",
      async (kind) => {
        const other = await createWorld({ auth });
        const [guest, { globex }] = [await other.as("jane", "acme"), other.ids];
        const seen: unknown[] = [];
        const before = createAuthMiddleware(async ({ path }) => {
          if (path !== "/ok") return;
          const { api } = other;
          await api.getSession({ headers: new Headers({ cookie: guest.cookieHeader() }) });
          const email = "new@example.com";
          const platform = await api.signUpEmail({ body: person(email) });
          const headers = { "x-tenant-id": String(globex) };
          const tenant = await api.signUpEmail({ body: person(email), headers });
          const both = Promise.all([
            api.signUpEmail({ body: person("more@example.com"), headers }),
            api.signUpEmail({ body: person("more@example.com") }),
          ]);
          for (const { user } of [platform, tenant, ...(await both)]) {
            seen.push((user as { tenantId?: string | null }).tenantId);
          }
        });
        const options = { ...auth, hooks: { before } };
        const asking =
          kind === "without it"
            ? await createPlainInstance(await openDatabase(), options)
            : await createWorld({ auth: options });
        await asking.browser().get("/ok");
        expect(seen).toEqual([null, globex, globex, null]);
      },
    );

    it("in a tenant of `runInTenant` is in that tenant, whichever endpoint has called the hook", async () => {
      const other = await createWorld({ auth });
      const after = async () => {
        await other.api.signUpEmail({ body: person("new@example.com") });
      };
      const databaseHooks = { user: { create: { after } } };
      const asking = await createWorld({ auth: { ...auth, databaseHooks } });
      const { acme } = asking.ids;
      const body = { ...person("first@example.com"), tenantId: acme };
      await runInTenant(acme, () => asking.api.signUpEmailTenant({ body }));
      const [user] = await other.database.query("select * from user where email = ?", [
        "new@example.com",
      ]);
      expect(user).toMatchObject({ tenantId: other.ids.acme });
    });

    type Ask = () => Promise<void>;
    const transactional = (ask: Ask): WorldOptions => ({
      auth: { databaseHooks: { user: { create: { before: ask } } } },
    });
    it.each<[string, (ask: Ask) => WorldOptions]>([
      ["before an endpoint", (ask) => ({ auth: { hooks: { before: createAuthMiddleware(ask) } } })],
      ["after an endpoint", (ask) => ({ auth: { hooks: { after: createAuthMiddleware(ask) } } })],
      ["in its transaction", transactional],
      ["in its resolver", (ask) => ({ tenant: { resolveTenantId: () => ask() as never } })],
      ["in a transaction, without our plugin", transactional],
    ])("%s is done there, and nothing of it here", async (moment, hooked) => {
      const plugins = [jwt()];
      const other = await createWorld({ auth, plugins });
      let isDue = false;
      const ask = async () => {
        if (!isDue) return;
        isDue = false;
        const { api, context, ids } = other;
        const { id: tenantId } = await api.createTenant({ body: { name: "New", slug: "new" } });
        await api.updateTenant({ body: { tenantId: ids.globex, name: "Changed" } });
        const config = { providerId: "google", clientId: "id", clientSecret: "secret" };
        await api.registerTenantOAuthConfig({ body: { tenantId, ...config } });
        await api.deleteTenant({ body: { tenantId: ids.acme } });
        await api.signUpEmailTenant({ body: { tenantId, ...person() } });
        await api.signUpEmail({ body: person() });
        await (api as unknown as { getJwks: Ask }).getJwks();
        const somebody = { name: "X", email: "internal@example.com" };
        await context.internalAdapter.createUser(somebody, { method: "email" } as never);
      };
      const options = hooked(ask);
      const database = await openDatabase();
      const given = { ...auth, ...options.auth };
      if (moment.includes("without")) {
        const { auth: plain } = await createPlainInstance(database, given, plugins);
        isDue = true;
        await plain.api.signUpEmail({ body: person("here@example.com") });
      } else {
        const asking = await createWorld({ ...options, auth: given, database, plugins });
        isDue = true;
        await asking.touchesOnly("acme", () => asking.signUp("acme", "here@example.com"));
        expect([await asking.rows("tenant"), await asking.rows("tenantOauthConfig")]).toEqual([
          2, 0,
        ]);
      }
      expect(await database.query(`select email from "user"`)).toEqual([
        { email: "here@example.com" },
      ]);
      expect(await database.query("select * from jwks")).toEqual([]);
      const read = (sql: string) => other.database.query(sql);
      expect(await read("select name from tenant order by id")).toEqual([
        { name: "Changed" },
        { name: "New" },
      ]);
      expect(await read(`select email, "tenantId" from "user" order by id`)).toEqual([
        { email: EMAIL, tenantId: "3" },
        { email: EMAIL, tenantId: "" },
        { email: "internal@example.com", tenantId: "" },
      ]);
      expect([await other.rows("jwks"), await other.rows("tenantOauthConfig")]).toEqual([1, 1]);
    });

    it("in its resolver goes by the other one's resolver as well", async () => {
      const world = await createWorld({ tenant: { resolveTenantId: () => world.ids.acme } });
      const resolveTenantId = vi.fn(async () => {
        await world.at("globex").post("/tenant/sign-up/email", person());
        return undefined;
      });
      await (await createWorld({ tenant: { resolveTenantId } })).at("platform").get("/ok");
      expect(resolveTenantId).toHaveBeenCalledOnce();
      expect(await world.rowsIn("acme", "user")).toHaveLength(1);
    });

    it("about a last administrator waits for nobody", async () => {
      const tenant = { tenantRoles: { admin: [] } };
      const other = await createWorld({ tenant, auth });
      const twin = await other.join("acme", "admin");
      const boss = await other.as("admin", "acme");
      const mirror = async () => {
        expect((await boss.post("/admin/remove-user", { userId: twin.id })).status).toBe(200);
      };
      const databaseHooks = { user: { delete: { before: mirror } } };
      const asking = await createWorld({ tenant, auth: { ...auth, databaseHooks } });
      const { id: userId } = await asking.join("acme", "admin");
      const answer = await (await asking.as("admin", "acme")).post("/admin/remove-user", {
        userId,
      });
      expect(answer.status).toBe(200);
    });
  });

  it.each<[string, (storage: SecondaryStorage) => SecondaryStorage]>([
    ["a copy", (storage) => ({ ...storage })],
    [
      "one around",
      ({ get, set, ...storage }) => ({
        ...storage,
        get: (key) => get(`second:${key}`),
        set: (key, value, ttl) => set(`second:${key}`, value, ttl),
        delete: (key) => storage.delete(`second:${key}`),
      }),
    ],
  ])("%s of the storage that the first has: nobody is anywhere else", async (_, made) => {
    const { storage } = mapStorage();
    const first = await createWorld({ auth: { secondaryStorage: storage } });
    const second = await createWorld({ auth: { secondaryStorage: made(storage) } });
    for (const world of [first, second]) await expectSessionsApart(world);
  });
});

it("an instance made anew while requests run changes nothing for them, and sees what they do", async () => {
  const database = await openDatabase();
  const auth = { secondaryStorage: mapStorage().storage };
  const first = await createWorld({ database, auth });
  const { acme, globex } = first.ids;
  const signUps = Array.from({ length: 20 }, (_, n) =>
    first.signUp(n % 2 ? acme : globex, `user-${n}@example.com`),
  );
  const second = await createInstance({ database, auth, migrate: false });
  for (const [n, someone] of (await Promise.all(signUps)).entries()) {
    for (const process of [first, second]) {
      const [home, elsewhere] = n % 2 ? [acme, globex] : [globex, acme];
      expect(await whoIs(process, someone, home)).toBe(someone.id);
      expect(await whoIs(process, someone, elsewhere)).toBe(null);
    }
  }
});

// Last, since whatever this file loads late from here on is new.
it("after a hot reload of its modules an instance goes on", async () => {
  const { as, ids, api, rows, rowsIn, whoIs } = await createWorld();
  const jane = await as("jane", "acme");
  vi.resetModules();
  const fresh: Copy = await import("../src/index");
  expect(fresh.tenantAuth).not.toBe(tenantAuth);
  const body = person("new@example.com");
  await fresh.runInTenant(ids.acme, () => api.signUpEmail({ body }));
  expect(await rowsIn("acme", "user")).toHaveLength(2);
  // What is loaded late comes from the new modules.
  await api.deleteTenant({ body: { tenantId: ids.acme } });
  expect(await rows("user")).toBe(0);
  expect(await whoIs(jane, "platform")).toBe(null);
});
