import type { BetterAuthPlugin } from "better-auth";
import { APIError, createAuthEndpoint, createAuthMiddleware } from "better-auth/api";
import { multiSession, twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../../src/index";
import { databases } from "../../support/database";
import { PASSWORD } from "../../support/instance";
import { createWorld, outcome, type SessionAnswer, shareWorld } from "../../support/world";

/*
 * A tenant's sign-in is better-auth's own under another path (test/core/resolve/rewrite). Here is what
 * it answers, whom it is for, and what comes along from the application's options and hooks.
 */

type Signed = SessionAnswer & { token: string };

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const NOT_FOUND = [404, "TENANT_NOT_FOUND"];

let count = 0;
/** Somebody whom no other test has seen. */
const somebody = () => ({
  name: "Ann",
  email: `ann-${++count}@example.com`,
  password: PASSWORD,
});

const keys = (value: object) => Object.keys(value).sort();

describe.each(databases)("on %s", (database) => {
  const world = shareWorld({}, database);

  it("sign-up answers token, user and session, all of them the tenant's", async () => {
    const [ann, browser, tenantId] = [somebody(), world.browser(), world.ids.acme];
    const { status, data } = await world.touchesOnly("acme", () =>
      browser.post<Signed>(SIGN_UP, { ...ann, tenantId }),
    );
    expect([status, keys(data)]).toEqual([200, ["session", "token", "user"]]);
    const { name, email } = ann;
    expect(data.user).toMatchObject({ name, email, image: null, emailVerified: false, tenantId });
    expect(data.session).toMatchObject({ token: data.token, userId: data.user.id, tenantId });
    expect(JSON.stringify(data)).not.toContain(PASSWORD);
    expect(await world.whoIs(browser, "acme")).toEqual({ id: data.user.id, email, tenantId });
    expect(await world.rows("user", "email = ?", [email])).toBe(1);
  });

  it("sign-in answers redirect, url, token, user and session", async () => {
    const { id, email, token } = await world.signUp("acme", somebody().email);
    const browser = world.browser();
    const body = { email, password: PASSWORD, tenantId: world.ids.acme, callbackURL: "/inside" };
    const { status, data, location } = await browser.post<Signed>(SIGN_IN, body);
    expect([status, location]).toEqual([200, "/inside"]);
    expect(keys(data)).toEqual(["redirect", "session", "token", "url", "user"]);
    const session = { token: data.token, userId: id, tenantId: world.ids.acme };
    expect(data).toMatchObject({ redirect: true, url: "/inside", user: { id }, session });
    expect(data.token).not.toBe(token);
    expect(await world.whoIs(browser, "acme")).toMatchObject({ id });
  });

  it("better-auth's own sign-in and sign-up answer what they always do", async () => {
    const { email } = await world.signUp("platform", somebody().email);
    const signedIn = await world.browser().post("/sign-in/email", { email, password: PASSWORD });
    const up = await world.browser().post("/sign-up/email", somebody());
    expect(keys(up.data as object)).toEqual(["token", "user"]);
    expect(keys(signedIn.data as object)).toEqual(["redirect", "token", "user"]);
  });

  it("R2: malformed ids are 404; in other letters they are no tenant's, or the tenant's", async () => {
    const { id: tenantId } = await world.createTenant();
    await world.unchanged(async () => {
      for (const id of ["\0", `${tenantId}\0`, "x".repeat(100_000), "' or 1=1 --", "%", "\uD800"]) {
        const answer = await world.browser().post(SIGN_UP, { ...somebody(), tenantId: id });
        expect(outcome(answer)).toEqual(NOT_FOUND);
      }
    });
    // Databases that compare without case, or without spaces at the end, find the tenant.
    for (const id of [tenantId.toUpperCase(), tenantId.toLowerCase(), `${tenantId} `]) {
      const answer = await world.browser().post(SIGN_UP, { ...somebody(), tenantId: id });
      if (answer.status === 200) expect(answer.data.user).toMatchObject({ tenantId });
      else expect(outcome(answer)).toEqual(NOT_FOUND);
      if (id !== tenantId) expect(await world.rowsIn(id, "session")).toEqual([]);
    }
  });
});

it("auth.api signs up and in without a request, and hands out cookies and headers as well", async () => {
  const world = await createWorld();
  const tenantId = world.ids.acme;
  const { email, password, name } = somebody();
  const up = await world.api.signUpEmailTenant({ body: { name, email, password, tenantId } });
  expect(keys(up)).toEqual(["session", "token", "user"]);
  expect(up.user).toMatchObject({ email, tenantId });
  expect(up.session).toMatchObject({ token: up.token, tenantId, expiresAt: expect.any(Date) });
  const body = { email, password, tenantId };
  const named = { body: { email, password }, headers: new Headers(world.naming("acme")) };
  expect((await world.api.signInEmailTenant(named)).user.id).toBe(up.user.id);
  const signedIn = await world.api.signInEmailTenant({ body });
  expect(keys(signedIn)).toEqual(["redirect", "session", "token", "url", "user"]);
  expect(signedIn).toMatchObject({ redirect: false, url: undefined, user: { id: up.user.id } });
  const more = { ...body, rememberMe: false, callbackURL: "/inside" };
  const { headers } = await world.api.signInEmailTenant({ body: more, returnHeaders: true });
  expect([headers.getSetCookie().length, headers.get("location")]).toEqual([2, "/inside"]);
  const response = await world.api.signInEmailTenant({ body: more, asResponse: true });
  expect([response.status, response.headers.getSetCookie().length]).toEqual([200, 2]);
});

describe("options of the application", () => {
  it.each([{ requireEmailVerification: true }, { autoSignIn: false }])(
    "%j: sign-up answers { token: null, user, session: null }",
    async (password) => {
      const bodies: unknown[] = [];
      const sendVerificationEmail = async (_: unknown, request?: Request) =>
        void bodies.push(await request?.json().catch(() => "unreadable"));
      const emailAndPassword = { enabled: true, ...password };
      const auth = { emailAndPassword, emailVerification: { sendVerificationEmail } };
      const world = await createWorld({ auth });
      const body = { ...somebody(), locale: "de" };
      const { data, headers } = await world.at("acme").post<Signed>(SIGN_UP, body);
      const user = { tenantId: world.ids.acme };
      expect(keys(data)).toEqual(["session", "token", "user"]);
      expect(data).toMatchObject({ token: null, session: null, user });
      expect([headers.getSetCookie(), await world.rows("session")]).toEqual([[], 0]);
      // The mail sender can read the request, body included, as in better-auth.
      expect(bodies).toMatchObject("autoSignIn" in password ? [] : [{ locale: "de" }]);
      const { status } = await world.at("acme").post(SIGN_IN, body);
      expect(status).toBe("autoSignIn" in password ? 200 : 403);
    },
  );

  it("two-factor: a user with it on gets twoFactorRedirect and no session", async () => {
    const plugins = [multiSession(), twoFactor({ skipVerificationOnEnable: true })];
    const world = await createWorld({ plugins });
    const first = world.at("acme");
    const ann = somebody();
    await first.post(SIGN_UP, ann);
    await first.post("/two-factor/enable", { password: PASSWORD });

    const sessions = await world.rows("session");
    const browser = world.at("acme");
    const { data } = await browser.post(SIGN_IN, ann);
    expect(data).toMatchObject({ twoFactorRedirect: true });
    expect([data.token, data.user, data.session ?? null]).toEqual([undefined, undefined, null]);
    expect(browser.cookies.has("better-auth.session_token")).toBe(false);
    const { email, password } = ann;
    const body = { email, password, tenantId: world.ids.acme };
    const called = await world.api.signInEmailTenant({ body });
    expect([called, called.session ?? null]).toMatchObject([{ twoFactorRedirect: true }, null]);
    expect(await world.rows("session")).toBe(sessions);
  });
});

describe("R12: an endpoint of a plugin that replaces better-auth's", () => {
  const PATHS = {
    signUpEmail: "/sign-up/email",
    signInEmail: "/sign-in/email",
    signInSocial: "/sign-in/social",
  };
  /** Over HTTP better-auth takes the last of those with its own name, and none with another. */
  const bringing = (id: string, naming = (name: string) => name): BetterAuthPlugin => ({
    id,
    endpoints: Object.fromEntries(
      Object.entries(PATHS).map(([name, path]) => [
        naming(name),
        createAuthEndpoint(path, { method: "POST" }, async (ctx) =>
          ctx.json({ by: id, tenantId: getTenantId() }),
        ),
      ]),
    ),
  });
  const plugins = [bringing("first"), bringing("last"), bringing("unnamed", (name) => `${name}2`)];
  const world = shareWorld({ plugins });

  it.each(Object.entries(PATHS))("%s runs in auth.api as over HTTP", async (name, path) => {
    const { acme: tenantId } = world.ids;
    const { data } = await world.browser().post(`/tenant${path}`, { tenantId });
    expect(data).toMatchObject({ by: "last", tenantId });
    const api = world.api as unknown as Record<string, (call: object) => Promise<unknown>>;
    expect(await api[`${name}Tenant`]?.({ body: { tenantId } })).toEqual(data);
  });
});

describe("hooks of the application", () => {
  const hooks = { isOpen: false };
  const after = createAuthMiddleware(async (ctx) => {
    if (ctx.path !== "/sign-in/email") return;
    ctx.setHeader("x-seen-in", ctx.context.newSession?.session.tenantId ?? "nowhere");
    ctx.setCookie("seen", "yes");
    if (!hooks.isOpen) throw new APIError("FORBIDDEN", { code: "CLOSED", message: "no" });
  });
  // Everybody is to be Globex's.
  const before = async (row: object) => ({ data: { ...row, tenantId: world.ids.globex } });
  const create = { create: { before } };
  const databaseHooks = { user: create, session: create };
  const world = shareWorld({ auth: { hooks: { after }, databaseHooks } });
  const post = (path: string, body: object) => world.at("acme").post<Signed>(path, body);

  it("after sees the session; where it refuses, that is the answer, with headers and cookies", async () => {
    const ann = somebody();
    const { email, password } = ann;
    await post(SIGN_UP, ann);
    const closed = await post(SIGN_IN, ann);
    expect(outcome(closed)).toEqual([403, "CLOSED"]);
    expect(closed.headers.get("x-seen-in")).toBe(world.ids.acme);
    const body = { email, password, tenantId: world.ids.acme };
    const called = await world.api.signInEmailTenant({ body }).catch((error) => error);
    expect(new Headers(called.headers).get("x-seen-in")).toBe(world.ids.acme);
    hooks.isOpen = true;
    const { headers } = await post(SIGN_IN, ann);
    const cookies = headers.getSetCookie().map((line) => line.split("=")[0]);
    expect(cookies.sort()).toEqual(["better-auth.session_token", "seen"]);
  });

  it("R3: a databaseHook cannot move the user or the session to another tenant", async () => {
    const { data } = await world.touchesOnly("acme", () => post(SIGN_UP, somebody()));
    const tenantId = world.ids.acme;
    expect(data).toMatchObject({ user: { tenantId }, session: { tenantId } });
  });
});
