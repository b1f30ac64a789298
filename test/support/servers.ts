import type { DatabaseKind } from "./database";

/**
 * The databases that suites run on. SQLite needs nothing but Node and is always there; the
 * servers are asked for with TEST_SERVERS=1, and then they have to be there.
 */
export const databases: DatabaseKind[] = process.env.TEST_SERVERS
  ? ["sqlite", "postgres", "mysql"]
  : ["sqlite"];
