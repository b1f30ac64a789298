import { beforeAll, describe, expect, it } from "vitest";
import { createSocialWorld, GLOBAL, type SocialWorld, shareSocialWorld } from "../support/social";
import {
  ACTORS,
  ELSEWHERE,
  outcome,
  PLACES,
  type Place,
  queryOf,
  type Way,
} from "../support/world";

/** Acme has credentials of its own at the providers, Globex has others, the platform the application's. */
const credentials: Record<Place, typeof GLOBAL> = {
  acme: { clientId: "client-of-acme", clientSecret: "secret-of-acme" },
  globex: { clientId: "client-of-globex", clientSecret: "secret-of-globex" },
  platform: GLOBAL,
};

async function settle(world: SocialWorld) {
  world.idp.rules.refreshTokens = true;
  for (const place of ["acme", "globex"] as const) await world.configure(place, credentials[place]);
}

const shared = shareSocialWorld();
beforeAll(() => settle(shared));
const PAGE = { provider: "gitlab", callbackURL: "/linked", errorCallbackURL: "/failed" };

/** Three people, and somebody at the provider who has their e-mail. */
async function open(world: SocialWorld = shared) {
  const people = await world.namesakes();
  const username = people.email.replace("@example.com", "");
  world.idp.addPerson(username, { email: people.email });
  // Accounts are linked to people whose address is known to be theirs.
  const verified = `update "user" set "emailVerified" = 1 where email = ?`;
  await world.database.query(verified, [people.email]);

  /** All the way to the provider and back; answers the id of the account. */
  async function link(place: Place, way?: Way) {
    const me = people.window(place, way);
    const { data } = await me.post<{ url: string }>("/link-social", PAGE);
    expect((await me.get(await world.idp.authorize(data.url, username))).location).toBe("/linked");
    const accounts = await people.rowsOf(place, "account");
    const linked = accounts.find(({ providerId }) => providerId === "gitlab");
    return { accountId: String(linked?.id), asked: queryOf(data.url) };
  }

  world.idp.requests.length = 0;
  return { people, username, link };
}

/* Tokens and their refresh, at every kind of provider: test/features/oauth/provider-sign-ins.servers.test.ts. */
describe.each(ACTORS)("accounts at %s, named by %s", (place, way) => {
  const others = PLACES.filter((other) => other !== place);

  it("threat: object ownership: a namesake's account gives nothing, and is not unlinked", async () => {
    const { people, username, link } = await open();
    const accounts = {} as Record<Place, string>;
    for (const one of PLACES) accounts[one] = (await link(one)).accountId;
    shared.idp.requests.length = 0;
    const me = people.window(place, way);
    await shared.unchanged(async () => {
      for (const other of others) {
        // A user id in the request grants nothing either.
        const query = { accountId: accounts[other], userId: people[other].id };
        for (const answer of [
          await me.post("/get-access-token", query),
          await me.post("/refresh-token", query),
          await me.get("/account-info", { query }),
          await me.post("/unlink-account", { accountId: accounts[other] }),
        ]) {
          expect(outcome(answer)).toEqual([400, "ACCOUNT_NOT_FOUND"]);
        }
      }
    });
    expect(shared.idp.requests).toEqual([]);
    const unlink = () => me.post("/unlink-account", { accountId: accounts[place] });
    expect((await shared.touchesOnly(place, unlink)).status).toBe(200);
    expect(await people.rowsOf(place, "account")).toMatchObject([{ providerId: "credential" }]);
    // At the others the account still opens the door.
    for (const other of others) {
      const browser = shared.browser();
      await shared.signInAtProvider(browser, shared.ids[other], {}, username);
      expect((await shared.whoIs(browser, other))?.id).toBe(people[other].id);
    }
  });
});

describe("between tenants", () => {
  it("R5, R6: threat: a link that Acme's person started is not finished elsewhere", async () => {
    const { people, username } = await open();
    const { data } = await people.acme.post<{ url: string }>("/link-social", PAGE);
    const url = await shared.idp.authorize(data.url, username);
    const platforms = url.replace("/tenant/callback/", "/callback/");
    for (const place of ELSEWHERE) {
      const visitor = people.window(place);
      const answer = await shared.unchanged(() => visitor.get(platforms));
      expect(queryOf(answer.location).error).toMatch(/./);
      // Nor is one begun at Acme with a session of elsewhere.
      const abroad = people[place].fork(shared.naming("acme"));
      const refused = await shared.unchanged(() => abroad.post("/link-social", PAGE));
      expect(outcome(refused)).toEqual([401, "UNAUTHORIZED"]);
      expect((await abroad.get("/list-accounts")).status).toBe(401);
    }
  });

  it("a refresh fails when a tenant's credentials are gone, and does not go out with others", async () => {
    const world = await createSocialWorld({ gitlab: false });
    await settle(world);
    const { people, link } = await open(world);
    const { accountId } = await link("acme");
    world.idp.requests.length = 0;
    const body = { tenantId: world.ids.acme, providerId: "gitlab" };
    await world.api.deleteTenantOAuthConfig({ body });
    const refresh = () => people.window("acme").post("/refresh-token", { accountId });
    const answer = await world.unchanged(refresh);
    expect(outcome(answer)).toEqual([400, "PROVIDER_NOT_SUPPORTED"]);
    expect(world.idp.requests).toEqual([]);
  });
});
