import { describe, expect, it } from "vitest";
import { databases } from "../support/database";
import { ACTORS, outcome, PLACES, passwordOf, shareWorld } from "../support/world";

describe.each(databases)("better-auth's own sign-up and sign-in on %s", (database) => {
  const world = shareWorld({}, database);

  it("R3: two tenants and the platform have users with the same email and different passwords", async () => {
    const people = await world.namesakes();
    for (const place of PLACES) {
      const body = { name: "Again", email: people.email, password: "another password" };
      const again = await world.unchanged(() => world.at(place).post("/sign-up/email", body));
      expect(outcome(again)).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);
      for (const other of PLACES) {
        if (other === place) await people.expectSignsIn(place);
        else await people.expectLockedOut(other, passwordOf(place));
      }
    }
  });

  it.each(ACTORS)("R4: sign-up at %s by %s creates the user there", async (place, way) => {
    const people = await world.namesakes();
    const body = { name: "New", email: `new-${people.email}`, password: "another password" };
    const answer = await world.touchesOnly(place, () =>
      people.window(place, way).post("/sign-up/email", body),
    );
    expect(answer.data.user).toMatchObject({ email: body.email, tenantId: world.ids[place] });
  });
});
