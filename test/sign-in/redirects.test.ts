import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { createSocialInstance } from "../support/social";

/** Each leads, or could lead, to a place that the application does not trust. */
const EVIL = [
  "//evil.example",
  "///evil.example",
  "/\\evil.example",
  "\\\\evil.example",
  "/\\/evil.example",
  "/%2Fevil.example",
  "/%2f/evil.example",
  "/%5Cevil.example",
  "%2F%2Fevil.example",
  "/\t/evil.example",
  "/\n/evil.example",
  " //evil.example",
  "evil.example",
  "https://evil.example",
  "HTTPS://EVIL.EXAMPLE",
  "https:evil.example",
  "javascript:alert(1)",
  "JaVaScRiPt:alert(1)",
  "data:text/html,evil",
  "http://localhost:3000.evil.example",
  "http://localhost:30001",
  "http://localhost:3000@evil.example",
  "https://app.example@evil.example",
  "https://app.example.evil.example",
  "https://evil.example/https://app.example",
  "https://evil.example?x=https://app.example",
  "https://a.b.tenants.example.evil.example",
];

const TRUSTED = [
  "/",
  "/dashboard?tab=1#top",
  "/dashboard?next=%2Fsettings",
  "http://localhost:3000/dashboard",
  "https://app.example/dashboard",
  "https://a.tenants.example/dashboard",
];

const TYPES = [["https://evil.example"], { href: "https://evil.example" }, 1];

async function createApp() {
  const app = await createSocialInstance({
    auth: { trustedOrigins: ["https://app.example", "https://*.tenants.example"] },
  });
  const tenant = await app.createTenant();
  for (const tenantId of [null, tenant.id]) await app.signUp(tenantId, "alice@example.com");
  let count = 0;
  const bodies = {
    "sign-in/social": () => ({ provider: "gitlab" }),
    "sign-in/email": () => ({ email: "alice@example.com", password: PASSWORD }),
    "sign-up/email": () => ({
      name: "New",
      email: `new-${++count}@example.com`,
      password: PASSWORD,
    }),
  };

  return {
    app,
    /** The same request to our endpoint and to better-auth's. */
    async both(endpoint: keyof typeof bodies, changes: Record<string, unknown>) {
      const post = (path: string, more: Record<string, unknown>) =>
        app.browser().post<{ url?: string }>(path, { ...bodies[endpoint](), ...more });
      return {
        ours: await post(`/tenant/${endpoint}`, { tenantId: tenant.id, ...changes }),
        theirs: await post(`/${endpoint}`, changes),
      };
    },
    async written() {
      const tables = ["user", "session", "verification"];
      return Promise.all(tables.map((table) => app.rows(table)));
    },
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
    const { both, written } = await createApp();
    const before = await written();
    for (const value of EVIL) {
      const { ours, theirs } = await both(endpoint, { [field]: value });
      expect([value, ours.status, ours.data]).toEqual([value, theirs.status, theirs.data]);
      expect([value, ours.status, ours.code]).toEqual([value, 403, code]);
      expect(ours.location).toBeNull();
      expect(ours.headers.getSetCookie()).toEqual([]);
    }
    expect(await written()).toEqual(before);
  });

  it("refuses what is no text", async () => {
    const { both, written } = await createApp();
    const before = await written();
    for (const value of TYPES) {
      const { ours, theirs } = await both(endpoint, { [field]: value });
      expect([value, ours.status, ours.data]).toEqual([value, theirs.status, theirs.data]);
      expect([value, ours.status]).toEqual([value, 400]);
    }
    expect(await written()).toEqual(before);
  });

  it("lets pass what is trusted", async () => {
    const { both } = await createApp();
    for (const value of TRUSTED) {
      const { ours, theirs } = await both(endpoint, { [field]: value });
      expect([value, ours.status]).toEqual([value, 200]);
      expect([value, theirs.status]).toEqual([value, 200]);
      if (endpoint === "sign-in/email") {
        expect([ours.location, ours.data.url]).toEqual([value, value]);
        expect([theirs.location, theirs.data.url]).toEqual([value, value]);
      }
    }
  });
});

describe("threat: open redirect", () => {
  it("a callbackURL in the query is looked at as well", async () => {
    const { app } = await createApp();
    const tenant = await app.createTenant();
    const body = { provider: "gitlab", tenantId: tenant.id };
    const query = { callbackURL: "//evil.example" };
    const answer = await app.browser().post("/tenant/sign-in/social", body, { query });
    expect([answer.status, answer.code]).toEqual([403, "INVALID_CALLBACK_URL"]);
  });

  it("a trusted address of another origin is where the callback leads to", async () => {
    const { app } = await createApp();
    const tenant = await app.createTenant();
    const url = "https://a.tenants.example/dashboard";
    const failed = "https://app.example/failed";
    const browser = app.browser();
    const back = await app.signIn(browser, tenant.id, { callbackURL: url });
    expect(back.location).toBe(url);
    app.idp.addPerson("bob", { state: "blocked" });
    const refused = await app.signIn(browser, tenant.id, { errorCallbackURL: failed }, "bob");
    expect(refused.location).toBe(`${failed}?error=unable_to_get_user_info`);
  });

  it("nothing in the callback's own query says where it leads to", async () => {
    const { app } = await createApp();
    const tenant = await app.createTenant();
    const browser = app.browser();
    const evil = "https://evil.example";
    const query = {
      callbackURL: evil,
      errorCallbackURL: evil,
      errorURL: evil,
      newUserURL: evil,
      redirectTo: evil,
      iss: evil,
    };
    const back = await browser.get(await app.authorize(browser, tenant.id), { query });
    expect(back.location).toBe("/welcome");
    const failed = await app.browser().get("/tenant/callback/gitlab", { query });
    expect(failed.location).toBe("http://localhost:3000/api/auth/error?error=state_not_found");
  });

  it("a request from a foreign site with cookies is refused", async () => {
    const { app } = await createApp();
    const tenant = await app.createTenant();
    const { browser } = await app.signUp(tenant.id);
    const headers = { origin: "https://evil.example" };
    const body = { provider: "gitlab", tenantId: tenant.id };
    const ours = await browser.post("/tenant/sign-in/social", body, { headers });
    expect([ours.status, ours.code]).toEqual([403, "INVALID_ORIGIN"]);
  });
});
