import { jwt } from "better-auth/plugins";
import { expect, it } from "vitest";
import { expectRefused, PLACES, shareWorld } from "../support/world";

const world = shareWorld({ plugins: [jwt()] });

const payloadOf = (token: string | null) =>
  JSON.parse(Buffer.from(token?.split(".")[1] ?? "", "base64url").toString());

it.each(PLACES)("jwt tells the tenant in its payload on %s", async (place) => {
  const jane = await world.as("jane", place);
  const payload = { sub: jane.id, tenantId: world.ids[place] };
  // R4: unnamed as well, and with the session in a header.
  for (const browser of [jane, world.at("platform", jane)]) {
    const { data } = await browser.get<{ token: string }>("/token");
    expect(payloadOf(data.token)).toMatchObject(payload);
    const { headers } = await browser.get("/get-session");
    expect(payloadOf(headers.get("set-auth-jwt"))).toMatchObject(payload);
  }
  // R5: a session is none elsewhere.
  const elsewhere = world.at(place === "acme" ? "globex" : "acme", jane);
  expectRefused(await elsewhere.get("/token"), 401, "UNAUTHORIZED");
  expect((await elsewhere.get("/get-session")).headers.get("set-auth-jwt")).toBe(null);
});
