import { describe, expect, it } from "vitest";
import { OPENER, type Opener } from "../../src/border/trusted";
import { runInTenant, type TenantPolicy } from "../../src/index";
import { PASSWORD } from "../support/instance";
import { codeOf, createWays, STORES } from "./ways-in";

const REFUSALS: [code: string, policy: TenantPolicy][] = [
  ["SIGN_UP_CLOSED", { signUp: "closed" }],
  ["INVITATION_REQUIRED", { signUp: "invited" }],
  ["EMAIL_DOMAIN_NOT_ALLOWED", { emailDomains: ["acme.com"] }],
];

const UNKNOWN = ["createUser", "createOAuthUser", "adapter"];
const person = (email: string) => ({ name: "New", email, password: PASSWORD });

describe.each(STORES)("R13: users in %s", (store) => {
  it.each(REFUSALS)("%s, whichever endpoint makes the user", async (code, policy) => {
    const { ways, at, setPolicy, count } = await createWays(store);
    const users = await count("user");
    for (const { name, makesUser, run } of ways) {
      await setPolicy(null);
      if (!makesUser) continue;
      const browser = at();
      const answer = await run(browser, () => setPolicy(policy));
      expect([name, codeOf(answer)]).toEqual([name, code]);
      expect([name, await count("user")]).toEqual([name, users]);
      browser.keepCookies(answer.headers);
      expect((await browser.get("/get-session")).data).toBeNull();
    }
    await setPolicy(policy);
    for (const how of UNKNOWN) {
      const answer = await at().post(`/unknown/user?how=${how}`);
      expect([how, answer.status, answer.code]).toEqual([how, 403, code]);
    }
    expect(await count("user")).toBe(users);
  });

  it("whoever is there already signs in as before", async () => {
    const { ways, at, setPolicy } = await createWays(store);
    await setPolicy({ signUp: "closed", emailDomains: ["acme.com"] });
    for (const { name, makesUser, run } of ways.filter(({ makesUser }) => !makesUser)) {
      const answer = await run(at());
      expect([name, makesUser, codeOf(answer), answer.status]).toEqual([
        name,
        false,
        undefined,
        200,
      ]);
    }
  });
});

describe("R13: who still makes users", () => {
  const CLOSED: TenantPolicy = { signUp: "closed", emailDomains: ["acme.com"] };
  const NEW = { name: "New", email: "new@elsewhere.com", password: PASSWORD };

  it("operators, the tenant's own administrators and the server's own code", async () => {
    const world = await createWays("the database");
    const { at, setPolicy, tenantId, count, api, person: own } = world;
    await setPolicy(CLOSED);
    const users = await count("user");
    const operator = (await world.operator()).browser.fork({ "x-tenant-id": tenantId });
    const made = await operator.post("/admin/create-user", NEW);
    expect([made.status, made.code]).toEqual([200, undefined]);
    await world.database.query('update "user" set role = ? where id = ?', ["admin", own.id]);
    const byOwn = await own.browser.post("/admin/create-user", {
      ...NEW,
      email: "b@elsewhere.com",
    });
    expect([byOwn.status, byOwn.code]).toEqual([200, undefined]);
    await runInTenant(tenantId, () => api.signUpEmail({ body: { ...NEW, email: "c@else.com" } }));
    await api.signUpEmailTenant({ body: { ...NEW, email: "d@else.com", tenantId } });
    const context = await world.auth.$context;
    await runInTenant(tenantId, () =>
      context.internalAdapter.createUser(
        { email: "e@else.com", name: "E", emailVerified: false },
        { method: "other" },
      ),
    );
    expect(await count("user")).toBe(users + 5);
    // A call for somebody who has sent a request is that request's.
    const headers = new Headers({ "x-tenant-id": tenantId });
    const call = api.signUpEmail({ body: { ...NEW, email: "f@else.com" }, headers });
    await expect(call).rejects.toMatchObject({ body: { code: "SIGN_UP_CLOSED" } });
    const nobody = await at().post("/admin/create-user", { ...NEW, email: "g@else.com" });
    expect(nobody.status).toBe(401);
    expect(await count("user")).toBe(users + 5);
  });

  it('an opener, where the policy says "invited", in the same transaction', async () => {
    const accepted: unknown[] = [];
    const opener: Opener = async (_, { email }) =>
      email === "invited@example.com"
        ? { data: { name: "Guest" }, accept: async (user: object) => void accepted.push(user) }
        : undefined;
    const {
      at,
      setPolicy,
      count,
      person: known,
    } = await createWays("the database", {
      arrange: (ours, others) => [ours, ...others, { id: "invites", [OPENER]: opener } as never],
    });
    await setPolicy({ signUp: "invited" });
    const users = await count("user");
    const refused = await at().post("/sign-up/email", person("other@example.com"));
    expect([refused.status, refused.code]).toEqual([403, "INVITATION_REQUIRED"]);
    const taken = await at().post("/sign-up/email", person(known.email));
    expect([taken.status, taken.code]).toEqual([403, "INVITATION_REQUIRED"]);
    const answer = await at().post("/sign-up/email", person("Invited@example.com"));
    expect([answer.status, answer.data.user]).toMatchObject([200, { name: "Guest" }]);
    expect(accepted).toMatchObject([{ email: "invited@example.com", id: expect.any(String) }]);
    expect(await count("user")).toBe(users + 1);
    await setPolicy({ signUp: "closed" });
    expect((await at().post("/sign-up/email", person("invited@example.com"))).code).toBe(
      "SIGN_UP_CLOSED",
    );
  });
});

describe("R13: the answer tells nothing about who exists", () => {
  const SETTINGS = {
    "signed in at once": {},
    "verification required": { requireEmailVerification: true },
    "not signed in": { autoSignIn: false },
  };

  it.each(Object.entries(SETTINGS))("%s", async (_, settings) => {
    const emailAndPassword = { enabled: true, ...settings };
    const { at, setPolicy, settle, count } = await createWays("the database", {
      auth: { emailAndPassword },
    });
    const taken = (await settle()).email;
    const users = await count("user");
    for (const [code, policy] of REFUSALS) {
      await setPolicy(policy);
      for (const path of ["/sign-up/email", "/tenant/sign-up/email"]) {
        const answers = [];
        for (const email of [taken, taken.toUpperCase(), "free@example.com"]) {
          const { status, data } = await at().post(path, person(email));
          answers.push({ status, data });
        }
        expect(answers[0]).toMatchObject({ status: 403, data: { code } });
        expect(answers[1]).toEqual(answers[0]);
        expect(answers[2]).toEqual(answers[0]);
      }
    }
    expect(await count("user")).toBe(users);
  });

  it("also where the session of the request says which tenant it is", async () => {
    const {
      browser: signedIn,
      person: known,
      setPolicy,
    } = await createWays("the database").then((world) => ({
      ...world,
      browser: world.person.browser.fork({}),
    }));
    await setPolicy({ signUp: "closed" });
    for (const email of [known.email, "free@example.com"]) {
      const { status, code } = await signedIn.post("/sign-up/email", person(email));
      expect([status, code]).toEqual([403, "SIGN_UP_CLOSED"]);
    }
  });
});

describe("an address of emailDomains counts once it is verified", () => {
  const ACME: TenantPolicy = { emailDomains: ["acme.com"] };

  it("a sign-up gets the mail and the answers of requireEmailVerification", async () => {
    const { at, setPolicy, mails, settle, count } = await createWays("the database");
    await settle();
    await setPolicy(ACME);
    const browser = at();
    const answer = await browser.post("/sign-up/email", person("al@acme.com"));
    expect([answer.status, answer.data]).toMatchObject([
      200,
      { token: null, user: { email: "al@acme.com", emailVerified: false } },
    ]);
    const users = await count("user");
    const again = await at().post("/sign-up/email", person("Al@Acme.com"));
    expect([again.status, Object.keys(again.data)]).toEqual([200, Object.keys(answer.data)]);
    expect(await count("user")).toBe(users);
    const early = await browser.post("/sign-in/email", person("al@acme.com"));
    expect([early.status, early.code]).toEqual([403, "EMAIL_NOT_VERIFIED"]);
    const wrong = await browser.post("/sign-in/email", { email: "al@acme.com", password: "wrong" });
    expect([wrong.status, wrong.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
    const query = { token: mails.get("verification") ?? "" };
    expect((await browser.get("/verify-email", { query })).status).toBe(200);
    expect((await browser.get<{ user: object }>("/get-session")).data?.user).toMatchObject({
      email: "al@acme.com",
    });
    expect((await at().post("/sign-in/email", person("al@acme.com"))).status).toBe(200);
  });

  it.each(STORES)("no way leads past it: sessions in %s", async (store) => {
    const { at, setPolicy, googleIdToken, tenantId, api, settle } = await createWays(store);
    const body = { ...person("al@acme.com"), username: "al_acme", tenantId };
    await setPolicy(ACME);
    await at().post("/sign-up/email", body);
    const username = await at().post("/sign-in/username", { ...body, username: "al_acme" });
    expect([username.status, username.code]).toEqual([403, "EMAIL_NOT_VERIFIED"]);
    const unknown = await at().post("/unknown/session?email=al@acme.com");
    expect([unknown.status, unknown.code]).toEqual([403, "EMAIL_NOT_VERIFIED"]);
    const claims = { aud: "global-client", sub: "bo", email: "bo@acme.com", email_verified: false };
    for (const attempt of ["new", "again"]) {
      const idToken = { token: googleIdToken(claims) };
      const social = await at().post("/sign-in/social", { provider: "google", idToken });
      expect([attempt, social.status, social.code]).toEqual([attempt, 403, "EMAIL_NOT_VERIFIED"]);
    }
    // The provider has verified the address.
    const verified = { ...claims, sub: "cy", email: "cy@acme.com", email_verified: true };
    const token = googleIdToken(verified);
    const cy = await at().post("/sign-in/social", { provider: "google", idToken: { token } });
    expect(cy.status).toBe(200);
    // Lookalikes are other domains.
    for (const email of [
      "x@notacme.com",
      "x@sub.acme.com",
      "x@acme.com.evil.com",
      "acme.com@x.com",
    ]) {
      const { code } = await at().post("/sign-up/email", person(email));
      expect([email, code]).toEqual([email, "EMAIL_DOMAIN_NOT_ALLOWED"]);
    }
    await api.updateTenant({ body: { tenantId, policy: null } });
    expect((await settle()).id).toBeTruthy();
  });
});
