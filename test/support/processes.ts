import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "tsup";

const root = join(import.meta.dirname, "../..");

/** Builds a file that runs in processes of its own. Inside the project, so that it finds its packages. */
export async function buildForProcesses(file: string) {
  const directory = mkdtempSync(join(root, "node_modules", ".process-"));
  await build({
    entry: { main: file },
    outDir: directory,
    format: "esm",
    target: "node20",
    skipNodeModulesBundle: true,
    config: false,
    silent: true,
  });
  return {
    path: join(directory, "main.js"),
    remove: () => rmSync(directory, { recursive: true }),
  };
}
