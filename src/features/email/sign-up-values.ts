import type { DBFieldAttribute } from "better-auth/db";
import { SIGN_UP_PATH } from "../../core/constants";
import { databaseOf, isMySQL, type Row } from "../../core/database";
import { tenantError } from "../../core/errors";
import { type BeforeHook, onPaths, plainHook } from "../../core/hooks";
import { storedRow } from "../../core/isolate/unique-values";
import { type Isolation, unscopedAdapter } from "../../core/isolation";
import { getTenantId } from "../../core/request";
import { PLATFORM } from "../../core/schema";
import { ALL } from "../../core/tenants/tenants";
import { isText, textOf } from "../../core/utils";

/** Columns that sign-up fills itself: values in the body with these names are ignored. */
const OWN = ["id", "email", "emailVerified", "createdAt", "updatedAt", "tenantId"];

/** The sizes of MySQL's text columns: in characters with an index, in bytes without. */
const MYSQL = { indexed: 255, plain: 65_535 };

/** The bytes that fit into an entry of a PostgreSQL index, with room left for the tenant prefix. */
const MOST_INDEXED = 2_600;

/**
 * Refuses values that the database would refuse, and unique values that are taken, before
 * better-auth looks up the email. Afterwards, these errors would occur for free emails only, and
 * reveal which emails have a user.
 */
export const checkSignUpValues = (isolation: Isolation): BeforeHook => ({
  matcher: onPaths(SIGN_UP_PATH),

  handler: plainHook(({ body }) => {
    const values = readValues(isolation.ctx.tables.user?.fields ?? {}, body);
    let hasUnique = false;
    for (const [name, { attributes, value }] of values) {
      const expected = findFault(isolation, attributes, value);
      if (expected) {
        return Promise.reject(tenantError("INVALID_VALUE", `${name}: expected ${expected}`));
      }
      hasUnique ||= attributes.unique === true;
    }
    return hasUnique ? checkUnique(isolation, values, textOf(body.email).toLowerCase()) : undefined;
  }),
});

async function checkUnique(isolation: Isolation, values: Values, email: string): Promise<void> {
  const { ctx, uniqueFields } = isolation;
  const tenantId = getTenantId() ?? PLATFORM;
  const row = Object.fromEntries([...values].map(([name, { value }]) => [name, value]));
  const stored = await storedRow(row, uniqueFields.get("user") ?? new Map(), tenantId, false);
  for (const [name, { attributes, value }] of values) {
    if (!attributes.unique || value === null) continue;
    if (isMySQL(ctx.adapter) && textOf(stored[name]).length > MYSQL.indexed) {
      throw tenantError("INVALID_VALUE", "A value is too long");
    }
    await refuseTaken(isolation, name, value, email);
  }
}

type Values = Map<string, { attributes: DBFieldAttribute; value: unknown }>;

/** Returns the values of the body that better-auth will store, parsed like better-auth does. */
function readValues(fields: Record<string, DBFieldAttribute>, body: unknown): Values {
  const values: Values = new Map();
  for (const [name, sent] of Object.entries(Object(body) as Row)) {
    const attributes = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!attributes || OWN.includes(name) || attributes.input === false) continue;
    const value = sent === undefined ? undefined : parse(attributes, sent);
    if (value !== undefined && !(value instanceof Promise)) values.set(name, { attributes, value });
  }
  return values;
}

/** Parses a value. Returns undefined if better-auth refuses the value for every email. */
function parse({ validator, transform }: DBFieldAttribute, sent: unknown): unknown {
  if (validator?.input) {
    const result = validator.input["~standard"].validate(sent);
    return result instanceof Promise || result.issues ? undefined : result.value;
  }
  return transform?.input ? transform.input(sent as never) : sent;
}

/** Returns what a column expects instead of the value, or undefined if the value fits. */
function findFault(
  { ctx }: Isolation,
  { type, required, unique, index, sortable, bigint, defaultValue }: DBFieldAttribute,
  value: unknown,
): string | undefined {
  if (value === null) {
    return required && defaultValue === undefined ? "a value" : undefined;
  }
  const isOnMySQL = isMySQL(ctx.adapter);
  const hasLimits = databaseOf(ctx.adapter) !== "sqlite" && ctx.adapter.id !== "memory";
  if (type === "string" || Array.isArray(type)) {
    if (typeof value === "object") return "a text";
    const text = String(value);
    if (!isText(text)) return "a text";
    const bytes = new TextEncoder().encode(text).length;
    const isTooLong = isOnMySQL
      ? unique || index || sortable
        ? text.length > MYSQL.indexed
        : bytes > MYSQL.plain
      : hasLimits && (unique || index) && bytes > MOST_INDEXED;
    return isTooLong ? "a shorter text" : undefined;
  }
  if (type === "number") {
    const isNumber = typeof value === "number" || /^\s*[-+.\d]/.test(textOf(value));
    if (!isNumber || !Number.isFinite(Number(value))) return "a number";
    return hasLimits && !bigint && Math.abs(Number(value)) > ALL ? "a smaller number" : undefined;
  }
  if (type === "boolean") {
    const words = isOnMySQL && typeof value === "string" ? /^[01]$/ : /^(true|false|0|1)$/;
    return typeof value !== "object" && words.test(String(value)) ? undefined : "true or false";
  }
  if (type === "date") {
    const date = value instanceof Date ? value : new Date(value as string);
    return Number.isNaN(date.getTime()) ? "a date" : undefined;
  }
  if (type === "string[]" || type === "number[]") {
    return Array.isArray(value) || typeof value === "string" ? undefined : "a list";
  }
  return undefined;
}

/**
 * Refuses a unique value that another user has. Ignores a user with the same email: better-auth
 * finds that user, or an invitation replaces it.
 */
async function refuseTaken(isolation: Isolation, name: string, value: unknown, email: string) {
  const { ctx, uniqueFields } = isolation;
  const isOfTenant = uniqueFields.get("user")?.has(name);
  const adapter = isOfTenant ? ctx.adapter : await unscopedAdapter(isolation);
  const where = [{ field: name, value: value as string }];
  const holder = await adapter.findOne<Row>({ model: "user", where });
  if (holder && holder.email !== email) throw tenantError("VALUE_TAKEN");
}
