import type { DBTransactionAdapter } from "better-auth/types";
import { PLATFORM } from "../../core/schema";
import { modelFinder, type Subject } from "../instance/subject";
import type { Row } from "../options";
import { BOOKKEEPING, messageOf } from "./texts";

type Stored = { row: Row; text: string };

/** By table and id, each row with its text for comparison. */
export type Tables = Map<string, Map<string, Stored>>;

/** More rows than a table of a test database has. */
export const MOST = 5_000;

/** What is in the tables of better-auth and its plugins, below the isolation. */
export function openTables(subject: Subject) {
  const { raw } = subject;
  const parents = parentsIn(subject);
  const models = parentsFirst(parents);

  /** Parents come before the tables that refer to them. */
  async function readAll(only: Set<string> = new Set(models)): Promise<Tables> {
    const tables: Tables = new Map();
    for (const model of models.filter((name) => only.has(name))) {
      const rows = await raw.findMany<Row>({ model, limit: MOST });
      if (rows.length === MOST) {
        throw new Error(
          `checkIsolation(): "${model}" has ${MOST} rows or more. Use a test database`,
        );
      }
      const byId = rows.map((row) => [String(row.id), { row, text: textOf(model, row) }] as const);
      tables.set(model, new Map(byId));
    }
    return tables;
  }

  /** Makes the tables what they were. */
  async function restore(
    before: Tables,
    now: Tables,
    isOurs: (change: Change) => boolean,
  ): Promise<void> {
    const changes = changesBetween(before, now).filter(isOurs);
    for (const change of changes.toReversed()) if (!change.was) await remove(change);
    for (const change of changes) {
      if (change.was && change.now) await changeBack(change);
      else if (change.was) await putBack(change);
    }
  }

  async function changeBack({ table: model, id, row, now }: Change): Promise<void> {
    // A field that was missing is restored as null, because "missing" cannot be written.
    const nothing = Object.fromEntries(Object.keys(now?.row ?? {}).map((name) => [name, null]));
    const there = Object.entries(stored(model, row)).filter(([, value]) => value !== undefined);
    const { id: _, ...update } = { ...nothing, ...Object.fromEntries(there) };
    await raw.update({ model, where: byId(id), update });
  }

  async function remove({ table: model, id }: Change): Promise<void> {
    try {
      await raw.delete({ model, where: byId(id) });
    } catch (error) {
      throw new Error(
        `checkIsolation(): a row of "${model}" that the run created cannot be deleted: ${messageOf(error)}. If another table refers to it, let that table delete with it (\`on delete cascade\`), or delete its rows in your test. Then call cleanUp(auth)`,
      );
    }
  }

  async function putBack({ table: model, row }: Change): Promise<void> {
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

  /** A deletion takes rows of other tables along: those that refer to it, and those to them. */
  function withDependents(written: Iterable<string>): Set<string> {
    const all = new Set(written);
    for (const model of models) {
      if (parents.get(model)?.some((parent) => all.has(parent))) all.add(model);
    }
    return all;
  }

  return { readAll, restore, withDependents };
}

const byId = (id: string) => [{ field: "id", value: id }];

function textOf(model: string, row: Row): string {
  const entries = Object.entries(row)
    .filter(([, value]) => value !== null && value !== undefined)
    .filter(([name]) => model !== "apikey" || !BOOKKEEPING.includes(name))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify(entries);
}

/** A row that is new, gone or changed. */
export interface Change {
  table: string;
  id: string;
  /** The row as it was, or else as it came. */
  row: Row;
  was: Stored | undefined;
  now: Stored | undefined;
}

export function changesBetween(before: Tables, after: Tables): Change[] {
  return [...after].flatMap(([table, rows]) => {
    const known = before.get(table) ?? new Map<string, Stored>();
    return [...new Set([...known.keys(), ...rows.keys()])].flatMap((id) => {
      const [was, now] = [known.get(id), rows.get(id)];
      const row = (was ?? now)?.row;
      return row && was?.text !== now?.text ? [{ table, id, row, was, now }] : [];
    });
  });
}

/** What each table refers to. */
function parentsIn(subject: Subject): Map<string, string[]> {
  const find = modelFinder(subject);
  return new Map(
    Object.entries(subject.ctx.tables).map(([model, { fields }]) => {
      const referred = Object.values(fields).flatMap(({ references }) => references?.model ?? []);
      const parents = referred.flatMap((name) => find(name) ?? []);
      return [model, parents.filter((parent) => parent !== model)];
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

const WRITES = [
  ...(["create", "update", "updateMany", "delete", "deleteMany"] as const),
  ...(["consumeOne", "incrementOne"] as const),
];

/** Notes which tables are written to through the adapter: reading all of them takes long. */
export function noteWrites(subject: Subject, note: Note) {
  const { raw, ctx } = subject;
  const find = modelFinder(subject);
  const noting = (adapter: DBTransactionAdapter) =>
    Object.fromEntries(
      WRITES.map((name) => {
        const write = adapter[name].bind(adapter) as (call: Call) => Promise<unknown>;
        const noted = async (call: Call) => {
          const model = find(call.model);
          if (model) note(model, call.data);
          const answer = await write(call);
          if (model && name === "create") note(model, undefined, (answer as Row | null)?.id);
          return answer;
        };
        return [name, noted];
      }),
    );
  const original = { ...raw, transaction: raw.transaction };
  Object.assign(raw, noting(raw), {
    transaction: (run: (inner: DBTransactionAdapter) => Promise<unknown>) =>
      original.transaction((inner) => {
        // Adapters without transactions pass themselves.
        const isItself = [ctx.adapter, raw].includes(inner as typeof raw);
        return run(isItself ? inner : Object.assign(Object.create(inner), noting(inner)));
      }),
  });
  return () => void Object.assign(raw, original);
}

type Call = { model: string; data?: unknown };

/** Called before each write with what is written, and after a row was created with its id. */
type Note = (model: string, data?: unknown, createdId?: string) => void;
