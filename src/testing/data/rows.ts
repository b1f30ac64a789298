import type { DBTransactionAdapter } from "better-auth/types";
import { PLATFORM } from "../../schema";
import { modelFinder, type Subject } from "../instance/subject";
import type { Row } from "../options";

/** The rows of a table, by their id, each with its text for comparison. */
export type Table = Map<string, { row: Row; text: string }>;
export type Tables = Map<string, Table>;

/** More than a test database has. */
const MOST = 5_000;

/** What is in the tables of better-auth and its plugins, below the isolation. */
export function openTables(subject: Subject) {
  const { raw } = subject;
  const parents = parentsIn(subject);
  const models = parentsFirst(parents);

  async function read(model: string): Promise<Table> {
    const rows = await raw.findMany<Row>({ model, limit: MOST });
    if (rows.length === MOST) {
      throw new Error(`checkIsolation(): "${model}" has ${MOST} rows or more. Use a test database`);
    }
    return new Map(rows.map((row) => [String(row.id), { row, text: textOf(model, row) }]));
  }

  async function readAll(only: Iterable<string> = models): Promise<Tables> {
    const tables: Tables = new Map();
    for (const model of only) tables.set(model, await read(model));
    return tables;
  }

  /** Makes the tables what they were. Children go first, parents come first. */
  async function restore(
    before: Tables,
    now: Tables,
    isOurs: (model: string, id: string, row: Row) => boolean = () => true,
  ): Promise<void> {
    const changed = models.filter((model) => now.has(model));
    for (const model of changed.toReversed()) {
      for (const [id, { row }] of now.get(model) ?? []) {
        if (!before.get(model)?.has(id) && isOurs(model, id, row)) await remove(model, id);
      }
    }
    for (const model of changed) {
      for (const [id, { row, text }] of before.get(model) ?? []) {
        if (!isOurs(model, id, row)) continue;
        const is = now.get(model)?.get(id);
        if (!is) await putBack(model, row);
        else if (is.text !== text) {
          // What was not there at all is put back as null: nobody can write "not there".
          const nothing = Object.fromEntries(Object.keys(is.row).map((name) => [name, null]));
          const there = Object.entries(stored(model, row)).filter(
            ([, value]) => value !== undefined,
          );
          const { id: _, ...update } = { ...nothing, ...Object.fromEntries(there) };
          await raw.update({ model, where: byId(id), update });
        }
      }
    }
  }

  async function remove(model: string, id: string): Promise<void> {
    try {
      await raw.delete({ model, where: byId(id) });
    } catch (error) {
      throw new Error(
        `checkIsolation(): a row of "${model}" that the run created cannot be deleted: ${error instanceof Error ? error.message : error}. If another table refers to it, let that table delete with it (\`on delete cascade\`), or delete its rows in your test. Then call cleanUp(auth)`,
      );
    }
  }

  async function putBack(model: string, row: Row): Promise<void> {
    const data = stored(model, row);
    const { id } = await raw.create<Row, Row>({ model, data, forceAllowId: true });
    if (String(id) === String(row.id)) return;
    throw new Error(
      `checkIsolation(): this database adapter cannot put a row of "${model}" back under its id. Use another database for the test`,
    );
  }

  /** The platform is stored as an empty string, and read as null. */
  const stored = (model: string, row: Row): Row =>
    subject.confined.includes(model) ? { ...row, tenantId: row.tenantId ?? PLATFORM } : row;

  return { models, dependents: dependentsIn(parents), read, readAll, restore };
}

export type OpenTables = ReturnType<typeof openTables>;

const byId = (id: string) => [{ field: "id", value: id }];

/** When a key was last used is bookkeeping, wherever it is kept. */
const BOOKKEEPING = ["lastRequest", "updatedAt", "requestCount", "remaining", "lastRefillAt"];

function textOf(model: string, row: Row): string {
  const entries = Object.entries(row)
    .filter(([, value]) => value !== null && value !== undefined)
    .filter(([name]) => model !== "apikey" || !BOOKKEEPING.includes(name))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify(entries);
}

/** What each table refers to. */
function parentsIn(subject: Subject): Map<string, string[]> {
  const find = modelFinder(subject);
  return new Map(
    Object.entries(subject.ctx.tables).map(([model, { fields }]) => {
      const parents = Object.values(fields).flatMap(({ references }) => {
        const parent = references && find(references.model);
        return parent && parent !== model ? [parent] : [];
      });
      return [model, parents];
    }),
  );
}

function parentsFirst(parents: Map<string, string[]>): string[] {
  const sorted = new Set<string>();
  const visit = (model: string, path: string[]) => {
    if (sorted.has(model) || path.includes(model)) return;
    for (const parent of parents.get(model) ?? []) visit(parent, [...path, model]);
    sorted.add(model);
  };
  for (const model of parents.keys()) visit(model, []);
  return [...sorted];
}

/** A deletion takes rows of other tables along: those that refer to it, and those to them. */
function dependentsIn(parents: Map<string, string[]>): Map<string, string[]> {
  const below = (model: string, known = new Set<string>()): Set<string> => {
    for (const [child, its] of parents) {
      if (!its.includes(model) || known.has(child)) continue;
      known.add(child);
      below(child, known);
    }
    return known;
  };
  return new Map([...parents.keys()].map((model) => [model, [...below(model)]]));
}

const WRITES = [
  "create",
  "update",
  "updateMany",
  "delete",
  "deleteMany",
  "consumeOne",
  "incrementOne",
] as const;

/** Notes which tables are written to through the adapter: reading all of them takes long. */
export function noteWrites(subject: Subject, note: Note) {
  const { raw, ctx } = subject;
  const find = modelFinder(subject);
  const original = Object.fromEntries(
    [...WRITES, "transaction" as const].map((name) => [name, raw[name]]),
  );
  const noting = (adapter: DBTransactionAdapter) =>
    Object.fromEntries(
      WRITES.map((name) => {
        const write = adapter[name].bind(adapter) as (call: Call) => Promise<unknown>;
        return [
          name,
          async (call: Call) => {
            const model = find(call.model);
            if (model) note(model, call.data);
            const answer = await write(call);
            if (model && name === "create") note(model, undefined, (answer as Row | null)?.id);
            return answer;
          },
        ];
      }),
    );
  const { transaction } = raw;
  Object.assign(raw, noting(raw), {
    transaction: (run: (inner: DBTransactionAdapter) => Promise<unknown>) =>
      transaction((inner) => {
        // Adapters without transactions hand themselves in.
        const isItself = (inner as unknown) === ctx.adapter || (inner as unknown) === raw;
        return run(isItself ? inner : Object.assign(Object.create(inner), noting(inner)));
      }),
  });
  return () => void Object.assign(raw, original);
}

type Call = { model: string; data?: unknown };

/** Called before each write with what is written, and after a row was created with its id. */
type Note = (model: string, data?: unknown, createdId?: string) => void;
