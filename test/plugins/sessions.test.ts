import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import { bearer, customSession, deviceAuthorization, jwt, multiSession } from "better-auth/plugins";
import { beforeEach, describe, expect, it } from "vitest";
import { getTenantId, runInTenant } from "../../src/index";
import { createAuthenticator } from "../../src/testing/authenticator";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import {
  ELSEWHERE,
  EMAIL,
  expectRefused,
  PLACES,
  type Place,
  type SessionAnswer,
  shareWorld,
  type Where,
  type World,
} from "../support/world";

const MODELS = ["apikey", "deviceCode", "passkey"];
const keepers = () => [apiKey({ enableSessionForAPIKeys: true }), deviceAuthorization(), passkey()];
const scoped = shareWorld({ plugins: keepers(), tenant: { scopedModels: MODELS } });
const shared = shareWorld({ plugins: keepers(), tenant: { sharedModels: MODELS } });
const world = shareWorld({ plugins: [bearer(), jwt(), multiSession()] });

describe("bearer", () => {
  const authorization = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

  it("R4: unnamed, a token of Acme is Acme's session, changes its user and signs in there", async () => {
    const jane = await world.as("jane", "acme");
    const options = authorization(jane.token);
    const unnamed = world.at("platform");
    await world.touchesOnly("acme", async () => {
      const { data } = await unnamed.get<SessionAnswer>("/get-session", options);
      expect(data.session).toMatchObject({ userId: jane.id, tenantId: world.ids.acme });
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

it.each(PLACES)("jwt tells the tenant in its payload on %s", async (place) => {
  const payloadOf = (token: string | null) =>
    JSON.parse(Buffer.from(token?.split(".")[1] ?? "", "base64url").toString());
  const jane = await world.as("told", place);
  const payload = { sub: jane.id, tenantId: world.ids[place] };
  // R4: unnamed as well, and with the session in a header.
  const unnamed = world.at("platform", jane);
  const { data } = await unnamed.get<{ token: string }>("/token");
  expect(payloadOf(data.token)).toMatchObject(payload);
  const { headers } = await unnamed.get("/get-session");
  expect(payloadOf(headers.get("set-auth-jwt"))).toMatchObject(payload);
  // R5: a session is none elsewhere.
  const elsewhere = world.at(place === "acme" ? "globex" : "acme", jane);
  expectRefused(await elsewhere.get("/token"), 401, "UNAUTHORIZED");
  expect((await elsewhere.get("/get-session")).headers.get("set-auth-jwt")).toBe(null);
});

describe("customSession", () => {
  const plugins = [customSession(async ({ user }) => ({ user, ranIn: getTenantId() }))];
  const custom = shareWorld({ plugins });

  it.each(["acme", "platform"] as const)("runs in the tenant of a session of %s", async (place) => {
    const jane = await custom.as("jane", place);
    const answer = { user: expect.objectContaining({ id: jane.id }), ranIn: custom.ids[place] };
    // R5: it is none elsewhere, and its cookie stays. R4: unnamed it leads home.
    const elsewhere = custom.at("globex", jane);
    expect((await elsewhere.get("/get-session")).data).toBe(null);
    expect((await custom.at("platform", elsewhere).get("/get-session")).data).toEqual(answer);
  });
});

describe("multiSession", () => {
  const tokens = { acme: "", globex: "", platform: "" };
  let browser: Browser;
  /** One browser that is signed in at every place, one after the other. */
  beforeEach(async () => {
    await world.janes();
    browser = world.at("platform");
    for (const place of ["platform", "acme", "globex"] as const) {
      // Naming it: unnamed, the second sign-in would run where the first one led to.
      const options = { headers: world.naming(place) };
      const body = { email: EMAIL, password: PASSWORD };
      const { data } = await browser.post<{ token: string }>("/sign-in/email", body, options);
      tokens[place] = data.token;
    }
  });

  const activate = (window: Browser, place: Place) =>
    window.post("/multi-session/set-active", { sessionToken: tokens[place] });

  /** From wherever the browser is now, back to Acme. */
  async function expectBackAtAcme(from: Browser) {
    const window = world.at("acme", from);
    expect((await activate(window, "acme")).status).toBe(200);
    const { id } = await world.as("jane", "acme");
    expect(await world.whoIs(window)).toMatchObject({ id });
  }

  it("R5: sees, switches to and revokes the sessions of Globex only there", async () => {
    const window = world.at("globex", browser);
    await world.unchanged(async () => {
      const path = "/multi-session/list-device-sessions";
      const { data } = await window.get<SessionAnswer[]>(path);
      expect(data.map(({ session }) => session.token)).toEqual([tokens.globex]);
      expectRefused(await activate(window, "acme"), 401, "INVALID_SESSION_TOKEN");
      await window.fork().post("/multi-session/revoke", { sessionToken: tokens.acme });
    });
    await expectBackAtAcme(window);
  });

  it("R5: signing out of one tenant leaves the other signed in", async () => {
    const window = world.at("globex", browser);
    expect((await window.post("/sign-out")).status).toBe(200);
    expect(await world.rows("session", "token = ?", [tokens.globex])).toBe(0);
    await expectBackAtAcme(window);
  });
});

interface Verifier {
  verifyApiKey(input: { body: { key: string } }): Promise<{ valid: boolean }>;
}

async function createKey(at: World, where: Where) {
  const person = await at.as("jane", where);
  const { data } = await person.post<{ id: string; key: string }>("/api-key/create", {});
  const verifier = at.api as unknown as Verifier;
  const verify = async () => (await verifier.verifyApiKey({ body: { key: data.key } })).valid;
  return { person, withKey: { headers: { "x-api-key": data.key } }, verify };
}

describe("apiKey", () => {
  it("is verified by the server inside its tenant only, and goes with it", async () => {
    const { id } = await scoped.createTenant();
    const { verify } = await createKey(scoped, id);
    expect(await runInTenant(id, verify)).toBe(true);
    expect(await runInTenant(String(scoped.ids.globex), verify)).toBe(false);
    expect(await verify()).toBe(false);
    await scoped.api.deleteTenant({ body: { tenantId: id } });
    expect(await scoped.rowsIn(id, "apikey")).toEqual([]);
  });

  it.each(ELSEWHERE)("R8: a shared key of Acme is no session on %s", async (place) => {
    const { withKey } = await createKey(shared, "acme");
    const change = () => shared.at(place).post("/update-user", { name: "X" }, withKey);
    expectRefused(await change(), 401, "INVALID_REFERENCE_ID_FROM_API_KEY");
    expect(await shared.rows("user", "name = 'X'")).toBe(0);
  });
});

describe("deviceAuthorization", () => {
  interface Codes {
    device_code: string;
    user_code: string;
  }
  const ask = async (at: World) =>
    (await at.at("acme").post<Codes>("/device/code", { client_id: "tv" })).data;

  const redeem = (at: World, where: Where, { device_code }: Codes) =>
    at.at(where).post<{ error?: string; access_token?: string }>("/device/token", {
      grant_type: "urn:ietf:params:oauth:grant-type:device_code",
      device_code,
      client_id: "tv",
    });

  /** Opens the page of the code, which claims it, and approves. */
  async function approve(browser: Browser, { user_code }: Codes) {
    await browser.get("/device", { query: { user_code } });
    return browser.post<{ error?: string }>("/device/approve", { userCode: user_code });
  }

  it.each([
    ["acme", "globex"],
    ["acme", "platform"],
    ["globex", "acme"],
  ])("R8: a shared code that somebody on %s approves signs nobody in on %s", async (by, where) => {
    const person = await shared.as("jane", by);
    const sessions = await shared.rows("session");
    const codes = await ask(shared);
    await approve(person, codes);
    const refused = await redeem(shared, where, codes);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.data.access_token).toBe(undefined);
    expect(await shared.rows("session")).toBe(sessions);
  });
});

describe("passkey", () => {
  const ORIGIN = "http://localhost:3000";
  const VERIFY = "/passkey/verify-authentication";
  interface Options {
    challenge: string;
    excludeCredentials?: { id: string }[];
  }

  /** Somebody at Acme with a passkey, which also answers wherever else it is asked. */
  async function createPasskey(at: World, name = "ada") {
    const authenticator = await createAuthenticator("localhost");
    const person = await at.as(name, "acme");
    const options = await person.get<Options>("/passkey/generate-register-options");
    const response = await authenticator.register(options.data.challenge, ORIGIN);
    const path = "/passkey/verify-registration";
    const { data, status } = await person.post<{ id: string }>(path, { response });
    expect(status).toBe(200);
    async function signIn(browser: Browser) {
      const asked = await browser.get<Options>("/passkey/generate-authenticate-options");
      const answer = await authenticator.assert(asked.data.challenge, ORIGIN);
      return browser.post(VERIFY, { response: answer });
    }
    return { person, signIn, id: data.id };
  }

  // Found by its credential wherever it is used; the border still keeps its user apart.
  it("R8: shared, it signs nobody in elsewhere, and cannot be seen or touched", async () => {
    for (const place of ELSEWHERE) {
      const { signIn, id } = await createPasskey(shared, `wanted-on-${place}`);
      const sessions = await shared.rows("session");
      expectRefused(await signIn(shared.at(place)), 403, "USER_NOT_IN_TENANT");
      expect(await shared.rows("session")).toBe(sessions);
      const jane = await shared.as("jane", place);
      expect((await jane.get("/passkey/list-user-passkeys")).data).toEqual([]);
      const { data } = await jane.get<Options>("/passkey/generate-register-options");
      expect(data.excludeCredentials ?? []).toEqual([]);
      for (const path of ["/passkey/update-passkey", "/passkey/delete-passkey"]) {
        const touched = await shared.unchanged(() => jane.post(path, { id, name: "Stolen" }));
        expect(touched.status, path).toBeGreaterThanOrEqual(400);
      }
    }
  });
});
