import type { Where } from "better-auth/types";
import type { Guard } from "../database";
import { isInvalidValue } from "../database-errors";
import { tenantError } from "../errors";
import type { Isolation } from "../isolation";
import { currentRequest } from "../request";
import { couldBeId, hasNumericIds } from "../tenants/tenants";

/**
 * Refuses a value that a column cannot hold with 400 `INVALID_VALUE`: a text for a numeric id
 * before the database is asked; a text for a UUID, or a NUL on PostgreSQL, when the database
 * refuses it. better-auth's admin endpoints turn JSON values into texts and look them up as ids.
 */
export function refuseImpossibleValues({ ctx, isolatedModel }: Isolation): Guard {
  const isId = (model: string, field: string) => {
    const { references } = ctx.tables[model]?.fields[field] ?? {};
    return field === "id" || references?.field === "id";
  };
  const run: Guard["run"] = async ({ call }, next) => {
    if (hasNumericIds(ctx)) {
      const model = isolatedModel(call.model) ?? call.model;
      // better-auth looks up single-use marks by ids that are not numeric. `guardReservations`
      // translates them.
      const reserved = currentRequest().reservations;
      const impossible = call.where?.find(
        (clause) =>
          isId(model, clause.field) &&
          !valuesIn(clause).every((id) => couldBeId(ctx, id) || reserved?.has(id)),
      );
      if (impossible) {
        const message = `${impossible.field}: not an id`;
        throw tenantError("INVALID_VALUE", message);
      }
    }
    return next(call).catch(throwInvalidValue);
  };
  return { run };
}

/** For `catch`: throws `INVALID_VALUE` if the database refused a value, else the original error. */
export function throwInvalidValue(error: unknown): never {
  if (!isInvalidValue(error)) throw error;
  // `nullIfInvalidId` reads the cause, and treats an impossible id as not found.
  const message = "A value does not fit its column";
  throw Object.assign(tenantError("INVALID_VALUE", message), { cause: error });
}

const valuesIn = ({ value }: Where): string[] =>
  [value]
    .flat()
    .filter((one) => one !== null && one !== undefined)
    .map(String);
