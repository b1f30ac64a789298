import { betterAuth } from "better-auth";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { tenantAuth } from "../../src/index";
import { interceptStatements } from "./faults";

/** What the process is told: what to delete, and where it will meet its end. */
export interface Order {
  kind: "postgres" | "mysql";
  database: string;
  tenantId: string;
  secret: string;
  /** At once, or with everything else whose time has come. */
  how: "delete" | "purge";
  /** The statement, by how it begins. */
  statement: string;
  moment: "before" | "during" | "after";
}

/*
 * A process of its own that deletes tenants, says when it has come to a certain statement, and waits
 * there to be killed.
 */
const order: Order = JSON.parse(process.argv[2] ?? "");
const { kind, database, tenantId, secret, how, statement, moment } = order;
const host = "127.0.0.1";
const option =
  kind === "postgres"
    ? new Pool({ host, user: "postgres", database })
    : createPool({ host, user: "root", timezone: "Z", database });

let armed = false;
const forEver = () => new Promise<never>(() => {});

interceptStatements({ kind, option }, async (sql, { send }) => {
  if (!armed || !sql.replace(/["`]/g, "").startsWith(statement)) return send();
  armed = false;
  if (moment === "after") await send();
  if (moment === "during") void send();
  process.send?.("now");
  return forEver();
});

const auth = betterAuth({
  baseURL: "http://localhost",
  secret,
  database: option,
  plugins: [tenantAuth()],
});
// The check of the tables is not part of the deletion.
await auth.api.getTenant({ query: { id: tenantId } });
armed = true;
if (how === "purge") await auth.api.purgeTenants();
else await auth.api.deleteTenant({ body: { tenantId } });
// Nobody has killed it: it never came to the statement.
process.exit(1);
