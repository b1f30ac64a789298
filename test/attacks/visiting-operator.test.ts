import { afterEach, describe, expect, it, vi } from "vitest";
import { createAdmin } from "../configurations/checks";
import { createStorage } from "../configurations/storages";
import { createPlaces, type Place } from "../plugins/places";
import { PASSWORD } from "../support/instance";

afterEach(() => void vi.useRealTimers());

function tenMinutesLater() {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 600_000 });
}

/** An operator whose session is prolonged by what they do at a place. */
async function createProlonged(place: Place) {
  const entries = new Map<string, string>();
  const places = await createPlaces([], {
    auth: {
      secondaryStorage: createStorage({}, entries),
      session: { updateAge: 60, expiresIn: 1000 },
    },
  });
  const { browser } = await createAdmin(places, "platform");
  tenMinutesLater();
  const visit = browser.fork(places.naming(place));
  expect((await visit.get("/admin/list-users")).status).toBe(200);
  return { ...places, entries, browser };
}

describe("an operator's session that is prolonged", () => {
  it.each(["platform", "a"] as const)("at %s ends with revoke-other-sessions", async (place) => {
    const { browser, at, naming } = await createProlonged(place);
    // Past the old end, before the new one.
    tenMinutesLater();
    const second = at("platform");
    const body = { email: "admin-platform@example.com", password: PASSWORD };
    await second.post("/sign-in/email", body);
    expect((await second.post("/revoke-other-sessions")).status).toBe(200);
    expect((await browser.get("/get-session")).data).toBe(null);
    expect((await browser.fork(naming("a")).get("/admin/list-users")).status).toBe(401);
  });

  it("R10: on a visit to A is not kept among what is A's", async () => {
    const { instance, ids, entries } = await createProlonged("a");
    const tenantId = ids.a ?? "";
    await instance.api.deleteTenant({ body: { tenantId } });
    expect([...entries.keys()].filter((key) => key.includes(tenantId))).toEqual([]);
  });
});
