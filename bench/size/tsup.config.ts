import { defineConfig } from "tsup";

/** The benchmark of sizes, with the code of the package in it. */
export default defineConfig({
  entry: ["bench/size/index.ts"],
  format: "esm",
  target: "es2022",
  outDir: "node_modules/.cache/bench/size",
  clean: true,
  minify: true,
  sourcemap: true,
  skipNodeModulesBundle: true,
});
