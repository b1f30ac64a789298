import type { AuthContext } from "better-auth";
import type { DBFieldAttribute } from "better-auth/db";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { ADAPTER_METHODS, type AdapterCall, pagesOf, type Row } from "../database";
import { tenantError } from "../errors";
import {
  type Isolation,
  isolationOf,
  type UniqueFields,
  type UniqueFieldsOfModel,
} from "../isolation";
import type { ResolvedCoreOptions } from "../options";
import { withPrefix } from "../prefix";
import { PLATFORM, refuse } from "../schema";
import { ALL } from "../tenants/tenants";
import { explainDatabaseError } from "./explain-errors";
import { asTransformed, skipTransformForPrefixed } from "./transforms";

/*
 * R15: unique values that people choose are unique per tenant. The column keeps its unique index,
 * and a tenant's value is stored with the tenant prefix: `<tenantId>~jane`. This layer, below
 * isolation, adds and removes the prefix: code above it sees "jane". Values of the platform have no
 * prefix, and a call cannot write a "~" there, so they never equal a tenant's.
 */

/**
 * Unique fields that get no prefix. Their values are random or made of ids, or lead to a tenant
 * (`ssoProvider.providerId`). An index over tenant and email isolates emails.
 */
const GLOBAL =
  /^(user\.email|teamMember\.membershipKey|ssoProvider\.providerId|deviceCode\.\w+|scim[A-Z]\w+\.\w+)$/;

type Models = Pick<Isolation, "isolatedModel" | "uniqueFields">;
type Run = (call: AdapterCall) => Promise<unknown>;

/**
 * Finds the fields that are unique per tenant, and prepares them for the tenant prefix. Refuses
 * fields whose values cannot have one.
 */
export function prepareUniqueFields(
  { tables }: AuthContext,
  { scopedModels, globallyUnique }: ResolvedCoreOptions,
): UniqueFields {
  const byModel: UniqueFields = new Map();
  const unused = new Set(
    Object.entries(globallyUnique).flatMap(([model, names]) => names.map((n) => `${model}.${n}`)),
  );
  for (const model of ["user", ...scopedModels]) {
    const { fields = {}, indexes = [] } = tables[model] ?? {};
    const ofModel: UniqueFieldsOfModel = new Map();
    for (const [name, attributes] of Object.entries(fields)) {
      const path = `${model}.${name}`;
      const isUnique =
        attributes.unique || indexes.some((one) => one.unique && one.fields.join() === name);
      const isText = attributes.type === "string" && !attributes.references;
      if (!isUnique || !isText || GLOBAL.test(path) || unused.delete(path)) continue;
      const changes =
        (attributes.transform?.output && "transform.output") ||
        // The adapter would write the value of `onUpdate` without the prefix.
        (attributes.onUpdate && "onUpdate");
      if (changes) {
        refuse(
          `the values of ${path} cannot be unique per tenant, because the field has ${changes}. Set this option: globallyUnique: { ${model}: ["${name}"] }`,
        );
      }
      skipTransformForPrefixed(attributes);
      ofModel.set(name, { name, attributes });
      const { fieldName } = attributes;
      if (fieldName && !fields[fieldName]) ofModel.set(fieldName, { name, attributes });
    }
    if (ofModel.size) byModel.set(model, ofModel);
  }
  for (const path of unused) {
    refuse(
      `globallyUnique: ${path} is not a unique text of a user or a scoped model. Leave it out.`,
    );
  }
  return byModel;
}

/** Returns an adapter that takes and returns unique values without the tenant prefix. */
export function withUniqueValues<A extends DBTransactionAdapter>(
  { isolatedModel, uniqueFields }: Models,
  stored: A,
): A {
  if (uniqueFields.size === 0) return stored;
  const fieldsOf = (name: string) => uniqueFields.get(isolatedModel(name) ?? "");
  const methods = ADAPTER_METHODS.map((method) => {
    const run = stored[method]?.bind(stored) as unknown as Run | undefined;
    const translated: Run = (call) => {
      const fields = fieldsOf(call.model);
      const joins = Object.keys(call.join ?? {}).some(fieldsOf);
      return fields || joins ? translate(run as Run, call, fields) : (run as Run)(call);
    };
    return [method, run && translated];
  });

  async function translate(run: Run, call: AdapterCall, fields: UniqueFieldsOfModel = new Map()) {
    const { model, where, data, update, set, join = {} } = call;
    const tenantId = data?.tenantId ?? update?.tenantId ?? tenantIn(where);
    const written = (row: Row) => storedRow(row, fields, tenantId, row === data);
    const result = await run({
      ...call,
      ...(where && { where: await storedWhere(stored, model, where, fields, tenantId) }),
      ...(data && { data: await written(data) }),
      ...(update && { update: await written(update) }),
      ...(set && { set: await written(set) }),
    });
    const joined = Object.keys(join).flatMap((name) => {
      const inner = fieldsOf(name);
      // A set, so that no prefix is removed twice: the value itself may begin like a prefix.
      const keys = new Set([name, `${name}s`, isolatedModel(name), `${isolatedModel(name)}s`]);
      return inner ? [...keys].map((key) => [String(key), inner] as const) : [];
    });
    return eachRow(result, (row) => {
      const shown = shownRow(row, fields, tenantId);
      for (const [key, inner] of joined) {
        if (shown[key]) shown[key] = eachRow(shown[key], (one) => shownRow(one, inner));
      }
      return shown;
    });
  }

  return Object.assign(Object.create(stored), Object.fromEntries(methods));
}

/** Returns the tenant to which conditions limit a query; undefined if they allow several. */
function tenantIn(where: Where[] = []): string | undefined {
  const clause = where.findLast(
    ({ field, operator = "eq", connector }) =>
      field === "tenantId" && connector !== "OR" && ["eq", "in"].includes(operator),
  );
  const [tenantId, ...others] = new Set([clause?.value].flat());
  return typeof tenantId === "string" && others.length === 0 ? tenantId : undefined;
}

function eachRow(result: unknown, show: (row: Row) => Row): unknown {
  if (Array.isArray(result)) return result.map((row) => eachRow(row, show));
  return typeof result === "object" && result !== null ? show(result as Row) : result;
}

function shownRow(row: Row, fields: UniqueFieldsOfModel, known?: string): Row {
  const tenantId = row.tenantId === undefined ? known : row.tenantId;
  const shown = { ...row };
  if (!tenantId) return shown;
  for (const { name } of fields.values()) {
    const value = row[name];
    if (isPrefixed(tenantId, value)) shown[name] = value.slice(tenantId.length + 1);
  }
  return shown;
}

const isPrefixed = (tenantId: string, value: unknown): value is string =>
  typeof value === "string" && value.startsWith(withPrefix(tenantId, ""));

/**
 * The error if a call writes or compares a value that is unique per tenant, and its tenant is
 * unknown.
 */
const unknownTenant = () =>
  tenantError("TENANT_ID_REQUIRED", "Values that are unique per tenant require a tenant");

/** MariaDB treats U+FF5E ("～") as equal to "~". No other character compares equal to it. */
const HAS_TILDE = /[~\uff5e]/;

export async function storedRow(
  row: Row,
  fields: UniqueFieldsOfModel,
  tenantId: string | undefined,
  isNew: boolean,
) {
  const changed = { ...row };
  for (const { name, attributes } of new Set(fields.values())) {
    const given = tenantId && isNew ? withDefault(row[name], attributes) : row[name];
    if (given === undefined && !isNew) continue;
    const input = attributes.transform?.input;
    const value: unknown = input ? await input(given as string) : given;
    if (value === undefined || value === null) {
      if (given !== value && tenantId) changed[name] = value;
      continue;
    }
    if (tenantId === undefined) throw unknownTenant();
    // Drivers would turn a list into text.
    if (typeof value !== "string" && typeof value !== "number") {
      throw tenantError("INVALID_VALUE", `${name}: expected a text`);
    }
    if (tenantId === PLATFORM) {
      if (HAS_TILDE.test(String(value))) {
        throw tenantError("INVALID_VALUE", `${name}: "~" is not allowed`);
      }
      continue;
    }
    changed[name] = transformed(attributes, withPrefix(tenantId, String(value)));
  }
  return changed;
}

/**
 * Applies the field's default, as the adapter would. The adapter would store the default without
 * the prefix.
 */
function withDefault(value: unknown, { defaultValue, required }: DBFieldAttribute): unknown {
  if (value !== undefined && !(value === null && required)) return value;
  return (typeof defaultValue === "function" ? defaultValue() : defaultValue) ?? value;
}

/** Returns a value that the field's `transform` does not change any more. */
const transformed = ({ transform }: DBFieldAttribute, value: string): string | object =>
  transform?.input ? asTransformed(value) : value;

async function storedWhere(
  stored: DBTransactionAdapter,
  model: string,
  where: Where[],
  fields: UniqueFieldsOfModel,
  tenantId: string | undefined,
): Promise<Where[]> {
  if (tenantId === PLATFORM || !where.some(({ field }) => fields.has(field))) return where;
  const prefixed = (value: unknown) =>
    value === null || value === undefined ? value : withPrefix(String(tenantId), String(value));
  return Promise.all(
    where.map((clause) => {
      const { operator, value } = clause;
      const name = fields.get(clause.field)?.name;
      if (name === undefined || value === null) return clause;
      if (tenantId === undefined) return acrossTenants(stored, model, { ...clause, field: name });
      if (operator === "contains" || operator === "ends_with") {
        return behindPrefix(stored, model, { ...clause, field: name }, tenantId);
      }
      const values = Array.isArray(value) ? value.map(prefixed) : prefixed(value);
      return { ...clause, value: values as Where["value"] };
    }),
  );
}

/** Returns a condition that searches only behind the prefix, which may contain the text as well. */
async function behindPrefix(
  stored: DBTransactionAdapter,
  model: string,
  clause: Where,
  tenantId: string,
): Promise<Where> {
  const { field, operator, mode } = clause;
  const prefix = withPrefix(tenantId, "");
  const rowsWith = (condition: Partial<Where>, limit: number) => {
    const where = [{ ...clause, connector: "AND", ...condition } as Where];
    where.push({ field: "tenantId", value: tenantId });
    return stored.findMany<Row>({ model, where, limit });
  };
  // If the adapter does not escape LIKE patterns, every value of a tenant begins with this pattern.
  const anyPrefix = { operator: "starts_with", value: "%~" } as const;
  const hasPatterns = stored.id !== "memory" && (await rowsWith(anyPrefix, 1)).length > 0;
  if (hasPatterns) return { ...clause, value: `${prefix}%${clause.value}` };
  const fold = (text: string) => (mode === "insensitive" ? text.toLowerCase() : text);
  const text = fold(String(clause.value));
  const rows = await rowsWith({ operator: "contains" }, ALL);
  const found = rows
    .map((row) => String(row[field]))
    .filter((value) => {
      const own = fold(value.slice(prefix.length));
      return operator === "ends_with" ? own.endsWith(text) : own.includes(text);
    });
  // `PLATFORM` is not a value of any tenant. It is there because not every adapter takes an empty
  // list.
  return { ...clause, operator: "in", value: [...found, PLATFORM] };
}

/**
 * Returns a condition for calls that are not limited to one tenant, as of operators. It matches the
 * given values in each tenant.
 */
async function acrossTenants(
  stored: DBTransactionAdapter,
  model: string,
  clause: Where,
): Promise<Where> {
  const { field, operator = "eq", mode } = clause;
  if (operator !== "eq" && operator !== "in") throw unknownTenant();
  const fold = (text: string) => (mode === "insensitive" ? text.toLowerCase() : text);
  const given = [clause.value].flat().map(String);
  const found = given.map(async (value) => {
    const behind: Where = { ...clause, operator: "contains", connector: "AND", value: `~${value}` };
    const rows = await stored.findMany<Row>({ model, where: [behind], limit: ALL });
    const isEqual = ({ tenantId, [field]: text }: Row) =>
      fold(String(text)) === fold(withPrefix(String(tenantId), value));
    return rows.filter(isEqual).map((row) => String(row[field]));
  });
  const values = [...given, ...(await Promise.all(found)).flat()];
  return { ...clause, operator: "in", value: values };
}

/**
 * Yields values of tenants that were stored without the prefix: by an earlier version, or with SQL.
 */
export async function* unprefixedValues({ database: stored, uniqueFields }: Isolation) {
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

/**
 * Adds the tenant prefix to unique values that an earlier version, or SQL, stored without it. Run
 * it once after the update. It can be interrupted, repeated and run while the application runs.
 * `refused` counts values that another user of the tenant has by now; the log names their rows.
 */
export async function prefixUniqueValues(auth: { $context: Promise<object> }) {
  const ctx = (await auth.$context) as AuthContext;
  const isolation = isolationOf(ctx);
  if (!isolation) return refuse("it is not among the plugins of this instance");
  const counts = { prefixed: 0, refused: 0 };
  for await (const { model, id, name, value, update } of unprefixedValues(isolation)) {
    const where = [
      { field: "id", value: id },
      { field: name, value },
    ];
    try {
      counts.prefixed += await isolation.database.updateMany({ model, where, update });
    } catch (error) {
      const explained = explainDatabaseError(ctx, error, model);
      if (explained === error) throw error;
      counts.refused++;
      ctx.logger.error(`${model} ${id}: ${name} stays as it is: ${(explained as Error).message}`);
    }
  }
  return counts;
}
