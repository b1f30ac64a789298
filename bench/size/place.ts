import { createDatabase } from "../database";
import { type Handler, PASSWORD } from "../instance";
import { createAuth, type Pool } from "./auth";
import { HOT, populate, type Size, tenantId, userEmail, userOf } from "./population";

/** An instance on a PostgreSQL of the given size. */
export async function openInstance(size: Size) {
  const database = await createDatabase("postgres");
  const pool: Pool = database.option;
  // Connections that are idle while their database is dropped say so, and nobody needs to know.
  pool.on("error", () => {});
  try {
    await commitWithoutWaiting(pool);
    const auth = await createAuth(pool);
    const template = await auth.api.createTenant({ body: { name: "Template", slug: "template" } });
    const google = { providerId: "google", clientId: "tenant", clientSecret: "secret" };
    await auth.api.registerTenantOAuthConfig({ body: { tenantId: template.id, ...google } });
    await fill(pool, size, await (await auth.$context).password.hash(PASSWORD));
    return { handler: auth.handler as Handler, size, pool, close: database.close };
  } catch (error) {
    await database.close();
    throw error;
  }
}

export type Instance = Awaited<ReturnType<typeof openInstance>>;

/** The disk takes as long for few rows as for many, and its whims would hide everything else. */
async function commitWithoutWaiting(pool: Pool) {
  const connection = await pool.connect();
  const { rows } = await connection.query("select current_database() as name");
  await connection.query(`alter database "${rows[0].name}" set synchronous_commit = off`);
  connection.release(true);
}

/** On one connection: how it is loaded is a setting of the connection. */
async function fill(pool: Pool, size: Size, password: string) {
  const connection = await pool.connect();
  const database = {
    kind: "postgres" as const,
    option: pool,
    quote: (name: string) => `"${name}"`,
    query: async (sql: string) => (await connection.query(sql)).rows,
  };
  await populate(database, size, { password, provider: "google" });
  await connection.query("checkpoint");
  connection.release(true);
}

export interface Person {
  n: number;
  tenant: number;
  tenantId: string;
  email: string;
}

/** Where requests go: the tenants of an instance one after the other, or always the hot one. */
export interface Place {
  handler: Handler;
  /** People who have a password and an account at Google, in tenants with a config of their own. */
  person(index: number): Person;
}

const tenantAt = (index: number, { tenants }: Size) => 1 + ((10 * index * 7919) % tenants);

function personIn(tenant: number, k: number, size: Size): Person {
  const n = userOf(tenant, k, size);
  return { n, tenant, tenantId: tenantId(tenant), email: userEmail(n) };
}

export const acrossTenants = ({ handler, size }: Instance): Place => ({
  handler,
  person: (index) =>
    personIn(tenantAt(index, size), 1 + (index % (size.users / size.tenants - 1)), size),
});

export const inHotTenant = ({ handler, size }: Instance): Place => ({
  handler,
  person: (index) => personIn(HOT, 1 + ((index * 7919) % (size.hotUsers / 10)), size),
});
