import { randomBytes } from "node:crypto";
import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { ELSEWHERE, EMAIL, PLACES, type Place, queryOf, shareWorld } from "../support/world";

/** What better-auth has in its table. */
const bare: string[] = [];
const generateToken = () => {
  bare.push(randomBytes(16).toString("hex"));
  return bare.at(-1) ?? "";
};

const world = shareWorld({
  plugins: (send) => [magicLink({ generateToken, sendMagicLink: send("link") })],
});

async function ask(place: Place) {
  const body = { email: EMAIL, callbackURL: "/in" };
  expect((await world.at(place).post("/sign-in/magic-link", body)).status).toBe(200);
  const mail = world.lastMail("link");
  expect(mail.sentIn).toBe(world.ids[place]);
  return mail;
}

async function expectNothing(place: Place, url: string) {
  const refused = await world.unchanged(() => world.at(place).get(url));
  expect(queryOf(refused.location), url).toEqual({ error: "INVALID_TOKEN" });
  expect(refused.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
}

describe("magicLink", () => {
  it.each(PLACES)("R6: leads back to %s from a browser that names nothing", async (place) => {
    const { url } = await ask(place);
    const browser = world.at("platform");
    const clicked = await browser.get(url);
    expect([clicked.status, new URL(clicked.location ?? "").pathname]).toEqual([302, "/in"]);
    expect(queryOf(clicked.location)).toEqual({});
    const somebody = { email: EMAIL, tenantId: world.ids[place] };
    expect(await world.whoIs(browser, place)).toMatchObject(somebody);
    expect(await world.rowsIn(place, "user")).toHaveLength(1);
  });

  it.each([
    ["acme", "globex"],
    ["platform", "acme"],
  ] as const)("R6: one of %s is none at %s, and stays good", async (place, elsewhere) => {
    const { url } = await ask(place);
    await expectNothing(elsewhere, url);
    expect(queryOf((await world.at("platform").get(url)).location)).toEqual({});
  });

  it("R6: does nothing for somebody who strips or alters its seal", async () => {
    const { token: theirs } = await ask("globex");
    const { url, token } = await ask("acme");
    const middle = Math.floor(token.length / 2);
    const flipped = token[middle] === "0" ? "1" : "0";
    expect(token).not.toContain(bare.at(-1));
    for (const forged of [
      bare.at(-1) ?? "",
      `${token.slice(0, middle)}${flipped}${token.slice(middle + 1)}`,
      `${theirs.slice(0, middle)}${token.slice(middle)}`,
      token.slice(0, -2),
      `${token}00`,
    ]) {
      for (const place of ELSEWHERE) await expectNothing(place, url.replace(token, forged));
    }
    expect(queryOf((await world.at("platform").get(url)).location)).toEqual({});
  });
});
