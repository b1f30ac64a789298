import type { BetterAuthOptions } from "better-auth";
import { socialProviderList } from "better-auth/social-providers";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Browser } from "../../support/browser";
import { createDatabase } from "../../support/database";
import { createPlainInstance } from "../../support/instance";
import { everyCase } from "../../support/matrix";
import { fakeNetwork, publishedKeys, type Sent, signToken } from "../../support/providers";
import { outcome, queryOf, shareWorld, type World } from "../../support/world";

/*
 * A tenant's provider is one of better-auth's own: whatever people do with it, the same requests
 * leave as from a better-auth without tenants that has the same client and the same options.
 */

type Row = [provider: string, options: Record<string, unknown>];

const POOL = { domain: "a.amazoncognito.com", region: "eu-west-1", userPoolId: "eu-west-1_App" };
const DEFAULTS: Row[] = socialProviderList.map((id) => [id, id === "cognito" ? POOL : {}]);

/** Providers that live elsewhere, or are asked in another way, because an option says so. */
const VARIANTS: Row[] = [
  ["cloudflare", { tokenEndpointAuthMethod: "client_secret_post" }],
  ["cognito", { ...POOL, domain: "login.acme.example", identityProvider: "AcmeSAML" }],
  ["facebook", { configId: "4711", fields: ["locale", "timezone"] }],
  ["github", { disableDefaultScope: true, prompt: "select_account" }],
  ["gitlab", { issuer: "https://gitlab.acme.example/git" }],
  ["google", { hd: "acme.example", accessType: "offline", display: "popup", prompt: "consent" }],
  ["microsoft", { tenantId: "acme", authority: "https://acme.ciamlogin.com" }],
  ["paypal", { environment: "live" }],
  ["salesforce", { loginUrl: "acme.my.salesforce.com" }],
];

/** A request as it left, with what is random blotted out. */
function read({ method, url, headers, body }: Sent) {
  const { origin, pathname, searchParams } = new URL(url);
  const [scheme, encoded = ""] = (headers.get("authorization") ?? "").split(" ");
  const isJSON = headers.get("content-type")?.includes("json");
  return {
    request: `${method} ${origin}${pathname}`,
    query: legible(searchParams),
    authorization: scheme === "Basic" ? atob(encoded) : encoded,
    body: isJSON ? body : legible(new URLSearchParams(body)),
  };
}

function legible(params: URLSearchParams) {
  const random = ["state", "code_challenge", "code_verifier"];
  return Object.fromEntries(
    [...params].map(([key, value]) => [key, random.includes(key) ? "random" : value]),
  );
}

/** The internet: one provider, which takes any code, and tells nothing about anybody. */
function playProvider(aud: string) {
  const claims = { sub: "7", email: "alice@example.com", aud, hd: "acme.example" };
  const tokens = { access_token: "access", token_type: "Bearer", id_token: signToken(claims) };
  return fakeNetwork(({ url }) =>
    /token|oauth2\/auth$/i.test(url) ? Response.json(tokens) : new Response("", { status: 404 }),
  );
}

/** Asked for besides the provider's own. */
const SCOPES = ["one.more", "and.another"];

/** Somebody goes to the provider and comes back: what is asked of it, by them and by the server. */
async function travel(browser: Browser, [provider]: Row, whose: string) {
  const body = { provider, callbackURL: "/welcome", errorCallbackURL: "/failed" };
  const start = await browser.post<{ url: string }>("/sign-in/social", body);
  const { origin, pathname, searchParams } = new URL(start.data.url);
  const { state = "", redirect_uri = "" } = queryOf(start.data.url);
  const sent = playProvider(clientOf(whose, provider).clientId);
  const query = { code: "the-code", state, device_id: "a-device" };
  await browser.get(redirect_uri, { query });
  expect(sent.length).toBeGreaterThan(0);
  const seen = [`${origin}${pathname}`, legible(searchParams), ...sent.map(read)];
  // Without what is the tenant's: whose client it is, and the callback.
  return JSON.stringify(seen, null, 1)
    .replaceAll(`${whose}-client`, "client")
    .replaceAll("/tenant/callback/", "/callback/")
    .replace(/[?]tenant=\w+/g, "");
}

const clientOf = (who: string, provider: string) => ({
  clientId: `${who}-client-id-at-${provider}`,
  clientSecret: `${who}-client-secret-at-${provider}`,
});

/** How an application configures providers: TikTok has a client key, and no client id. */
function configured(who: string, chosen: Row[], more: object = {}) {
  const entries = chosen.map(([provider, options]) => {
    const { clientId, clientSecret } = clientOf(who, provider);
    const id = provider === "tiktok" ? { clientKey: clientId } : { clientId };
    return [provider, { ...id, clientSecret, scope: SCOPES, ...options, ...more }];
  });
  return Object.fromEntries(entries) as NonNullable<BetterAuthOptions["socialProviders"]>;
}

const tenant = { trustedProviderHosts: ["*.acme.example"] };
const redirectURI = "https://application.example/back";
/** Applications without credentials of their own, and with credentials for every provider. */
const alone = shareWorld({ tenant });
const shared = shareWorld({
  tenant,
  auth: { socialProviders: configured("global", DEFAULTS, { redirectURI }) },
});

/** A new tenant with a client of its own. */
async function settle({ api, createTenant }: World, [provider, options]: Row, more = {}) {
  const { id: tenantId } = await createTenant();
  const config = { providerId: provider, scopes: SCOPES, options: { ...options, ...more } };
  const body = { tenantId, ...clientOf("own", provider), ...config };
  await api.registerTenantOAuthConfig({ body });
  return tenantId;
}
const visit = async (world: World, row: Row) =>
  travel(world.at(await settle(world, row)), row, "own");

// All of them with the servers; else a part of those that have no option, Zoom and TikTok in it.
const tried = DEFAULTS.filter((_, index) => everyCase || index % 5 === 0);

it.each([...tried, ...VARIANTS])(
  "%s %j is asked as better-auth asks it, with the tenant's own client",
  async (...row) => {
    const database = await createDatabase("sqlite");
    onTestFinished(() => database.close());
    const auth = { socialProviders: configured("plain", [row]) };
    const { browser } = await createPlainInstance(database, auth);
    const plainly = await travel(browser(), row, "plain");
    expect(await visit(alone, row)).toBe(plainly);
    // Also where the application has one, which serves the others.
    expect(await visit(shared, row)).toBe(plainly);
    if (VARIANTS.some(([, options]) => options === row[1])) return;
    const { id } = await shared.createTenant();
    expect(await travel(shared.at(id), row, "global")).toBe(plainly);
  },
);

/** Who signs tokens that better-auth takes in place of a sign-in; LINE is asked itself. */
const ISSUERS: Record<string, object> = {
  apple: { iss: "https://appleid.apple.com" },
  cognito: { iss: "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_App" },
  facebook: { iss: "https://www.facebook.com" },
  google: { iss: "https://accounts.google.com" },
  microsoft: { iss: "https://login.microsoftonline.com/acme/v2.0", tid: "acme" },
};

const mobile = { aud: "com.acme.mobile" };
const REFUSED = [401, "INVALID_TOKEN"];
const WELCOME = [200, undefined];

/** Signs in at a tenant with a token, and tells what came of it. */
async function enter(tenantId: string, provider: string, claims: object) {
  fakeNetwork(() => Response.json(publishedKeys));
  const who = { sub: "7", oid: "7", email: "alice@example.com", name: "Alice" };
  const token = signToken({ ...ISSUERS[provider], ...who, ...claims });
  const body = { provider, idToken: { token } };
  return outcome(await shared.at(tenantId).post("/sign-in/social", body));
}

describe("threat: audience confusion:", () => {
  it.each(Object.keys(ISSUERS))("id tokens of %s are for the tenant's own clients", async (id) => {
    const audience = (who: string) => ({ aud: clientOf(who, id).clientId });
    const row = DEFAULTS.find(([provider]) => provider === id) as Row;
    const own = await settle(shared, row, { additionalClientIds: [mobile.aud] });
    const { id: sharing } = await shared.createTenant();
    for (const claims of [audience("own"), mobile]) {
      expect(await enter(own, id, claims)).toEqual(WELCOME);
      expect(await enter(sharing, id, claims)).toEqual(REFUSED);
    }
    expect(await enter(own, id, audience("other"))).toEqual(REFUSED);
    expect(await enter(own, id, audience("global"))).toEqual(REFUSED);
    expect(await enter(sharing, id, audience("global"))).toEqual(WELCOME);
  });

  it.each([
    { audience: mobile.aud },
    { audience: ["com.acme.desktop", mobile.aud] },
    { appBundleIdentifier: mobile.aud },
  ])("those of Apple, or for %j", async (options) => {
    const tenantId = await settle(shared, ["apple", options]);
    expect(await enter(tenantId, "apple", mobile)).toEqual(WELCOME);
    expect(await enter(tenantId, "apple", { aud: "com.other.mobile" })).toEqual(REFUSED);
  });
});
