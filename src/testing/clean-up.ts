import { deleteTenant } from "../tenants/delete";
import { openTables, type Tables } from "./data/rows";
import { type AuthInstance, openSubject, type Subject } from "./instance/subject";
import type { Row } from "./options";

/** Tenants and users of the kit are known by a word that no application uses. */
const OF_KIT = /^kit[a-z0-9]{8}-[abc]$/;
const EMAIL_OF_KIT = /-kit[a-z0-9]{8}(-platform)?@example\.com$/;

/** Refuses a database with tenants, and says so where an interrupted run has left some. */
export async function assertClean(subject: Subject, allowsTenants: boolean): Promise<void> {
  const tenants = await tenantsIn(subject);
  const left = tenants.filter(({ slug }) => OF_KIT.test(slug));
  if (left.length) {
    throw new Error(
      `checkIsolation(): a run that was interrupted left ${left.length} tenants (${left.map(({ slug }) => slug).join(", ")}) and their users. Remove them: await cleanUp(auth)`,
    );
  }
  if (allowsTenants || !tenants.length) return;
  throw new Error(
    "checkIsolation(): this database has tenants. Use a test database, or set `allowExistingTenants: true` if nobody else uses this one",
  );
}

type TenantRow = Row & { slug: string };

async function tenantsIn({ raw }: Subject): Promise<TenantRow[]> {
  try {
    return await raw.findMany<TenantRow>({ model: "tenant", limit: 10_000 });
  } catch (error) {
    throw new Error(
      `checkIsolation(): the table of tenants cannot be read: ${error instanceof Error ? error.message : error}. Has this database been migrated? Run \`npx auth migrate\`, or what your ORM has for it`,
    );
  }
}

/** Removes what an interrupted run of \`checkIsolation\` has left behind, and nothing else. */
export async function cleanUp(auth: AuthInstance): Promise<{ tenants: number; users: number }> {
  const subject = await openSubject(auth, "cleanUp()");
  const tenants = (await tenantsIn(subject)).filter(({ slug }) => OF_KIT.test(slug));
  const tables = openTables(subject);
  const people = await tables.readAll(["user"]);
  const isOfKit = ({ email, tenantId }: Row) => !tenantId && EMAIL_OF_KIT.test(String(email));
  const users = [...(people.get("user")?.values() ?? [])].filter(({ row }) => isOfKit(row));
  for (const { id } of tenants) {
    await deleteTenant(subject.ctx, "server", id);
  }
  const ids = new Set(users.map(({ row }) => String(row.id)));
  const isTheirs = (model: string, id: string, row: Row) =>
    model === "user"
      ? ids.has(id)
      : Object.entries(row).some(([name, value]) => /user/i.test(name) && ids.has(String(value)));
  const nothing: Tables = new Map();
  if (ids.size) await tables.restore(nothing, await tables.readAll(), isTheirs);
  return { tenants: tenants.length, users: ids.size };
}
