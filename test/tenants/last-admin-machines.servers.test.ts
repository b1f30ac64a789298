import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInTenant } from "../../src/index";
import { cleanUpCopies, secondCopy } from "../configurations/second-copy";
import { interceptStatements } from "../faults/faults";
import { createDatabase } from "../support/database";
import { gate } from "../support/gate";
import { createInstance, PASSWORD } from "../support/instance";
import { servers } from "../support/servers";

cleanUpCopies();

type Kind = (typeof servers.kinds)[number];

/**
 * Two administrators of a tenant, each at a machine of their own: another copy of the package takes
 * its own turns, and only the database is between the two.
 */
async function createMachines(kind: Kind) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  let held: ReturnType<typeof gate> | undefined;
  interceptStatements(database, async (sql, { send }) => {
    if (!held || !/^commit/i.test(sql)) return send();
    const { pass } = held;
    held = undefined;
    await pass();
    return send();
  });
  const options = {
    database,
    tenant: { tenantRoles: { admin: ["tenant:get" as const] } },
    auth: { user: { deleteUser: { enabled: true } } },
  };
  const first = await createInstance(options);
  const { tenantAuth } = await secondCopy();
  const second = await createInstance({ ...options, tenantAuth, migrate: false });
  const { id: tenantId } = await first.createTenant();
  const [a, b] = await Promise.all(
    [first, second].map(async (machine) => {
      const { user, email } = await machine.signUp(tenantId, `${crypto.randomUUID()}@example.com`);
      await runInTenant(tenantId, () =>
        machine.context.internalAdapter.updateUser(user.id, { role: "admin" }),
      );
      const browser = machine.browser({ "x-tenant-id": tenantId });
      await browser.post("/sign-in/email", { email, password: PASSWORD });
      return { id: user.id, browser };
    }),
  );
  if (!a || !b) throw new Error("two machines, two people");
  return {
    a,
    b,
    /** The next commit waits. */
    holdCommit: () => {
      held = gate();
      return held;
    },
    left: () => {
      const { quote } = database;
      const isAdmin = `role = 'admin' and (banned is null or not banned)`;
      return first.rows("user", `${isAdmin} and ${quote("tenantId")} = ?`, [tenantId]);
    },
  };
}

type Person = Awaited<ReturnType<typeof createMachines>>["a"];

const WAYS: Record<string, (from: Person, whom: Person) => ReturnType<Person["browser"]["post"]>> =
  {
    demote: (from, whom) => from.browser.post("/admin/set-role", { userId: whom.id, role: "user" }),
    ban: (from, whom) => from.browser.post("/admin/ban-user", { userId: whom.id }),
    "delete themselves": (from) => from.browser.post("/delete-user", { password: PASSWORD }),
  };

describe.runIf(servers.asked).each(servers.kinds)("on %s", (kind) => {
  it.each(Object.keys(WAYS))(
    "two at two machines who %s at the same moment leave one",
    async (name) => {
      const { a, b, holdCommit, left } = await createMachines(kind);
      const take = WAYS[name] as (typeof WAYS)[string];
      expect(await left()).toBe(2);
      const commit = holdCommit();
      const first = take(a, b);
      await commit.reached;
      // The first has done everything but for its commit, which the second cannot see.
      const second = take(b, a);
      await Promise.race([second, sleep(500)]);
      commit.open();
      const answers = await Promise.all([first, second]);
      // better-auth ends the sessions of somebody who is removed before it removes them.
      const refusal = name === "remove" ? [401, undefined] : [409, "LAST_ADMIN"];
      expect(answers.map(({ status, code }) => [status, code])).toEqual([
        [200, undefined],
        refusal,
      ]);
      expect(await left()).toBe(1);
    },
  );
});
