import { bearer } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { EMAIL, PLACES, type SessionAnswer, shareWorld } from "../support/world";

const world = shareWorld({ plugins: [bearer()] });

const authorization = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

describe("bearer", () => {
  it.each(PLACES)("R4: a token of %s is a session there, named or not", async (place) => {
    const { id, token } = await world.as("jane", place);
    for (const browser of [world.at(place), world.at("platform")]) {
      const { data } = await browser.get<SessionAnswer>("/get-session", authorization(token));
      expect([data.user.id, data.session.tenantId]).toEqual([id, world.ids[place]]);
    }
  });

  it("R4: unnamed, a token of Acme changes Acme's user, and signs in there", async () => {
    const jane = await world.as("jane", "acme");
    const options = authorization(jane.token);
    const unnamed = world.at("platform");
    await world.touchesOnly("acme", async () => {
      expect((await unnamed.post("/update-user", { name: "New" }, options)).status).toBe(200);
      const body = { email: EMAIL, password: PASSWORD };
      const answer = await unnamed.post("/sign-in/email", body, options);
      expect(answer.data).toMatchObject({ user: { id: jane.id, name: "New" } });
    });
  });

  it("hands the token out at this plugin's own sign-in", async () => {
    await world.as("jane", "acme");
    const body = { email: EMAIL, password: PASSWORD, tenantId: world.ids.acme };
    const answer = await world.at("platform").post("/tenant/sign-in/email", body);
    const options = authorization(answer.headers.get("set-auth-token") ?? "");
    const { data } = await world.at("acme").get<SessionAnswer>("/get-session", options);
    expect(data.session.tenantId).toBe(world.ids.acme);
  });
});
