import type { BetterAuthOptions } from "better-auth";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase } from "../support/database";
import { createInstance } from "../support/instance";
import { everyCase } from "../support/matrix";
import { createStorage } from "../support/stores";
import { injectFaults, leftOf } from "./faults";

type SecondaryStorage = NonNullable<BetterAuthOptions["secondaryStorage"]>;

/** A storage whose n-th call fails, once it is told which. */
function faultyStorage() {
  let countdown = 0;
  const faulty = Object.entries(createStorage()).map(([name, call]) => [
    name,
    async (...args: unknown[]) => {
      if (--countdown === 0) throw new Error("Connection is closed.");
      return (call as (...args: unknown[]) => unknown)(...args);
    },
  ]);
  const storage = Object.fromEntries(faulty);
  /** Whether there were so many calls. */
  const during = async (n: number, run: () => Promise<unknown>) => {
    countdown = n;
    await run();
    const met = countdown <= 0;
    countdown = 0;
    return met;
  };
  return { storage, during };
}

describe("a deletion that stumbles is finished by the next one", () => {
  async function start(transaction: boolean, secondaryStorage?: SecondaryStorage) {
    const database = await createDatabase("sqlite");
    onTestFinished(() => database.close());
    database.option.transaction = transaction;
    const faults = injectFaults(database);
    const app = await createInstance({
      database,
      auth: secondaryStorage ? { secondaryStorage } : {},
    });
    const neighbour = await app.signUp((await app.createTenant()).id);

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

    return { faults, stumble };
  }

  type Trouble = (n: number, run: () => Promise<unknown>) => Promise<unknown>;

  /** What goes wrong in which of the deletions, each troubled one step later than the one before. */
  async function everyStep(
    stumble: Awaited<ReturnType<typeof start>>["stumble"],
    trouble: Trouble,
  ) {
    const problems: string[] = [];
    for (let n = 1; ; n++) {
      const found = await stumble((run) => trouble(n, run));
      if (!found) return problems;
      problems.push(...found);
    }
  }

  const PLACES: [name: string, transaction: boolean, inStorage: boolean][] = [
    ["the adapter has no transactions", false, false],
    ["sessions are in secondary storage", true, true],
    ["there are no transactions, and a storage", false, true],
  ];
  // The last of them has the conditions of both others.
  it.each(everyCase ? PLACES : PLACES.slice(2))("where %s", async (_, transaction, inStorage) => {
    const storage = inStorage ? createStorage() : undefined;
    const { faults, stumble } = await start(transaction, storage);
    for (const fault of faults.kinds) {
      const trouble: Trouble = async (n, run) => (await faults.during(fault, n, run)).statement;
      expect(await everyStep(stumble, trouble)).toEqual([]);
    }
  });

  it("where it is the secondary storage that fails", async () => {
    const { storage, during } = faultyStorage();
    const { stumble } = await start(true, storage);
    const trouble: Trouble = async (n, run) => (await during(n, run)) && `call ${n}`;
    expect(await everyStep(stumble, trouble)).toEqual([]);
  });
});
