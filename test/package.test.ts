import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import ts from "typescript";
import { afterAll, beforeAll, expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };

const root = join(import.meta.dirname, "..");
const dist = mkdtempSync(join(tmpdir(), "better-auth-tenant-"));
const built = (path: string) => join(dist, path.replace("./dist/", ""));

// Without the declarations: they take half a minute, and package.registry.test.ts checks them.
beforeAll(async () => {
  await promisify(execFile)("npx", ["tsup", "--silent", "--no-dts"], {
    cwd: root,
    env: { ...process.env, BUILD_DIR: dist },
  });
}, 60_000);

afterAll(() => rmSync(dist, { recursive: true }));

/** What an entry consists of, and the packages that it imports: at start, or also later. */
function graphOf(entry: string, when: "at start" | "ever" = "ever") {
  const files = new Set<string>();
  const imports = new Set<string>();
  const open = (file: string) => {
    if (files.has(file)) return;
    files.add(file);
    const visit = (node: ts.Node) => {
      const from =
        ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
          ? node.moduleSpecifier
          : ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
            ? when === "ever" && node.arguments[0]
            : undefined;
      if (from && ts.isStringLiteral(from)) {
        if (from.text.startsWith(".")) open(join(dirname(file), from.text));
        else imports.add(from.text);
      }
      ts.forEachChild(node, visit);
    };
    visit(ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest));
  };
  open(built(entry));
  return { files: [...files], imports: [...imports].sort() };
}

/** "@scope/name/entry" and "name/entry" without the entry. */
const packageOf = (specifier: string) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? "";

const promised = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });

/** The size in kB of entries in an application that bundles and minifies them, compressed. */
async function bundledSize(...entries: string[]): Promise<number> {
  const imports = entries.map((entry, index) => `export * as _${index} from "./${entry}.js";`);
  const { outputFiles } = await build({
    stdin: { contents: imports.join("\n"), resolveDir: dist },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "neutral",
    packages: "external",
    write: false,
    logLevel: "error",
  });
  return gzipSync(outputFiles[0]?.contents ?? "").length / 1000;
}

const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
  typeof target === "string" ? [] : [{ name, ...target }],
);

test.each(entries)("$name imports packages that come with it, and nothing of Node", (entry) => {
  const { imports } = graphOf(entry.default);
  expect(imports.filter((name) => isBuiltin(name) || !promised.includes(packageOf(name)))).toEqual(
    [],
  );
});

test("the server imports entries that better-auth documents", () => {
  // A new line here is a new promise that better-auth has to keep.
  expect(graphOf("./dist/index.js").imports).toEqual([
    "@better-auth/core/context",
    "@better-auth/core/utils/error-codes",
    "@better-auth/core/utils/host",
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

test("the client imports nothing of the server, and is under 1.3 kB in a browser", async () => {
  const { imports } = graphOf("./dist/client.js");
  // Every browser that has better-auth's client has the second one already.
  expect(imports).toEqual(["@better-auth/core/utils/error-codes", "better-auth/client"]);
  expect(await bundledSize("client")).toBeLessThan(1.3);
});

test("invitations are not in the server, and their own code is under 9 kB", async () => {
  const core = graphOf("./dist/index.js").files;
  const { files } = graphOf("./dist/invitations.js", "at start");
  const own = files.filter((file) => !core.includes(file));
  expect(own.length).toBeGreaterThan(0);
  for (const file of core) expect(readFileSync(file, "utf8")).not.toContain("/tenant/invitation");
  const added = (await bundledSize("index", "invitations")) - (await bundledSize("index"));
  expect(added).toBeLessThan(9);
});

test("the client of invitations imports nothing of the server, and is under 1.3 kB", async () => {
  const { imports } = graphOf("./dist/invitations-client.js");
  expect(imports).toEqual(["@better-auth/core/utils/error-codes"]);
  expect(await bundledSize("invitations-client")).toBeLessThan(1.3);
});

test("domains are not in the server, and their own code is under 7 kB without the public suffixes", async () => {
  const core = graphOf("./dist/index.js");
  const { files, imports } = graphOf("./dist/domains.js", "at start");
  const own = files.filter((file) => !core.files.includes(file));
  expect(own.length).toBeGreaterThan(0);
  expect([imports.includes("tldts"), core.imports.includes("tldts")]).toEqual([true, false]);
  for (const file of core.files) {
    expect(readFileSync(file, "utf8")).not.toContain("_tenant-verification");
  }
  const added = (await bundledSize("index", "domains")) - (await bundledSize("index"));
  expect(added).toBeLessThan(7);
});

test("the client of domains imports nothing of the server, and is under 1.2 kB", async () => {
  const { imports } = graphOf("./dist/domains-client.js");
  expect(imports).toEqual(["@better-auth/core/utils/error-codes"]);
  expect(await bundledSize("domains-client")).toBeLessThan(1.2);
});

test("the server is under 80 kB; parts that few applications have are loaded when needed", async () => {
  const atStart = graphOf("./dist/index.js", "at start").files;
  expect(await bundledSize("index")).toBeLessThan(80);
  const later = graphOf("./dist/index.js").files.filter((file) => !atStart.includes(file));
  expect(later.length).toBeGreaterThan(1);
});
