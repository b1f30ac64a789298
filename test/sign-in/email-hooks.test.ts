import { APIError, createAuthMiddleware } from "better-auth/api";
import { bearer, multiSession, twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createInstance, PASSWORD } from "../support/instance";

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const ANN = { name: "Ann", email: "ann@example.com", password: PASSWORD };

describe("hooks of the application", () => {
  interface Call {
    when: "before" | "after";
    path: string;
    tenantId: string | null;
    newSession?: string | undefined;
  }

  async function setUp() {
    const calls: Call[] = [];
    const instance = await createInstance({
      auth: {
        hooks: {
          before: createAuthMiddleware(async ({ path }) => {
            calls.push({ when: "before", path, tenantId: getTenantId() });
          }),
          after: createAuthMiddleware(async ({ path, context }) => {
            const newSession = context.newSession?.session.token;
            calls.push({ when: "after", path, tenantId: getTenantId(), newSession });
          }),
        },
      },
    });
    const { id: tenantId } = await instance.createTenant();
    const called = (path: string) => calls.filter((call) => call.path === path);
    return { instance, tenantId, called };
  }

  // A tenant's sign-in is better-auth's sign-in inside our endpoint, and hooks hear of both: once
  // by the path that was asked for, once by the path that hooks for better-auth's own know.
  it.each([
    [SIGN_UP, "/sign-up/email"],
    [SIGN_IN, "/sign-in/email"],
  ])("%s: run once for it, and once for %s inside the tenant", async (outer, inner) => {
    const { instance, tenantId, called } = await setUp();
    if (outer === SIGN_IN) await instance.signUp(tenantId, ANN.email);
    const answer = await instance.browser().post<{ token: string }>(outer, { ...ANN, tenantId });
    expect(answer.status).toBe(200);
    const { token } = answer.data;
    expect(called(inner)).toEqual([
      { when: "before", path: inner, tenantId },
      { when: "after", path: inner, tenantId, newSession: token },
    ]);
    expect(called(outer).map(({ when }) => when)).toEqual(["before", "after"]);
  });

  it("hooks.before that refuses by better-auth's path refuses the tenant's as well", async () => {
    const instance = await createInstance({
      auth: {
        hooks: {
          before: createAuthMiddleware(async (ctx) => {
            if (ctx.path !== "/sign-up/email" || ctx.body.email.endsWith("@example.com")) return;
            throw new APIError("FORBIDDEN", { code: "OUR_PEOPLE_ONLY", message: "no" });
          }),
        },
      },
    });
    const { id: tenantId } = await instance.createTenant();
    const body = { ...ANN, tenantId, email: "ann@elsewhere.example" };
    const refused = await instance.browser().post(SIGN_UP, body);
    expect([refused.status, refused.code]).toEqual([403, "OUR_PEOPLE_ONLY"]);
    expect(await instance.rows("user")).toBe(0);
    expect((await instance.browser().post(SIGN_UP, { ...ANN, tenantId })).status).toBe(200);
  });

  it("hooks.before that changes the body changes what is signed up", async () => {
    const instance = await createInstance({
      auth: {
        hooks: {
          before: createAuthMiddleware(async (ctx) => {
            if (ctx.path !== "/sign-up/email") return;
            return { context: { ...ctx, body: { ...ctx.body, name: "Ann (checked)" } } };
          }),
        },
      },
    });
    const { id: tenantId } = await instance.createTenant();
    const answer = await instance.browser().post(SIGN_UP, { ...ANN, tenantId });
    expect(answer.data.user).toMatchObject({ name: "Ann (checked)", tenantId });
    expect(await instance.rows("user", "name = ?", ["Ann (checked)"])).toBe(1);
  });

  it("hooks.after that refuses a sign-in is the answer", async () => {
    const instance = await createInstance({
      auth: {
        hooks: {
          after: createAuthMiddleware(async (ctx) => {
            if (ctx.path !== "/sign-in/email") return;
            ctx.setHeader("x-why", "closed");
            throw new APIError("FORBIDDEN", { code: "CLOSED_ON_SUNDAYS", message: "no" });
          }),
        },
      },
    });
    const { id: tenantId } = await instance.createTenant();
    await instance.signUp(tenantId, ANN.email);
    const answer = await instance.browser().post(SIGN_IN, { ...ANN, tenantId });
    expect([answer.status, answer.code]).toEqual([403, "CLOSED_ON_SUNDAYS"]);
    expect(answer.headers.get("x-why")).toBe("closed");
  });

  it("headers that a hook sets reach the browser", async () => {
    const instance = await createInstance({
      auth: {
        hooks: {
          after: createAuthMiddleware(async (ctx) => {
            if (ctx.path !== "/sign-in/email") return;
            ctx.setHeader("x-seen-in", getTenantId() ?? "nowhere");
            ctx.setCookie("seen", "yes");
          }),
        },
      },
    });
    const { id: tenantId } = await instance.createTenant();
    await instance.signUp(tenantId, ANN.email);
    const browser = instance.browser();
    const answer = await browser.post(SIGN_IN, { ...ANN, tenantId });
    expect(answer.headers.get("x-seen-in")).toBe(tenantId);
    expect([...browser.cookies.keys()].sort()).toEqual(["better-auth.session_token", "seen"]);
  });
});

describe("databaseHooks", () => {
  it("run once for each row, inside the tenant", async () => {
    const seen: string[] = [];
    const note = (what: string) => async () => void seen.push(`${what} ${getTenantId()}`);
    const hooks = (model: string) => ({
      create: { before: note(`before ${model}`), after: note(`after ${model}`) },
    });
    const instance = await createInstance({
      auth: {
        databaseHooks: {
          user: hooks("user"),
          account: hooks("account"),
          session: hooks("session"),
        },
      },
    });
    const { id } = await instance.createTenant();
    await instance.signUp(id);
    const models = ["user", "account", "session"];
    const expected = models.flatMap((m) => [`after ${m} ${id}`, `before ${m} ${id}`]);
    expect(seen.sort()).toEqual(expected.sort());
  });

  it("a hook that says no stops the sign-up", async () => {
    const instance = await createInstance({
      auth: { databaseHooks: { user: { create: { before: async () => false } } } },
    });
    const { id: tenantId } = await instance.createTenant();
    const answer = await instance.browser().post(SIGN_UP, { ...ANN, tenantId });
    expect([answer.status, answer.code]).toEqual([400, "FAILED_TO_CREATE_USER"]);
    expect(await instance.rows("user")).toBe(0);
    expect(await instance.rows("account")).toBe(0);
  });

  it("R3: a hook cannot move the user or the session to another tenant", async () => {
    let other = "";
    const move = async <Row extends object>(row: Row) => ({ data: { ...row, tenantId: other } });
    const instance = await createInstance({
      auth: {
        databaseHooks: {
          user: { create: { before: move } },
          session: { create: { before: move } },
        },
      },
    });
    const { id: tenantId } = await instance.createTenant();
    other = (await instance.createTenant()).id;
    const answer = await instance.browser().post(SIGN_UP, { ...ANN, tenantId });
    expect(answer.data).toMatchObject({ user: { tenantId }, session: { tenantId } });
    expect(await instance.rows("user", `"tenantId" = ?`, [other])).toBe(0);
    expect(await instance.rows("session", `"tenantId" = ?`, [other])).toBe(0);
  });
});

describe("other plugins", () => {
  it("two-factor: a user with it on gets twoFactorRedirect and no session", async () => {
    const codes: string[] = [];
    const instance = await createInstance({
      plugins: [
        twoFactor({
          skipVerificationOnEnable: true,
          otpOptions: { sendOTP: async ({ otp }) => void codes.push(otp) },
        }),
      ],
    });
    const { id: tenantId } = await instance.createTenant();
    const ann = await instance.signUp(tenantId, ANN.email);
    const enabled = await ann.browser.post("/two-factor/enable", { password: PASSWORD });
    expect(enabled.status).toBe(200);
    const sessions = await instance.rows("session");

    const browser = instance.browser();
    const answer = await browser.post(SIGN_IN, { ...ANN, tenantId });
    expect(answer.status).toBe(200);
    expect(answer.data).toMatchObject({ twoFactorRedirect: true });
    expect(answer.data.token).toBeUndefined();
    expect(answer.data.user).toBeUndefined();
    expect(answer.data.session ?? null).toBeNull();
    expect([...browser.cookies.keys()]).toEqual(["better-auth.two_factor"]);
    expect(await instance.rows("session")).toBe(sessions);
    const headers = { "x-tenant-id": tenantId };
    expect((await browser.get("/get-session", { headers })).data).toBeNull();

    // The second step belongs to the tenant of the first.
    const other = await instance.createTenant();
    const elsewhere = browser.fork({ "x-tenant-id": other.id });
    expect((await elsewhere.post("/two-factor/send-otp")).status).toBe(401);
    expect((await browser.post("/two-factor/send-otp", {}, { headers })).status).toBe(200);
    const code = { code: codes[0] };
    expect((await elsewhere.post("/two-factor/verify-otp", code)).status).toBe(401);
    const verified = await browser.post("/two-factor/verify-otp", code, { headers });
    expect(verified.status).toBe(200);
    expect(verified.data.user).toMatchObject({ email: ANN.email, tenantId });
    const here = await browser.get("/get-session", { headers });
    expect(here.data).toMatchObject({ session: { tenantId } });
  });

  it("two-factor: auth.api answers the same", async () => {
    const instance = await createInstance({
      plugins: [twoFactor({ skipVerificationOnEnable: true })],
    });
    const { id: tenantId } = await instance.createTenant();
    const ann = await instance.signUp(tenantId, ANN.email);
    await ann.browser.post("/two-factor/enable", { password: PASSWORD });
    const { email, password } = ANN;
    const answer = await instance.api.signInEmailTenant({ body: { email, password, tenantId } });
    expect(answer).toMatchObject({ twoFactorRedirect: true });
    expect(answer.session ?? null).toBeNull();
  });

  it("bearer: the token header comes with a tenant's sign-in, and works there", async () => {
    const instance = await createInstance({ plugins: [bearer()] });
    const { id: tenantId } = await instance.createTenant();
    await instance.signUp(tenantId, ANN.email);
    const answer = await instance.browser().post(SIGN_IN, { ...ANN, tenantId });
    const token = answer.headers.get("set-auth-token");
    expect(token).toContain(String(answer.data.token));
    const caller = instance.browser({ authorization: `Bearer ${token}`, "x-tenant-id": tenantId });
    const session = await caller.get("/get-session");
    expect(session.data).toMatchObject({ user: { email: ANN.email, tenantId } });
  });

  it("multi-session: one cookie for the session, one for the list of them", async () => {
    const instance = await createInstance({ plugins: [multiSession()] });
    const { id: tenantId } = await instance.createTenant();
    const { browser, token } = await instance.signUp(tenantId, ANN.email);
    const names = [...browser.cookies.keys()].sort();
    expect(names).toEqual([
      "better-auth.session_token",
      `better-auth.session_token_multi-${token.toLowerCase()}`,
    ]);
  });
});
