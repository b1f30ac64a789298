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

const KINDS = [
  ["Redis alone", false],
  ["Redis and the database", true],
] as const;

describe.runIf(servers.asked).each(KINDS)("redis-storage, sessions in %s", (_, inDatabase) => {
  it("the same person has three sessions, each good in one place", async () => {
    const world = await createRedisWorld(inDatabase);
    const janes = await world.janes();
    for (const place of PLACES) {
      const who = { id: janes[place].id, tenantId: world.ids[place] };
      expect(await world.whoIs(janes[place])).toMatchObject(who);
      const elsewhere = place === "acme" ? "globex" : "acme";
      expect(await world.whoIs(janes[place], elsewhere)).toBe(null);
    }
  });

  it("R10: what a tenant keeps has its label, and the tenant in its key, and goes with it", async () => {
    const world = await createRedisWorld(inDatabase);
    const tenantId = String(world.ids.acme);
    const jane = await world.as("jane", "acme");
    const entries = await world.contents();
    expect(JSON.parse(entries[jane.token] ?? "{}")).toMatchObject({ tenantAuth: { tenantId } });
    const keys = Object.keys(entries).filter((key) => key.includes("active-sessions-"));
    expect(keys).toEqual([expect.stringContaining(`tenant:${tenantId}:`)]);

    const other = await world.as("jane", "globex");
    await world.api.deleteTenant({ body: { tenantId } });
    for (const where of ["globex", "platform"]) expect(await world.whoIs(jane, where)).toBe(null);
    expect(await world.whoIs(other)).toMatchObject({ id: other.id });
    const left = JSON.stringify(await world.contents());
    for (const gone of [jane.token, tenantId]) expect(left).not.toContain(gone);
  });

  it.each(ELSEWHERE)(
    "R6: a reset token of Acme changes a password there, and none on %s",
    async (place) => {
      const world = await createRedisWorld(inDatabase);
      const { at, lastMail, signIn } = world;
      await world.janes();
      await at("acme").post("/request-password-reset", { email: EMAIL, redirectTo: "/reset" });
      const token = new URL(lastMail("reset").url).pathname.split("/").pop() ?? "";
      const newPassword = "another long password";
      const reset = async (where: typeof place | "acme") =>
        (await at(where).post("/reset-password", { token, newPassword })).status;
      // Without a name, a sealed token leads into its own tenant.
      expect(await reset(place)).toBe(place === "globex" ? 400 : 200);
      if (place === "globex") expect(await reset("acme")).toBe(200);
      expect(await reset("acme")).toBe(400);
      expect((await signIn("acme", EMAIL, newPassword)).status).toBe(200);
      expect((await signIn(place, EMAIL, newPassword)).status).toBe(401);
    },
  );
});
