import { deleteTenant } from "../features/management/delete";
import { openTables } from "./data/rows";
import { messageOf } from "./data/texts";
import { type AuthInstance, openSubject, type Subject } from "./instance/subject";
import type { Row } from "./options";

/** Tenants and users of the kit are known by a word that no application uses. */
const OF_KIT = /^kit[a-z0-9]{8}-[abc]$/;
const EMAIL_OF_KIT = /-kit[a-z0-9]{8}(-platform)?@example\.com$/;

/** Refuses a database with tenants, and says so where an interrupted run has left some. */
export async function assertClean(subject: Subject, allowsTenants: boolean): Promise<void> {
  const { all, left } = await tenantsIn(subject);
  if (left.length) {
    throw new Error(
      `checkIsolation(): a run that was interrupted left ${left.length} tenants (${left.map(({ slug }) => slug).join(", ")}) and their users. Remove them: await cleanUp(auth)`,
    );
  }
  if (allowsTenants || !all.length) return;
  throw new Error(
    "checkIsolation(): this database has tenants. Use a test database, or set `allowExistingTenants: true` if nothing else is using this one",
  );
}

async function tenantsIn({ raw }: Subject) {
  try {
    const all = await raw.findMany<Row & { slug: string }>({ model: "tenant", limit: 10_000 });
    return { all, left: all.filter(({ slug }) => OF_KIT.test(slug)) };
  } catch (error) {
    throw new Error(
      `checkIsolation(): the table of tenants cannot be read: ${messageOf(error)}. Has this database been migrated? Run \`npx auth migrate\`, or the migration tool of your ORM`,
    );
  }
}

/** Removes what an interrupted run of \`checkIsolation\` has left behind, and nothing else. */
export async function cleanUp(auth: AuthInstance): Promise<{ tenants: number; users: number }> {
  const subject = await openSubject(auth, "cleanUp()");
  const { left } = await tenantsIn(subject);
  const tables = openTables(subject);
  const users = [...((await tables.readAll(new Set(["user"]))).get("user")?.values() ?? [])];
  const isOfKit = ({ email, tenantId }: Row) => !tenantId && EMAIL_OF_KIT.test(String(email));
  const ids = new Set(users.flatMap(({ row }) => (isOfKit(row) ? [row.id] : [])).map(String));
  for (const { id } of left) await deleteTenant(subject.ctx, "server", id);
  const refersToThem = (row: Row) =>
    Object.entries(row).some(([name, value]) => /user/i.test(name) && ids.has(String(value)));
  if (ids.size) {
    await tables.restore(new Map(), await tables.readAll(), ({ table, id, row }) =>
      table === "user" ? ids.has(id) : refersToThem(row),
    );
  }
  return { tenants: left.length, users: ids.size };
}
