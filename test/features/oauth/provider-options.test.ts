import type { ProviderOptions } from "better-auth/oauth2";
import { socialProviderList } from "better-auth/social-providers";
import { describe, expect, it } from "vitest";
import {
  certainIssuerOf,
  issuerOf,
  mergeOptions,
  parseOwnOptions,
} from "../../../src/features/oauth/provider-options";
import { entryOf, shared } from "../../../src/features/oauth/provider-table";
import { queryOf, shareWorld } from "../../support/world";
import { createOAuthTenant } from "./tenant";

const GLOBAL = { clientId: "global-client", clientSecret: "global-client-secret" };
const CLIENT = { clientId: "acme-client", clientSecret: "acme-secret" };
/** Stands in every value that is refused, and must not come back. */
const MARK = "value-that-nobody-may-repeat";
const INVALID = "INVALID_PROVIDER_OPTIONS";
const POOL = { domain: "a.amazoncognito.com", region: "eu-west-1", userPoolId: "eu-west-1_App" };
const neededBy = (id: string) => (id === "cognito" ? POOL : {});

/** Refused, and the message names the option and tells nothing that was in it. */
function expectInvalid(id: string, options: object, named: string) {
  let thrown: unknown;
  try {
    parseOwnOptions(id, options, []);
  } catch (error) {
    thrown = error;
  }
  const message = expect.stringContaining(named);
  expect(thrown).toMatchObject({ statusCode: 400, body: { code: INVALID, message } });
  const said = JSON.stringify(thrown);
  expect(said).not.toContain(MARK);
  expect(said.length).toBeLessThan(1000);
}

const CIAM = "https://acme.ciamlogin.com";
const SITE = "a--b.sandbox.my.site.com";
const TRUSTED = ["gitlab.acme.example", "*.acme.example:8443", "paybin.acme.example"];

/** Good values, and every option that there is; how they are stored where that is not the same. */
const GOOD: [provider: string, options: object, stored?: object][] = [
  ["apple", { appBundleIdentifier: "example.acme.app", audience: "example.acme.app" }],
  ["apple", { audience: ["example.acme.app", "example.acme.watch"], additionalClientIds: ["b"] }],
  ["cloudflare", { tokenEndpointAuthMethod: "client_secret_post" }],
  ["cloudflare", { tokenEndpointAuthMethod: "client_secret_basic" }],
  ["cognito", { domain: `https://${POOL.domain}/` }, { domain: POOL.domain }],
  ["cognito", { region: "us-gov-west-1", userPoolId: "eu-west-1_Other", identityProvider: "Okta" }],
  ["discord", { permissions: 0 }],
  ["discord", { permissions: 2048 }],
  ...["offline", "online", "legacy"].map((accessType): Row => ["dropbox", { accessType }]),
  ["facebook", { fields: ["birthday", "age_range"], configId: "4711" }],
  ["gitlab", { issuer: "https://gitlab.com/" }, { issuer: "https://gitlab.com" }],
  ["gitlab", { issuer: "https://gitlab.acme.example" }],
  ["gitlab", { issuer: "https://tools.acme.example:8443/gitlab" }],
  ["google", { accessType: "offline", hd: "acme.example", includeGrantedScopes: true }],
  ["google", { accessType: "online", hd: "*", includeGrantedScopes: false }],
  ...["page", "popup", "touch", "wap"].map((display): Row => ["google", { display }]),
  ["microsoft", { tenantId: "72f988bf-86f1-41af-91ab-2d7cd011db47", profilePhotoSize: 48 }],
  ["microsoft", { authority: "https://login.microsoftonline.us" }],
  ["microsoft", { authority: "https://login.partner.microsoftonline.cn" }],
  ["microsoft", { authority: `${CIAM}/` }, { authority: CIAM }],
  ["microsoft", { tenantId: "acme.example", profilePhotoSize: 96, disableProfilePhoto: true }],
  ["paybin", { issuer: "https://idp.paybin.io" }],
  ["paybin", { issuer: "https://paybin.acme.example" }],
  ["paypal", { environment: "sandbox", requestShippingAddress: true }],
  ["paypal", { environment: "live" }],
  ["reddit", { duration: "temporary" }],
  ["reddit", { duration: "permanent" }],
  ["salesforce", { environment: "sandbox" }],
  ["salesforce", { loginUrl: `https://${SITE}/` }, { loginUrl: SITE }],
  ["salesforce", { environment: "production" }],
  ["twitch", { claims: ["picture", "updated_at"] }],
  ["vk", { scheme: "dark" }],
  ["vk", { scheme: "light" }],
  ["wechat", { platformType: "WebsiteApp", lang: "cn" }],
  ["wechat", { lang: "en" }],
];
type Row = (typeof GOOD)[number];

/** What stays the application's. */
const APPLICATION: Record<string, string[]> = {
  cloudflare: ["tokenEndpointAuth"],
  cognito: ["requireClientSecret"],
  microsoft: ["clientAssertion"],
  vercel: ["tokenEndpointAuth"],
  zoom: ["pkce"],
};

/* That every provider and every option of better-auth is in the table, the compiler sees to. */
describe("what a tenant may say", () => {
  it.each(GOOD)("takes for %s: %j", (id, options, stored = options) => {
    const parsed = parseOwnOptions(id, { ...neededBy(id), ...options }, TRUSTED);
    expect(parsed).toEqual({ ...neededBy(id), ...stored });
  });

  it.each(socialProviderList)("%s takes these options and what all share, and no others", (id) => {
    const tried = GOOD.filter(([provider]) => provider === id).map(([, options]) => options);
    const taken = Object.keys({ ...neededBy(id), ...Object.assign({}, ...tried) });
    const known = [...taken.filter((name) => name !== "additionalClientIds")];
    const { options } = entryOf(id);
    expect(Object.keys(options).sort()).toEqual([...known, ...(APPLICATION[id] ?? [])].sort());
    const theirs = Object.keys(options).filter((name) => options[name] === null);
    expect(theirs).toEqual(APPLICATION[id] ?? []);
    const common = {
      prompt: "consent",
      disableDefaultScope: true,
      disableSignUp: true,
      disableImplicitSignUp: true,
      disableIdTokenSignIn: true,
    };
    const own = Object.entries(shared).filter(([, rule]) => rule !== null);
    expect(own.map(([name]) => name).sort()).toEqual(Object.keys(common).sort());
    const given = { ...neededBy(id), ...common };
    expect(parseOwnOptions(id, given, [])).toEqual(given);
  });
});

/** Options that have a few values each. */
const CHOICES = `google.prompt google.accessType google.display dropbox.accessType vk.scheme
  paypal.environment salesforce.environment reddit.duration wechat.lang`.split(/\s+/);

describe("what a tenant may not say", () => {
  it.each(socialProviderList)(
    "to %s: what it does not know, what is the application's, what is of the wrong kind",
    (id) => {
      const needed = neededBy(id);
      expectInvalid(id, { ...needed, unheardOf: MARK }, "options.unheardOf");
      for (const [name, rule] of Object.entries({ ...shared, ...entryOf(id).options })) {
        const wrong = rule === null ? [MARK] : [{ nested: MARK }, [[MARK]], -1.5, null];
        for (const value of wrong) {
          expectInvalid(id, { ...needed, [name]: value }, `options.${name}`);
        }
      }
    },
  );

  it.each<[provider: string, option: string, ...values: unknown[]]>([
    ...CHOICES.map((choice): [string, string, string] => {
      const [id = "", option = ""] = choice.split(".");
      return [id, option, MARK];
    }),
    ["google", "hd", `${MARK} ${MARK}`, `https://${MARK}`, "", `${"a".repeat(1_000_000)}.example`],
    ["google", "includeGrantedScopes", "true"],
    ["google", "additionalClientIds", MARK, [""], Array.from({ length: 21 }, () => MARK)],
    // A tenant may only forbid more than the application.
    ["google", "disableSignUp", false],
    ["google", "disableImplicitSignUp", false],
    ["google", "disableIdTokenSignIn", false],
    ["cloudflare", "tokenEndpointAuthMethod", "none", "private_key_jwt"],
    ["cognito", "domain", undefined],
    ["cognito", "region", undefined],
    ["cognito", "userPoolId", undefined],
    ["discord", "permissions", 1.5, "8"],
    ["facebook", "fields", [`id&access_token=${MARK}`], Array.from({ length: 51 }, () => "id")],
    ["facebook", "configId", ""],
    ["microsoft", "profilePhotoSize", 49],
    ["twitch", "claims", [`"${MARK}`], Array.from({ length: 10_000 }, () => MARK)],
    ["apple", "audience", [], ""],
    ["apple", "appBundleIdentifier", `${MARK}\n`],
    // One client id is all that this provider can have.
    ["github", "additionalClientIds", [MARK]],
  ])("%s has few good values for %s", (id, option, ...values) => {
    for (const value of values) {
      expectInvalid(id, { ...neededBy(id), [option]: value }, `options.${option}`);
    }
  });

  it("threat: strange keys, a thousand levels of them, and ten thousand", () => {
    const names = ["__proto__", "constructor", "toString", "clientSecret"];
    for (const key of [...names, "HD", "hd ", "", "\u0000"]) {
      const inner = `{"clientSecret":"${MARK}","polluted":true}`;
      const given = JSON.parse(`{"prompt":"login",${JSON.stringify(key)}:${inner}}`);
      expectInvalid("google", given, `options.${key}`);
      expect({}).not.toHaveProperty("polluted");
    }
    const deep = JSON.parse(`${'{"a":'.repeat(1000)}"${MARK}"${"}".repeat(1000)}`);
    expectInvalid("google", deep, "options.a");
    const many = Array.from({ length: 10_000 }, (_, n) => [`${"k".repeat(100)}${n}`, MARK]);
    expectInvalid("google", Object.fromEntries(many), `options.${"k".repeat(64)}`);
  });
});

const world = shareWorld({
  auth: {
    socialProviders: {
      google: { ...GLOBAL, prompt: "consent", hd: "global.example", scope: ["calendar"] },
      // Switched off: nobody signs in with it, and tenants' providers behave like it.
      twitch: { ...GLOBAL, enabled: false, claims: ["picture"] },
    },
  },
});

describe("what is taken over from the application", () => {
  it("its behaviour, whether its provider is switched on or off", async () => {
    const begin = async (providerId: string) => {
      const acme = await createOAuthTenant(world);
      await acme.register({ providerId, ...CLIENT });
      return queryOf((await acme.start(providerId)).data.url);
    };
    expect(await begin("google")).toMatchObject({
      client_id: CLIENT.clientId,
      prompt: "consent",
      hd: "global.example",
      scope: "email profile openid calendar",
    });
    const { claims = "" } = await begin("twitch");
    expect(JSON.parse(claims).id_token).toHaveProperty("picture");
  });

  it.each(socialProviderList)("none of what goes with a client of %s", (id) => {
    const behaviour = { prompt: "consent", disableSignUp: true } as const;
    const all: Record<string, unknown> = {
      ...behaviour,
      ...GLOBAL,
      refreshAccessToken: async () => ({}),
      verifyIdToken: async () => true,
      clientAssertion: async () => "the application's assertion",
      clientKey: "global-key",
      redirectURI: "https://global.example/back",
      audience: "global",
      appBundleIdentifier: "global",
      tokenEndpointAuthMethod: "none",
      configId: "global",
      enabled: false,
      // What better-auth may add one day.
      tokenEndpointAuth: { method: "private_key_jwt" },
    };
    const { clientId, clientSecret } = CLIENT;
    const named = id === "tiktok" ? { clientKey: clientId } : { clientId };
    const merged = mergeOptions(id, CLIENT, {}, all as ProviderOptions);
    expect(merged).toEqual({ ...behaviour, ...named, clientSecret });
  });

  const GITLAB = { issuer: "https://gitlab.global.example" };
  const PAYBIN = { issuer: "https://pay.example", authorizationEndpoint: "https://pay.example/in" };
  const MICROSOFT = { tenantId: "global", authority: "https://login.microsoftonline.us" };
  const SALESFORCE = { loginUrl: "global.my.salesforce.com" };
  const LIVE = { environment: "live" };
  const OKTA = { domain: "g", region: "g", userPoolId: "g", identityProvider: "GlobalOkta" };
  const AUTHORITY = { authority: "https://acme.example" };
  const SANDBOX = { environment: "sandbox" };

  // Half of a place would send a tenant's secret to a strange one.
  it.each<[string, object, own: object, merged: object]>([
    // What the tenant says goes before.
    [
      "google",
      { prompt: "consent", hd: "a.example" },
      { hd: "b.example" },
      { prompt: "consent", hd: "b.example" },
    ],
    ["google", { disableSignUp: false }, { disableSignUp: true }, { disableSignUp: true }],
    // Where the application's client lives, the tenant's does too, if it says nothing else.
    ["gitlab", GITLAB, { prompt: "login" }, { ...GITLAB, prompt: "login" }],
    ["paybin", PAYBIN, {}, PAYBIN],
    ["microsoft", MICROSOFT, {}, MICROSOFT],
    ["salesforce", SALESFORCE, {}, SALESFORCE],
    ["paypal", LIVE, {}, LIVE],
    // And if it says where it lives, nothing of the application's place is left.
    ["gitlab", GITLAB, { issuer: "https://gitlab.com" }, { issuer: "https://gitlab.com" }],
    ["paybin", PAYBIN, { issuer: "https://idp.paybin.io" }, { issuer: "https://idp.paybin.io" }],
    ["microsoft", MICROSOFT, { tenantId: "acme" }, { tenantId: "acme" }],
    ["microsoft", MICROSOFT, AUTHORITY, AUTHORITY],
    ["salesforce", SALESFORCE, SANDBOX, SANDBOX],
    ["paypal", LIVE, SANDBOX, SANDBOX],
    ["cognito", OKTA, POOL, POOL],
    // People are sent to the provider as the first of several.
    ["google", {}, { additionalClientIds: ["b"] }, { clientId: [CLIENT.clientId, "b"] }],
  ])("%s of an application with %j: a tenant with %j has %j", (id, global, own, expected) => {
    const merged = mergeOptions(id, CLIENT, { ...own }, { ...GLOBAL, ...global });
    expect(merged).toEqual({ ...CLIENT, ...expected });
  });
});

describe("the issuer that is expected to come back with a code (RFC 9207)", () => {
  it("is known only where it is certain", () => {
    const known = socialProviderList.map((id) => [id, certainIssuerOf(id, { ...neededBy(id) })]);
    expect(Object.fromEntries(known.filter(([, issuer]) => issuer))).toEqual({
      apple: "https://appleid.apple.com",
      gitlab: "https://gitlab.com",
      google: "https://accounts.google.com",
      huggingface: "https://huggingface.co",
      kakao: "https://kauth.kakao.com",
      line: "https://access.line.me",
      paybin: "https://idp.paybin.io",
      slack: "https://slack.com",
      twitch: "https://id.twitch.tv/oauth2",
      vercel: "https://vercel.com",
    });
  });

  it("is written as providers do", () => {
    const written = (issuer: string) => certainIssuerOf("gitlab", { issuer });
    expect(written("https://GitLab.Acme.example/Git/")).toBe("https://gitlab.acme.example/Git");
    expect(written("http://127.0.0.1:4000")).toBe("http://127.0.0.1:4000");
    expect(written("no address")).toBeUndefined();
  });
});

it.each<[string, object, string | undefined]>([
  ["github", {}, undefined],
  ["facebook", {}, "https://www.facebook.com"],
  ["linkedin", {}, "https://www.linkedin.com/oauth"],
  ["roblox", {}, "https://apis.roblox.com/oauth"],
  ["cognito", POOL, "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_App"],
  ["microsoft", {}, "https://login.microsoftonline.com/common/v2.0"],
  ["microsoft", { authority: CIAM, tenantId: "b" }, `${CIAM}/b/v2.0`],
  ["salesforce", {}, "https://login.salesforce.com"],
  ["salesforce", { environment: "sandbox" }, "https://test.salesforce.com"],
  ["salesforce", { loginUrl: "a.my.salesforce.com" }, "https://a.my.salesforce.com"],
])("%s with %j describes itself at %s", (id, options, expected) => {
  expect(issuerOf(id, { ...options })).toBe(expected);
});
