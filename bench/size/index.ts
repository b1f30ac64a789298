import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { fakeGoogle } from "../identity-provider";
import { compare, type Effort, type Ratio } from "../measure";
import { deleteHotTenant, measureDeletion } from "./deletion";
import { FLOWS_OF_TENANTS, FLOWS_OF_USERS } from "./flows";
import { acrossTenants, inHotTenant, openInstance } from "./place";
import { type Size, userEmail } from "./population";
import { print, type Report } from "./report";

const { values: flags } = parseArgs({
  options: {
    /** A tenth of the rows, and a look instead of figures. */
    short: { type: "boolean", default: false },
    /** Only the flows whose name matches. */
    only: { type: "string" },
    rounds: { type: "string" },
    /** JSON instead of text; with --out, in a file beside it. */
    json: { type: "boolean", default: false },
    out: { type: "string", default: process.env.BENCH_OUT },
    // How this program calls itself.
    delete: { type: "string" },
  },
});

const SMALL: Size = { tenants: 10, users: 100, hotUsers: 10 };
const LARGE: Size = flags.short
  ? { tenants: 10_000, users: 100_000, hotUsers: 10_000 }
  : { tenants: 100_000, users: 1_000_000, hotUsers: 100_000 };
const EFFORT: Effort = flags.short
  ? { rounds: 10, batchMs: 10, warmUpMs: 300 }
  : { rounds: 100, batchMs: 20, warmUpMs: 2000 };
if (flags.rounds) EFFORT.rounds = Number(flags.rounds);
const TARGET = 0.9;

if (flags.delete) {
  console.log(JSON.stringify(await deleteHotTenant(flags.delete)));
} else {
  fakeGoogle((code) => ({ sub: code, email: userEmail(Number(code)) }));
  const report = await measure();
  const json = JSON.stringify(report, null, 2);
  if (flags.out) writeFileSync(flags.out, json);
  // Times depend on the machine, and are only reported.
  console.log(flags.json ? json : print(report));
}

async function measure(): Promise<Report> {
  const sizes: Report["sizes"] = [];
  const open = async (size: Size) => {
    const users = size.users + size.hotUsers;
    process.stderr.write(`loading ${size.tenants} tenants\n`);
    const start = performance.now();
    const instance = await openInstance(size);
    const loadSeconds = (performance.now() - start) / 1000;
    sizes.push({ tenants: size.tenants, users, sessions: users, loadSeconds });
    return instance;
  };
  const small = await open(SMALL);
  const large = await open(LARGE).catch(async (error) => {
    await small.close();
    throw error;
  });
  try {
    const few = acrossTenants(small);
    const many = { "": acrossTenants(large) };
    const hot = { ", tenant with many users": inHotTenant(large) };
    const flows = [
      ...Object.entries(FLOWS_OF_USERS).map(([flow, at]) => ({
        flow,
        at,
        places: { ...many, ...hot },
      })),
      ...Object.entries(FLOWS_OF_TENANTS).map(([flow, at]) => ({ flow, at, places: many })),
    ];
    const ratios: Ratio[] = [];
    for (const { flow, at, places } of flows) {
      if (flags.only && !new RegExp(flags.only).test(flow)) continue;
      const theirs = await at(few);
      for (const [where, place] of Object.entries(places)) {
        const name = flow + where;
        process.stderr.write(`${name}\n`);
        const comparison = { name, ours: await at(place), theirs, target: TARGET };
        ratios.push(await compare(comparison, EFFORT));
      }
    }
    process.stderr.write("deletion\n");
    const deletion = await measureDeletion(large);
    const machine = {
      node: process.version,
      cpu: cpus()[0]?.model.trim() ?? "",
      database: "PostgreSQL",
    };
    return { machine, sizes, ratios, deletion };
  } finally {
    await small.close();
    await large.close();
  }
}
