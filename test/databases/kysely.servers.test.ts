import { createDatabase, type DatabaseKind, databases } from "../support/database";
import { behaves } from "./behaviour";
import { DATABASE_NAMES, ID_KINDS, type Store } from "./store";

async function open(kind: DatabaseKind): Promise<Store> {
  const database = await createDatabase(kind);
  return {
    ...database,
    migrate: true,
    rows: (model) => database.query(`select * from ${database.quote(model)} order by id`),
  };
}

for (const kind of databases) {
  for (const ids of ID_KINDS) {
    // better-auth's migrations leave SQLite to count from the highest id that is left.
    const reusesIds = kind === "sqlite" && ids === "serial";
    const deadlocks = kind === "mysql";
    const name = `Kysely on ${DATABASE_NAMES[kind]}`;
    const crowd = kind === "sqlite" ? 10 : 20;
    behaves({ name, ids, open: () => open(kind), crowd, reusesIds, deadlocks });
  }
}
