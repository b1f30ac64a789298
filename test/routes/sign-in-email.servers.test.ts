import type { APIError } from "better-auth/api";
import { parseSetCookieHeader } from "better-auth/cookies";
import { describe, expect, it } from "vitest";
import { databases } from "../support/database";
import { PASSWORD } from "../support/instance";
import {
  createWorld,
  outcome,
  PLACES,
  passwordOf,
  type SessionAnswer,
  shareWorld,
} from "../support/world";

type Signed = SessionAnswer & { token: string };

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const PATHS = [SIGN_UP, SIGN_IN];
const DAY = 24 * 60 * 60 * 1000;
const REQUIRED = [400, "TENANT_ID_REQUIRED"];
const NOT_FOUND = [404, "TENANT_NOT_FOUND"];

let count = 0;
/** Somebody whom no other test has seen. */
const somebody = () => ({
  name: "Ann",
  email: `ann-${++count}@example.com`,
  password: PASSWORD,
});

const keys = (value: object) => Object.keys(value).sort();

function expectToLast(session: { expiresAt: string | Date }, days: number) {
  const left = new Date(session.expiresAt).getTime() - Date.now();
  expect(left).toBeGreaterThan(days * DAY - 60_000);
  expect(left).toBeLessThanOrEqual(days * DAY);
}

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
    expectToLast(data.session, 7);
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
    expectToLast(data.session, 7);
    expect(await world.whoIs(browser, "acme")).toMatchObject({ id });

    const plain = await world.browser().post(SIGN_IN, { ...body, callbackURL: undefined });
    expect(keys(plain.data)).toEqual(["redirect", "session", "token", "user"]);
    expect([plain.data.redirect, plain.location]).toEqual([false, null]);
  });

  it("R4: the same e-mail in two tenants and on the platform is three people", async () => {
    const people = await world.namesakes();
    expect(new Set(PLACES.map((place) => people[place].id)).size).toBe(3);
    for (const here of PLACES) {
      for (const there of PLACES) {
        const body = { email: people.email, password: passwordOf(there) };
        const path = here === "platform" ? "/sign-in/email" : SIGN_IN;
        const answer = await world.at(here).post<Signed>(path, body);
        if (here === there) expect(answer.data.user.id).toBe(people[here].id);
        else expect(outcome(answer)).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
      }
      const taken = { name: "Again", email: people.email, password: "another password" };
      const path = here === "platform" ? "/sign-up/email" : SIGN_UP;
      const answer = await world.unchanged(() => world.at(here).post(path, taken));
      expect(outcome(answer)).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
  });

  it("auth.api signs up and in without a request", async () => {
    const tenantId = world.ids.acme;
    const { email, password, name } = somebody();
    const up = await world.api.signUpEmailTenant({ body: { name, email, password, tenantId } });
    expect(keys(up)).toEqual(["session", "token", "user"]);
    expect(up.user).toMatchObject({ email, tenantId });
    expect(up.session).toMatchObject({ token: up.token, tenantId, expiresAt: expect.any(Date) });
    const signedIn = await world.api.signInEmailTenant({ body: { email, password, tenantId } });
    expect(keys(signedIn)).toEqual(["redirect", "session", "token", "url", "user"]);
    expect(signedIn).toMatchObject({ redirect: false, url: undefined, user: { id: up.user.id } });
    expect(signedIn.session).toMatchObject({ token: signedIn.token, tenantId });
  });
});

describe("optional fields", () => {
  const world = shareWorld();

  it("the image is stored and answered", async () => {
    const body = { ...somebody(), image: "https://example.com/ann.png" };
    const { data } = await world.at("acme").post(SIGN_UP, body);
    expect(data.user).toMatchObject({ image: body.image });
    expect(await world.rows("user", "email = ? and image = ?", [body.email, body.image])).toBe(1);
  });

  it.each([
    [undefined, 7, ["better-auth.session_token"]],
    [true, 7, ["better-auth.session_token"]],
    [false, 1, ["better-auth.session_token", "better-auth.dont_remember"]],
  ])("rememberMe %s: a session of %i days, and its cookies", async (rememberMe, days, names) => {
    const body = { ...somebody(), rememberMe };
    for (const path of PATHS) {
      const { data, headers } = await world.at("acme").post<Signed>(path, body);
      const cookies = headers.getSetCookie().flatMap((line) => [...parseSetCookieHeader(line)]);
      expect(cookies.map(([name]) => name)).toEqual(names);
      const lasting = rememberMe === false ? undefined : (7 * DAY) / 1000;
      expect(cookies[0]?.[1]["max-age"]).toBe(lasting);
      expect(cookies[0]?.[1].expires).toBeUndefined();
      expectToLast(data.session, days);
    }
  });

  it("auth.api hands out the cookies and headers as well", async () => {
    const { email } = await world.signUp("acme", somebody().email);
    const more = { tenantId: world.ids.acme, rememberMe: false, callbackURL: "/inside" };
    const body = { email, password: PASSWORD, ...more };
    const { headers } = await world.api.signInEmailTenant({ body, returnHeaders: true });
    expect([headers.getSetCookie().length, headers.get("location")]).toEqual([2, "/inside"]);
    const response = await world.api.signInEmailTenant({ body, asResponse: true });
    expect([response.status, response.headers.getSetCookie().length]).toEqual([200, 2]);
  });
});

describe("somebody who is signed in elsewhere", () => {
  const world = shareWorld();

  it.each(["globex", "platform"] as const)(
    "R5: on %s signs in here, and stays there",
    async (at) => {
      const here = await world.as("ann", "acme");
      const there = await world.as("bob", at);
      const [browser, before] = [there.fork({}), there.fork({})];
      const body = { email: here.email, password: PASSWORD, tenantId: world.ids.acme };
      expect((await browser.post(SIGN_IN, body)).status).toBe(200);
      // The browser now has the new session; with no tenant named, that session says where it is.
      expect(await world.whoIs(browser)).toMatchObject({ id: here.id, tenantId: world.ids.acme });
      expect(await world.whoIs(before)).toMatchObject({ id: there.id, tenantId: world.ids[at] });
    },
  );

  it("R3: signing up here takes nothing along from there", async () => {
    const operator = (await world.operator()).fork({});
    const tenantId = world.ids.acme;
    const { data } = await operator.post(SIGN_UP, { ...somebody(), tenantId });
    expect(data).toMatchObject({ user: { tenantId, role: "user" }, session: { tenantId } });
  });
});

describe("the tenant of a request", () => {
  const world = shareWorld({
    tenant: { resolveTenantId: async ({ headers }) => headers?.get("x-resolved") },
  });

  it.each(["resolver", "body", "query", "header"])(
    "R1, threat: checked one id, acted on another: the %s wins over what comes after",
    async (winner) => {
      const order = ["resolver", "body", "query", "header"];
      const ids = new Map<string, string>();
      for (const place of order.slice(order.indexOf(winner))) {
        ids.set(place, (await world.createTenant()).id);
      }
      for (const only of [true, false]) {
        const idOf = (place: string) => (!only || place === winner ? ids.get(place) : "") ?? "";
        const body = { ...somebody(), tenantId: idOf("body") };
        const rest = {
          query: { tenantId: idOf("query") },
          headers: { "x-resolved": idOf("resolver"), "x-tenant-id": idOf("header") },
        };
        for (const path of PATHS) {
          const { data } = await world.browser().post<Signed>(path, body, rest);
          const tenantId = ids.get(winner);
          expect(data).toMatchObject({ user: { tenantId }, session: { tenantId } });
          expect(await world.rows("user", "email = ?", [body.email])).toBe(1);
        }
      }
    },
  );

  it("R1: another header, when the application says so", async () => {
    const other = await createWorld({ tenant: { tenantHeader: "x-org" } });
    const tenantId = other.ids.acme;
    const old = await other.browser({ "x-tenant-id": tenantId }).post(SIGN_UP, somebody());
    expect(outcome(old)).toEqual(REQUIRED);
    const { data } = await other.browser({ "x-org": tenantId }).post(SIGN_UP, somebody());
    expect(data.user).toMatchObject({ tenantId });
  });

  it.each([
    ["no tenant", {}, REQUIRED],
    ["one that is not there", { tenantId: "nobody" }, NOT_FOUND],
    ["a slug, which is not an id,", { tenantId: "acme" }, NOT_FOUND],
  ])("R2: %s is refused, over HTTP and by auth.api", async (_, named, refused) => {
    const body = { ...somebody(), ...named };
    const failure = (error: APIError) => [error.statusCode, error.body?.code];
    await world.unchanged(async () => {
      for (const path of PATHS) {
        expect(outcome(await world.browser().post(path, body))).toEqual(refused);
      }
      const { signUpEmailTenant, signInEmailTenant } = world.api;
      expect(await signUpEmailTenant({ body }).catch(failure)).toEqual(refused);
      expect(await signInEmailTenant({ body }).catch(failure)).toEqual(refused);
    });
  });

  it("R1: auth.api takes it from the headers it is given, too", async () => {
    const headers = new Headers({ "x-tenant-id": world.ids.acme });
    const { user } = await world.api.signUpEmailTenant({ body: somebody(), headers });
    expect(user.tenantId).toBe(world.ids.acme);
  });
});
