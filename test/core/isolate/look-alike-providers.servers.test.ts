import { beforeAll, describe, expect, it } from "vitest";
import { createSamlProvider } from "../../../src/testing/makers/saml";
import {
  acsOf,
  createSSOWorld,
  post,
  type SSOWorld,
  samlRegistration,
  samlUnderWay,
} from "../../features/enterprise/world";
import { servers } from "../../support/database";
import { createSocialWorld, type SocialWorld } from "../../support/social";
import { shareMade } from "../../support/world";
import { collate } from "./collations";

/*
 * What an identity provider reports: an email or a subject that looks like another one is another
 * person's.
 */

const PLACES = ["acme", "platform"] as const;
const BOSS = "boss@partner.com";
const ALIKE = ["boss@pártner.com", "bóss@partner.com", "boss@partner.com\u200b"];
const SUBJECTS = ["BOB", "bób", "bob ", "ｂob", "bob\u200b"];
const COLLATIONS = ["utf8mb4_general_ci", "uca1400_ai_ci"];

describe.skipIf(!servers.asked).each(COLLATIONS)("on MariaDB with %s", (collation) => {
  describe("a social provider", () => {
    const world: SocialWorld = shareMade(async (database) => {
      await collate(database, collation);
      return createSocialWorld({ database });
    }, "mysql");
    beforeAll(async () => {
      for (const place of PLACES) {
        const { id } = await world.signUp(place, BOSS);
        await world.write("user", { emailVerified: true }, { id });
      }
    });
    const visit = async (place: "acme" | "platform", name: string) => {
      const browser = world.at(place);
      const { location } = await world.signInAtProvider(browser, place, {}, name);
      return { location, who: await world.whoIs(browser, place) };
    };

    it.each(PLACES)("links no look-alike of a verified email at %s", async (place) => {
      for (const [index, email] of ALIKE.entries()) {
        world.idp.addPerson("mallory", { id: 900 + index, email });
        const before = await world.rowsIn(place, "account");
        const { who } = await visit(place, "mallory");
        // Where the collation does not take it for the boss's, it is a new user's.
        expect(who?.email).not.toBe(BOSS);
        const ofBoss = (await world.rowsIn(place, "user")).find((user) => user.email === BOSS);
        const accounts = (await world.rowsIn(place, "account")).filter(
          (account) => account.userId === ofBoss?.id,
        );
        expect(accounts).toEqual(before.filter((account) => account.userId === ofBoss?.id));
      }
      // The control.
      world.idp.addPerson("boss", { id: 999, email: BOSS.toUpperCase() });
      expect((await visit(place, "boss")).who).toMatchObject({ email: BOSS });
    });

    it.each(PLACES)(
      "tells a refused look-alike so, without an error of the server: %s",
      async (place) => {
        world.idp.addPerson("mallory", { id: 950, email: "boss@pártner.com" });
        const { location, who } = await visit(place, "mallory");
        expect(location).toMatch(/^\/failed\?error=/);
        expect(who).toBe(null);
      },
    );

    it.each(PLACES)("signs no user in by a look-alike of a subject at %s", async (place) => {
      const email = (name: string) => `${name}@example.com`;
      world.idp.addPerson("victim", { id: "bob" as never, email: email("victim") });
      const { who: bob } = await visit(place, "victim");
      expect(bob).toMatchObject({ email: email("victim") });
      for (const [index, subject] of SUBJECTS.entries()) {
        const name = `other-${index}`;
        world.idp.addPerson(name, { id: subject as never, email: email(name) });
        expect((await visit(place, name)).who).toMatchObject({ email: email(name) });
      }
      // The control: the subject alone says who it is.
      world.idp.addPerson("victim", { email: email("moved") });
      expect((await visit(place, "victim")).who).toMatchObject({ id: bob?.id });
    });
  });

  describe("a SAML provider", async () => {
    const idp = await createSamlProvider("https://acme.idp.example");
    const world: SSOWorld = shareMade(async (database) => {
      await collate(database, collation);
      return createSSOWorld({ database, sso: { trustEmailVerified: true } });
    }, "mysql");
    beforeAll(async () => {
      await world.register("acme", samlRegistration("acme-saml", idp));
    });

    async function visit(nameId: string, email: string) {
      const edit = (assertion: string) =>
        assertion.replace(/(<saml:NameID [^>]*>)[^<]*/, `$1${nameId}`);
      const made = await samlUnderWay(world, "acme", "acme-saml", idp, { email }, edit);
      const { location } = await post(made.browser, acsOf("acme-saml"), made.form);
      return { location, who: await world.whoIs(made.browser) };
    }

    it("signs no user in by a look-alike of a NameID", async () => {
      const { who: bob } = await visit("bob", "bob@acme.example");
      expect(bob).toMatchObject({ email: "bob@acme.example" });
      for (const [index, nameId] of SUBJECTS.entries()) {
        const email = `other-${index}@acme.example`;
        const { who, location } = await visit(nameId, email);
        expect([nameId, location, who?.email]).toEqual([nameId, "/welcome", email]);
      }
      // The control.
      expect((await visit("bob", "bob@acme.example")).who).toMatchObject({ id: bob?.id });
    });

    it("signs no user in by a look-alike of an email", async () => {
      const { who: eve } = await visit("eve", "eve@acme.example");
      expect(eve).toMatchObject({ email: "eve@acme.example" });
      const { who, location } = await visit("mallory", "evé@acme.example");
      expect([who, location]).toEqual([null, expect.stringContaining("error=")]);
    });
  });
});
