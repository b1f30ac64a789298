import type { Mutant } from "./instrument";
import type { Line } from "./session";

type Outcome =
  | "killed"
  /** Every test that passes by it succeeded. */
  | "survived"
  /** It took more time than one mutant is given, before all its tests had run. */
  | "given up"
  /** No test comes there with a value for which it matters. */
  | "not reached"
  /** The time for everything was over. */
  | "undecided";

export interface Fate extends Mutant {
  outcome: Outcome;
  ms: number;
}

/** What became of each mutant, from everything the runner said. */
export function fates(mutants: Mutant[], said: Line[], ended: boolean): Fate[] {
  const failing = said.find((line) => "failed" in line && line.failed);
  if (failing && "failed" in failing) throw new Error(`${failing.test} fails without any mutant.`);
  return mutants.map((mutant) => {
    const trials = said.filter((line) => "mutant" in line && line.mutant === mutant.id);
    return { ...mutant, ...fate(trials as Trial[], ended) };
  });
}

type Trial = Extract<Line, { mutant: number }>;

function fate(trials: Trial[], ended: boolean): Pick<Fate, "outcome" | "ms"> {
  const ms = trials.at(-1)?.ms ?? 0;
  if (trials.some(({ killed }) => killed)) return { outcome: "killed", ms };
  if (!ended) return { outcome: "undecided", ms };
  if (trials.length === 0) return { outcome: "not reached", ms };
  const last = new Map(trials.map((trial) => [trial.test, trial]));
  return { outcome: [...last.values()].some(({ cut }) => cut) ? "given up" : "survived", ms };
}

const OUTCOMES = ["killed", "survived", "given up", "not reached", "undecided"] as const;

const percent = (part: number, whole: number) => (whole === 0 ? 100 : (100 * part) / whole);

function count(found: Fate[]) {
  const of = (outcome: Outcome) => found.filter((fate) => fate.outcome === outcome).length;
  const numbers = OUTCOMES.map(of);
  const tried = found.length - of("undecided");
  return { numbers, tried, score: percent(of("killed"), tried) };
}

function row(name: string, found: Fate[]): string {
  const { numbers, score } = count(found);
  const seconds = Math.round(found.reduce((sum, { ms }) => sum + ms, 0) / 1000);
  return `| ${[name, found.length, ...numbers, `${score.toFixed(0)} %`, seconds].join(" | ")} |`;
}

/** Says it as Markdown, and answers with how many were tried, and their score. */
export function print(found: Fate[]) {
  const files = [...new Set(found.map(({ file }) => file))];
  const columns = ["file", "mutants", ...OUTCOMES, "score", "seconds"];
  console.log(`| ${columns.join(" | ")} |\n|${columns.map(() => "---|").join("")}`);
  for (const name of files) {
    const ofFile = found.filter(({ file }) => file === name);
    console.log(row(name, ofFile));
  }
  if (files.length !== 1) console.log(row("all", found));
  for (const { file, line, was, now, outcome } of found) {
    if (outcome === "killed" || outcome === "undecided") continue;
    console.log(`- ${file}:${line} ${outcome}: \`${was}\` -> \`${now}\``);
  }
  return count(found);
}
