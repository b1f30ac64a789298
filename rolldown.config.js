import { rmSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "rolldown";

const dir = process.env.BUILD_DIR ?? "dist";
rmSync(dir, { recursive: true, force: true });

const entry = join(import.meta.dirname, "src/index.ts");
/** The minifier writes import(`./part.js`), which not every tool that reads imports understands. */
const plainImports = {
  name: "plain-imports",
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type === "chunk")
        chunk.code = chunk.code.replace(/\bimport\(`([^`$]+)`\)/g, 'import("$1")');
    }
  },
};

const common = { external: /^[^./]/, platform: "neutral", plugins: [plainImports] };
const output = { dir, format: "esm", minify: true, sourcemap: true };

/** The modules that `id` imports before anything runs, and those that these import. */
function loadedAtStart(id, modules, known = new Set()) {
  if (known.has(id)) return known;
  known.add(id);
  for (const imported of modules.getModuleInfo(id)?.importedIds ?? []) {
    loadedAtStart(imported, modules, known);
  }
  return known;
}

/**
 * The types are made by tsup. The client is built by itself, so that browsers get one file. What the
 * server needs at start is one file too: split by who shares what, it would be seventeen, and an
 * eighth of them imports and exports.
 */
export default defineConfig([
  {
    ...common,
    input: {
      index: entry,
      invitations: "src/invitations/index.ts",
      domains: "src/domains/index.ts",
      testing: "src/testing/index.ts",
    },
    output: {
      ...output,
      chunkFileNames: "[name].js",
      codeSplitting: {
        groups: [
          {
            name: (id, modules) => (loadedAtStart(entry, modules).has(id) ? "core" : null),
            debugName: "core",
          },
        ],
      },
    },
  },
  { ...common, input: { client: "src/client.ts" }, output },
  { ...common, input: { "invitations-client": "src/invitations/client.ts" }, output },
  { ...common, input: { "domains-client": "src/domains/client.ts" }, output },
]);
