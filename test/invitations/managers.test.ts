import { admin, magicLink } from "better-auth/plugins";
import { createAccessControl } from "better-auth/plugins/access";
import { adminAc, defaultStatements, userAc } from "better-auth/plugins/admin/access";
import { describe, expect, it } from "vitest";
import { bySubdomain, type TenantRoleAction } from "../../src/index";
import { createInviting, INVITED, type Inviting, outcome, tokenIn } from "./inviting";

const NOT_ALLOWED = [403, "TENANT_MANAGEMENT_NOT_ALLOWED"];
const ROLE_NOT_ALLOWED = [403, "ROLE_NOT_ALLOWED"];

const tenantRoles = {
  admin: ["invitation:*", "policy:update"],
  helper: ["invitation:create", "invitation:list", "invitation:resend"],
  reader: ["invitation:list"],
} satisfies Record<string, TenantRoleAction[]>;

/** Somebody of a tenant with a role, signed in. */
async function member(app: Inviting, tenantId: string, role: string) {
  const email = `${role}-${tenantId}@example.com`;
  const { url = "" } = await app.api.createTenantInvitation({
    body: { tenantId, email, role, send: false },
  });
  const browser = app.browser();
  const { status } = await app.accept(tokenIn(url), {}, browser);
  expect(status).toBe(200);
  return browser;
}

const create = (body: object) => ["/tenant/invitation/create", body] as const;

describe("who may invite", () => {
  it("nobody, an ordinary user, and a tenant's user without the right: not one of the four", async () => {
    const app = await createInviting({ tenant: { tenantRoles } });
    const { a } = app.ids;
    const { id } = await app.invite(a);
    const callers = [
      [app.browser(), [401, "UNAUTHORIZED"]],
      [(await app.signUp(null)).browser, NOT_ALLOWED],
      [await member(app, a, "user"), NOT_ALLOWED],
      [await member(app, app.ids.b, "admin"), NOT_ALLOWED],
    ] as const;
    for (const [browser, refusal] of callers) {
      const answers = [
        await browser.post(...create({ tenantId: a, email: "new@example.com" })),
        await browser.get("/tenant/invitation/list", { query: { tenantId: a } }),
        await browser.post("/tenant/invitation/resend", { id }),
        await browser.post("/tenant/invitation/revoke", { id }),
      ];
      expect(answers.map(outcome)).toEqual(answers.map(() => refusal));
    }
    expect((await app.statusOf(a)).filter((status) => status === "pending")).toHaveLength(1);
  });

  it("a tenant's administrator, in the own tenant, which need not be named", async () => {
    const app = await createInviting({ tenant: { tenantRoles } });
    const admin = await member(app, app.ids.a, "admin");
    const invited = await admin.post<{ id: string }>(...create({ email: INVITED, role: "helper" }));
    expect(invited.data).toMatchObject({ tenantId: app.ids.a, role: "helper", inviterName: "Ada" });
    expect(app.mails.at(-1)?.inviter).toMatchObject({ tenantId: app.ids.a });
    const list = await admin.get<object[]>("/tenant/invitation/list");
    expect(list.data).toHaveLength(2);
    const { id } = invited.data;
    expect((await admin.post("/tenant/invitation/resend", { id })).status).toBe(200);
    expect((await admin.post("/tenant/invitation/revoke", { id })).status).toBe(200);
    // One that does not exist is like one of another tenant.
    const elsewhere = await app.invite(app.ids.b, "b@example.com");
    for (const other of [elsewhere.id, "no-such-id"]) {
      const answer = await admin.post("/tenant/invitation/revoke", { id: other });
      expect(outcome(answer)).toEqual(NOT_ALLOWED);
    }
    const gone = await app.operator.post("/tenant/invitation/revoke", { id: "no-such-id" });
    expect(outcome(gone)).toEqual([404, "INVITATION_NOT_FOUND"]);
  });

  it("each action by itself", async () => {
    const app = await createInviting({ tenant: { tenantRoles } });
    const { a } = app.ids;
    const reader = await member(app, a, "reader");
    const { id } = await app.invite(a);
    expect((await reader.get("/tenant/invitation/list")).status).toBe(200);
    expect(outcome(await reader.post(...create({ email: INVITED })))).toEqual(NOT_ALLOWED);
    expect(outcome(await reader.post("/tenant/invitation/revoke", { id }))).toEqual(NOT_ALLOWED);
  });
});

describe("roles", () => {
  it("a tenant's user gives out no role that can do more than its own", async () => {
    const app = await createInviting({ tenant: { tenantRoles } });
    const { a } = app.ids;
    const helper = await member(app, a, "helper");
    for (const role of ["admin", "user,admin", "helper, admin"]) {
      const answer = await helper.post(...create({ email: INVITED, role }));
      expect(outcome(answer)).toEqual(ROLE_NOT_ALLOWED);
    }
    for (const role of ["helper", "reader", "user", null]) {
      const email = `${role}@example.com`;
      expect((await helper.post(...create({ email, role }))).status).toBe(200);
    }
  });

  it("nor by sending a greater one's invitation again, to get at its link", async () => {
    const app = await createInviting({ tenant: { tenantRoles } });
    const { a } = app.ids;
    const helper = await member(app, a, "helper");
    const { id } = await app.invite(a, INVITED, { role: "admin" });
    for (const answer of [
      await helper.post(...create({ email: INVITED, send: false })),
      await helper.post("/tenant/invitation/resend", { id }),
    ]) {
      expect(outcome(answer)).toEqual(ROLE_NOT_ALLOWED);
      expect(answer.data).not.toHaveProperty("url");
    }
    const lesser = await helper.post(...create({ email: INVITED, role: "user", send: false }));
    expect(lesser.data).toMatchObject({ id, role: "user" });
  });

  it("operators give out every role that there is", async () => {
    const app = await createInviting({ tenant: { tenantRoles } });
    const { token } = await app.invite(app.ids.a, INVITED, { role: "admin" });
    expect((await app.accept(token)).data.user.role).toBe("admin");
  });

  it("the role also comes with a way in by the address", async () => {
    const links: string[] = [];
    const app = await createInviting({
      plugins: [magicLink({ sendMagicLink: ({ url }) => void links.push(url) })],
    });
    await app.setPolicy(app.ids.a, null);
    await app.invite(app.ids.a, INVITED, { role: "admin" });
    const at = app.browser({ "x-tenant-id": app.ids.a });
    await at.post("/sign-in/magic-link", { email: INVITED, callbackURL: "/in" });
    await app.browser().get(links[0] ?? "");
    const [user] = await app.database.query(
      `select role from ${app.database.quote("user")} where email = ?`,
      [INVITED],
    );
    expect(user?.role).toBe("admin");
    expect(await app.statusOf(app.ids.a)).toEqual(["accepted"]);
  });

  it("what the admin plugin's own roles can do counts, and a role that nobody knows is none", async () => {
    const access = createAccessControl({ ...defaultStatements, bill: ["read", "pay"] });
    const plugin = admin({
      ac: access,
      roles: {
        user: userAc,
        admin: adminAc,
        clerk: access.newRole({ bill: ["read"] }),
        buyer: access.newRole({ bill: ["read", "pay"] }),
      },
    });
    const app = await createInviting({
      arrange: (ours, others) => [ours, plugin, ...others.filter(({ id }) => id !== "admin")],
      tenant: { tenantRoles: { clerk: ["invitation:*"], buyer: ["invitation:*"] } },
    });
    const { a } = app.ids;
    const unknown = await app.operator.post(...create({ tenantId: a, email: INVITED, role: "x" }));
    expect(outcome(unknown)).toEqual(ROLE_NOT_ALLOWED);
    const clerk = await member(app, a, "clerk");
    const buyer = await member(app, a, "buyer");
    const invite = async (browser: typeof clerk, role: string) =>
      (await browser.post(...create({ email: INVITED, role }))).status;
    expect([await invite(clerk, "buyer"), await invite(clerk, "clerk")]).toEqual([403, 200]);
    expect([await invite(buyer, "clerk"), await invite(buyer, "admin")]).toEqual([200, 403]);
  });
});

describe("the policy of the tenant", () => {
  it("nobody is sent a link that it does not honour", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    await app.setPolicy(a, { signUp: "closed" });
    const closed = await app.operator.post(...create({ tenantId: a, email: INVITED }));
    expect(outcome(closed)).toEqual([403, "SIGN_UP_CLOSED"]);
    await app.setPolicy(a, { signUp: "invited", emailDomains: ["acme.com"] });
    const foreign = await app.operator.post(...create({ tenantId: a, email: INVITED }));
    expect(outcome(foreign)).toEqual([403, "EMAIL_DOMAIN_NOT_ALLOWED"]);
    const { token } = await app.invite(a, "ada@acme.com");
    const { data } = await app.accept(token);
    expect(data).toMatchObject({ user: { emailVerified: true }, session: { tenantId: a } });
  });

  it("a link that was sent before counts no more than the policy allows", async () => {
    const app = await createInviting({ plugins: [magicLink({ sendMagicLink: () => {} })] });
    const { a } = app.ids;
    const { token } = await app.invite(a);
    await app.setPolicy(a, { signUp: "closed" });
    expect(outcome(await app.accept(token))).toEqual([403, "SIGN_UP_CLOSED"]);
    await app.setPolicy(a, { signUp: "invited", methods: ["magic-link"] });
    expect(outcome(await app.accept(token))).toEqual([403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
    await app.setPolicy(a, { signUp: "invited" });
    expect((await app.accept(token)).status).toBe(200);
  });
});

describe("R9: where a link leads", () => {
  it("to the platform or to its tenant's own host, never to another tenant's", async () => {
    const app = await createInviting({
      tenant: { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
      auth: { trustedOrigins: ["http://*.example.com"] },
    });
    const invite = (page: string) =>
      app.operator.post<{ url: string }>(
        ...create({ tenantId: app.ids.a, email: INVITED, send: false, redirectTo: page }),
      );
    const own = await invite("http://aa.example.com/join");
    expect(own.data.url).toMatch(/^http:\/\/aa\.example\.com\/join\?token=/);
    expect(outcome(await invite("http://bb.example.com/join"))).toEqual([
      403,
      "INVALID_REDIRECT_URL",
    ]);
    expect((await invite("http://localhost:3000/join")).status).toBe(200);
    // The tenant's own pages still do not act in the operator's name.
    const forged = await app.operator.post(...create({ tenantId: app.ids.a, email: INVITED }), {
      headers: { origin: "http://aa.example.com" },
    });
    expect(outcome(forged)).toEqual([403, "INVALID_ORIGIN"]);
  });
});
