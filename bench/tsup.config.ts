import { defineConfig, type Options } from "tsup";
import packageConfig from "../tsup.config";

const out = "node_modules/.cache/bench";

const published: Options = { ...(packageConfig as Options), dts: false, sourcemap: false };

/**
 * The server as it is published; the client in one piece, as the bundler of an application makes it;
 * and the benchmark, with the same code in it.
 */
export default defineConfig([
  { ...published, entry: ["src/index.ts"], outDir: `${out}/server` },
  { ...published, entry: ["src/client.ts"], outDir: `${out}/client`, splitting: false },
  {
    entry: ["bench/index.ts"],
    format: "esm",
    target: "es2022",
    outDir: `${out}/run`,
    clean: true,
    minify: true,
    sourcemap: true,
    skipNodeModulesBundle: true,
  },
]);
