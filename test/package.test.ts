import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };

const root = join(import.meta.dirname, "..");
const dist = mkdtempSync(join(tmpdir(), "better-auth-tenant-"));
const built = (path: string) => join(dist, path.replace("./dist/", ""));

// The code. Its declarations take half a minute, and are looked at in package.registry.test.ts.
beforeAll(async () => {
  await promisify(execFile)("npx", ["rolldown", "-c"], {
    cwd: root,
    env: { ...process.env, BUILD_DIR: dist },
  });
}, 60_000);

afterAll(() => rmSync(dist, { recursive: true }));

interface Graph {
  /** The entry, and what it imports of the package itself. */
  files: string[];
  /** What it imports of other packages. */
  imports: string[];
}

function graphOf(entry: string): Graph {
  const files = new Set<string>();
  const imports = new Set<string>();
  const visit = (file: string) => {
    if (files.has(file)) return;
    files.add(file);
    for (const fileName of importsOf(file)) {
      if (!fileName.startsWith(".")) imports.add(fileName);
      else visit(join(dirname(file), fileName));
    }
  };
  visit(built(entry));
  return { files: [...files], imports: [...imports].sort() };
}

/** What a file imports, at start or later. */
function importsOf(file: string): string[] {
  const imports: string[] = [];
  const visit = (node: ts.Node) => {
    const from =
      ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
        ? node.moduleSpecifier
        : ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
          ? node.arguments[0]
          : undefined;
    if (from && ts.isStringLiteral(from)) imports.push(from.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest));
  return imports;
}

/** "@scope/name/entry" and "name/entry" without the entry. */
function packageOf(specifier: string) {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

const promised = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
const kilobytes = (code: Buffer | string) => gzipSync(code).length / 1000;
const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === "string" ? [] : [{ name, ...target }],
);

describe.each(entries)("the entry $name", ({ default: script }) => {
  test("imports nothing of Node, so that it runs on the edge", () => {
    expect(graphOf(script).imports.filter(isBuiltin)).toEqual([]);
  });

  test("imports only packages that come with it", () => {
    const missing = graphOf(script).imports.filter((name) => !promised.includes(packageOf(name)));
    expect(missing).toEqual([]);
  });
});

test("the server imports entries that better-auth documents", () => {
  // A new line here is a new promise that better-auth has to keep.
  expect(graphOf("./dist/index.js").imports).toEqual([
    "@better-auth/core/context",
    "@better-auth/core/utils/error-codes",
    "@better-auth/core/utils/url",
    "better-auth",
    "better-auth/api",
    "better-auth/cookies",
    "better-auth/crypto",
    "better-auth/db",
    "better-auth/social-providers",
    "better-call",
    "zod",
  ]);
});

test("the client imports nothing of the server", () => {
  const { files, imports } = graphOf("./dist/client.js");
  expect(files.map((file) => basename(file))).not.toContain("index.js");
  // The second one is in every browser that has better-auth's client already.
  expect(imports).toEqual(["@better-auth/core/utils/error-codes", "better-auth/client"]);
});

test("the client's own code is under 1 kB as browsers load it", () => {
  const client = readFileSync(built("./dist/client.js"), "utf8");
  expect(kilobytes(client.replace(/\/\/# sourceMappingURL.*/, ""))).toBeLessThan(1);
});

/** What is loaded before anything runs. */
function startOf(entry: string): Set<string> {
  const files = new Set<string>();
  const visit = (file: string) => {
    if (files.has(file)) return;
    files.add(file);
    for (const [, path = ""] of readFileSync(file, "utf8").matchAll(/from\s*["'](\.[^"']+)/g)) {
      visit(join(dirname(file), path));
    }
  };
  visit(built(entry));
  return files;
}

const sizeOf = (files: Iterable<string>) =>
  kilobytes(Buffer.concat([...files].map((file) => readFileSync(file))));

test("invitations are not in the server, and their own code is under 5 kB as it starts", () => {
  const core = graphOf("./dist/index.js").files;
  const invitations = startOf("./dist/invitations.js");
  const own = [...invitations].filter((file) => !core.includes(file));
  expect(own.length).toBeGreaterThan(0);
  for (const file of core) expect(readFileSync(file, "utf8")).not.toContain("/tenant/invitation");
  expect(sizeOf(own)).toBeLessThan(5);
});

test("the client of invitations is by itself, and under 1 kB", () => {
  const { files, imports } = graphOf("./dist/invitations-client.js");
  expect(files).toHaveLength(1);
  expect(imports).toEqual(["@better-auth/core/utils/error-codes"]);
  expect(sizeOf(files)).toBeLessThan(1);
});

test("the server is under 18 kB as it starts; what only managers need comes later", () => {
  expect(sizeOf(startOf("./dist/index.js"))).toBeLessThan(18);
});
