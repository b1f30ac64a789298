import { expo } from "@better-auth/expo";
import { generateRandomString, makeSignature, symmetricEncrypt } from "better-auth/crypto";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { deriveKey } from "../../../src/core/keys";
import { prefixState } from "../../../src/features/oauth/state-prefix";
import { createStorage } from "../../support/stores";
import {
  createWorld,
  EMAIL,
  expectRefused,
  type Person,
  type Place,
  shareWorld,
} from "../../support/world";

/*
 * The proxy of @better-auth/expo is public, and signs the state in an address as better-auth signs
 * every cookie. What it gives away must open nothing.
 */

const VERIFY_EMAIL_PATH = "/verify-email";

// better-auth logs each address that it refuses.
beforeEach(() => {
  const errors = vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => errors.mockRestore());
});

const world = shareWorld({
  plugins: [expo()],
  auth: { emailVerification: { autoSignInAfterVerification: true } },
});

const proxied = (state: string, browser = world.at("platform")) => {
  const authorizationURL = `https://idp.example/?state=${encodeURIComponent(state)}`;
  return browser.get("/expo-authorization-proxy", { query: { authorizationURL } });
};

/** What the proxy signs: undefined where it refuses. */
async function signedByServer(text: string): Promise<string | undefined> {
  const browser = world.at("platform");
  await proxied(text, browser);
  const [, cookie] = [...browser.cookies].find(([name]) => name.endsWith("state")) ?? [];
  return cookie && decodeURIComponent(cookie).slice(text.length + 1);
}

const base64url = (text: string) => Buffer.from(text).toString("base64url");

/** better-auth's token for an email address, signed as the attacker could have it signed. */
async function forgedJWT(email: string, sign: (text: string) => Promise<string | undefined>) {
  const now = Math.floor(Date.now() / 1000);
  const head = base64url(JSON.stringify({ alg: "HS256" }));
  const text = `${head}.${base64url(JSON.stringify({ email, iat: now, exp: now + 3600 }))}`;
  const signature = (await sign(text)) ?? "none";
  return `${text}.${signature.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** A link's token, encrypted with a key that better-auth's signature of a text would be. */
async function forgedLink(key: string, token: string, { id: userId }: Person) {
  const tenantId = world.ids.acme;
  const data = JSON.stringify({ token, tenantId, userId, path: VERIFY_EMAIL_PATH });
  return `tenant~${(await symmetricEncrypt({ key, data })).replaceAll("$", "~")}`;
}

/** Whether the token signs anybody in. */
async function opens(token: string, place: Place): Promise<boolean> {
  const browser = world.at(place);
  await browser.get(VERIFY_EMAIL_PATH, { query: { token } });
  return (await world.whoIs(browser)) !== null;
}

describe("what the proxy signs", () => {
  it("is a state, in the form that better-auth gives it, also if it begins like a tenant's", async () => {
    for (const state of [generateRandomString(32), `004${generateRandomString(29)}`]) {
      expect(await signedByServer(state)).toMatch(/^[\w+/]{43}=$/);
    }
  });

  it.each([
    ["the label of a key", "better-auth-tenant:link"],
    ["what a token is made of", `${base64url('{"alg":"HS256"}')}.${base64url("{}")}`],
    ["a trusted device", `${generateRandomString(32)}!trust-device-1`],
    ["a text of another length", generateRandomString(33)],
    ["a state's binding", JSON.stringify(["state", "tenant"])],
    ["a state behind a tenant, and something more", `004YWJj${generateRandomString(31)}.x`],
  ])("is not %s", async (_, text) => {
    expect(await signedByServer(text)).toBeUndefined();
    expectRefused(await proxied(text, world.at("acme")), 400);
  });
});

describe("the token of a session", () => {
  it.each<Place>(["acme", "platform"])("of %s does not become its cookie", async (place) => {
    const victim = await world.as("jane", place);
    expect(victim.token).toMatch(/\w{32}$/);
    for (const state of [victim.token, prefixState(victim.token, world.ids.globex)]) {
      expectRefused(await proxied(state), 400);
    }
    expect(await signedByServer(victim.token)).toBeUndefined();
    // Controls: signed, it would be the cookie, and a tenant's state gets its own.
    const [name = ""] = [...victim.cookies.keys()].filter((key) => key.endsWith("session_token"));
    const browser = world.at(place);
    const signature = await makeSignature(victim.token, (await world.auth.$context).secret);
    browser.cookies.set(name, encodeURIComponent(`${victim.token}.${signature}`));
    expect(await world.whoIs(browser)).toMatchObject({ id: victim.id });
    const good = await proxied(prefixState(generateRandomString(32), world.ids.globex));
    expect(good.status).toBe(302);
  });

  it("in a storage neither", async () => {
    const secondaryStorage = createStorage();
    const own = await createWorld({ plugins: [expo()], auth: { secondaryStorage } });
    for (const place of ["acme", "platform"] as const) {
      const { token } = await own.as("jane", place);
      expectRefused(await proxied(token, own.at(place)), 400);
      expect((await proxied(generateRandomString(32), own.at(place))).status).toBe(302);
    }
  });
});

describe("a forged link", () => {
  const secret = async () => (await world.auth.$context).secret;

  it("signs no user in on the platform", async () => {
    await world.as("jane", "platform");
    expect(await opens(await forgedJWT(EMAIL, signedByServer), "platform")).toBe(false);
    // Control: with the secret itself, the token is good there.
    const key = await secret();
    const good = await forgedJWT(EMAIL, (text) => makeSignature(text, key));
    expect(await opens(good, "platform")).toBe(true);
  });

  it("signs no user in at a tenant, even with all that better-auth signs for a caller", async () => {
    const jane = await world.as("jane", "acme");
    const key = await secret();
    const token = await forgedJWT(EMAIL, (text) => makeSignature(text, key));
    for (const label of ["better-auth-tenant:link", "better-auth-tenant:link:v1", "link"]) {
      const given = await makeSignature(label, key);
      expect(await opens(await forgedLink(given, token, jane), "acme")).toBe(false);
    }
    expect(await opens(await forgedLink(key, token, jane), "acme")).toBe(false);
    // Controls: the same with the server's own key, and a link that the server has sent.
    const own = await deriveKey("link", key);
    expect(await opens(await forgedLink(own, token, jane), "acme")).toBe(true);
    const { email } = await world.signUp("acme", "new@example.com");
    await world.at("acme").post("/send-verification-email", { email });
    expect(await opens(world.lastMail("verification").token, "acme")).toBe(true);
  });
});
