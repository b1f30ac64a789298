import { passkey } from "@better-auth/passkey";
import { describe, expect, it } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import type { Browser } from "../support/browser";
import { createAuthenticator } from "./authenticator";
import { createPlaces, ELSEWHERE, expectRefused } from "./places";

interface Options {
  challenge: string;
  excludeCredentials?: { id: string }[];
}

/** Somebody at A with a passkey, which also answers wherever else it is asked. */
async function createPasskeyPlaces(tenant: TenantAuthOptions = { scopedModels: ["passkey"] }) {
  const places = await createPlaces([passkey()], { tenant });
  const authenticator = createAuthenticator();
  const person = await places.signUp("a");
  const register = async (browser: Browser) => {
    const { data } = await browser.get<Options>("/passkey/generate-register-options");
    return authenticator.register(data.challenge);
  };
  const stored = await person.browser.post<{ id: string }>("/passkey/verify-registration", {
    response: await register(person.browser),
    name: "Phone",
  });
  expect(stored.status).toBe(200);
  /** Asks for a challenge, and answers it. */
  async function challenge(browser: Browser) {
    const { data } = await browser.get<Options>("/passkey/generate-authenticate-options");
    return { response: authenticator.authenticate(data.challenge) };
  }
  return { ...places, person, register, challenge, passkeyId: stored.data.id };
}

/** Found by its credential wherever it is used; the border still keeps its user apart. */
const SHARED = { sharedModels: ["passkey"] };
const VERIFY = "/passkey/verify-authentication";

describe("passkey", () => {
  it("signs in inside the tenant", async () => {
    const { at, challenge, whoIs, person, ids } = await createPasskeyPlaces();
    const browser = at("a");
    expect((await browser.post(VERIFY, await challenge(browser))).status).toBe(200);
    expect(await whoIs(browser, "a")).toMatchObject({ id: person.user.id, tenantId: ids.a });
  });

  it.each(ELSEWHERE)("R8: a shared passkey of A signs nobody in on %s", async (place) => {
    const { at, challenge, rows, whoIs } = await createPasskeyPlaces(SHARED);
    const browser = at(place);
    const refused = await browser.post(VERIFY, await challenge(browser));
    expectRefused(refused, 403, "USER_NOT_IN_TENANT");
    expect(await rows("session")).toBe(1);
    expect(await whoIs(browser, place)).toBe(null);
  });

  it.each(ELSEWHERE)("R3: a passkey of A is unknown on %s", async (place) => {
    const { at, challenge, rows } = await createPasskeyPlaces();
    const browser = at(place);
    const counter = await rows("passkey", "counter = 1");
    const refused = await browser.post(VERIFY, await challenge(browser));
    expectRefused(refused, 401, "PASSKEY_NOT_FOUND");
    expect(await rows("passkey", "counter = 1")).toBe(counter);
    const home = at("a");
    expect((await home.post(VERIFY, await challenge(home))).status).toBe(200);
  });

  it.each(ELSEWHERE)("R6: a challenge of A is none on %s, and stays good at A", async (place) => {
    const { at, naming, challenge, unchanged } = await createPasskeyPlaces();
    const browser = at("a");
    const body = await challenge(browser);
    const refused = await unchanged(() => browser.fork(naming(place)).post(VERIFY, body));
    expectRefused(refused, 400, "CHALLENGE_NOT_FOUND");
    expect((await browser.post(VERIFY, body)).status).toBe(200);
  });

  it("R6: a registration that began at A cannot end at B", async () => {
    const { person, naming, register, unchanged, signUp } = await createPasskeyPlaces();
    const body = { response: await register(person.browser) };
    const other = await signUp("b");
    // The challenge of A, with a session of B.
    for (const [name, value] of person.browser.cookies) {
      if (!name.includes("session")) other.browser.cookies.set(name, value);
    }
    const path = "/passkey/verify-registration";
    const refused = await unchanged(() => other.browser.post(path, body));
    expectRefused(refused, 400, "CHALLENGE_NOT_FOUND");
    const elsewhere = person.browser.fork(naming("b"));
    expectRefused(await unchanged(() => elsewhere.post(path, body)), 401, "UNAUTHORIZED");
  });

  it.each(ELSEWHERE)(
    "threat: a shared passkey of A cannot be seen or touched on %s",
    async (place) => {
      const { signUp, passkeyId, unchanged } = await createPasskeyPlaces(SHARED);
      const { browser } = await signUp(place);
      expect((await browser.get("/passkey/list-user-passkeys")).data).toEqual([]);
      const { data } = await browser.get<Options>("/passkey/generate-register-options");
      expect(data.excludeCredentials ?? []).toEqual([]);
      const body = { id: passkeyId, name: "Stolen" };
      for (const path of ["/passkey/update-passkey", "/passkey/delete-passkey"]) {
        const refused = await unchanged(() => browser.post(path, body));
        expect(refused.status, path).toBeGreaterThanOrEqual(400);
      }
    },
  );
});
