import { describe, expect, it, onTestFinished } from "vitest";
import {
  createDatabase,
  type DatabaseKind,
  databases,
  type TestDatabase,
} from "../support/database";
import {
  CREDENTIALS,
  createSizeInstance,
  HOT,
  holdDeletion,
  otherTenantsRequest,
  populate,
  recordQueries,
  type Size,
  TABLES,
  tenantId,
} from "./population";

const SIZES: [DatabaseKind, Size][] = [
  ["postgres", { tenants: 2_000, users: 20_000, hotUsers: 20_000 }],
  ["mysql", { tenants: 2_000, users: 20_000, hotUsers: 6_000 }],
];

/** As docs/databases.md advises for MySQL and MariaDB. */
function readCommitted({ option }: TestDatabase) {
  option.pool.on("connection", (connection: { query(sql: string): void }) =>
    connection.query("set session transaction isolation level read committed"),
  );
}

async function largeTenant(
  kind: DatabaseKind,
  size: Size,
  prepare: (database: TestDatabase) => void,
) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  prepare(database);
  const app = await createSizeInstance({ database });
  await populate(database, size, CREDENTIALS);
  const id = tenantId(HOT);
  const rows = async () => {
    const column = database.quote("tenantId");
    const counts = [await app.rows("tenant", "id = ?", [id])];
    for (const table of TABLES.slice(1)) counts.push(await app.rows(table, `${column} = ?`, [id]));
    return counts;
  };
  const remove = () => app.api.deleteTenant({ body: { tenantId: id } });
  return { app, rows, remove };
}

describe.each(SIZES.filter(([kind]) => databases.includes(kind)))(
  "deleting a tenant with many users on %s",
  (kind, size) => {
    it("keeps nobody else from signing in, takes little memory, and happens at one moment", async () => {
      let held = { reached: Promise.resolve(), release: () => {} };
      let queries: ReturnType<typeof recordQueries> = [];
      const { app, rows, remove } = await largeTenant(kind, size, (database) => {
        if (kind === "mysql") readCommitted(database);
        held = holdDeletion(database);
        onTestFinished(held.release);
        queries = recordQueries(database);
      });
      const before = await rows();
      expect(Math.min(...before.slice(2))).toBe(size.hotUsers);

      queries.length = 0;
      const removed = remove();
      await held.reached;
      for (const { sql, params } of queries) {
        expect(params.length, "parameters of a statement").toBeLessThanOrEqual(100);
        const read = / limit (\?|\$\d)/.test(sql) ? Number(params.at(-1)) : 1;
        expect(read, "rows at a time").toBeLessThanOrEqual(5000);
      }
      expect(await rows()).toEqual(before);

      const requests = Array.from({ length: 150 }, (_, index) =>
        otherTenantsRequest(app, size, index),
      );
      const patience = new Promise((resolve) => setTimeout(resolve, 30_000, "they wait"));
      const statuses = Promise.all(requests).then((answers) => answers.map(({ status }) => status));
      expect(await Promise.race([statuses, patience])).toEqual(requests.map(() => 200));
      held.release();
      expect(await removed).toEqual({ success: true });
      expect(await rows()).toEqual([0, 0, 0, 0, 0, 0]);
    }, 120_000);
  },
);

it.runIf(databases.includes("mysql"))(
  "with MariaDB's default isolation, others may wait for the deletion, and none of them fails",
  async () => {
    const [, size] = SIZES[1] ?? [];
    if (!size) throw new Error("no size");
    const { app, remove } = await largeTenant("mysql", size, () => {});
    let removing = true;
    let count = 0;
    const statuses: number[] = [];
    const people = [1, 2, 3, 4].map(async () => {
      while (removing) statuses.push((await otherTenantsRequest(app, size, count++)).status);
    });
    await remove();
    removing = false;
    await Promise.all(people);
    expect(statuses.length).toBeGreaterThan(10);
    expect(new Set(statuses)).toEqual(new Set([200]));
  },
  120_000,
);
