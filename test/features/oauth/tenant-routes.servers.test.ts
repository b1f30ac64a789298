import { describe, expect, it } from "vitest";
import { getTenantId } from "../../../src/index";
import { databases } from "../../support/database";
import { BASE_URL, PASSWORD } from "../../support/instance";
import {
  createSocialWorld,
  GLOBAL,
  type SocialWorld,
  type SocialWorldOptions,
  STATE_STRATEGIES,
  shareSocialWorld,
} from "../../support/social";
import { EMAIL, outcome, PLACES, type Place, queryOf } from "../../support/world";

/*
 * How every provider is asked, and with whose client: test/features/oauth/provider-sign-ins. Accounts that
 * are linked by /link-social: test/flows/accounts.
 */

const BACK = "/tenant/callback/gitlab";
const CALLBACK = `${BASE_URL}${BACK}`;
const ALICE = "alice@example.com";
const NOT_FOUND = [404, "PROVIDER_NOT_FOUND"];
const NOT_LINKED = "/failed?error=account_not_linked";

/** Somebody with Alice's e-mail and a password at some places. */
async function open(options: SocialWorldOptions, at: readonly Place[], isVerified = true) {
  const world = await createSocialWorld(options);
  const ids: string[] = [];
  for (const place of at) ids.push((await world.signUp(place, ALICE)).id);
  const { quote, query } = world.database;
  await query(`update ${quote("user")} set ${quote("emailVerified")} = ${isVerified}`);
  return { world, ids };
}

/** The whole way to the provider and back; who that is then. */
async function visit(world: SocialWorld, place: Place) {
  const browser = world.browser();
  const { location } = await world.signInAtProvider(browser, world.ids[place]);
  return { location, who: await world.whoIs(browser, place) };
}

/** Where Alice's accounts at the provider lead to, by user. */
async function linkedUsers({ everything }: SocialWorld): Promise<unknown[]> {
  const accounts = (await everything()).account as { providerId: string; userId: string }[];
  return accounts.filter(({ providerId }) => providerId === "gitlab").map(({ userId }) => userId);
}

describe.each(databases)("on %s", (database) => {
  it("signs a new user up in the tenant, with its own credentials, and later in again", async () => {
    const seen: string[] = [];
    const note = (what: string) => async () => void seen.push(`${what} ${getTenantId()}`);
    const hooks = (model: string) => ({
      create: { before: note(`before ${model}`), after: note(`after ${model}`) },
    });
    const [user, account, session] = [hooks("user"), hooks("account"), hooks("session")];
    const databaseHooks = { user, account, session, verification: hooks("state") };
    const world = await createSocialWorld({ database, auth: { databaseHooks } });
    const { clientId, clientSecret } = await world.configure("acme");
    const tenantId = world.ids.acme;
    const browser = world.browser();
    const { status, data, location } = await world.start(browser, "acme");
    expect([status, data]).toEqual([200, { url: location, redirect: true }]);
    expect(data.url.startsWith(`${world.idp.issuer}/oauth/authorize?`)).toBe(true);
    const pkce = { response_type: "code", code_challenge_method: "S256" };
    const sent = { client_id: clientId, redirect_uri: CALLBACK };
    expect(queryOf(data.url)).toMatchObject({ ...sent, ...pkce });

    const url = await world.idp.authorize(data.url, "alice");
    const back = await world.touchesOnly("acme", () => browser.get(url));
    expect([back.status, back.location]).toEqual([302, "/welcome"]);
    const exchanges = world.idp.exchanges().map(({ params }) => params);
    expect(exchanges).toMatchObject([{ ...sent, client_secret: clientSecret }]);
    const alice = await world.whoIs(browser, "acme");
    expect(alice).toMatchObject({ email: ALICE, tenantId });
    for (const table of ["user", "account", "session"]) {
      expect(await world.rowsIn("acme", table)).toHaveLength(1);
    }
    expect(await world.rows("verification")).toBe(0);
    // The hooks run inside the tenant, at the start and in the callback.
    const models = ["user", "account", "session", "state"].map((model) => `${model} ${tenantId}`);
    const expected = models.flatMap((model) => [`before ${model}`, `after ${model}`]);
    expect(seen.sort()).toEqual(expected.sort());

    const again = world.browser();
    const page = { newUserCallbackURL: "/first-time" };
    expect((await world.signInAtProvider(again, "acme", page)).location).toBe("/welcome");
    expect(await world.whoIs(again, "acme")).toEqual(alice);
    expect([await world.rows("user"), await world.rows("session")]).toEqual([1, 2]);
  });

  it("threat: link onto an unverified local user: not linked, not taken over", async () => {
    const { world } = await open({ database }, ["acme"], false);
    const users = await world.rowsIn("acme", "user");
    expect(await visit(world, "acme")).toEqual({ location: NOT_LINKED, who: null });
    expect(await linkedUsers(world)).toEqual([]);
    expect(await world.rowsIn("acme", "user")).toEqual(users);
  });

  it("threat: identity collision: one account in two tenants and on the platform is three users, each time", async () => {
    const { world } = await open({ database }, []);
    await world.configure("acme");
    const visits = async () => {
      const people = [];
      for (const place of PLACES) people.push((await visit(world, place)).who);
      return people;
    };
    const first = await visits();
    expect(first.map((who) => who?.tenantId)).toEqual(PLACES.map((place) => world.ids[place]));
    expect(new Set(first.map((who) => who?.id)).size).toBe(3);
    expect(await visits()).toEqual(first);
    expect([await world.rows("user"), await world.rows("account")]).toEqual([3, 3]);
  });

  it.each<[string, Place, Place[]]>([
    ["a tenant's user of that e-mail, not to the others", "acme", ["acme", "globex", "platform"]],
    ["a new user at a tenant, where there are only others", "acme", ["globex", "platform"]],
    ["a new user on the platform, not to a tenant's", "platform", ["acme"]],
  ])("R3: links to %s", async (_, place, taken) => {
    const { world, ids } = await open({ database }, taken);
    const { location, who } = await world.touchesOnly(place, () => visit(world, place));
    expect([location, who?.tenantId]).toEqual(["/welcome", world.ids[place]]);
    expect(ids.indexOf(who?.id ?? "")).toBe(taken.indexOf(place));
    expect(await linkedUsers(world)).toEqual([who?.id]);
  });
});

it("is a tenant's own where there is no global one, and no other tenant's", async () => {
  const world = await createSocialWorld({ gitlab: false });
  await world.configure("acme");
  await world.configure("globex", { enabled: false });
  const bare = (await world.createTenant()).id;
  const { location } = await world.signInAtProvider(world.browser(), "acme");
  expect(location).toBe("/welcome");
  await world.unchanged(async () => {
    for (const where of ["globex", bare, null]) {
      const answer = await world.start(world.browser(), where);
      expect([...outcome(answer), answer.location]).toEqual([...NOT_FOUND, null]);
    }
    const unknown = await world.start(world.browser(), "acme", { provider: "nobody" });
    expect(outcome(unknown)).toEqual(NOT_FOUND);
    const body = { tenantId: world.ids.globex, provider: "gitlab" };
    const call = world.api.signInSocialTenant({ body });
    await expect(call).rejects.toMatchObject({ body: { code: "PROVIDER_NOT_FOUND" } });
  });
});

const shared = shareSocialWorld({ auth: { trustedOrigins: ["https://app.example"] } });

it("a sign-in starts from the server's own code, and the browser finishes", async () => {
  const { id: tenantId } = await shared.createTenant();
  const body = { tenantId, provider: "gitlab", callbackURL: "/welcome" };
  const call = { body, returnHeaders: true } as const;
  const { response, headers } = await shared.api.signInSocialTenant(call);
  const url = response.url ?? "";
  expect([response, headers.get("location")]).toEqual([{ redirect: true, url }, url]);
  expect(queryOf(url).client_id).toBe(GLOBAL.clientId);
  const person = shared.browser();
  person.keepCookies(headers);
  const back = await person.get(await shared.idp.authorize(url, "alice"));
  expect(back.location).toBe("/welcome");
  expect(await shared.whoIs(person, tenantId)).toMatchObject({ tenantId });
});

describe.each(["the tenant's config", "the global provider"])("with %s", (whose) => {
  async function enter(options: SocialWorldOptions) {
    const world = await createSocialWorld(options);
    if (whose === "the tenant's config") await world.configure("acme");
    const signIn = async (body: object = {}) =>
      (await world.signInAtProvider(world.browser(), "acme", { ...body })).location;
    return { world, signIn, users: () => world.rowsIn("acme", "user") };
  }

  it("mapProfileToUser, overrideUserInfoOnSignIn and disableImplicitSignUp are used", async () => {
    const { world, signIn, users } = await enter({
      gitlab: {
        mapProfileToUser: ({ username, name }) => ({ name: `Mapped ${username}, ${name}` }),
        overrideUserInfoOnSignIn: true,
        disableImplicitSignUp: true,
      },
    });
    expect(await signIn()).toBe("/failed?error=signup_disabled");
    expect(await users()).toEqual([]);
    expect(await signIn({ requestSignUp: true })).toBe("/welcome");
    expect(await users()).toMatchObject([{ name: "Mapped alice, alice" }]);
    world.idp.addPerson("alice", { name: "Renamed" });
    expect(await signIn()).toBe("/welcome");
    expect(await users()).toMatchObject([{ name: "Mapped alice, Renamed" }]);
  });

  it("requireEmailVerification holds back a session, and the mail leads into the tenant", async () => {
    const { world, signIn, users } = await enter({ gitlab: { requireEmailVerification: true } });
    world.idp.addPerson("alice", { email_verified: false });
    expect(await signIn()).toBe("/failed?error=email_not_verified");
    expect(await world.rows("session")).toBe(0);
    // R6: the link is opened in a browser that knows nothing about the tenant.
    await world.browser().get(world.lastMail("verification").url);
    expect(await users()).toMatchObject([{ emailVerified: 1 }]);
    expect(await signIn()).toBe("/welcome");
  });
});

const FORM = { headers: { "content-type": "application/x-www-form-urlencoded" } };
const SAID_NO = { error: "access_denied", error_description: "Alice said no" };

describe("the callback", () => {
  /** What a provider sends when the person says no. */
  async function refusal(world: SocialWorld, errorCallbackURL?: string) {
    const { id } = await world.createTenant();
    const browser = world.browser();
    const { data } = await world.start(browser, id, { errorCallbackURL });
    const { state = "" } = queryOf(data.url);
    const back = await browser.get(BACK, { query: { state, ...SAID_NO } });
    expect([back.status, world.idp.exchanges()]).toEqual([302, []]);
    return [back.location?.split("?")[0], queryOf(back.location)];
  }

  it.each(STATE_STRATEGIES)(
    "with the state in the %s leads a refusal to errorCallbackURL, or the application's errorURL",
    async (stateStrategy) => {
      const page = "/failed?from=gitlab";
      const auth = { onAPIError: { errorURL: "/oops" } };
      const world = await createSocialWorld({ stateStrategy, auth });
      expect(await refusal(world, page)).toEqual(["/failed", { from: "gitlab", ...SAID_NO }]);
      expect(await refusal(world)).toEqual(["/oops", SAID_NO]);
      // And everybody else in; no state is left in the browser.
      const browser = world.browser();
      const back = await world.signInAtProvider(browser, "acme");
      expect([back.status, back.location]).toEqual([302, "/welcome"]);
      expect([...browser.cookies.keys()].filter((name) => /state/.test(name))).toEqual([]);
    },
  );

  it("takes a form_post without cookies, and goes on as a GET on the same path", async () => {
    const { id } = await shared.createTenant();
    const browser = shared.browser();
    const params = queryOf(await shared.authorize(browser, id));
    const exchanges = shared.idp.exchanges().length;
    // An id token in the form goes no further.
    const form = new URLSearchParams({ ...params, id_token: "token-in-a-form" });
    const stranger = shared.browser({ origin: shared.idp.issuer });
    const posted = await stranger.post(`${BACK}?tenant=a%26b`, form.toString(), FORM);
    expect([posted.status, stranger.cookies.size]).toEqual([302, 0]);
    expect(posted.location?.startsWith(`${CALLBACK}?`)).toBe(true);
    expect(queryOf(posted.location)).toEqual({ ...params, tenant: "a&b" });
    expect(shared.idp.exchanges()).toHaveLength(exchanges);
    expect((await browser.get(BACK, { query: params })).location).toBe("/welcome");
    // It cannot leave its path, and has to be whole.
    const path = "/tenant/callback/..%2f..%2f..%2fevil";
    const { location } = await shared.browser().post(path, "code=1", FORM);
    expect(new URL(location ?? "").href.startsWith(`${BASE_URL}/tenant/callback/`)).toBe(true);
    // As it came: better-auth takes a path as it is.
    const named = await shared.browser().post("/tenant/callback/corp:oidc", "code=1", FORM);
    expect(named.location).toBe(`${BASE_URL}/tenant/callback/corp:oidc?code=1`);
    const twice = await shared.browser().post(`${BACK}?code=1&code=2`, "state=1", FORM);
    expect(outcome(twice)).toEqual([400, "VALIDATION_ERROR"]);
  });
});

let count = 0;
const bodies = {
  "sign-in/social": () => ({ provider: "gitlab" }),
  "sign-in/email": () => ({ email: EMAIL, password: PASSWORD }),
  "sign-up/email": () => ({ name: "New", email: `${++count}@example.com`, password: PASSWORD }),
};

// Which addresses are whose: test/core/resolve/addresses.
it.each([
  ["sign-in/social", "callbackURL", "INVALID_CALLBACK_URL"],
  ["sign-in/social", "errorCallbackURL", "INVALID_ERROR_CALLBACK_URL"],
  ["sign-in/social", "newUserCallbackURL", "INVALID_NEW_USER_CALLBACK_URL"],
  ["sign-in/email", "callbackURL", "INVALID_CALLBACK_URL"],
  ["sign-up/email", "callbackURL", "INVALID_CALLBACK_URL"],
] as const)(
  "threat: open redirect: /tenant/%s with a hostile %s",
  async (endpoint, field, code) => {
    await shared.as("jane", "acme");
    const post = (path: string, value: string) =>
      shared.at("acme").post(path, { ...bodies[endpoint](), [field]: value });
    await shared.unchanged(async () => {
      for (const value of ["//evil.example", "/\\evil.example", "javascript:alert(1)"]) {
        const ours = await post(`/tenant/${endpoint}`, value);
        expect([value, ...outcome(ours), ours.location]).toEqual([value, 403, code, null]);
        expect(ours.data).toEqual((await post(`/${endpoint}`, value)).data);
      }
    });
    for (const value of ["/dashboard?tab=1#top", "https://app.example/dashboard"]) {
      expect((await post(`/tenant/${endpoint}`, value)).status).toBe(200);
    }
  },
);
