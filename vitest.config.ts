import { existsSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Plugin } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const fromRoot = (path: string) => join(import.meta.dirname, path);

/** The few long files first, so that no worker is left alone with one at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const long = [
      "isolation",
      "isolation-packages",
      "planted-holes",
      "docs",
      "adapter-suites",
      "start",
      "three-processes",
    ];
    const rank = ({ moduleId }: TestSpecification) =>
      long.findIndex((name) => moduleId.includes(`/${name}.`));
    const ranked = files.filter((file) => rank(file) >= 0).sort((a, b) => rank(a) - rank(b));
    return [...ranked, ...files.filter((file) => rank(file) < 0)];
  }
}

/*
 * What a test needs is in the name of its file: `.servers` runs on SQLite, and with the servers on
 * PostgreSQL, MariaDB and Redis; `.prisma`, `.registry` and `.clusters` install something first.
 */
const needs = (what: string) => `test/**/*.${what}.test.ts`;
const project = (name: string, include: string[], env: Record<string, string>) => ({
  extends: true as const,
  resolve,
  test: { name, include, env },
});

// An installed example has its own copy of better-auth. In an application there is one.
const resolve = { dedupe: ["better-auth", "@better-auth/core", "@better-auth/sso", "better-call"] };

/** What depends on better-auth, and not on documentation, the package or sizes. */
const NEWEST = [
  "test/{client,framework-contract.servers,query-counts}.test.ts",
  "test/{core/isolate,core/resolve,flows,newest,plugins}/**/*.test.ts",
  "test/features/{credentials,email,enterprise,integrations,oauth,policy}/**/*.test.ts",
  "test/testing/*.test.ts",
];

/** What is installed in `test/newest` comes from there. It resolves its own imports as usual. */
const newest: Plugin = {
  name: "newest-better-auth",
  enforce: "pre",
  resolveId(id) {
    const name = /^(?:@[^/]+\/)?[^./@][^/]*/.exec(id)?.[0];
    if (!name || !existsSync(fromRoot(`test/newest/node_modules/${name}`))) return undefined;
    return this.resolve(id, fromRoot("test/newest/package.json"), { skipSelf: true });
  },
};

export default defineConfig({
  resolve: {
    // The examples import the package by its name.
    alias: [
      { find: /^better-auth-tenant$/, replacement: fromRoot("src/index.ts") },
      { find: /^better-auth-tenant\/client$/, replacement: fromRoot("src/client.ts") },
      { find: /^better-auth-tenant\/testing$/, replacement: fromRoot("src/testing/index.ts") },
      {
        find: /^better-auth-tenant\/invitations$/,
        replacement: fromRoot("src/features/invitations/index.ts"),
      },
      {
        find: /^better-auth-tenant\/invitations\/client$/,
        replacement: fromRoot("src/features/invitations/client.ts"),
      },
      {
        find: /^better-auth-tenant\/domains$/,
        replacement: fromRoot("src/features/domains/index.ts"),
      },
      {
        find: /^better-auth-tenant\/domains\/client$/,
        replacement: fromRoot("src/features/domains/client.ts"),
      },
    ],
  },
  test: {
    projects: [
      {
        extends: true,
        resolve,
        test: {
          name: "node",
          include: ["test/**/*.test.ts"],
          exclude: ["**/node_modules/**", needs("registry"), needs("clusters"), "test/soak/**"],
        },
      },
      project("servers", [needs("servers")], { TEST_SERVERS: "1", MATRIX: "full" }),
      project("prisma", [needs("prisma")], { TEST_PRISMA: "1" }),
      project("registry", [needs("registry")], {}),
      project("clusters", [needs("clusters")], {}),
      {
        extends: true,
        plugins: [newest],
        test: {
          name: "newest",
          env: { BETTER_AUTH: "newest" },
          include: NEWEST,
          // better-auth's own suite has a release for the oldest only.
          exclude: [
            "**/node_modules/**",
            needs("registry"),
            needs("prisma"),
            "**/adapter-suites.*",
            "**/{alone,left-out}.*",
          ],
        },
      },
    ],
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/setup.ts"],
    // Stops what hangs. A slow machine may take its time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // One load of better-auth for all files of a worker: most of the time went there.
    isolate: false,
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
  },
});
