import { defineConfig } from "tsup";

/** The program that starts vitest; the runner is loaded by vitest itself. */
export default defineConfig({
  entry: ["mutation/main.ts", "mutation/tests-for.ts"],
  format: "esm",
  target: "es2022",
  outDir: "node_modules/.cache/mutation/program",
  clean: true,
  skipNodeModulesBundle: true,
});
