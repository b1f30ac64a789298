import { deviceAuthorization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import { createPlainInstance } from "../support/instance";
import { createWorld, PLACES } from "../support/world";

describe("device codes that collide", () => {
  /** Codes in the order given, and then the last one for ever. */
  function drawing(...codes: string[]) {
    const drawn = [...codes];
    return deviceAuthorization({ generateUserCode: () => drawn.shift() ?? codes.at(-1) ?? "" });
  }
  const ask = async (browser: Browser) => {
    const { status, data } = await browser.post("/device/code", { client_id: "tv" });
    return [status, data.user_code ?? data.error];
  };

  it("better-auth itself draws again, and gives up with a 500", async () => {
    const database = await createDatabase("sqlite");
    const plugin = drawing("SAME", "SAME", "OTHER", "OTHER");
    const { browser } = await createPlainInstance(database, {}, [plugin]);
    expect([await ask(browser()), await ask(browser()), await ask(browser())]).toEqual([
      [200, "SAME"],
      [200, "OTHER"],
      [500, "server_error"],
    ]);
    await database.close();
  });

  it.each(PLACES)(
    "are drawn again and refused as by better-auth, after one of Acme on %s",
    async (place) => {
      const { at } = await createWorld({
        plugins: [drawing("SAME", "SAME", "OTHER", "SAME")],
        tenant: { scopedModels: ["deviceCode"] },
      });
      expect(await ask(at("acme"))).toEqual([200, "SAME"]);
      expect(await ask(at(place))).toEqual([200, "OTHER"]);
      expect(await ask(at(place))).toEqual([500, "server_error"]);
    },
  );
});
