import { relative } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import base from "../vitest.config";

/** The likelier killers first, as they were given. */
class AsGiven extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { include } = this.ctx.config;
    const rank = (file: TestSpecification) => include.indexOf(relative(".", file.moduleId));
    return [...files].sort((a, b) => rank(a) - rank(b));
  }
}

/** The tests on SQLite in one process, with a runner that switches mutants on and off. */
export default defineConfig({
  resolve: base.resolve,
  test: {
    ...base.test,
    projects: undefined,
    runner: "mutation/runner.ts",
    isolate: false,
    maxWorkers: 1,
    sequence: { sequencer: AsGiven },
    passWithNoTests: true,
    // Mutants make noise and leave promises behind. What counts is said by the runner itself.
    silent: true,
    reporters: [{}],
    dangerouslyIgnoreUnhandledErrors: true,
  },
});
