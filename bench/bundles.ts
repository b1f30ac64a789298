import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

export interface Bundle {
  entry: string;
  /** Bytes of our own code that are loaded at start, gzipped. */
  bytes: number;
  limit: number;
}

/** Read from the root of the project, as npm runs the benchmark. */
const built = (path: string) => resolve("dist", path);

/** An entry of the package with all the files of ours that it imports. */
function ownFiles(file: string, known = new Set<string>()): Set<string> {
  if (known.has(file)) return known;
  known.add(file);
  for (const [, path = ""] of readFileSync(file, "utf8").matchAll(/from\s*["'](\.[^"']+)["']/g)) {
    ownFiles(join(dirname(file), path), known);
  }
  return known;
}

/** As an application has it: its bundler leaves out where our source map is. */
const codeOf = (file: string) => readFileSync(file, "utf8").replace(/\/\/# sourceMappingURL.*/, "");

const gzipped = (files: Set<string>) => gzipSync([...files].map(codeOf).join("")).length;

export function measureBundles(): Bundle[] {
  const size = (path: string) => gzipped(ownFiles(built(path)));
  return [
    { entry: "client", bytes: size("client.js"), limit: 1100 },
    { entry: "server", bytes: size("index.js"), limit: 54_000 },
  ];
}
