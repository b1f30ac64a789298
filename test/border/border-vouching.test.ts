import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { expect, it } from "vitest";
import * as z from "zod";
import { outcome, PLACES, shareWorld } from "../support/world";

/** A plugin that gives a session to whomever it is told to: what a careless one amounts to. */
const careless = {
  id: "careless",
  endpoints: {
    careless: createAuthEndpoint(
      "/careless/session",
      { method: "POST", body: z.object({ userId: z.string(), tenantId: z.string().optional() }) },
      async ({ body: { userId, tenantId }, context, json }) =>
        json(await context.internalAdapter.createSession(userId, false, { tenantId }, true)),
    ),
  },
} satisfies BetterAuthPlugin;

const world = shareWorld({ plugins: [careless] });
const NOT_IN_TENANT = [403, "USER_NOT_IN_TENANT"];

it.each(PLACES)(
  "R8: on %s, nobody of elsewhere gets a session, whichever plugin asks",
  async (place) => {
    const janes = await world.janes();
    for (const home of PLACES) {
      const body = { userId: janes[home].id, tenantId: world.ids[home] ?? undefined };
      const ask = () => world.at(place).post("/careless/session", body);
      if (home === place) {
        const { status, data } = await ask();
        expect([status, data.tenantId]).toEqual([200, world.ids[place]]);
      } else {
        await world.unchanged(async () =>
          expect(outcome(await ask()), home).toEqual(NOT_IN_TENANT),
        );
      }
    }
  },
);

it("R8: nor does a session of one tenant help to make one of another", async () => {
  const { acme, globex } = await world.janes();
  const tenantId = world.ids.globex;
  await world.unchanged(async () => {
    for (const [place, userId] of [
      ["platform", globex.id],
      ["globex", acme.id],
    ] as const) {
      const window = world.at(place, acme);
      const answer = await window.post("/careless/session", { userId, tenantId });
      expect(outcome(answer)).toEqual(NOT_IN_TENANT);
    }
  });
});
