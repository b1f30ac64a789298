import { apiKey } from "@better-auth/api-key";
import { organization } from "better-auth/plugins";
import { expect, it } from "vitest";
import { runInTenant } from "../../../src/index";
import { mapStorage } from "../../support/stores";
import { createWorld, expectRefused, type Place } from "../../support/world";

interface KeyVerifier {
  verifyApiKey(input: { body: { key: string } }): Promise<{ valid: boolean }>;
}

const KEPT = [
  ["in the database", {}],
  ["in a secondary storage", { storage: "secondary-storage" }],
] as const;
const CASES = KEPT.flatMap(([where, keys]) =>
  (["acme", "platform"] as const).map((place) => [where, place, keys] as const),
);

async function start(place: Place, keys: object) {
  const world = await createWorld({
    auth: { secondaryStorage: mapStorage().storage, session: { storeSessionInDatabase: true } },
    plugins: [
      organization(),
      apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false }, ...keys }),
    ],
    tenant: { scopedModels: ["apikey", "organization", "member", "invitation"] },
  });
  const [jane, bob] = [await world.as("jane", place), await world.as("bob", place)];
  const keyOf = async (person: typeof jane) =>
    (await person.post<{ key: string }>("/api-key/create", { name: "key" })).data.key;
  const own = { jane: await keyOf(jane), bob: await keyOf(bob) };
  const machine = (key: string) => world.browser({ ...world.naming(place), "x-api-key": key });
  const verify = (key: string) => {
    const { verifyApiKey } = world.api as unknown as KeyVerifier;
    const run = async () => (await verifyApiKey({ body: { key } })).valid;
    const id = world.idOf(place);
    return id === null ? run() : runInTenant(id, run);
  };
  return { world, jane, bob, own, machine, verify };
}

it.each(CASES)("a key %s, at %s, is none while its user is banned", async (_, place, keys) => {
  const { world, jane, bob, own, machine, verify } = await start(place, keys);
  for (const key of Object.values(own)) {
    expect(await world.whoIs(machine(key))).not.toBeNull();
    expect(await verify(key)).toBe(true);
  }
  const admin = await world.as("admin", place);
  const userId = jane.id;
  expect((await admin.post("/admin/ban-user", { userId })).status).toBe(200);
  expectRefused(await machine(own.jane).get("/get-session"), 401, "INVALID_API_KEY");
  expect(await verify(own.jane)).toBe(false);
  // The others' keys stay, and hers is one again with her.
  expect(await world.whoIs(machine(own.bob))).toMatchObject({ id: bob.id });
  expect(await verify(own.bob)).toBe(true);
  expect((await admin.post("/admin/unban-user", { userId })).status).toBe(200);
  expect(await verify(own.jane)).toBe(true);
});

it.each(CASES)("a key %s, at %s, is none once its user is gone", async (_, place, keys) => {
  const { world, jane, own, machine, verify } = await start(place, keys);
  // Not by an endpoint, which may delete the key as well.
  const table = world.database.quote("user");
  await world.database.query(`delete from ${table} where id = ?`, [jane.id]);
  expectRefused(await machine(own.jane).get("/get-session"), 401, "INVALID_API_KEY");
  expect(await verify(own.jane)).toBe(false);
  expect(await verify(own.bob)).toBe(true);
});

it("a key of an organization stays valid", async () => {
  const { jane, verify } = await start("acme", { references: "organization" });
  const { data } = await jane.post<{ id: string }>("/organization/create", {
    name: "A",
    slug: "a",
  });
  const body = { name: "key", organizationId: data.id };
  const answer = await jane.post<{ key: string }>("/api-key/create", body);
  expect(await verify(answer.data.key)).toBe(true);
});
