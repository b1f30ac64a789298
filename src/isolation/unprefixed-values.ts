import type { AuthContext } from "better-auth";
import { pagesOf } from "../framework";
import { withPrefix } from "../request/prefix";
import { refuse } from "../schema";
import { explainDatabaseError } from "./database-errors";
import { type Isolation, isolationOf, type Row } from "./isolation";
import { isPrefixed, transformed } from "./unique-values";

/** Values of tenants that were stored without the prefix: by an earlier version, or with SQL. */
export async function* unprefixedValues({ stored, uniqueFields }: Isolation) {
  for (const [model, fields] of uniqueFields) {
    const own = [...new Set(fields.values())];
    const select = ["id", "tenantId", ...own.map(({ name }) => name)];
    for await (const rows of pagesOf<Row>(stored, model, 500, select)) {
      for (const { id = "", tenantId, ...row } of rows) {
        for (const { name, attributes } of tenantId ? own : []) {
          const value = row[name];
          if (typeof value !== "string" || isPrefixed(tenantId as string, value)) continue;
          const update = { [name]: transformed(attributes, withPrefix(tenantId as string, value)) };
          yield { model, id, name, value, update };
        }
      }
    }
  }
}

/** See `prefixUniqueValues` in `unique-values.ts`. */
export async function prefixUniqueValues(ctx: AuthContext) {
  const isolation = isolationOf(ctx);
  if (!isolation) return refuse("it is not among the plugins of this instance");
  const counts = { prefixed: 0, refused: 0 };
  for await (const { model, id, name, value, update } of unprefixedValues(isolation)) {
    const where = [
      { field: "id", value: id },
      { field: name, value },
    ];
    try {
      counts.prefixed += await isolation.stored.updateMany({ model, where, update });
    } catch (error) {
      const explained = explainDatabaseError(ctx, error, model);
      if (explained === error) throw error;
      counts.refused++;
      ctx.logger.error(`${model} ${id}: ${name} stays as it is: ${(explained as Error).message}`);
    }
  }
  return counts;
}
