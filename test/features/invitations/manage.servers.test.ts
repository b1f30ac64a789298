import { admin, magicLink } from "better-auth/plugins";
import { createAccessControl } from "better-auth/plugins/access";
import { adminAc, defaultStatements, userAc } from "better-auth/plugins/admin/access";
import { describe, expect, it } from "vitest";
import type { TenantRoleAction } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { databases, idKindsOn } from "../../support/database";
import { PASSWORD } from "../../support/instance";
import { outcome } from "../../support/world";
import { createInviting, INVITED, shareInviting, tokenIn } from "./world";

const NOT_ALLOWED = [403, "TENANT_MANAGEMENT_NOT_ALLOWED"];
const NOT_FOUND = [404, "INVITATION_NOT_FOUND"];
const ROLE_NOT_ALLOWED = [403, "ROLE_NOT_ALLOWED"];
const CREATE = "/tenant/invitation/create";

const tenantRoles = {
  admin: ["invitation:*"],
  helper: ["invitation:create", "invitation:list", "invitation:resend"],
  reader: ["invitation:list"],
} satisfies Record<string, TenantRoleAction[]>;

const app = shareInviting({
  tenant: { tenantRoles },
  plugins: (send) => [magicLink({ sendMagicLink: send("link") })],
});

describe("an invitation", () => {
  it("is mailed, opened and accepted: a user with a verified address, signed in", async () => {
    const { id: a, slug } = await app.createTenant();
    await app.setPolicy(a, { signUp: "invited" });
    const body = { tenantId: a, email: "Ada@Example.com", role: "user" };
    await (await app.operator()).post(CREATE, body);
    const mail = app.sent.at(-1);
    const tenant = { id: a, name: slug.toUpperCase(), slug };
    expect(mail).toMatchObject({
      inTenant: a,
      invitation: { email: INVITED, status: "pending", tenantId: a, role: "user" },
      tenant,
      inviter: { name: "Somebody", tenantId: null },
    });
    expect(mail?.url).toMatch(/^http:\/\/localhost:3000\/accept-invitation\?token=tenant/);
    expect(mail?.inviter).not.toHaveProperty("role");
    const token = mail?.token ?? "";
    // It is stored without its token, and nobody is shown what is stored of it.
    const [row] = await app.rowsIn(a, "tenantInvitation");
    expect(String(row?.tokenHash)).toMatch(/^[0-9a-f]{64}$/);
    const shown = JSON.stringify([row, await app.list(a), app.events, mail?.invitation]);
    expect(shown).not.toContain(token);
    expect(shown.split(String(row?.tokenHash))).toHaveLength(2);
    const browser = app.browser();
    expect((await app.open(token, browser)).data).toEqual({
      tenant: { ...tenant, status: "active" },
      email: INVITED,
      role: "user",
      expiresAt: expect.any(String),
      methods: ["password", "magic-link"],
      twoFactor: { required: false },
      emailAndPassword: { enabled: true, signUp: true },
      providers: [],
    });
    const { data } = await app.accept(token, {}, browser);
    expect(data).toMatchObject({
      token: expect.any(String),
      user: { email: INVITED, emailVerified: true, tenantId: a, role: "user" },
      session: { tenantId: a },
    });
    expect(await app.whoIs(browser, a)).toMatchObject({ email: INVITED, tenantId: a });
    expect(await app.statusOf(a)).toEqual(["accepted"]);
    expect(outcome(await app.accept(token))).toEqual([409, "INVITATION_ALREADY_ACCEPTED"]);
  });

  it("sent again is the same one with a new token, and the old one is dead", async () => {
    const a = await app.home();
    const [first, second] = [await app.invite(a), await app.invite(a)];
    expect(second.id).toBe(first.id);
    const { id } = first;
    await app.aMinuteLater();
    const resent = await (await app.operator()).post("/tenant/invitation/resend", { id });
    expect(resent.status).toBe(200);
    expect(resent.data).not.toHaveProperty("url");
    for (const { token } of [first, second]) {
      expect(outcome(await app.accept(token))).toEqual(NOT_FOUND);
    }
    expect((await app.accept(app.sent.at(-1)?.token)).status).toBe(200);
    const types = app.events.filter(({ tenantId }) => tenantId === a).map(({ type }) => type);
    expect(types.filter((type) => type.startsWith("invitation")).join()).toBe(
      "invitation:created,invitation:resent,invitation:resent,invitation:accepted",
    );
  });

  it("that was revoked is none, and the address can be invited anew", async () => {
    const a = await app.home();
    const operator = await app.operator();
    const { id, token } = await app.invite(a);
    const revoked = await operator.post("/tenant/invitation/revoke", { id });
    expect(revoked.data).toMatchObject({ id, status: "revoked" });
    expect(outcome(await app.accept(token))).toEqual(NOT_FOUND);
    for (const path of ["resend", "revoke"]) {
      const again = await operator.post(`/tenant/invitation/${path}`, { id });
      expect(outcome(again)).toEqual(NOT_FOUND);
    }
    const next = await app.invite(a);
    expect(next.id).not.toBe(id);
    expect((await app.accept(next.token)).status).toBe(200);
    expect((await app.statusOf(a)).sort()).toEqual(["accepted", "revoked"]);
  });

  it("expires, and lives again when it is sent again", async () => {
    const a = await app.home();
    const { id, token } = await app.invite(a, INVITED, { expiresIn: 60 });
    await app.expire(id);
    for (const answer of [await app.accept(token), await app.open(token)]) {
      expect(outcome(answer)).toEqual([410, "INVITATION_EXPIRED"]);
    }
    const operator = await app.operator();
    const list = async (status: string) =>
      (await operator.get("/tenant/invitation/list", { query: { tenantId: a, status } })).data;
    expect(await list("pending")).toEqual([]);
    expect(await list("expired")).toMatchObject([{ id, status: "expired" }]);
    await app.aMinuteLater();
    await operator.post("/tenant/invitation/resend", { id });
    expect(await list("pending")).toMatchObject([{ id, status: "pending" }]);
    expect((await app.accept(app.sent.at(-1)?.token)).status).toBe(200);
  });

  it("is not for an address that is a user already, which only managers learn", async () => {
    const a = await app.home();
    const { token } = await app.invite(a);
    const operator = await app.operator();
    const data = { emailVerified: true };
    const user = { email: INVITED, name: "Ada", password: PASSWORD, data };
    await app.at(a, operator).post("/admin/create-user", user);
    expect(await app.users(a)).toBe(1);
    const again = await operator.post(CREATE, { tenantId: a, email: INVITED });
    expect(outcome(again)).toEqual([409, "USER_ALREADY_IN_TENANT"]);
    const taken = [422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"];
    expect(outcome(await app.accept(token))).toEqual(taken);
    expect(await app.statusOf(a)).toEqual(["pending"]);
  });

  it("lists pages, and refuses what makes no sense", async () => {
    const tenantId = await app.home();
    const operator = await app.operator();
    for (const name of ["one", "two", "three"]) await app.invite(tenantId, `${name}@example.com`);
    const query = { tenantId, limit: "2", offset: "1" };
    const page = await operator.get("/tenant/invitation/list", { query });
    expect(page.data).toHaveLength(2);
    const wrongs: [wrong: object, status: number][] = [
      [{ email: "nobody" }, 400],
      [{ expiresIn: 31 * 24 * 60 * 60 }, 400],
      [{ expiresIn: 0 }, 400],
      [{ redirectTo: "javascript:alert(1)" }, 403],
      [{ redirectTo: "https://evil.example/join" }, 403],
    ];
    for (const [wrong, status] of wrongs) {
      const refused = await operator.post(CREATE, { tenantId, email: INVITED, ...wrong });
      expect(refused.status, JSON.stringify(wrong)).toBe(status);
    }
    expect(await app.statusOf(tenantId)).toHaveLength(3);
  });

  it("waits while its tenant is suspended, grows old meanwhile, and is deleted with it", async () => {
    const tenantId = await app.home();
    const { token } = await app.invite(tenantId);
    const short = await app.invite(tenantId, "short@example.com", { expiresIn: 60 });
    await app.change(tenantId, { status: "suspended" });
    for (const answer of [await app.open(token), await app.accept(token)]) {
      expect(outcome(answer)).toEqual([403, "TENANT_SUSPENDED"]);
    }
    await app.expire(short.id);
    await app.change(tenantId, { status: "active" });
    expect(outcome(await app.accept(short.token))).toEqual([410, "INVITATION_EXPIRED"]);
    expect((await app.accept(token)).status).toBe(200);
    const remove = (more: object) => app.api.deleteTenant({ body: { tenantId, ...more } });
    expect(await remove({ dryRun: true })).toMatchObject({ rows: { tenantInvitation: 2 } });
    await remove({ after: 60 });
    expect(outcome(await app.accept(short.token))).toEqual([403, "TENANT_SUSPENDED"]);
    await app.change(tenantId, { status: "active" });
    await remove({});
    expect(await app.rowsIn(tenantId, "tenantInvitation")).toEqual([]);
    expect(outcome(await app.accept(short.token))).toEqual([404, "TENANT_NOT_FOUND"]);
  });
});

describe("who may invite", () => {
  it("a caller without a session, an ordinary user, and a tenant's user without the right: none of the four", async () => {
    const [a, b] = [await app.home(), await app.home()];
    const { id } = await app.invite(a);
    const callers = [
      [app.browser(), [401, "UNAUTHORIZED"]],
      [await app.as("jane", "platform"), NOT_ALLOWED],
      [await app.member(a, "user"), NOT_ALLOWED],
      [await app.member(b, "admin"), NOT_ALLOWED],
    ] as const;
    for (const [browser, refusal] of callers) {
      const answers = [
        await browser.post(CREATE, { tenantId: a, email: "new@example.com" }),
        await browser.get("/tenant/invitation/list", { query: { tenantId: a } }),
        await browser.post("/tenant/invitation/resend", { id }),
        await browser.post("/tenant/invitation/revoke", { id }),
      ];
      expect(answers.map(outcome)).toEqual(answers.map(() => refusal));
    }
    expect((await app.statusOf(a)).filter((status) => status === "pending")).toHaveLength(1);
  });

  it("a tenant's administrator, in the own tenant, which need not be named", async () => {
    const a = await app.home();
    const admin = await app.member(a, "admin");
    const { data } = await admin.post<{ id: string }>(CREATE, { email: INVITED, role: "reader" });
    expect(data).toMatchObject({ tenantId: a, role: "reader", inviterName: "Ada" });
    expect(app.sent.at(-1)?.inviter).toMatchObject({ tenantId: a });
    expect((await admin.get("/tenant/invitation/list")).data).toHaveLength(2);
    // People write their names themselves, and mails have them in their headers.
    await admin.post("/update-user", { name: "Eve\r\nBcc: all@example.com" });
    await app.aMinuteLater();
    await admin.post("/tenant/invitation/resend", { id: data.id });
    expect(app.sent.at(-1)?.inviter).toMatchObject({ name: "Eve Bcc: all@example.com" });
    const act = async (browser: typeof admin, path: string, id: string) =>
      outcome(await browser.post(`/tenant/invitation/${path}`, { id }));
    const reader = await app.member(a, "reader");
    expect((await reader.get("/tenant/invitation/list")).status).toBe(200);
    expect(outcome(await reader.post(CREATE, { email: INVITED }))).toEqual(NOT_ALLOWED);
    expect(await act(reader, "revoke", data.id)).toEqual(NOT_ALLOWED);
    await app.aMinuteLater();
    for (const path of ["resend", "revoke"]) {
      expect(await act(admin, path, data.id)).toEqual([200, undefined]);
    }
    // One that does not exist is like one of another tenant.
    const elsewhere = await app.invite(await app.home(), "b@example.com");
    for (const other of [elsewhere.id, "no-such-id"]) {
      expect(await act(admin, "revoke", other)).toEqual(NOT_ALLOWED);
    }
    expect(await act(await app.operator(), "revoke", "no-such-id")).toEqual(NOT_FOUND);
  });
});

describe("the policy of the tenant", () => {
  it("no user is sent a link that it does not honor", async () => {
    const a = await app.home();
    const operator = await app.operator();
    const invite = async () =>
      outcome(await operator.post(CREATE, { tenantId: a, email: INVITED }));
    await app.setPolicy(a, { signUp: "closed" });
    expect(await invite()).toEqual([403, "SIGN_UP_CLOSED"]);
    await app.setPolicy(a, { signUp: "invited", emailDomains: ["acme.com"] });
    expect(await invite()).toEqual([403, "EMAIL_DOMAIN_NOT_ALLOWED"]);
    expect((await app.accept((await app.invite(a, "ada@acme.com")).token)).status).toBe(200);
  });

  it("a link that was sent before counts no more than it allows, and its page is told", async () => {
    const own = await createInviting({
      auth: { socialProviders: { google: { clientId: "id", clientSecret: "secret" } } },
    });
    const { token } = await own.invite("acme");
    const cases: [Parameters<typeof own.setPolicy>[1], code: string, enabled: boolean][] = [
      [{ signUp: "closed" }, "SIGN_UP_CLOSED", true],
      [{ signUp: "invited", emailDomains: ["acme.com"] }, "EMAIL_DOMAIN_NOT_ALLOWED", true],
      [{ signUp: "invited", methods: ["social"] }, "SIGN_IN_METHOD_NOT_ALLOWED", false],
    ];
    for (const [policy, code, enabled] of cases) {
      await own.setPolicy("acme", policy);
      expect((await own.open(token)).data.emailAndPassword).toEqual({ enabled, signUp: false });
      expect(outcome(await own.accept(token))).toEqual([403, code]);
    }
    await own.setPolicy("acme", { signUp: "invited" });
    const { emailAndPassword } = (await own.open(token)).data;
    expect(emailAndPassword).toEqual({ enabled: true, signUp: true });
    expect((await own.accept(token)).status).toBe(200);
  });
});

const invite = (by: Browser, body: object) =>
  by.post<{ id: string; url: string }>(CREATE, { email: INVITED, ...body });

describe("roles", () => {
  it("a tenant's user gives out none that can do more, nor an unknown one", async () => {
    const helper = await app.member(await app.home(), "helper,biller");
    const greater = ["admin", "user,admin", "helper, admin"];
    const unknown = ["owner", "Admin", "__proto__", "user;admin", "reader,owner"];
    for (const role of [...greater, ...unknown]) {
      expect(outcome(await invite(helper, { role })), role).toEqual(ROLE_NOT_ALLOWED);
    }
    for (const role of ["helper", "reader", "user", "biller", null]) {
      expect([role, (await invite(helper, { role, send: false })).status]).toEqual([role, 200]);
    }
  });

  it("nor by resending the invitation to a greater role, nor by replacing it", async () => {
    const a = await app.home();
    const helper = await app.member(a, "helper");
    const { id } = await app.invite(a, INVITED, { role: "admin" });
    for (const answer of [
      await invite(helper, { send: false }),
      await invite(helper, { role: "user", send: false }),
      await invite(helper, { role: null, send: false }),
      await helper.post("/tenant/invitation/resend", { id }),
    ]) {
      expect(outcome(answer)).toEqual(ROLE_NOT_ALLOWED);
      expect(answer.data).not.toHaveProperty("url");
    }
    const boss = await app.member(a, "admin");
    const lesser = await invite(boss, { role: "user", send: false });
    expect(lesser.data).toMatchObject({ id, role: "user" });
    expect((await invite(helper, { role: null, send: false })).status).toBe(200);
  });

  it("operators give out what they like, stored as the admin plugin reads it", async () => {
    const operator = await app.operator();
    for (const [given, role] of [
      ["owner", "owner"],
      [" helper , admin,", "helper,admin"],
    ]) {
      const body = { tenantId: await app.home(), role: given, send: false };
      const { data } = await invite(operator, body);
      expect((await app.accept(tokenIn(data.url))).data.user.role).toBe(role);
    }
  });

  it("what the admin plugin's own roles can do counts, and an unknown role is refused", async () => {
    const access = createAccessControl({ ...defaultStatements, bill: ["read", "pay"] });
    const clerks = access.newRole({ bill: ["read"] });
    const buyers = access.newRole({ bill: ["read", "pay"] });
    const roles = { user: userAc, admin: adminAc, clerk: clerks, buyer: buyers };
    const own = await createInviting({
      plugins: [admin({ ac: access, roles })],
      tenant: { tenantRoles: { clerk: ["invitation:*"], buyer: ["invitation:*"] } },
    });
    const unknown = await invite(await own.operator(), { tenantId: own.ids.acme, role: "x" });
    expect(outcome(unknown)).toEqual(ROLE_NOT_ALLOWED);
    const clerk = await own.member("acme", "clerk");
    const buyer = await own.member("acme", "buyer");
    const statusOf = async (by: Browser, role: string) =>
      (await invite(by, { role, send: false })).status;
    expect([await statusOf(clerk, "buyer"), await statusOf(clerk, "clerk")]).toEqual([403, 200]);
    expect([await statusOf(buyer, "clerk"), await statusOf(buyer, "admin")]).toEqual([200, 403]);
  });

  it("all actions of a kind are as much as the star, and one less is not", async () => {
    const own = await createInviting({
      tenant: {
        tenantRoles: {
          star: ["invitation:*"],
          each: ["invitation:create", "invitation:list", "invitation:resend", "invitation:revoke"],
          less: ["invitation:create", "invitation:list", "invitation:resend"],
        },
      },
    });
    const given = async (from: string, role: string) =>
      outcome(await invite(await own.member("acme", from), { role, send: false }));
    expect(await given("each", "star")).toEqual([200, undefined]);
    expect(await given("star", "each")).toEqual([200, undefined]);
    expect(await given("star", "less")).toEqual([200, undefined]);
    expect(await given("less", "star")).toEqual(ROLE_NOT_ALLOWED);
    expect(await given("less", "each")).toEqual(ROLE_NOT_ALLOWED);
  });
});

describe.each(databases)("on %s", (database) => {
  it.each(idKindsOn(database))("an id of another form is no invitation's: %s", async (ids) => {
    const own = await createInviting({
      database,
      auth: { advanced: { database: ids === "text" ? {} : { generateId: ids } } },
    });
    const operator = await own.operator();
    for (const id of ["x", "1 ", "1.0", "99999999999999999999", "' or 1=1"]) {
      for (const path of ["resend", "revoke"]) {
        const answer = await operator.post(`/tenant/invitation/${path}`, { id });
        expect(outcome(answer), id).toEqual(NOT_FOUND);
      }
    }
    const { id } = await own.invite("acme");
    expect((await operator.post("/tenant/invitation/revoke", { id })).status).toBe(200);
  });
});
