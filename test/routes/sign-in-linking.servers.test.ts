import { describe, expect, it } from "vitest";
import { databases } from "../support/database";
import { createSocialWorld, type SocialWorld, type SocialWorldOptions } from "../support/social";
import { PLACES, type Place } from "../support/world";

type Linking = NonNullable<NonNullable<SocialWorldOptions["auth"]>["account"]>["accountLinking"];

const ALICE = "alice@example.com";
const NOT_LINKED = "/failed?error=account_not_linked";

/** Somebody with Alice's e-mail and a password at some places. */
async function open(options: SocialWorldOptions, at: readonly Place[], isVerified = true) {
  const world = await createSocialWorld(options);
  const ids: string[] = [];
  for (const place of at) ids.push((await world.signUp(place, ALICE)).id);
  const { quote, query } = world.database;
  const verified = `${quote("emailVerified")} = ${isVerified}`;
  await query(`update ${quote("user")} set ${verified}`);
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

describe.each(databases)("linking on %s", (database) => {
  it("threat: link onto an unverified local user: not linked, not taken over", async () => {
    const { world } = await open({ database }, ["acme"], false);
    const users = await world.rowsIn("acme", "user");
    expect(await visit(world, "acme")).toEqual({ location: NOT_LINKED, who: null });
    expect(await linkedUsers(world)).toEqual([]);
    expect(await world.rowsIn("acme", "user")).toEqual(users);
  });

  it("threat: identity collision: one account at three places is three users, each time", async () => {
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

describe("account linking options inside a tenant", () => {
  it.each<[string, Linking, here: boolean, atProvider: boolean, linked: boolean]>([
    ["a provider that has not verified the e-mail is not believed", {}, true, false, false],
    ["a trusted provider is", { trustedProviders: ["gitlab"] }, true, false, true],
    ["by a function", { trustedProviders: async () => ["gitlab"] }, true, false, true],
    ["another one changes nothing", { trustedProviders: ["google"] }, true, false, false],
    ["threat: nor is an unverified user", { trustedProviders: ["gitlab"] }, false, true, false],
    ["enabled: false links nobody", { enabled: false }, true, true, false],
    ["nor disableImplicitLinking", { disableImplicitLinking: true }, true, true, false],
  ])("%s", async (_, accountLinking, here, atProvider, linked) => {
    const { world, ids } = await open({ auth: { account: { accountLinking } } }, ["acme"], here);
    await world.configure("acme");
    world.idp.addPerson("alice", { email_verified: atProvider });
    const { location } = await visit(world, "acme");
    expect(location).toBe(linked ? "/welcome" : NOT_LINKED);
    expect(await linkedUsers(world)).toEqual(linked ? ids : []);
    expect(await world.rows("user")).toBe(1);
  });
});

/* Accounts that are linked by /link-social: test/flows/accounts.test.ts. */
