import { APIError, createAuthMiddleware } from "better-auth/api";
import { multiSession, twoFactor } from "better-auth/plugins";
import { beforeEach, describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { PASSWORD } from "../support/instance";
import { createWorld, expectRefused, outcome, shareWorld } from "../support/world";

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";

let count = 0;
const somebody = () => ({
  name: "Ann",
  email: `ann-${++count}@example.com`,
  password: PASSWORD,
});

describe("hooks of the application", () => {
  type Hook = Parameters<typeof createAuthMiddleware>[0];
  type Row = Record<string, unknown>;
  const NOTHING = { before: async () => {}, after: async () => {}, row: async () => {} };
  const hooks: {
    before: Hook;
    after: Hook;
    row: (when: string, row: Row) => Promise<unknown>;
  } = { ...NOTHING };
  beforeEach(() => void Object.assign(hooks, NOTHING));

  const rows = (model: string) => ({
    create: {
      before: (row: object) => hooks.row(`before ${model}`, { ...row }) as Promise<undefined>,
      after: (row: object) => hooks.row(`after ${model}`, { ...row }) as Promise<undefined>,
    },
  });
  const world = shareWorld({
    auth: {
      hooks: {
        before: createAuthMiddleware((ctx) => hooks.before(ctx)),
        after: createAuthMiddleware((ctx) => hooks.after(ctx)),
      },
      databaseHooks: { user: rows("user"), account: rows("account"), session: rows("session") },
    },
  });
  const post = (path: string, body: object) =>
    world.browser().post<{ token: string; user: object }>(path, {
      tenantId: world.ids.acme,
      ...body,
    });

  // A tenant's sign-in is better-auth's sign-in inside our endpoint, and hooks hear of both: once
  // by the path that was asked for, once by the path that hooks for better-auth's own know.
  it("run once for our path, and once for better-auth's own inside the tenant", async () => {
    const ann = somebody();
    for (const outer of [SIGN_UP, SIGN_IN]) {
      const calls: unknown[][] = [];
      hooks.before = async ({ path }) => void calls.push(["before", path, getTenantId()]);
      hooks.after = async ({ path, context }) =>
        void calls.push(["after", path, getTenantId(), context.newSession?.session.token]);
      const { data } = await post(outer, ann);
      const inner = outer.replace("/tenant", "");
      expect(calls.filter(([, path]) => path === inner)).toEqual([
        ["before", inner, world.ids.acme],
        ["after", inner, world.ids.acme, data.token],
      ]);
      const ours = calls.filter(([, path]) => path === outer);
      expect(ours.map(([when]) => when)).toEqual(["before", "after"]);
    }
  });

  it("hooks.before that refuses by better-auth's path refuses the tenant's as well", async () => {
    hooks.before = async ({ path, body }) => {
      if (path !== "/sign-up/email" || body.email.endsWith("@example.com")) return;
      throw new APIError("FORBIDDEN", { code: "OUR_PEOPLE_ONLY", message: "no" });
    };
    const stranger = { ...somebody(), email: "ann@elsewhere.example" };
    expectRefused(await world.unchanged(() => post(SIGN_UP, stranger)), 403, "OUR_PEOPLE_ONLY");
    expect((await post(SIGN_UP, somebody())).status).toBe(200);
  });

  it("hooks.before that changes the body changes what is signed up", async () => {
    hooks.before = async (ctx) => {
      if (ctx.path !== "/sign-up/email") return;
      return { context: { ...ctx, body: { ...ctx.body, name: "Ann (checked)" } } };
    };
    const { data } = await post(SIGN_UP, somebody());
    expect(data.user).toMatchObject({ name: "Ann (checked)", tenantId: world.ids.acme });
    expect(await world.rows("user", "name = ?", ["Ann (checked)"])).toBe(1);
  });

  it("hooks.after that refuses a sign-in is the answer, with its headers and cookies", async () => {
    const ann = somebody();
    await post(SIGN_UP, ann);
    let isOpen = false;
    hooks.after = async (ctx) => {
      if (ctx.path !== "/sign-in/email") return;
      ctx.setHeader("x-seen-in", getTenantId() ?? "nowhere");
      ctx.setCookie("seen", "yes");
      if (!isOpen) throw new APIError("FORBIDDEN", { code: "CLOSED_ON_SUNDAYS", message: "no" });
    };
    const closed = await post(SIGN_IN, ann);
    expect(outcome(closed)).toEqual([403, "CLOSED_ON_SUNDAYS"]);
    expect(closed.headers.get("x-seen-in")).toBe(world.ids.acme);
    isOpen = true;
    const { headers } = await post(SIGN_IN, ann);
    expect(headers.get("x-seen-in")).toBe(world.ids.acme);
    const cookies = headers.getSetCookie().map((line) => line.split("=")[0]);
    expect(cookies.sort()).toEqual(["better-auth.session_token", "seen"]);
  });

  it("databaseHooks run once for each row, inside the tenant", async () => {
    const seen: string[] = [];
    hooks.row = async (when) => void seen.push(`${when} ${getTenantId()}`);
    await post(SIGN_UP, somebody());
    const models = ["user", "account", "session"].map((model) => `${model} ${world.ids.acme}`);
    const expected = models.flatMap((model) => [`before ${model}`, `after ${model}`]);
    expect(seen.sort()).toEqual(expected.sort());
  });

  it("a databaseHook that says no stops the sign-up", async () => {
    hooks.row = async (when) => (when === "before user" ? false : undefined);
    const answer = await world.unchanged(() => post(SIGN_UP, somebody()));
    expect(outcome(answer)).toEqual([400, "FAILED_TO_CREATE_USER"]);
  });

  it("R3: a databaseHook cannot move the user or the session to another tenant", async () => {
    hooks.row = async (when, row) =>
      when === "before account" ? undefined : { data: { ...row, tenantId: world.ids.globex } };
    const { data } = await world.touchesOnly("acme", () => post(SIGN_UP, somebody()));
    const tenantId = world.ids.acme;
    expect(data).toMatchObject({ user: { tenantId }, session: { tenantId } });
  });
});

/* What else plugins do with a tenant's sign-in is in test/plugins. */
it("two-factor: a user with it on gets twoFactorRedirect and no session", async () => {
  const plugins = [multiSession(), twoFactor({ skipVerificationOnEnable: true })];
  const world = await createWorld({ plugins });
  const first = world.at("acme");
  const ann = somebody();
  const { data: signedUp } = await first.post(SIGN_UP, ann);
  const list = `better-auth.session_token_multi-${String(signedUp.token).toLowerCase()}`;
  expect([...first.cookies.keys()].sort()).toEqual(["better-auth.session_token", list]);
  await first.post("/two-factor/enable", { password: PASSWORD });

  const sessions = await world.rows("session");
  const browser = world.at("acme");
  const { data } = await browser.post(SIGN_IN, ann);
  expect(data).toMatchObject({ twoFactorRedirect: true });
  expect([data.token, data.user, data.session ?? null]).toEqual([undefined, undefined, null]);
  expect(browser.cookies.has("better-auth.two_factor")).toBe(true);
  expect(browser.cookies.has("better-auth.session_token")).toBe(false);
  expect(await world.whoIs(browser)).toBeNull();
  const { email, password } = ann;
  const body = { email, password, tenantId: world.ids.acme };
  const called = await world.api.signInEmailTenant({ body });
  expect(called).toMatchObject({ twoFactorRedirect: true });
  expect(called.session ?? null).toBeNull();
  expect(await world.rows("session")).toBe(sessions);
});
