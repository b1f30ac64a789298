import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const fromRoot = (path: string) => join(import.meta.dirname, path);

/** The few long files first, so that no worker is left alone with one at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const long = [
      "variants",
      "covering-set",
      "planted-holes",
      "docs",
      "package",
      "adapter-suites",
      "stores",
      "three-processes",
    ];
    const rank = ({ moduleId }: TestSpecification) =>
      long.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
    const ranked = files.filter((file) => rank(file) >= 0).sort((a, b) => rank(a) - rank(b));
    return [...ranked, ...files.filter((file) => rank(file) < 0)];
  }
}

/** With servers, the files that have something to do there: the others ran without, on SQLite. */
function files(): string[] {
  if (!process.env.TEST_SERVERS) return ["test/**/*.test.ts"];
  const knowsServers = /TEST_SERVERS|\/(servers|stores|attempts|databases|depth)"/;
  return readdirSync(fromRoot("test"), { recursive: true, encoding: "utf8" })
    .map((name) => `test/${name}`)
    .filter((name) => name.endsWith(".test.ts"))
    .filter((name) => knowsServers.test(readFileSync(fromRoot(name), "utf8")));
}

export default defineConfig({
  resolve: {
    // The examples import the package by its name.
    alias: [
      { find: /^better-auth-tenant$/, replacement: fromRoot("src/index.ts") },
      { find: /^better-auth-tenant\/client$/, replacement: fromRoot("src/client.ts") },
      { find: /^better-auth-tenant\/testing$/, replacement: fromRoot("src/testing/index.ts") },
      {
        find: /^better-auth-tenant\/invitations$/,
        replacement: fromRoot("src/invitations/index.ts"),
      },
      {
        find: /^better-auth-tenant\/invitations\/client$/,
        replacement: fromRoot("src/invitations/client.ts"),
      },
    ],
  },
  test: {
    include: files(),
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/setup.ts"],
    testTimeout: 20_000,
    // One load of better-auth for all files of a worker: most of the time went there.
    isolate: false,
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
  },
});
