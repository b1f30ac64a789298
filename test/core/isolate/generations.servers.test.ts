import { passkey } from "@better-auth/passkey";
import type { BetterAuthOptions } from "better-auth";
import { bearer, deviceAuthorization, twoFactor } from "better-auth/plugins";
import type { Dialect } from "kysely";
import { beforeAll, describe, expect, it } from "vitest";
import { createAuthenticator } from "../../../src/testing/makers/authenticator";
import { enroll, registerPasskey, signIn, signInTwice } from "../../features/policy/two-factor";
import type { Browser } from "../../support/browser";
import { databases, type TestDatabase } from "../../support/database";
import { ENDED_SESSION_IS_NAMED } from "../../support/differences";
import { startIdentityProvider } from "../../support/identity-provider";
import {
  cleanUpCopies,
  createInstance,
  type Instance,
  PASSWORD,
  secondCopy,
} from "../../support/instance";
import { GLOBAL } from "../../support/social";
import { afterTenSeconds, createStorage } from "../../support/stores";
import { totpFrom } from "../../support/totp";
import {
  createWorld,
  expectRefused,
  gate,
  type Person,
  shareMade,
  shareWorld,
  type World,
  type WorldOptions,
} from "../../support/world";

cleanUpCopies();

const ORIGIN = "http://localhost:3000";
const NEW_PASSWORD = "another good password";
const DEVICE = { client_id: "a-television" };
const emailAndPassword = { enabled: true, revokeSessionsOnPasswordReset: true };
const cached = { cookieCache: { enabled: true } };

const options = (auth: Partial<BetterAuthOptions> = {}): WorldOptions => ({
  auth: { ...auth, emailAndPassword: { ...emailAndPassword, ...auth.emailAndPassword } },
  plugins: [
    twoFactor(),
    passkey({ rpID: "localhost" }),
    deviceAuthorization({ interval: "1s" }),
    bearer(),
  ],
  tenant: {
    scopedModels: ["passkey", "deviceCode"],
    tenantRoles: { admin: ["user:reset-two-factor"] },
  },
});

type Refusal = Parameters<typeof expectRefused>[0];

/** A credential was refused, because the session had ended. */
function expectEnded(answer: Refusal) {
  if (ENDED_SESSION_IS_NAMED) expectRefused(answer, 401, "SESSION_EXPIRED");
  else expect(answer.status).toBeGreaterThanOrEqual(400);
}

type Act = { world: World; jane: Person; admin: Person };
type End = (act: Act) => Promise<{ status: number }>;

async function resetPassword({ world, jane }: Act) {
  const { email } = jane;
  await world.at("acme").post("/request-password-reset", { email, redirectTo: "/page" });
  const { token } = world.lastMail("reset");
  return world.at("acme").post("/reset-password", { token, newPassword: NEW_PASSWORD });
}

const byAdmin =
  (path: string, more: object = {}): End =>
  ({ jane, admin }) =>
    admin.post(path, { userId: jane.id, ...more });

/** Whatever ends all sessions of a user. */
const ENDS: [name: string, end: End][] = [
  ["an administrator resets the second factors", byAdmin("/tenant/user/reset-two-factor")],
  ["an administrator ends the sessions", byAdmin("/admin/revoke-user-sessions")],
  ["an administrator bans the user", byAdmin("/admin/ban-user")],
  ["an update bans the user", byAdmin("/admin/update-user", { data: { banned: true } })],
  ["the user ends all sessions", ({ jane }) => jane.post("/revoke-sessions")],
  ["the password is reset", resetPassword],
];

/** Where sessions live. Two of one kind share what is behind them. */
type Kind = (entries: Map<string, string>) => Partial<BetterAuthOptions>;
const KINDS: [name: string, kind: Kind][] = [
  ["in the database", () => ({})],
  ["cached in a cookie", () => ({ session: cached })],
  ["in a storage", (entries) => ({ secondaryStorage: createStorage({}, entries) })],
];

/** Two processes with one database and one storage, and a reset mail of the first. */
function shareTwoProcesses(kind: Kind) {
  const entries = new Map<string, string>();
  const made = options(kind(entries));
  const here = shareWorld(made);
  const there = {} as Instance;
  beforeAll(async () => {
    // What a process remembers is its own, so the other one has a copy of the package.
    const { tenantAuth } = await secondCopy();
    const { plugins, ...rest } = options(kind(entries));
    const more = { database: here.database, tenantAuth, migrate: false };
    Object.assign(there, await createInstance({ ...rest, plugins: plugins as [], ...more }));
  });
  return { here, there };
}

/** The cookies of a browser, in a browser that talks to another process. */
function movedTo(process: Pick<Instance, "browser">, { cookies }: Browser, naming: object) {
  const window = process.browser({ ...naming });
  for (const [name, value] of cookies) window.cookies.set(name, value);
  return window;
}

const isSignedIn = async (browser: Browser) => (await browser.get("/get-session")).data !== null;

let count = 0;
const nextEmail = () => `jane-${++count}@example.com`;

describe.each(KINDS)("sessions %s are over, in every process", (_, kind) => {
  const { here: world, there } = shareTwoProcesses(kind);

  it.each(ENDS)("when %s", async (_, end) => {
    const email = nextEmail();
    const jane = await world.signUp("acme", email);
    const lost = (await world.signIn("acme", email)).person;
    const other = await world.signUp("acme", nextEmail());
    const admin = await world.as("admin", "acme");
    const naming = world.naming("acme");
    const elsewhere = movedTo(there, lost, naming);
    expect(await isSignedIn(elsewhere)).toBe(true);
    // What the other process may still accept for ten seconds.
    const kept = movedTo(there, elsewhere, naming);
    expect((await end({ world, jane, admin })).status).toBe(200);
    for (const browser of [lost, jane]) expect(await world.whoIs(browser)).toBeNull();
    const { answer } = await registerPasskey(kept, true);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    const passkeys = await world.rowsIn("acme", "passkey");
    expect(passkeys.filter(({ userId }) => userId === jane.id)).toEqual([]);
    await afterTenSeconds(async () =>
      expect(await isSignedIn(movedTo(there, lost, naming))).toBe(false),
    );
    for (const browser of [other, admin]) expect(await world.whoIs(browser)).not.toBeNull();
  });

  it.each(["/revoke-other-sessions", "/change-password"])(
    "and %s keeps the one of the caller",
    async (path) => {
      const email = nextEmail();
      const jane = await world.signUp("acme", email);
      const lost = (await world.signIn("acme", email)).person;
      const naming = world.naming("acme");
      // Both processes know the user.
      for (const browser of [jane, lost])
        expect(await isSignedIn(movedTo(there, browser, naming))).toBe(true);
      const stolen = movedTo(there, lost, naming);
      await isSignedIn(stolen);
      const passwords = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD };
      const { status } = await jane.post(path, { ...passwords, revokeOtherSessions: true });
      expect(status).toBe(200);
      expect(await world.whoIs(jane)).toMatchObject({ id: jane.id });
      expect(await isSignedIn(movedTo(there, jane, naming))).toBe(true);
      expect(await world.whoIs(lost)).toBeNull();
      expect((await registerPasskey(stolen, true)).answer.status).toBeGreaterThanOrEqual(400);
      // The caller's own session still creates credentials.
      expect((await registerPasskey(jane, true)).answer.status).toBe(200);
    },
  );
});

/** Returns a function that pauses a request after the read of its session, before that of its user. */
function pauseBetweenReads({ option, statements }: TestDatabase) {
  let pause: (() => Promise<void>) | undefined;
  const dialect: Dialect = option.dialect;
  const createDriver = dialect.createDriver.bind(dialect);
  dialect.createDriver = () => {
    const driver = createDriver();
    const release = driver.releaseConnection.bind(driver);
    driver.releaseConnection = async (connection) => {
      await release(connection);
      if (!/^select .* from "session"/.test(statements.at(-1) ?? "")) return;
      const pausing = pause?.();
      pause = undefined;
      await pausing;
    };
    return driver;
  };
  return async <T>(send: () => Promise<T>, meanwhile: () => Promise<void>) => {
    const { pass, reached, open } = gate();
    pause = pass;
    const answer = send();
    await reached;
    await meanwhile();
    open();
    return answer;
  };
}

describe.each(["acme", "platform"] as const)("a request in %s", (where) => {
  const world = shareMade(async (database) => {
    const pause = pauseBetweenReads(database);
    return { ...(await createWorld({ database })), pause };
  });

  it.each<[string, by: "caller" | "other", path: string, status: number]>([
    [
      "stays signed in while another request of its session ends all others",
      "caller",
      "/revoke-other-sessions",
      200,
    ],
    ["is signed out while another session ends all others", "other", "/revoke-other-sessions", 401],
    [
      "is signed out while another request of its session ends all sessions",
      "caller",
      "/revoke-sessions",
      401,
    ],
  ])("%s", async (_, by, path, status) => {
    const email = nextEmail();
    const other = await world.signUp(where, email);
    for (const read of ["/get-session", "/list-accounts"]) {
      const caller = (await world.signIn(where, email)).person;
      const ending = { caller, other }[by].fork();
      const answer = await world.pause(
        () => caller.fork().get(read),
        async () => expect((await ending.post(path)).status).toBe(200),
      );
      const isSignedOut = answer.status === 401 || answer.data === null;
      expect([read, isSignedOut]).toEqual([read, status === 401]);
      expect((await caller.get("/list-accounts")).status).toBe(status);
    }
  });
});

/** What a session can give its user besides itself. */
const CREDENTIALS: [name: string, table: string, create: (browser: Browser) => Promise<Answer>][] =
  [
    ["a passkey", "passkey", async (browser) => (await registerPasskey(browser, true)).answer],
    [
      "a second factor",
      "twoFactor",
      (browser) => browser.post("/two-factor/enable", { password: PASSWORD }),
    ],
  ];
type Answer = Awaited<ReturnType<Browser["post"]>>;

describe("a session that another process still accepts", () => {
  const { here: world, there } = shareTwoProcesses(() => ({ session: cached }));

  /** A session in the cookie of a browser, and who may end it. */
  async function start() {
    const jane = await world.signUp("acme", nextEmail());
    const admin = await world.as("admin", "acme");
    const stolen = movedTo(there, jane, world.naming("acme"));
    expect(await isSignedIn(stolen)).toBe(true);
    return { jane, admin, stolen };
  }

  it.each(CREDENTIALS)(
    "creates %s before it ends, and none afterwards",
    async (_, table, create) => {
      const { jane, admin, stolen } = await start();
      expect((await create(stolen)).status).toBe(200);
      await world.database.query(`delete from ${world.database.quote(table)}`);
      expect((await admin.post("/admin/revoke-user-sessions", { userId: jane.id })).status).toBe(
        200,
      );
      expectEnded(await create(stolen));
      if (ENDED_SESSION_IS_NAMED) expect(await isSignedIn(stolen)).toBe(true);
      expect(await world.rows(table)).toBe(0);
    },
  );

  it("approves a device before it ends, and none afterwards", async () => {
    const { jane, admin, stolen } = await start();
    const approve = async () => {
      const device = world.at("acme");
      const { data } = await device.post<{ user_code: string }>("/device/code", DEVICE);
      await stolen.get("/device", { query: { user_code: data.user_code } });
      return stolen.post("/device/approve", { userCode: data.user_code });
    };
    expect((await approve()).status).toBe(200);
    await admin.post("/admin/revoke-user-sessions", { userId: jane.id });
    expectEnded(await approve());
  });
});

describe("a device that was approved", () => {
  const world = shareWorld(options());

  async function approve(email = nextEmail()) {
    const jane = await world.signUp("acme", email);
    const device = world.at("acme");
    type Codes = { user_code: string; device_code: string };
    const { data } = await device.post<Codes>("/device/code", DEVICE);
    await jane.get("/device", { query: { user_code: data.user_code } });
    const { status } = await jane.post("/device/approve", { userCode: data.user_code });
    expect(status).toBe(200);
    const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    const body = { ...DEVICE, grant_type, device_code: data.device_code };
    return { jane, poll: () => device.post("/device/token", body) };
  }

  it.each<[string, (userId: string) => Promise<unknown>]>([
    [
      "the sessions of its user",
      async (userId) =>
        (await world.as("admin", "acme")).post("/admin/revoke-user-sessions", { userId }),
    ],
    [
      "all sessions of its tenant",
      () =>
        world.api.updateTenant({
          body: { tenantId: world.ids.acme, policy: null, endSessions: true },
        }),
    ],
  ])("gets no session after %s ended", async (_, end) => {
    const [lost, kept] = [await approve(), await approve()];
    expect((await kept.poll()).status).toBe(200);
    await end(lost.jane.id);
    expectRefused(await lost.poll(), 400, undefined);
    expect((await (await approve()).poll()).status).toBe(200);
  });
});

it("a device that is trusted while an administrator resets the second factors is not trusted", async () => {
  let meanwhile = async () => {};
  const after = () => meanwhile();
  const world = await createWorld(options({ databaseHooks: { session: { create: { after } } } }));
  const jane = await world.as("jane", "acme");
  const admin = await world.as("admin", "acme");
  const app = await enroll(jane);
  const trusted = () => world.rows("verification", "value = ?", [jane.id]);
  await signInTwice(world, app, jane.email, { trustDevice: true });
  expect(await trusted()).toBe(1);
  const browser = world.at("acme");
  await signIn(browser, jane.email);
  meanwhile = async () => {
    meanwhile = async () => {};
    await admin.post("/tenant/user/reset-two-factor", { userId: jane.id });
  };
  const code = await totpFrom(app.totpURI);
  const answer = await browser.post("/two-factor/verify-totp", { code, trustDevice: true });
  expect(answer).toMatchObject({ status: 401, code: "SESSION_EXPIRED" });
  expect(await world.whoIs(browser)).toBeNull();
  expect(await trusted()).toBe(0);
});

it.each(["in Acme", "on the platform"])(
  "a flow that was started before the sessions ended links no account, %s",
  async (where) => {
    const place = where === "in Acme" ? "acme" : "platform";
    const idp = await startIdentityProvider();
    idp.registerClient(GLOBAL.clientId, GLOBAL.clientSecret);
    const gitlab = { ...GLOBAL, issuer: idp.issuer };
    const world = await createWorld({ auth: { socialProviders: { gitlab } } });
    const jane = await world.as("jane", place);
    idp.addPerson("thief", { email: jane.email });
    const body = { provider: "gitlab", callbackURL: "/done", errorCallbackURL: "/failed" };
    const begin = async () => {
      const { data } = await jane.post<{ url: string }>("/link-social", body);
      return idp.authorize(data.url, "thief");
    };
    const back = await begin();
    await world.at(place, jane).post("/revoke-sessions");
    const error = ENDED_SESSION_IS_NAMED ? "session_expired" : "unable_to_link_account";
    expect((await jane.get(back)).location).toBe(`/failed?error=${error}`);
    const accounts = await world.rowsIn(place, "account");
    expect(accounts.map(({ providerId }) => providerId)).toEqual(["credential"]);
    // The same flow of a session that is valid.
    const again = await world.signIn(place, jane.email);
    const { data } = await again.person.post<{ url: string }>("/link-social", body);
    expect((await again.person.get(await idp.authorize(data.url, "thief"))).location).toBe("/done");
  },
);

describe.each(databases)("while an administrator resets the second factors, on %s", (database) => {
  const world = shareWorld(options(), database);
  const TRIALS = 10;

  it("a passkey that is registered again and again is lost, in each of ten trials", async () => {
    const admin = await world.as("admin", "acme");
    const authenticator = await createAuthenticator("localhost", true);
    for (let trial = 0; trial < TRIALS; trial++) {
      const jane = await world.signUp("acme", nextEmail());
      const ready = await Promise.all(
        Array.from({ length: 12 }, async () => {
          const browser = world.at("acme", jane);
          const path = "/passkey/generate-register-options";
          const { data } = await browser.get<{ challenge: string }>(path);
          const response = await authenticator.register(data.challenge, ORIGIN);
          return () => browser.post("/passkey/verify-registration", { response });
        }),
      );
      // One comes before the reset, which deletes it.
      expect((await ready[0]?.())?.status).toBe(200);
      const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));
      const reset = wait(4 + trial).then(() =>
        admin.post("/tenant/user/reset-two-factor", { userId: jane.id }),
      );
      await Promise.all(ready.slice(1).map((register, index) => wait(index * 2).then(register)));
      expect((await reset).status).toBe(200);
      const left = (await world.rowsIn("acme", "passkey")).filter(
        ({ userId }) => userId === jane.id,
      );
      expect([trial, left]).toEqual([trial, []]);
    }
  }, 60_000);
});
