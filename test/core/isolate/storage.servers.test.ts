import { apiKey } from "@better-auth/api-key";
import type { BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { admin, bearer, deviceAuthorization, emailOTP } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInScope, scopeOf } from "../../../src/core/request";
import { runInTenant } from "../../../src/index";
import { createInstance } from "../../support/instance";
import { createSocialWorld } from "../../support/social";
import { createStorage, mapStorage, STORAGE_KINDS, STORAGES } from "../../support/stores";
import {
  approveDevice,
  createWorld,
  ELSEWHERE,
  EMAIL,
  expectRefused,
  expectSessionsApart,
  outcome,
  PLACES,
  type Place,
  type SessionAnswer,
  shareWorld,
  type Where,
} from "../../support/world";

const KINDS = [
  ...STORAGES.map(([name, create]) => ({ name, create })),
  ...STORAGE_KINDS.slice(1, 3).map((kind) => ({
    name: `a storage that ${kind.name}`,
    create: () => createStorage(kind),
  })),
];

// Sessions in all of these: sessions.servers.
describe.each(KINDS)("R10: in $name", ({ create }) => {
  const world = shareWorld({
    store: { name: "", storage: create, session: { updateAge: 0 } },
    tenant: { scopedModels: ["deviceCode"] },
    plugins: (send) => [
      bearer(),
      deviceAuthorization({ interval: "1s" }),
      emailOTP({ sendVerificationOTP: send("code") }),
    ],
  });

  it.each([
    ["with its tenant", (id: string) => world.api.deleteTenant({ body: { tenantId: id } })],
    ["when its tenant ends all", (id: string) => world.change(id, { endSessions: true })],
  ])("R5: a device's session is one at home, none elsewhere, and ends %s", async (_, end) => {
    const { id } = await world.createTenant();
    const person = await world.signUp(id);
    const body = await approveDevice(world.at(id), person);
    const answer = await world.at(id).post<{ access_token: string }>("/device/token", body);
    expect(answer.status).toBe(200);
    const authorization = `Bearer ${answer.data.access_token}`;
    const device = (where: Where) => world.browser({ ...world.naming(where), authorization });
    const home = { id: person.id, email: EMAIL, tenantId: id };
    for (const where of [id, "platform"]) expect(await world.whoIs(device(where))).toEqual(home);
    expect(await world.whoIs(device("globex"))).toBe(null);
    expect((await device("globex").post("/update-user", { name: "Moved" })).status).toBe(401);
    expect(await world.whoIs(device(id))).toEqual(home);
    await end(id);
    for (const where of [id, "platform"]) expect(await world.whoIs(device(where))).toBe(null);
  });

  it("R6: codes of one email do not collide, and each is good in its own tenant, once", async () => {
    const redeem = (where: Where, body: object) =>
      world.at(where).post<{ user: { id: string } }>("/sign-in/email-otp", body);
    const janes = await world.janes();
    const codes = {} as Record<Place, object>;
    for (const place of PLACES) {
      const body = { email: EMAIL, type: "sign-in" };
      await world.at(place).post("/email-otp/send-verification-otp", body);
      codes[place] = { email: EMAIL, otp: world.lastMail("code").code };
    }
    // A try elsewhere uses nothing up.
    for (const [place, elsewhere] of [
      ["acme", "globex"],
      ["globex", "platform"],
      ["platform", "acme"],
    ] as const) {
      expectRefused(await redeem(elsewhere, codes[place]), 400, "INVALID_OTP");
    }
    for (const place of PLACES) {
      const { status, data } = await redeem(place, codes[place]);
      expect([status, data.user.id], place).toEqual([200, janes[place].id]);
      expect(outcome(await redeem(place, codes[place]))).toEqual([400, "INVALID_OTP"]);
    }
  });

  it("threat: token not consumed atomically: one reset token, 20 at once, one success", async () => {
    const { email } = await world.signUp("acme", "reset@example.com");
    await world.at("acme").post("/request-password-reset", { email });
    const { token } = world.lastMail("reset");
    const tries = Array.from({ length: 20 }, (_, n) =>
      world.at("acme").post("/reset-password", { token, newPassword: `a new password ${n}` }),
    );
    const statuses = (await Promise.all(tries)).map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array(19).fill(400)]);
  });
});

it.each([{}, { fallbackToDatabase: true }] as const)(
  "R10: API keys in a storage are good in their tenant, for as long as it is there: %o",
  async (mode) => {
    const keys = { enableSessionForAPIKeys: true, storage: "secondary-storage", ...mode } as const;
    const world = await createWorld({
      store: { name: "", storage: () => createStorage(STORAGE_KINDS[1]) },
      plugins: [apiKey(keys)],
      tenant: { scopedModels: ["apikey"] },
    });
    const { id } = await world.createTenant();
    const person = await world.signUp(id);
    const { key } = (await person.post<{ key: string }>("/api-key/create")).data;
    const headers = { "x-api-key": key };
    const ownerAt = async (at: Where) => {
      const { data } = await world.at(at).get<Partial<SessionAnswer>>("/get-session", { headers });
      return data?.user?.id;
    };
    type Verifier = { verifyApiKey(input: { body: object }): Promise<{ valid: boolean }> };
    const { verifyApiKey } = world.api as unknown as Verifier;
    const verify = async () => (await verifyApiKey({ body: { key } })).valid;
    expect(await ownerAt("globex")).toBe(undefined);
    // R4: the row of a key leads into its tenant.
    expect(await ownerAt("platform")).toBe("fallbackToDatabase" in mode ? person.id : undefined);
    expect([await runInTenant(world.ids.globex, verify), await verify()]).toEqual([false, false]);
    expect([await runInTenant(id, verify), await ownerAt(id)]).toEqual([true, person.id]);
    await world.api.deleteTenant({ body: { tenantId: id } });
    for (const where of [id, ...ELSEWHERE]) expect(await ownerAt(where)).toBe(undefined);
    expect([await runInTenant(id, verify), await verify()]).toEqual([false, false]);
  },
);

it("threat: rate limit reset by rotation: limits in a storage count all tenants together", async () => {
  const { at } = await createWorld({
    auth: {
      secondaryStorage: createStorage(),
      rateLimit: { enabled: true, storage: "secondary-storage" },
    },
  });
  const statuses: number[] = [];
  for (const place of ["acme", "globex", "platform", "acme", "globex"] as const) {
    const body = { email: EMAIL, password: "wrong password" };
    statuses.push((await at(place).post("/sign-in/email", body)).status);
  }
  expect(statuses).toEqual([401, 401, 401, 429, 429]);
});

it("one-time secrets also kept in the database are confined there as well", async () => {
  const { entries, storage } = mapStorage();
  const auth = { secondaryStorage: storage, verification: { storeInDatabase: true } };
  const { at, as, rowsIn, mails } = await createWorld({ auth });
  const { email } = await as("jane", "acme");
  await at("acme").post("/request-password-reset", { email });
  expect(await rowsIn("acme", "verification")).toHaveLength(1);
  // Redis may have forgotten it: then the database answers.
  for (const key of entries.keys()) if (key.includes("verification:")) entries.delete(key);
  const body = { token: mails[0]?.token, newPassword: "a new password" };
  const elsewhere = await at("globex").post("/reset-password", body);
  expect(outcome(elsewhere)).toEqual([400, "INVALID_TOKEN"]);
  expect((await at("acme").post("/reset-password", body)).status).toBe(200);
});

describe("R10: a name in the storage", () => {
  const entries = new Map<string, string>();
  const world = shareWorld({ store: { name: "", storage: () => createStorage({}, entries) } });
  const inside = <T>(place: Place, run: (storage: Storage) => T | Promise<T>): Promise<T> =>
    runInScope(scopeOf(world.ids[place]), async () =>
      run(world.context.secondaryStorage ?? expect.fail("no storage")),
    );
  const get = (place: Place, key: string) => inside(place, (storage) => storage.get(key));
  const set = (place: Place, key: string, value: string) =>
    inside(place, (storage) => storage.set(key, value));

  it.each(["code", "verification:code"])(
    "each tenant and the platform have their own: %s",
    async (key) => {
      for (const place of PLACES) await set(place, key, `of ${place}`);
      for (const place of PLACES) expect(await get(place, key)).toBe(`of ${place}`);
      const { acme, globex } = world.ids;
      for (const stored of [key, `tenant:${acme}:${key}`, `tenant:${globex}:${key}`]) {
        expect(entries.has(stored), stored).toBe(true);
      }
      await inside("globex", (storage) => storage.delete(key));
      expect(await inside("acme", (storage) => storage.getAndDelete(key))).toBe("of acme");
      const left = await Promise.all(PLACES.map((place) => get(place, key)));
      expect(left).toEqual([null, null, "of platform"]);
    },
  );

  it("counts for its own tenant", async () => {
    const counts = [];
    for (const place of [...PLACES, "acme"] as const) {
      counts.push(await inside(place, (storage) => storage.increment("visits", 60)));
    }
    expect(counts).toEqual([1, 1, 1, 2]);
  });

  it("of a tenant cannot be chosen on the platform or in another tenant", async () => {
    await set("acme", "code", "of acme");
    const key = `tenant:${world.ids.acme}:code`;
    expect(entries.get(key)).toBe("of acme");
    for (const place of ["platform", "globex"] as const) {
      for (const forged of [key, `tenant::${key}`, `:${key}`]) {
        expect(await get(place, forged)).toBe(null);
        await set(place, forged, `forged at ${place}`);
        expect(await get(place, forged)).toBe(`forged at ${place}`);
        await inside(place, (storage) => storage.delete(forged));
        await inside(place, (storage) => storage.getAndDelete(forged));
      }
      expect(await get("acme", "code")).toBe("of acme");
    }
  });

  it("under which an operator's sessions are kept is the platform's, also while the operator visits or impersonates", async () => {
    const seen: unknown[] = [];
    let key = "";
    const after = createAuthMiddleware(async ({ context, path }) => {
      if (path?.startsWith("/admin/")) seen.push(await context.secondaryStorage?.get(key));
    });
    const world = await createWorld({
      plugins: [admin()],
      store: { name: "", storage: () => createStorage() },
      auth: { hooks: { after } },
    });
    const [operator, jane] = [await world.operator(), await world.as("jane", "acme")];
    // As better-auth 1.7.18 keeps when somebody's sessions were ended.
    key = `revoked-sessions-before-${operator.id}`;
    const keep = (tenantId: string | null, value: string) =>
      runInScope(scopeOf(tenantId), async () => world.context.secondaryStorage?.set(key, value));
    await keep(world.ids.acme, "of acme");
    const visit = () => world.at("acme", operator).get("/admin/list-users");
    expect((await visit()).status).toBe(200);
    await keep(null, "of platform");
    await visit();
    await operator.post("/admin/impersonate-user", { userId: jane.id });
    await world.at("acme", operator).post("/admin/stop-impersonating");
    expect(seen).toEqual([null, "of platform", "of platform", "of platform"]);
  });
});

type Storage = NonNullable<BetterAuthOptions["secondaryStorage"]>;

/** A storage as libraries ship them: methods on the prototype, which need their `this`. */
function asInstance(inner: Storage): Storage {
  type Inner = { inner: Record<string, (...call: unknown[]) => unknown> };
  const methods = Object.keys(inner).map((name) => [
    name,
    function (this: Inner, ...call: unknown[]) {
      return this.inner[name]?.(...call);
    },
  ]);
  return Object.assign(Object.create(Object.fromEntries(methods)), { inner });
}

function unwritable(storage: Storage): Storage {
  for (const method of Object.keys(storage)) {
    Object.defineProperty(storage, method, { writable: false, configurable: false });
  }
  return storage;
}

it.each<[string, (storage: Storage) => Storage]>([
  ["that is frozen", Object.freeze],
  ["whose methods cannot be replaced", unwritable],
  ["that takes no new properties", (storage) => Object.preventExtensions(asInstance(storage))],
  ["that swallows what is written", (storage) => new Proxy(storage, { set: () => true })],
  [
    "that connects late",
    (storage) =>
      new Proxy({} as Storage, {
        get: (_, name) => async (key: string) => storage[name as "get"](key),
      }),
  ],
])("R11: a storage %s is refused at start, brought by a plugin or not", async (_, close) => {
  const [given, brought] = [close(createStorage()), close(createStorage())];
  const plugin = { id: "brings", init: () => ({ options: { secondaryStorage: brought } }) };
  for (const options of [{ auth: { secondaryStorage: given } }, { plugins: [plugin] }]) {
    const message = /tenantAuth\(\).*secondaryStorage/i;
    await expect(createInstance(options)).rejects.toThrow(message);
  }
});

it("a storage without getAndDelete: users sign in at a provider, in tenants and on the platform", async () => {
  const { getAndDelete: _, ...storage } = createStorage();
  const world = await createSocialWorld({ auth: { secondaryStorage: storage as Storage } });
  for (const where of ["acme", null]) {
    const browser = world.at("platform");
    const back = String(await world.authorize(browser, where));
    expect((await browser.get(back)).location).toBe("/welcome");
    expect((await browser.get(back)).location).toContain("error=");
  }
});

it("R11: a storage that is an instance of a class works", async () => {
  const { entries, storage } = mapStorage();
  await expectSessionsApart(await createWorld({ auth: { secondaryStorage: asInstance(storage) } }));
  expect(entries.size).toBeGreaterThan(0);
});
