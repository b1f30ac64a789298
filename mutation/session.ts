import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { startVitest } from "vitest/node";
import { instrument, type Mutant } from "./instrument";

/** What the runner is told. */
export interface Job {
  mutants: Pick<Mutant, "id" | "atLoad">[];
  /** How many test files there are. */
  files: number;
  /** Where it writes a line for everything it finds out. */
  output: string;
  /** When to stop. */
  until: number;
  /** Milliseconds of work for one mutant, in all test files together. */
  perMutant: number;
}

/** What the runner says: a test file ran as it is; a mutant is tried; a mutant was tried. */
export type Line =
  | { test: string; ms: number; failed: boolean }
  | { trying: number; process: number }
  | { mutant: number; killed: boolean; cut: boolean; ms: number; test: string };

type Limits = Omit<Job, "output" | "files">;

declare module "vitest" {
  interface ProvidedContext {
    mutation: Job;
  }
}

const OUTPUT = resolve("node_modules/.cache/mutation/lines.jsonl");

/** Milliseconds without a word after which a mutant counts as one that never ends. */
const SILENCE = 120_000;

export interface Source {
  file: string;
  code: string;
  mutants: Mutant[];
}

/** The files with all their mutants in them, numbered through. */
export function prepare(files: string[]): Source[] {
  const sources: Source[] = [];
  let next = 0;
  for (const file of files) {
    const { code, mutants } = instrument(file, readFileSync(file, "utf8"), next);
    next += mutants.length;
    sources.push({ file, code, mutants });
  }
  return sources;
}

/** Vite loads the files from here instead of the disk. */
const mutated = (sources: Source[]) => ({
  name: "mutated",
  enforce: "pre" as const,
  load(id: string) {
    return sources.find(({ file }) => resolve(file) === id.split("?")[0])?.code;
  },
});

function read(): Line[] {
  const lines = readFileSync(OUTPUT, "utf8").split("\n");
  return lines.filter(Boolean).map((line) => JSON.parse(line) as Line);
}

/** A mutant that keeps the process busy for good is ended from outside. */
function watch() {
  return setInterval(() => {
    const last = read().at(-1);
    const silent = Date.now() - statSync(OUTPUT).mtimeMs > SILENCE;
    if (silent && last && "trying" in last) process.kill(last.process, "SIGKILL");
  }, 5_000);
}

/** Starts vitest once, for some files of one area and the tests that prove them. */
async function start(sources: Source[], tests: string[], limits: Limits) {
  mkdirSync(dirname(OUTPUT), { recursive: true });
  writeFileSync(OUTPUT, "");
  // Its advice is about a form of the configuration that TypeScript does not accept.
  process.env.VITE_CONFIG_NATIVE_IGNORE_WARNING = "true";
  const watching = watch();
  const vitest = await startVitest(
    "test",
    [],
    {
      config: "mutation/vitest.config.ts",
      watch: false,
      include: tests,
      provide: { mutation: { ...limits, files: tests.length, output: OUTPUT } },
    },
    { plugins: [mutated(sources)] },
  );
  await vitest.close();
  clearInterval(watching);
  return read();
}

/** Everything the runner says, however often a mutant takes the process down with it. */
export async function tryMutants(
  sources: Source[],
  tests: string[],
  limits: Limits,
): Promise<Line[]> {
  const said = await start(sources, tests, limits);
  const last = said.at(-1);
  if (!last || !("trying" in last)) return said;
  said.push({ mutant: last.trying, killed: true, cut: false, ms: 0, test: "" });
  const isDead = (id: number) =>
    said.some((line) => "mutant" in line && line.mutant === id && line.killed);
  const mutants = limits.mutants.filter(({ id }) => !isDead(id));
  return [...said, ...(await tryMutants(sources, tests, { ...limits, mutants }))];
}
