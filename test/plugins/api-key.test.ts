import { apiKey } from "@better-auth/api-key";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import {
  createWorld,
  ELSEWHERE,
  expectRefused,
  type SessionAnswer,
  shareWorld,
  type Where,
  type World,
} from "../support/world";

const plugins = () => [apiKey({ enableSessionForAPIKeys: true })];

interface Verifier {
  verifyApiKey(input: { body: { key: string } }): Promise<{ valid: boolean }>;
}

async function createKey(world: World, where: Where) {
  const person = await world.as("jane", where);
  const { data } = await person.post<{ id: string; key: string }>("/api-key/create", {});
  const verifier = world.api as unknown as Verifier;
  const verify = async () => (await verifier.verifyApiKey({ body: { key: data.key } })).valid;
  return { person, id: data.id, withKey: { headers: { "x-api-key": data.key } }, verify };
}

describe("apiKey with a scoped model", () => {
  const world = shareWorld({ plugins: plugins(), tenant: { scopedModels: ["apikey"] } });

  it("R3: is a session in its tenant, and nothing elsewhere, where nothing counts it", async () => {
    const { person, withKey } = await createKey(world, "acme");
    const { data } = await world.at("acme").get<SessionAnswer>("/get-session", withKey);
    expect(data.user).toMatchObject({ id: person.id, tenantId: world.ids.acme });
    for (const path of ["/get-session", "/list-sessions"]) {
      const use = (browser: { get: typeof person.get }) => browser.get(path, withKey);
      await world.goodAtAcmeOnly(use, 401, "INVALID_API_KEY");
    }
    const changed = await world.at("acme").post("/update-user", { name: "Robot" }, withKey);
    expect(changed.status).toBe(200);
  });

  it("is verified by the server inside its tenant only, and goes with it", async () => {
    const { id } = await world.createTenant();
    const { verify } = await createKey(world, id);
    expect(await runInTenant(id, verify)).toBe(true);
    expect(await runInTenant(String(world.ids.globex), verify)).toBe(false);
    expect(await verify()).toBe(false);
    await world.api.deleteTenant({ body: { tenantId: id } });
    expect(await world.rowsIn(id, "apikey")).toEqual([]);
  });
});

it.each(ELSEWHERE)("R8: a shared key of Acme is no session on %s", async (place) => {
  const world = await createWorld({ plugins: plugins(), tenant: { sharedModels: ["apikey"] } });
  const { withKey } = await createKey(world, "acme");
  for (const answer of [
    await world.at(place).get("/get-session", withKey),
    await world.at(place).post("/update-user", { name: "X" }, withKey),
  ]) {
    expectRefused(answer, 401, "INVALID_REFERENCE_ID_FROM_API_KEY");
  }
  expect(await world.rows("user", "name = 'X'")).toBe(0);
});
