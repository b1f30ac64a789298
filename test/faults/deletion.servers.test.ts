import type { BetterAuthOptions } from "better-auth";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase } from "../support/database";
import { createInstance } from "../support/instance";
import { everyCase } from "../support/matrix";
import { mapStorage } from "../support/stores";
import { injectFaults, leftOf } from "./faults";

type SecondaryStorage = NonNullable<BetterAuthOptions["secondaryStorage"]>;

/** A storage whose n-th call fails, once it is told which. */
function faultyStorage() {
  let countdown = 0;
  let met = false;
  const storage = Object.fromEntries(
    Object.entries(mapStorage().storage).map(([name, call]) => [
      name,
      async (...args: [never, never, never]) => {
        if (--countdown === 0) {
          met = true;
          throw new Error("Connection is closed.");
        }
        return call(...args);
      },
    ]),
  ) as unknown as SecondaryStorage;
  return {
    storage,
    async during(n: number, run: () => Promise<unknown>) {
      met = false;
      countdown = n;
      await run();
      countdown = 0;
      return met;
    },
  };
}

describe("a deletion that stumbles is finished by the next one", () => {
  async function start({
    transaction = true,
    inStorage = false,
    storage = inStorage ? mapStorage().storage : undefined,
  }: {
    transaction?: boolean;
    inStorage?: boolean;
    storage?: SecondaryStorage;
  } = {}) {
    const database = await createDatabase("sqlite");
    onTestFinished(() => database.close());
    database.option.transaction = transaction;
    const faults = injectFaults(database);
    const app = await createInstance({
      database,
      auth: storage ? { secondaryStorage: storage } : {},
    });
    const { id: otherId } = await app.createTenant();
    const neighbour = await app.signUp(otherId);

    /** A tenant with everything in it, its deletion, and what is wrong when that is through. */
    async function prepare() {
      const { id: tenantId } = await app.createTenant();
      const member = await app.signUp(tenantId, "member@example.com");
      const config = { providerId: "google", clientId: "id", clientSecret: "secret" };
      await app.api.registerTenantOAuthConfig({ body: { tenantId, ...config } });
      const remove = () =>
        app.api.deleteTenant({ body: { tenantId } }).then(
          () => "deleted",
          (error) => String(error.body?.code ?? error.message),
        );
      async function whatIsLeft() {
        const left = await leftOf(app, tenantId);
        const { data } = await member.browser.get("/get-session");
        return data ? [...left, "a session that is good"] : left;
      }
      return { remove, whatIsLeft };
    }

    /** What is wrong after the next deletion; null when this one was not troubled any more. */
    async function stumble(trouble: (run: () => Promise<unknown>) => Promise<unknown>) {
      const { remove, whatIsLeft } = await prepare();
      const where = await trouble(remove);
      if (!where) return null;
      const next = await remove();
      const left = await whatIsLeft();
      expect((await neighbour.browser.get("/get-session")).data).not.toBeNull();
      const done = ["deleted", "TENANT_NOT_FOUND"].includes(next) && left.length === 0;
      return done ? [] : [`${where}: next time ${next}, left: ${left.join(", ") || "nothing"}`];
    }

    const everyStatement = async () => {
      const problems: string[] = [];
      for (const fault of faults.kinds) {
        for (let n = 1; ; n++) {
          const found = await stumble(
            async (run) => (await faults.during(fault, n, run)).statement,
          );
          if (!found) break;
          problems.push(...found);
        }
      }
      return problems;
    };
    return { stumble, everyStatement };
  }

  const PLACES: [name: string, options: Parameters<typeof start>[0]][] = [
    ["the adapter has no transactions", { transaction: false }],
    ["sessions are in secondary storage", { inStorage: true }],
    ["there are no transactions, and a storage", { transaction: false, inStorage: true }],
  ];
  // The last of them has the conditions of both others.
  it.each(everyCase ? PLACES : PLACES.slice(2))("where %s", async (_, options) => {
    const { everyStatement } = await start(options);
    expect(await everyStatement()).toEqual([]);
  });

  it("where it is the secondary storage that fails", async () => {
    const { storage, during } = faultyStorage();
    const { stumble } = await start({ storage });
    const problems: string[] = [];
    for (let n = 1; ; n++) {
      const found = await stumble(async (run) => (await during(n, run)) && `call ${n}`);
      if (!found) break;
      problems.push(...found);
    }
    expect(problems).toEqual([]);
  });
});
