import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { prepareComparisons } from "./comparisons";
import type { DatabaseKind } from "./database";
import { fakeGoogle } from "./identity-provider";
import { compareLayouts, isLayout, measureLayout } from "./many-tenants";
import { compare, costsTooMany, type Effort, type Ratio } from "./measure";
import { print, type Report } from "./report";

const { values: flags } = parseArgs({
  options: {
    /** A minute instead of several: good for a look, not for figures. */
    short: { type: "boolean", default: false },
    database: { type: "string", default: process.env.BENCH_DATABASE ?? "sqlite" },
    /** Secondary storage in Redis instead of a map. */
    redis: { type: "boolean", default: false },
    /** Only the comparisons whose name matches. */
    only: { type: "string" },
    rounds: { type: "string" },
    /** JSON instead of tables; with --out, in a file beside them. */
    json: { type: "boolean", default: false },
    out: { type: "string" },
    // How this program calls itself.
    layout: { type: "string" },
    tenants: { type: "string", default: "1000" },
  },
});

fakeGoogle(() => ({ sub: "4711", email: "alice@example.com" }));
if (isLayout(flags.layout)) {
  console.log(JSON.stringify(await measureLayout(flags.layout, Number(flags.tenants))));
} else {
  const report = await measureAll();
  const json = JSON.stringify(report, null, 2);
  if (flags.out) writeFileSync(flags.out, json);
  console.log(flags.json ? json : print(report));
  // Times depend on the machine, and are only reported.
  for (const { name } of report.ratios.filter(costsTooMany)) {
    console.error(`${name}: not the number of queries that it should cost`);
    process.exitCode = 1;
  }
}

async function measureAll(): Promise<Report> {
  const { short, redis, only } = flags;
  const database: DatabaseKind = flags.database === "postgres" ? "postgres" : "sqlite";
  const effort: Effort = short
    ? { rounds: 8, batchMs: 3, warmUpMs: 200 }
    : { rounds: 400, batchMs: 5, warmUpMs: 3000 };
  if (flags.rounds) effort.rounds = Number(flags.rounds);

  const { comparisons, close } = await prepareComparisons({ database, redis });
  const ratios: Ratio[] = [];
  for (const comparison of comparisons) {
    if (only && !new RegExp(only).test(comparison.name)) continue;
    process.stderr.write(`${comparison.name}\n`);
    ratios.push(await compare(comparison, effort));
  }
  await close();
  return {
    machine: {
      node: process.version,
      cpu: cpus()[0]?.model.trim() ?? "",
      database,
      storage: redis ? "Redis" : "a map",
      hash: process.env.BENCH_HASH === "real" ? "real" : "cheap",
    },
    ratios,
    tenants: only ? [] : await compareLayouts(short ? 100 : Number(flags.tenants)),
  };
}
