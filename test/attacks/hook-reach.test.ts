import { createAuthMiddleware } from "better-auth/api";
import { expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createAdmin } from "../configurations/checks";
import { createPlaces, EMAIL, PLACES } from "../plugins/places";

// An operator's reach is for the endpoint: a hook that says it runs on the platform sees that.
it.each(["/get-session", "/admin/list-users"])(
  "R3: an after hook of %s finds the platform's user by e-mail, for an operator too",
  async (path) => {
    const seen: unknown[] = [];
    const after = createAuthMiddleware(async (ctx) => {
      if (ctx.path !== path) return;
      const found = await ctx.context.internalAdapter.findUserByEmail(EMAIL);
      seen.push({ in: getTenantId(), user: found?.user });
    });
    const places = await createPlaces([], { auth: { hooks: { after } } });
    const operator = await createAdmin(places, "platform");
    for (const place of PLACES) await places.signUp(place);
    seen.length = 0;
    expect((await operator.browser.get(path)).status).toBe(200);
    expect(seen).toEqual([{ in: null, user: expect.objectContaining({ tenantId: null }) }]);
  },
);
