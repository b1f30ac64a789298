import type { AuthContext, BetterAuthOptions } from "better-auth";
import { databaseOf } from "../border/border";
import { refuse } from "../schema";
import { TENANT_ID } from "../scope/prefix";

/** Refuses configurations that cannot keep tenants apart. The error says what to write instead. */
export function refuseUnsupported(ctx: AuthContext, options: BetterAuthOptions): void {
  refuseCookieStores(options);
  refuseReusedIds(ctx.adapter, options);
  refuseUnusableIds(ctx);
}

/**
 * Rows in memory, sessions and accounts in cookies alone: such a credential stays valid after its
 * tenant is deleted. Without a database, better-auth turns `storeAccountCookie` on by itself.
 */
function refuseCookieStores({ database, account }: BetterAuthOptions): void {
  if (!database) refuse("there is no database. Set the option `database` of betterAuth().");
  if (!account?.storeAccountCookie) return;
  refuse(
    "account.storeAccountCookie is not supported, because the cookie is tied to neither a user nor a tenant.",
    "Remove the option. Accounts are in the database.",
  );
}

/**
 * SQLite and the memory adapter number rows by what is there: the next tenant gets the id of a
 * deleted one, and cookies, links and stored sessions of the deleted one would be valid in it.
 */
function refuseReusedIds(adapter: AuthContext["adapter"], { advanced }: BetterAuthOptions): void {
  const reusesIds = adapter.id === "memory" || databaseOf(adapter) === "sqlite";
  if (!reusesIds || advanced?.database?.generateId !== "serial") return;
  refuse(
    'advanced.database.generateId: "serial" is not supported here, because this database gives the id of a deleted tenant to the next one.',
    'Remove the option, or set it to "uuid".',
  );
}

/** A tenant's id is the prefix of its session tokens, which are in cookies and bearer tokens. */
function refuseUnusableIds({ generateId }: AuthContext): void {
  const id = generateId({ model: "tenant" });
  if (typeof id !== "string" || TENANT_ID.test(id)) return;
  refuse(
    `advanced.database.generateId makes ${JSON.stringify(id)} for a tenant. The id of a tenant has 1 to 128 letters, digits, "_" and "-".`,
  );
}
