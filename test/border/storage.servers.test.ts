import { apiKey } from "@better-auth/api-key";
import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { bearer, deviceAuthorization, emailOTP, oneTimeToken } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { runInScope, settled } from "../../src/scope/scope";
import { createInstance } from "../support/instance";
import { combine } from "../support/matrix";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createStorage, mapStorage, STORAGE_KINDS, STORAGES } from "../support/stores";
import {
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
} from "../support/world";

const KINDS = [
  ...STORAGES.map(([name, create]) => ({ name, create, losesIndex: false })),
  ...STORAGE_KINDS.slice(1).map((kind) => ({
    name: `a storage that ${kind.name}`,
    create: () => createStorage(kind),
    losesIndex: !!kind.forgets,
  })),
];

let count = 0;
const newEmail = () => `somebody-${++count}@example.com`;

interface Codes {
  device_code: string;
  user_code: string;
}
const GRANT = "urn:ietf:params:oauth:grant-type:device_code";

interface ServerCalls {
  sendVerificationOTP(input: { body: { email: string; type: "sign-in" } }): Promise<unknown>;
  verifyApiKey(input: { body: { key: string } }): Promise<{ valid: boolean }>;
}

describe.each(KINDS)("R10: in $name", ({ create, losesIndex }) => {
  const world = shareWorld({
    store: { name: "", storage: create },
    tenant: { scopedModels: ["deviceCode"] },
    auth: {
      socialProviders: { google: { clientId: "shared-client", clientSecret: "shared-secret" } },
    },
    plugins: (send) => [
      bearer(),
      deviceAuthorization({ interval: "1s" }),
      emailOTP({ sendVerificationOTP: send("code") }),
      oneTimeToken(),
    ],
  });

  describe("the admin plugin", () => {
    /** What Acme's admin can ask for about somebody. */
    const ATTEMPTS: [path: string, more?: object][] = [
      ["/admin/revoke-user-session"],
      ["/admin/revoke-user-sessions"],
      ["/admin/ban-user"],
      ["/admin/remove-user"],
      ["/admin/set-user-password", { newPassword: "a brand new password" }],
      ["/admin/update-user", { data: { name: "Changed" } }],
    ];

    it("R3: Acme's admin neither sees nor ends sessions of others, nor touches their index", async () => {
      const admin = await world.as("admin", "acme");
      const victim = await world.signUp("globex", newEmail());
      const second = (await world.signIn("globex", victim.email)).person;
      const operator = await world.operator();
      for (const window of [admin, world.at("platform", admin)]) {
        for (const { id, token } of [victim, operator]) {
          const body = { userId: id, sessionToken: token };
          for (const [path, more] of ATTEMPTS) await window.post(path, { ...body, ...more });
          const { data } = await window.post("/admin/list-user-sessions", body);
          expect(JSON.stringify(data)).not.toContain(token);
        }
      }
      expect(await world.whoIs(operator)).toMatchObject({ id: operator.id });
      if (!losesIndex) {
        expect((await victim.get<object[]>("/list-sessions")).data).toHaveLength(2);
        expect((await victim.post("/revoke-other-sessions")).status).toBe(200);
        expect(await world.whoIs(second)).toBe(null);
      }
      expect(await world.whoIs(victim)).toMatchObject({ id: victim.id });
    });

    it.skipIf(losesIndex)("Acme's admin ends the sessions of Acme's own users", async () => {
      const admin = await world.as("admin", "acme");
      const person = await world.signUp("acme", newEmail());
      const body = { userId: person.id };
      const { data } = await admin.post("/admin/list-user-sessions", body);
      expect(JSON.stringify(data)).toContain(person.token);
      await admin.post("/admin/revoke-user-sessions", body);
      expect(await world.whoIs(person)).toBe(null);
    });

    it("an operator who impersonates without naming Acme gets a session that is Acme's", async () => {
      const { id } = await world.signUp("acme", newEmail());
      const window = world.at("platform", await world.operator());
      const body = { userId: id };
      const answer = await window.post<SessionAnswer>("/admin/impersonate-user", body);
      const tenantId = world.ids.acme;
      expect([answer.status, answer.data.session.tenantId]).toEqual([200, tenantId]);
      for (const place of ["platform", "acme"] as const) {
        expect(await world.whoIs(window, place)).toMatchObject({ id, tenantId });
      }
      expect(await world.whoIs(window, "globex")).toBe(null);
    });
  });

  it("R5: a device's session is one at home, none elsewhere, and ends with its tenant", async () => {
    const { id } = await world.createTenant();
    const person = await world.signUp(id);
    const { data } = await world.at(id).post<Codes>("/device/code", { client_id: "tv" });
    await person.get("/device", { query: { user_code: data.user_code } });
    await person.post("/device/approve", { userCode: data.user_code });
    const body = { grant_type: GRANT, device_code: data.device_code, client_id: "tv" };
    const answer = await world.at(id).post<{ access_token: string }>("/device/token", body);
    expect(answer.status).toBe(200);
    const authorization = `Bearer ${answer.data.access_token}`;
    const device = (where: Where) => world.browser({ ...world.naming(where), authorization });
    const home = { id: person.id, email: EMAIL, tenantId: id };
    for (const where of [id, "platform"]) expect(await world.whoIs(device(where))).toEqual(home);
    expect(await world.whoIs(device("globex"))).toBe(null);
    expect((await device("globex").post("/update-user", { name: "Moved" })).status).toBe(401);
    expect(await world.whoIs(device(id))).toEqual(home);
    await world.api.deleteTenant({ body: { tenantId: id } });
    for (const where of [id, "platform"]) expect(await world.whoIs(device(where))).toBe(null);
  });

  const sendCode = async (where: Where, email: string) => {
    const body = { email, type: "sign-in" };
    const { status } = await world.at(where).post("/email-otp/send-verification-otp", body);
    expect(status).toBe(200);
    return { email, otp: world.lastMail("code").code };
  };
  const redeem = (where: Where, body: object) =>
    world.at(where).post<{ user: { id: string } }>("/sign-in/email-otp", body);

  it("R6: the codes of one e-mail do not collide, and each is good in its own place", async () => {
    const janes = await world.janes();
    const codes = { acme: {}, globex: {}, platform: {} };
    for (const place of PLACES) codes[place] = await sendCode(place, EMAIL);
    for (const place of PLACES) {
      const { status, data } = await redeem(place, codes[place]);
      expect([status, data.user.id], place).toEqual([200, janes[place].id]);
    }
  });

  it("R6: a code is good nowhere else, and a try elsewhere does not use it up", async () => {
    const janes = await world.janes();
    const code = await sendCode("acme", EMAIL);
    for (const place of ELSEWHERE) {
      expectRefused(await redeem(place, code), 400, "INVALID_OTP");
    }
    expect((await redeem("acme", code)).data.user.id).toBe(janes.acme.id);
    expect(outcome(await redeem("acme", code))).toEqual([400, "INVALID_OTP"]);
  });

  it("R6: one-time tokens of Acme are none elsewhere, and are good at Acme", async () => {
    const person = await world.signUp("acme", newEmail());
    const { data } = await person.get<{ token: string }>("/one-time-token/generate");
    const verify = (place: Place) =>
      world.at(place).post<SessionAnswer>("/one-time-token/verify", { token: data.token });
    for (const place of ELSEWHERE) expect((await verify(place)).status, place).toBe(400);
    expect((await verify("acme")).data.session.tenantId).toBe(world.ids.acme);
  });

  it("R6: reset tokens of one e-mail change the password in their own place only", async () => {
    await world.janes();
    for (const place of PLACES) {
      await world.at(place).post("/request-password-reset", { email: EMAIL });
    }
    const mails = world.mails.splice(0);
    expect(mails.map(({ sentIn }) => sentIn)).toEqual(PLACES.map((place) => world.ids[place]));
    const reset = (place: Place, n: number, newPassword: string) =>
      world.at(place).post("/reset-password", { token: mails[n]?.token, newPassword });
    for (const [n, elsewhere] of ["globex", "acme", "acme"].entries()) {
      // A request that names no tenant follows the sealed token into its tenant.
      const answer = await reset(elsewhere as Place, n, "a password of somewhere else");
      expect(outcome(answer), PLACES[n]).toEqual([400, "INVALID_TOKEN"]);
    }
    for (const [n, place] of PLACES.entries()) {
      const newPassword = `a new password of ${place}`;
      expect((await reset(place, n, newPassword)).status, place).toBe(200);
    }
    for (const place of PLACES) {
      expect((await world.signIn(place, EMAIL, `a new password of ${place}`)).status).toBe(200);
    }
  });

  it("threat: token not consumed atomically: one reset token, 20 at once, one success", async () => {
    const { email } = await world.signUp("acme", newEmail());
    await world.at("acme").post("/request-password-reset", { email });
    const { token } = world.lastMail("reset");
    const tries = Array.from({ length: 20 }, (_, n) =>
      world.at("acme").post("/reset-password", { token, newPassword: `a new password ${n}` }),
    );
    const statuses = (await Promise.all(tries)).map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array(19).fill(400)]);
  });

  it.each(["acme", "platform"] as const)(
    "R6: a code that follows a sign-in with an id token stays there, on %s",
    async (place) => {
      const { googleIdToken } = fakeGoogleAndGitHub();
      const email = newEmail();
      const { api } = world;
      const claims = { aud: "shared-client", sub: email, email };
      const run = async () => {
        const idToken = { token: googleIdToken(claims) };
        await api.signInSocial({ body: { provider: "google", idToken } });
        const body = { email, type: "sign-in" } as const;
        await (api as unknown as ServerCalls).sendVerificationOTP({ body });
      };
      const tenantId = world.ids[place];
      await (tenantId ? runInTenant(tenantId, run) : run());
      const code = { email, otp: world.lastMail("code").code };
      for (const elsewhere of PLACES.filter((other) => other !== place)) {
        expect((await redeem(elsewhere, code)).status, elsewhere).toBe(400);
      }
      expect((await redeem(place, code)).status).toBe(200);
      expect(await world.rows("user", "email = ?", [email])).toBe(1);
    },
  );
});

// better-auth's API keys are strings in the storage, so it does not take one that parses them.
describe.each(
  combine(STORAGE_KINDS.slice(0, 2), [{}, { fallbackToDatabase: true } as const]).map(
    ([kind, mode]) => ({ kind, mode, behind: "fallbackToDatabase" in mode }),
  ),
)("R10: API keys in a storage that $kind.name, the database behind: $behind", (options) => {
  const { kind, mode } = options;
  const keys = { enableSessionForAPIKeys: true, storage: "secondary-storage", ...mode } as const;
  const world = shareWorld({
    store: { name: "", storage: () => createStorage(kind) },
    plugins: [apiKey(keys)],
    tenant: { scopedModels: ["apikey"] },
  });

  async function createKey(where: Where) {
    const person = await world.signUp(where, newEmail());
    const { data } = await person.post<{ id: string; key: string }>("/api-key/create");
    const withKey = { headers: { "x-api-key": data.key } };
    const api = world.api as unknown as ServerCalls;
    return {
      person,
      key: data,
      withKey,
      verify: () => api.verifyApiKey({ body: { key: data.key } }),
      /** Whose key it is at a place. */
      ownerAt: async (at: Where) =>
        (await world.at(at).get<Partial<SessionAnswer> | null>("/get-session", withKey)).data?.user
          ?.id,
    };
  }

  it("a key of Acme is a session at Acme", async () => {
    const { ownerAt, person } = await createKey("acme");
    expect(await ownerAt("acme")).toBe(person.id);
    expect((await person.get<{ total: number }>("/api-key/list")).data.total).toBe(1);
  });

  it("R3: it is no key elsewhere, and cannot be seen or touched there by id", async () => {
    const { key, withKey, ownerAt, person } = await createKey("acme");
    const body = { keyId: key.id, name: "Stolen" };
    for (const place of ELSEWHERE) {
      const session = await world.at(place).get("/get-session", withKey);
      expect(outcome(session)).toEqual([401, "INVALID_API_KEY"]);
      const change = await world.at(place).post("/update-user", { name: "Moved" }, withKey);
      expect(change.status).toBe(401);
      const stranger = await world.as("stranger", place);
      const answers = [
        await stranger.get("/api-key/get", { query: { id: key.id } }),
        await stranger.post("/api-key/update", body),
        await stranger.post("/api-key/delete", body),
      ];
      expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
      expect(await ownerAt("acme")).toBe(person.id);
    }
  });

  it("R3: the server verifies it inside its tenant only, and not once that is deleted", async () => {
    const { id } = await world.createTenant();
    const { verify, ownerAt, person } = await createKey(id);
    expect((await runInTenant(world.ids.globex, verify)).valid).toBe(false);
    expect((await verify()).valid).toBe(false);
    expect((await runInTenant(id, verify)).valid).toBe(true);
    expect(await ownerAt(id)).toBe(person.id);
    await world.api.deleteTenant({ body: { tenantId: id } });
    for (const where of [id, ...ELSEWHERE]) expect(await ownerAt(where)).toBe(undefined);
    expect((await verify()).valid).toBe(false);
    expect((await runInTenant(id, verify)).valid).toBe(false);
  });
});

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
    runInScope(settled(world.ids[place]), async () =>
      run(world.context.secondaryStorage ?? expect.fail("no storage")),
    );
  const get = (place: Place, key: string) => inside(place, (storage) => storage.get(key));
  const set = (place: Place, key: string, value: string) =>
    inside(place, (storage) => storage.set(key, value));

  it.each(["code", "verification:code"])("is each place's own: %s", async (key) => {
    for (const place of PLACES) await set(place, key, `of ${place}`);
    for (const place of PLACES) expect(await get(place, key)).toBe(`of ${place}`);
    const stored = [...entries.keys()].filter((it) => it.endsWith(key)).sort();
    const { acme, globex } = world.ids;
    expect(stored).toEqual([key, `tenant:${acme}:${key}`, `tenant:${globex}:${key}`].sort());
    await inside("globex", (storage) => storage.delete(key));
    expect(await inside("acme", (storage) => storage.getAndDelete(key))).toBe("of acme");
    const left = await Promise.all(PLACES.map((place) => get(place, key)));
    expect(left).toEqual([null, null, "of platform"]);
  });

  it("counts for its own place", async () => {
    const counts = [];
    for (const place of [...PLACES, "acme"] as const) {
      counts.push(await inside(place, (storage) => storage.increment("visits", 60)));
    }
    expect(counts).toEqual([1, 1, 1, 2]);
  });

  it("of a tenant cannot be chosen or imitated on the platform", async () => {
    await set("acme", "code", "of acme");
    const key = `tenant:${world.ids.acme}:code`;
    const forged = entries.get(key)?.replace("of acme", "forged") ?? "";
    expect(forged).toContain("forged");
    await set("platform", key, forged);
    await set("platform", "look-alike", forged);
    expect(await get("acme", "code")).toBe("of acme");
    expect(await get("acme", "look-alike")).toBe(null);
    expect(await get("platform", key)).toBe(null);
    expect(await get("platform", "look-alike")).toBe(forged);
    expect(entries.has(`tenant::${key}`)).toBe(true);
  });

  it("is taken by no deleted tenant", async () => {
    const { id } = await world.createTenant();
    await world.api.deleteTenant({ body: { tenantId: id } });
    const attempt = runInScope(settled(id), async () =>
      world.context.secondaryStorage?.set("code", "late"),
    );
    await expect(attempt).rejects.toMatchObject({ body: { code: "TENANT_NOT_FOUND" } });
  });

  it("that holds a tenant's session from before there were labels is nothing", async () => {
    const tenantId = world.ids.acme;
    const expiresAt = new Date(Date.now() + 60_000);
    const whose = { session: { tenantId, token: "old", expiresAt }, user: { id: "somebody" } };
    for (const value of [whose, { session: { expiresAt }, user: { id: "somebody", tenantId } }]) {
      entries.set("old", JSON.stringify(value));
      for (const place of PLACES) expect(await get(place, "old"), place).toBe(null);
    }
  });
});

type Storage = NonNullable<BetterAuthOptions["secondaryStorage"]>;

describe("R11: the storage object", () => {
  const unwritable = () => {
    const { storage } = mapStorage();
    for (const method of Object.keys(storage)) {
      Object.defineProperty(storage, method, { writable: false, configurable: false });
    }
    return storage;
  };
  const brought = (secondaryStorage: Storage): BetterAuthPlugin => ({
    id: "brings-options",
    init: () => ({ options: { secondaryStorage } }),
  });

  it.each([
    ["that is frozen", () => Object.freeze(mapStorage().storage)],
    ["whose methods cannot be replaced", unwritable],
    ["that takes no new properties", () => Object.preventExtensions(new ClassStorage())],
  ])("%s is refused at start, brought by a plugin or not", async (_, create) => {
    const message = /tenantAuth\(\).*secondaryStorage/i;
    const given = createInstance({ auth: { secondaryStorage: create() } });
    await expect(given).rejects.toThrow(message);
    await expect(createInstance({ plugins: [brought(create())] })).rejects.toThrow(message);
  });

  it("that is an instance of a class works, with fields that only it can see", async () => {
    const storage = new ClassStorage();
    await expectSessionsApart(await createWorld({ auth: { secondaryStorage: storage } }));
    expect(storage.size).toBeGreaterThan(0);
  });
});

/** A storage as libraries ship them: methods on the prototype, state that is private. */
class ClassStorage implements Storage {
  readonly #inner = mapStorage();
  get size() {
    return this.#inner.entries.size;
  }
  get(...call: Parameters<Storage["get"]>) {
    return this.#inner.storage.get(...call);
  }
  set(...call: Parameters<Storage["set"]>) {
    return this.#inner.storage.set(...call);
  }
  delete(...call: Parameters<Storage["delete"]>) {
    return this.#inner.storage.delete(...call);
  }
  getAndDelete(...call: Parameters<Storage["getAndDelete"]>) {
    return this.#inner.storage.getAndDelete(...call);
  }
  increment(...call: Parameters<Storage["increment"]>) {
    return this.#inner.storage.increment(...call);
  }
}
