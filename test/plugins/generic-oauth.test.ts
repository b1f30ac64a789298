import { genericOAuth } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { queryOf } from "../support/social";
import { createPlaces, PLACES, type Place } from "./places";

async function createGenericPlaces(providerId = "corp") {
  const idp = await startIdentityProvider();
  idp.registerClient("corp-client", "corp-secret");
  idp.addPerson("alice");
  const places = await createPlaces([
    genericOAuth({
      config: [
        {
          providerId,
          clientId: "corp-client",
          clientSecret: "corp-secret",
          authorizationUrl: `${idp.issuer}/oauth/authorize`,
          tokenUrl: `${idp.issuer}/oauth/token`,
          userInfoUrl: `${idp.issuer}/api/v4/user`,
          accountSubject: ({ profile }) => String(profile.id),
        },
      ],
    }),
  ]);
  /** Starts at a place and agrees at the provider; the URL that leads back. */
  async function authorize(browser: Browser, path = "/sign-in/social") {
    const body = { provider: providerId, callbackURL: "/in", errorCallbackURL: "/failed" };
    const { data, status } = await browser.post<{ url: string }>(path, body);
    expect(status).toBe(200);
    return idp.authorize(data.url, "alice");
  }
  return { ...places, idp, authorize };
}

const pathOf = (url: string) => new URL(url).pathname.replace("/api/auth", "");

describe("genericOAuth", () => {
  it.each(["/sign-in/social", "/tenant/sign-in/social"])(
    "%s from inside a tenant ends in that tenant, by the tenants' callback",
    async (path) => {
      const { at, authorize, whoIs, ids, rows } = await createGenericPlaces();
      const browser = at("a");
      const back = await authorize(browser, path);
      expect(pathOf(back)).toBe("/tenant/callback/corp");
      const answer = await browser.fork({}).get(back);
      expect(answer.location).toBe("/in");
      browser.keepCookies(answer.headers);
      expect(await whoIs(browser, "a")).toMatchObject({
        email: "alice@example.com",
        tenantId: ids.a,
      });
      const account = '"providerId" = \'corp\' and "tenantId" = ?';
      expect(await rows("account", account, [ids.a])).toBe(1);
    },
  );

  it.each(["slack", "zoom"])("may have the name of a built-in provider: %s", async (name) => {
    const { at, authorize, whoIs, ids } = await createGenericPlaces(name);
    const browser = at("a");
    const back = await authorize(browser);
    expect(pathOf(back)).toBe(`/tenant/callback/${name}`);
    expect((await browser.get(back)).location).toBe("/in");
    expect(await whoIs(browser, "a")).toMatchObject({ tenantId: ids.a });
  });

  it("threat: the same provider account is three people in three places", async () => {
    const { at, authorize, whoIs, ids } = await createGenericPlaces();
    const people = new Map<string, Place>();
    for (const place of PLACES) {
      const browser = at(place);
      const back = await authorize(browser);
      if (place === "platform") expect(pathOf(back)).toBe("/callback/corp");
      expect((await browser.get(back)).location).toBe("/in");
      const person = await whoIs(browser, place);
      expect(person?.tenantId).toBe(ids[place]);
      people.set(person?.id ?? "", place);
    }
    expect(people.size).toBe(3);
  });

  it("threat: a state of A is refused at better-auth's own callback", async () => {
    const { at, authorize, rows, idp } = await createGenericPlaces();
    const browser = at("a");
    const back = await authorize(browser);
    const refused = await browser.get(back.replace("/tenant/callback/", "/callback/"));
    expect(queryOf(refused.location)).toHaveProperty("error");
    expect(idp.exchanges()).toEqual([]);
    expect(await rows("user")).toBe(0);
  });

  it("cannot be configured by a tenant: it is not built in", async () => {
    const { instance, ids } = await createGenericPlaces();
    const { browser } = await instance.operator();
    const answer = await browser.post("/tenant/oauth-config/register", {
      tenantId: ids.a,
      providerId: "corp",
      clientId: "x",
      clientSecret: "y",
    });
    expect([answer.status, answer.code]).toEqual([400, "UNSUPPORTED_PROVIDER"]);
  });
});
