import { defineConfig } from "vitest/config";
import { findChromium } from "./test/support/chromium.ts";

const chromium = findChromium();

export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: chromium ? ["test/*.test.ts"] : [],
    passWithNoTests: true,
    globalSetup: chromium ? ["test/support/application.ts"] : [],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Beside other work, a busy machine now and then needs longer than a browser waits.
    retry: process.env.CI ? 1 : 0,
    // One server and one browser are enough for a small machine.
    fileParallelism: false,
    isolate: false,
  },
});
