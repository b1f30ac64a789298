import type { ProviderOptions } from "better-auth/oauth2";
import { socialProviderList } from "better-auth/social-providers";
import { expect, it, vi } from "vitest";
import { mergeOptions } from "../../src/oauth/provider-options";
import { publishedKeys, signToken } from "../support/jwt";
import { fakeNetwork, type Sent } from "../support/network";
import { shareInstance } from "../support/shared";

const GLOBAL = { clientId: "global-client", clientSecret: "global-client-secret" };
const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };
const application = {
  refreshAccessToken: vi.fn(async () => ({ accessToken: "refreshed by the application" })),
  verifyIdToken: vi.fn(async () => true),
  clientAssertion: vi.fn(async () => "the application's assertion"),
};

const shared = shareInstance({
  auth: {
    socialProviders: {
      google: {
        ...GLOBAL,
        prompt: "consent",
        accessType: "offline",
        hd: "global.example",
        scope: ["calendar"],
        redirectURI: "https://global.example/back",
        mapProfileToUser: () => ({ name: "Named by the application" }),
        verifyIdToken: application.verifyIdToken,
        refreshAccessToken: application.refreshAccessToken,
      },
      // Switched off: nobody signs in with it, and tenants' providers behave like it.
      twitch: { ...GLOBAL, enabled: false, claims: ["picture"] },
      apple: { ...GLOBAL, audience: ["global-app"], appBundleIdentifier: "global-app" },
      gitlab: { ...GLOBAL, issuer: "https://gitlab.global.example" },
      salesforce: { ...GLOBAL, loginUrl: "global.my.salesforce.com" },
      paypal: { ...GLOBAL, environment: "live" },
      paybin: {
        ...GLOBAL,
        issuer: "https://paybin.global.example",
        authorizationEndpoint: "https://paybin.global.example/sign-in",
      },
      microsoft: {
        clientId: GLOBAL.clientId,
        tenantId: "global-directory",
        authority: "https://login.microsoftonline.us",
        clientAssertion: application.clientAssertion,
      },
      cognito: {
        ...GLOBAL,
        domain: "global.auth.eu-west-1.amazoncognito.com",
        region: "eu-west-1",
        userPoolId: "eu-west-1_Global",
        identityProvider: "GlobalOkta",
      },
      facebook: { ...GLOBAL, configId: "global-config" },
      cloudflare: { clientId: GLOBAL.clientId, tokenEndpointAuthMethod: "none" },
    },
  },
});

const answer = ({ url, body }: Sent) => {
  if (!/token$/.test(url)) return Response.json(publishedKeys);
  const claims = {
    iss: "https://accounts.google.com",
    aud: new URLSearchParams(body).get("client_id"),
    sub: "alice",
    email: "alice@example.com",
    name: "Alice",
    hd: "acme.example",
  };
  return Response.json({ access_token: "t", token_type: "Bearer", id_token: signToken(claims) });
};

/** A tenant with a client of its own at the provider. */
async function configure(providerId: string, options?: Record<string, unknown>) {
  const { id: tenantId } = await shared.instance.createTenant();
  const body = { tenantId, providerId, ...CLIENT, options };
  await shared.instance.api.registerTenantOAuthConfig({ body });
  return tenantId;
}

async function start(tenantId: string, provider: string) {
  const browser = shared.instance.browser();
  const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", {
    tenantId,
    provider,
  });
  const url = new URL(data.url);
  return {
    address: url.origin + url.pathname,
    query: Object.fromEntries(url.searchParams),
    /** Comes back with a code; what the server asked the provider then. */
    async comeBack() {
      const sent = fakeNetwork(answer);
      const query = { code: "good", state: url.searchParams.get("state") ?? "" };
      const { location } = await browser.get(`/tenant/callback/${provider}`, { query });
      return { sent, location, browser };
    },
  };
}

const addressOf = async (provider: string, options?: Record<string, unknown>) =>
  (await start(await configure(provider, options), provider)).address;

it("behaviour is taken over, whether the global provider is switched on or off", async () => {
  const { query } = await start(await configure("google"), "google");
  expect(query).toMatchObject({
    client_id: CLIENT.clientId,
    prompt: "consent",
    access_type: "offline",
    hd: "global.example",
    scope: "email profile openid calendar",
  });
  const twitch = await start(await configure("twitch"), "twitch");
  expect(JSON.parse(twitch.query.claims ?? "").id_token).toHaveProperty("picture");
});

it("what the tenant says goes before", async () => {
  const options = { prompt: "login", accessType: "online", hd: "acme.example" };
  const { query } = await start(await configure("google", options), "google");
  expect(query).toMatchObject({ prompt: "login", access_type: "online", hd: "acme.example" });
});

it("the application still decides how a profile becomes a user", async () => {
  const tenantId = await configure("google", { hd: "acme.example" });
  const { browser } = await (await start(tenantId, "google")).comeBack();
  const session = await browser.get<{ user: object }>("/get-session", {
    headers: { "x-tenant-id": tenantId },
  });
  expect(session.data.user).toMatchObject({ email: "alice@example.com", tenantId });
  expect(session.data.user).toMatchObject({ name: "Named by the application" });
});

it("neither its credentials nor its redirect URI are taken over", async () => {
  const flow = await start(await configure("google", { hd: "acme.example" }), "google");
  expect(flow.query.redirect_uri).toBe("http://localhost:3000/api/auth/tenant/callback/google");
  const { sent } = await flow.comeBack();
  const form = new URLSearchParams(sent[0]?.body);
  expect([form.get("client_id"), form.get("client_secret")]).toEqual(Object.values(CLIENT));
  expect(form.get("redirect_uri")).toBe(flow.query.redirect_uri);
  expect(JSON.stringify(sent)).not.toContain("global-client");
});

it("threat: audience confusion: the application's word on id tokens is not good for a tenant's", async () => {
  fakeNetwork(answer);
  const tenantId = await configure("google", { hd: "acme.example" });
  const show = (aud: string) =>
    shared.instance.browser().post("/tenant/sign-in/social", {
      tenantId,
      provider: "google",
      idToken: {
        token: signToken({
          iss: "https://accounts.google.com",
          aud,
          sub: "mallory",
          email: "mallory@example.com",
          hd: "acme.example",
        }),
      },
    });
  const refused = await show(GLOBAL.clientId);
  expect([refused.status, refused.code]).toEqual([401, "INVALID_TOKEN"]);
  expect((await show(CLIENT.clientId)).status).toBe(200);
  expect(application.verifyIdToken).not.toHaveBeenCalled();
});

it("threat: audience confusion: Apple's audiences are the tenant's own", async () => {
  fakeNetwork(answer);
  const show = async (aud: string, options?: Record<string, unknown>) => {
    const token = signToken({
      iss: "https://appleid.apple.com",
      aud,
      sub: "mallory",
      email: "mallory@example.com",
    });
    const { status } = await shared.instance.browser().post("/tenant/sign-in/social", {
      tenantId: await configure("apple", options),
      provider: "apple",
      idToken: { token },
    });
    return status;
  };
  expect(await show("global-app")).toBe(401);
  expect(await show(CLIENT.clientId)).toBe(200);
  expect(await show("acme-app", { appBundleIdentifier: "acme-app" })).toBe(200);
  expect(await show("global-app", { appBundleIdentifier: "acme-app" })).toBe(401);
  const audience = ["acme-app", "acme-watch"];
  expect(await show("acme-watch", { audience })).toBe(200);
  expect(await show(CLIENT.clientId, { audience })).toBe(401);
});

it("the application's way to prove who it is at Microsoft is not the tenant's", async () => {
  const { sent } = await (await start(await configure("microsoft"), "microsoft")).comeBack();
  const form = new URLSearchParams(sent[0]?.body);
  expect(form.get("client_secret")).toBe(CLIENT.clientSecret);
  expect(form.has("client_assertion")).toBe(false);
  expect(application.clientAssertion).not.toHaveBeenCalled();
});

it("a public client of the application does not make the tenant's public", async () => {
  const { sent } = await (await start(await configure("cloudflare"), "cloudflare")).comeBack();
  const basic = Buffer.from(`${CLIENT.clientId}:${CLIENT.clientSecret}`).toString("base64");
  expect(sent[0]?.headers.get("authorization")).toBe(`Basic ${basic}`);
});

it("settings of the application's client at Facebook stay with that client", async () => {
  expect((await start(await configure("facebook"), "facebook")).query.config_id).toBeUndefined();
  const own = await start(await configure("facebook", { configId: "acme-config" }), "facebook");
  expect(own.query.config_id).toBe("acme-config");
});

it.each(socialProviderList)("none of what goes with a client is taken over from %s", (id) => {
  const behaviour = { prompt: "consent", disableSignUp: true } as const;
  const all: Record<string, unknown> = {
    ...behaviour,
    ...application,
    ...GLOBAL,
    clientKey: "global-key",
    redirectURI: "https://global.example/back",
    audience: "global",
    appBundleIdentifier: "global",
    tokenEndpointAuthMethod: "none",
    configId: "global",
    enabled: false,
    // What better-auth may add one day.
    tokenEndpointAuth: {
      method: "private_key_jwt",
      getClientAssertion: application.clientAssertion,
    },
  };
  const { clientId, clientSecret } = CLIENT;
  const named = id === "tiktok" ? { clientKey: clientId } : { clientId };
  const merged = mergeOptions(id, CLIENT, {}, all as ProviderOptions);
  expect(merged).toEqual({ ...behaviour, ...named, clientSecret });
});

it("a tenant forbids more, and never less", () => {
  const merged = (own: object, global: object) =>
    mergeOptions("google", CLIENT, { ...own }, { ...GLOBAL, ...global } as ProviderOptions)
      .disableSignUp;
  expect(merged({}, { disableSignUp: true })).toBe(true);
  expect(merged({ disableSignUp: true }, { disableSignUp: false })).toBe(true);
  expect(merged({ disableSignUp: true }, { disableSignUp: true })).toBe(true);
  expect(merged({}, {})).toBeUndefined();
});

it("where the application's client lives, the tenant's does too, if it says nothing else", async () => {
  expect(await addressOf("gitlab")).toBe("https://gitlab.global.example/oauth/authorize");
  expect(await addressOf("gitlab", { prompt: "login" })).toBe(
    "https://gitlab.global.example/oauth/authorize",
  );
  expect(await addressOf("salesforce")).toBe(
    "https://global.my.salesforce.com/services/oauth2/authorize",
  );
  expect(await addressOf("microsoft")).toBe(
    "https://login.microsoftonline.us/global-directory/oauth2/v2.0/authorize",
  );
  expect(await addressOf("paypal")).toBe("https://www.paypal.com/signin/authorize");
  expect(await addressOf("paybin")).toBe("https://paybin.global.example/sign-in");
});

it("and if it says where it lives, nothing of the application's place is left", async () => {
  expect(await addressOf("gitlab", { issuer: "https://gitlab.com" })).toBe(
    "https://gitlab.com/oauth/authorize",
  );
  expect(await addressOf("salesforce", { environment: "sandbox" })).toBe(
    "https://test.salesforce.com/services/oauth2/authorize",
  );
  expect(await addressOf("microsoft", { tenantId: "acme" })).toBe(
    "https://login.microsoftonline.com/acme/oauth2/v2.0/authorize",
  );
  expect(await addressOf("microsoft", { authority: "https://acme.ciamlogin.com" })).toBe(
    "https://acme.ciamlogin.com/common/oauth2/v2.0/authorize",
  );
  expect(await addressOf("paypal", { environment: "sandbox" })).toBe(
    "https://www.sandbox.paypal.com/signin/authorize",
  );
  expect(await addressOf("paybin", { issuer: "https://idp.paybin.io" })).toBe(
    "https://idp.paybin.io/oauth2/authorize",
  );
  const pool = {
    domain: "acme.auth.eu-west-1.amazoncognito.com",
    region: "eu-west-1",
    userPoolId: "eu-west-1_Acme",
  };
  const cognito = await start(await configure("cognito", pool), "cognito");
  expect(cognito.address).toBe(`https://${pool.domain}/oauth2/authorize`);
  expect(cognito.query.identity_provider).toBeUndefined();
});

it("the tokens of a flow go where the tenant's client lives", async () => {
  const own = await start(await configure("salesforce", { environment: "sandbox" }), "salesforce");
  const { sent } = await own.comeBack();
  expect(sent[0]?.url).toBe("https://test.salesforce.com/services/oauth2/token");
  expect(new URLSearchParams(sent[0]?.body).get("client_secret")).toBe(CLIENT.clientSecret);
  expect(JSON.stringify(sent)).not.toContain("global");
});
