import { type BetterAuthOptions, type BetterAuthPlugin, betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { getMigrations } from "better-auth/db/migration";
import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { tenantAuth } from "../../src/index";
import { runInScope, settled } from "../../src/scope/scope";
import { createDatabase } from "../support/database";
import {
  type Call,
  callsFor,
  MODELS,
  type Model,
  type Population,
  populations,
  SCOPES,
  type Scope,
  type StoredRow,
  stored,
} from "./arbitraries";

/** A database with its adapter, and a way past the adapter. */
interface Bench {
  adapter: DBAdapter;
  fill(rows: Record<Model, StoredRow[]>): Promise<void>;
  dump(): Promise<Record<Model, StoredRow[]>>;
}

const base = {
  secret: "a test secret that is long enough for everybody",
  baseURL: "http://localhost:3000",
  logger: { disabled: true },
  user: { additionalFields: { credits: { type: "number", required: false } } },
} satisfies BetterAuthOptions;

/** The same tables without the border: what the confined adapter is compared with. */
const tablesOnly = (): BetterAuthPlugin => ({ id: "tables-only", schema: tenantAuth().schema });

async function memoryBench(plugin: BetterAuthPlugin): Promise<Bench> {
  const db: Record<string, StoredRow[]> = { tenant: [] };
  const auth = betterAuth({ ...base, database: memoryAdapter(db), plugins: [plugin] });
  const { adapter } = await auth.$context;
  return {
    adapter: adapter as unknown as DBAdapter,
    async fill(rows) {
      for (const model of MODELS) db[model] = rows[model].map((row) => ({ ...row }));
    },
    async dump() {
      const copy = (model: Model) => (db[model] ?? []).map((row) => ({ ...row }));
      return Object.fromEntries(MODELS.map((model) => [model, copy(model)])) as Record<
        Model,
        StoredRow[]
      >;
    },
  };
}

async function sqliteBench(plugin: BetterAuthPlugin): Promise<Bench> {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  const auth = betterAuth({ ...base, database: database.option, plugins: [plugin] });
  const { adapter } = await auth.$context;
  await (await getMigrations(auth.options)).runMigrations();
  const toColumn = (value: unknown) => {
    if (value instanceof Date) return value.toISOString();
    return typeof value === "boolean" ? Number(value) : value;
  };
  return {
    adapter: adapter as unknown as DBAdapter,
    async fill(rows) {
      for (const model of MODELS.toReversed()) await database.query(`delete from "${model}"`);
      for (const model of MODELS) {
        for (const row of rows[model]) {
          const columns = Object.keys(row).map((column) => `"${column}"`);
          await database.query(
            `insert into "${model}" (${columns}) values (${columns.map(() => "?")})`,
            Object.values(row).map(toColumn),
          );
        }
      }
    },
    async dump() {
      const tables = MODELS.map(async (model) => [
        model,
        await database.query(`select * from "${model}" order by id`),
      ]);
      return Object.fromEntries(await Promise.all(tables));
    },
  };
}

const BENCHES = { memory: memoryBench, sqlite: sqliteBench };

const of = (rows: Record<Model, StoredRow[]>, owner: (tenantId: string) => boolean) =>
  Object.fromEntries(
    MODELS.map((model) => [model, rows[model].filter((row) => owner(String(row.tenantId)))]),
  ) as Record<Model, StoredRow[]>;

/** The answer, or that there was an error. */
async function answerOf(adapter: DBAdapter, { method, input, inTransaction }: Call) {
  const ask = (door: DBTransactionAdapter) =>
    (door[method] as (input: unknown) => Promise<unknown>)(structuredClone(input));
  try {
    return { answer: await (inTransaction ? adapter.transaction(ask) : ask(adapter)) };
  } catch (error) {
    return { error: (error as { body?: { code?: string } }).body?.code ?? "error" };
  }
}

/** Runs the calls on both sides and compares: every answer, and what is left in the tables. */
async function compare(
  confined: Bench,
  plain: Bench,
  population: Population,
  scope: Scope,
  calls: Call[],
) {
  const own = (tenantId: string) => tenantId === stored(scope);
  await confined.fill(population);
  await plain.fill(of(population, own));
  const others = of(await confined.dump(), (tenantId) => !own(tenantId));

  for (const call of calls) {
    const before = await confined.dump();
    const got = await runInScope(settled(scope), () => answerOf(confined.adapter, call));
    const label = `${scope ?? "platform"}: ${JSON.stringify(call)}`;
    if (givesAwayTo(call, before, own)) {
      // R8: a session or an account for somebody outside is refused, where a plain adapter obeys.
      expect(got, label).toEqual({ error: "USER_NOT_IN_TENANT" });
      expect(await confined.dump(), label).toEqual(before);
      continue;
    }
    const expected = await answerOf(plain.adapter, asOwn(call, scope));
    expect(got, label).toEqual(expected);
  }
  const after = await confined.dump();
  expect(of(after, own)).toEqual(await plain.dump());
  expect(of(after, (tenantId) => !own(tenantId))).toEqual(others);
}

/** Whether a write names a user that is not in the scope. */
function givesAwayTo(
  { input }: Call,
  rows: Record<Model, StoredRow[]>,
  own: (tenantId: string) => boolean,
): boolean {
  const userId = (input.data ?? input.update)?.userId;
  if (userId === undefined) return false;
  return !rows.user.some((user) => user.id === userId && own(String(user.tenantId)));
}

/** The call as somebody would make it who is alone: rows are created, and stay, in the scope. */
function asOwn(call: Call, scope: Scope): Call {
  const { data, update, ...input } = call.input;
  if (data) return { ...call, input: { ...input, data: { ...data, tenantId: stored(scope) } } };
  if (!update) return call;
  const { tenantId: _, ...rest } = update;
  return { ...call, input: { ...input, update: rest } };
}

describe.each([
  ["memory", 500],
  ["sqlite", 120],
] as const)("R3: the confined adapter on %s", (kind, numRuns) => {
  it("answers in a scope as a plain adapter over the rows of that scope alone", async () => {
    // Users say when they were updated, and the two sides are asked one after the other.
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const confined = await BENCHES[kind](tenantAuth());
    const plain = await BENCHES[kind](tablesOnly());
    const worlds = populations.chain((population) =>
      fc.record({
        population: fc.constant(population),
        scope: fc.constantFrom(...SCOPES),
        calls: fc.array(callsFor(population, kind), { minLength: 1, maxLength: 5 }),
      }),
    );
    // A failure is printed with its seed and path: hand both to fc.assert to see it again.
    await fc.assert(
      fc.asyncProperty(worlds, ({ population, scope, calls }) =>
        compare(confined, plain, population, scope, calls),
      ),
      { numRuns },
    );
  });
});
