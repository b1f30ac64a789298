import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import { bearer, customSession, deviceAuthorization, jwt, multiSession } from "better-auth/plugins";
import { expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createAuthenticator } from "../../src/testing/makers/authenticator";
import { PASSWORD } from "../support/instance";
import {
  approveDevice,
  createWorld,
  ELSEWHERE,
  EMAIL,
  expectRefused,
  PLACES,
  type SessionAnswer,
  shareWorld,
} from "../support/world";

const world = shareWorld({ plugins: [bearer(), jwt(), multiSession()] });

it("bearer hands the token out at this plugin's own sign-in", async () => {
  await world.as("jane", "acme");
  const body = { email: EMAIL, password: PASSWORD, tenantId: world.ids.acme };
  const answer = await world.at("platform").post("/tenant/sign-in/email", body);
  const headers = { authorization: `Bearer ${answer.headers.get("set-auth-token")}` };
  const { data } = await world.at("acme").get<SessionAnswer>("/get-session", { headers });
  expect(data.session.tenantId).toBe(world.ids.acme);
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

it("customSession runs in the tenant of the session", async () => {
  const plugins = [customSession(async ({ user }) => ({ user, ranIn: getTenantId() }))];
  const custom = await createWorld({ plugins });
  for (const place of ["acme", "platform"] as const) {
    const jane = await custom.as("jane", place);
    const answer = { user: expect.objectContaining({ id: jane.id }), ranIn: custom.ids[place] };
    // R5: it is none elsewhere, and its cookie stays. R4: unnamed it leads home.
    const elsewhere = custom.at("globex", jane);
    expect((await elsewhere.get("/get-session")).data).toBe(null);
    expect((await custom.at("platform", elsewhere).get("/get-session")).data).toEqual(answer);
  }
});

/** Whose tables tenants share: isolation keeps users apart all the same. */
const shared = shareWorld({
  plugins: [apiKey({ enableSessionForAPIKeys: true }), deviceAuthorization(), passkey()],
  tenant: { sharedModels: ["apikey", "deviceCode", "passkey"] },
});

it.each(ELSEWHERE)("R8: a shared API key of Acme is no session on %s", async (place) => {
  const jane = await shared.as("jane", "acme");
  const { key } = (await jane.post<{ key: string }>("/api-key/create", {})).data;
  const options = { headers: { "x-api-key": key } };
  const answer = await shared.at(place).post("/update-user", { name: "X" }, options);
  expectRefused(answer, 401, "INVALID_REFERENCE_ID_FROM_API_KEY");
  expect(await shared.rows("user", "name = 'X'")).toBe(0);
});

it.each([
  ["acme", "globex"],
  ["globex", "acme"],
  ["globex", "platform"],
])(
  "R8: a shared device code of Acme that a user of %s approves creates no session on %s",
  async (by, where) => {
    const person = await shared.as("jane", by);
    const sessions = await shared.rows("session");
    const body = await approveDevice(shared.at("acme"), person);
    const refused = await shared.at(where).post("/device/token", body);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.data.access_token).toBe(undefined);
    expect(await shared.rows("session")).toBe(sessions);
  },
);

// Found by its credential wherever it is used.
it.each(ELSEWHERE)("R8: a shared passkey of Acme is nothing on %s", async (place) => {
  const ORIGIN = "http://localhost:3000";
  type Options = { challenge: string; excludeCredentials?: { id: string }[] };
  const authenticator = await createAuthenticator("localhost");
  const ada = await shared.as(`wanted-on-${place}`, "acme");
  const options = await ada.get<Options>("/passkey/generate-register-options");
  const made = { response: await authenticator.register(options.data.challenge, ORIGIN) };
  const { data, status } = await ada.post("/passkey/verify-registration", made);
  expect(status).toBe(200);
  const sessions = await shared.rows("session");
  const window = shared.at(place);
  const asked = await window.get<Options>("/passkey/generate-authenticate-options");
  const proof = { response: await authenticator.assert(asked.data.challenge, ORIGIN) };
  const signedIn = await window.post("/passkey/verify-authentication", proof);
  expectRefused(signedIn, 403, "USER_NOT_IN_TENANT");
  expect(await shared.rows("session")).toBe(sessions);
  const jane = await shared.as("jane", place);
  expect((await jane.get("/passkey/list-user-passkeys")).data).toEqual([]);
  const more = await jane.get<Options>("/passkey/generate-register-options");
  expect(more.data.excludeCredentials ?? []).toEqual([]);
  for (const path of ["/passkey/update-passkey", "/passkey/delete-passkey"]) {
    const touch = () => jane.post(path, { id: data.id, name: "Stolen" });
    expect((await shared.unchanged(touch)).status, path).toBeGreaterThanOrEqual(400);
  }
});
