import { username } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { expectRefused, shareWorld, type Where } from "../support/world";

const world = shareWorld({ plugins: [username()] });

const signUpAs = (where: Where, name: string, path = "/sign-up/email") =>
  world.at(where).post<{ user: { id: string } }>(path, {
    name: "Somebody",
    email: `${name}@example.com`,
    password: PASSWORD,
    username: name,
  });

describe("username", () => {
  it.each(["/sign-up/email", "/tenant/sign-up/email"])(
    "R3: is taken at %s, signs in inside its tenant, and is unknown elsewhere",
    async (path) => {
      const name = `alice${path.length}`;
      const { id } = (await signUpAs("acme", name, path)).data.user;
      const signIn = { username: name, password: PASSWORD };
      await world.goodAtAcmeOnly(
        (browser) => browser.post("/sign-in/username", signIn),
        401,
        "INVALID_USERNAME_OR_PASSWORD",
      );
      const browser = world.at("acme");
      await browser.post("/sign-in/username", signIn);
      expect(await world.whoIs(browser)).toMatchObject({ id, tenantId: world.ids.acme });
    },
  );

  // The plugin's own unique index is over the username alone.
  it("its unique column stays global: a username of Acme is taken elsewhere", async () => {
    await signUpAs("acme", "bob");
    const refused = await world.unchanged(() => signUpAs("globex", "bob"));
    expectRefused(refused, 422, "VALUE_TAKEN");
    expect((await signUpAs("globex", "bob2")).status).toBe(200);
  });
});
