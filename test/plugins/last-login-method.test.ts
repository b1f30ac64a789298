import { lastLoginMethod, magicLink } from "better-auth/plugins";
import { expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { createSocialWorld } from "../support/social";
import { EMAIL } from "../support/world";

const COOKIE = "better-auth.last_used_login_method";

it("lastLoginMethod remembers how somebody signed in at a tenant, and stores it there", async () => {
  const world = await createSocialWorld({
    plugins: (send) => [
      lastLoginMethod({ storeInDatabase: true }),
      magicLink({ sendMagicLink: send("link") }),
    ],
  });
  await world.janes();
  await world.at("acme").post("/sign-in/magic-link", { email: EMAIL });
  const person = { email: EMAIL, password: PASSWORD };
  for (const [method, signIn] of [
    ["email", (browser) => browser.post("/sign-in/email", person)],
    ["email", (browser) => browser.post("/tenant/sign-in/email", person)],
    ["magic-link", (browser) => browser.get(world.lastMail("link").url)],
    ["gitlab", (browser) => world.signInAtProvider(browser, "acme")],
  ] satisfies [string, (browser: ReturnType<typeof world.at>) => Promise<unknown>][]) {
    const browser = world.at("acme");
    await world.touchesOnly("acme", () => signIn(browser));
    const { id } = (await world.whoIs(browser)) ?? {};
    expect(browser.cookies.get(COOKIE)).toBe(method);
    const row = (await world.rowsIn("acme", "user")).find((user) => user.id === id);
    expect(row?.lastLoginMethod).toBe(method);
  }
});
