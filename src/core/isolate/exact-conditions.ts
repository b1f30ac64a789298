import type { AuthContext } from "better-auth";
import type { DBFieldAttribute } from "better-auth/db";
import type { Where } from "better-auth/types";
import type { Row } from "../database";
import { hasNumericIds } from "../tenants/tenants";

/** The texts for which the conditions of a query ask. */
export interface ExactConditions {
  keys: string[];
  /**
   * Whether a write with these conditions could change a look-alike: a row whose text differs, but
   * is equal for the database.
   */
  needIds: boolean;
  areMetBy(row: Row): boolean;
}

/** A text column. `key` is its name in rows. */
interface TextColumn {
  key: string;
  /**
   * An id, a reference or the tenant. Stored values are generated: two that look alike are too
   * unlikely to matter.
   */
  isAssigned: boolean;
  output?: ((value: string) => unknown) | undefined;
}

interface Model {
  name: string;
  fields: Record<string, DBFieldAttribute>;
  /** By the name of the field and by the name of the column. */
  columns: Map<string, TextColumn>;
}

type Joining = { model: string; join?: object | undefined };

const NOTHING: ExactConditions = { keys: [], needIds: false, areMetBy: () => true };

/** Rate-limit counters. Look-alikes share one counter: `/GET-SESSION` counts as `/get-session`. */
const COUNTERS = "rateLimit";

/**
 * Returns functions that compare rows with conditions. They also compare ids if `comparesIds` is
 * set.
 */
export function readSchema(ctx: AuthContext, comparesIds: boolean) {
  const models = new Map<string, Model | undefined>();
  const hasTextIds = comparesIds && !hasNumericIds(ctx);

  function findModel(name: string): Model | undefined {
    if (models.has(name)) return models.get(name);
    const model = describeModel(name);
    models.set(name, model);
    return model;
  }

  /**
   * Describes a model. Callers may use better-auth's name, the table's name, or the plural of
   * either.
   */
  function describeModel(called: string): Model | undefined {
    const { tables } = ctx;
    const resolve = (name: string) =>
      Object.hasOwn(tables, name)
        ? name
        : Object.keys(tables).find((key) => tables[key]?.modelName === name);
    const name = resolve(called) ?? resolve(called.replace(/s$/, ""));
    const fields = name === undefined ? undefined : tables[name]?.fields;
    if (name === undefined || !fields) return undefined;
    const columns = new Map<string, TextColumn>();
    if (name !== COUNTERS) {
      const id: TextColumn = { key: "id", isAssigned: true };
      if (hasTextIds) columns.set("id", id);
      for (const [key, attributes] of Object.entries(fields)) {
        const { fieldName, references, transform } = attributes;
        const isId = references?.field === "id";
        if (!isText(attributes) || (isId && !hasTextIds) || key === "id") continue;
        const isAssigned = isId || key === "tenantId";
        const column = { key, isAssigned, output: transform?.output as TextColumn["output"] };
        columns.set(key, column);
        if (fieldName && !Object.hasOwn(fields, fieldName)) columns.set(fieldName, column);
      }
    }
    return { name, fields, columns };
  }

  /**
   * Reads the conditions of a query. A row meets all conditions joined by AND, and at least one of
   * those joined by OR.
   */
  function readConditions(model: string, where: Where[] = []): ExactConditions {
    const columns = findModel(model)?.columns;
    if (!columns?.size || where.length === 0) return NOTHING;
    const every: TextCondition[] = [];
    const some: (TextCondition | undefined)[] = [];
    for (const clause of where) {
      const condition = readCondition(columns.get(clause.field), clause);
      if (clause.connector === "OR") some.push(condition);
      else if (condition) every.push(condition);
    }
    // If one branch of the OR compares no text, a row may match by that branch.
    const either = some.every((condition) => condition !== undefined) ? some : [];
    const all = [...every, ...either];
    if (all.length === 0) return NOTHING;
    return {
      keys: [...new Set(all.map(({ column }) => column.key))],
      needIds: all.some(({ column }) => !column.isAssigned) && !where.some(isById),
      areMetBy: (row) =>
        every.every((condition) => isMet(condition, row)) &&
        (either.length === 0 || either.some((condition) => isMet(condition, row))),
    };
  }

  /**
   * Turns numbers into texts where a call compares them with a text column. MySQL would compare
   * them as numbers, and treat every word as 0.
   */
  function withTexts<Call extends { model: string; where?: Where[] | undefined }>(
    call: Call,
  ): Call {
    const columns = findModel(call.model)?.columns;
    const isNumeric = ({ field, value }: Where) =>
      columns?.has(field) && [value].flat().some((one) => PRIMITIVE.includes(typeof one));
    if (!call.where?.some(isNumeric)) return call;
    const where = call.where.map((clause) =>
      isNumeric(clause) ? ({ ...clause, value: toTexts(clause.value) } as Where) : clause,
    );
    return { ...call, where };
  }

  /**
   * Returns the two columns of a join between models: `joined[to]` equals `row[from]`.
   */
  function findLink(base: Model, joined: Model) {
    const linkFrom = (owner: Model, target: Model) =>
      Object.entries(owner.fields).find(
        ([, { references }]) => references && findModel(references.model)?.name === target.name,
      );
    const [to, { references: back } = {}] = linkFrom(joined, base) ?? [];
    if (to !== undefined && back) return { from: back.field, to };
    const [from, { references } = {}] = linkFrom(base, joined) ?? [];
    return from !== undefined && references ? { from, to: references.field } : undefined;
  }

  /** Removes joined rows whose reference only looks like the row's. Changes the row. */
  function dropLookAlikes<T extends Row>(row: T, { model, join = {} }: Joining): T {
    for (const name of Object.keys(join)) {
      const base = findModel(model);
      const joined = findModel(name);
      const link = base && joined && findLink(base, joined);
      if (!link) continue;
      const isLinked = (other: Row) =>
        [row[link.from], other[link.to]].includes(undefined) ||
        String(row[link.from]) === String(other[link.to]);
      for (const key of new Set([name, joined.name])) {
        const value = row[key];
        if (Array.isArray(value)) Object.assign(row, { [key]: value.filter(isLinked) });
        else if (value && !isLinked(value as Row)) Object.assign(row, { [key]: null });
      }
    }
    return row;
  }

  return { readConditions, withTexts, dropLookAlikes };
}

const PRIMITIVE = ["number", "bigint", "boolean"];

const toTexts = (value: unknown) => (Array.isArray(value) ? value.map(String) : String(value));

/** A column, and the texts that it may hold. */
interface TextCondition {
  column: TextColumn;
  texts: unknown[];
}

const isText = ({ type }: DBFieldAttribute) => type === "string" || Array.isArray(type);

/**
 * Reads a condition. Returns undefined if it compares no text, or does not ask for an exact match.
 */
function readCondition(
  column: TextColumn | undefined,
  { value, operator = "eq", mode }: Where,
): TextCondition | undefined {
  if (!column || mode === "insensitive" || !["eq", "in"].includes(operator)) return undefined;
  const values: unknown[] = [value].flat();
  if (value === null || values.some((one) => one instanceof Date)) return undefined;
  const texts = values.map((one) => readAs(column, String(one)));
  return texts.includes(UNKNOWN) ? undefined : { column, texts };
}

const UNKNOWN = Symbol();

/**
 * Returns what the adapter would return for a stored text. Returns `UNKNOWN` if the field's output
 * transform is async or fails.
 */
function readAs({ output }: TextColumn, text: string): unknown {
  if (!output) return text;
  try {
    const value = output(text);
    if (!(value instanceof Promise)) return value;
    value.catch(() => {});
    return UNKNOWN;
  } catch {
    return UNKNOWN;
  }
}

/**
 * Returns whether a row meets a condition. Null and missing values match no text. Other values that
 * are not text have no collation, and match.
 */
const isMet = ({ column, texts }: TextCondition, row: Row): boolean => {
  const value = row[column.key];
  const hasCollation = typeof value === "string" || value === null || value === undefined;
  return !hasCollation || texts.includes(value);
};

const isById = ({ field, operator = "eq", connector }: Where) =>
  field === "id" && connector !== "OR" && ["eq", "in"].includes(operator);
