import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createDatabase, servers } from "../support/database";
import { createInstance, type Instance } from "../support/instance";
import { buildForProcesses } from "../support/processes";
import type { Order } from "./doomed";
import { TABLES } from "./faults";

let built: Awaited<ReturnType<typeof buildForProcesses>> | undefined;

beforeAll(async () => {
  if (servers.asked) built = await buildForProcesses(join(import.meta.dirname, "doomed.ts"));
}, 60_000);

afterAll(() => built?.remove());

const USERS = 3000;

/** A tenant with thousands of users, written past better-auth: signing them up would take minutes. */
async function populate({ database, createTenant, api }: Instance, users: number) {
  const { id: tenantId } = await createTenant();
  const config = { providerId: "google", clientId: "id", clientSecret: "secret" };
  await api.registerTenantOAuthConfig({ body: { tenantId, ...config } });
  const now = new Date();
  const insert = async (table: string, row: (index: number) => Record<string, unknown>) => {
    const columns = Object.keys(row(0));
    for (let start = 0; start < users; start += 1000) {
      const rows = Array.from({ length: Math.min(1000, users - start) }, (_, i) => row(start + i));
      const values = rows.map(() => `(${columns.map(() => "?")})`);
      await database.query(
        `insert into ${database.quote(table)} (${columns.map(database.quote)}) values ${values}`,
        rows.flatMap(Object.values),
      );
    }
  };
  const id = (index: number) => `${tenantId.slice(0, 16)}-${index}`;
  const common = (index: number) => ({ id: id(index), tenantId, createdAt: now, updatedAt: now });
  const owned = (index: number) => ({ ...common(index), userId: id(index) });
  const expiresAt = new Date(Date.now() + 3_600_000);
  await insert("user", (index) => {
    const email = `somebody-${index}@example.com`;
    return { ...common(index), name: "Somebody", email, emailVerified: true };
  });
  const providerId = "credential";
  await insert("account", (index) => ({ ...owned(index), accountId: id(index), providerId }));
  await insert("session", (index) => ({ ...owned(index), token: id(index), expiresAt }));
  const value = { value: "", expiresAt };
  await insert("verification", (index) => ({ ...common(index), identifier: id(index), ...value }));
  return tenantId;
}

/** How many rows of a tenant there are, table by table. */
async function countOf({ database, rows }: Instance, tenantId: string) {
  const counts: Record<string, number> = {};
  for (const table of TABLES) {
    const column = database.quote(table === "tenant" ? "id" : "tenantId");
    counts[table] = await rows(table, `${column} = ?`, [tenantId]);
  }
  return counts;
}

/** Until the server has noticed that somebody is gone, and undone what they had begun. */
async function untilServerHasNoticed({ database }: Instance) {
  const open =
    database.kind === "postgres"
      ? "select 1 from pg_stat_activity where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()"
      : "select 1 from information_schema.innodb_trx join information_schema.processlist on id = trx_mysql_thread_id where db = database()";
  while ((await database.query(open)).length > 0) await sleep(10);
}

async function killWhileDeleting(order: Order) {
  const child = fork(built?.path ?? "", [JSON.stringify(order)]);
  onTestFinished(() => void child.kill("SIGKILL"));
  const exit = once(child, "exit");
  const [said] = await Promise.race([once(child, "message"), exit]);
  child.kill("SIGKILL");
  expect([said, ...(await exit)]).toEqual(["now", null, "SIGKILL"]);
}

type Moment = [Order["moment"], statement: string];

const MOMENTS: Moment[] = [
  ["before", "delete from user"],
  ["during", "delete from user"],
  ["during", "delete from account"],
  ["before", "commit"],
  ["during", "commit"],
  ["after", "commit"],
];

const HOWS: [name: string, how: Order["how"], moments: Moment[]][] = [
  ["a deletion", "delete", [["during", "delete from session"], ...MOMENTS]],
  ["purgeTenants()", "purge", [["after", "update tenant"], ...MOMENTS]],
];

describe.runIf(servers.asked).each(servers.kinds)("a process that is killed on %s", (kind) => {
  it.each(HOWS)(
    "in the middle of %s has deleted everything or nothing",
    async (_, how, moments) => {
      const { instance, order } = await start(kind);
      const neighbour = await populate(instance, 10);
      const neighbourhood = await countOf(instance, neighbour);
      const populateDue = async () => {
        const tenantId = await populate(instance, USERS);
        const everything = await countOf(instance, tenantId);
        if (how === "delete") return { tenantId, everything };
        // Somebody has deleted it a while ago: it is suspended, and has no sessions.
        await instance.api.deleteTenant({ body: { tenantId, after: 0 } });
        return { tenantId, everything: { ...everything, session: 0 } };
      };
      let { tenantId, everything } = await populateDue();
      expect(everything).toMatchObject({ tenant: 1, tenantOauthConfig: 1, user: USERS });
      const nothing = Object.fromEntries(TABLES.map((table) => [table, 0]));

      for (const [moment, statement] of moments) {
        await killWhileDeleting({ ...order, how, tenantId, statement, moment });
        await untilServerHasNoticed(instance);
        const left = await countOf(instance, tenantId);
        // Only a commit that was on its way can have gone either way.
        const due =
          statement === "commit" && (moment === "after" || (moment === "during" && !left.tenant));
        expect([moment, statement, left]).toEqual([moment, statement, due ? nothing : everything]);
        if (due) {
          const again = instance.api.deleteTenant({ body: { tenantId } });
          await expect(again).rejects.toMatchObject({ body: { code: "TENANT_NOT_FOUND" } });
          ({ tenantId, everything } = await populateDue());
        } else if (how === "purge") {
          // Still due, and nobody can take it back: the next run takes it.
          const back = instance.api.updateTenant({ body: { tenantId, status: "active" } });
          await expect(back).rejects.toMatchObject({ body: { code: "TENANT_DELETING" } });
        }
      }

      if (how === "delete") await instance.api.deleteTenant({ body: { tenantId } });
      else expect(await instance.api.purgeTenants()).toEqual({ deleted: [tenantId], failed: [] });
      expect(await countOf(instance, tenantId)).toEqual(nothing);
      expect(await countOf(instance, neighbour)).toEqual(neighbourhood);
    },
    120_000,
  );
});

async function start(kind: Order["kind"]) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  const instance = await createInstance({ database });
  const name = kind === "mysql" ? "database" : "current_database";
  const [row] = await database.query(`select ${name}() as name`);
  const { secret } = instance.context;
  return { instance, order: { kind, database: String(row?.name), secret } };
}
