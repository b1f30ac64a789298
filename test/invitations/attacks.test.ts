import { symmetricEncrypt } from "better-auth/crypto";
import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { bySubdomain, runInTenant } from "../../src/index";
import { INVITATION_HEADER } from "../../src/invitations/index";
import { PASSWORD } from "../support/instance";
import { createInviting, INVITED, outcome } from "./inviting";

const NOT_FOUND = [404, "INVITATION_NOT_FOUND"];
const REQUIRED = [403, "INVITATION_REQUIRED"];
const body = { name: "Eve", email: INVITED, password: PASSWORD };

describe("threat: an invitation as a key", () => {
  it("of A at B: nothing, by link and by header", async () => {
    const app = await createInviting();
    const { a, b } = app.ids;
    const { token } = await app.invite(a);
    const atB = app.browser({ "x-tenant-id": b });
    expect(outcome(await app.accept(token, {}, atB))).toEqual(NOT_FOUND);
    expect(outcome(await app.accept(token, { tenantId: b }))).toEqual(NOT_FOUND);
    for (const [browser, query] of [
      [atB, { token }],
      [app.browser(), { token, tenantId: b }],
    ] as const) {
      const opened = await browser.get("/tenant/invitation/get", { query });
      expect(outcome(opened)).toEqual(NOT_FOUND);
    }
    const named = await app.browser().get("/tenant/invitation/get", {
      query: { token, tenantId: a },
    });
    expect(named.status).toBe(200);
    const byQuery = await app.browser().post(
      "/tenant/invitation/accept",
      { ...body, token },
      {
        query: { tenantId: b },
      },
    );
    expect(outcome(byQuery)).toEqual(NOT_FOUND);
    const headers = { [INVITATION_HEADER]: token };
    // Whatever comes first refuses: the policy, or the token.
    const signUp = await atB.post("/sign-up/email", body, { headers });
    expect(outcome(signUp)).toEqual(NOT_FOUND);
    const social = await atB.post("/sign-in/social", { provider: "google" }, { headers });
    expect(outcome(social)).toEqual(NOT_FOUND);
    expect([await app.users(a), await app.users(b)]).toEqual([0, 0]);
    expect(await app.statusOf(a)).toEqual(["pending"]);
  });

  it("on the platform: it leads into its tenant, and makes nobody there", async () => {
    const app = await createInviting();
    const { token } = await app.invite(app.ids.a);
    const headers = { [INVITATION_HEADER]: token };
    const signUp = await app.browser().post("/sign-up/email", body, { headers });
    expect(outcome(signUp)).toEqual([400, "TENANT_ID_REQUIRED"]);
    // Also in the browser of somebody of the platform.
    const accepted = await app.accept(token, {}, app.operator.fork());
    expect(accepted.data.user.tenantId).toBe(app.ids.a);
    expect(await app.users("")).toBe(0);
  });

  it("at another tenant's host: nothing; at its own and the platform's it is good", async () => {
    const app = await createInviting({
      operator: false,
      tenant: { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
      auth: { baseURL: "http://example.com", trustedOrigins: ["http://*.example.com"] },
    });
    const { url = "" } = await app.api.createTenantInvitation({
      body: { tenantId: app.ids.a, email: INVITED, send: false },
    });
    const token = new URL(url).searchParams.get("token") ?? "";
    const at = (host: string) =>
      app.browser().get(`http://${host}/api/auth/tenant/invitation/get`, {
        query: { token },
        headers: { host },
      });
    expect(outcome(await at("bb.example.com"))).toEqual(NOT_FOUND);
    expect((await at("aa.example.com")).status).toBe(200);
    expect((await at("example.com")).status).toBe(200);
  });

  it("altered in any place: nothing", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    const { token } = await app.invite(a);
    const step = Math.max(1, Math.floor(token.length / 40));
    for (let at = 0; at < token.length; at += step) {
      const other = token[at] === "a" ? "b" : "a";
      const altered = token.slice(0, at) + other + token.slice(at + 1);
      const answer = await app.browser().get("/tenant/invitation/get", {
        query: { token: altered },
      });
      expect([at, ...outcome(answer)]).toEqual([at, ...NOT_FOUND]);
    }
    for (const other of [token.toUpperCase(), `${token}00`, token.slice(0, -2), "tenant~", "x"]) {
      expect(outcome(await app.accept(other))).toEqual(NOT_FOUND);
    }
    for (const wrong of [undefined, null, 1, {}, [token]]) {
      const answer = await app.browser().post("/tenant/invitation/accept", {
        ...body,
        token: wrong,
      });
      expect(outcome(answer)).toEqual(NOT_FOUND);
    }
    expect(await app.users(a)).toBe(0);
  });

  it("nothing else that is sealed or encrypted is one, and it is no other token", async () => {
    const links: string[] = [];
    const app = await createInviting({
      plugins: [magicLink({ sendMagicLink: ({ token }) => void links.push(token) })],
    });
    const { a } = app.ids;
    const { token, id } = await app.invite(a);
    await app
      .browser({ "x-tenant-id": a })
      .post("/sign-in/magic-link", { email: INVITED, callbackURL: "/in" });
    const data = JSON.stringify({
      token: `${id}.x`,
      tenantId: a,
      since: "1",
      path: "/tenant/invitation",
    });
    const key = app.context.secretConfig;
    const forged = `tenant~${(await symmetricEncrypt({ key, data })).replaceAll("$", "~")}`;
    for (const other of [links[0] ?? "", forged]) {
      expect(outcome(await app.accept(other))).toEqual(NOT_FOUND);
    }
    const clicked = await app.browser().get("/magic-link/verify", { query: { token } });
    expect(clicked.location).toContain("INVALID_TOKEN");
    expect(await app.users(a)).toBe(0);
  });

  it("for another address: 403, whoever asks", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    const { token } = await app.invite(a);
    const MISMATCH = [403, "INVITATION_EMAIL_MISMATCH"];
    expect(outcome(await app.accept(token, { email: "eve@example.com" }))).toEqual(MISMATCH);
    const headers = { [INVITATION_HEADER]: token };
    const eve = { ...body, email: "eve@example.com" };
    const at = app.browser({ "x-tenant-id": a });
    expect(outcome(await at.post("/sign-up/email", eve, { headers }))).toEqual(MISMATCH);
    expect(await app.rows("user", "email = ?", ["eve@example.com"])).toBe(0);
    const other = { ...body, email: INVITED.toUpperCase() };
    expect((await at.post("/sign-up/email", other, { headers })).status).toBe(200);
  });

  it("an address alone, which nobody has verified, lets nobody in", async () => {
    const app = await createInviting();
    await app.invite(app.ids.a);
    const at = app.browser({ "x-tenant-id": app.ids.a });
    expect(outcome(await at.post("/sign-up/email", body))).toEqual(REQUIRED);
    const claims = { ...body, emailVerified: true };
    expect((await at.post("/sign-up/email", claims)).status).toBeGreaterThanOrEqual(400);
    expect(await app.users(app.ids.a)).toBe(0);
  });

  it("of a deleted tenant whose number was given again: nothing", async () => {
    const app = await createInviting({
      auth: { advanced: { database: { generateId: "serial" } } },
    });
    const { b } = app.ids;
    const { token } = await app.invite(b);
    await app.api.deleteTenant({ body: { tenantId: b } });
    const table = app.database.quote("tenant");
    const next = await app.createTenant("next");
    await app.database.query(`update ${table} set id = ? where id = ?`, [b, next.id]);
    expect((await app.accept(token)).status).toBe(404);
    expect(await app.users(b)).toBe(0);
  });
});

describe.each([
  ["verification required", { requireEmailVerification: true }],
  ["no sign-in after sign-up", { autoSignIn: false }],
])("where better-auth hides that an address is taken: %s", (name, options) => {
  const create = () => {
    const mails: string[] = [];
    return createInviting({
      operator: false,
      auth: {
        emailAndPassword: { enabled: true, ...options },
        emailVerification: {
          sendOnSignUp: true,
          sendVerificationEmail: async ({ user }) => void mails.push(user.email),
        },
      },
    }).then((app) => ({ ...app, verifications: mails }));
  };

  it("a token that was mailed proves the address: no second mail", async () => {
    const app = await create();
    app.verifications.length = 0;
    const { token } = await app.invite(app.ids.a);
    const { data } = await app.accept(token);
    expect(data.user).toMatchObject({ email: INVITED, emailVerified: true });
    expect(data.session === null).toBe(name.startsWith("no sign-in"));
    expect(app.verifications).toEqual([]);
  });

  it("one that was not mailed proves nothing, and better-auth goes on as always", async () => {
    const app = await create();
    app.verifications.length = 0;
    const { token } = await app.invite(app.ids.a, INVITED, { send: false });
    const { data } = await app.accept(token);
    expect(data).toMatchObject({ token: null, user: { emailVerified: false } });
    expect(app.verifications).toEqual([INVITED]);
    expect(await app.statusOf(app.ids.a)).toEqual(["accepted"]);
  });

  it("a sign-up whose answer was made up accepts nothing", async () => {
    const app = await create();
    const { a } = app.ids;
    const { token } = await app.invite(a, INVITED, { send: false });
    await runInTenant(a, () => app.api.signUpEmail({ body }));
    expect(await app.users(a)).toBe(1);
    const made = await app.accept(token);
    expect(made.data).toMatchObject({ token: null, user: { email: INVITED } });
    expect(await app.users(a)).toBe(1);
    expect(await app.statusOf(a)).toEqual(["pending"]);
    const headers = { [INVITATION_HEADER]: token };
    const eve = { ...body, email: "eve@example.com" };
    const other = await app.browser({ "x-tenant-id": a }).post("/sign-up/email", eve, { headers });
    expect(outcome(other)).toEqual([403, "INVITATION_EMAIL_MISMATCH"]);
  });
});
