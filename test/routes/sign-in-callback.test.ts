import { APIError } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { BASE_URL } from "../support/instance";
import {
  createSocialWorld,
  type SocialWorld,
  STATE_STRATEGIES,
  shareSocialWorld,
} from "../support/social";
import { queryOf } from "../support/world";

const PATH = "/tenant/callback/gitlab";
const FORM = { headers: { "content-type": "application/x-www-form-urlencoded" } };
const SAID_NO = { error: "access_denied", error_description: "Alice said no" };

describe.each(STATE_STRATEGIES)("the callback, state in the %s", (stateStrategy) => {
  const shared = shareSocialWorld({
    stateStrategy,
    auth: {
      databaseHooks: {
        user: {
          create: {
            before: async ({ email }) => {
              if (email !== "eve@example.com") return;
              throw new APIError("FORBIDDEN", { code: "NOT_INVITED", message: "Not invited" });
            },
          },
        },
      },
    },
  });

  /** A tenant with credentials of its own, where nobody has been. */
  async function settle(world: SocialWorld = shared) {
    const { id } = await world.createTenant();
    await world.configure(id);
    const people = async () => (await world.everythingIn(id)).user?.length;
    return { id, browser: world.browser(), exchanges: world.idp.exchanges().length, people };
  }

  /** What a provider sends when the person says no. */
  async function refusal(errorCallbackURL: string | undefined, world: SocialWorld = shared) {
    const { id, browser, exchanges, people } = await settle(world);
    const { data } = await world.start(browser, id, { errorCallbackURL });
    const { state = "" } = queryOf(data.url);
    const back = await browser.get(PATH, { query: { state, ...SAID_NO } });
    expect(back.status).toBe(302);
    expect(world.idp.exchanges()).toHaveLength(exchanges);
    expect(await people()).toBe(0);
    return [back.location?.split("?")[0], queryOf(back.location)];
  }

  it("signs in, the session carries the tenant, and no state is left in the browser", async () => {
    const { id, browser } = await settle();
    const back = await shared.signInAtProvider(browser, id);
    expect([back.status, back.location]).toEqual([302, "/welcome"]);
    expect(await shared.whoIs(browser, id)).toMatchObject({ tenantId: id });
    expect(await shared.whoIs(browser.fork({}))).toMatchObject({ tenantId: id });
    expect([...browser.cookies.keys()].filter((name) => /state/.test(name))).toEqual([]);
  });

  it("a form_post comes without cookies and goes on as a GET on the same path", async () => {
    const { id, browser, exchanges } = await settle();
    const params = queryOf(await shared.authorize(browser, id));
    const posted = await shared
      .browser({ origin: shared.idp.issuer })
      .post(PATH, `${new URLSearchParams(params)}`, FORM);
    expect(posted.status).toBe(302);
    expect(posted.location?.startsWith(`${BASE_URL}${PATH}?`)).toBe(true);
    expect(queryOf(posted.location)).toEqual(params);
    expect(shared.idp.exchanges()).toHaveLength(exchanges);
    expect((await browser.get(posted.location ?? "")).location).toBe("/welcome");
    expect(await shared.whoIs(browser, id)).toMatchObject({ tenantId: id });
  });

  it("a form_post cannot leave its path", async () => {
    const path = "/tenant/callback/..%2f..%2f..%2fevil";
    const { location } = await shared.browser().post(path, "code=1", FORM);
    expect(new URL(location ?? "").href.startsWith(`${BASE_URL}/tenant/callback/`)).toBe(true);
  });

  it("a refusal goes to errorCallbackURL, or to better-auth's error page", async () => {
    const page = "/failed?from=gitlab";
    expect(await refusal(page)).toEqual(["/failed", { from: "gitlab", ...SAID_NO }]);
    expect(await refusal(undefined)).toEqual([`${BASE_URL}/error`, SAID_NO]);
  });

  it("a refusal goes to the application's errorURL if it has one", async () => {
    const auth = { onAPIError: { errorURL: "/oops" } };
    const world = await createSocialWorld({ stateStrategy, auth });
    expect(await refusal(undefined, world)).toEqual(["/oops", SAID_NO]);
  });

  it.each([
    ["no code", { code: "" }, "no_code", 0],
    ["a code of somebody else's making", { code: "made-up" }, "invalid_code", 1],
  ])("%s is an error", async (_, change, error, asked) => {
    const { id, browser, exchanges, people } = await settle();
    const query = { ...queryOf(await shared.authorize(browser, id)), ...change };
    expect((await browser.get(PATH, { query })).location).toBe(`/failed?error=${error}`);
    expect(shared.idp.exchanges()).toHaveLength(exchanges + asked);
    expect(await people()).toBe(0);
  });

  it.each([
    ["somebody the provider has blocked", "mallory", { error: "unable_to_get_user_info" }],
    [
      "somebody the application's hook refuses",
      "eve",
      { error: "NOT_INVITED", error_description: "Not invited" },
    ],
  ])("%s does not get in, and hears why", async (_, username, error) => {
    const { id, browser, people } = await settle();
    shared.idp.addPerson(username, { state: username === "mallory" ? "blocked" : "active" });
    const back = await shared.signInAtProvider(browser, id, {}, username);
    expect(queryOf(back.location)).toEqual(error);
    expect(await shared.whoIs(browser, id)).toBeNull();
    expect(await people()).toBe(0);
  });
});
