import { customSession } from "better-auth/plugins";
import { expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { PLACES, shareWorld } from "../support/world";

const plugins = [customSession(async ({ user }) => ({ user, ranIn: getTenantId() }))];
const world = shareWorld({ plugins });

it.each(PLACES)("customSession runs in the tenant of the session on %s", async (place) => {
  const jane = await world.as("jane", place);
  const answer = { user: expect.objectContaining({ id: jane.id }), ranIn: world.ids[place] };
  // R4: named or not. R5: it is none elsewhere, and its cookie stays.
  const elsewhere = world.at(place === "acme" ? "globex" : "acme", jane);
  expect((await jane.get("/get-session")).data).toEqual(answer);
  expect((await elsewhere.get("/get-session")).data).toBe(null);
  expect((await world.at("platform", elsewhere).get("/get-session")).data).toEqual(answer);
});
