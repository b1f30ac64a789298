import { randomBytes } from "node:crypto";
import { redisStorage } from "@better-auth/redis-storage";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { servers } from "../support/servers";
import { createPlaces, ELSEWHERE, EMAIL, PLACES } from "./places";

/** The package on a real Redis, with keys of its own for each test. */
async function createRedisPlaces(storeSessionInDatabase = false) {
  const keyPrefix = `test-${randomBytes(8).toString("hex")}:`;
  const client = new Redis({ host: "127.0.0.1", port: 6379 });
  const storage = redisStorage({ client, keyPrefix });
  onTestFinished(async () => {
    await storage.clear();
    await client.quit();
  });
  const mails: { to: string; url: string }[] = [];
  const places = await createPlaces([], {
    auth: {
      secondaryStorage: storage,
      session: { storeSessionInDatabase },
      emailAndPassword: {
        enabled: true,
        sendResetPassword: async ({ user, url }) => void mails.push({ to: user.id, url }),
      },
      rateLimit: { enabled: true, storage: "secondary-storage", window: 60, max: 1000 },
    },
  });
  /** What is in Redis, as anybody with a shell would see it. */
  async function contents() {
    const keys = await client.keys(`${keyPrefix}*`);
    const entries = keys.map(async (key) => [key.slice(keyPrefix.length), await client.get(key)]);
    return Object.fromEntries(await Promise.all(entries)) as Record<string, string>;
  }
  return { ...places, storage, contents, mails };
}

const both = [
  ["Redis alone", false],
  ["Redis and the database", true],
] as const;

describe.runIf(servers.asked).each(both)("redis-storage, sessions in %s", (_, inDatabase) => {
  it("the same person has three sessions, each good in one place", async () => {
    const { signUp, whoIs, ids } = await createRedisPlaces(inDatabase);
    for (const place of PLACES) {
      const { browser, user } = await signUp(place);
      expect(await whoIs(browser, place)).toMatchObject({ id: user.id, tenantId: ids[place] });
      const others = PLACES.filter((other) => other !== place && other !== "platform");
      for (const other of others) expect(await whoIs(browser, other)).toBeNull();
    }
  });

  it("R10: what a tenant keeps has its label, and the tenant in its key", async () => {
    const { signUp, contents, ids } = await createRedisPlaces(inDatabase);
    const { token } = await signUp("a");
    const entries = await contents();
    expect(JSON.parse(entries[token] ?? "{}")).toMatchObject({ tenantAuth: { tenantId: ids.a } });
    const keys = Object.keys(entries);
    expect(keys.filter((key) => key.includes("active-sessions-"))).toEqual([
      expect.stringContaining(`tenant:${ids.a}:`),
    ]);
  });

  it.each(ELSEWHERE)(
    "R6: a reset token of A changes a password at A, and none on %s",
    async (place) => {
      const { signUp, at, mails, ids } = await createRedisPlaces(inDatabase);
      await signUp("a");
      await signUp(place);
      await at("a").post("/request-password-reset", { email: EMAIL, redirectTo: "/reset" });
      const [mail] = mails;
      const token = new URL(mail?.url ?? "").pathname.split("/").pop() ?? "";
      const body = { token, newPassword: "another long password" };
      const other = await at(place).post("/reset-password", body, {
        headers: { "x-tenant-id": place === "b" ? (ids.b ?? "") : "" },
      });
      // Without a name, a sealed token leads into its own tenant.
      expect(other.status).toBe(place === "b" ? 400 : 200);
      if (place === "b") expect((await at("a").post("/reset-password", body)).status).toBe(200);
      expect((await at("a").post("/reset-password", body)).status).toBe(400);
      const signIn = { email: EMAIL, password: "another long password" };
      expect((await at("a").post("/sign-in/email", signIn)).status).toBe(200);
      expect((await at(place).post("/sign-in/email", signIn)).status).toBe(401);
    },
  );

  it("the sessions of a tenant go with it, out of Redis as well", async () => {
    const { signUp, whoIs, instance, ids, contents } = await createRedisPlaces(inDatabase);
    const a = await signUp("a");
    const b = await signUp("b");
    await instance.api.deleteTenant({ body: { tenantId: ids.a ?? "" } });
    expect(await whoIs(a.browser, "b")).toBeNull();
    expect((await a.browser.fork({}).get("/get-session")).data).toBeNull();
    expect(await whoIs(b.browser, "b")).toMatchObject({ id: b.user.id });
    const left = JSON.stringify(await contents());
    expect(left).not.toContain(a.token);
    expect(left).not.toContain(String(ids.a));
  });
});
