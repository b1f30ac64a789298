import { customSession } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createPlaces, PLACES } from "./places";

interface Custom {
  user: { id: string };
  ranIn: string | null;
}

const createCustomPlaces = () =>
  createPlaces([customSession(async ({ user }) => ({ user, ranIn: getTenantId() }))]);

describe("customSession", () => {
  it("R4: runs in the tenant of the session, named or not", async () => {
    const { signUp, ids } = await createCustomPlaces();
    for (const place of PLACES) {
      const { browser, user } = await signUp(place);
      for (const window of [browser, browser.fork({})]) {
        const { data } = await window.get<Custom>("/get-session");
        expect([data.user.id, data.ranIn]).toEqual([user.id, ids[place]]);
      }
    }
  });

  it("R5: a session of A is none at B, and its cookie stays", async () => {
    const { signUp, naming, ids } = await createCustomPlaces();
    const { browser } = await signUp("a");
    const elsewhere = browser.fork(naming("b"));
    expect((await elsewhere.get("/get-session")).data).toBe(null);
    const back = await elsewhere.fork(naming("a")).get<Custom>("/get-session");
    expect(back.data.ranIn).toBe(ids.a);
  });
});
