import { AsyncLocalStorage } from "node:async_hooks";
import { electron } from "@better-auth/electron";
import type { BetterAuthOptions } from "better-auth";
import { generateRandomString } from "better-auth/crypto";
import { generateCodeChallenge } from "better-auth/oauth2";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { bySubdomain } from "../../src/index";
import type { Browser } from "../support/browser";
import { BASE_URL, PASSWORD } from "../support/instance";
import { createSocialInstance, GLOBAL, queryOf, type SocialOptions } from "../support/social";
import { createPlaces, ELSEWHERE, EMAIL, expectRefused, PLACES, type Place } from "./places";

const CODE = "electron_authorization_code";

/** What a desktop app makes up before it opens a browser. */
async function challenge() {
  const verifier = generateRandomString(43);
  const state = generateRandomString(16);
  const query = {
    client_id: "electron",
    state,
    code_challenge: await generateCodeChallenge(verifier),
  };
  return { query, redeem: (token: string) => ({ token, state, code_verifier: verifier }) };
}

async function createDesktopPlaces() {
  const places = await createPlaces([electron()]);
  /** Signs in in a browser, for an app: the browser gets a code, which the app redeems. */
  async function signIn(place: Place) {
    const { query, redeem } = await challenge();
    const body = { email: EMAIL, password: PASSWORD };
    const answer = await places.at(place).post<Record<string, string>>("/sign-in/email", body, {
      query,
    });
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
    return redeem(answer.data[CODE] ?? "");
  }
  return { ...places, signIn };
}

const TOKEN = "/electron/token";

describe("electron", () => {
  it.each(PLACES)("hands a session over to the app on %s", async (place) => {
    const { signUp, signIn, at, whoIs, ids } = await createDesktopPlaces();
    const { user } = await signUp(place);
    const app = at(place);
    const answer = await app.post(TOKEN, await signIn(place));
    expect(answer.data).toMatchObject({ token: expect.any(String), user: { id: user.id } });
    expect(await whoIs(app, place)).toMatchObject({ id: user.id, tenantId: ids[place] });
  });

  it.each(ELSEWHERE)("R6: a code of A is no code on %s, and stays good at A", async (place) => {
    const { signUp, signIn, at, unchanged } = await createDesktopPlaces();
    await signUp("a");
    await signUp(place);
    const code = await signIn("a");
    expectRefused(await unchanged(() => at(place).post(TOKEN, code)), 404, "INVALID_TOKEN");
    expect((await at("a").post(TOKEN, code)).status).toBe(200);
    expectRefused(await at("a").post(TOKEN, code), 404, "INVALID_TOKEN");
  });

  it("R5: a session of A transfers nobody at B", async () => {
    const { signUp, naming, unchanged } = await createDesktopPlaces();
    const { browser } = await signUp("a");
    const { query, redeem } = await challenge();
    const transfer = (from: Browser) =>
      from.post<Record<string, string>>("/electron/transfer-user", {}, { query });
    const refused = await unchanged(() => transfer(browser.fork(naming("b"))));
    expectRefused(refused, 401, "UNAUTHORIZED");
    const { data } = await transfer(browser);
    expect((await browser.post(TOKEN, redeem(data[CODE] ?? ""))).status).toBe(200);
  });

  it("R14: is a way in of its own where a policy names ways", async () => {
    const { signUp, signIn, at, instance, ids } = await createDesktopPlaces();
    await signUp("a");
    const set = (methods: string[]) =>
      instance.api.updateTenant({
        body: { tenantId: ids.a ?? "", policy: { methods } },
      } as Parameters<typeof instance.api.updateTenant>[0]);
    await set(["password"]);
    const refused = await at("a").post(TOKEN, await signIn("a"));
    expectRefused(refused, 403, "SIGN_IN_METHOD_NOT_ALLOWED");
    await set(["password", "device"]);
    expect((await at("a").post(TOKEN, await signIn("a"))).status).toBe(200);
  });
});

/** An app opens the endpoint that starts social sign-in, which calls the server itself. */
async function createSocialDesktop(options: SocialOptions = {}) {
  const app = await createSocialInstance({ ...options, plugins: [electron()] });
  const { id: a } = await app.createTenant("aa");
  const { id: b } = await app.createTenant("bb");
  await app.configure(a);
  const { fetch } = globalThis;
  // A request over the network knows nothing of the one that makes it.
  const onTheNetwork = AsyncLocalStorage.snapshot();
  onTestFinished(() => void vi.unstubAllGlobals());
  vi.stubGlobal("fetch", (input: string | URL | Request, init?: RequestInit) => {
    const url = String(input instanceof Request ? input.url : input);
    const isOwn = new URL(url).pathname.startsWith(new URL(BASE_URL).pathname);
    if (!isOwn) return fetch(input, init);
    const request = new Request(input, init);
    // The network sends the host that a request goes to, whatever its headers say.
    request.headers.set("host", new URL(url).host);
    return onTheNetwork(() => app.auth.handler(request));
  });
  async function open(browser: Browser, named: Record<string, string>, at = "") {
    const { query, redeem } = await challenge();
    const { client_id: _, ...asked } = query;
    const started = await browser.get(`${at}/electron/init-oauth-proxy`, {
      query: { provider: "gitlab", ...asked, ...named },
    });
    return { started, redeem };
  }
  return { app, a, b, open };
}

describe.each(["database", "cookie"] as const)("init-oauth-proxy, state in the %s", (state) => {
  it.each(["query", "header"])("starts at the tenant that its %s names", async (by) => {
    const { app, a, open } = await createSocialDesktop({ stateStrategy: state });
    const browser = app.browser(by === "header" ? { "x-tenant-id": a } : {});
    const named: Record<string, string> = by === "query" ? { tenantId: a } : {};
    const { started, redeem } = await open(browser, named);
    expect([started.status, queryOf(started.location).client_id]).toEqual([302, `client-${a}`]);
    const back = await browser.get(await app.idp.authorize(started.location ?? "", "alice"));
    const [, token = ""] = /electron=([^;]+)/.exec(back.headers.getSetCookie().join()) ?? [];
    const { identifier } = JSON.parse(
      Buffer.from(decodeURIComponent(token), "base64url").toString(),
    );
    const desktop = app.browser({ "x-tenant-id": a });
    expect((await desktop.post(TOKEN, redeem(identifier))).status).toBe(200);
    expect((await app.whoIs(desktop, a))?.session.tenantId).toBe(a);
    expect(await app.rows("user", '"tenantId" <> ?', [a])).toBe(0);
  });

  it("starts on the platform where nothing names a tenant", async () => {
    const { app, open } = await createSocialDesktop({ stateStrategy: state });
    const { started } = await open(app.browser(), {});
    expect(queryOf(started.location).client_id).toBe(GLOBAL.clientId);
  });

  it("R2: starts nowhere for a tenant that is not there", async () => {
    const { app, open } = await createSocialDesktop({ stateStrategy: state });
    const { started } = await open(app.browser(), { tenantId: "nowhere" });
    expectRefused(started, 404, "TENANT_NOT_FOUND");
  });
});

describe("init-oauth-proxy where tenants have hosts", () => {
  const byHost = { tenant: { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) } };
  const hosts = { allowedHosts: ["example.com", "*.example.com"], protocol: "http" } as const;
  const fallback = "http://example.com";

  async function openAtHost(baseURL: BetterAuthOptions["baseURL"]) {
    const auth = { baseURL, trustedOrigins: ["http://*.example.com"] };
    const { app, a, open } = await createSocialDesktop({ ...byHost, auth });
    const browser = app.browser({ host: "aa.example.com" });
    const { started } = await open(browser, {}, "http://aa.example.com/api/auth");
    return { started, a };
  }

  it("starts at the tenant of its host", async () => {
    const allowedHosts = [...hosts.allowedHosts];
    const { started, a } = await openAtHost({ ...hosts, allowedHosts, fallback });
    expect([started.status, queryOf(started.location).client_id]).toEqual([302, `client-${a}`]);
  });

  it("threat: starts nowhere, not on the platform, where the call would lose the host", async () => {
    const { started } = await openAtHost(fallback);
    expectRefused(started, 409, "TENANT_SCOPE_CONFLICT");
    expect(JSON.stringify(started.data)).toContain("allowedHosts");
  });
});
