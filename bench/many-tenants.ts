import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import type { Database } from "libsql";
import { createSqlite } from "./database";
import {
  baseOptions,
  createPlain,
  createWithPlugin,
  type Handler,
  PASSWORD,
  request,
  send,
} from "./instance";
import { quantile } from "./measure";

/** How a process serves its tenants. */
const LAYOUTS = ["one instance", "instance per tenant"] as const;
export type Layout = (typeof LAYOUTS)[number];

export interface Cost {
  layout: Layout;
  tenants: number;
  /** What the process holds when every tenant has been used, in MB. */
  heap: number;
  resident: number;
  /** Milliseconds until somebody is signed in at a tenant that was not used before. */
  firstAnswer: number;
  /** Sign-ins in a second, at one tenant after the other. */
  throughput: number;
}

/** Signs somebody in, at one tenant each. */
type SignIns = (() => Promise<void>)[];

const person = { name: "Somebody", email: "somebody@example.com", password: PASSWORD };
const { name: _, ...credentials } = person;
const isSignedIn = async (handler: Handler, call: Request) =>
  void (await (await send(handler, call)).arrayBuffer());

/** The plugin: one instance, and a row for each tenant. */
async function oneInstance(tenants: number): Promise<SignIns> {
  const { handler, api } = await createWithPlugin({ database: createSqlite().option });
  const calls: { body: object }[] = [];
  for (let number = 0; number < tenants; number++) {
    const slug = `tenant-${number}`;
    const { id: tenantId } = await api.createTenant({ body: { name: slug, slug } });
    await api.signUpEmailTenant({ body: { ...person, tenantId } });
    calls.push({ body: { ...credentials, tenantId } });
  }
  return calls.map((call) => () => isSignedIn(handler, request("/tenant/sign-in/email", call)));
}

/** The usual workaround: an instance for each tenant, each with a database of its own. */
async function instancePerTenant(tenants: number): Promise<SignIns> {
  const template = createSqlite();
  const { api, options } = await createPlain({ database: template.option });
  const tables = await (
    await getMigrations(baseOptions({ database: createSqlite().option }))
  ).compileMigrations();
  await api.signUpEmail({ body: person });
  const rows = ["user", "account"].map((table) => ({
    table,
    row: template.database.prepare(`select * from "${table}"`).all([])[0] as object,
  }));
  const databases = Array.from({ length: tenants }, () => createSqlite());
  for (const { database } of databases) {
    database.exec(tables);
    for (const { table, row } of rows) insert(database, table, row);
  }
  return databases.map(({ option }) => {
    let handler: Handler | undefined;
    return async () => {
      handler ??= betterAuth({ ...options, database: option }).handler;
      await isSignedIn(handler, request("/sign-in/email", { body: credentials }));
    };
  });
}

function insert(database: Database, table: string, row: object) {
  const places = Object.keys(row).map(() => "?");
  const columns = Object.keys(row).map((column) => `"${column}"`);
  const statement = `insert into "${table}" (${columns}) values (${places})`;
  database.prepare(statement).run(Object.values(row));
}

/** Runs in a process of its own, so that nothing else is on its heap. */
export async function measureLayout(layout: Layout, tenants: number): Promise<Cost> {
  const signIns = await (layout === "one instance" ? oneInstance : instancePerTenant)(tenants);
  // The code is warm, whoever comes first.
  for (let count = 0; count < 200; count++) await signIns[0]?.();
  const firstAnswers: number[] = [];
  for (const signIn of signIns) firstAnswers.push(await milliseconds(signIn));
  const turns = Math.max(tenants, 1000);
  const time = await milliseconds(async () => {
    for (let turn = 0; turn < turns; turn++) await signIns[turn % tenants]?.();
  });
  globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  return {
    layout,
    // Asked for here, so that all of them are still there when the memory is measured.
    tenants: signIns.length,
    heap: heapUsed / 2 ** 20,
    resident: rss / 2 ** 20,
    firstAnswer: quantile(firstAnswers, 0.5),
    throughput: turns / (time / 1000),
  };
}

async function milliseconds(run: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

const run = promisify(execFile);

/** One tenant and many in one instance, and many in as many instances. */
export async function compareLayouts(many: number): Promise<Cost[]> {
  const costs: Cost[] = [];
  for (const [layout, tenants] of [
    ["one instance", 1],
    ["one instance", many],
    ["instance per tenant", many],
  ] as const) {
    const script = fileURLToPath(import.meta.url);
    const child = [script, "--layout", layout, "--tenants", String(tenants)];
    const { stdout } = await run(process.execPath, ["--expose-gc", ...child]);
    costs.push(JSON.parse(stdout));
  }
  return costs;
}

export const isLayout = (name: string | undefined): name is Layout =>
  (LAYOUTS as readonly (string | undefined)[]).includes(name);
