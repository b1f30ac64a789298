import type { DatabaseKind } from "./database";

/**
 * The databases that suites run on. SQLite needs nothing but Node; the servers are asked for with
 * TEST_SERVERS=1, and then they have to be there.
 */
export const databases: DatabaseKind[] = process.env.TEST_SERVERS
  ? ["postgres", "mysql"]
  : ["sqlite"];

/** For what only a server can show; skipped, and shown as skipped, where there are none. */
export const servers = { kinds: ["postgres", "mysql"] as const, asked: databases.length > 1 };

/** How many people do something at once: on servers as many as the threat list has. */
export const crowdOn = (database: DatabaseKind) => (database === "sqlite" ? 50 : 200);
