import { createAuthEndpoint, createAuthMiddleware, getSessionFromCtx } from "better-auth/api";
import { symmetricEncrypt } from "better-auth/crypto";
import { magicLink } from "better-auth/plugins";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { INVITATION_HEADER } from "../../../src/features/invitations/error-codes";
import { tenantInvitations } from "../../../src/features/invitations/index";
import { runInTenant, type TenantPolicy } from "../../../src/index";
import { createDatabase, databases } from "../../support/database";
import { PASSWORD } from "../../support/instance";
import { everyCase } from "../../support/matrix";
import { outcome, SUBDOMAINS } from "../../support/world";
import { createDomains, OWN_HOSTS, SUBDOMAINS_AND_DOMAINS } from "../domains/world";
import { createInviting, INVITED, shareInviting } from "./world";

const NOT_FOUND = [404, "INVITATION_NOT_FOUND"];
const body = { name: "Ada", email: INVITED, password: PASSWORD };

it.each([
  ["verification required", { requireEmailVerification: true }],
  ["no sign-in after sign-up", { autoSignIn: false }],
])("where better-auth hides that an address is taken: %s", async (name, settings) => {
  const app = await createInviting({
    auth: {
      emailAndPassword: { enabled: true, ...settings },
      emailVerification: { sendOnSignUp: true },
    },
  });
  // A token that was mailed proves the address: no second mail.
  const mailed = await app.accept((await app.invite("globex")).token);
  expect(mailed.data.user).toMatchObject({ email: INVITED, emailVerified: true });
  expect(mailed.data.session === null).toBe(name.startsWith("no sign-in"));
  expect(app.mails).toEqual([]);
  // One that was not proves nothing, and better-auth goes on as always.
  const sent = await app.invite("acme", "grace@example.com", { send: false });
  expect(app.sent).toHaveLength(1);
  const { data } = await app.accept(sent.token);
  expect(data).toMatchObject({ token: null, user: { emailVerified: false } });
  expect(app.mails).toMatchObject([{ kind: "verification", to: "grace@example.com" }]);
  expect(await app.statusOf("acme")).toEqual(["accepted"]);
  // A sign-up whose answer was made up accepts nothing.
  const home = await app.home();
  const { token } = await app.invite(home, INVITED, { send: false });
  await runInTenant(home, () => app.api.signUpEmail({ body }));
  const made = await app.accept(token);
  expect(made.data).toMatchObject({ token: null, user: { email: INVITED } });
  expect([await app.users(home), await app.statusOf(home)]).toEqual([1, ["pending"]]);
  const headers = { [INVITATION_HEADER]: token };
  const eve = { ...body, email: "eve@example.com" };
  const other = await app.at(home).post("/sign-up/email", eve, { headers });
  expect(outcome(other)).toEqual([403, "INVITATION_EMAIL_MISMATCH"]);
});

const madeUp = ({ coreFields, id }: { coreFields: object; id: string }) => ({
  ...coreFields,
  ...{ role: "user", banned: false, banReason: null, banExpires: null },
  id,
});

it.each<[string, settings: object, policy: TenantPolicy, send: boolean]>([
  ["verification required", { requireEmailVerification: true }, {}, false],
  ["made up by the application", { autoSignIn: false, customSyntheticUser: madeUp }, {}, true],
  ["a policy for domains", {}, { emailDomains: ["example.com"] }, false],
  ["no sign-in after sign-up", { autoSignIn: false }, {}, false],
  ["no sign-in after sign-up, by mail", { autoSignIn: false }, {}, true],
])("threat: accounts can be probed by an invitation: %s", async (_, settings, policy, send) => {
  const app = await createInviting({ auth: { emailAndPassword: { enabled: true, ...settings } } });
  const invite = (email: string) => app.invite("acme", email, { role: "admin", send });
  const free = await invite("free@example.com");
  const taken = await invite(INVITED);
  await runInTenant(app.ids.acme, () => app.api.signUpEmail({ body }));
  await app.verify(INVITED);
  await app.setPolicy("acme", { signUp: "invited", ...policy });
  const { status, data } = await app.accept(free.token);
  expect([status, data]).toMatchObject([200, { user: { role: "admin", emailVerified: send } }]);
  const [id, createdAt, updatedAt] = [1, 2, 3].map(() => expect.any(String));
  const user = { ...data.user, id, email: INVITED, createdAt, updatedAt };
  const made = await app.accept(taken.token);
  expect([made.status, made.data]).toEqual([200, { ...data, user }]);
  expect(Object.keys(made.data.user)).toEqual(Object.keys(data.user));
  expect(await app.users("acme")).toBe(1);
});

it("R12: a plugin's own sign-up is the one that accepts", async () => {
  const signUpEmail = createAuthEndpoint("/sign-up/email", { method: "POST" }, async (ctx) => {
    throw ctx.error("FORBIDDEN", { code: "NOT_APPROVED" });
  });
  const app = await createInviting({ plugins: [{ id: "approval", endpoints: { signUpEmail } }] });
  const { token } = await app.invite("acme");
  expect(outcome(await app.accept(token))).toEqual([403, "NOT_APPROVED"]);
  expect([await app.users("acme"), await app.statusOf("acme")]).toEqual([0, ["pending"]]);
});

it("a user who is signed in elsewhere accepts, also where a hook has read their session", async () => {
  const read = createAuthMiddleware(async (ctx) => void (await getSessionFromCtx(ctx)));
  const app = await createInviting({ auth: { hooks: { before: read } } });
  const browser = app.browser();
  await app.accept((await app.invite("acme")).token, {}, browser);
  expect(await app.whoIs(browser, "acme")).toMatchObject({ tenantId: app.ids.acme });
  const { token } = await app.invite("globex");
  expect((await app.open(token, browser)).status).toBe(200);
  // What is named still counts.
  expect(outcome(await app.open(token, app.at("acme", browser)))).toEqual(NOT_FOUND);
  const { data } = await app.accept(token, {}, browser);
  expect(data.user.tenantId).toBe(app.ids.globex);
  expect(await app.whoIs(browser, "globex")).toMatchObject({ tenantId: app.ids.globex });
});

describe("R12: what the application says about sign-up counts for accepting", () => {
  it("disabled", async () => {
    const app = await createInviting({ auth: { disabledPaths: ["/sign-up/email"] } });
    const { token } = await app.invite("acme");
    const { data } = await app.open(token);
    expect(data.emailAndPassword).toEqual({ enabled: true, signUp: false });
    expect((await app.accept(token)).status).toBe(404);
    expect(await app.statusOf("acme")).toEqual(["pending"]);
  });

  const one = { "/sign-up/email": { window: 60, max: 1 } };
  const two = { "/tenant/invitation/accept": { window: 60, max: 2 } };
  it.each([
    ["a rule for sign-up", one, [404, 429]],
    ["a rule of its own", { ...one, ...two }, [404, 404, 429]],
    ["no rule", {}, [404, 404, 404, 429]],
  ])("limited by %s", async (name, customRules, statuses) => {
    const app = await createInviting({ auth: { rateLimit: { enabled: true, customRules } } });
    // better-auth counts in the process: each case comes from an address of its own.
    const browser = app.browser({ "x-forwarded-for": `10.9.8.${name.length}` });
    const answers: number[] = [];
    for (const _ of statuses) answers.push((await app.accept("x", {}, browser)).status);
    expect(answers).toEqual(statuses);
  });

  it("guarded and answered by a plugin's middleware", async () => {
    const guarded: string[] = [];
    let refuses = true;
    const guard = (path: string) => ({
      path,
      middleware: createAuthMiddleware(async () => {
        guarded.push(path);
        // Not the one that guards the acceptance as well: the router asks that itself.
        if (!refuses || path === "/**") return undefined;
        return new Response("not now", { status: 418 });
      }),
    });
    const middlewares = ["/sign-up/*", "/sign-up/email", "/**"].map(guard) as never;
    const app = await createInviting({ plugins: [{ id: "guard", middlewares }] });
    const { token } = await app.invite("acme");
    expect((await app.accept(token)).status).toBe(418);
    expect(await app.statusOf("acme")).toEqual(["pending"]);
    // The server's own code is not guarded, here as there.
    const other = await app.invite("globex");
    const { user } = await app.api.acceptTenantInvitation({ body: { ...body, ...other } });
    expect(user.tenantId).toBe(app.ids.globex);
    [guarded.length, refuses] = [0, false];
    expect((await app.accept(token)).status).toBe(200);
    expect(guarded.sort()).toEqual(["/**", "/sign-up/*", "/sign-up/email"]);
  });
});

it("without transactions, a user who came by an invitation that was revoked midway is deleted", async () => {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  database.option.transaction = false;
  let revoke = async () => {};
  const before = async () => await revoke();
  const app = await createInviting({
    database,
    auth: { databaseHooks: { user: { create: { before } } } },
  });
  const { id, token } = await app.invite("acme");
  revoke = async () => {
    await database.query(`update "tenantInvitation" set status = 'revoked' where id = ?`, [id]);
  };
  expect(outcome(await app.accept(token))).toEqual(NOT_FOUND);
  expect(await app.users("acme")).toBe(0);
});

const CROWD = everyCase ? 50 : 20;
const times = <T>(run: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: CROWD }, (_, index) => run(index)));

describe.each(databases)("threat: races, on %s", (database) => {
  it("many acceptances of one token at once, by the link and at sign-up: one user", async () => {
    const app = await createInviting({ database });
    const { token } = await app.invite("acme");
    const headers = { [INVITATION_HEADER]: token };
    const answers = await times<{ status: number }>((index) =>
      index % 2 ? app.accept(token) : app.at("acme").post("/sign-up/email", body, { headers }),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect([await app.users("acme"), await app.rows("session")]).toEqual([1, 1]);
    expect(await app.statusOf("acme")).toEqual(["accepted"]);
    expect(app.events.filter(({ type }) => type === "invitation:accepted")).toHaveLength(1);
    const second = await app.invite("globex");
    const accepted = (await times(() => app.accept(second.token))).map(outcome);
    const late = accepted.filter(([status]) => status !== 200);
    expect(late).toEqual(accepted.slice(1).map(() => [409, "INVITATION_ALREADY_ACCEPTED"]));
  });

  it("many invitations of one address at once: one that is pending, one link that is good", async () => {
    const app = await createInviting({ database });
    const operator = await app.operator();
    const tenantId = app.ids.acme;
    const sent = await times(() =>
      operator.post<{ id: string }>("/tenant/invitation/create", { tenantId, email: INVITED }),
    );
    const late = sent.map(outcome).filter(([status]) => status !== 200);
    expect(late).toEqual(sent.slice(1).map(() => [429, "INVITATION_RECENTLY_SENT"]));
    // The server's own code sends as much as it likes.
    await times(() => app.invite("acme"));
    expect(await app.statusOf("acme")).toEqual(["pending"]);
    const links = await Promise.all(app.sent.map(({ token }) => app.open(token)));
    expect(links).toHaveLength(CROWD + 1);
    expect(links.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it("accepted and revoked at once: a user with an accepted one, or no user", async () => {
    const app = await createInviting({ database });
    const operator = await app.operator();
    for (let round = 0; round < 5; round++) {
      const email = `person-${round}@example.com`;
      const { id, token } = await app.invite("acme", email);
      const answers = await Promise.all([
        app.accept(token),
        operator.post("/tenant/invitation/revoke", { id }),
      ]);
      const [accepted, revoked] = answers.map(({ status }) => status === 200);
      expect(accepted).not.toBe(revoked);
      expect(await app.users("acme", email)).toBe(accepted ? 1 : 0);
    }
  });
});

describe("threat: an invitation as a key", () => {
  const app = shareInviting({
    plugins: (send) => [magicLink({ sendMagicLink: send("link") })],
    auth: { socialProviders: { google: { clientId: "id", clientSecret: "secret" } } },
  });

  it("of A at B: nothing, by link and by header", async () => {
    const [a, b] = [await app.home(), await app.home()];
    const { token } = await app.invite(a);
    const headers = { [INVITATION_HEADER]: token };
    const atB = () => app.at(b);
    const inB = { query: { tenantId: b } };
    const answers = [
      await app.accept(token, {}, atB()),
      await app.accept(token, { tenantId: b }),
      await app.browser().post("/tenant/invitation/accept", { ...body, token }, inB),
      await app.open(token, atB()),
      await atB().post("/sign-up/email", body, { headers }),
      await atB().post("/sign-in/social", { provider: "google" }, { headers }),
    ];
    expect(answers.map(outcome)).toEqual(answers.map(() => NOT_FOUND));
    expect((await app.open(token, app.at(a))).status).toBe(200);
    expect([await app.users(a), await app.users(b)]).toEqual([0, 0]);
  });

  it("on the platform: it leads into its tenant, and creates no user there", async () => {
    const a = await app.home();
    const { token } = await app.invite(a);
    const headers = { [INVITATION_HEADER]: token };
    const signUp = await app.browser().post("/sign-up/email", body, { headers });
    expect(outcome(signUp)).toEqual([400, "TENANT_ID_REQUIRED"]);
    // Also in the browser of somebody of the platform.
    const accepted = await app.accept(token, {}, (await app.as("jane", "platform")).fork());
    expect(accepted.data.user.tenantId).toBe(a);
    expect(await app.users("platform")).toBe(0);
  });

  it("altered anywhere, or another sealed value: nothing; and it is no other token", async () => {
    const a = await app.home();
    const { token, id } = await app.invite(a);
    for (let at = 0; at < token.length; at += Math.ceil(token.length / 15)) {
      const other = token[at] === "a" ? "b" : "a";
      const altered = token.slice(0, at) + other + token.slice(at + 1);
      expect([at, ...outcome(await app.open(altered))]).toEqual([at, ...NOT_FOUND]);
    }
    await app.at(a).post("/sign-in/magic-link", { email: INVITED, callbackURL: "/in" });
    const link = app.lastMail("link").token;
    const sealed = { token: `${id}.x`, tenantId: a, path: "/tenant/invitation" };
    const key = app.context.secretConfig;
    const cipher = await symmetricEncrypt({ key, data: JSON.stringify(sealed) });
    const forged = `tenant~${cipher.replaceAll("$", "~")}`;
    for (const wrong of [`${token}00`, token.slice(0, -2), "tenant~", "x", link, forged, 1, {}]) {
      expect(outcome(await app.accept(wrong))).toEqual(NOT_FOUND);
    }
    const clicked = await app.browser().get("/magic-link/verify", { query: { token } });
    expect(clicked.location).toContain("INVALID_TOKEN");
    expect(await app.users(a)).toBe(0);
  });

  it("for another address: 403 for every caller; an address alone admits no user", async () => {
    const a = await app.home();
    const { token } = await app.invite(a);
    const headers = { [INVITATION_HEADER]: token };
    const eve = { ...body, email: "eve@example.com" };
    for (const answer of [
      await app.accept(token, eve),
      await app.at(a).post("/sign-up/email", eve, { headers }),
    ]) {
      expect(outcome(answer)).toEqual([403, "INVITATION_EMAIL_MISMATCH"]);
    }
    const unproven = await app.at(a).post("/sign-up/email", body);
    expect(outcome(unproven)).toEqual([403, "INVITATION_REQUIRED"]);
    expect(await app.users(a)).toBe(0);
    const other = { ...body, email: INVITED.toUpperCase() };
    expect((await app.at(a).post("/sign-up/email", other, { headers })).status).toBe(200);
  });
});

it("R9: a link leads to the platform or to its tenant's own host, with one token in it", async () => {
  const app = await createInviting({
    hosts: SUBDOMAINS,
    auth: { trustedOrigins: ["http://*.example.com"] },
  });
  const operator = await app.as("admin", "platform");
  const person = { tenantId: app.ids.acme, email: INVITED, send: false };
  const invite = (redirectTo: string, headers: Record<string, string> = {}) => {
    const body = { ...person, redirectTo };
    return operator.post<{ url: string }>("/tenant/invitation/create", body, { headers });
  };
  const own = await invite("http://acme.example.com/join");
  expect(own.data.url).toMatch(/^http:\/\/acme\.example\.com\/join\?token=/);
  expect((await invite("http://example.com/join")).status).toBe(200);
  const other = await invite("http://globex.example.com/join");
  expect(outcome(other)).toEqual([403, "INVALID_REDIRECT_URL"]);
  // The tenant's own pages still do not act in the operator's name.
  const forged = await invite("/join", { origin: "http://acme.example.com" });
  expect(outcome(forged)).toEqual([403, "INVALID_ORIGIN"]);
  for (const page of ["/join?token=x", "/join?a=b&token", "/join?%74oken=x"]) {
    expect([page, ...outcome(await invite(page))]).toEqual([page, 400, "VALIDATION_ERROR"]);
  }
  const { data } = await invite("/join?tokens=x#here");
  expect(data.url).toMatch(/\/join\?tokens=x&token=tenant[^#]+#here$/);
  const { token } = await app.invite("acme");
  expect(outcome(await app.open(token, app.at("globex")))).toEqual(NOT_FOUND);
  for (const place of ["acme", "platform"]) {
    expect((await app.open(token, app.at(place))).status).toBe(200);
  }
});

it("R9: the user who accepts goes on at the platform or at the host of the invitation's tenant, from any page", async () => {
  const app = await createInviting({
    hosts: SUBDOMAINS,
    auth: { trustedOrigins: ["http://*.example.com"] },
    tenant: { tenantRoles: { admin: ["invitation:*"] } },
  });
  const accept = async (place: string, callbackURL: string, more: object = {}) => {
    const { token } = await app.invite("acme", `${crypto.randomUUID()}@example.com`);
    return outcome(await app.accept(token, { callbackURL, ...more }, app.at(place)));
  };
  for (const place of ["acme", "platform"]) {
    expect(await accept(place, "http://acme.example.com/in")).toEqual([200, undefined]);
    const foreign = await accept(place, "http://globex.example.com/in");
    expect(foreign).toEqual([403, "INVALID_CALLBACK_URL"]);
  }
  const { token } = await app.invite("globex");
  // The token of another tenant brings nobody there, whatever else is said.
  const named = { tenantId: app.ids.globex };
  expect((await accept("platform", "http://globex.example.com/in", named))[0]).not.toBe(200);
  const more = { token, tenantId: app.ids.acme };
  expect((await accept("platform", "http://acme.example.com/in", more))[0]).not.toBe(200);
  // Nor does it say where the links of a manager may lead.
  await app.setPolicy("acme", null);
  const admin = await app.as("admin", "acme");
  const link = { email: INVITED, redirectTo: "http://globex.example.com/join", token };
  const created = await admin.post("/tenant/invitation/create", link);
  expect(outcome(created)).toEqual([403, "INVALID_REDIRECT_URL"]);
});

it("R9: one that is sent again leads to no host that is another tenant's by now", async () => {
  const app = await createInviting({ hosts: SUBDOMAINS });
  const operator = await app.operator();
  const redirectTo = "http://acme.example.com/join";
  const { id, token } = await app.invite("acme", INVITED, { redirectTo });
  const again = async (path: string, body: object) =>
    outcome(await operator.post(`/tenant/invitation/${path}`, body));
  const person = { tenantId: app.ids.acme, email: INVITED };
  await app.aMinuteLater();
  expect(await again("resend", { id })).toEqual([200, undefined]);
  await app.aMinuteLater();
  const sent = app.sent.length;
  await app.change("acme", { slug: "acme-corp" });
  await app.change("globex", { slug: "acme" });
  for (const [path, body] of [
    ["resend", { id }],
    ["create", person],
    ["create", { ...person, send: false }],
  ] as const) {
    expect([path, ...(await again(path, body))]).toEqual([path, 403, "INVALID_REDIRECT_URL"]);
  }
  expect(app.sent).toHaveLength(sent);
  // The one that was sent stays good, and the address can be invited with another page.
  expect(outcome(await app.open(token))).toEqual(NOT_FOUND);
  expect((await app.open(app.sent.at(-1)?.token ?? "")).status).toBe(200);
  expect(await again("create", { ...person, redirectTo: "/join" })).toEqual([200, undefined]);
});

it("R9: one that is sent again leads to no domain that the tenant has lost", async () => {
  const sent: string[] = [];
  const world = await createDomains({
    auth: { baseURL: OWN_HOSTS },
    hosts: { names: SUBDOMAINS.names, resolveTenantId: SUBDOMAINS_AND_DOMAINS },
    tenant: { tenantRoles: { admin: ["invitation:*"] } },
    plugins: [tenantInvitations({ sendInvitationEmail: ({ url }) => void sent.push(url) })],
  });
  await world.own("acme", "login.acme.com");
  const admin = await world.as("admin", "acme");
  const there = world.atHost("login.acme.com");
  for (const [name, value] of admin.cookies) there.cookies.set(name, value);
  const redirectTo = "http://login.acme.com/join";
  const { data } = await there.post<{ id: string }>("/tenant/invitation/create", {
    email: INVITED,
    redirectTo,
  });
  let now = Date.now();
  const clock = vi.spyOn(Date, "now").mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  const again = async () => {
    now += 120_000;
    return outcome(await admin.post("/tenant/invitation/resend", { id: data.id }));
  };
  expect(await again()).toEqual([200, undefined]);
  expect(sent.map((url) => url.split("?")[0])).toEqual([redirectTo, redirectTo]);
  await world.remove("acme", "login.acme.com");
  expect(await again()).toEqual([403, "INVALID_REDIRECT_URL"]);
  expect(sent).toHaveLength(2);
});
