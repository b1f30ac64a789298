import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The few long files first, so that no worker is left alone with one at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const long = ["border-matrix", "package", "adapter-suites", "stores"];
    const rank = ({ moduleId }: TestSpecification) =>
      long.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
    const ranked = files.filter((file) => rank(file) >= 0).sort((a, b) => rank(a) - rank(b));
    return [...ranked, ...files.filter((file) => rank(file) < 0)];
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 20_000,
    // One load of better-auth for all files of a worker: most of the time went there.
    isolate: false,
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
  },
});
