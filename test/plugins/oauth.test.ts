import { bearer, genericOAuth, oauthPopup, oneTap } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { prefixState } from "../../src/features/oauth/state-prefix";
import type { TenantAuthOptions, TenantPolicy } from "../../src/index";
import { createOAuthTenant } from "../features/oauth/tenant";
import type { Answer, Browser } from "../support/browser";
import { ASKS_PROVIDERS_AGAIN } from "../support/differences";
import { startIdentityProvider } from "../support/identity-provider";
import { BASE_URL } from "../support/instance";
import { fakeGoogleAndGitHub } from "../support/providers";
import { GLOBAL, shareSocialWorld } from "../support/social";
import {
  createWorld,
  outcome,
  PLACES,
  type Place,
  queryOf,
  type Where,
  type World,
} from "../support/world";

/** An identity provider with somebody, and what genericOAuth() has to know of it. */
async function startCorporation() {
  const idp = await startIdentityProvider();
  idp.registerClient("corp-client", "corp-secret");
  idp.addPerson("alice");
  const client = {
    clientId: "corp-client",
    clientSecret: "corp-secret",
    authorizationUrl: `${idp.issuer}/oauth/authorize`,
    tokenUrl: `${idp.issuer}/oauth/token`,
    userInfoUrl: `${idp.issuer}/api/v4/user`,
    accountSubject: ({ profile }: { profile: { id?: unknown } }) => String(profile.id),
  };
  return { idp, client };
}

it("threat: genericOAuth: one account is a user of each tenant and of the platform, and no tenant can configure the provider", async () => {
  const { idp, client } = await startCorporation();
  // One of them has the name of a built-in provider.
  const config = ["corp", "slack"].map((providerId) => ({ providerId, ...client }));
  const world = await createWorld({ plugins: [genericOAuth({ config })] });
  for (const [place, provider, path, wayBack] of [
    ["acme", "corp", "/sign-in/social", "/tenant/callback/corp"],
    ["acme", "corp", "/tenant/sign-in/social", "/tenant/callback/corp"],
    ["globex", "slack", "/sign-in/social", "/tenant/callback/slack"],
    ["platform", "corp", "/sign-in/social", "/callback/corp"],
  ] as const) {
    const started = world.at(place);
    const body = { provider, callbackURL: "/in", errorCallbackURL: "/failed" };
    const { data } = await started.post<{ url: string }>(path, body);
    const back = await idp.authorize(data.url, "alice");
    expect(new URL(back).pathname).toBe(`/api/auth${wayBack}`);
    // The way back names no tenant; better-auth's own callback takes no state of one.
    const browser = world.at("platform", started);
    if (place === "globex") {
      const refused = await browser.get(back.replace("/tenant/callback/", "/callback/"));
      expect(queryOf(refused.location)).toHaveProperty("error");
    }
    expect((await browser.get(back)).location).toBe("/in");
    const person = { email: "alice@example.com", tenantId: world.ids[place] };
    expect(await world.whoIs(browser, place)).toMatchObject(person);
    expect(await world.rowsIn(place, "account")).toMatchObject([{ providerId: provider }]);
  }
  expect(await world.rows("user")).toBe(3);
  const { register } = await createOAuthTenant(world);
  // Whoever is number 7 at the built-in one would be number 7 of the application's own.
  for (const providerId of ["corp", "slack"]) {
    const own = { providerId, clientId: "x", clientSecret: "y" };
    expect(outcome(await register(own))).toEqual([400, "UNSUPPORTED_PROVIDER"]);
  }
});

it("genericOAuth: its redirectURI is the platform's, tenants have their own callback", async () => {
  const { idp, client } = await startCorporation();
  const redirectURI = `${BASE_URL}/callback/corp?from=corp`;
  const configure = () => ({ redirectURI, ...client, providerId: "corp" });
  const world = await createWorld({ plugins: [genericOAuth({ config: [configure()] })] });
  for (const [place, expected] of [
    ["acme", `${BASE_URL}/tenant/callback/corp`],
    ["platform", redirectURI],
  ] as const) {
    const browser = world.at(place);
    const body = { provider: "corp", callbackURL: "/in" };
    const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
    expect(queryOf(data.url).redirect_uri).toBe(expected);
    // The provider takes a code only with the redirect URI that it was asked for with.
    expect((await browser.get(await idp.authorize(data.url, "alice"))).location).toBe("/in");
    expect(await world.rowsIn(place, "account")).toMatchObject([{ providerId: "corp" }]);
  }
  expect(world.logs.filter((line) => /redirectURI/.test(line))).toEqual([]);
  const frozen = Object.freeze(configure());
  const refused = createWorld({ plugins: [genericOAuth({ config: [frozen] })] });
  await expect(refused).rejects.toThrow(/corp are frozen.*Leave out the redirectURI/);
});

describe.runIf(ASKS_PROVIDERS_AGAIN)("genericOAuth: a provider that was away at startup", () => {
  /** Comes back, and is first asked for by a request of the caller's choice. */
  async function comesBack(
    ask: (world: World) => Promise<unknown>,
    tenant: TenantAuthOptions = {},
  ) {
    const { idp, client } = await startCorporation();
    const { authorizationUrl: authorization_endpoint, tokenUrl: token_endpoint, ...rest } = client;
    const discoveryUrl = `${idp.issuer}/.well-known/openid-configuration`;
    // One of them has the name of a built-in provider.
    const config = ["corp", "slack"].map((id) => ({ providerId: id, ...rest, discoveryUrl }));
    const world = await createWorld({ tenant, plugins: [genericOAuth({ config })] });
    idp.rules.discovery = { authorization_endpoint, token_endpoint };
    await ask(world);
    return { idp, world };
  }

  it.each<[what: string, ask: (world: World) => Promise<unknown>]>([
    [
      "a sign-in at Acme",
      (world) => world.at("acme").post("/sign-in/social", { provider: "corp" }),
    ],
    [
      "a sign-in on the platform",
      (world) => world.at(null).post("/sign-in/social", { provider: "corp" }),
    ],
    ["a stranger's callback", (world) => world.at(null).get("/callback/corp")],
    ["a stranger's callback of a tenant", (world) => world.at(null).get("/tenant/callback/corp")],
  ])("works in both tenants and on the platform, if the first to ask was %s", async (_, ask) => {
    const { idp, world } = await comesBack(ask);
    for (const place of PLACES) {
      const browser = world.at(place);
      const body = { provider: "corp", callbackURL: "/in", errorCallbackURL: "/failed" };
      const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
      const back = await idp.authorize(data.url, "alice");
      const callback = place === "platform" ? "/callback/corp" : "/tenant/callback/corp";
      expect(new URL(back).pathname).toBe(`/api/auth${callback}`);
      expect((await world.at("platform", browser).get(back)).location).toBe("/in");
    }
    expect(await world.rows("user")).toBe(3);
  });

  it("is known to a policy, and no tenant's to configure", async () => {
    const policy: TenantPolicy = { methods: ["social:corp", "password"] };
    const { world } = await comesBack(async () => {}, { platformPolicy: policy });
    expect((await world.change("acme", { policy })).policy).toEqual(policy);
    const own = { providerId: "slack", clientId: "x", clientSecret: "y" };
    const { register } = await createOAuthTenant(world);
    expect(outcome(await register(own))).toEqual([400, "UNSUPPORTED_PROVIDER"]);
  });
});

describe.each(["database", "cookie"] as const)("oauthPopup, state in the %s", (stateStrategy) => {
  const ORIGIN = "http://localhost:3000";
  const world = shareSocialWorld({ stateStrategy, plugins: [bearer(), oauthPopup()] });

  /** What the page of a popup hands to the window that opened it. */
  function messageIn({ data }: Answer): Record<string, unknown> {
    const { text = "" } = data as { text?: string };
    const script = /<script type="application\/json"[^>]*>(.*?)<\/script>/s;
    return JSON.parse(script.exec(text)?.[1] ?? "{}");
  }

  const open = (browser: Browser, named: Record<string, string> = {}) => {
    const page = { popupOrigin: ORIGIN, popupNonce: "a-nonce", callbackURL: "/in" };
    return browser.get("/oauth-popup/start", { query: { provider: "gitlab", ...page, ...named } });
  };

  it("hands over a token of the platform", async () => {
    const browser = world.at(null);
    const { location } = await open(browser);
    const page = await browser.get(await world.idp.authorize(String(location), "alice"));
    const message = messageIn(page);
    const expected = { targetOrigin: ORIGIN, nonce: "a-nonce", redirectTo: "/in" };
    expect(message).toMatchObject({ ...expected, token: expect.any(String) });
    const embedded = world.browser({ authorization: `Bearer ${message.token}` });
    for (const window of [browser, embedded]) {
      expect(await world.whoIs(window)).toMatchObject({ tenantId: null });
    }
  });

  it("is the platform's alone", async () => {
    // In a tenant that the request names, or that its session belongs to.
    const { acme } = world.ids;
    const jane = await world.signUp("globex", "jane@globex.example");
    for (const answer of [
      await open(jane.fork({})),
      await open(world.at("acme")),
      await open(world.at(null), { tenantId: acme }),
    ]) {
      expect(outcome(answer)).toEqual([403, "PLATFORM_ONLY"]);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
  });

  it("R6: a popup of the platform is refused at a tenant's callback", async () => {
    const browser = world.at(null);
    const url = new URL(String((await open(browser)).location));
    url.searchParams.set("redirect_uri", `${ORIGIN}/api/auth/tenant/callback/gitlab`);
    const { state = "", ...back } = queryOf(await world.idp.authorize(url.href, "alice"));
    for (const query of [
      { ...back, state, tenantId: world.ids.acme },
      { ...back, state: prefixState(state, world.ids.acme) },
    ]) {
      const page = await browser.get("/tenant/callback/gitlab", { query });
      expect(queryOf(page.location)).toHaveProperty("error");
      expect(JSON.stringify(page.data)).not.toContain('\\"token\\"');
      expect(page.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
      expect(await world.rowsIn("acme", "user")).toEqual([]);
    }
  });
});

it("threat: oneTap: a Google account is a user of each tenant and of the platform, by their own clients only", async () => {
  const { googleIdToken } = fakeGoogleAndGitHub();
  const auth = { socialProviders: { google: GLOBAL } };
  const world = await createWorld({ plugins: [oneTap()], auth });
  const tap = async (where: Where, aud: string) => {
    const browser = world.at(where);
    const answer = await browser.post("/one-tap/callback", { idToken: googleIdToken({ aud }) });
    return { ...answer, browser };
  };
  const expectSignsIn = async (place: Place, aud: string) => {
    const person = { email: "alice@example.com", tenantId: world.ids[place] };
    expect(await world.whoIs((await tap(place, aud)).browser)).toMatchObject(person);
  };
  for (const place of PLACES) await expectSignsIn(place, GLOBAL.clientId);
  expect(await world.rows("user")).toBe(3);

  const config = { providerId: "google", clientId: "client-acme", clientSecret: "secret" };
  const body = { tenantId: String(world.ids.acme), ...config };
  await world.api.registerTenantOAuthConfig({ body });
  for (const [where, audience] of [
    ["globex", "client-acme"],
    ["platform", "client-acme"],
    ["acme", GLOBAL.clientId],
  ] as const) {
    const refused = await world.unchanged(() => tap(where, audience));
    expect([where, audience, refused.status]).toEqual([where, audience, 400]);
    expect(refused.headers.getSetCookie()).toEqual([]);
  }
  await expectSignsIn("acme", "client-acme");
});
