import { apiKey } from "@better-auth/api-key";
import { describe, expect, it } from "vitest";
import { runInTenant, type TenantAuthOptions } from "../../src/index";
import { createPlaces, ELSEWHERE, expectRefused, type SessionAnswer } from "./places";

interface Verifier {
  verifyApiKey(input: { body: { key: string } }): Promise<{ valid: boolean }>;
}

async function createKeyPlaces(tenant: TenantAuthOptions = { scopedModels: ["apikey"] }) {
  const places = await createPlaces([apiKey({ enableSessionForAPIKeys: true })], {
    tenant,
  });
  const person = await places.signUp("a");
  const { data, status } = await person.browser.post<{ id: string; key: string }>(
    "/api-key/create",
    { name: "Robot" },
  );
  expect(status).toBe(200);
  const verifier = places.instance.auth.api as unknown as Verifier;
  return {
    ...places,
    person,
    key: data,
    withKey: { headers: { "x-api-key": data.key } },
    verify: () => verifier.verifyApiKey({ body: { key: data.key } }),
  };
}

describe("apiKey with a scoped model", () => {
  it("is a session in its tenant", async () => {
    const { at, person, withKey, ids } = await createKeyPlaces();
    const { data } = await at("a").get<SessionAnswer>("/get-session", withKey);
    expect(data.user).toMatchObject({ id: person.user.id, tenantId: ids.a });
    const changed = await at("a").post("/update-user", { name: "Robot" }, withKey);
    expect(changed.status).toBe(200);
  });

  it.each(ELSEWHERE)("R3: a key of A is no key on %s, and nothing counts it", async (place) => {
    const { at, withKey, unchanged } = await createKeyPlaces();
    const session = await unchanged(() => at(place).get("/get-session", withKey));
    expectRefused(session, 401, "INVALID_API_KEY");
    const change = await unchanged(() => at(place).post("/update-user", { name: "X" }, withKey));
    expectRefused(change, 401, "INVALID_API_KEY");
  });

  it.each(ELSEWHERE)("R3: a key of A cannot be seen or touched by id on %s", async (place) => {
    const { signUp, key, unchanged } = await createKeyPlaces();
    const { browser } = await signUp(place);
    const got = await browser.get("/api-key/get", { query: { id: key.id } });
    expectRefused(got, 404, "KEY_NOT_FOUND");
    const body = { keyId: key.id, name: "Stolen" };
    for (const path of ["/api-key/update", "/api-key/delete"]) {
      expectRefused(await unchanged(() => browser.post(path, body)), 404, "KEY_NOT_FOUND");
    }
    expect((await browser.get<{ total: number }>("/api-key/list")).data.total).toBe(0);
  });

  it("the server verifies it inside its tenant only", async () => {
    const { verify, ids } = await createKeyPlaces();
    expect((await runInTenant(ids.a ?? "", verify)).valid).toBe(true);
    expect((await runInTenant(ids.b ?? "", verify)).valid).toBe(false);
    expect((await verify()).valid).toBe(false);
  });

  it("goes with its tenant", async () => {
    const { instance, ids, rows } = await createKeyPlaces();
    await instance.api.deleteTenant({ body: { tenantId: ids.a ?? "" } });
    expect(await rows("apikey")).toBe(0);
  });
});

describe("apiKey with a shared model", () => {
  it.each(ELSEWHERE)("R8: a key of A is no session on %s", async (place) => {
    const { at, withKey, rows } = await createKeyPlaces({ sharedModels: ["apikey"] });
    const session = await at(place).get("/get-session", withKey);
    expectRefused(session, 401, "INVALID_REFERENCE_ID_FROM_API_KEY");
    const change = await at(place).post("/update-user", { name: "X" }, withKey);
    expectRefused(change, 401, "INVALID_REFERENCE_ID_FROM_API_KEY");
    expect(await rows("user", "name = 'X'")).toBe(0);
  });
});
