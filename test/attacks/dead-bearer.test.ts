import { bearer } from "better-auth/plugins";
import { expect, it } from "vitest";
import { createPlaces } from "../plugins/places";

it("R5: a dead bearer token at B does not take the cookie of A along", async () => {
  const { signUp, naming, whoIs } = await createPlaces([bearer()]);
  const bob = await signUp("b", "bob@example.com");
  await bob.browser.post("/sign-out");
  const al = await signUp("a", "al@example.com");
  const atB = al.browser.fork(naming("b"));
  expect((await atB.get("/list-sessions")).headers.getSetCookie()).toEqual([]);
  const headers = { authorization: `Bearer ${bob.token}` };
  const answer = await atB.get("/list-sessions", { headers });
  expect([answer.status, answer.headers.getSetCookie()]).toEqual([401, []]);
  expect(await whoIs(atB, "a")).toMatchObject({ email: "al@example.com" });
});
