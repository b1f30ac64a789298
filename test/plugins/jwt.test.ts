import { jwt } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createPlaces, expectRefused, PLACES } from "./places";

interface Payload {
  sub: string;
  tenantId: string | null;
}

const payloadOf = (token: string): Payload =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

describe("jwt", () => {
  it("tells the tenant in its payload", async () => {
    const { signUp, ids } = await createPlaces([jwt()]);
    for (const place of PLACES) {
      const { browser, user } = await signUp(place);
      const { data } = await browser.get<{ token: string }>("/token");
      expect(payloadOf(data.token)).toMatchObject({ sub: user.id, tenantId: ids[place] });
    }
  });

  it("comes with the session, in a header", async () => {
    const { signUp, ids } = await createPlaces([jwt()]);
    const { browser, user } = await signUp("a");
    const { headers } = await browser.get("/get-session");
    const token = headers.get("set-auth-jwt") ?? "";
    expect(payloadOf(token)).toMatchObject({ sub: user.id, tenantId: ids.a });
  });

  it("R5: there is none for a session of A at B", async () => {
    const { signUp, naming } = await createPlaces([jwt()]);
    const { browser } = await signUp("a");
    expectRefused(await browser.fork(naming("b")).get("/token"), 401, "UNAUTHORIZED");
    const elsewhere = await browser.fork(naming("b")).get("/get-session");
    expect(elsewhere.headers.get("set-auth-jwt")).toBe(null);
  });

  it("R4: unnamed, a session of A gets a token of A", async () => {
    const { signUp, ids } = await createPlaces([jwt()]);
    const { browser, user } = await signUp("a");
    const { data } = await browser.fork({}).get<{ token: string }>("/token");
    expect(payloadOf(data.token)).toMatchObject({ sub: user.id, tenantId: ids.a });
  });
});
