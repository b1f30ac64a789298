import type { BetterAuthOptions } from "better-auth";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { mapStorage } from "../sessions/stores";
import { createInstance, PASSWORD } from "../support/instance";

const cookieCache = { enabled: true, maxAge: 300 };

const PLACES: [description: string, options: () => Partial<BetterAuthOptions>][] = [
  ["in the database", () => ({})],
  ["in a cached cookie", () => ({ session: { cookieCache } })],
  ["in secondary storage", () => ({ secondaryStorage: mapStorage().storage })],
  [
    "in secondary storage and in the database",
    () => ({ secondaryStorage: mapStorage().storage, session: { storeSessionInDatabase: true } }),
  ],
  [
    "in secondary storage and in a cached cookie",
    () => ({ secondaryStorage: mapStorage().storage, session: { cookieCache } }),
  ],
];

describe.each(PLACES)("threat: sessions survive deletion, %s", (_, options) => {
  it("those of a deleted tenant are dead at once, all others live on", async () => {
    const instance = await createInstance({ auth: options() });
    const doomed = await instance.createTenant();
    const other = await instance.createTenant();
    const email = "same@example.com";
    const victim = await instance.signUp(doomed.id, email);
    const second = instance.browser();
    await second.post("/tenant/sign-in/email", { tenantId: doomed.id, email, password: PASSWORD });
    const survivors = [await instance.signUp(other.id, email), await instance.signUp(null, email)];
    for (const browser of [victim.browser, second]) {
      const { data } = await browser.get<{ user: { id: string } }>("/get-session");
      expect(data.user.id).toBe(victim.user.id);
    }
    await instance.api.deleteTenant({ body: { tenantId: doomed.id } });
    for (const browser of [victim.browser, second]) {
      for (const headers of [{}, { "x-tenant-id": doomed.id }] as Record<string, string>[]) {
        const window = browser.fork(headers);
        expect((await window.fork().get("/get-session")).data).toBeNull();
        const used = await window.fork().post("/update-user", { name: "Still here" });
        // With the header it is the tenant that is missing, without it the session.
        expect([401, 404]).toContain(used.status);
        const listed = await window.fork().get("/list-sessions");
        expect([401, 404]).toContain(listed.status);
      }
    }
    for (const { browser, user } of survivors) {
      const { data } = await browser.get<{ user: { id: string } }>("/get-session");
      expect(data.user.id).toBe(user.id);
    }
  });
});

it("leaves nothing of a deleted tenant's users in secondary storage", async () => {
  const { entries, storage } = mapStorage();
  const instance = await createInstance({ auth: { secondaryStorage: storage } });
  const doomed = await instance.createTenant();
  const people = await Promise.all([instance.signUp(doomed.id), instance.signUp(doomed.id)]);
  const other = await instance.signUp(null);
  const mentions = (text: string) =>
    [...entries].filter((entry) => entry.some((part) => part.includes(text))).length;
  for (const { token } of people) expect(mentions(token)).toBeGreaterThan(0);
  await instance.api.deleteTenant({ body: { tenantId: doomed.id } });
  for (const { token, email } of people) {
    expect(mentions(token)).toBe(0);
    expect(mentions(email)).toBe(0);
  }
  expect(mentions(other.token)).toBeGreaterThan(0);
});

it("leaves nothing of thousands of users, who are more than are read at a time", async () => {
  const { entries, storage } = mapStorage();
  const instance = await createInstance({ auth: { secondaryStorage: storage } });
  const doomed = await instance.createTenant();
  await instance.database.query(
    `insert into "user" ("id", "name", "email", "emailVerified", "tenantId", "createdAt", "updatedAt")
     with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 10100)
     select 'many-' || n, 'Many', n || '@example.com', 1, ?, '2020-01-01', '2020-01-01' from numbers`,
    [doomed.id],
  );
  await runInTenant(doomed.id, async () => {
    for (let n = 1; n <= 10_100; n++) {
      await storage.set(`active-sessions-many-${n}`, JSON.stringify([{ token: `token-${n}` }]));
      await storage.set(`token-${n}`, "a session");
    }
  });
  expect(entries.size).toBeGreaterThan(20_000);
  const other = await instance.signUp(null);
  await instance.api.deleteTenant({ body: { tenantId: doomed.id } });
  expect(await instance.rows("user")).toBe(1);
  const left = [...entries.keys()].filter((key) => /many|token-/.test(key));
  expect(left).toEqual([]);
  expect((await other.browser.get<{ user: object }>("/get-session")).data.user).toBeDefined();
});
