import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { areaOf, testsOf } from "./areas";
import { baseRevision, changedLines } from "./changed";
import type { Mutant } from "./instrument";
import { type Fate, fates, print } from "./report";
import { prepare, tryMutants } from "./session";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** For everything together; what was not reached by then is said. */
    minutes: { type: "string" },
    /** Without paths: mutants on lines changed since then. */
    base: { type: "string" },
    /** One mutant of so many, spread evenly: a score of a whole area in minutes. */
    every: { type: "string", default: "1" },
    /** Test files, instead of the area's own. */
    tests: { type: "string", multiple: true },
    /** Seconds for one mutant. */
    patience: { type: "string", default: "20" },
    /** Per cent of the mutants that must not live. */
    least: { type: "string", default: "85" },
  },
});

/** Of so many that were tried, per cent mean something. */
const ENOUGH = 20;

/** The files to try, and on which of their lines. */
type Subjects = Map<string, Set<number> | undefined>;

/** `src/file.ts`, or `src/file.ts:12` for what is on that line. */
function named(paths: string[]): Subjects {
  const found: Subjects = new Map();
  for (const path of paths) {
    const [file = "", line] = path.split(":");
    found.set(file, line ? new Set(found.get(file)).add(Number(line)) : undefined);
  }
  return found;
}

function subjects(): Subjects {
  if (positionals.length > 0) return named(positionals);
  const base = values.base ?? baseRevision();
  console.log(`Mutants on lines changed since ${base}.`);
  return new Map([...changedLines(base)].filter(([file]) => existsSync(file) && areaOf(file)));
}

async function tryArea(area: string, lines: Subjects, until: number): Promise<Fate[]> {
  const files = [...lines.keys()].filter((file) => areaOf(file) === area);
  const sources = prepare(files);
  const isWanted = ({ file, line }: Mutant) => lines.get(file)?.has(line) ?? true;
  const isSampled = (_: Mutant, index: number) => index % Number(values.every) === 0;
  const mutants = sources
    .flatMap((source) => source.mutants)
    .filter(isWanted)
    .filter(isSampled);
  if (mutants.length === 0) return [];
  const said = await tryMutants(sources, values.tests ?? testsOf(area, files), {
    mutants: mutants.map(({ id, atLoad }) => ({ id, atLoad })),
    until,
    perMutant: Number(values.patience) * 1000,
  });
  return fates(mutants, said, Date.now() < until);
}

async function main() {
  const lines = subjects();
  const outside = [...lines.keys()].filter((file) => !areaOf(file));
  if (outside.length > 0) throw new Error(`No area in mutation/areas.ts: ${outside}`);
  const minutes = Number(values.minutes ?? (positionals.length > 0 ? 60 : 5));
  const until = Date.now() + minutes * 60_000;
  const found: Fate[] = [];
  const areasOfFiles = [...lines.keys()].map((file) => areaOf(file) as string);
  const sizeOf = (area: string) => areasOfFiles.filter((other) => other === area).length;
  // The small ones first: what they leave over is for the others.
  const areas = [...new Set(areasOfFiles)].sort((a, b) => sizeOf(a) - sizeOf(b));
  for (const [index, area] of areas.entries()) {
    const share = (until - Date.now()) / (areas.length - index);
    found.push(...(await tryArea(area, lines, Date.now() + share)));
  }
  if (found.length === 0) console.log("No mutant there.");
  const { tried, score } = print(found);
  if (tried < ENOUGH) console.log(`Of fewer than ${ENOUGH} nothing follows.`);
  process.exit(tried >= ENOUGH && score < Number(values.least) ? 1 : 0);
}

await main();
