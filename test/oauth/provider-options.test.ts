import type { ProviderOptions } from "better-auth/oauth2";
import { socialProviderList } from "better-auth/social-providers";
import { beforeAll, describe, expect, it } from "vitest";
import { certainIssuerOf, mergeOptions, parseOwnOptions } from "../../src/oauth/provider-options";
import { entryOf, shared } from "../../src/oauth/provider-table";
import { type ProviderId, providerAnswers } from "../support/provider-answers";
import { createPerson } from "../support/provider-flow";
import { fakeNetwork, signToken } from "../support/providers";
import {
  type ConfigAnswer,
  expectRefused,
  type OAuthTenant,
  queryOf,
  shareWorld,
} from "../support/world";

const GLOBAL = { clientId: "global-client", clientSecret: "global-client-secret" };
const CLIENT = { clientId: "acme-client", clientSecret: "acme-secret" };
/** Stands in every value that is refused, and must not come back. */
const MARK = "value-that-nobody-may-repeat";
const INVALID = "INVALID_PROVIDER_OPTIONS";
const neededBy = (id: string) => providerAnswers[id as ProviderId].options ?? {};

const world = shareWorld({
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
      },
      // Switched off: nobody signs in with it, and tenants' providers behave like it.
      twitch: { ...GLOBAL, enabled: false, claims: ["picture"] },
    },
  },
});

describe("what a tenant may not say", () => {
  function expectInvalid(id: string, options: object, named: string) {
    let thrown: unknown;
    try {
      parseOwnOptions(id, options, []);
    } catch (error) {
      thrown = error;
    }
    const message = expect.stringContaining(named);
    expect(thrown).toMatchObject({ statusCode: 400, body: { code: INVALID, message } });
    expect(JSON.stringify(thrown)).not.toContain(MARK);
  }

  const WRONG = [{ nested: MARK }, [[MARK]], -1.5, null];

  it.each(socialProviderList)(
    "to %s: what it does not know, what is the application's, what is of the wrong kind",
    (id) => {
      const options = Object.entries({ ...shared, ...entryOf(id).options });
      expect(options.map(([name]) => name)).toEqual(
        expect.arrayContaining(["getUserInfo", "prompt"]),
      );
      expectInvalid(id, { ...neededBy(id), unheardOf: MARK }, "options.unheardOf");
      for (const [name, rule] of options) {
        for (const wrong of rule === null ? [MARK] : WRONG) {
          expectInvalid(id, { ...neededBy(id), [name]: wrong }, `options.${name}`);
        }
      }
      for (const name of Object.keys(id === "cognito" ? neededBy(id) : {})) {
        expectInvalid(id, { ...neededBy(id), [name]: undefined }, `options.${name}`);
      }
    },
  );

  it.each<[string, Record<string, unknown>]>([
    ["google", { prompt: MARK }],
    ["google", { accessType: MARK }],
    ["google", { display: MARK }],
    ["google", { hd: `${MARK} ${MARK}` }],
    ["google", { hd: `https://${MARK}` }],
    ["google", { hd: "" }],
    ["google", { includeGrantedScopes: "true" }],
    ["google", { additionalClientIds: MARK }],
    ["google", { additionalClientIds: [""] }],
    ["google", { additionalClientIds: Array.from({ length: 21 }, (_, i) => `${MARK}-${i}`) }],
    // A tenant may only forbid more than the application.
    ["google", { disableSignUp: false }],
    ["google", { disableImplicitSignUp: false }],
    ["google", { disableIdTokenSignIn: false }],
    ["cloudflare", { tokenEndpointAuthMethod: "none" }],
    ["cloudflare", { tokenEndpointAuthMethod: "private_key_jwt" }],
    ["discord", { permissions: 1.5 }],
    ["discord", { permissions: "8" }],
    ["dropbox", { accessType: MARK }],
    ["facebook", { fields: [`id&access_token=${MARK}`] }],
    ["facebook", { fields: Array.from({ length: 51 }, () => "id") }],
    ["facebook", { configId: "" }],
    ["microsoft", { profilePhotoSize: 49 }],
    ["paypal", { environment: MARK }],
    ["reddit", { duration: MARK }],
    ["salesforce", { environment: MARK }],
    ["twitch", { claims: [`"${MARK}`] }],
    ["vk", { scheme: MARK }],
    ["wechat", { lang: MARK }],
    ["apple", { audience: [] }],
    ["apple", { audience: "" }],
    ["apple", { appBundleIdentifier: `${MARK}\n` }],
    // One client id is all that this provider can have.
    ["github", { additionalClientIds: [MARK] }],
  ])("%s has few good values for %j", (id, options) => {
    expectInvalid(id, options, `options.${Object.keys(options)[0]}`);
  });

  let acme: OAuthTenant;
  const before = new Map<string, ConfigAnswer>();

  beforeAll(async () => {
    acme = await world.oauthTenant();
    for (const providerId of ["google", "github", "twitch"]) {
      before.set(providerId, (await acme.register({ providerId, ...CLIENT })).data);
    }
  });

  /** In requests: the body is text, because JSON has keys that an object literal cannot have. */
  async function expectRefusedInRequest(id: string, options: string, named: string) {
    const fields = JSON.stringify({ tenantId: acme.id, providerId: id, ...CLIENT }).slice(1);
    const answer = await (await world.operator()).post<{ message: string }>(
      "/tenant/oauth-config/register",
      `{"options":${options},${fields}`,
    );
    expectRefused(answer, 400, INVALID);
    expect(answer.data.message).toContain(named);
    expect(answer.data.message.length).toBeLessThan(600);
    expect(JSON.stringify([answer.data, ...answer.headers])).not.toContain(MARK);
    expect(await acme.list()).toContainEqual(before.get(id));
  }

  it.each([
    "__proto__",
    "constructor",
    "toString",
    "__defineGetter__",
    "clientSecret",
    "clientKey",
    "client_secret",
    "tokenEndpoint",
    "authorizationEndpoint",
    "getUserInfo",
    "scope",
    "enabled",
    "redirectURI",
    "tenantId",
    "hd ",
    "HD",
    "",
    "0",
    "\u0000",
    "\ud83d\udd11",
  ])("threat: strange keys: %j is no option", async (key) => {
    const name = JSON.stringify(key);
    await expectRefusedInRequest("google", `{${name}:"${MARK}"}`, `options.${key}`);
    const nested = `{"prompt":"login",${name}:{"clientSecret":"${MARK}","polluted":true}}`;
    await expectRefusedInRequest("github", nested, `options.${key}`);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it("threat: strange values: a million letters, a thousand levels and ten thousand keys", async () => {
    const deep = `${'{"a":'.repeat(1000)}"${MARK}"${"}".repeat(1000)}`;
    const list = JSON.stringify(Array.from({ length: 10_000 }, () => MARK));
    const keys = Array.from({ length: 10_000 }, (_, i) => `"${"k".repeat(100)}${i}":"${MARK}"`);
    const many = `{"hd":"${"a".repeat(1_000_000)}.example"}`;
    await expectRefusedInRequest("google", many, "options.hd");
    await expectRefusedInRequest("google", `{"hd":${deep}}`, "options.hd");
    await expectRefusedInRequest("twitch", `{"claims":${list}}`, "options.claims");
    await expectRefusedInRequest("google", `{${keys.join(",")}}`, `options.${"k".repeat(64)}`);
    await expectRefusedInRequest("google", deep, "options.a");
  });

  it("is refused in the server's own code as well, and the value is not repeated", async () => {
    const { id: tenantId } = await world.oauthTenant();
    const body = { tenantId, providerId: "google", ...CLIENT, options: { unheardOf: MARK } };
    const error = await world.api.registerTenantOAuthConfig({ body }).catch((thrown) => thrown);
    const message = expect.stringContaining("unheardOf");
    expect(error).toMatchObject({ statusCode: 400, body: { code: INVALID, message } });
    expect(JSON.stringify(error)).not.toContain(MARK);
  });
});

describe("what is taken over from the application", () => {
  const begin = async (providerId: string, options?: object) => {
    const acme = await world.oauthTenant();
    await acme.register({ providerId, ...CLIENT, options });
    const { data, browser } = await acme.start(providerId);
    return { acme, browser, query: queryOf(data.url) };
  };

  it("its behaviour, whether its provider is switched on or off", async () => {
    const { query } = await begin("google");
    expect(query).toMatchObject({
      client_id: CLIENT.clientId,
      prompt: "consent",
      access_type: "offline",
      hd: "global.example",
      scope: "email profile openid calendar",
      redirect_uri: "http://localhost:3000/api/auth/tenant/callback/google",
    });
    const twitch = await begin("twitch");
    expect(JSON.parse(twitch.query.claims ?? "").id_token).toHaveProperty("picture");
  });

  it("how a profile becomes a user; what the tenant says goes before", async () => {
    const options = { prompt: "login", accessType: "online", hd: "acme.example" };
    const { acme, browser, query } = await begin("google", options);
    expect(query).toMatchObject({ prompt: "login", access_type: "online", hd: "acme.example" });
    const claims = { ...providerAnswers.google.idToken?.(createPerson()), hd: "acme.example" };
    const id_token = signToken({ ...claims, aud: CLIENT.clientId });
    fakeNetwork(() => Response.json({ access_token: "t", token_type: "Bearer", id_token }));
    const { state = "" } = query;
    await browser.get("/tenant/callback/google", { query: { code: "good", state } });
    const { data } = await world.at(acme.id, browser).get("/get-session");
    expect(data.user).toMatchObject({ tenantId: acme.id, name: "Named by the application" });
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

  it.each([
    [{}, { disableSignUp: true }, true],
    [{ disableSignUp: true }, { disableSignUp: false }, true],
    [{ disableSignUp: true }, { disableSignUp: true }, true],
    [{}, {}, undefined],
  ])("a tenant with %j forbids more than %j, and never less", (own, global, expected) => {
    const merged = mergeOptions("google", CLIENT, own, { ...GLOBAL, ...global } as ProviderOptions);
    expect(merged.disableSignUp).toBe(expected);
  });

  const GITLAB = { issuer: "https://gitlab.global.example" };
  const PAYBIN = { issuer: "https://pay.example", authorizationEndpoint: "https://pay.example/in" };
  const MICROSOFT = { tenantId: "global", authority: "https://login.microsoftonline.us" };
  const SALESFORCE = { loginUrl: "global.my.salesforce.com" };
  const LIVE = { environment: "live" };
  const POOL = { domain: "d", region: "r", userPoolId: "p" };
  const OKTA = { domain: "g", region: "g", userPoolId: "g", identityProvider: "GlobalOkta" };

  // Half of a place would send a tenant's secret to a strange one.
  it.each<[string, object, own: object, merged: object]>([
    // Where the application's client lives, the tenant's does too, if it says nothing else.
    ["gitlab", GITLAB, {}, GITLAB],
    ["gitlab", GITLAB, { prompt: "login" }, { ...GITLAB, prompt: "login" }],
    ["paybin", PAYBIN, {}, PAYBIN],
    ["microsoft", MICROSOFT, {}, MICROSOFT],
    ["salesforce", SALESFORCE, {}, SALESFORCE],
    ["paypal", LIVE, {}, LIVE],
    // And if it says where it lives, nothing of the application's place is left.
    ["gitlab", GITLAB, { issuer: "https://gitlab.com" }, { issuer: "https://gitlab.com" }],
    ["paybin", PAYBIN, { issuer: "https://idp.paybin.io" }, { issuer: "https://idp.paybin.io" }],
    ["microsoft", MICROSOFT, { tenantId: "acme" }, { tenantId: "acme" }],
    [
      "microsoft",
      MICROSOFT,
      { authority: "https://acme.example" },
      { authority: "https://acme.example" },
    ],
    ["salesforce", SALESFORCE, { environment: "sandbox" }, { environment: "sandbox" }],
    ["paypal", LIVE, { environment: "sandbox" }, { environment: "sandbox" }],
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
    const known = socialProviderList.map((id) => [id, certainIssuerOf(id, neededBy(id))]);
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

  it.each([
    ["gitlab", { issuer: "https://gitlab.acme.example" }, "https://gitlab.acme.example"],
    ["gitlab", { issuer: "https://GitLab.Acme.example" }, "https://gitlab.acme.example"],
    ["gitlab", { issuer: "https://acme.example/Git" }, "https://acme.example/Git"],
    ["gitlab", { issuer: "https://acme.example/git/" }, "https://acme.example/git"],
    ["gitlab", { issuer: "http://127.0.0.1:4000" }, "http://127.0.0.1:4000"],
    ["microsoft", { tenantId: "common" }, undefined],
    ["microsoft", { tenantId: "acme.onmicrosoft.com" }, undefined],
    ["salesforce", { loginUrl: "a.my.salesforce.com" }, undefined],
  ])("of %s with %j is %s", (id, options, expected) => {
    expect(certainIssuerOf(id, options)).toBe(expected);
  });
});
