import type { Where } from "better-auth/types";
import { databaseOf, type HasOptions, type Row } from "../database";
import type { Scope } from "../request";
import { PLATFORM } from "../schema";

/**
 * Returns whether to write the tenant's condition as `IN (x, x)`. Without statistics, SQLite may
 * look up the rows of one user by the tenant's index, and read all rows of the tenant. The list
 * makes that index the worse choice.
 */
export function needsListHint(adapter: HasOptions, where: Where[]): boolean {
  return databaseOf(adapter) === "sqlite" && where.some(({ field }) => SELECTIVE.includes(field));
}

/** Columns whose index is a better choice than the tenant's. */
const SELECTIVE = ["userId", "accountId", "identifier"];

/** Returns the condition that keeps a query inside the scope. */
export function tenantClause({ tenantId, access }: Scope, asList = false): Where[] {
  if (access === "all") return [];
  const value = tenantId ?? PLATFORM;
  const condition = asList
    ? { operator: "in" as const, value: [value, value] }
    : { operator: "eq" as const, value };
  return [{ field: "tenantId", connector: "AND", ...condition }];
}

/** Returns whether a row is inside the scope. A row without its tenant column is not. */
export const isInside = ({ tenantId, access }: Scope, row: Row): boolean =>
  access === "all" || row.tenantId === tenantId;
