import { parseSetCookieHeader } from "better-auth/cookies";
import { describe, expect, it } from "vitest";
import { createInstance, type Instance, PASSWORD } from "../support/instance";
import { databases } from "../support/servers";

interface Signed {
  token: string;
  user: { id: string; email: string; name: string; image: string | null; tenantId: string | null };
  session: { token: string; userId: string; tenantId: string | null; expiresAt: string };
}

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const ANN = { name: "Ann", email: "ann@example.com", password: PASSWORD };
const DAY = 24 * 60 * 60 * 1000;

const keys = (value: object) => Object.keys(value).sort();
const credentials = ({ email, password } = ANN) => ({ email, password });

/** The cookies of an answer, each with its attributes, in the order they were sent. */
function cookiesOf(headers: Headers) {
  return headers
    .getSetCookie()
    .flatMap((line) => [...parseSetCookieHeader(line)].map(([name, cookie]) => ({ name, cookie })));
}

function expectToLast(session: { expiresAt: string }, days: number) {
  const left = new Date(session.expiresAt).getTime() - Date.now();
  expect(left).toBeGreaterThan(days * DAY - 60_000);
  expect(left).toBeLessThanOrEqual(days * DAY);
}

async function expectNothingWritten(instance: Instance) {
  expect(await instance.rows("user")).toBe(0);
  expect(await instance.rows("account")).toBe(0);
  expect(await instance.rows("session")).toBe(0);
}

describe.each(databases)("on %s", (database) => {
  it("sign-up answers token, user and session, all of them the tenant's", async () => {
    const instance = await createInstance({ database });
    const { id: tenantId } = await instance.createTenant();
    const browser = instance.browser();
    const { status, data } = await browser.post<Signed>(SIGN_UP, { ...ANN, tenantId });
    expect(status).toBe(200);
    expect(keys(data)).toEqual(["session", "token", "user"]);
    const { name, email } = ANN;
    expect(data.user).toMatchObject({ name, email, image: null, emailVerified: false, tenantId });
    expect(data.session).toMatchObject({ token: data.token, userId: data.user.id, tenantId });
    expectToLast(data.session, 7);
    expect(JSON.stringify(data)).not.toContain(PASSWORD);
    for (const table of ["user", "account", "session"]) {
      const column = instance.database.quote("tenantId");
      expect(await instance.rows(table, `${column} = ?`, [tenantId])).toBe(1);
    }
    const here = await browser.get("/get-session", { headers: { "x-tenant-id": tenantId } });
    expect(here.data).toMatchObject({ user: { id: data.user.id }, session: { tenantId } });
  });

  it("sign-in answers redirect, url, token, user and session", async () => {
    const instance = await createInstance({ database });
    const { id: tenantId } = await instance.createTenant();
    const { user } = await instance.signUp(tenantId, ANN.email);
    const browser = instance.browser();
    const body = { ...credentials(), tenantId, callbackURL: "/inside" };
    const { status, data, location } = await browser.post<Signed>(SIGN_IN, body);
    expect(status).toBe(200);
    expect(keys(data)).toEqual(["redirect", "session", "token", "url", "user"]);
    expect(data).toMatchObject({ redirect: true, url: "/inside", user: { id: user.id, tenantId } });
    expect(location).toBe("/inside");
    expect(data.session).toMatchObject({ token: data.token, userId: user.id, tenantId });
    expectToLast(data.session, 7);
    expect(await instance.rows("session", "token = ?", [data.token])).toBe(1);
    const here = await browser.get("/get-session", { headers: { "x-tenant-id": tenantId } });
    expect(here.data).toMatchObject({ session: { token: data.token } });
  });

  it("without callbackURL there is no url and nowhere to go, as in better-auth", async () => {
    const instance = await createInstance({ database });
    const { id: tenantId } = await instance.createTenant();
    await instance.signUp(tenantId, ANN.email);
    const answer = await instance.browser().post(SIGN_IN, { ...credentials(), tenantId });
    expect(keys(answer.data)).toEqual(["redirect", "session", "token", "user"]);
    expect(answer.data.redirect).toBe(false);
    expect(answer.location).toBeNull();
  });

  it("the same e-mail in two tenants and on the platform is three people", async () => {
    const instance = await createInstance({ database });
    const a = await instance.createTenant();
    const b = await instance.createTenant();
    const places = [
      { tenantId: a.id, password: "password of ann in a" },
      { tenantId: b.id, password: "password of ann in b" },
      { tenantId: null, password: "password of ann on the platform" },
    ];
    const enter = (way: "in" | "up", tenantId: string | null, password: string) =>
      instance
        .browser()
        .post<Signed>(
          tenantId === null ? `/sign-${way}/email` : `/tenant/sign-${way}/email`,
          tenantId === null ? { ...ANN, password } : { ...ANN, password, tenantId },
        );
    const ids = new Set<string>();
    for (const { tenantId, password } of places) {
      const answer = await enter("up", tenantId, password);
      expect(answer.status).toBe(200);
      expect(answer.data.user.tenantId).toBe(tenantId);
      ids.add(answer.data.user.id);
    }
    expect(ids.size).toBe(3);
    expect(await instance.rows("user", "email = ?", [ANN.email])).toBe(3);
    const sessions = await instance.rows("session");
    for (const here of places) {
      for (const { password } of places) {
        const answer = await enter("in", here.tenantId, password);
        const mine = password === here.password;
        expect(answer.status).toBe(mine ? 200 : 401);
        expect(answer.code).toBe(mine ? undefined : "INVALID_EMAIL_OR_PASSWORD");
        if (mine) expect(answer.data.user.tenantId).toBe(here.tenantId);
      }
    }
    expect(await instance.rows("session")).toBe(sessions + 3);
  });

  it("an e-mail that is taken in this tenant is 422, and nothing is written", async () => {
    const instance = await createInstance({ database });
    const { id: tenantId } = await instance.createTenant();
    await instance.signUp(tenantId, ANN.email);
    const body = { ...ANN, tenantId, password: "another password" };
    const answer = await instance.browser().post(SIGN_UP, body);
    expect(answer.status).toBe(422);
    expect(answer.code).toBe("USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(await instance.rows("user")).toBe(1);
    expect(await instance.rows("account")).toBe(1);
    expect(await instance.rows("session")).toBe(1);
  });

  it("R4: a user of a tenant is unknown to the platform's sign-in, and the other way round", async () => {
    const instance = await createInstance({ database });
    const { id: tenantId } = await instance.createTenant();
    await instance.signUp(tenantId, "inside@example.com");
    await instance.signUp(null, "platform@example.com");
    const inside = { email: "inside@example.com", password: PASSWORD };
    const platform = { email: "platform@example.com", password: PASSWORD };
    for (const answer of [
      await instance.browser().post("/sign-in/email", inside),
      await instance.browser().post(SIGN_IN, { ...platform, tenantId }),
    ]) {
      expect(answer.status).toBe(401);
      expect(answer.code).toBe("INVALID_EMAIL_OR_PASSWORD");
    }
    expect(await instance.rows("session")).toBe(2);
  });

  it("auth.api signs up and in without a request", async () => {
    const instance = await createInstance({ database });
    const { id: tenantId } = await instance.createTenant();
    const up = await instance.api.signUpEmailTenant({ body: { ...ANN, tenantId } });
    expect(keys(up)).toEqual(["session", "token", "user"]);
    expect(up.user).toMatchObject({ email: ANN.email, tenantId });
    expect(up.session).toMatchObject({ token: up.token, tenantId });
    expect(up.session?.expiresAt).toBeInstanceOf(Date);
    const signedIn = await instance.api.signInEmailTenant({ body: { ...credentials(), tenantId } });
    expect(keys(signedIn)).toEqual(["redirect", "session", "token", "url", "user"]);
    expect(signedIn).toMatchObject({ redirect: false, url: undefined, user: { id: up.user.id } });
    expect(signedIn.session).toMatchObject({ token: signedIn.token, tenantId });
    expect(await instance.rows("session")).toBe(2);
  });
});

describe("optional fields", () => {
  async function tenantWithAnn() {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    return { instance, tenantId };
  }

  it("the image is stored and answered", async () => {
    const { instance, tenantId } = await tenantWithAnn();
    const image = "https://example.com/ann.png";
    const answer = await instance.browser().post<Signed>(SIGN_UP, { ...ANN, tenantId, image });
    expect(answer.data.user.image).toBe(image);
    expect(await instance.rows("user", "image = ?", [image])).toBe(1);
  });

  it.each([undefined, true])("rememberMe %s: a cookie that stays for seven days", async (value) => {
    const { instance, tenantId } = await tenantWithAnn();
    for (const path of [SIGN_UP, SIGN_IN]) {
      const body = { ...ANN, tenantId, rememberMe: value };
      const answer = await instance.browser().post<Signed>(path, body);
      expect(answer.status).toBe(200);
      const cookies = cookiesOf(answer.headers);
      expect(cookies.map(({ name }) => name)).toEqual(["better-auth.session_token"]);
      expect(cookies[0]?.cookie["max-age"]).toBe((7 * DAY) / 1000);
      expectToLast(answer.data.session, 7);
    }
  });

  it("rememberMe false: two cookies reach the browser, the session is one day's", async () => {
    const { instance, tenantId } = await tenantWithAnn();
    for (const path of [SIGN_UP, SIGN_IN]) {
      const body = { ...ANN, tenantId, rememberMe: false };
      const answer = await instance.browser().post<Signed>(path, body);
      expect(answer.status).toBe(200);
      const cookies = cookiesOf(answer.headers);
      expect(cookies.map(({ name }) => name)).toEqual([
        "better-auth.session_token",
        "better-auth.dont_remember",
      ]);
      expect(cookies[0]?.cookie["max-age"]).toBeUndefined();
      expect(cookies[0]?.cookie.expires).toBeUndefined();
      expectToLast(answer.data.session, 1);
    }
  });

  it("auth.api hands out the cookies and headers as well", async () => {
    const { instance, tenantId } = await tenantWithAnn();
    await instance.signUp(tenantId, ANN.email);
    const body = { ...credentials(), tenantId, rememberMe: false, callbackURL: "/inside" };
    const { headers } = await instance.api.signInEmailTenant({ body, returnHeaders: true });
    expect(headers.getSetCookie()).toHaveLength(2);
    expect(headers.get("location")).toBe("/inside");
    const response = await instance.api.signInEmailTenant({ body, asResponse: true });
    expect(response.status).toBe(200);
    expect(response.headers.getSetCookie()).toHaveLength(2);
  });

  it.each([SIGN_UP, SIGN_IN])("threat: open redirect: %s refuses a foreign URL", async (path) => {
    const { instance, tenantId } = await tenantWithAnn();
    for (const callbackURL of ["https://evil.example/x", "//evil.example", "/\\evil.example"]) {
      const answer = await instance.browser().post(path, { ...ANN, tenantId, callbackURL });
      expect([answer.status, answer.code]).toEqual([403, "INVALID_CALLBACK_URL"]);
      expect(answer.location).toBeNull();
    }
    await expectNothingWritten(instance);
  });
});

describe("somebody who is signed in elsewhere", () => {
  it.each(["another tenant", "the platform"])("on %s signs in here", async (elsewhere) => {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    const other = elsewhere === "the platform" ? null : (await instance.createTenant()).id;
    await instance.signUp(tenantId, ANN.email);
    const there = await instance.signUp(other, "bob@example.com");
    const before = there.browser.fork();
    const answer = await there.browser.post<Signed>(SIGN_IN, { ...credentials(), tenantId });
    expect(answer.status).toBe(200);
    expect(answer.data.session.tenantId).toBe(tenantId);
    // The browser now has the new session; with no tenant named, that session says where it is.
    const now = await there.browser.get<Signed>("/get-session");
    expect(now.data.user).toMatchObject({ email: ANN.email, tenantId });
    // R5: the old session stays alive where it belongs.
    const old = await before.get<Signed>("/get-session");
    expect(old.data.user).toMatchObject({ email: "bob@example.com", tenantId: other });
    expect(await instance.rows("session", "token = ?", [there.token])).toBe(1);
  });

  it("R3: signing up here takes nothing along from there", async () => {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    const there = await instance.operator();
    const answer = await there.browser.post<Signed>(SIGN_UP, { ...ANN, tenantId });
    expect(answer.status).toBe(200);
    expect(answer.data.user).toMatchObject({ tenantId, role: "user" });
    expect(answer.data.session.tenantId).toBe(tenantId);
  });
});
