import { magicLink } from "better-auth/plugins";
import { expect, it } from "vitest";
import { EMAIL, shareWorld } from "../support/world";

let next = "";
const world = shareWorld({
  plugins: (send) => [magicLink({ sendMagicLink: send("link"), generateToken: () => next })],
});

const callbackURL = "/after?next=/api/auth/done&token=none";

/** Letters that stand in every link, and characters that none has as they are. */
it.each(["plain", "a+b/c=d&e f%g#h?i", "ünïcödé 🔑", "api", "auth", "/", "token", "o"])(
  "R6: a magic link with the token %j of the application is sealed, and leads home",
  async (token) => {
    next = token;
    const { id } = await world.as("jane", "acme");
    const body = { email: EMAIL, callbackURL };
    expect((await world.at("acme").post("/sign-in/magic-link", body)).status).toBe(200);
    const mail = world.lastMail("link");
    const url = new URL(mail.url);
    // Nothing else in the link is replaced.
    expect(`${url.origin}${url.pathname}`).toBe("http://localhost:3000/api/auth/magic-link/verify");
    expect([...url.searchParams]).toEqual([
      ["token", mail.token],
      ["callbackURL", callbackURL],
    ]);
    expect(mail.token).not.toBe(token);
    const [elsewhere, stranger] = [world.at("globex"), world.at("platform")];
    await elsewhere.get(mail.url);
    expect(await world.whoIs(elsewhere)).toBe(null);
    await stranger.get(mail.url);
    expect(await world.whoIs(stranger)).toMatchObject({ id, tenantId: world.ids.acme });
  },
);
