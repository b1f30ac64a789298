import { admin, magicLink } from "better-auth/plugins";
import { createAccessControl } from "better-auth/plugins/access";
import { adminAc, defaultStatements, userAc } from "better-auth/plugins/admin/access";
import { describe, expect, it } from "vitest";
import type { TenantRoleAction } from "../../src/index";
import type { Browser } from "../support/browser";
import { createInviting, INVITED, shareInviting, tokenIn } from "../support/inviting";
import { outcome } from "../support/world";

const ROLE_NOT_ALLOWED = [403, "ROLE_NOT_ALLOWED"];
const NOT_FOUND = [404, "INVITATION_NOT_FOUND"];

const tenantRoles = {
  admin: ["invitation:*"],
  helper: ["invitation:create", "invitation:list", "invitation:resend"],
  reader: ["invitation:list"],
} satisfies Record<string, TenantRoleAction[]>;

const app = shareInviting({
  tenant: { tenantRoles },
  plugins: (send) => [magicLink({ sendMagicLink: send("link") })],
});

const invite = (by: Browser, body: object) =>
  by.post<{ id: string; url: string }>("/tenant/invitation/create", { email: INVITED, ...body });

describe("roles", () => {
  it("a tenant's user gives out none that can do more, nor one that nobody describes", async () => {
    const helper = await app.member(await app.home(), "helper,biller");
    const greater = ["admin", "user,admin", "helper, admin"];
    const unknown = ["owner", "Admin", "__proto__", "user;admin", "reader,owner"];
    for (const role of [...greater, ...unknown]) {
      expect([role, ...outcome(await invite(helper, { role }))]).toEqual([
        role,
        ...ROLE_NOT_ALLOWED,
      ]);
    }
    for (const role of ["helper", "reader", "user", "biller", null]) {
      expect([role, (await invite(helper, { role })).status]).toEqual([role, 200]);
    }
  });

  it("nor by sending a greater one's invitation again, to get at its link", async () => {
    const a = await app.home();
    const helper = await app.member(a, "helper");
    const { id } = await app.invite(a, INVITED, { role: "admin" });
    for (const answer of [
      await invite(helper, { send: false }),
      await helper.post("/tenant/invitation/resend", { id }),
    ]) {
      expect(outcome(answer)).toEqual(ROLE_NOT_ALLOWED);
      expect(answer.data).not.toHaveProperty("url");
    }
    const lesser = await invite(helper, { role: "user", send: false });
    expect(lesser.data).toMatchObject({ id, role: "user" });
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

  it("the role also comes with a way in by the address", async () => {
    const { id } = await app.createTenant();
    await app.invite(id, INVITED, { role: "admin" });
    await app.at(id).post("/sign-in/magic-link", { email: INVITED, callbackURL: "/in" });
    await app.browser().get(app.lastMail("link").url);
    expect(await app.rowsIn(id, "user")).toMatchObject([{ email: INVITED, role: "admin" }]);
    expect(await app.statusOf(id)).toEqual(["accepted"]);
  });

  it("what the admin plugin's own roles can do counts, and a role that nobody knows is none", async () => {
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
    const statusOf = async (by: Browser, role: string) => (await invite(by, { role })).status;
    expect([await statusOf(clerk, "buyer"), await statusOf(clerk, "clerk")]).toEqual([403, 200]);
    expect([await statusOf(buyer, "clerk"), await statusOf(buyer, "admin")]).toEqual([200, 403]);
  });
});

describe("an inviter who is no more what they were", () => {
  it.each([
    ["demoted", "set-role"],
    ["deleted", "remove-user"],
    ["banned", "ban-user"],
  ])("%s: the role that they could give then is not given now", async (_, path) => {
    const a = await app.home();
    await app.member(a, "admin");
    const inviter = await app.member(a, "admin");
    const link = async (email: string, role: string) =>
      tokenIn((await invite(inviter, { email, role, send: false })).data.url);
    const greater = await link("greater@example.com", "admin");
    const lesser = await link("lesser@example.com", "user");
    expect((await app.open(greater)).status).toBe(200);
    const operator = app.at(a, await app.operator());
    const changed = await operator.post(`/admin/${path}`, { userId: inviter.id, role: "user" });
    expect(changed.status).toBe(200);
    for (const answer of [await app.open(greater), await app.accept(greater)]) {
      expect(outcome(answer)).toEqual(NOT_FOUND);
    }
    await app.at(a).post("/sign-in/magic-link", { email: "greater@example.com", callbackURL: "/" });
    await app.browser().get(app.lastMail("link").url);
    expect(await app.users(a, "greater@example.com")).toBe(0);
    expect((await app.accept(lesser)).status).toBe(200);
    // Somebody else who may give it can send it again.
    const pending = (await app.list(a)).find(({ status }) => status === "pending");
    await operator.fork({}).post("/tenant/invitation/resend", { id: pending?.id });
    expect((await app.accept(app.sent.at(-1)?.token)).data.user.role).toBe("admin");
  });

  it("an operator who is none any more: as little", async () => {
    const tenantId = await app.home();
    const operator = await app.join(null, "admin");
    const link = async (role: string) => {
      const body = { tenantId, email: `${role}@example.com`, role, send: false };
      return tokenIn((await invite(operator, body)).data.url);
    };
    const [greater, lesser] = [await link("admin"), await link("user")];
    await app.setRole(operator.id, "user");
    expect(outcome(await app.accept(greater))).toEqual(NOT_FOUND);
    expect((await app.accept(lesser)).status).toBe(200);
    await app.setRole(operator.id, "admin");
    expect((await app.accept(greater)).data.user.role).toBe("admin");
  });
});
