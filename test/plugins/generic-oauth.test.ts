import { genericOAuth } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { createWorld, outcome, PLACES, queryOf } from "../support/world";

async function createGenericWorld(...providerIds: string[]) {
  const idp = await startIdentityProvider();
  idp.registerClient("corp-client", "corp-secret");
  idp.addPerson("alice");
  const config = providerIds.map((providerId) => ({
    providerId,
    clientId: "corp-client",
    clientSecret: "corp-secret",
    authorizationUrl: `${idp.issuer}/oauth/authorize`,
    tokenUrl: `${idp.issuer}/oauth/token`,
    userInfoUrl: `${idp.issuer}/api/v4/user`,
    accountSubject: ({ profile }: { profile: { id?: unknown } }) => String(profile.id),
  }));
  const world = await createWorld({ plugins: [genericOAuth({ config })] });
  /** Starts at a place and agrees at the provider; the address that leads back, and its path. */
  async function authorize(browser: Browser, provider = "corp", path = "/sign-in/social") {
    const body = { provider, callbackURL: "/in", errorCallbackURL: "/failed" };
    const { data } = await browser.post<{ url: string }>(path, body);
    const back = await idp.authorize(data.url, "alice");
    return { back, path: new URL(back).pathname.replace("/api/auth", "") };
  }
  return { ...world, idp, authorize };
}

describe("genericOAuth", () => {
  it("threat: the same provider account is three people in three places, each time", async () => {
    const world = await createGenericWorld("corp");
    for (const path of ["/sign-in/social", "/tenant/sign-in/social"]) {
      for (const place of PLACES) {
        if (place === "platform" && path.startsWith("/tenant")) continue;
        const started = world.at(place);
        const authorized = await world.authorize(started, "corp", path);
        const tenants = place === "platform" ? "" : "/tenant";
        expect(authorized.path).toBe(`${tenants}/callback/corp`);
        // The way back names no tenant.
        const browser = world.at("platform", started);
        expect((await browser.get(authorized.back)).location).toBe("/in");
        const person = { email: "alice@example.com", tenantId: world.ids[place] };
        expect(await world.whoIs(browser, place)).toMatchObject(person);
        expect(await world.rowsIn(place, "account")).toMatchObject([{ providerId: "corp" }]);
      }
    }
    expect(await world.rows("user")).toBe(3);
  });

  it("may have the name of a built-in provider", async () => {
    const world = await createGenericWorld("slack", "zoom");
    for (const [place, name] of [
      ["acme", "slack"],
      ["globex", "zoom"],
    ] as const) {
      const browser = world.at(place);
      const { back, path } = await world.authorize(browser, name);
      expect(path).toBe(`/tenant/callback/${name}`);
      expect((await browser.get(back)).location).toBe("/in");
      expect(await world.whoIs(browser)).toMatchObject({ tenantId: world.ids[place] });
    }
  });

  it("threat: a state of a tenant is refused at better-auth's own callback", async () => {
    const world = await createGenericWorld("corp");
    const browser = world.at("acme");
    const { back } = await world.authorize(browser);
    const refused = await browser.get(back.replace("/tenant/callback/", "/callback/"));
    expect(queryOf(refused.location)).toHaveProperty("error");
    expect(world.idp.exchanges()).toEqual([]);
    expect(await world.rows("user")).toBe(0);
  });

  it("cannot be configured by a tenant: it is not built in", async () => {
    const world = await createGenericWorld("corp");
    const operator = await world.operator();
    const config = { providerId: "corp", clientId: "x", clientSecret: "y" };
    const body = { tenantId: world.ids.acme, ...config };
    const answer = await operator.post("/tenant/oauth-config/register", body);
    expect(outcome(answer)).toEqual([400, "UNSUPPORTED_PROVIDER"]);
  });
});
