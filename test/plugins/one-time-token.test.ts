import { oneTimeToken } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createPlaces, ELSEWHERE, expectRefused } from "./places";

async function createTokenPlaces() {
  const places = await createPlaces([oneTimeToken()]);
  const person = await places.signUp("a");
  const { data } = await person.browser.get<{ token: string }>("/one-time-token/generate");
  return { ...places, person, token: data.token };
}

describe("oneTimeToken", () => {
  it("hands a session over inside its tenant", async () => {
    const { at, token, whoIs, person, ids } = await createTokenPlaces();
    const browser = at("a");
    expect((await browser.post("/one-time-token/verify", { token })).status).toBe(200);
    expect(await whoIs(browser, "a")).toMatchObject({ id: person.user.id, tenantId: ids.a });
  });

  it.each(ELSEWHERE)("R6: a token of A is refused on %s, and stays good at A", async (place) => {
    const { at, token, unchanged } = await createTokenPlaces();
    const refused = await unchanged(() => at(place).post("/one-time-token/verify", { token }));
    expectRefused(refused, 400);
    expect(refused.data).toEqual({ message: "Invalid token" });
    expect((await at("a").post("/one-time-token/verify", { token })).status).toBe(200);
  });

  it("R5: a session of A gets no token at B", async () => {
    const { person, naming, unchanged } = await createTokenPlaces();
    const browser = person.browser.fork(naming("b"));
    const refused = await unchanged(() => browser.get("/one-time-token/generate"));
    expectRefused(refused, 401, "UNAUTHORIZED");
  });
});
