import { createAuthMiddleware, getSessionFromCtx } from "better-auth/api";
import { magicLink } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { describe, expect, it } from "vitest";
import type { TenantRoleAction } from "../../src/index";
import { PASSWORD } from "../support/instance";
import { databases } from "../support/servers";
import { createInviting, INVITED, type Inviting, outcome, tokenIn, whoIs } from "./inviting";

const NOT_FOUND = [404, "INVITATION_NOT_FOUND"];
const ROLE_NOT_ALLOWED = [403, "ROLE_NOT_ALLOWED"];

const tenantRoles = {
  admin: ["invitation:*"],
  helper: ["invitation:create", "invitation:resend"],
  reader: ["invitation:list"],
} satisfies Record<string, TenantRoleAction[]>;

async function member(app: Inviting, tenantId: string, role: string, name = role) {
  const email = `${name}@example.com`;
  const { url = "" } = await app.api.createTenantInvitation({
    body: { tenantId, email, role, send: false },
  });
  const browser = app.browser();
  const { data } = await app.accept(tokenIn(url), {}, browser);
  return { browser, id: data.user.id };
}

const openLink = (app: Inviting, token: string, browser = app.browser()) =>
  browser.get<{ emailAndPassword: object }>("/tenant/invitation/get", { query: { token } });

describe("roles that nobody describes", () => {
  it("a tenant's user gives out none that it does not have: they may mean anything", async () => {
    const app = await createInviting({ tenant: { tenantRoles } });
    const { a } = app.ids;
    const { browser: helper } = await member(app, a, "helper,biller", "helper");
    const invite = (role: string) =>
      helper.post("/tenant/invitation/create", { email: INVITED, role });
    for (const role of ["owner", "Admin", "__proto__", "user;admin", "reader,owner"]) {
      expect([role, ...outcome(await invite(role))]).toEqual([role, ...ROLE_NOT_ALLOWED]);
    }
    for (const role of ["user", "helper", "biller"]) {
      expect([role, (await invite(role)).status]).toEqual([role, 200]);
    }
    // Operators give out what they like.
    await app.invite(a, "owner@example.com", { role: "owner" });
  });

  it("several are stored as the admin plugin reads them", async () => {
    const app = await createInviting({ tenant: { tenantRoles } });
    const { token } = await app.invite(app.ids.a, INVITED, { role: " helper , admin," });
    expect((await app.accept(token)).data.user.role).toBe("helper,admin");
  });
});

describe("an inviter who is no more what they were", () => {
  const demote = (app: Inviting, id: string) =>
    app.operator.post("/admin/set-role", { userId: id, role: "user" }, { headers: at(app) });
  const remove = (app: Inviting, id: string) =>
    app.operator.post("/admin/remove-user", { userId: id }, { headers: at(app) });
  const ban = (app: Inviting, id: string) =>
    app.operator.post("/admin/ban-user", { userId: id }, { headers: at(app) });
  const at = (app: Inviting) => ({ "x-tenant-id": app.ids.a });

  it.each([
    ["demoted", demote],
    ["deleted", remove],
    ["banned", ban],
  ])("%s: the role that they could give then is not given now", async (_, change) => {
    const links: string[] = [];
    const app = await createInviting({
      tenant: { tenantRoles },
      plugins: [magicLink({ sendMagicLink: ({ url }) => void links.push(url) })],
    });
    const { a } = app.ids;
    await member(app, a, "admin", "other");
    const { browser, id } = await member(app, a, "admin");
    const invite = async (email: string, role: string) => {
      const body = { email, role, send: false };
      const { data } = await browser.post<{ url: string }>("/tenant/invitation/create", body);
      return tokenIn(data.url);
    };
    const greater = await invite("greater@example.com", "admin");
    const lesser = await invite("lesser@example.com", "user");
    expect((await openLink(app, greater)).status).toBe(200);
    expect((await change(app, id)).status).toBe(200);
    expect(outcome(await openLink(app, greater))).toEqual(NOT_FOUND);
    expect(outcome(await app.accept(greater))).toEqual(NOT_FOUND);
    const person = app.browser({ "x-tenant-id": a });
    await person.post("/sign-in/magic-link", { email: "greater@example.com", callbackURL: "/in" });
    await app.browser().get(links.at(-1) ?? "");
    expect(await app.users(a, "greater@example.com")).toBe(0);
    expect((await app.accept(lesser)).status).toBe(200);
    // Somebody else who may give it can send it again.
    const pending = await app.api.listTenantInvitations({
      query: { tenantId: a, status: "pending" },
    });
    await app.operator.post("/tenant/invitation/resend", { id: pending[0]?.id });
    const { data } = await app.accept(app.mails.at(-1)?.token ?? "");
    expect(data.user.role).toBe("admin");
  });
});

it("an operator who is none any more: as little", async () => {
  const app = await createInviting({ tenant: { tenantRoles } });
  const { a } = app.ids;
  const { token } = await app.invite(a, "greater@example.com", { role: "admin" });
  const { token: lesser } = await app.invite(a, "lesser@example.com", { role: "user" });
  const table = app.database.quote("user");
  await app.database.query(`update ${table} set role = 'user' where role = 'admin'`);
  expect(outcome(await app.accept(token))).toEqual(NOT_FOUND);
  expect((await app.accept(lesser)).status).toBe(200);
  await app.database.query(
    `update ${table} set role = 'admin' where ${app.database.quote("tenantId")} = ''`,
  );
  expect((await app.accept(token)).data.user.role).toBe("admin");
});

it("with a cookie for each tenant, its own administrator sends again and revokes", async () => {
  const app = await createInviting({ tenant: { tenantRoles, sessionCookies: "per-tenant" } });
  const { a, b } = app.ids;
  const { browser } = await member(app, a, "admin");
  const own = await app.invite(a);
  const other = await app.invite(b);
  for (const path of ["resend", "revoke"]) {
    const statusOf = async (id: string) =>
      (await browser.post(`/tenant/invitation/${path}`, { id })).status;
    // One of another tenant is like one that does not exist.
    expect(await Promise.all([own.id, other.id, "nobodys"].map(statusOf))).toEqual([200, 401, 401]);
  }
});

describe("somebody who is signed in elsewhere", () => {
  it("opens and accepts, also where a hook has read their session before", async () => {
    const app = await createInviting({
      operator: false,
      auth: {
        hooks: { before: createAuthMiddleware(async (ctx) => void (await getSessionFromCtx(ctx))) },
      },
    });
    const { a, b } = app.ids;
    const browser = app.browser();
    await app.accept((await app.invite(a)).token, {}, browser);
    expect(await whoIs(browser, a)).toMatchObject({ tenantId: a });
    const { token } = await app.invite(b);
    expect((await openLink(app, token, browser)).status).toBe(200);
    // What is named still counts.
    const named = browser.fork({ "x-tenant-id": a });
    expect(outcome(await openLink(app, token, named))).toEqual(NOT_FOUND);
    expect((await app.accept(token, {}, browser)).data.user.tenantId).toBe(b);
    expect(await whoIs(browser, b)).toMatchObject({ tenantId: b });
  });
});

describe("R12: what the application says about sign-up counts for accepting", () => {
  const body = { name: "Ada", password: PASSWORD };

  it("disabled", async () => {
    const app = await createInviting({
      operator: false,
      auth: { disabledPaths: ["/sign-up/email"] },
    });
    const { token } = await app.invite(app.ids.a);
    const { data } = await openLink(app, token);
    expect(data.emailAndPassword).toEqual({ enabled: true, signUp: false });
    expect((await app.accept(token)).status).toBe(404);
    expect(await app.statusOf(app.ids.a)).toEqual(["pending"]);
  });

  it.each([
    ["a rule for sign-up", { "/sign-up/email": { window: 60, max: 1 } }, [404, 429]],
    [
      "a rule of its own",
      {
        "/sign-up/email": { window: 60, max: 1 },
        "/tenant/invitation/accept": { window: 60, max: 2 },
      },
      [404, 404, 429],
    ],
    ["no rule", {}, [404, 404, 404, 429]],
  ])("limited by %s", async (name, customRules, statuses) => {
    const app = await createInviting({
      operator: false,
      auth: { rateLimit: { enabled: true, customRules } },
    });
    const answers: number[] = [];
    // better-auth counts in the process: each case comes from an address of its own.
    const browser = app.browser({ "x-forwarded-for": `10.9.8.${name.length}` });
    for (const _ of statuses) {
      const answer = await browser.post("/tenant/invitation/accept", { ...body, token: "x" });
      answers.push(answer.status);
    }
    expect(answers).toEqual(statuses);
  });

  it("guarded by a plugin's middleware", async () => {
    const guarded: string[] = [];
    const guard = (path: string) => ({
      path,
      middleware: createAuthMiddleware(async () => void guarded.push(path)),
    });
    const app = await createInviting({
      operator: false,
      plugins: [{ id: "guard", middlewares: [guard("/sign-up/email"), guard("/**")] }],
    });
    const { token } = await app.invite(app.ids.a);
    expect((await app.accept(token)).status).toBe(200);
    expect(guarded.sort()).toEqual(["/**", "/sign-up/email"]);
  });

  it("answered by a plugin's middleware", async () => {
    const refuse = createAuthMiddleware(async () => new Response("not now", { status: 418 }));
    const middlewares = [{ path: "/sign-up/*", middleware: refuse }];
    const app = await createInviting({
      operator: false,
      plugins: [{ id: "guard", middlewares: middlewares as never }],
    });
    const { token } = await app.invite(app.ids.a);
    expect((await app.accept(token)).status).toBe(418);
    expect(await app.statusOf(app.ids.a)).toEqual(["pending"]);
    // The server's own code is not guarded, here as there.
    const { user } = await app.api.acceptTenantInvitation({ body: { ...body, token } });
    expect(user.tenantId).toBe(app.ids.a);
  });
});

describe("what the page of a link is told", () => {
  it("no sign-up where the policy has none for this address", async () => {
    const app = await createInviting();
    const { a } = app.ids;
    const { token } = await app.invite(a);
    const signUp = async (policy: object) => {
      await app.setPolicy(a, policy);
      return (await openLink(app, token)).data.emailAndPassword;
    };
    expect(await signUp({ signUp: "closed" })).toEqual({ enabled: true, signUp: false });
    const domains = { signUp: "invited", emailDomains: ["acme.com"] };
    expect(await signUp(domains)).toEqual({ enabled: true, signUp: false });
    expect(await signUp({ signUp: "invited" })).toEqual({ enabled: true, signUp: true });
  });

  it("one token: a page that has one in its address already is refused", async () => {
    const app = await createInviting();
    const invite = (redirectTo: string) =>
      app.operator.post<{ url: string }>("/tenant/invitation/create", {
        tenantId: app.ids.a,
        email: INVITED,
        send: false,
        redirectTo,
      });
    for (const page of ["/join?token=x", "/join?a=b&token", "/join?%74oken=x"]) {
      expect([page, ...outcome(await invite(page))]).toEqual([page, 400, "VALIDATION_ERROR"]);
    }
    const { data } = await invite("/join?tokens=x#here");
    expect(data.url).toMatch(/\/join\?tokens=x&token=tenant[^#]+#here$/);
  });
});

describe.each(databases)("on %s", (database) => {
  it.each(["serial", "uuid", undefined] as const)(
    "an id of another form is nobody's: %s",
    async (generateId) => {
      const app = await createInviting({
        database,
        auth: { advanced: { database: generateId ? { generateId } : {} } },
      });
      for (const id of ["x", "1 ", "1.0", "99999999999999999999", "' or 1=1"]) {
        for (const path of ["resend", "revoke"]) {
          const answer = await app.operator.post(`/tenant/invitation/${path}`, { id });
          expect([id, ...outcome(answer)]).toEqual([id, ...NOT_FOUND]);
        }
      }
      const { id } = await app.invite(app.ids.a);
      expect((await app.operator.post("/tenant/invitation/revoke", { id })).status).toBe(200);
    },
  );
});

it("a plugin behind that brings an adapter of its own changes nothing", async () => {
  const replaces = {
    id: "replaces",
    init: ({ adapter }: { adapter: DBAdapter }) => {
      const methods = Object.entries(adapter);
      return { context: { adapter: Object.fromEntries(methods) as unknown as DBAdapter } };
    },
  };
  const app = await createInviting({ operator: false, plugins: [replaces] });
  const { token } = await app.invite(app.ids.a, INVITED, { role: "user" });
  expect((await app.accept(token)).status).toBe(200);
  expect(await app.statusOf(app.ids.a)).toEqual(["accepted"]);
});

it("a suspended tenant's invitations wait, and grow old meanwhile", async () => {
  const app = await createInviting();
  const { a } = app.ids;
  const { token } = await app.invite(a);
  const { token: short, id } = await app.invite(a, "short@example.com", { expiresIn: 60 });
  const setStatus = (status: "active" | "suspended") =>
    app.api.updateTenant({ body: { tenantId: a, status } });
  await setStatus("suspended");
  for (const answer of [await openLink(app, token), await app.accept(token)]) {
    expect(outcome(answer)).toEqual([403, "TENANT_SUSPENDED"]);
  }
  await app.database.query(
    `update ${app.database.quote("tenantInvitation")} set ${app.database.quote("expiresAt")} = ? where id = ?`,
    [new Date(Date.now() - 1000).toISOString(), id],
  );
  await setStatus("active");
  expect(outcome(await app.accept(short))).toEqual([410, "INVITATION_EXPIRED"]);
  expect((await app.accept(token)).status).toBe(200);
  const dryRun = await app.api.deleteTenant({ body: { tenantId: a, dryRun: true } });
  expect(dryRun).toMatchObject({ rows: { tenantInvitation: 2 } });
  await app.api.deleteTenant({ body: { tenantId: a, after: 60 } });
  expect(outcome(await app.accept(short))).toEqual([403, "TENANT_SUSPENDED"]);
});
