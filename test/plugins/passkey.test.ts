import { passkey } from "@better-auth/passkey";
import { describe, expect, it } from "vitest";
import { createAuthenticator } from "../../src/testing/authenticator";
import type { Browser } from "../support/browser";
import { ELSEWHERE, expectRefused, shareWorld, type World } from "../support/world";

const ORIGIN = "http://localhost:3000";
const VERIFY = "/passkey/verify-authentication";

interface Options {
  challenge: string;
  excludeCredentials?: { id: string }[];
}

/** Somebody at Acme with a passkey, which also answers wherever else it is asked. */
async function createPasskey(world: World, name: string) {
  const authenticator = await createAuthenticator("localhost");
  const person = await world.as(name, "acme");
  const register = async (browser: Browser) => {
    const { data } = await browser.get<Options>("/passkey/generate-register-options");
    return { response: await authenticator.register(data.challenge, ORIGIN) };
  };
  const path = "/passkey/verify-registration";
  const { data, status } = await person.post<{ id: string }>(path, await register(person));
  expect(status).toBe(200);
  /** Asks for a challenge, and answers it. */
  async function challenge(browser: Browser) {
    const { data } = await browser.get<Options>("/passkey/generate-authenticate-options");
    return { response: await authenticator.assert(data.challenge, ORIGIN) };
  }
  return { person, register, challenge, id: data.id };
}

describe("passkey", () => {
  const world = shareWorld({ plugins: [passkey()], tenant: { scopedModels: ["passkey"] } });

  it("R3: signs in inside its tenant, and is unknown elsewhere", async () => {
    const { person, challenge } = await createPasskey(world, "ada");
    for (const place of ELSEWHERE) {
      const browser = world.at(place);
      const body = await challenge(browser);
      expectRefused(await browser.post(VERIFY, body), 401, "PASSKEY_NOT_FOUND");
    }
    const browser = world.at("acme");
    expect((await browser.post(VERIFY, await challenge(browser))).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ id: person.id, tenantId: world.ids.acme });
  });
});

describe.each(ELSEWHERE)("a shared passkey of Acme on %s", (place) => {
  const world = shareWorld({ plugins: [passkey()], tenant: { sharedModels: ["passkey"] } });

  // Found by its credential wherever it is used; the border still keeps its user apart.
  it("R8: signs nobody in, and cannot be seen or touched", async () => {
    const { challenge, id } = await createPasskey(world, "ada");
    const browser = world.at(place);
    const sessions = await world.rows("session");
    const refused = await browser.post(VERIFY, await challenge(browser));
    expectRefused(refused, 403, "USER_NOT_IN_TENANT");
    expect(await world.rows("session")).toBe(sessions);
    const jane = await world.as("jane", place);
    expect((await jane.get("/passkey/list-user-passkeys")).data).toEqual([]);
    const { data } = await jane.get<Options>("/passkey/generate-register-options");
    expect(data.excludeCredentials ?? []).toEqual([]);
    for (const path of ["/passkey/update-passkey", "/passkey/delete-passkey"]) {
      const touched = await world.unchanged(() => jane.post(path, { id, name: "Stolen" }));
      expect(touched.status, path).toBeGreaterThanOrEqual(400);
    }
  });
});
