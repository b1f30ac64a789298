import type { BetterAuthPlugin } from "better-auth";
import { type GenericOAuthConfig, genericOAuth, oneTap } from "better-auth/plugins";
import { expect, it } from "vitest";
import { runInTenant } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { ID_TOKEN_SPEAKS_ALONE } from "../../support/differences";
import {
  fakeGoogleAndGitHub,
  googleIdToken,
  interceptFetch,
  publishedKeys,
  signToken,
} from "../../support/providers";
import { changingProviders, comeBack, createSocialWorld } from "../../support/social";
import {
  createWorld,
  queryOf,
  SUBDOMAINS,
  type World,
  type WorldOptions,
} from "../../support/world";

type Place = "acme" | "globex" | "platform";

interface Tokens {
  accessToken?: string;
  idToken?: string;
  refreshToken?: string;
}

const ELSEWHERE = ["acme", "platform"] as const;
const CLIENT = { clientId: "global", clientSecret: "s" };

/** Alice comes with Google wherever she is asked for, and Globex has an administrator of its own. */
async function createSharedWorld(options: WorldOptions = {}) {
  fakeGoogleAndGitHub();
  const world = await createWorld({
    auth: {
      socialProviders: {
        google: CLIENT,
        facebook: { ...CLIENT, clientId: "at-facebook" },
        github: { ...CLIENT, clientId: "at-github" },
      },
    },
    plugins: [oneTap()],
    tenant: { tenantRoles: { admin: ["tenant:get"] } },
    ...options,
  });
  const register = (tenantId: string, providerId = "google", more?: Record<string, unknown>) =>
    world.api.registerTenantOAuthConfig({
      body: {
        tenantId,
        providerId,
        clientId: `${tenantId}-client`,
        clientSecret: "x",
        ...(more && { options: more }),
      },
    });
  async function signIn(place: Place, provider = "google") {
    const browser = world.at(place);
    expect((await comeBack(browser, provider)).location).toBe("/welcome");
    const { id } = (await world.whoIs(browser, place)) ?? {};
    await world.database.query('update "account" set "refreshToken" = ? where "userId" = ?', [
      "refresh",
      id,
    ]);
    return { browser, id: String(id) };
  }
  /** What Globex's administrator gets in Alice's name. */
  async function handedOut(userId: string) {
    const admin = await world.join("globex", "admin");
    expect((await admin.post("/admin/impersonate-user", { userId })).status).toBe(200);
    return tokensOf(admin);
  }
  async function tokensOf(browser: Browser) {
    const { data } = await browser.get<{ id: string }[]>("/list-accounts");
    const body = { accountId: data[0]?.id };
    const stored = await browser.post<Tokens>("/get-access-token", body);
    const refreshed = await browser.post<Tokens>("/refresh-token", body);
    return { accountId: String(body.accountId), answers: [stored, refreshed] };
  }
  return { ...world, register, signIn, handedOut, tokensOf };
}

const tokensIn = ({ data: { accessToken, idToken, refreshToken } }: { data: Tokens }) =>
  Object.entries({ accessToken, idToken, refreshToken })
    .filter(([, token]) => token)
    .map(([name]) => name);

const ACCESS_ALONE = [["accessToken"], ["accessToken"]];

it.each<[string, WorldOptions]>([
  ["header", {}],
  ["host", { hosts: SUBDOMAINS }],
])(
  "takeover: tokens of the application's client do not leave a tenant, where its administrator can act for everybody, by %s",
  async (_, options) => {
    const world = await createSharedWorld(options);
    for (const place of ELSEWHERE) await world.signIn(place);
    const alice = await world.signIn("globex");
    const { accountId, answers } = await world.handedOut(alice.id);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(answers.map(tokensIn)).toEqual(ACCESS_ALONE);
    // Control: on the platform, where it is better-auth's, and for the server's own code.
    const onPlatform = await world.tokensOf((await world.signIn("platform")).browser);
    const both = ["accessToken", "idToken"];
    expect(onPlatform.answers.map(tokensIn)).toEqual([both, [...both, "refreshToken"]]);
    const { idToken } = (await runInTenant(world.ids.globex, () =>
      world.api.getAccessToken({ body: { accountId, userId: alice.id } }),
    )) as Tokens;
    // That is what they would be good for.
    for (const place of ELSEWHERE) {
      const thief = world.at(place);
      await thief.post("/one-tap/callback", { idToken });
      expect(await world.whoIs(thief, place)).toMatchObject({ email: "alice@example.com" });
    }
  },
);

/** Applications whose own client is Google's. */
const SHARING: [application: string, options: WorldOptions][] = [
  ["has a client of its own", { auth: { socialProviders: { google: CLIENT } } }],
  ["has one for One Tap alone", { auth: {}, plugins: [oneTap({ clientId: CLIENT.clientId })] }],
];

it.each(SHARING)(
  "nor do they where a tenant has its own client, and the application %s",
  async (_, options) => {
    const world = await createSharedWorld(options);
    // It says that the application's client is one of its own.
    await world.register(world.ids.globex, "google", { additionalClientIds: ["global"] });
    const alice = await world.signIn("globex");
    const { answers } = await world.handedOut(alice.id);
    expect(answers.map(tokensIn)).toEqual(ACCESS_ALONE);
  },
);

it.each<[what: string, provider: string, options: WorldOptions]>([
  ["a tenant's own client, where nobody shares one,", "google", { auth: {}, plugins: [] }],
  ["a provider without id tokens", "github", {}],
])("access tokens of %s are returned", async (_, provider, options) => {
  const world = await createSharedWorld(options);
  if (options.auth) await world.register(world.ids.globex);
  const { browser } = await world.signIn("globex", provider);
  const { answers } = await world.tokensOf(browser);
  expect(answers.map(tokensIn)).toEqual(ACCESS_ALONE);
});

/** The application's client at Google under another name, as for more scopes. */
const alias = {
  ...CLIENT,
  providerId: "google-drive",
  authorizationUrl: "https://accounts.google.com/authorize",
  tokenUrl: "https://oauth2.googleapis.com/token",
  endSessionEndpoint: "https://accounts.google.com/logout",
  getUserInfo: async () => ({ id: "alice", email: "alice@example.com", emailVerified: true }),
};

it.each(SHARING)(
  "takeover: nor do they under another name, where the application %s",
  async (_, { auth = {}, plugins = [] }) => {
    const others = plugins as BetterAuthPlugin[];
    const aliasing = [...others, genericOAuth({ config: [alias] })];
    const world = await createSharedWorld({ auth, plugins: aliasing });
    const alice = await world.signIn("globex", "google-drive");
    const { answers } = await world.handedOut(alice.id);
    expect(answers.map(tokensIn)).toEqual(ACCESS_ALONE);
    const left = await alice.browser.post<{ url: string }>("/sign-out", { disableRedirect: true });
    expect(left.data.url).toContain(alias.endSessionEndpoint);
    expect(queryOf(left.data.url)).not.toHaveProperty("id_token_hint");
  },
);

const ISSUER = "https://idp.example.net";

/** As a provider says it that knows nothing of OpenID Connect. */
const numberOf = ({ profile }: { profile: { number?: unknown; sub?: unknown } }) =>
  String(profile.number ?? profile.sub);

/** What a provider was asked for last. */
interface Asked {
  nonce?: string | undefined;
  client_id?: string | undefined;
}

/** A provider of a plugin, whose tokens are Alice's, and where people can sign out as well. */
function fakeCorporation(profile: object = {}) {
  const asked: Asked = {};
  const alice = { sub: "alice", email: "alice@example.com", email_verified: true, name: "Alice" };
  interceptFetch({
    [`${ISSUER}/.well-known/openid-configuration`]: () => ({
      issuer: ISSUER,
      authorization_endpoint: `${ISSUER}/authorize`,
      token_endpoint: `${ISSUER}/token`,
      jwks_uri: `${ISSUER}/keys`,
      userinfo_endpoint: `${ISSUER}/userinfo`,
      end_session_endpoint: `${ISSUER}/logout`,
      id_token_signing_alg_values_supported: ["RS256"],
    }),
    [`${ISSUER}/keys`]: () => publishedKeys,
    [`${ISSUER}/token`]: () => ({
      access_token: "access",
      token_type: "Bearer",
      id_token: signToken({
        iss: ISSUER,
        aud: asked.client_id,
        nonce: asked.nonce,
        ...alice,
        ...profile,
        sub: Object.values(profile).includes(7) ? "7" : alice.sub,
      }),
    }),
    [`${ISSUER}/userinfo`]: () => ({ ...alice, ...profile }),
  });
  const client = { clientId: "app", clientSecret: "s", scopes: ["openid"] };
  return {
    asked,
    corp: {
      ...client,
      providerId: "corp",
      discoveryUrl: `${ISSUER}/.well-known/openid-configuration`,
    },
    /** Another client, whose provider takes no id tokens. */
    crm: {
      ...client,
      providerId: "crm",
      clientId: "crm",
      authorizationUrl: `${ISSUER}/authorize`,
      tokenUrl: `${ISSUER}/token`,
      getUserInfo: async () => ({ id: "alice", email: "alice@example.com", emailVerified: true }),
    },
  };
}

async function signInAtCorporation(world: World, asked: Asked, place: Place, provider: string) {
  const browser = world.at(place);
  const body = { provider, callbackURL: "/in", errorCallbackURL: "/failed" };
  const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
  const { nonce, client_id, redirect_uri, state } = queryOf(data.url);
  Object.assign(asked, { nonce, client_id });
  const back = `${redirect_uri}?code=1&state=${state}&iss=${encodeURIComponent(ISSUER)}`;
  expect((await browser.get(back)).location).toBe("/in");
  const { data: accounts } = await browser.get<{ id: string }[]>("/list-accounts");
  const tokens = await browser.post<Tokens>("/get-access-token", { accountId: accounts[0]?.id });
  return { browser, tokens };
}

it.each([true, false])(
  "takeover: those of a provider of a plugin stay as well, ours before it: %s",
  async (isFirst) => {
    const { asked, corp } = fakeCorporation();
    const world = await createWorld({
      plugins: [genericOAuth({ config: [corp] })],
      arrange: (ours, others) => (isFirst ? [ours, ...others] : [...others, ours]),
    });
    for (const place of ["globex", "platform"] as const) {
      const { browser, tokens } = await signInAtCorporation(world, asked, place, "corp");
      // The page of the provider for signing out has the id token in its address.
      const left = await browser.post<{ url: string }>("/sign-out", { disableRedirect: true });
      const hint = queryOf(left.data.url).id_token_hint !== undefined;
      expect(left.data.url).toContain(`${ISSUER}/logout`);
      expect([tokens.status, tokens.code, hint]).toEqual(
        place === "platform" ? [200, undefined, true] : [403, "TOKEN_OF_SHARED_CLIENT", false],
      );
    }
  },
);

it("access tokens of another client are handed out beside one that is shared", async () => {
  const { asked, corp, crm } = fakeCorporation();
  const world = await createWorld({ plugins: [genericOAuth({ config: [corp, crm] })] });
  const { tokens } = await signInAtCorporation(world, asked, "globex", "crm");
  expect([tokens.status, tokens.data.accessToken]).toEqual([200, "access"]);
});

// Any client's access tokens are good for that question, those of a tenant's own client, too.
it.each<[place: "platform" | "acme", told: string, profile?: object, more?: object]>([
  ["platform", "OpenID Connect"],
  ["acme", "OpenID Connect"],
  ["platform", "a number", { sub: 7 }],
  ["platform", "something that ends like it", { sub: "alice#thief" }],
  ["acme", "no sub", { sub: undefined, number: 7 }, { accountSubject: numberOf }],
])(
  "takeover: at %s, an access token that comes with the caller's id token says nothing about the user: %s",
  async (place, _, profile = {}, more = {}) => {
    const { asked, corp } = fakeCorporation(profile);
    const config = [{ ...corp, ...more }];
    const world = await createWorld({ plugins: [genericOAuth({ config })] });
    const [told = "alice"] = Object.values(profile).filter((value) => value !== undefined);
    const own = ID_TOKEN_SPEAKS_ALONE ? `${told}`.replace("#thief", "") : `${told}`;
    await signInAtCorporation(world, asked, place, "corp");
    const signIn = async (sub: string, claims: object = {}) => {
      const browser = world.at(place);
      const token = signToken({ iss: ISSUER, aud: "app", sub, ...claims });
      const body = { provider: "corp", idToken: { token, accessToken: "alice's" } };
      const { status, code } = await browser.post("/sign-in/social", body);
      return [status, code, (await world.whoIs(browser, place))?.email];
    };
    // Without an email in it, better-auth asks the provider with the access token, or nobody.
    const email = ID_TOKEN_SPEAKS_ALONE ? { email: "alice@example.com" } : {};
    expect(await signIn(own, email)).toEqual([200, undefined, "alice@example.com"]);
    expect(await signIn("thief")).toEqual([401, "FAILED_TO_GET_USER_INFO", undefined]);
    const [, , thief] = await signIn("thief", { email: "thief@example.com" });
    expect([undefined, "thief@example.com"]).toContain(thief);
  },
);

type Said = { idToken?: string | undefined; accessToken?: string | undefined };

const subOf = ({ idToken = "" }: Said): string =>
  JSON.parse(Buffer.from(idToken.split(".")[1] ?? "", "base64url").toString()).sub;

const whoAsks = { email: "alice@example.com", name: "Alice", emailVerified: true };

it.each(["platform", "acme"] as const)(
  "takeover: at %s, an id token does not say which user an access token is about",
  async (place) => {
    const { corp } = fakeCorporation({ sub: undefined, number: 7 });
    const accountSubject = ({ tokens }: { tokens: Said }) => subOf(tokens);
    const config = [{ ...corp, accountSubject }] as GenericOAuthConfig[];
    const world = await createWorld({ plugins: [genericOAuth({ config })] });
    await world.signUp(place, "alice@example.com");
    await world.database.query('update "user" set "emailVerified" = 1', []);
    const thief = world.at(place);
    const token = signToken({ iss: ISSUER, aud: "app", sub: "thief" });
    const body = { provider: "corp", idToken: { token, accessToken: "alice's" } };
    const { status, code } = await thief.post("/sign-in/social", body);
    expect([status, code]).toEqual([401, "FAILED_TO_GET_USER_INFO"]);
    expect(await world.whoIs(thief, place)).toBeNull();
  },
);

it("control: an access token may come along where it does not identify the user", async () => {
  const { corp } = fakeCorporation();
  const getUserInfo = async (tokens: Said) => ({
    ...whoAsks,
    id: subOf(tokens),
    sub: subOf(tokens),
  });
  const world = await createWorld({
    plugins: [genericOAuth({ config: [{ ...corp, getUserInfo }] })],
  });
  const token = signToken({ iss: ISSUER, aud: "app", sub: "alice" });
  const body = { provider: "corp", idToken: { token, accessToken: "access" } };
  expect((await world.at("acme").post("/sign-in/social", body)).status).toBe(200);
});

it("takeover: an access token counts with no id token that cannot be read", async () => {
  const verifyIdToken = async (token: string) => token.startsWith("good.");
  const world = await createSocialWorld({ gitlab: { verifyIdToken } });
  await world.signInAtProvider(world.at("acme"), "acme");
  const [account] = await world.rowsIn("acme", "account");
  for (const token of ["good.opaque", "good.a.b.c.d"]) {
    const idToken = { token, accessToken: account?.accessToken };
    const answer = await world.at("acme").post("/sign-in/social", { provider: "gitlab", idToken });
    expect([answer.status, answer.code]).toEqual([401, "FAILED_TO_GET_USER_INFO"]);
  }
});

it("control: better-auth looks whose client Facebook's opaque tokens are of, and takes them, once", async () => {
  const world = await createSharedWorld();
  interceptFetch({
    "https://graph.facebook.com/debug_token": () => ({
      data: { is_valid: true, app_id: "at-facebook", user_id: "7" },
    }),
    "https://graph.facebook.com/me": () => ({ ...whoAsks, id: "7", picture: { data: {} } }),
  });
  const body = { provider: "facebook", idToken: { token: "opaque", accessToken: "opaque" } };
  for (const place of ELSEWHERE) {
    expect((await world.at(place).post("/sign-in/social", body)).status).toBe(200);
    const two = { provider: "facebook", idToken: { token: "opaque", accessToken: "another" } };
    expect((await world.at(place).post("/sign-in/social", two)).status).toBe(401);
  }
});

it("takeover: where a plugin has written getUserInfo anew, by access tokens, both are of one person", async () => {
  const getUserInfo = async ({ accessToken }: Said) =>
    accessToken ? { user: whoAsks, data: { sub: "google-alice" } } : null;
  const changing = changingProviders((all) => all.map((one) => ({ ...one, getUserInfo })));
  const auth = { socialProviders: { google: CLIENT } };
  const world = await createSharedWorld({ auth, plugins: [changing] });
  const by = async (sub: string) => {
    const idToken = { token: googleIdToken({ sub, aud: CLIENT.clientId }), accessToken: "alice's" };
    return (await world.at("globex").post("/sign-in/social", { provider: "google", idToken }))
      .status;
  };
  expect([await by("thief"), await by("google-alice")]).toEqual([401, 200]);
});

it("where an access token is a sign-in, it stays in the tenant as well", async () => {
  const world = await createSharedWorld();
  const alice = await world.signIn("globex");
  await world.database.query('update "account" set "providerId" = ?', ["facebook"]);
  for (const hasOwn of [false, true]) {
    if (hasOwn) await world.register(world.ids.globex, "facebook");
    const { data } = await alice.browser.get<{ id: string }[]>("/list-accounts");
    const { status, code } = await alice.browser.post("/get-access-token", {
      accountId: data[0]?.id,
    });
    expect([status, code]).toEqual([403, "TOKEN_OF_SHARED_CLIENT"]);
  }
});
