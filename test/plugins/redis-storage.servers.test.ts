import { randomBytes } from "node:crypto";
import { redisStorage } from "@better-auth/redis-storage";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { servers } from "../support/database";
import { createWorld, ELSEWHERE, EMAIL, PLACES } from "../support/world";

/** The package on a real Redis, with keys of its own for each test. */
async function createRedisWorld(storeSessionInDatabase: boolean) {
  const keyPrefix = `test-${randomBytes(8).toString("hex")}:`;
  const client = new Redis({ host: "127.0.0.1", port: 6379 });
  const storage = redisStorage({ client, keyPrefix });
  onTestFinished(async () => {
    await storage.clear();
    await client.quit();
  });
  const world = await createWorld({
    auth: {
      secondaryStorage: storage,
      session: { storeSessionInDatabase },
      rateLimit: { enabled: true, storage: "secondary-storage", window: 60, max: 1000 },
    },
  });
  /** What is in Redis, as anybody with a shell would see it. */
  async function contents() {
    const keys = await client.keys(`${keyPrefix}*`);
    const entries = keys.map(async (key) => [key.slice(keyPrefix.length), await client.get(key)]);
    return Object.fromEntries(await Promise.all(entries)) as Record<string, string>;
  }
  return { ...world, contents };
}

describe.runIf(servers.asked).each([
  ["Redis alone", false],
  ["Redis and the database", true],
] as const)("redis-storage, sessions in %s", (_, inDatabase) => {
  it("R5, R10: the same person has three sessions, which have their label and go with the tenant", async () => {
    const world = await createRedisWorld(inDatabase);
    const tenantId = String(world.ids.acme);
    const { acme: jane, ...others } = await world.janes();
    for (const place of PLACES) {
      const { id } = { ...others, acme: jane }[place];
      expect(await world.whoIs(await world.as("jane", place))).toMatchObject({ id });
    }
    expect(await world.whoIs(jane, "globex")).toBe(null);
    const entries = await world.contents();
    expect(JSON.parse(entries[jane.token] ?? "{}")).toMatchObject({ tenantAuth: { tenantId } });
    const keys = Object.keys(entries).filter((key) => key.includes("active-sessions-"));
    const ofAcme = keys.filter((key) => key.includes(jane.id));
    expect(ofAcme).toEqual([expect.stringContaining(`tenant:${tenantId}:`)]);

    await world.api.deleteTenant({ body: { tenantId } });
    for (const where of ELSEWHERE) expect(await world.whoIs(jane, where)).toBe(null);
    expect(await world.whoIs(others.globex)).toMatchObject({ id: others.globex.id });
    const left = JSON.stringify(await world.contents());
    for (const gone of [jane.token, tenantId]) expect(left).not.toContain(gone);
  });

  it("R6: a reset token of Acme changes a password there, and none at Globex", async () => {
    const { at, lastMail, signIn, janes } = await createRedisWorld(inDatabase);
    await janes();
    await at("acme").post("/request-password-reset", { email: EMAIL, redirectTo: "/reset" });
    const { token } = lastMail("reset");
    const newPassword = "another long password";
    const reset = async (where: "acme" | "globex") =>
      (await at(where).post("/reset-password", { token, newPassword })).status;
    const statuses = [await reset("globex"), await reset("acme"), await reset("acme")];
    expect(statuses).toEqual([400, 200, 400]);
    expect((await signIn("acme", EMAIL, newPassword)).status).toBe(200);
    expect((await signIn("globex", EMAIL, newPassword)).status).toBe(401);
  });
});
