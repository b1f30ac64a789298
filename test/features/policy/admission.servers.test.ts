import { passkey } from "@better-auth/passkey";
import type { GenericEndpointContext } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { emailOTP, magicLink } from "better-auth/plugins";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isInDomains } from "../../../src/features/policy/email-domains";
import { runInTenant, type TenantPolicy } from "../../../src/index";
import { EMAIL_CHANGE_SIGNS_IN } from "../../support/differences";
import { PASSWORD, newcomer as person } from "../../support/instance";
import { combine, sample } from "../../support/matrix";
import { createSocialWorld } from "../../support/social";
import { STORES as ALL_STORES } from "../../support/stores";
import {
  createWorld,
  EMAIL,
  expectRefused,
  outcome,
  queryOf,
  type SessionAnswer,
} from "../../support/world";
import { codeOf, createWays, STORES, signInByWallet, wallets } from "./sign-ins";

const REFUSALS: [code: string, policy: TenantPolicy][] = [
  ["SIGN_UP_CLOSED", { signUp: "closed" }],
  ["INVITATION_REQUIRED", { signUp: "invited" }],
  ["EMAIL_DOMAIN_NOT_ALLOWED", { emailDomains: ["acme.com"] }],
];
const ACME: TenantPolicy = { emailDomains: ["acme.com"] };
const CLOSED: TenantPolicy = { signUp: "closed", ...ACME };

describe("R13: who becomes a user", () => {
  // The platform has no invitations.
  const onPlatform = REFUSALS.filter(([code]) => code !== "INVITATION_REQUIRED");
  const cases = [
    ...combine(REFUSALS, STORES, ["acme"] as const),
    ...combine(onPlatform, STORES, ["platform"] as const),
  ].map(([[code, policy], store, place]) => [code, store, place, policy] as const);
  it.each(cases)("%s, at every endpoint that creates a user in %s, at %s", async (...row) => {
    const [code, store, place, policy] = row;
    const { ways, visitor, setPolicy, people } = await createWays(store, { place });
    const before = await people();
    for (const { name, run } of ways.filter(({ makesUser }) => makesUser)) {
      await setPolicy(null);
      const browser = visitor();
      const answer = await run(browser, () => setPolicy(policy));
      expect([name, codeOf(answer), await people()]).toEqual([name, code, before]);
      browser.keepCookies(answer.headers);
      expect((await browser.get("/get-session")).data).toBeNull();
    }
    await setPolicy(policy);
    for (const how of ["createUser", "createOAuthUser", "adapter"]) {
      const answer = await visitor().post(`/unknown/user?how=${how}`);
      expect([how, ...outcome(answer)]).toEqual([how, 403, code]);
    }
    expect(await people()).toEqual(before);
    // Whoever is there already signs in as before.
    for (const { name, run } of ways.filter(({ makesUser }) => !makesUser)) {
      const answer = await run(visitor());
      expect([name, codeOf(answer), answer.status]).toEqual([name, undefined, 200]);
    }
  });

  it("users that operators, the tenant's administrators and the server's own code create", async () => {
    const world = await createWorld();
    const { at, api, ids } = world;
    const own = await world.join("acme", "admin");
    await world.change("acme", { policy: CLOSED });
    for (const admin of [at("acme", await world.operator()), own]) {
      const body = person(`${crypto.randomUUID()}@elsewhere.com`);
      expect(outcome(await admin.post("/admin/create-user", body))).toEqual([200, undefined]);
    }
    await runInTenant(ids.acme, () => api.signUpEmail({ body: person("c@else.com") }));
    await api.signUpEmailTenant({ body: { ...person("d@else.com"), tenantId: ids.acme } });
    const row = { email: "e@else.com", name: "E", emailVerified: false };
    await runInTenant(ids.acme, () =>
      world.context.internalAdapter.createUser(row, { method: "other" }),
    );
    expect(await world.rowsIn("acme", "user")).toHaveLength(6);
    // A call for somebody who has sent a request is that request's.
    const headers = new Headers(world.naming("acme"));
    const call = api.signUpEmail({ body: person("f@else.com"), headers });
    await expect(call).rejects.toMatchObject({ body: { code: "SIGN_UP_CLOSED" } });
    const nobody = await at("acme").post("/admin/create-user", person("g@else.com"));
    expect(nobody.status).toBe(401);
    expect(await world.rowsIn("acme", "user")).toHaveLength(6);
  });
});

it.each([{}, { requireEmailVerification: true }, { autoSignIn: false }])(
  "R13: the answer tells nothing about who exists, with %j",
  async (settings) => {
    const { at, change, ids, api, rows } = await createWorld({
      auth: { emailAndPassword: { enabled: true, ...settings } },
    });
    const taken = "taken@example.com";
    await api.signUpEmailTenant({ body: { ...person(taken), tenantId: ids.acme } });
    for (const [code, policy] of REFUSALS) {
      await change("acme", { policy });
      // In a job as well, which is the first to look at the tenant.
      const call = () => api.signUpEmail({ body: person(taken), headers: new Headers() });
      await expect(runInTenant(ids.acme, call)).rejects.toMatchObject({ body: { code } });
      const answers: object[] = [];
      for (const email of [taken, taken.toUpperCase(), "free@example.com"]) {
        const { status, data } = await at("acme").post("/sign-up/email", person(email));
        answers.push({ status, data });
      }
      expect(answers[0]).toMatchObject({ status: 403, data: { code } });
      expect(answers).toEqual(answers.map(() => answers[0]));
    }
    expect(await rows("user")).toBe(1);
    // Without a policy it is as the application has it.
    await change("acme", { policy: null });
    const { data } = await at("acme").post("/sign-up/email", person("free@example.com"));
    expect(data.token === null).toBe(Object.keys(settings).length > 0);
  },
);

it.each(["by its link", "at the tenant"])(
  "a magic link that the policy has come to forbid takes nothing away, %s",
  async (how) => {
    const world = await createWorld({
      plugins: (send) => [magicLink({ sendMagicLink: send("link") })],
    });
    const jane = await world.signUp("acme", EMAIL);
    await world.at("acme").post("/sign-in/magic-link", { email: EMAIL, callbackURL: "/in" });
    const { url } = world.lastMail("link");
    await world.change("acme", { policy: { methods: ["password"] } });
    const late = world.at(how === "by its link" ? "platform" : "acme");
    const { location } = await world.unchanged(() => late.get(url));
    expect(location).toBe("/in?error=SIGN_IN_METHOD_NOT_ALLOWED");
    expect(await world.whoIs(jane)).toMatchObject({ id: jane.id });
    expect((await world.signIn("acme", EMAIL)).status).toBe(200);
  },
);

it.each(["the session alone", "the server's code"])(
  "a code that the policy has come to forbid takes nothing away, where %s names the tenant",
  async (how) => {
    const world = await createWorld({
      plugins: (send) => [emailOTP({ sendVerificationOTP: send("code") })],
    });
    const jane = await world.signUp("acme", EMAIL);
    const ask = { email: EMAIL, type: "sign-in" as const };
    await world.at("acme").post("/email-otp/send-verification-otp", ask);
    const body = { email: EMAIL, otp: world.lastMail("code").code };
    await world.change("acme", { policy: { methods: ["password"] } });
    const refused = "SIGN_IN_METHOD_NOT_ALLOWED";
    if (how === "the session alone") {
      const unnamed = world.at("platform", jane);
      const paths = ["/email-otp/send-verification-otp", "/sign-in/email-otp"];
      for (const path of paths) {
        expectRefused(await unnamed.post(path, { ...ask, ...body }), 403, refused);
      }
    } else {
      const { signInEmailOTP } = world.api as never as {
        signInEmailOTP(call: object): Promise<void>;
      };
      const signIn = runInTenant(world.ids.acme, () => signInEmailOTP({ body }));
      await expect(signIn).rejects.toMatchObject({ body: { code: refused } });
    }
    expect(await world.whoIs(jane)).toMatchObject({ id: jane.id });
    expect((await world.signIn("acme", EMAIL)).status).toBe(200);
  },
);

it("a social sign-in that the policy has come to forbid links nothing and writes nothing", async () => {
  const world = await createSocialWorld({
    gitlab: { overrideUserInfoOnSignIn: true },
  });
  world.idp.addPerson("jane", { email: EMAIL });
  const { id } = await world.signUp("acme", EMAIL);
  await world.changeUser(id, { emailVerified: true });
  const begin = async (browser = world.at("acme"), path = "/sign-in/social") => {
    const body = { provider: "gitlab", callbackURL: "/in", errorCallbackURL: "/failed" };
    const { data } = await browser.post<{ url: string }>(path, body);
    return { browser, back: await world.idp.authorize(data.url, "jane") };
  };
  const { browser, back } = await begin();
  const linking = await begin((await world.signIn("acme", EMAIL)).person, "/link-social");
  await world.change("acme", { policy: { methods: ["password"] } });
  const stored = () => Promise.all(["user", "account"].map((table) => world.rowsIn("acme", table)));
  const before = await stored();
  const refused = await browser.get(back);
  expect(queryOf(refused.location)).toMatchObject({ error: "SIGN_IN_METHOD_NOT_ALLOWED" });
  expect(queryOf(refused.location)).toHaveProperty("error_description");
  expect(await stored()).toEqual(before);
  // Whoever is signed in may still link one.
  expect((await linking.browser.get(linking.back)).location).toBe("/in");
});

it.each([
  ["/sign-in/own", "SIGN_IN_METHOD_NOT_ALLOWED", 0],
  ["/import/own", undefined, 1],
])("a plugin's own %s leaves users behind as the policy says", async (path, code, made) => {
  const own = createAuthEndpoint(path, { method: "POST" }, async ({ context }) => {
    await context.internalAdapter.createUser(
      { name: "New", email: "new@example.com" },
      { method: "other" },
    );
    return {};
  });
  const world = await createWorld({ plugins: [{ id: "own", endpoints: { own } }] });
  await world.change("acme", { policy: { methods: ["password"] } });
  const before = await world.rowsIn("acme", "user");
  expect((await world.at("acme").post(path)).code).toBe(code);
  expect(await world.rowsIn("acme", "user")).toHaveLength(before.length + made);
});

// An identity provider may send any email address, and a database may cut off a text.
it.each([
  ["al@acme.com", true],
  ["Al.O'Neil+x@ACME.com", true],
  ["al@sub.acme.com", false],
  ["acme.com", false],
  ["@acme.com", false],
  ["al@else.com@acme.com", false],
  ["al@else.com\0@acme.com", false],
  ["al @acme.com", false],
  ["al@acme.com\n", false],
  [["al@acme.com"], false],
])("R13: %j is an address of acme.com: %s", (address, isOne) => {
  expect(isInDomains(["acme.com"], address)).toBe(isOne);
});

describe("an address of emailDomains counts once it is verified", () => {
  it("a sign-up gets the mail and the answers of requireEmailVerification", async () => {
    const world = await createWorld({
      auth: { emailVerification: { autoSignInAfterVerification: true } },
    });
    await world.change("acme", { policy: ACME });
    const browser = world.at("acme");
    const answer = await browser.post("/sign-up/email", person("al@acme.com"));
    const user = { email: "al@acme.com", emailVerified: false };
    expect([answer.status, answer.data]).toMatchObject([200, { token: null, user }]);
    const { token } = world.lastMail("verification");
    const again = await world.at("acme").post("/sign-up/email", person("Al@Acme.com"));
    expect([again.status, Object.keys(again.data)]).toEqual([200, Object.keys(answer.data)]);
    expect(await world.rowsIn("acme", "user")).toHaveLength(1);
    const signIn = async (password = PASSWORD) =>
      outcome(await browser.post("/sign-in/email", { email: "al@acme.com", password }));
    expect(await signIn()).toEqual([403, "EMAIL_NOT_VERIFIED"]);
    expect(await signIn("wrong")).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
    expect((await browser.get("/verify-email", { query: { token } })).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ email: "al@acme.com" });
    expect(await signIn()).toEqual([200, undefined]);
  });

  it("takeover: an attacker leaves no wallet behind for the owner of the address", async () => {
    const world = await createWorld({
      plugins: (send) => [
        magicLink({ sendMagicLink: send("magic") }),
        wallets({ anonymous: false }),
      ],
      tenant: { scopedModels: ["walletAddress"] },
    });
    await world.change("acme", { policy: ACME });
    const wallet = () =>
      signInByWallet(world.at("acme"), `0x${"1".repeat(40)}`, { email: "vip@acme.com" });
    expectRefused(await wallet(), 403, "EMAIL_DOMAIN_NOT_ALLOWED");
    expect(await world.rows("user")).toBe(0);
    const vip = world.at("acme");
    await vip.post("/sign-in/magic-link", { email: "vip@acme.com" });
    const { token } = world.lastMail("magic");
    await vip.get("/magic-link/verify", { query: { token } });
    expect(await world.whoIs(vip)).toMatchObject({ email: "vip@acme.com" });
    // And is told the same, now that the address is taken.
    expectRefused(await wallet(), 403, "EMAIL_DOMAIN_NOT_ALLOWED");
  });

  it("takeover: nor a passkey, for a user that the application creates when one is registered", async () => {
    const registration = {
      requireSession: false,
      resolveUser: async ({
        ctx,
        context,
      }: {
        ctx: GenericEndpointContext;
        context?: string | null;
      }) => {
        const row = { email: String(context), name: "New", emailVerified: false };
        const { id } = await ctx.context.internalAdapter.createUser(row, {
          method: "passkey",
        } as never);
        return { id, name: "New" };
      },
    };
    const world = await createWorld({
      plugins: [passkey({ rpID: "localhost", registration })],
      tenant: { scopedModels: ["passkey"] },
    });
    await world.change("acme", { policy: ACME });
    const query = { context: "vip@acme.com" };
    const answer = await world.at("acme").get("/passkey/generate-register-options", { query });
    expectRefused(answer, 403, "EMAIL_DOMAIN_NOT_ALLOWED");
    expect(await world.rows("user")).toBe(0);
    // Control: without domains it is as the application has it.
    await world.change("acme", { policy: null });
    expect(
      (await world.at("acme").get("/passkey/generate-register-options", { query })).status,
    ).toBe(200);
  });

  it.each(sample(STORES, 1))("no way leads past it: sessions in %s", async (store) => {
    const { visitor, setPolicy, googleIdToken, settle } = await createWays(store);
    await setPolicy(ACME);
    const al = { ...person("al@acme.com"), username: "al_acme" };
    await visitor().post("/sign-up/email", al);
    const social = (sub: string, email_verified: boolean) => {
      const claims = { aud: "global-client", sub, email: `${sub}@acme.com`, email_verified };
      const idToken = { token: googleIdToken(claims) };
      return visitor().post("/sign-in/social", { provider: "google", idToken });
    };
    const answers = [
      await visitor().post("/sign-in/username", al),
      await visitor().post("/unknown/session?email=al@acme.com"),
      await social("bo", false),
      await social("bo", false),
    ];
    expect(answers.map(outcome)).toEqual(answers.map(() => [403, "EMAIL_NOT_VERIFIED"]));
    // The provider has verified the address.
    expect((await social("cy", true)).status).toBe(200);
    for (const lookalike of ["x@notacme.com", "x@sub.acme.com", "acme.com@x.com"]) {
      const { code } = await visitor().post("/sign-up/email", person(lookalike));
      expect([lookalike, code]).toEqual([lookalike, "EMAIL_DOMAIN_NOT_ALLOWED"]);
    }
    await setPolicy(null);
    expect((await settle()).id).toBeTruthy();
  });
});

/** A plugin that changes users in every way there is. */
const writer = {
  id: "writer",
  endpoints: {
    write: createAuthEndpoint("/writer/write", { method: "POST" }, async (ctx) => {
      const { adapter, internalAdapter } = ctx.context;
      const { how, id, email } = ctx.query as Record<"how" | "id" | "email", string>;
      const call = { model: "user", where: [{ field: "id", value: id }], update: { email } };
      if (how === "internalAdapter") await internalAdapter.updateUser(id, { email });
      if (how === "update") await adapter.update(call);
      if (how === "updateMany") await adapter.updateMany(call);
      if (how === "transaction") await adapter.transaction((inner) => inner.update(call));
      return ctx.json({ ok: true });
    }),
  },
};

describe("a new address, where the policy names domains", () => {
  const changeEmail = {
    enabled: true,
    updateEmailWithoutVerification: true,
    sendChangeEmailConfirmation: undefined as never,
  };

  async function start() {
    const world = await createWorld({
      plugins: (send) => [
        emailOTP({ changeEmail: { enabled: true }, sendVerificationOTP: send("otp") }),
        writer,
      ],
      auth: { user: { changeEmail } },
    });
    /** Somebody who is there. No header is needed: the session says where. */
    const have = async (email: string, emailVerified: boolean) => {
      const person = await world.signUp("acme", email);
      await world.changeUser(person.id, { emailVerified });
      return { id: person.id, browser: world.at(null, person) };
    };
    const addressOf = async (id: string) => {
      const [row] = await world.database.query('select * from "user" where id = ?', [id]);
      return [row?.email, Boolean(row?.emailVerified)];
    };
    const setPolicy = (policy: TenantPolicy | null = ACME) => world.change("acme", { policy });
    return { ...world, have, addressOf, setPolicy };
  }

  it("has to be of one of them, and is refused alike whether it is taken or not", async () => {
    const { have, addressOf, setPolicy, mails } = await start();
    const people = [await have("al@acme.com", true), await have("bo@acme.com", false)];
    await have("taken@elsewhere.com", true);
    await setPolicy();
    for (const { id, browser } of people) {
      const before = await addressOf(id);
      for (const path of ["/change-email", "/email-otp/request-email-change"]) {
        for (const newEmail of ["free@elsewhere.com", "taken@elsewhere.com", "x@sub.acme.com"]) {
          const refused = [path, newEmail, 403, "EMAIL_DOMAIN_NOT_ALLOWED"];
          const answer = await browser.post(path, { newEmail });
          expect([path, newEmail, ...outcome(answer)]).toEqual(refused);
        }
      }
      expect(await addressOf(id)).toEqual(before);
    }
    expect(mails).toEqual([]);
  });

  it("has to be theirs before they have it", async () => {
    const { have, addressOf, setPolicy, lastMail } = await start();
    const { id, browser } = await have("al@elsewhere.com", false);
    await setPolicy();
    const asked = await browser.post("/change-email", { newEmail: "Boss@acme.com" });
    expect([asked.status, asked.data]).toEqual([200, { status: true }]);
    expect(await addressOf(id)).toEqual(["al@elsewhere.com", false]);
    const { token } = lastMail("verification");
    expect((await browser.get("/verify-email", { query: { token } })).status).toBe(200);
    expect(await addressOf(id)).toEqual(["boss@acme.com", true]);
    // Without domains it is as the application has it.
    await setPolicy(null);
    const other = await have("cy@elsewhere.com", false);
    await other.browser.post("/change-email", { newEmail: "cy@acme.com" });
    expect(await addressOf(other.id)).toEqual(["cy@acme.com", false]);
  });

  it("is not changed by what was mailed before, nor by a plugin that writes it", async () => {
    const { have, addressOf, setPolicy, lastMail } = await start();
    const { id, browser } = await have("al@acme.com", true);
    const newEmail = "al@elsewhere.com";
    await browser.post("/change-email", { newEmail });
    const query = { token: lastMail("verification").token };
    await browser.post("/email-otp/request-email-change", { newEmail });
    const { code: otp } = lastMail("otp");
    await setPolicy();
    const attempts = [
      await browser.get("/verify-email", { query }),
      await browser.post("/email-otp/change-email", { newEmail, otp }),
    ];
    for (const how of ["internalAdapter", "update", "updateMany", "transaction"]) {
      const path = `/writer/write?how=${how}&id=${id}&email=`;
      attempts.push(await browser.post(path + newEmail));
      const unverified = await browser.post(`${path}boss@acme.com`);
      expect([how, ...outcome(unverified)]).toEqual([how, 403, "EMAIL_NOT_VERIFIED"]);
      expect((await browser.post(`${path}al@acme.com`)).status).toBe(200);
    }
    const refused = [403, "EMAIL_DOMAIN_NOT_ALLOWED"];
    expect(attempts.map(outcome)).toEqual(attempts.map(() => refused));
    expect(await addressOf(id)).toEqual(["al@acme.com", true]);
  });

  it("is given by operators, the tenant's own administrators and the server's own code", async () => {
    const world = await start();
    const { id } = await world.have("al@acme.com", true);
    const admins = [await world.operator(), (await world.join("acme", "admin")).fork({})];
    await world.setPolicy();
    for (const [index, admin] of admins.entries()) {
      const email = `by-${index}@elsewhere.com`;
      const body = { userId: id, data: { email } };
      expect((await admin.post("/admin/update-user", body)).status).toBe(200);
      expect((await world.addressOf(id))[0]).toBe(email);
    }
    await world.changeUser(id, { email: "three@elsewhere.com" });
    expect((await world.addressOf(id))[0]).toBe("three@elsewhere.com");
  });
});

afterEach(() => vi.useRealTimers());

it("R14: the link of a new address would make a session, so it counts where they are signed in", async () => {
  const world = await createWorld({
    plugins: (send) => [magicLink({ sendMagicLink: send("link") })],
  });
  const jane = await world.signUp("acme");
  await world.changeUser(jane.id, { emailVerified: true });
  await world.change("acme", { policy: { methods: ["magic-link"] } });
  const callbackURL = "/done";
  await jane.post("/change-email", { newEmail: "new@example.com", callbackURL });
  const other = world.at(null);
  expect((await other.get(world.lastMail("change").url)).location).toBe("/done");
  const { url } = world.lastMail("verification");
  if (EMAIL_CHANGE_SIGNS_IN) {
    const refused = await world.unchanged(() => other.get(url));
    expect(refused.location).toBe("/done?error=SIGN_IN_METHOD_NOT_ALLOWED");
  }
  const clicks = EMAIL_CHANGE_SIGNS_IN ? world.at(null, jane) : other;
  expect((await clicks.get(url)).location).toBe("/done");
  expect(await world.whoIs(other)).toBeNull();
  expect(await world.rowsIn("acme", "user")).toMatchObject([{ email: "new@example.com" }]);
});

it("a password has the length that the policy says, wherever one is set", async () => {
  const world = await createWorld({
    plugins: (send) => [emailOTP({ sendVerificationOTP: send("code") })],
  });
  const { as, at, change, signIn, rowsIn, lastMail } = world;
  const [jane, boss] = [await as("jane", "acme"), await world.join("acme", "admin")];
  const operator = at("acme", await world.operator());
  await change("acme", { policy: { password: { minLength: 30 } } });
  const people = await rowsIn("acme", "user");
  const body = { name: "New", email: "new@example.com", password: PASSWORD };
  const set = { currentPassword: PASSWORD, newPassword: "short of thirty" };
  // Her session alone names the tenant, which better-auth does not ask for there.
  const unnamed = jane.fork({});
  await unnamed.post("/email-otp/request-password-reset", { email: EMAIL });
  const reset = { email: EMAIL, otp: lastMail("code").code, password: set.newPassword };
  const answers = [
    await unnamed.post("/email-otp/reset-password", reset),
    await at("acme").post("/sign-up/email", body),
    await jane.fork({}).post("/change-password", set),
    await boss.post("/admin/create-user", body),
    await operator.post("/admin/create-user", body),
  ];
  expect(answers.map(outcome)).toEqual(answers.map(() => [400, "PASSWORD_TOO_SHORT"]));
  expect(await rowsIn("acme", "user")).toEqual(people);
  // Whoever has a shorter one still signs in.
  expect((await signIn("acme")).status).toBe(200);
  const long = { ...body, password: "a password of more than thirty characters" };
  expect((await at("acme").post("/sign-up/email", long)).status).toBe(200);
});

it.each(sample(ALL_STORES, 5))(
  "a session ends when the policy says: in $name",
  async ({ session, ...store }) => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
    const world = await createWorld({
      store: { ...store, session: { updateAge: 60, ...session } },
    });
    await world.change("acme", { policy: { session: { expiresIn: 600 } } });
    const jane = await world.signUp("acme");
    const left = async (query = {}) => {
      const { data } = await jane.get<SessionAnswer | null>("/get-session", { query });
      return data && (new Date(data.session.expiresAt).getTime() - Date.now()) / 1000;
    };
    expect(await left()).toBeLessThanOrEqual(600);
    vi.setSystemTime(Date.now() + 300_000);
    expect(await left({ disableCookieCache: "true" })).toBe(600);
    expect(await left()).toBeLessThanOrEqual(600);
    vi.setSystemTime(Date.now() + 601_000);
    expect(await left()).toBeNull();
  },
);

it.each(sample(ALL_STORES, 3))(
  "a session from before the policy keeps its end, when it is only written anew: in $name",
  async (store) => {
    const world = await createWorld({ store });
    const jane = await world.signUp("acme");
    await world.change("acme", { policy: { session: { expiresIn: 600 } } });
    await jane.post("/update-user", { name: "Renamed" });
    await runInTenant(world.ids.acme, () =>
      world.context.internalAdapter.updateSession(jane.token, { userAgent: "another" }),
    );
    const query = { disableCookieCache: "true", disableRefresh: "true" };
    const { data } = await jane.get<SessionAnswer>("/get-session", { query });
    expect(new Date(data.session.expiresAt).getTime() - Date.now()).toBeGreaterThan(6e8);
  },
);
