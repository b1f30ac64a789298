import { defineConfig } from "tsup";

/** The benchmark, with the code of the package in it. */
export default defineConfig({
  entry: ["bench/index.ts"],
  format: "esm",
  target: "es2022",
  outDir: "node_modules/.cache/bench/run",
  clean: true,
  minify: true,
  sourcemap: true,
  skipNodeModulesBundle: true,
});
