import { randomBytes } from "node:crypto";
import { redisStorage } from "@better-auth/redis-storage";
import { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { servers } from "../support/database";
import { createWorld, ELSEWHERE, EMAIL } from "../support/world";

it.runIf(servers.asked).each([
  ["Redis alone", false],
  ["Redis and the database", true],
])("R5, R6, R10: redis-storage, sessions in %s", async (_, storeSessionInDatabase) => {
  const keyPrefix = `test-${randomBytes(8).toString("hex")}:`;
  const client = new Redis({ host: "127.0.0.1", port: 6379 });
  const secondaryStorage = redisStorage({ client, keyPrefix });
  onTestFinished(async () => {
    await secondaryStorage.clear();
    await client.quit();
  });
  const rateLimit = { enabled: true, storage: "secondary-storage", window: 60, max: 1000 } as const;
  const auth = { secondaryStorage, session: { storeSessionInDatabase }, rateLimit };
  const world = await createWorld({ auth });
  const { acme: jane, globex } = await world.janes();
  expect(await world.whoIs(jane)).toMatchObject({ id: jane.id });
  expect(await world.whoIs(jane, "globex")).toBe(null);
  const tenantId = world.ids.acme;
  const stored = (await client.get(`${keyPrefix}tenant:${tenantId}:${jane.token}`)) ?? "{}";
  expect(JSON.parse(stored)).toMatchObject({ user: { id: jane.id } });

  await world.at("acme").post("/request-password-reset", { email: EMAIL });
  const body = { token: world.lastMail("reset").token, newPassword: "another long password" };
  const reset = async (where: "acme" | "globex") =>
    (await world.at(where).post("/reset-password", body)).status;
  expect([await reset("globex"), await reset("acme"), await reset("acme")]).toEqual([
    400, 200, 400,
  ]);

  await world.api.deleteTenant({ body: { tenantId } });
  for (const where of ELSEWHERE) expect(await world.whoIs(jane, where)).toBe(null);
  expect(await world.whoIs(globex)).toMatchObject({ id: globex.id });
  // As anybody with a shell would see it.
  const keys = await client.keys(`${keyPrefix}*`);
  const left = await Promise.all(keys.map(async (key) => key + (await client.get(key))));
  for (const gone of [jane.token, tenantId]) expect(left.join()).not.toContain(gone);
});
