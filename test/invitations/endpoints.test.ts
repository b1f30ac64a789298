import { describe, expect, it } from "vitest";
import { createInviting, INVITED, outcome, tokenIn, whoIs } from "./inviting";

describe("an invitation", () => {
  it("is mailed, opened and accepted: a user with a verified address, signed in", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    await app.invite(a, "Ada@Example.com", { role: "user" });
    const [mail] = app.mails;
    expect(mail).toMatchObject({
      inTenant: a,
      invitation: { email: INVITED, status: "pending", tenantId: a, role: "user" },
      tenant: { id: a, name: "AA", slug: "aa" },
      inviter: { name: "Somebody", tenantId: null },
    });
    expect(mail?.url).toMatch(/^http:\/\/localhost:3000\/accept-invitation\?token=tenant/);
    expect(mail?.inviter).not.toHaveProperty("role");

    const token = mail?.token ?? "";
    const browser = app.browser();
    const opened = await browser.get("/tenant/invitation/get", { query: { token } });
    expect(opened.data).toEqual({
      tenant: { id: a, name: "AA", slug: "aa", status: "active" },
      email: INVITED,
      role: "user",
      expiresAt: expect.any(String),
      emailAndPassword: { enabled: true, signUp: true },
      providers: [],
    });

    const accepted = await app.accept(token, {}, browser);
    expect(accepted.data).toMatchObject({
      user: { email: INVITED, emailVerified: true, tenantId: a, role: "user" },
      session: { tenantId: a },
    });
    expect(accepted.data.token).toEqual(expect.any(String));
    expect(await whoIs(browser, a)).toMatchObject({ email: INVITED, tenantId: a });
    expect(await app.statusOf(a)).toEqual(["accepted"]);
    expect(outcome(await app.accept(token))).toEqual([409, "INVITATION_ALREADY_ACCEPTED"]);
  });

  it("is stored without its token", async () => {
    const app = await createInviting();
    const { token } = await app.invite(app.ids.a);
    const [row] = await app.database.query(
      `select * from ${app.database.quote("tenantInvitation")}`,
    );
    expect(String(row?.tokenHash)).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(row)).not.toContain(token);
    const answers = JSON.stringify([
      app.mails.map(({ invitation }) => invitation),
      await app.api.listTenantInvitations({ query: { tenantId: app.ids.a } }),
      app.events,
    ]);
    for (const secret of [token, String(row?.tokenHash)]) expect(answers).not.toContain(secret);
  });

  it("with send: false mails nothing, answers with the link, and proves nothing", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    const { url = "" } = await app.invite(a, INVITED, {
      send: false,
      redirectTo: "/join?from=chat",
    });
    expect(app.mails).toEqual([]);
    expect(url).toMatch(/^http:\/\/localhost:3000\/join\?from=chat&token=/);
    const { data } = await app.accept(tokenIn(url));
    expect(data.user).toMatchObject({ email: INVITED, emailVerified: false });
  });

  it("sent again is the same one with a new token, and the old one is dead", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    const first = await app.invite(a);
    const second = await app.invite(a);
    expect(second.id).toBe(first.id);
    const answer = await app.operator.post("/tenant/invitation/resend", { id: first.id });
    expect(answer.status).toBe(200);
    expect(answer.data).not.toHaveProperty("url");
    for (const { token } of [first, second]) {
      expect(outcome(await app.accept(token))).toEqual([404, "INVITATION_NOT_FOUND"]);
    }
    expect((await app.accept(app.mails.at(-1)?.token ?? "")).status).toBe(200);
    expect(app.events.map(({ type }) => type).filter((type) => /invitation/.test(type))).toEqual([
      "invitation:created",
      "invitation:resent",
      "invitation:resent",
      "invitation:accepted",
    ]);
  });

  it("that was revoked is none, and the address can be invited anew", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    const { id, token } = await app.invite(a);
    const revoked = await app.operator.post("/tenant/invitation/revoke", { id });
    expect(revoked.data).toMatchObject({ id, status: "revoked" });
    expect(outcome(await app.accept(token))).toEqual([404, "INVITATION_NOT_FOUND"]);
    for (const path of ["resend", "revoke"]) {
      const again = await app.operator.post(`/tenant/invitation/${path}`, { id });
      expect(outcome(again)).toEqual([404, "INVITATION_NOT_FOUND"]);
    }
    const next = await app.invite(a);
    expect(next.id).not.toBe(id);
    expect((await app.accept(next.token)).status).toBe(200);
    expect((await app.statusOf(a)).sort()).toEqual(["accepted", "revoked"]);
  });

  it("expires, and lives again when it is sent again", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    const { id, token } = await app.invite(a, INVITED, { expiresIn: 60 });
    const table = app.database.quote("tenantInvitation");
    await app.database.query(
      `update ${table} set ${app.database.quote("expiresAt")} = ? where id = ?`,
      [new Date(Date.now() - 1000).toISOString(), id],
    );
    for (const answer of [
      await app.accept(token),
      await app.browser().get("/tenant/invitation/get", { query: { token } }),
    ]) {
      expect(outcome(answer)).toEqual([410, "INVITATION_EXPIRED"]);
    }
    const list = (status: string) =>
      app.operator.get<{ id: string }[]>("/tenant/invitation/list", {
        query: { tenantId: a, status },
      });
    expect((await list("pending")).data).toEqual([]);
    expect((await list("expired")).data).toMatchObject([{ id, status: "expired" }]);
    await app.operator.post("/tenant/invitation/resend", { id });
    expect((await list("pending")).data).toMatchObject([{ id, status: "pending" }]);
    expect((await app.accept(app.mails.at(-1)?.token ?? "")).status).toBe(200);
  });

  it("is not for somebody who is a user already, which only managers learn", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    const { token } = await app.invite(a);
    await app.api.createUser({
      body: { email: INVITED, name: "Ada", password: "correct horse battery" },
      headers: new Headers({ cookie: app.operator.cookieHeader(), "x-tenant-id": a }),
    });
    expect(await app.users(a)).toBe(1);
    const again = await app.operator.post("/tenant/invitation/create", {
      tenantId: a,
      email: INVITED,
    });
    expect(outcome(again)).toEqual([409, "USER_ALREADY_IN_TENANT"]);
    expect(outcome(await app.accept(token))).toEqual([
      422,
      "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL",
    ]);
    expect(await app.statusOf(a)).toEqual(["pending"]);
  });

  it("lists pages, and refuses what makes no sense", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    for (const name of ["one", "two", "three"]) await app.invite(a, `${name}@example.com`);
    const page = await app.operator.get<object[]>("/tenant/invitation/list", {
      query: { tenantId: a, limit: "2", offset: "1" },
    });
    expect(page.data).toHaveLength(2);
    for (const wrong of [
      { email: "nobody" },
      { email: INVITED, expiresIn: 31 * 24 * 60 * 60 },
      { email: INVITED, expiresIn: 0 },
      { email: INVITED, redirectTo: "javascript:alert(1)" },
    ]) {
      const answer = await app.operator.post("/tenant/invitation/create", {
        tenantId: a,
        ...wrong,
      });
      expect(answer.status, JSON.stringify(wrong)).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
    }
    const elsewhere = await app.operator.post("/tenant/invitation/create", {
      tenantId: a,
      email: INVITED,
      redirectTo: "https://evil.example/join",
    });
    expect(outcome(elsewhere)).toEqual([403, "INVALID_REDIRECT_URL"]);
    expect(await app.statusOf(a)).toHaveLength(3);
  });

  it("is deleted with its tenant", async () => {
    const app = await createInviting();
    const { token } = await app.invite(app.ids.a);
    await app.invite(app.ids.b);
    await app.api.deleteTenant({ body: { tenantId: app.ids.a } });
    expect(await app.rows("tenantInvitation")).toBe(1);
    expect(outcome(await app.accept(token))).toEqual([404, "TENANT_NOT_FOUND"]);
  });
});
