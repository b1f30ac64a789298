import { AsyncLocalStorage } from "node:async_hooks";
import { electron } from "@better-auth/electron";
import type { BetterAuthOptions } from "better-auth";
import { generateRandomString } from "better-auth/crypto";
import { generateCodeChallenge } from "better-auth/oauth2";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Browser } from "../support/browser";
import { BASE_URL, PASSWORD } from "../support/instance";
import { createSocialWorld, GLOBAL, type SocialWorldOptions } from "../support/social";
import {
  EMAIL,
  expectRefused,
  PLACES,
  type Place,
  queryOf,
  SUBDOMAINS,
  shareWorld,
} from "../support/world";

const CODE = "electron_authorization_code";
const TOKEN = "/electron/token";

/** What a desktop app makes up before it opens a browser. */
async function challenge() {
  const verifier = generateRandomString(43);
  const state = generateRandomString(16);
  const query = { state, code_challenge: await generateCodeChallenge(verifier) };
  return { query, redeem: (token: string) => ({ token, state, code_verifier: verifier }) };
}

describe("electron", () => {
  const world = shareWorld({ plugins: [electron()] });

  /** Signs in in a browser, for an app: the browser gets a code, which the app redeems. */
  async function signIn(place: Place) {
    await world.as("jane", place);
    const { query, redeem } = await challenge();
    const { data } = await world
      .at(place)
      .post<Record<string, string>>(
        "/sign-in/email",
        { email: EMAIL, password: PASSWORD },
        { query: { client_id: "electron", ...query } },
      );
    return redeem(data[CODE] ?? "");
  }

  it.each(PLACES)("hands a session over to the app on %s", async (place) => {
    const app = world.at(place);
    const { id } = await world.as("jane", place);
    const answer = await app.post(TOKEN, await signIn(place));
    expect(answer.data).toMatchObject({ token: expect.any(String), user: { id } });
    expect(await world.whoIs(app)).toMatchObject({ id, tenantId: world.ids[place] });
  });

  it("R6: a code of Acme is good there only, and once", async () => {
    const code = await signIn("acme");
    await world.goodAtAcmeOnly((browser) => browser.post(TOKEN, code), 404, "INVALID_TOKEN");
    expectRefused(await world.at("acme").post(TOKEN, code), 404, "INVALID_TOKEN");
  });

  it("R5: a session transfers nobody at another tenant", async () => {
    const jane = await world.as("jane", "acme");
    const { query, redeem } = await challenge();
    const transfer = (from: Browser) =>
      from.post<Record<string, string>>(
        "/electron/transfer-user",
        {},
        { query: { client_id: "electron", ...query } },
      );
    const refused = await world.unchanged(() => transfer(world.at("globex", jane)));
    expectRefused(refused, 401, "UNAUTHORIZED");
    const { data } = await transfer(jane);
    expect((await jane.post(TOKEN, redeem(data[CODE] ?? ""))).status).toBe(200);
  });

  it("R14: is a way in of its own where a policy names ways", async () => {
    await world.as("jane", "acme");
    await world.change("acme", { policy: { methods: ["password"] } });
    const refused = await world.at("acme").post(TOKEN, await signIn("acme"));
    expectRefused(refused, 403, "SIGN_IN_METHOD_NOT_ALLOWED");
    await world.change("acme", { policy: { methods: ["password", "device"] } });
    expect((await world.at("acme").post(TOKEN, await signIn("acme"))).status).toBe(200);
  });
});

/** An app opens the endpoint that starts social sign-in, which calls the server itself. */
async function createSocialDesktop(options: SocialWorldOptions = {}) {
  const world = await createSocialWorld({ ...options, plugins: [electron()] });
  await world.configure("acme");
  const { fetch } = globalThis;
  // A request over the network knows nothing of the one that makes it.
  const onTheNetwork = AsyncLocalStorage.snapshot();
  onTestFinished(() => void vi.unstubAllGlobals());
  vi.stubGlobal("fetch", (input: string | URL | Request, init?: RequestInit) => {
    const { pathname, host } = new URL(input instanceof Request ? input.url : input);
    if (!pathname.startsWith(new URL(BASE_URL).pathname)) return fetch(input, init);
    const request = new Request(input, init);
    // The network sends the host that a request goes to, whatever its headers say.
    request.headers.set("host", host);
    return onTheNetwork(() => world.auth.handler(request));
  });
  async function open(browser: Browser, named: Record<string, string> = {}) {
    const { query, redeem } = await challenge();
    const started = await browser.get("/electron/init-oauth-proxy", {
      query: { provider: "gitlab", ...query, ...named },
    });
    return { started, redeem, client: queryOf(started.location).client_id };
  }
  return { ...world, open, acmesClient: `client-${world.ids.acme}` };
}

describe.each(["database", "cookie"] as const)("init-oauth-proxy, state in the %s", (state) => {
  it.each(["query", "header"])("starts at the tenant that its %s names", async (by) => {
    const desktop = await createSocialDesktop({ stateStrategy: state });
    const browser = desktop.at(by === "header" ? "acme" : "platform");
    const named = { ...(by === "query" && { tenantId: String(desktop.ids.acme) }) };
    const { started, redeem, client } = await desktop.open(browser, named);
    expect([started.status, client]).toEqual([302, desktop.acmesClient]);
    const back = await browser.get(await desktop.idp.authorize(started.location ?? "", "alice"));
    const [, token = ""] = /electron=([^;]+)/.exec(back.headers.getSetCookie().join()) ?? [];
    const json = Buffer.from(decodeURIComponent(token), "base64url").toString();
    const app = desktop.at("acme");
    expect((await app.post(TOKEN, redeem(JSON.parse(json).identifier))).status).toBe(200);
    expect(await desktop.whoIs(app)).toMatchObject({ tenantId: desktop.ids.acme });
    expect(await desktop.rows("user", '"tenantId" <> ?', [desktop.ids.acme])).toBe(0);
  });

  it("R2: starts on the platform unnamed, and nowhere for a tenant that is not there", async () => {
    const { at, open } = await createSocialDesktop({ stateStrategy: state });
    expect((await open(at("platform"))).client).toBe(GLOBAL.clientId);
    const { started } = await open(at("platform"), { tenantId: "nowhere" });
    expectRefused(started, 404, "TENANT_NOT_FOUND");
  });
});

describe("init-oauth-proxy where tenants have hosts", () => {
  const openAtAcme = async (auth: Partial<BetterAuthOptions>) => {
    const desktop = await createSocialDesktop({ hosts: SUBDOMAINS, auth });
    return { ...(await desktop.open(desktop.at("acme"))), acmesClient: desktop.acmesClient };
  };

  it("starts at the tenant of its host", async () => {
    const { started, client, acmesClient } = await openAtAcme({});
    expect([started.status, client]).toEqual([302, acmesClient]);
  });

  it("threat: starts nowhere, not on the platform, where the call would lose the host", async () => {
    const trustedOrigins = ["http://*.example.com"];
    const { started } = await openAtAcme({ baseURL: "http://example.com", trustedOrigins });
    expectRefused(started, 409, "TENANT_SCOPE_CONFLICT");
    expect(JSON.stringify(started.data)).toContain("allowedHosts");
  });
});
