import { username } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { createPlaces, ELSEWHERE, EMAIL, expectRefused, type Place } from "./places";

async function createNamedPlaces() {
  const places = await createPlaces([username()]);
  const signUpAs = (place: Place, name: string) =>
    places.at(place).post("/sign-up/email", {
      name: "Somebody",
      email: EMAIL,
      password: PASSWORD,
      username: name,
    });
  return { ...places, signUpAs };
}

describe("username", () => {
  it("signs up and in by username inside a tenant", async () => {
    const { at, signUpAs, whoIs, ids } = await createNamedPlaces();
    expect((await signUpAs("a", "alice")).status).toBe(200);
    const browser = at("a");
    const answer = await browser.post("/sign-in/username", {
      username: "alice",
      password: PASSWORD,
    });
    expect(answer.status).toBe(200);
    expect(await whoIs(browser, "a")).toEqual(
      expect.objectContaining({ email: EMAIL, tenantId: ids.a }),
    );
  });

  it("takes the username at this plugin's own sign-up as well", async () => {
    const { at, ids, rows } = await createNamedPlaces();
    const body = { name: "Al", email: EMAIL, password: PASSWORD, username: "alice" };
    const answer = await at("platform").post("/tenant/sign-up/email", { ...body, tenantId: ids.a });
    expect(answer.status).toBe(200);
    expect(await rows("user", '"username" = ? and "tenantId" = ?', ["alice", ids.a])).toBe(1);
  });

  it.each(ELSEWHERE)("R3: a username of A is unknown on %s", async (place) => {
    const { at, signUpAs, unchanged } = await createNamedPlaces();
    await signUpAs("a", "alice");
    const body = { username: "alice", password: PASSWORD };
    const refused = await unchanged(() => at(place).post("/sign-in/username", body));
    expectRefused(refused, 401, "INVALID_USERNAME_OR_PASSWORD");
  });

  // The plugin's own unique index is over the username alone.
  it("its unique column stays global: a username of A is taken at B", async () => {
    const { signUpAs, unchanged, rows } = await createNamedPlaces();
    await signUpAs("a", "alice");
    const refused = await unchanged(() => signUpAs("b", "alice"));
    expectRefused(refused, 422, "VALUE_TAKEN");
    expect((await signUpAs("b", "alice2")).status).toBe(200);
    expect(await rows("user")).toBe(2);
  });
});
