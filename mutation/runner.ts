import { appendFileSync } from "node:fs";
import { relative } from "node:path";
import { type File, type Suite, startTests, type Task, type Test } from "@vitest/runner";
import { inject, TestRunner, vi } from "vitest";
import { QUIET, SEEN, SWITCH, TURN } from "./instrument";
import type { When } from "./operators";
import type { Job, Line } from "./session";

/** Milliseconds this process has worked, however busy the machine is with others. */
const worked = () => Math.round(process.cpuUsage().user / 1000);

const nameOf = ({ filepath }: File) => relative(process.cwd(), filepath);

/** A file runs as it is, or with one mutant, or as it is again with one test alone. */
interface Run {
  mutant: number;
  /** Tests that are not among them are skipped. */
  only?: Set<string>;
  /** When this run has worked long enough. */
  until?: number;
  /** True from the first failure on: nothing more needs to be known. */
  over: boolean;
  failedIn?: string;
  /** Its time was over before all its tests had run. */
  cut?: boolean;
}

interface Trial {
  id: number;
  only?: Set<string> | undefined;
  until: number;
}

/** A test file: its tests in order, and which of them pass by which mutants. */
interface Subject {
  path: string;
  name: string;
  hits: Map<number, Set<string>>;
  ran: string[];
}

/** What a mutant may turn before it counts as a loop without end. */
const TURNS = 1_000_000;
const NONE = -1;
/** Stands for all tests of a file: what happens outside of any may matter to each. */
const ALL = "*";

const MATTERS: Record<When, (value: unknown) => boolean> = {
  falsy: (value) => !value,
  truthy: (value) => Boolean(value),
  undefined: (value) => value === undefined,
  defined: (value) => value !== undefined,
  present: (value) => value !== undefined && value !== null,
};

/**
 * Runs each test file as it is, noting which tests pass by which mutants, and then once for every
 * mutant still alive, with the tests that pass by it, until one fails. All of it in one process:
 * better-auth is loaded once.
 */
export default class MutationRunner extends TestRunner {
  private job: Job = inject("mutation");
  /** Mutants by number, with the time spent on each. */
  private alive = new Map(this.job.mutants.map(({ id }) => [id, 0]));
  private atLoad = new Set(this.job.mutants.filter(({ atLoad }) => atLoad).map(({ id }) => id));
  private run: Run = { mutant: NONE, over: false };
  private running = new Set<string>();
  /** The tests of the file, in order. */
  private ran: string[] = [];
  private hits = new Map<number, Set<string>>();
  private turns = 0;
  private nested = false;
  private subjects: Subject[] = [];
  /** Tests seen to pass without those before them. */
  private standsAlone = new Set<string>();

  constructor(config: ConstructorParameters<typeof TestRunner>[0]) {
    super(config);
    const here = globalThis as unknown as Record<string, unknown>;
    here[SWITCH] = (id: number) => this.passBy(id);
    here[QUIET] = (id: number) => this.run.mutant === id;
    here[SEEN] = (id: number, when: When, value: unknown) => {
      if (MATTERS[when](value)) this.passBy(id);
      return value;
    };
    here[TURN] = () => {
      if (++this.turns > TURNS) throw new Error("This loop does not end.");
    };
  }

  private passBy(id: number): boolean {
    if (this.nested) return this.run.mutant === id;
    const tests = this.hits.get(id) ?? new Set();
    this.hits.set(id, tests);
    const one = this.running.size > 0 && !this.atLoad.has(id);
    for (const test of one ? this.running : [ALL]) tests.add(test);
    return false;
  }

  private get isDone() {
    return this.alive.size === 0 || Date.now() > this.job.until;
  }

  private say(line: Line) {
    appendFileSync(this.job.output, `${JSON.stringify(line)}\n`);
  }

  override importFile(...args: Parameters<TestRunner["importFile"]>) {
    // What a mutant changed while modules were loaded must not stay.
    if (args[1] === "setup") vi.resetModules();
    return this.isDone && !this.nested ? undefined : super.importFile(...args);
  }

  override async onBeforeRunTask(test: Test) {
    const { only, over, until = Number.POSITIVE_INFINITY } = this.run;
    const asked = !only || only.has(test.id);
    const late = worked() > until || Date.now() > this.job.until;
    if (asked && !over && late) this.run.cut = true;
    if (over || late || !asked) test.mode = "skip";
    else this.running.add(test.id);
    if (!this.nested && test.mode !== "skip") this.ran.push(test.id);
    await super.onBeforeRunTask(test);
  }

  override onAfterRunTask(test: Test) {
    this.running.delete(test.id);
    if (test.result?.state === "fail") this.fail(test.id);
    super.onAfterRunTask(test);
  }

  private fail(where: string) {
    this.run.failedIn ??= where;
    this.run.over = true;
  }

  override async onBeforeRunSuite(suite: Suite) {
    const { only, over } = this.run;
    const wanted = (task: Task): boolean =>
      "tasks" in task ? task.tasks.some(wanted) : !only || only.has(task.id);
    if (over || !wanted(suite)) suite.mode = "skip";
    await super.onBeforeRunSuite(suite);
  }

  override async onAfterRunSuite(suite: Suite) {
    if (suite.result?.state === "fail") this.fail(suite.id);
    await super.onAfterRunSuite(suite);
  }

  onBeforeCollect() {
    if (!this.nested) {
      this.hits = new Map();
      this.ran = [];
    }
    this.running.clear();
    this.turns = 0;
  }

  /**
   * Vitest's own run of a file is the one without a mutant: all others follow from here. What
   * lives is tried with some tests of every file before it is tried with all tests of any.
   */
  override async onAfterRunFiles(files?: File[]) {
    super.onAfterRunFiles();
    const file = files?.[0];
    if (this.nested || !file) return;
    const failed = file.result?.state === "fail";
    const ms = Math.round(file.result?.duration ?? 0);
    if (!this.isDone) this.say({ test: nameOf(file), ms, failed });
    const hits: Subject["hits"] = failed ? new Map() : this.hits;
    const subject = { path: file.filepath, name: nameOf(file), hits, ran: this.ran };
    this.subjects.push(subject);
    this.nested = true;
    await this.tryAll(subject, "some");
    const isLast = this.subjects.length === this.job.files;
    for (const each of isLast ? this.subjects : []) await this.tryAll(each, "all");
    this.nested = false;
    this.run = { mutant: NONE, over: false };
  }

  private async tryAll(subject: Subject, extent: "some" | "all") {
    const killers = new Set<string>();
    const { perMutant, until } = this.job;
    for (const [id, spent] of [...this.alive]) {
      const tests = subject.hits.get(id);
      if (!tests || Date.now() > until) continue;
      this.say({ trying: id, process: process.pid });
      const started = worked();
      const asked = this.choose(subject, tests, extent === "some" ? killers : undefined);
      const trial = { id, only: asked.only, until: started + perMutant - spent };
      const killer = await this.failing(subject.path, trial);
      const ms = spent + worked() - started;
      if (killer || ms >= perMutant) this.alive.delete(id);
      else this.alive.set(id, ms);
      if (killer) killers.add(killer);
      const cut = this.run.cut === true || asked.some;
      if (!cut) subject.hits.delete(id);
      this.say({ mutant: id, killed: killer !== undefined, cut, ms, test: subject.name });
    }
  }

  /** Tests that saw the last mutants, and some from all over the file: neighbours are alike. */
  private choose({ ran }: Subject, hits: Set<string>, killers?: Set<string>) {
    const all = hits.has(ALL);
    const tests = all ? ran : [...hits];
    const last = [...(killers ?? [])].filter((test) => tests.includes(test)).slice(-5);
    const step = Math.ceil(tests.length / 10);
    const few = new Set([...last, ...tests.filter((_, index) => index % step === 0)]);
    if (killers && few.size < tests.length) return { only: few, some: true };
    return { only: all ? undefined : hits, some: false };
  }

  /** The test that fails with this mutant. */
  private async failing(path: string, { id, only, until }: Trial): Promise<string | undefined> {
    const { failedIn } = await this.again(path, { mutant: id, only, until });
    if (failedIn === undefined || !only || this.standsAlone.has(failedIn)) return failedIn;
    // A test that leans on those before it fails without them too: then all have to run.
    const alone = only.has(failedIn) ? new Set([failedIn]) : only;
    const check = await this.again(path, { mutant: NONE, only: alone });
    if (check.failedIn !== undefined) return this.failing(path, { id, until });
    this.standsAlone.add(failedIn);
    return failedIn;
  }

  private async again(path: string, run: Omit<Run, "over">): Promise<Run> {
    this.run = { ...run, over: false };
    const [file] = await startTests([path], this);
    if (file?.result?.state === "fail") this.fail(file.id);
    return this.run;
  }
}
