import { copyFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "tsup";
import { afterAll } from "vitest";

export type Copy = typeof import("../../src/index");

const ROOT = join(import.meta.dirname, "../..");
/** Beside better-auth, so that all copies share that. */
const CACHE = join(ROOT, "node_modules/.cache/second-copy");

let bundle: Promise<string> | undefined;
let copies = 0;

/** In one piece: a copy is whole, also in what it would load late. */
async function buildBundle(): Promise<string> {
  const outDir = join(CACHE, `${process.pid}-${Date.now()}`);
  await build({
    config: false,
    entry: [join(ROOT, "src/index.ts")],
    format: "esm",
    outDir,
    splitting: false,
    silent: true,
  });
  return outDir;
}

/** For files that use copies: nothing of them is left behind. */
export function cleanUpCopies(): void {
  afterAll(async () => {
    if (bundle) await rm(await bundle, { recursive: true });
    bundle = undefined;
  });
}

/** The package once more, as a bundle of its own or a hot reload brings it into the process. */
export async function secondCopy(): Promise<Copy> {
  bundle ??= buildBundle();
  const directory = await bundle;
  const file = join(directory, `copy-${++copies}.js`);
  await copyFile(join(directory, "index.js"), file);
  return import(/* @vite-ignore */ pathToFileURL(file).href);
}
