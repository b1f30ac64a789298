/** Returns the driver's error. Drizzle wraps it in an error whose message contains all values. */
export function rootCause(error: unknown): DatabaseError {
  const { cause } = error as { cause?: unknown };
  return cause instanceof Error ? rootCause(cause) : (error as DatabaseError);
}

/** The fields that describe an error: `pg`, postgres.js (`constraint_name`), Prisma (`meta`). */
export type DatabaseError = Partial<
  Record<"name" | "message" | "constraint" | "constraint_name" | "code", string>
> &
  Partial<Record<"errcode" | "errno" | "number", number>> & {
    meta?: { target?: string | string[] };
  };

/** Codes of PostgreSQL and Prisma for a value of the wrong type or range, or with a NUL. */
const INVALID_VALUE = ["22P02", "22003", "22021", "P2007", "P2023"];

/**
 * For `catch` after a lookup by id. Returns null if the column cannot hold the id, because then no
 * row has it, and throws every other error.
 */
export function nullIfInvalidId(error: unknown): null {
  if (isInvalidValue(error)) return null;
  throw error;
}

export const isInvalidValue = (error: unknown) =>
  INVALID_VALUE.includes(rootCause(error).code ?? "");

/** Fields in which drivers put the code of an error. None of them contains a value of the row. */
const IDENTIFIERS = ["code", "errcode", "errno", "number"] as const;

const UNIQUE = ["23505", "ER_DUP_ENTRY", "1062", "2067", "2601", "2627", "11000", "P2002"];
const TOO_LONG = ["ER_DATA_TOO_LONG", "1406", "22001", "54000", "2628", "8152", "P2000"];

/** Returns the numbers and codes by which the driver identifies the failure. */
export const readIdentifiers = (error: DatabaseError) =>
  Object.fromEntries(IDENTIFIERS.map((name) => [name, error[name]]));

const hasIdentifier = (error: DatabaseError, codes: string[]) =>
  IDENTIFIERS.some((name) => codes.includes(String(error[name])));

/** Returns whether a value is too long for its column or index, perhaps with its tenant prefix. */
export const isTooLong = (error: DatabaseError) => hasIdentifier(error, TOO_LONG);

/** Returns whether another row has the value of a unique column. */
export const isTaken = (error: DatabaseError) =>
  hasIdentifier(error, UNIQUE) ||
  /unique (key )?constraint|duplicate (key|entry)/i.test(error.message ?? "");

/** Returns whether a row refers to another row that does not exist. */
export const isForeignKeyViolation = ({ message = "", code }: DatabaseError) =>
  /foreign key/i.test(message) || code === "23503";

/** Returns the violated index, or its columns, as the driver names them. */
export function findViolatedIndex({
  message = "",
  constraint,
  constraint_name,
  meta,
}: DatabaseError): string {
  // MySQL and SQL Server give the index in the message, SQLite the columns.
  const [, index] =
    /(?:for key|constraint failed:|unique (?:index|key constraint))(.*)$/i.exec(message) ?? [];
  const columns = [meta?.target ?? []].flat().join("_");
  return (constraint ?? constraint_name ?? (columns || index) ?? "").trim();
}
