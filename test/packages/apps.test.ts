import { AsyncLocalStorage } from "node:async_hooks";
import { electron } from "@better-auth/electron";
import { expo } from "@better-auth/expo";
import { generateRandomString } from "better-auth/crypto";
import { generateCodeChallenge } from "better-auth/oauth2";
import { oAuthProxy } from "better-auth/plugins";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import type { Answer, Browser } from "../support/browser";
import { BASE_URL, PASSWORD } from "../support/instance";
import {
  createSocialWorld,
  GLOBAL,
  type SocialOptions,
  type SocialWorld,
  type SocialWorldOptions,
} from "../support/social";
import {
  EMAIL,
  expectRefused,
  type Place,
  queryOf,
  SUBDOMAINS,
  shareWorld,
  type Where,
} from "../support/world";

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
    const person = { email: EMAIL, password: PASSWORD };
    const app = { query: { client_id: "electron", ...query } };
    const { data } = await world.at(place).post("/sign-in/email", person, app);
    return redeem(String(data.electron_authorization_code));
  }

  it("R6: a code of Acme hands a session over there only, and once", async () => {
    const code = await signIn("acme");
    await world.goodAtAcmeOnly((browser) => browser.post(TOKEN, code), 404, "INVALID_TOKEN");
    expectRefused(await world.at("acme").post(TOKEN, code), 404, "INVALID_TOKEN");
    const app = world.at("acme");
    const { id } = await world.as("jane", "acme");
    expect((await app.post(TOKEN, await signIn("acme"))).data).toMatchObject({ user: { id } });
    expect(await world.whoIs(app)).toMatchObject({ id, tenantId: world.ids.acme });
  });

  it("R14: is a way in of its own where a policy names ways", async () => {
    const redeem = async () => world.at("acme").post(TOKEN, await signIn("acme"));
    await world.as("jane", "acme");
    await world.change("acme", { policy: { methods: ["password"] } });
    expectRefused(await redeem(), 403, "SIGN_IN_METHOD_NOT_ALLOWED");
    await world.change("acme", { policy: { methods: ["password", "device"] } });
    expect((await redeem()).status).toBe(200);
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

describe("init-oauth-proxy", () => {
  it.each([
    ["query", "database"],
    ["header", "cookie"],
  ] as const)("starts at the tenant that its %s names, state in the %s", async (by, state) => {
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
    const { at, open } = await createSocialDesktop();
    expect((await open(at("platform"))).client).toBe(GLOBAL.clientId);
    const { started } = await open(at("platform"), { tenantId: "nowhere" });
    expectRefused(started, 404, "TENANT_NOT_FOUND");
  });

  it("starts at the tenant of its host, and nowhere where the call would lose the host", async () => {
    const desktop = await createSocialDesktop({ hosts: SUBDOMAINS });
    const { started, client } = await desktop.open(desktop.at("acme"));
    expect([started.status, client]).toEqual([302, desktop.acmesClient]);
    const auth = { baseURL: "http://example.com", trustedOrigins: ["http://*.example.com"] };
    const losing = await createSocialDesktop({ hosts: SUBDOMAINS, auth });
    const refused = (await losing.open(losing.at("acme"))).started;
    expectRefused(refused, 409, "TENANT_SCOPE_CONFLICT");
    expect(refused.data.message).toContain("allowedHosts");
  });
});

const APP = "myapp://";
// The test's provider has no certificate, and the proxy leads to https only.
const secure = (address: string) => address.replace("http://", "https://");
const plain = (address: string) => address.replace("https://", "http://");

/** Acme has a client of its own, and an app trusts its own scheme. */
async function createApp(
  stateStrategy: SocialWorldOptions["stateStrategy"] = "database",
  tenant: TenantAuthOptions = {},
) {
  const auth = { trustedOrigins: [APP] };
  const world = await createSocialWorld({ stateStrategy, tenant, plugins: [expo()], auth });
  await world.configure("acme");

  /**
   * As the client of the package does it: the app asks for the address, and a browser that shares
   * nothing with the app opens it through the proxy.
   */
  async function start(where: Where) {
    const phone = world.browser({ "expo-origin": APP });
    const { data, status } = await world.start(phone, where, { callbackURL: `${APP}in` });
    expect(status, JSON.stringify(data)).toBe(200);
    const stored = [...phone.cookies].find(([name]) => name.endsWith("oauth_state"))?.[1];
    const browser = world.at("platform");
    const opened = await browser.get("/expo-authorization-proxy", {
      query: {
        authorizationURL: secure(data.url),
        ...(stored && { oauthState: decodeURIComponent(stored) }),
      },
    });
    expect([opened.status, opened.location]).toEqual([302, secure(data.url)]);
    const back = new URL(await world.idp.authorize(plain(opened.location ?? ""), "alice"));
    return { browser, client: queryOf(data.url).client_id, back };
  }

  /** Who the app is at a place, with the cookie that came in the address that opens it. */
  async function whoHas(location: string | null, where: Where) {
    const phone = world.at(where);
    const headers = new Headers();
    for (const cookie of (queryOf(location).cookie ?? "").split(/, (?=[\w.-]+=)/)) {
      headers.append("set-cookie", cookie);
    }
    phone.keepCookies(headers);
    return world.whoIs(phone);
  }

  return { ...world, start, whoHas };
}

describe.each([
  ["database", "shared"],
  ["cookie", "per-tenant"],
] as const)("expo, state in the %s, %s cookies", (state, sessionCookies) => {
  it("R5: signs people in at their tenant, with its own client, and nowhere else", async () => {
    const app = await createApp(state, { sessionCookies });
    const { browser, client, back } = await app.start("acme");
    expect(client).toBe(`client-${app.ids.acme}`);
    const { location } = await browser.get(back.href);
    expect(location).toMatch(/^myapp:\/\/in\?/);
    expect(queryOf(location)).not.toHaveProperty("error");
    expect(await app.whoHas(location, "acme")).toMatchObject({ tenantId: app.ids.acme });
    expect(await app.whoHas(location, "globex")).toBe(null);
    if (sessionCookies === "per-tenant") expect(await app.whoHas(location, "platform")).toBe(null);
    expect(await app.rows("user", '"tenantId" <> ?', [app.ids.acme])).toBe(0);
  });

  it("R6: a flow of a tenant does not come back on the platform, nor with another's state", async () => {
    const app = await createApp(state, { sessionCookies });
    const other = await app.start("globex");
    for (const path of ["/callback/gitlab", "/tenant/callback/gitlab"]) {
      const { browser, back } = await app.start("acme");
      const query = queryOf(back.href);
      if (path.startsWith("/tenant")) query.state = queryOf(other.back.href).state ?? "";
      const answer = await browser.get(path, { query });
      expect(queryOf(answer.location)).toHaveProperty("error");
      expect(answer.location).not.toContain("session_token");
    }
    expect(await app.rows("session")).toBe(0);
  });
});

it("R9: expo hands the session to an app at nobody's host, which the callback does not name", async () => {
  const auth = { trustedOrigins: ["exp://"] };
  const world = await createSocialWorld({ hosts: SUBDOMAINS, plugins: [expo()], auth });
  const browser = world.at("acme");
  const back = await world.authorize(browser, "acme", { callbackURL: "exp://u.expo.dev/in" });
  expect((await browser.get(back)).location).toMatch(/^exp:\/\/u\.expo\.dev\/in\?cookie=/);
});

const PREVIEW = "http://localhost:3000";
const PRODUCTION = "http://production.example.com";

/** A preview that signs people in through production, both played by one instance. */
const createPreview = (
  gitlab: SocialOptions["gitlab"] = {},
  stateStrategy?: SocialOptions["stateStrategy"],
) => {
  const allowedHosts = ["localhost:3000", "production.example.com"];
  const plugins = [oAuthProxy({ productionURL: PRODUCTION, currentURL: PREVIEW })];
  const baseURL = { allowedHosts, protocol: "http" as const, fallback: PREVIEW };
  return createSocialWorld({ gitlab, stateStrategy, plugins, auth: { baseURL } });
};

/** Follows redirects for as long as they lead to this server, perhaps with a tenant's name. */
async function follow(browser: Browser, url: string, query = {}): Promise<Answer> {
  let answer = await browser.get(url);
  for (let hops = 0; hops < 5 && answer.location?.includes("/api/auth/callback"); hops++) {
    answer = await browser.get(answer.location, { query });
  }
  return answer;
}

/** Addresses at the provider that a person may make of the one that the tenant sent. */
const callback = `${PRODUCTION}/api/auth/callback/gitlab`;
const CHANGES: [what: string, changes: Record<string, string>][] = [
  ["as it is", {}],
  ["with the platform's callback", { redirect_uri: callback }],
  ["with the platform's client", { client_id: GLOBAL.clientId }],
  ["with both of the platform", { client_id: GLOBAL.clientId, redirect_uri: callback }],
];

/** Goes the changed way to Acme, and comes back to each of the two callbacks, named and not. */
async function goChanged(world: SocialWorld, changes: Record<string, string>) {
  const attempts: { answer: Answer; made: number; by: (string | undefined)[] }[] = [];
  for (const path of ["/tenant/callback/gitlab", "/callback/gitlab"]) {
    for (const name of [{ tenantId: world.ids.acme }, {}]) {
      const browser = world.at(null);
      const { data, status } = await world.start(browser, "acme");
      expect(status).toBe(200);
      const url = new URL(data.url);
      for (const change of Object.entries(changes)) url.searchParams.set(...change);
      const back = new URL(await world.idp.authorize(url.href, "alice"));
      back.pathname = `/api/auth${path}`;
      const [exchanges, sessions] = [world.idp.exchanges().length, await world.rows("session")];
      const answer = await follow(browser, back.href, name);
      const made = (await world.rows("session")) - sessions;
      const by = world.idp.exchanges().slice(exchanges);
      attempts.push({ answer, made, by: by.map(({ params }) => params.client_id) });
    }
  }
  return attempts;
}

it.each(CHANGES)(
  "threat: oAuthProxy, %s: a tenant's flow is never completed with the platform's client",
  async (_, changes) => {
    const world = await createPreview();
    const { clientId } = await world.configure("acme");
    const attempts = await world.touchesOnly("acme", () => goChanged(world, changes));
    for (const { made, by } of attempts.filter((attempt) => attempt.made > 0)) {
      expect([made, by]).toEqual([1, [clientId]]);
    }
  },
);

it.each([
  ["for all", { disableSignUp: true }, {}],
  ["for the tenant", {}, { disableSignUp: true }],
])("threat: oAuthProxy where sign-up is off %s signs nobody up", async (_, gitlab, options) => {
  const world = await createPreview(gitlab);
  await world.configure("acme", { options });
  for (const [, changes] of CHANGES) {
    for (const { answer } of await goChanged(world, changes)) {
      expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
    }
  }
  expect([await world.rows("user"), await world.rows("session")]).toEqual([0, 0]);
});

it("oAuthProxy: flows of tenants start and end where people are, the platform's by production", async () => {
  const world = await createPreview();
  await world.configure("acme");
  for (const [place, client_id] of [
    ["acme", `client-${world.ids.acme}`],
    ["globex", GLOBAL.clientId],
  ] as const) {
    const browser = world.at("platform");
    const { data } = await world.start(browser, place);
    const redirect_uri = `${PREVIEW}/api/auth/tenant/callback/gitlab`;
    expect(queryOf(data.url)).toMatchObject({ client_id, redirect_uri });
    const { status, location } = await browser.get(await world.idp.authorize(data.url, "alice"));
    expect([status, location]).toEqual([302, "/welcome"]);
    expect(await world.whoIs(browser, place)).toMatchObject({ tenantId: world.ids[place] });
  }
  expect(await world.rowsIn("platform", "user")).toEqual([]);
  const browser = world.at("platform");
  const { data } = await world.start(browser, null);
  expect(queryOf(data.url)).toMatchObject({ client_id: GLOBAL.clientId, redirect_uri: callback });
  const answer = await follow(browser, await world.idp.authorize(data.url, "alice"));
  expect([answer.status, answer.location]).toEqual([302, "/welcome"]);
  expect(await world.whoIs(browser)).toMatchObject({ email: "alice@example.com", tenantId: null });
});

it.each(["database", "cookie"] as const)(
  "threat: oAuthProxy, states in %s: a flow of the platform's ends in no tenant",
  async (stateStrategy) => {
    const world = await createPreview({}, stateStrategy);
    await world.configure("acme", { options: { disableSignUp: true } });
    const jane = await world.as("jane", "acme");
    const tenantId = String(world.ids.acme);
    for (const path of ["/callback/gitlab/oauth-proxy", "/oauth-proxy-callback"]) {
      const browser = world.at("platform");
      const { data } = await world.start(browser, null);
      const { location } = await browser.get(await world.idp.authorize(data.url, "alice"));
      const complete = (options = {}) =>
        browser.get(path + new URL(location ?? "").search, options);
      for (const options of [{ query: { tenantId } }, { headers: { "x-tenant-id": tenantId } }]) {
        const answer = await world.unchanged(() => complete(options));
        expectRefused(answer, 403, "PLATFORM_ONLY");
      }
      // Somebody who has signed in at Acme meanwhile comes back to the platform as well.
      for (const cookie of jane.cookies) browser.cookies.set(...cookie);
      expect((await complete()).location).toBe("/welcome");
      expect(await world.whoIs(browser)).toMatchObject({ tenantId: null });
    }
  },
);
