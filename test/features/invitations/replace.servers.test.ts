import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import {
  deviceAuthorization,
  emailOTP,
  magicLink,
  phoneNumber,
  twoFactor,
  username,
} from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { INVITATION_HEADER } from "../../../src/features/invitations/error-codes";
import { runInTenant } from "../../../src/index";
import { createAuthenticator } from "../../../src/testing/makers/authenticator";
import type { Browser } from "../../support/browser";
import { createDatabase, databases } from "../../support/database";
import { PASSWORD } from "../../support/instance";
import { everyCase } from "../../support/matrix";
import { SORTS } from "../../support/stores";
import { outcome, type Where, type WorldOptions } from "../../support/world";
import { createSCIMWorld, SCIM_MODELS } from "../enterprise/world";
import { signInByWallet, wallets } from "../policy/sign-ins";
import {
  createInviting,
  INVITED,
  type Inviting,
  invitationsWithMailbox,
  shareInviting,
} from "./world";

const CREATE = "/tenant/invitation/create";
const NEW_PASSWORD = "the password of the invited person";
const IN_TENANT = [409, "USER_ALREADY_IN_TENANT"];
const TAKEN = [422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"];
const SIGN_IN = [401, "INVALID_EMAIL_OR_PASSWORD"];

/** A tenant where everyone may sign up. */
const openTenant = async (app: Inviting) => (await app.createTenant()).id;

const userIn = async (app: Inviting, where: Where, email = INVITED) =>
  (await app.rowsIn(where, "user")).find((user) => user.email === email);

describe.each(SORTS)(
  "threat: an attacker signs up with the invited address, sessions in $name",
  (store) => {
    it("the mailed link makes a user of its own, and nothing of the attacker's is left", async () => {
      const app = await createInviting({ store });
      const tenant = await openTenant(app);
      const { token } = await app.invite(tenant, INVITED, { role: "admin" });
      const attacker = await app.signUp(tenant, INVITED, { name: "Mallory" });
      expect(await app.whoIs(attacker)).toMatchObject({ id: attacker.id });
      const browser = app.browser();
      const { status, data } = await app.accept(token, { password: NEW_PASSWORD }, browser);
      expect([status, data.user]).toMatchObject([
        200,
        { email: INVITED, emailVerified: true, role: "admin", name: "Ada", tenantId: tenant },
      ]);
      expect(await app.whoIs(browser, tenant)).toMatchObject({ id: data.user.id });
      // Not the same user: whatever the attacker has is of another id.
      expect(data.user.id).not.toBe(attacker.id);
      expect(await app.whoIs(attacker)).toBeNull();
      const session = await attacker.get("/get-session", { query: { disableCookieCache: "true" } });
      expect(session.data).toBeNull();
      expect(outcome(await app.signIn(tenant, INVITED))).toEqual(SIGN_IN);
      expect((await app.signIn(tenant, INVITED, NEW_PASSWORD)).person.id).toBe(data.user.id);
      const accounts = await app.rowsIn(tenant, "account");
      expect(accounts.map(({ userId }) => userId)).toEqual([data.user.id]);
      expect(app.events.at(-1)).toMatchObject({
        type: "invitation:accepted",
        actor: { userId: data.user.id },
        replacedUserId: attacker.id,
      });
      // The one without the address cannot be found by it any more.
      const left = (await app.rowsIn(tenant, "user")).find(({ id }) => id === attacker.id);
      expect(left?.email).toMatch(/@replaced\.invalid$/);
      expect(await app.users(tenant)).toBe(1);
    });
  },
);

describe("an address that an unverified user has", () => {
  const app = shareInviting({
    plugins: (send) => [
      magicLink({ sendMagicLink: send("link") }),
      emailOTP({ sendVerificationOTP: send("otp") }),
    ],
    tenant: { tenantRoles: { admin: ["invitation:*"] } },
  });

  it("can be invited, and sent the invitation again", async () => {
    const tenant = await openTenant(app);
    await app.signUp(tenant, INVITED);
    const operator = await app.operator();
    const body = { tenantId: tenant, email: INVITED, role: "admin" };
    // A link that the manager gets proves nothing, so it could not be used.
    expect(outcome(await operator.post(CREATE, { ...body, send: false }))).toEqual(IN_TENANT);
    const { status, data } = await operator.post<{ id: string }>(CREATE, body);
    expect(status).toBe(200);
    await app.aMinuteLater();
    const again = await operator.post("/tenant/invitation/resend", { id: data.id });
    expect(again.status).toBe(200);
    const accepted = await app.accept(app.sent.at(-1)?.token);
    expect(accepted.data.user).toMatchObject({ role: "admin", emailVerified: true });
  });

  it("is taken over by sign-up with the header, and by a magic link or a code without it", async () => {
    const invited = async () => {
      const tenant = await openTenant(app);
      const { token } = await app.invite(tenant, INVITED, { role: "admin" });
      const attacker = await app.signUp(tenant, INVITED);
      return { tenant, token, attacker };
    };
    const ways: ((tenant: string, token: string) => Promise<unknown>)[] = [
      (tenant, token) => {
        const body = { name: "Ada", email: INVITED, password: NEW_PASSWORD };
        const headers = { [INVITATION_HEADER]: token };
        return app.at(tenant).post("/sign-up/email", body, { headers });
      },
      async (tenant, token) => {
        const headers = { [INVITATION_HEADER]: token };
        const body = { email: INVITED, callbackURL: "/in" };
        await app.at(tenant).post("/sign-in/magic-link", body, { headers });
        await app.browser().get(app.lastMail("link").url);
      },
      async (tenant) => {
        await app.at(tenant).post("/sign-in/magic-link", { email: INVITED, callbackURL: "/in" });
        await app.browser().get(app.lastMail("link").url);
      },
      async (tenant) => {
        const body = { email: INVITED, type: "sign-in" };
        await app.at(tenant).post("/email-otp/send-verification-otp", body);
        const otp = app.lastMail("otp").code;
        await app.at(tenant).post("/sign-in/email-otp", { email: INVITED, otp });
      },
    ];
    for (const way of ways) {
      const { tenant, token, attacker } = await invited();
      await way(tenant, token);
      const user = await userIn(app, tenant);
      expect(user).toMatchObject({ role: "admin" });
      expect([Boolean(user?.emailVerified), user?.id === attacker.id]).toEqual([true, false]);
      expect(await app.statusOf(tenant)).toEqual(["accepted"]);
      expect(await app.whoIs(attacker)).toBeNull();
    }
  });

  it("control: without an invitation, a magic link goes on as better-auth's own", async () => {
    const tenant = await openTenant(app);
    const person = await app.signUp(tenant, INVITED);
    await app.at(tenant).post("/sign-in/magic-link", { email: INVITED, callbackURL: "/in" });
    await app.browser().get(app.lastMail("link").url);
    expect(await userIn(app, tenant)).toMatchObject({ id: person.id, role: "user" });
  });

  it("stays the user's who has it, as long as no mailed token is accepted", async () => {
    const tenant = await openTenant(app);
    const unmailed = await app.invite(tenant, INVITED, { send: false });
    const person = await app.signUp(tenant, INVITED);
    expect(outcome(await app.accept(unmailed.token))).toEqual(TAKEN);
    const { token } = await app.invite(tenant);
    const other = await app.invite(tenant, "other@example.com");
    const headers = { [INVITATION_HEADER]: token };
    const body = { email: INVITED, name: "Ada", password: PASSWORD };
    for (const answer of [
      await app.open(token),
      await app.accept(token, { password: "short" }),
      await app.accept(token, { email: "eve@example.com" }),
      await app.accept(unmailed.token),
      // The token of another address proves nothing about this one.
      await app.at(tenant).post("/sign-up/email", body, {
        headers: { [INVITATION_HEADER]: other.token },
      }),
      // With the header or without, people sign in with the password that they have.
      await app.at(tenant).post("/sign-in/email", body, { headers }),
    ]) {
      expect(await app.whoIs(person), JSON.stringify(answer.data)).toMatchObject({ id: person.id });
    }
    const signedIn = await app.at(tenant).post("/sign-in/email", body, { headers });
    expect(signedIn.status).toBe(200);
    expect(await userIn(app, tenant)).toMatchObject({ id: person.id, name: "Somebody" });
  });

  it.each([
    ["verified", { emailVerified: true }],
    ["banned", { banned: true }],
    ["with a role that a manager has given", { role: "admin" }],
  ])("is not taken from a user who is %s", async (_, data) => {
    const tenant = await openTenant(app);
    const { token } = await app.invite(tenant);
    const person = await app.signUp(tenant, INVITED);
    const operator = await app.operator();
    await app.write("user", data, { id: person.id });
    await app.aMinuteLater();
    const again = await operator.post(CREATE, { tenantId: tenant, email: INVITED });
    expect(outcome(again)).toEqual(IN_TENANT);
    expect(outcome(await app.accept(token))).toEqual(TAKEN);
    expect(await userIn(app, tenant)).toMatchObject({ id: person.id });
  });
});

it("threat: what an attacker has enrolled or started signs no one in", async () => {
  const authenticator = await createAuthenticator("localhost");
  const origin = "http://localhost:3000";
  const app = await createInviting({
    auth: {
      user: { changeEmail: { enabled: true } },
      emailVerification: { sendOnSignUp: false },
    },
    tenant: { scopedModels: ["apikey", "passkey", "deviceCode", "walletAddress"] },
    plugins: (send) => [
      wallets(),
      apiKey({ enableSessionForAPIKeys: true }),
      passkey({ rpID: "localhost" }),
      twoFactor(),
      deviceAuthorization({ interval: "1s" }),
      phoneNumber({ sendOTP: send("phone") }),
    ],
  });
  const tenant = await openTenant(app);
  const { token } = await app.invite(tenant, INVITED, { role: "admin" });
  const attacker = await app.signUp(tenant, INVITED);
  const key = (await attacker.post<{ key: string }>("/api-key/create", { name: "x" })).data.key;
  const withKey = () => app.at(tenant).get("/get-session", { headers: { "x-api-key": key } });
  expect((await withKey()).data).toMatchObject({ user: { id: attacker.id } });
  await attacker.post("/change-email", { newEmail: "evil@example.com", callbackURL: "/in" });
  const change = app.lastMail("verification");
  expect(change.to).toBe("evil@example.com");
  await attacker.post("/two-factor/enable", { password: PASSWORD });
  const challengeOf = async (browser: Browser, path: string) =>
    (await browser.get<{ challenge: string }>(`/passkey/generate-${path}-options`)).data.challenge;
  const registered = await attacker.post("/passkey/verify-registration", {
    response: await authenticator.register(await challengeOf(attacker, "register"), origin),
  });
  expect(registered.status).toBe(200);
  const withPasskey = async () => {
    const browser = app.at(tenant);
    const challenge = await challengeOf(browser, "authenticate");
    const response = await authenticator.assert(challenge, origin);
    return browser.post("/passkey/verify-authentication", { response });
  };
  expect((await withPasskey()).status).toBe(200);
  const { data: code } = await app
    .at(tenant)
    .post<{ device_code: string; user_code: string }>("/device/code", { client_id: "tv" });
  await attacker.get("/device", { query: { user_code: code.user_code } });
  const approved = await attacker.post("/device/approve", { userCode: code.user_code });
  expect(approved.status).toBe(200);
  const phone = { phoneNumber: "+15551234567" };
  await attacker.post("/phone-number/send-otp", phone);
  const verified = { ...phone, code: app.lastMail("phone").code, updatePhoneNumber: true };
  expect((await attacker.post("/phone-number/verify", verified)).status).toBe(200);
  await attacker.post("/request-password-reset", { email: INVITED, redirectTo: "/reset" });
  const reset = app.lastMail("reset");
  const address = `0x${"0".repeat(39)}1`;
  const withWallet = async () => {
    const browser = app.at(tenant);
    await signInByWallet(browser, address);
    return (await app.whoIs(browser))?.id;
  };
  const owned = { userId: attacker.id, address, chainId: 1, isPrimary: true };
  const data = { ...owned, createdAt: new Date() };
  await runInTenant(tenant, () => app.context.adapter.create({ model: "walletAddress", data }));
  expect(await withWallet()).toBe(attacker.id);

  const { user } = (await app.accept(token, { password: NEW_PASSWORD })).data;
  expect(user.role).toBe("admin");
  const now = async () => await userIn(app, tenant);
  expect(await now()).toMatchObject({ id: user.id, phoneNumber: null });

  expect((await withKey()).code).toBe("INVALID_API_KEY");
  // The token in this link names an address, and no user.
  const clicked = app.at(tenant);
  const answer = await clicked.get(change.url);
  expect(answer.location).toContain("error=INVALID_TOKEN");
  expect([await app.whoIs(clicked), (await now())?.id]).toEqual([null, user.id]);
  expect((await withPasskey()).status).toBe(401);
  // A user of the wallet alone.
  expect([attacker.id, user.id]).not.toContain(await withWallet());
  const polled = await app.at(tenant).post("/device/token", {
    grant_type: "urn:ietf:params:oauth:grant-type:device_code",
    device_code: code.device_code,
    client_id: "tv",
  });
  expect(polled.status).toBe(400);
  const newPassword = { newPassword: "a password of the attacker", token: reset.token };
  expect((await app.at(tenant).post("/reset-password", newPassword)).status).toBe(400);
  await app.at(tenant).post("/phone-number/send-otp", phone);
  const byPhone = { ...phone, code: app.lastMail("phone").code };
  const phoned = await app.at(tenant).post("/phone-number/verify", byPhone);
  expect(phoned.data).not.toHaveProperty("token");
  for (const model of ["apikey", "passkey", "twoFactor", "deviceCode"]) {
    expect([model, await app.rows(model)]).toEqual([model, 0]);
  }
  // Control: the person changes the address by a link of their own.
  const { person } = await app.signIn(tenant, INVITED, NEW_PASSWORD);
  await person.post("/change-email", { newEmail: "ada@new.example", callbackURL: "/in" });
  await person.get(app.lastMail("change").url);
  const own = await person.get(app.lastMail("verification").url);
  expect(own.location).not.toContain("error");
  expect(await userIn(app, tenant, "ada@new.example")).toMatchObject({ id: user.id });
});

it("threat: removing the replaced user does not bring the cookie of the attacker back", async () => {
  const app = await createInviting({
    auth: { session: { cookieCache: { enabled: true, maxAge: 3600 } } },
  });
  const tenant = await openTenant(app);
  const { token } = await app.invite(tenant);
  const [attacker, other] = [
    await app.signUp(tenant, INVITED),
    await app.signUp(tenant, "other@example.com"),
  ];
  const browser = app.browser();
  await app.accept(token, {}, browser);
  const operator = await app.operator();
  const removed = await operator.post("/admin/remove-user", { userId: attacker.id });
  expect(removed.status).toBe(200);
  expect(await app.whoIs(attacker)).toBeNull();
  // Control: cookies of users who are there.
  expect(await app.whoIs(other)).toMatchObject({ id: other.id });
  expect(await app.whoIs(browser, tenant)).toMatchObject({ email: INVITED });
});

it("the username of the replaced user is free, and one of another user is not", async () => {
  const app = await createInviting({ plugins: [username()] });
  const tenant = await openTenant(app);
  const { token } = await app.invite(tenant);
  await app.signUp(tenant, INVITED, { username: "ada_lovelace" });
  await app.signUp(tenant, "other@example.com", { username: "taken" });
  const accepted = await app.accept(token, { username: "ada_lovelace" });
  expect(accepted.status).toBe(200);
  expect(await userIn(app, tenant)).toMatchObject({
    username: expect.stringMatching(/~ada_lovelace$/),
  });
  const second = await app.invite(tenant, "bob@example.com");
  expect((await app.accept(second.token, { username: "taken" })).status).not.toBe(200);
});

it("rows of the application that refer to the attacker's user do not prevent the sign-up", async () => {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  const app = await createInviting({ database });
  const tenant = await openTenant(app);
  const { token } = await app.invite(tenant);
  const attacker = await app.signUp(tenant, INVITED);
  await database.query('create table post (author text not null references "user" (id))');
  await database.query("insert into post (author) values (?)", [attacker.id]);
  expect((await app.accept(token)).status).toBe(200);
  expect(await database.query("select author from post")).toEqual([{ author: attacker.id }]);
});

describe("a user of the tenant's directory", () => {
  async function createDirectoryWorld(auth: WorldOptions["auth"] = {}) {
    const { plugin, sent } = invitationsWithMailbox();
    const world = await createSCIMWorld({
      auth,
      plugins: (send) => [
        plugin,
        magicLink({ sendMagicLink: send("link") }),
        phoneNumber({ sendOTP: send("phone") }),
      ],
      tenant: { scopedModels: SCIM_MODELS },
    });
    const api = world.api as typeof world.api & (typeof plugin)["endpoints"];
    const { id: tenant } = await world.createTenant();
    const directory = await world.connect(tenant);
    const { data } = await directory.add("ada");
    const invite = async () => {
      const body = { tenantId: tenant, email: INVITED, role: "admin" };
      await api.createTenantInvitation({ body });
      return sent.at(-1)?.token;
    };
    const accept = (token: unknown, browser: Browser = world.browser()) =>
      browser.post("/tenant/invitation/accept", { token, name: "Ada", password: NEW_PASSWORD });
    const users = () => world.rowsIn(tenant, "user");
    return { ...world, tenant, directory, resource: `Users/${data.id}`, invite, accept, users };
  }

  it("stays the directory's: it is deactivated and deleted by it afterwards", async () => {
    const world = await createDirectoryWorld();
    const [before] = await world.users();
    const browser = world.browser();
    expect((await world.accept(await world.invite(), browser)).status).toBe(200);
    const [user, ...others] = await world.users();
    expect([others, user?.id]).toEqual([[], before?.id]);
    expect(user).toMatchObject({ email: INVITED, role: "admin", name: "Ada" });
    expect(Boolean(user?.emailVerified)).toBe(true);
    expect(await world.whoIs(browser, world.tenant)).toMatchObject({ id: user?.id });
    expect((await world.directory.get(world.resource)).data.active).toBe(true);
    await world.directory.patch(world.resource, "active", false);
    expect(await world.whoIs(browser, world.tenant)).toBeNull();
    expect((await world.directory.delete(world.resource)).status).toBe(204);
    expect(await world.users()).toEqual([]);
  });

  it.each([false, true])(
    "threat: keeps no phone number and no cookie of the one who had it before, cached: %s",
    async (enabled) => {
      const cookieCache = { enabled, maxAge: 3600 };
      const world = await createDirectoryWorld({ session: { cookieCache } });
      const { tenant, directory, resource } = world;
      const addressOf = (value: string) => [{ value, primary: true }];
      await directory.patch(resource, "emails", addressOf("eve@example.com"));
      const eve = world.at(tenant);
      await eve.post("/sign-in/magic-link", { email: "eve@example.com" });
      await eve.get(world.lastMail("link").url);
      const phone = { phoneNumber: "+15551234567" };
      const verifyPhone = async (browser: Browser, more: object = {}) => {
        await browser.post("/phone-number/send-otp", phone);
        const { code } = world.lastMail("phone");
        await browser.post("/phone-number/verify", { ...phone, code, ...more });
        return world.whoIs(browser, tenant);
      };
      await verifyPhone(eve, { updatePhoneNumber: true });
      const byPhone = world.at(tenant);
      expect(await verifyPhone(byPhone)).toMatchObject({ email: "eve@example.com" });
      // The directory gives the user to Ada.
      await directory.patch(resource, "emails", addressOf(INVITED));
      const ada = world.browser();
      expect((await world.accept(await world.invite(), ada)).status).toBe(200);
      // Ada's own request must not vouch for the cookies of others.
      const whoIsAda = () => world.whoIs(ada, tenant);
      expect(await whoIsAda()).toMatchObject({ email: INVITED });
      expect([await world.whoIs(eve), await world.whoIs(byPhone)]).toEqual([null, null]);
      expect(outcome(await eve.post("/update-user", { name: "Eve" }))[0]).toBe(401);
      expect(await verifyPhone(world.at(tenant))).toBeNull();
      expect(await whoIsAda()).toMatchObject({ email: INVITED });
    },
  );

  it("a user it has deactivated is not admitted", async () => {
    const world = await createDirectoryWorld();
    const token = await world.invite();
    await world.directory.patch(world.resource, "active", false);
    expect(outcome(await world.accept(token))).toEqual(TAKEN);
    await expect(world.invite()).rejects.toMatchObject({ status: "CONFLICT" });
    await world.directory.patch(world.resource, "active", true);
    expect((await world.accept(token)).status).toBe(200);
  });

  it("who has signed in already is a user like any other", async () => {
    const world = await createDirectoryWorld();
    const token = await world.invite();
    const [user] = await world.users();
    await runInTenant(world.tenant, () =>
      world.context.internalAdapter.createAccount({
        userId: String(user?.id),
        providerId: "sso",
        accountId: "x",
      }),
    );
    expect(outcome(await world.accept(token))).toEqual(TAKEN);
    expect((await world.users())[0]).toMatchObject({ id: user?.id, role: "user" });
  });
});

const CROWD = everyCase ? 30 : 10;

describe.each(databases)("threat: races, on %s", (database) => {
  it("acceptances and an attacker's sign-ups at once: one acceptance, one user, no other way in", async () => {
    const app = await createInviting({ database });
    for (let round = 0; round < 3; round++) {
      const tenant = await openTenant(app);
      const { token } = await app.invite(tenant, INVITED, { role: "admin" });
      const attackers: Browser[] = [];
      const answers = await Promise.all(
        Array.from({ length: CROWD }, async (_, index) => {
          if (index % 2) return app.accept(token, { password: NEW_PASSWORD });
          const browser = app.at(tenant);
          attackers.push(browser);
          const body = { name: "Mallory", email: INVITED, password: PASSWORD };
          await browser.post("/sign-up/email", body);
          return undefined;
        }),
      );
      const accepted = answers.filter((answer) => answer?.status === 200);
      expect(accepted).toHaveLength(1);
      const user = await userIn(app, tenant);
      expect(user).toMatchObject({ id: accepted[0]?.data.user.id, role: "admin", name: "Ada" });
      expect(await app.statusOf(tenant)).toEqual(["accepted"]);
      for (const browser of attackers) {
        expect((await app.whoIs(browser))?.id).not.toBe(user?.id);
      }
      expect(outcome(await app.signIn(tenant, INVITED))).toEqual(SIGN_IN);
    }
  });

  it("an attacker who signs up in the same instant does not stop the acceptance", async () => {
    const app = await createInviting({ database });
    const statuses: number[] = [];
    for (let round = 0; round < CROWD; round++) {
      const tenant = await openTenant(app);
      const { token } = await app.invite(tenant);
      const body = { name: "Mallory", email: INVITED, password: PASSWORD };
      const [accepted] = await Promise.all([
        app.accept(token),
        ...Array.from({ length: 4 }, () => app.at(tenant).post("/sign-up/email", body)),
      ]);
      statuses.push(accepted.status);
    }
    expect(statuses).toEqual(statuses.map(() => 200));
  });
});
