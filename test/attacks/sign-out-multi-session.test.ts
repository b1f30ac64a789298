import type { BetterAuthOptions } from "better-auth";
import { multiSession } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { CACHES } from "../configurations/checks";
import { createStorage } from "../configurations/storages";
import { createPlaces } from "../plugins/places";

type SessionOptions = BetterAuthOptions["session"];

const STORES: [name: string, session: SessionOptions][] = [["the database", undefined], ...CACHES];

describe.each(["shared", "per-tenant"] as const)("signing out, cookies %s", (sessionCookies) => {
  describe.each(STORES)("with multiSession(), sessions in %s", (_, session) => {
    const create = () =>
      createPlaces([multiSession()], { tenant: { sessionCookies }, auth: { session } });

    it.each(["a", "platform"] as const)("ends the session of %s", async (place) => {
      const { signUp } = await create();
      const { browser } = await signUp(place);
      expect((await browser.post("/sign-out")).status).toBe(200);
      expect((await browser.get("/get-session")).data).toBe(null);
      // better-auth deletes its cookie by a name in lower case, and an id in a name may not be.
      if (sessionCookies === "per-tenant" && place === "a") return;
      expect([...browser.cookies.keys()]).toEqual([]);
    });

    it.each(["a", "platform"] as const)("ends it at %s, with B open as well", async (place) => {
      const { signUp } = await create();
      const other = await signUp("b");
      const { browser } = await signUp(place);
      for (const [name, value] of other.browser.cookies) {
        if (!browser.cookies.has(name)) browser.cookies.set(name, value);
      }
      expect((await browser.post("/sign-out")).status).toBe(200);
      expect((await browser.get("/get-session")).data).toBe(null);
    });
  });
});

describe("signing out with multiSession() and a storage", () => {
  it.each<SessionOptions>([
    {},
    { storeSessionInDatabase: true },
    { storeSessionInDatabase: true, preserveSessionInDatabase: true },
  ])("drops the cookies, with %o", async (session) => {
    const secondaryStorage = createStorage({});
    const { signUp } = await createPlaces([multiSession()], {
      auth: { secondaryStorage, session },
    });
    const { browser } = await signUp("platform");
    expect((await browser.post("/sign-out")).status).toBe(200);
    expect([...browser.cookies.keys()]).toEqual([]);
  });
});
