import { randomBytes } from "node:crypto";
import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { queryOf } from "../support/social";
import { createPlaces, ELSEWHERE, EMAIL, PLACES, type Place } from "./places";

async function createLinkPlaces() {
  const bare: string[] = [];
  const sent: { url: string; token: string; tenantId: string | null }[] = [];
  const places = await createPlaces([
    magicLink({
      generateToken: () => {
        bare.push(randomBytes(16).toString("hex"));
        return bare.at(-1) ?? "";
      },
      sendMagicLink: async ({ url, token }) =>
        void sent.push({ url, token, tenantId: getTenantId() }),
    }),
  ]);
  async function ask(place: Place, email = EMAIL) {
    const answer = await places
      .at(place)
      .post("/sign-in/magic-link", { email, callbackURL: "/in" });
    expect(answer.status).toBe(200);
    const link = sent.at(-1);
    if (!link) throw new Error("nothing was sent");
    expect(link.tenantId).toBe(places.ids[place]);
    return link;
  }
  return { ...places, ask, bare };
}

describe("magicLink", () => {
  it("R6: leads back into its tenant from a browser that names none", async () => {
    const { instance, ask, whoIs, ids, rows } = await createLinkPlaces();
    for (const place of PLACES) {
      const { url } = await ask(place);
      const browser = instance.browser();
      const clicked = await browser.get(url);
      expect(clicked.status).toBe(302);
      expect(new URL(clicked.location ?? "").pathname).toBe("/in");
      expect(queryOf(clicked.location)).not.toHaveProperty("error");
      expect(await whoIs(browser, place)).toEqual(
        expect.objectContaining({ email: EMAIL, tenantId: ids[place] }),
      );
    }
    expect(await rows("user")).toBe(3);
  });

  it("R6: is refused in a request that names the other tenant, and stays good", async () => {
    const { at, instance, ask, unchanged } = await createLinkPlaces();
    const { url } = await ask("a");
    const refused = await unchanged(() => at("b").get(url));
    expect(queryOf(refused.location)).toEqual({ error: "INVALID_TOKEN" });
    expect(refused.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
    expect(queryOf((await instance.browser().get(url)).location)).toEqual({});
  });

  it("R6: does nothing for somebody who strips or alters its seal", async () => {
    const { at, instance, ask, bare, unchanged } = await createLinkPlaces();
    const { token: ofB } = await ask("b");
    const { url, token } = await ask("a");
    const middle = Math.floor(token.length / 2);
    const flipped = token[middle] === "0" ? "1" : "0";
    const forged = [
      // What better-auth has in its table.
      bare.at(-1) ?? "",
      `${token.slice(0, middle)}${flipped}${token.slice(middle + 1)}`,
      `${ofB.slice(0, middle)}${token.slice(middle)}`,
      token.slice(0, -2),
      `${token}00`,
    ];
    expect(token).not.toContain(bare.at(-1));
    for (const place of ELSEWHERE) {
      for (const other of forged) {
        const refused = await unchanged(() => at(place).get(url.replace(token, other)));
        expect(queryOf(refused.location), other).toEqual({ error: "INVALID_TOKEN" });
      }
    }
    expect(queryOf((await instance.browser().get(url)).location)).toEqual({});
  });

  it("a link of the platform is no link in a tenant", async () => {
    const { at, ask, unchanged } = await createLinkPlaces();
    const { url } = await ask("platform");
    const refused = await unchanged(() => at("a").get(url));
    expect(queryOf(refused.location)).toEqual({ error: "INVALID_TOKEN" });
  });
});
