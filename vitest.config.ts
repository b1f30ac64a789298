import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 20_000,
    // One load of better-auth for all files of a worker: most of the time went there.
    isolate: false,
    maxWorkers: 2,
  },
});
