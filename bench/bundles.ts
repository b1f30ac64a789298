import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

export interface Bundle {
  entry: string;
  /** Bytes of our own code that are loaded at start, gzipped. */
  bytes: number;
  limit: number;
}

const built = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** An entry of the package with all the files of ours that it imports. */
function ownFiles(file: string, known = new Set<string>()): Set<string> {
  if (known.has(file)) return known;
  known.add(file);
  for (const [, path = ""] of readFileSync(file, "utf8").matchAll(/from\s*["'](\.[^"']+)["']/g)) {
    ownFiles(join(dirname(file), path), known);
  }
  return known;
}

const gzipped = (files: Set<string>) =>
  gzipSync(Buffer.concat([...files].map((file) => readFileSync(file)))).length;

export function measureBundles(): Bundle[] {
  const size = (path: string) => gzipped(ownFiles(built(path)));
  return [
    { entry: "client", bytes: size("client/client.js"), limit: 1000 },
    { entry: "server", bytes: size("server/index.js"), limit: 17_000 },
  ];
}
