import { defineConfig } from "tsup";

export default defineConfig({
  entry: ["src/index.ts", "src/client.ts"],
  format: "esm",
  target: "es2022",
  dts: true,
  clean: true,
  treeshake: true,
  sourcemap: true,
  // Comments and white space stay in the source map; names stay as they are.
  esbuildOptions(options) {
    options.minifyWhitespace = true;
    options.minifySyntax = true;
  },
});
