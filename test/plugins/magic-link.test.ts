import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { queryOf } from "../support/social";
import { createPlaces, ELSEWHERE, EMAIL, PLACES, type Place } from "./places";

async function createLinkPlaces() {
  const sent: { url: string; token: string; tenantId: string | null }[] = [];
  const places = await createPlaces([
    magicLink({
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
  return { ...places, ask };
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
    const { at, ask, ids, unchanged } = await createLinkPlaces();
    const { url, token } = await ask("a");
    const bare = token.split("~")[0] ?? "";
    const [, , signature] = token.split("~");
    const other = Buffer.from(ids.b ?? "").toString("base64url");
    for (const forged of [bare, `${bare}~${other}~${signature}`]) {
      for (const place of ELSEWHERE) {
        const refused = await unchanged(() => at(place).get(url.replace(token, forged)));
        expect(queryOf(refused.location)).toEqual({ error: "INVALID_TOKEN" });
      }
    }
  });

  it("a link of the platform is no link in a tenant", async () => {
    const { at, ask, unchanged } = await createLinkPlaces();
    const { url } = await ask("platform");
    const refused = await unchanged(() => at("a").get(url));
    expect(queryOf(refused.location)).toEqual({ error: "INVALID_TOKEN" });
  });
});
