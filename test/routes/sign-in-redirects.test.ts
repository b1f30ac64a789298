import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { shareSocialWorld } from "../support/social";
import { EMAIL, outcome } from "../support/world";

/** Each leads, or could lead, to a place that the application does not trust. */
const EVIL = [
  ...String.raw`//evil.example ///evil.example /\evil.example \\evil.example /\/evil.example`.split(
    " ",
  ),
  ..."/%2Fevil.example /%2f/evil.example /%5Cevil.example %2F%2Fevil.example".split(" "),
  ..."evil.example https://evil.example HTTPS://EVIL.EXAMPLE https:evil.example".split(" "),
  ..."javascript:alert(1) JaVaScRiPt:alert(1) data:text/html,evil".split(" "),
  ..."http://localhost:3000.evil.example http://localhost:30001".split(" "),
  ..."http://localhost:3000@evil.example https://app.example@evil.example".split(" "),
  ..."https://app.example.evil.example https://evil.example/https://app.example".split(" "),
  "https://evil.example?x=https://app.example",
  "https://a.b.tenants.example.evil.example",
  "/\t/evil.example",
  "/\n/evil.example",
  " //evil.example",
];

const TRUSTED = [
  ..."/ /dashboard?tab=1#top /dashboard?next=%2Fsettings".split(" "),
  ..."http://localhost:3000/dashboard https://app.example/dashboard".split(" "),
  "https://a.tenants.example/dashboard",
];

const NO_TEXT = [["https://evil.example"], { href: "https://evil.example" }, 1];

const world = shareSocialWorld({
  auth: { trustedOrigins: ["https://app.example", "https://*.tenants.example"] },
});

let count = 0;
const bodies = {
  "sign-in/social": () => ({ provider: "gitlab" }),
  "sign-in/email": () => ({ email: EMAIL, password: PASSWORD }),
  "sign-up/email": () => ({ name: "New", email: `${++count}@example.com`, password: PASSWORD }),
};

/** The same request to our endpoint and to better-auth's. */
async function both(endpoint: keyof typeof bodies, change: Record<string, unknown>) {
  const post = (path: string, more: object = {}) =>
    world.browser().post<{ url?: string }>(path, { ...bodies[endpoint](), ...change, ...more });
  return {
    ours: await post(`/tenant/${endpoint}`, { tenantId: world.ids.acme }),
    theirs: await post(`/${endpoint}`),
  };
}

describe.each([
  ["sign-in/social", "callbackURL", "INVALID_CALLBACK_URL"],
  ["sign-in/social", "errorCallbackURL", "INVALID_ERROR_CALLBACK_URL"],
  ["sign-in/social", "newUserCallbackURL", "INVALID_NEW_USER_CALLBACK_URL"],
  ["sign-in/email", "callbackURL", "INVALID_CALLBACK_URL"],
  ["sign-up/email", "callbackURL", "INVALID_CALLBACK_URL"],
] as const)("threat: open redirect: /tenant/%s with %s", (endpoint, field, code) => {
  it("refuses what better-auth refuses, in the same words, and writes nothing", async () => {
    await world.janes();
    await world.unchanged(async () => {
      for (const value of [...EVIL, ...NO_TEXT]) {
        const { ours, theirs } = await both(endpoint, { [field]: value });
        expect([value, ours.status, ours.data]).toEqual([value, theirs.status, theirs.data]);
        const refused = typeof value === "string" ? [403, code] : [400, ours.code];
        expect([value, ...outcome(ours)]).toEqual([value, ...refused]);
        expect(ours.location).toBeNull();
        expect(ours.headers.getSetCookie()).toEqual([]);
      }
    });
  });

  it("lets pass what is trusted", async () => {
    await world.janes();
    for (const value of TRUSTED) {
      for (const answer of Object.values(await both(endpoint, { [field]: value }))) {
        expect([value, answer.status]).toEqual([value, 200]);
        if (endpoint !== "sign-in/email") continue;
        expect([answer.location, answer.data.url]).toEqual([value, value]);
      }
    }
  });
});

describe("threat: open redirect", () => {
  const body = { provider: "gitlab" };

  it("a callbackURL in the query is looked at as well", async () => {
    const query = { callbackURL: "//evil.example" };
    const answer = await world.at("acme").post("/tenant/sign-in/social", body, { query });
    expect(outcome(answer)).toEqual([403, "INVALID_CALLBACK_URL"]);
  });

  it("a trusted address of another origin is where the callback leads to", async () => {
    const url = "https://a.tenants.example/dashboard";
    const failed = "https://app.example/failed";
    const browser = world.browser();
    const back = await world.signInAtProvider(browser, "globex", { callbackURL: url });
    expect(back.location).toBe(url);
    world.idp.addPerson("bob", { state: "blocked" });
    const page = { errorCallbackURL: failed };
    const refused = await world.signInAtProvider(browser, "globex", page, "bob");
    expect(refused.location).toBe(`${failed}?error=unable_to_get_user_info`);
  });

  it("nothing in the callback's own query says where it leads to", async () => {
    const names = "callbackURL errorCallbackURL errorURL newUserURL redirectTo iss".split(" ");
    const query = Object.fromEntries(names.map((name) => [name, "https://evil.example"]));
    const browser = world.browser();
    const back = await browser.get(await world.authorize(browser, "globex"), { query });
    expect(back.location).toBe("/welcome");
    const failed = await world.browser().get("/tenant/callback/gitlab", { query });
    expect(failed.location).toBe("http://localhost:3000/api/auth/error?error=state_not_found");
  });

  it("a request from a foreign site with cookies is refused", async () => {
    const jane = await world.as("jane", "acme");
    const headers = { origin: "https://evil.example" };
    const answer = await jane.post("/tenant/sign-in/social", body, { headers });
    expect(outcome(answer)).toEqual([403, "INVALID_ORIGIN"]);
  });
});
