import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { createWorld, EMAIL, expectRefused, outcome, shareWorld } from "../support/world";

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const jane = { name: "Jane", email: EMAIL, password: PASSWORD };

const lastSlash = /\/(?=[^/]*$)/;

/** Other ways to write a path. Some are the same URL after all, most are no path of ours. */
const tricks = (path: string) => [
  path,
  `/${path}`,
  `//${path}`,
  path.replace("/tenant/", "/tenant//"),
  path.replace(lastSlash, "//"),
  `${path}/`,
  `${path}//`,
  `${path}/.`,
  `${path}/x/..`,
  `${path}/%2e%2e${path.slice(path.lastIndexOf("/"))}`,
  `/.${path}`,
  `/ok/..${path}`,
  `/ok/%2e%2e${path}`,
  `/ok/..%2f${path.slice(1)}`,
  path.replace("/tenant/", "/tenant%2F"),
  path.replace("/tenant/", "/tenant%5C"),
  path.replace("/tenant/", "/tenant\\"),
  path.replace(lastSlash, "%2f"),
  path.replace("/tenant/", "/%74enant/"),
  path.replace("/tenant/", "/tenant%252F"),
  path.toUpperCase(),
  path.replace("tenant", "Tenant"),
  `${path}%20`,
  `${path}%00`,
  `${path};a=b`,
  `${path}.json`,
  `/api/auth${path}`,
  `/callback${path}`,
];

describe.each([false, true])("threat: path tricks, with skipTrailingSlashes: %s", (skips) => {
  const auth = { advanced: { disableOriginCheck: false, skipTrailingSlashes: skips } };
  const world = shareWorld({ auth });

  it.each([
    ["POST", "/tenant/create"],
    ["GET", "/tenant/get"],
    ["GET", "/tenant/list"],
    ["POST", "/tenant/update"],
    ["POST", "/tenant/delete"],
    ["POST", "/tenant/oauth-config/register"],
    ["GET", "/tenant/oauth-config/list"],
    ["POST", "/tenant/oauth-config/update"],
    ["POST", "/tenant/oauth-config/check"],
    ["POST", "/tenant/oauth-config/delete"],
  ])("%s %s stays closed", async (method, path) => {
    const tenantId = world.ids.acme;
    const config = { tenantId, providerId: "google" };
    const credentials = { clientId: "id", clientSecret: "secret" };
    await world.api.registerTenantOAuthConfig({ body: { ...config, ...credentials } });
    const ordinary = await world.as("jane", "platform");
    const body = path.endsWith("oauth-config/update")
      ? { ...config, enabled: false }
      : { ...config, ...credentials, clientId: "changed", name: "New", slug: "new-one" };
    const query = { id: tenantId, tenantId };
    const request = method === "GET" ? { method, query } : { method, body };
    await world.unchanged(async () => {
      for (const trick of tricks(path)) {
        const nobody = await world.at(null).send(trick, request);
        expect([trick, [401, 404].includes(nobody.status)]).toEqual([trick, true]);
        const user = await ordinary.fork().send(trick, request);
        expect([trick, [403, 404].includes(user.status)]).toEqual([trick, true]);
        expect(JSON.stringify([nobody.data, user.data])).not.toMatch(/acme/i);
      }
    });
  });

  const R12 = ["/sign-up/email", "/sign-in/email"];
  it.each([SIGN_UP, SIGN_IN, ...R12])(
    "disabledPaths: %s closes it, however written",
    async (path) => {
      const closed = await createWorld({ auth: { ...auth, disabledPaths: [path] } });
      const tenantId = closed.ids.acme;
      await closed.api.signUpEmailTenant({ body: { ...jane, tenantId } });
      const [ours = "", open = ""] = path.includes("sign-up")
        ? [SIGN_UP, SIGN_IN]
        : [SIGN_IN, SIGN_UP];
      const post = (endpoint: string, isSignUp: boolean) =>
        closed
          .at(null)
          .post(endpoint, { ...jane, email: isSignUp ? "new@example.com" : EMAIL, tenantId });
      await closed.unchanged(async () => {
        for (const trick of tricks(ours)) {
          expect([trick, (await post(trick, ours === SIGN_UP)).status]).toEqual([trick, 404]);
        }
      });
      expect((await post(open, open === SIGN_UP)).status).toBe(200);
    },
  );

  it("a sign-in by any spelling is in the tenant it names, or is none", async () => {
    await world.janes();
    const tenantId = world.ids.acme;
    for (const trick of tricks(SIGN_IN)) {
      const answer = await world.at(null).post(trick, { ...jane, tenantId });
      if (answer.status === 200) expect(answer.data.user).toMatchObject({ tenantId });
      else expect([trick, answer.status]).toEqual([trick, 404]);
    }
  });

  it("R2: better-auth's own paths are in the tenant of the header, however written", async () => {
    const { email } = await world.as("only-here", "platform");
    await world.unchanged(async () => {
      for (const trick of tricks("/sign-in/email")) {
        const { status } = await world.at("acme").post(trick, { ...jane, email });
        expect([trick, [401, 404].includes(status)]).toEqual([trick, true]);
      }
    });
  });

  it("a trailing slash is the same guarded endpoint with skipTrailingSlashes, else 404", async () => {
    await world.as("jane", "acme");
    const body = { ...jane, tenantId: world.ids.acme };
    const signIn = await world.at(null).post(`${SIGN_IN}/`, body);
    const list = await world.at(null).get("/tenant/list/");
    expect([signIn.status, list.status]).toEqual(skips ? [200, 401] : [404, 404]);
  });
});

describe("requests forged by another site", () => {
  const EVIL = { origin: "https://evil.example" };
  const NAVIGATION = { ...EVIL, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
  const world = shareWorld();

  it.each([SIGN_UP, SIGN_IN])("%s is no way in, with a cookie or without", async (path) => {
    const visitor = await world.as("visitor", "acme");
    const { email } = await world.as("jane", "acme");
    const body = {
      ...jane,
      email: path === SIGN_IN ? email : "new@example.com",
      tenantId: world.ids.acme,
    };
    await world.unchanged(async () => {
      for (const [browser, code] of [
        [visitor.fork(EVIL), "INVALID_ORIGIN"],
        [visitor.fork({ origin: "null" }), "MISSING_OR_NULL_ORIGIN"],
        [world.browser(EVIL), "INVALID_ORIGIN"],
        [world.browser(NAVIGATION), "CROSS_SITE_NAVIGATION_LOGIN_BLOCKED"],
      ] as const) {
        expectRefused(await browser.post(path, body), 403, code);
      }
    });
  });

  it("an operator's cookie from a foreign origin manages nothing", async () => {
    const operator = await world.operator();
    const tenantId = world.ids.acme;
    const config = { tenantId, providerId: "google" };
    const requests = {
      "/tenant/create": { name: "Evil", slug: "evil" },
      "/tenant/update": { tenantId, name: "Evil" },
      "/tenant/delete": { tenantId },
      "/tenant/oauth-config/register": { ...config, clientId: "evil", clientSecret: "evil" },
      "/tenant/oauth-config/update": { ...config, clientSecret: "evil" },
      "/tenant/oauth-config/check": config,
      "/tenant/oauth-config/delete": config,
    };
    await world.unchanged(async () => {
      for (const [path, body] of Object.entries(requests)) {
        const answer = await operator.fork(EVIL).post(path, body);
        expect([path, ...outcome(answer)]).toEqual([path, 403, "INVALID_ORIGIN"]);
      }
    });
  });

  it("control: an origin that the application trusts may", async () => {
    const trusting = await createWorld({ auth: { trustedOrigins: [EVIL.origin] } });
    const visitor = await trusting.as("visitor", "acme");
    const body = { ...jane, tenantId: trusting.ids.acme };
    expect((await visitor.fork(EVIL).post(SIGN_UP, body)).status).toBe(200);
  });
});
