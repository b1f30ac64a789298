import type { ProviderOptions } from "better-auth/oauth2";
import { socialProviderList, type socialProviders } from "better-auth/social-providers";
import { describe, expect, it } from "vitest";
import { parseOwnOptions } from "../../src/oauth/provider-options";
import { entryOf, shared as sharedOptions } from "../../src/oauth/provider-table";
import { type ProviderId, providerAnswers, variantRows } from "../support/provider-answers";
import { fakeNetwork, googleIdToken } from "../support/providers";
import { compiles } from "../support/types";
import { expectRefused, queryOf, shareWorld } from "../support/world";

type OptionsOf<Id extends ProviderId> = Parameters<(typeof socialProviders)[Id]>[0];
type KeysOf<Options> = Options extends unknown ? keyof Options : never;
type OwnOption<Id extends ProviderId> = Exclude<KeysOf<OptionsOf<Id>>, keyof ProviderOptions>;

/** Good values as a tenant gives them, with how they are stored where that is not the same. */
interface Values {
  good: [given: unknown, stored?: unknown][];
  /** Where not in the sign-ins of test/oauth/provider-sign-ins, how it is seen to be used. */
  seen?: "in id tokens" | "below" | "nowhere: better-auth does nothing with it";
}

const given = (...values: unknown[]): Values => ({ good: values.map((value) => [value]) });
const tidied = (value: unknown, stored: unknown): Values => ({ good: [[value, stored]] });
const idle = (value: unknown): Values => ({
  ...given(value),
  seen: "nowhere: better-auth does nothing with it",
});
const APPLICATION = "the application's";
const POOL = providerAnswers.cognito.options ?? {};
const CLIENT = { clientId: "acme-client", clientSecret: "acme-secret" };

/** The options of the providers that have any beyond the shared ones. */
const ownOptions = {
  apple: {
    appBundleIdentifier: { ...given("example.acme.app"), seen: "in id tokens" as const },
    audience: {
      ...given("example.acme.app", ["example.acme.app", "example.acme.watch"]),
      seen: "in id tokens" as const,
    },
  },
  cloudflare: { tokenEndpointAuthMethod: given("client_secret_post", "client_secret_basic") },
  cognito: {
    domain: tidied(`https://${POOL.domain}/`, POOL.domain),
    region: given("eu-west-1", "us-gov-west-1"),
    userPoolId: given("eu-west-1_Other"),
    identityProvider: given("Okta"),
    requireClientSecret: APPLICATION,
  },
  discord: { permissions: { ...given(0, 2048), seen: "below" as const } },
  dropbox: { accessType: given("offline", "online", "legacy") },
  facebook: { fields: given(["birthday", "age_range"]), configId: given("4711") },
  gitlab: {
    issuer: {
      good: [
        ["https://gitlab.com/", "https://gitlab.com"],
        ["https://gitlab.acme.example"],
        ["https://tools.acme.example:8443/gitlab"],
      ] as [unknown, unknown?][],
    },
  },
  google: {
    accessType: given("offline", "online"),
    display: given("page", "popup", "touch", "wap"),
    hd: given("acme.example", "*"),
    includeGrantedScopes: given(true, false),
  },
  microsoft: {
    tenantId: given("acme.onmicrosoft.com", "72f988bf-86f1-41af-91ab-2d7cd011db47"),
    authority: tidied("https://acme.ciamlogin.com/", "https://acme.ciamlogin.com"),
    clientAssertion: APPLICATION,
    profilePhotoSize: given(48, 96),
    disableProfilePhoto: given(true, false),
  },
  paybin: { issuer: given("https://idp.paybin.io", "https://paybin.acme.example") },
  paypal: { environment: given("sandbox", "live"), requestShippingAddress: idle(true) },
  reddit: { duration: given("temporary", "permanent") },
  salesforce: {
    environment: given("sandbox", "production"),
    loginUrl: tidied("https://a--b.sandbox.my.site.com/", "a--b.sandbox.my.site.com"),
  },
  twitch: { claims: given(["picture", "updated_at"]) },
  vk: { scheme: idle("dark") },
  wechat: { platformType: idle("WebsiteApp"), lang: given("cn", "en") },
  zoom: { pkce: APPLICATION },
};

/**
 * Every option of every provider that better-auth has beyond the shared ones. A provider or an
 * option that it adds is a type error here, as it is in the table of the plugin.
 */
type Table = {
  [Id in ProviderId as OwnOption<Id> extends never ? never : Id]: {
    [Option in OwnOption<Id>]-?: Values | string;
  };
};
const table = ownOptions satisfies Table as Record<string, Record<string, Values | string>>;
const valuesOf = (id: string) =>
  Object.entries(table[id] ?? {}).flatMap(([option, values]) =>
    typeof values === "string" ? [] : [{ option, ...values }],
  );

describe("the table", () => {
  it.each(socialProviderList)("knows every option of %s, and whose it is", (id) => {
    const own = Object.entries(entryOf(id).options).map(([name, rule]) => [name, rule === null]);
    const known = Object.entries(table[id] ?? {}).map(([name, one]) => [name, one === APPLICATION]);
    expect(Object.fromEntries(own)).toEqual(Object.fromEntries(known));
  });

  it.each(socialProviderList)("takes good values for %s, and what all providers share", (id) => {
    const trusted = ["gitlab.acme.example", "*.acme.example:8443", "paybin.acme.example"];
    const needed = providerAnswers[id].options ?? {};
    for (const { option, good } of valuesOf(id)) {
      for (const [value, stored = value] of good) {
        const parsed = parseOwnOptions(id, { ...needed, [option]: value }, trusted);
        expect(parsed).toEqual({ ...needed, [option]: stored });
      }
    }
    const shared = {
      prompt: "consent",
      disableDefaultScope: true,
      disableSignUp: true,
      disableImplicitSignUp: true,
      disableIdTokenSignIn: true,
    };
    const taken = Object.entries(sharedOptions).filter(([, rule]) => rule !== null);
    expect(Object.keys(shared).sort()).toEqual(taken.map(([option]) => option).sort());
    expect(parseOwnOptions(id, { ...needed, ...shared }, [])).toEqual({ ...needed, ...shared });
  });

  it.each(socialProviderList)("has every option of %s tried out in a sign-in", (id) => {
    const rows = variantRows.filter(({ provider }) => provider === id);
    const tried = new Set(rows.flatMap(({ answers }) => Object.keys(answers.options ?? {})));
    const untried = valuesOf(id).filter(({ option, seen }) => !seen && !tried.has(option));
    expect(untried).toEqual([]);
  });

  it("would not compile without a provider or an option", () => {
    compiles(() => {
      const { zoom: _, ...withoutZoom } = ownOptions;
      // @ts-expect-error: a provider is missing
      withoutZoom satisfies Table;
      const { hd: __, ...withoutHd } = ownOptions.google;
      // @ts-expect-error: an option is missing
      ({ ...ownOptions, google: withoutHd }) satisfies Table;
      // @ts-expect-error: no such option
      ({ ...ownOptions.google, issuer: given() }) satisfies Table["google"];
    });
  });
});

describe("an option", () => {
  const world = shareWorld();

  async function configure(providerId: string, options: object | null, scopes?: string[]) {
    const tenant = await world.oauthTenant();
    const { status } = await tenant.register({ providerId, ...CLIENT, options, scopes });
    expect(status).toBe(200);
    return tenant;
  }

  it.each<[string, object, string[], object]>([
    ["discord", { permissions: 2048 }, ["bot"], { permissions: "2048" }],
    [
      "google",
      { prompt: "select_account", disableDefaultScope: true },
      ["openid"],
      { prompt: "select_account", scope: "openid" },
    ],
  ])("of %s: %j with %j shows in the address, until it is gone", async (...row) => {
    const [providerId, options, scopes, expected] = row;
    const tenant = await configure(providerId, options, scopes);
    const started = async () => queryOf((await tenant.start(providerId)).data.url);
    expect(await started()).toMatchObject(expected);
    await tenant.register({ providerId, ...CLIENT, scopes });
    expect(await started()).not.toMatchObject(expected);
  });

  it("of all: disableIdTokenSignIn refuses id tokens", async () => {
    const tenant = await configure("google", { disableIdTokenSignIn: true });
    const sent = fakeNetwork();
    const idToken = { token: googleIdToken({ aud: CLIENT.clientId }) };
    expectRefused(await tenant.start("google", { idToken }), 404, "ID_TOKEN_NOT_SUPPORTED");
    expect(sent).toEqual([]);
  });

  // Google says who somebody is in a token, and Zoom hides its options.
  it.each(["google", "zoom"])("of all: who may sign up with %s", async (provider) => {
    const profile = { id: "1", email: "new@example.com", display_name: "New", verified: 1 };
    const id_token = provider === "google" ? googleIdToken({ aud: CLIENT.clientId }) : undefined;
    fakeNetwork(({ url }) =>
      Response.json(
        url.includes("token") ? { access_token: "t", token_type: "Bearer", id_token } : profile,
      ),
    );
    const comeAsNewPerson = async (options: object, start: object = {}) => {
      const tenant = await configure(provider, options);
      const { data, browser } = await tenant.start(provider, start);
      const query = { code: "good", state: queryOf(data.url).state ?? "" };
      const { location } = await browser.get(`/tenant/callback/${provider}`, { query });
      return [location, (await world.rowsIn(tenant.id, "user")).length];
    };
    const keptOut = ["/failed?error=signup_disabled", 0];
    const asked = { requestSignUp: true };
    expect(await comeAsNewPerson({})).toEqual(["/welcome", 1]);
    expect(await comeAsNewPerson({ disableSignUp: true })).toEqual(keptOut);
    expect(await comeAsNewPerson({ disableImplicitSignUp: true })).toEqual(keptOut);
    expect(await comeAsNewPerson({ disableImplicitSignUp: true }, asked)).toEqual(["/welcome", 1]);
  });
});
