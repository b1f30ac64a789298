import { magicLink } from "better-auth/plugins";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { runInTenant, tenantAuth } from "../src/index";
import type { Browser } from "./support/browser";
import { createDatabase, type TestDatabase } from "./support/database";
import {
  type Copy,
  cleanUpCopies,
  createInstance,
  type Instance,
  PASSWORD,
  secondCopy,
} from "./support/instance";
import { createStorage } from "./support/stores";
import { createMailbox, createWorld, EMAIL } from "./support/world";

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

describe("two instances in one process", () => {
  it.each([
    ["the same copy", async () => ({ tenantAuth })],
    ["another copy", secondCopy],
  ])("over one database and storage, the second of %s, see the same", async (_, made) => {
    const database = await openDatabase();
    const entries = new Map<string, string>();
    const auth = () => ({ secondaryStorage: createStorage({}, entries) });
    const first = await createInstance({ database, auth: auth() });
    const more = { tenantAuth: (await made()).tenantAuth, migrate: false };
    const second = await createInstance({ database, auth: auth(), ...more });
    const [acme, globex] = [await first.createTenant("acme"), await second.createTenant("globex")];
    await expectShared([first, second], acme.id, globex.id);
  });

  it("share plugin objects and have secrets of their own: links lead home in both", async () => {
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
