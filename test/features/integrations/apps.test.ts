import { electron } from "@better-auth/electron";
import { expo } from "@better-auth/expo";
import { generateRandomString } from "better-auth/crypto";
import { generateCodeChallenge } from "better-auth/oauth2";
import { oAuthProxy } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { TenantAuthOptions, TenantPolicy } from "../../../src/index";
import type { Answer, Browser } from "../../support/browser";
import { PASSWORD } from "../../support/instance";
import {
  createSocialWorld,
  GLOBAL,
  type SocialOptions,
  type SocialWorld,
  type SocialWorldOptions,
} from "../../support/social";
import {
  EMAIL,
  expectRefused,
  type Place,
  queryOf,
  SUBDOMAINS,
  shareWorld,
  type Where,
} from "../../support/world";

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
    return { code: data.electron_authorization_code, redeem };
  }

  it("a tenant's sign-in makes no code", async () => {
    expect((await signIn("acme")).code).toBeUndefined();
    expect(await world.rowsIn("acme", "verification")).toEqual([]);
  });

  it("starts no social sign-in at a tenant", async () => {
    const { query } = await challenge();
    const start = { query: { provider: "google", ...query, tenantId: String(world.ids.acme) } };
    const answer = await world.browser().get("/electron/init-oauth-proxy", start);
    expectRefused(answer, 403, "PLATFORM_ONLY");
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
  it("R5: signs users in at their tenant, with its own client, and nowhere else", async () => {
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

it("R9: expo hands the session to an app at an unknown host, which the callback does not name", async () => {
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
  tenant: TenantAuthOptions = {},
) => {
  const allowedHosts = ["localhost:3000", "production.example.com"];
  const plugins = [oAuthProxy({ productionURL: PRODUCTION, currentURL: PREVIEW })];
  const baseURL = { allowedHosts, protocol: "http" as const, fallback: PREVIEW };
  return createSocialWorld({ gitlab, stateStrategy, plugins, tenant, auth: { baseURL } });
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

it("oAuthProxy: flows of tenants start and end at the preview, those of the platform pass production", async () => {
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

it.each(["/callback/gitlab/oauth-proxy", "/oauth-proxy-callback"])(
  "R14: %s signs in by the provider's method, and leaves no user behind without a session",
  async (path) => {
    const platformPolicy: TenantPolicy = { methods: ["social:gitlab"] };
    const world = await createPreview({}, "database", { platformPolicy });
    const browser = world.at("platform");
    const { data } = await world.start(browser, null);
    const { location } = await browser.get(await world.idp.authorize(data.url, "alice"));
    const answer = await browser.get(path + new URL(location ?? "").search);
    // The deprecated one does not name the provider.
    const isNamed = path.startsWith("/callback/");
    expect(answer.location).toContain(isNamed ? "/welcome" : "SIGN_IN_METHOD_NOT_ALLOWED");
    const rows = await Promise.all(
      ["user", "account", "session"].map((table) => world.rows(table)),
    );
    expect(rows).toEqual(isNamed ? [1, 1, 1] : [0, 0, 0]);
  },
);
