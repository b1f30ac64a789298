import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { TenantAuthOptions, TenantManagementRequest } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { databases } from "../../support/database";
import { PASSWORD } from "../../support/instance";
import { outcome, type WorldOptions } from "../../support/world";
import { createSCIMWorld, identity } from "../enterprise/world";
import { createInviting, INVITED, invitationsWithMailbox, shareInviting, tokenIn } from "./world";

const NOT_FOUND = [404, "INVITATION_NOT_FOUND"];

/** Makes an invitation that is not mailed, and returns the token of its link. */
async function link(by: Browser, body: object) {
  const invitation = { email: INVITED, role: "admin", send: false, ...body };
  const { data, status } = await by.post<{ url: string }>("/tenant/invitation/create", invitation);
  expect(status, JSON.stringify(data)).toBe(200);
  return tokenIn(data.url);
}

type CanManage = NonNullable<TenantAuthOptions["canManageTenants"]>;

const createManaged = (
  canManageTenants: CanManage,
  more: Parameters<typeof createInviting>[0] = {},
) => createInviting({ ...more, tenant: { canManageTenants } });

/** As docs/platform.md writes it. */
const admins = ({ action, tenantId, session }: TenantManagementRequest) => {
  if (session?.user.role !== "admin") return false;
  const home = session.session.tenantId;
  return !home || (home === tenantId && action.startsWith("invitation:"));
};

describe.each<[what: string, tenant: TenantAuthOptions]>([
  ["tenantRoles", { tenantRoles: { admin: ["invitation:*"] } }],
  ["canManageTenants", { canManageTenants: (_, request) => admins(request) }],
])("where %s decides, an inviter who may not invite any more gives no role", (_, tenant) => {
  const plugins: WorldOptions["plugins"] = (send) => [magicLink({ sendMagicLink: send("link") })];
  const app = shareInviting({ tenant, plugins });

  it.each([
    ["demoted", "set-role"],
    ["deleted", "remove-user"],
    ["banned", "ban-user"],
  ])("%s, in the tenant", async (_, path) => {
    const tenantId = await app.home();
    await app.member(tenantId, "admin");
    const inviter = await app.member(tenantId, "admin");
    const at = app.at(tenantId, inviter);
    const email = "greater@example.com";
    const greater = await link(at, { tenantId, email });
    const lesser = await link(at, { tenantId, email: "lesser@example.com", role: "user" });
    expect((await app.open(greater)).status).toBe(200);
    const operator = app.at(tenantId, await app.operator());
    const changed = await operator.post(`/admin/${path}`, { userId: inviter.id, role: "user" });
    expect(changed.status).toBe(200);
    for (const answer of [await app.open(greater), await app.accept(greater)]) {
      expect(outcome(answer)).toEqual(NOT_FOUND);
    }
    const byMail = async () => {
      await app.at(tenantId).post("/sign-in/magic-link", { email, callbackURL: "/" });
      await app.browser().get(app.lastMail("link").url);
      return (await app.rowsIn(tenantId, "user")).find((user) => user.email === email)?.role;
    };
    expect(await byMail()).toBeUndefined();
    expect((await app.accept(lesser)).status).toBe(200);
    // Somebody else who may give it can send it again.
    const pending = (await app.list(tenantId)).find(({ status }) => status === "pending");
    await app.aMinuteLater();
    await operator.fork({}).post("/tenant/invitation/resend", { id: pending?.id });
    expect(await byMail()).toBe("admin");
  });

  it("demoted and deleted, on the platform", async () => {
    const tenantId = await app.home();
    const operator = await app.join(null, "admin");
    const [greater, another] = [
      await link(operator, { tenantId }),
      await link(operator, { tenantId, email: "another@example.com" }),
    ];
    const lesser = await link(operator, { tenantId, email: "lesser@example.com", role: "user" });
    await app.setRole(operator.id, "user");
    expect(outcome(await app.accept(greater))).toEqual(NOT_FOUND);
    expect((await app.accept(lesser)).status).toBe(200);
    await app.setRole(operator.id, "admin");
    expect((await app.accept(greater)).data.user.role).toBe("admin");
    await (await app.operator()).post("/admin/remove-user", { userId: operator.id });
    expect(outcome(await app.accept(another))).toEqual(NOT_FOUND);
  });
});

describe("where canManageTenants decides, an inviter who may not invite any more gives no role", () => {
  it.each(databases)("of a third tenant, by a list of the application, on %s", async (database) => {
    const managers = new Set<string>();
    const mine: CanManage = async ({ context }, { session, action }) => {
      // Through the adapter, inside of the transaction that makes the user.
      const where = [{ field: "id", value: session?.user.id ?? "" }];
      const known = await context.adapter.findOne<{ id: string }>({ model: "user", where });
      return action === "invitation:create" && managers.has(known?.id ?? "");
    };
    const app = await createManaged(mine, {
      database,
      plugins: (send) => [magicLink({ sendMagicLink: send("link") })],
    });
    const { acme: tenantId } = app.ids;
    const reseller = await app.member("globex", "admin");
    managers.add(reseller.id);
    await link(reseller, { tenantId });
    const token = await link(reseller, { tenantId, email: "second@example.com" });
    const byMail = async () => {
      await app.at("acme").post("/sign-in/magic-link", { email: INVITED, callbackURL: "/" });
      await app.browser().get(app.lastMail("link").url);
      return (await app.rowsIn("acme", "user")).find(({ email }) => email === INVITED)?.role;
    };
    managers.clear();
    expect([await byMail(), outcome(await app.accept(token))]).toEqual([undefined, NOT_FOUND]);
    managers.add(reseller.id);
    await app.change("globex", { status: "suspended" });
    expect(outcome(await app.accept(token))).toEqual(NOT_FOUND);
    await app.change("globex", { status: "active" });
    expect(await byMail()).toBe("admin");
    expect((await app.accept(token)).data.user.role).toBe("admin");
  });

  it("nothing of the user who accepts speaks for the inviter, and a rule that throws allows no one", async () => {
    let fails = false;
    const seen: unknown[] = [];
    const app = await createManaged(({ headers, request, context }, { session }) => {
      if (fails) throw new Error("no list of managers");
      seen.push([headers?.get("cookie") ?? null, Boolean(request), context.session]);
      return session !== null;
    });
    const operator = await app.join(null, "admin");
    const token = await link(operator, { tenantId: app.ids.acme });
    seen.length = 0;
    expect((await app.open(token, operator)).status).toBe(200);
    expect(seen).toEqual([[null, false, null]]);
    fails = true;
    expect(outcome(await app.accept(token))).toEqual(NOT_FOUND);
    expect(app.logs.join()).toContain("no list of managers");
  });

  it("the server's own code, and a caller without a session, may give it for good", async () => {
    const app = await createManaged((_, { session }) => session === null);
    const { token } = await app.invite("acme", INVITED, { role: "admin" });
    expect((await app.accept(token)).data.user.role).toBe("admin");
    const other = await link(app.browser(), { tenantId: app.ids.globex });
    expect((await app.accept(other)).data.user.role).toBe("admin");
  });
});

it("an administrator that the directory has deactivated does not come back by a second address", async () => {
  const world = await createSCIMWorld({
    scim: { identity },
    plugins: [invitationsWithMailbox().plugin],
    tenant: { tenantRoles: { admin: ["invitation:*"] } },
  });
  await world.join("acme", "admin");
  const mallory = await world.join("acme", "admin", "mallory@example.com");
  const directory = await world.connect("acme");
  const { data } = await directory.add("mallory");
  const token = await link(mallory, {});
  const accept = () =>
    world
      .browser()
      .post("/tenant/invitation/accept", { token, name: "Mallory", password: PASSWORD });
  const setActive = (active: boolean) => directory.patch(`Users/${data.id}`, "active", active);
  expect((await setActive(false)).status).toBe(200);
  expect(outcome(await accept())).toEqual(NOT_FOUND);
  expect((await setActive(true)).status).toBe(200);
  expect(outcome(await accept())).toEqual([200, undefined]);
});
