import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { socialProviderList } from "better-auth/social-providers";
import { beforeAll, describe, expect, it } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { createEditor, SCRATCH } from "./guides/editor";
import { type Block, blocksIn, pages, readPage, root } from "./guides/pages";
import { rowsUnder } from "./guides/reference";

const blocks = pages.flatMap(blocksIn);
const inLanguage = (...languages: string[]) =>
  blocks.filter(({ language }) => languages.includes(language));
// The example of CONTRIBUTING.md is a test already: test/support/world.test.ts.
const typescript = inLanguage("ts", "tsx").filter(({ page }) => page !== "CONTRIBUTING.md");

/** What blocks use without saying where it comes from. */
const PRELUDE = `
import type { Pool } from "pg";
declare global {
  // They stand for what applications have of their own.
  const acmeId: string;
  const currentTenantId: () => string | null;
  const database: Pool;
  const prisma: { project: Record<"create" | "findFirst" | "findMany" | "updateMany", (query: object) => Promise<object>> };
  const db: { collection(name: string): { updateMany(which: object, what: object): Promise<object> } };
  const deliver: (mail: Record<"from" | "to" | "subject" | "text", string>) => Promise<void>;
  // The ones that the README sets up.
  const auth: typeof import("./README/lib/auth").auth;
  const authClient: typeof import("./README/lib/auth-client").authClient;
}`;

/** As much of Next.js as the README uses: test/guides/readme.registry.test.ts builds it with the real one. */
const NEXT = `
declare module "next/headers" {
  export function headers(): Promise<Headers>;
}
declare module "next/navigation" {
  export function notFound(): never;
  export function redirect(path: string): never;
}
declare module "next/server" {
  export function connection(): Promise<void>;
}`;

/** A block with a file's name in its first line is that file; pages are apart from each other. */
function fileOf({ page, line, code }: Block) {
  const [, name = `line-${line}.ts`] = /^\/\/ (\S+\.(?:m?ts|tsx))\n/.exec(code) ?? [];
  return join(SCRATCH, page.replace(/\.md$/, ""), name);
}

const scratch = (name: string) => join(SCRATCH, name);

/** What somebody has typed so far, each in a file of its own. */
const typed = (code: string) => scratch(`typed/${code.replaceAll(/\W+/g, "-")}.ts`);
const COMPLETED: Record<string, string[]> = {
  "authClient.tenant.":
    "create delete get list oauthConfig signIn signInMethods signUp update user".split(" "),
  "authClient.tenant.signIn.": ["email", "social"],
  "authClient.tenant.signUp.": ["email"],
  "authClient.tenant.user.": ["resetTwoFactor"],
  "authClient.tenant.oauthConfig.": ["check", "delete", "list", "register", "update"],
};
const PROVIDERS = [
  'authClient.tenant.oauthConfig.register({ providerId: "',
  'auth.api.registerTenantOAuthConfig({ body: { providerId: "',
];
const TYPED = [...Object.keys(COMPLETED), ...PROVIDERS, "authClient.", "auth.api."];
const BROKEN = scratch("broken.ts");
const ENTRIES = {
  server: join(root, "src/index.ts"),
  client: join(root, "src/client.ts"),
  "server of invitations": join(root, "src/features/invitations/index.ts"),
  "client of invitations": join(root, "src/features/invitations/client.ts"),
  "server of domains": join(root, "src/features/domains/index.ts"),
  "client of domains": join(root, "src/features/domains/client.ts"),
};

const files = new Map([
  [scratch("prelude.ts"), PRELUDE],
  [scratch("next.d.ts"), NEXT],
  ...typescript.map((block) => [fileOf(block), `${block.code}export {};`] as const),
  // These pages have only a file that imports the README's.
  [scratch("docs/adding/lib/auth.ts"), `export { auth } from "@/lib/auth";`],
  [scratch("docs/own-tables/lib/auth.ts"), `export { auth } from "@/lib/auth";`],
  [BROKEN, "acmeId.nothing;\nexport {};"],
  ...TYPED.map((code) => [typed(code), `export {};\n${code}`] as const),
]);

// One program for everything that is to be compiled: most of the time goes into better-auth's types.
let editor: ReturnType<typeof createEditor>;
beforeAll(() => {
  editor = createEditor(files, { "@/*": [`${SCRATCH}/README/*`] });
}, 120_000);

describe("TypeScript in the guides", () => {
  it("is there at all, and a mistake in it would be found", () => {
    expect(typescript.length).toBeGreaterThan(20);
    expect(new Set(typescript.map(fileOf)).size).toBe(typescript.length);
    expect(editor.problemsIn(BROKEN)).toEqual([
      { line: 0, message: "Property 'nothing' does not exist on type 'string'." },
    ]);
  }, 120_000);

  it.each(typescript)("$page:$line compiles", { timeout: 120_000 }, (block) => {
    expect(editor.problemsIn(fileOf(block))).toEqual([]);
  });
});

/** Where each command of the guides is run, or why it is not. */
const COMMANDS: Record<string, string> = {
  "npm ci && npm test": ".ci/run",
  "npm run test:servers": ".ci/run",
  "npm run test:prisma": ".ci/run",
  "npm run example": "examples/nextjs/test/command.test.ts, in .ci/run from a fresh clone",
  "npm run test:browser": ".ci/run",
  "npm run lint": ".ci/run",
  "npm run typecheck": ".ci/run",
  "npm run build": ".ci/run, and test/package.test.ts",
  "npm run check:package": ".ci/run",
  "npm run test:package": ".ci/run",
  "npm run test:clusters": "the nightly workflow",
  "npm install better-auth better-auth-tenant kysely@0.28 libsql":
    "test/guides/readme.registry.test.ts, from the tarball",
  "node -e \"require('fs').appendFileSync('.env', '\\nBETTER_AUTH_SECRET=' + require('crypto').randomBytes(32).toString('hex') + '\\n')\"":
    "test/guides/readme.registry.test.ts",
  "npm install pg && npm install --save-dev @types/pg": "test/guides/readme.registry.test.ts",
  "npx tsx --env-file=.env scripts/migrate.mts": "test/guides/readme.registry.test.ts",
  "npx tsx --env-file=.env scripts/seed.mts": "test/guides/readme.registry.test.ts",
  "npm install --save-dev vitest": "test/guides/readme.registry.test.ts",
  "npx vitest run": "test/guides/readme.registry.test.ts",
  "npx auth@latest migrate":
    "test/package.registry.test.ts, with the version that goes with our better-auth",
};

it("commands in the guides are the known ones, and have their scripts", () => {
  const commands = new Set(inLanguage("sh").flatMap(({ code }) => code.trim().split("\n")));
  expect(commands).toEqual(new Set(Object.keys(COMMANDS)));
  for (const [, script] of [...commands].join("\n").matchAll(/npm run ([\w:]+)/g)) {
    expect(manifest.scripts).toHaveProperty([script ?? ""]);
  }
});

describe("links in the guides", () => {
  const anchorOf = (heading: string) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-");
  const anchorsIn = (page: string) =>
    [...readPage(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => anchorOf(heading));

  it.each([...pages, "SECURITY.md", "CHANGELOG.md", "examples/nextjs/README.md"])(
    "%s leads to what is there",
    (page) => {
      for (const [, target = ""] of readPage(page).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const [path = "", anchor] = target.split("#");
        const file = path ? join(dirname(page), path) : page;
        expect(existsSync(join(root, file)), `${page}: ${target}`).toBe(true);
        if (anchor) expect(anchorsIn(file), `${page}: ${target}`).toContain(anchor);
      }
    },
  );

  it("the README has fewer than 1,500 words, and a link to every guide", () => {
    const text = readPage("README.md");
    // Everybody knows a secret that is written there.
    expect(text).not.toMatch(/BETTER_AUTH_SECRET=\w/);
    expect(text.split(/\s+/).length).toBeLessThan(1500);
    for (const page of pages.filter((name) => name.startsWith("docs/"))) {
      expect(text).toContain(`](${page})`);
    }
  });
});

describe("docs/architecture.md", () => {
  const text = readPage("docs/architecture.md");
  const source = (file: string) => readFileSync(join(root, "src", file), "utf8");

  it("names files that are there, and functions that are in them", () => {
    const paths = [...text.matchAll(/`((?:core|features|testing)\/[\w/-]+(?:\.ts)?)`/g)];
    expect(paths.length).toBeGreaterThan(50);
    for (const [, path = ""] of paths) expect(existsSync(join(root, "src", path)), path).toBe(true);
    const rows = [...text.matchAll(/^\|[ \d]*\| `([\w/.-]+\.ts)` \| `(\w+)` \|/gm)];
    expect(rows.length).toBeGreaterThan(20);
    for (const [, file = "", name = ""] of rows) expect(source(file), file).toContain(name);
    const functions = [...text.matchAll(/`(\w+)` \(`([\w/.-]+\.ts)`\)/g)];
    for (const [, name = "", file = ""] of functions) expect(source(file), file).toContain(name);
  });

  it("names only what src has", () => {
    const everything = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => source(file))
      .join("\n");
    const names = [...text.matchAll(/`([a-z]+[A-Z]\w*)(?:\(\))?`/g)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(50);
    const better = ["onRequest"];
    expect(names.filter((name) => !better.includes(name) && !everything.includes(name))).toEqual(
      [],
    );
  });

  it("has every file of the core in its reading order", () => {
    const [, order = ""] = /^## Reading order of the core\n(.*?)^## /ms.exec(text) ?? [];
    const files = readdirSync(join(root, "src/core"), { recursive: true, encoding: "utf8" })
      .map((file) => `core/${file.replaceAll("\\", "/")}`)
      .filter((file) => file.endsWith(".ts"));
    expect(files.filter((file) => !order.includes(`\`${file}\``))).toEqual([]);
  });

  it("has every member of the interface of features, in its order", () => {
    const [, members = ""] =
      /^export interface Extension \{\n(.*?)^\}/ms.exec(source("core/extension.ts")) ?? [];
    const names = [...members.matchAll(/^ {2}(\w+)\?[:(]/gm)].map(([, name]) => name);
    const documented = [...text.matchAll(/^\| [\w ]*\| `(\w+)` \|/gm)].map(([, name]) => name);
    expect(documented).toEqual(names);
  });
});

describe("documentation in editors", () => {
  const OPTIONS = /^(Tenant\w+Options|TenantManagementRequest|InvitationMail)$/;

  it.each([
    ["tenantAuth()", "server", "TenantAuthOptions"],
    ["tenantAuthClient()", "client", "TenantAuthClientOptions"],
    ["tenantInvitations()", "server of invitations", "TenantInvitationsOptions"],
    ["tenantDomains()", "server of domains", "TenantDomainsOptions"],
  ] as const)("docs/reference.md has the options of %s", (heading, entry, type) => {
    const options = editor.exportsOf(ENTRIES[entry]).find(({ name }) => name === type);
    const names = options?.properties.map(({ name }) => name) ?? [];
    const documented = rowsUnder(`### \`${heading}\``).map(([name]) => name);
    expect(documented.toSorted()).toEqual(names.sort());
  });

  it.each(Object.entries(ENTRIES))("everything that the %s exports has some", (_, entry) => {
    const exported = editor.exportsOf(entry);
    expect(exported.length).toBeGreaterThan(1);
    const bare = exported.flatMap(({ name, documentation, properties }) => [
      ...(documentation ? [] : [name]),
      ...(OPTIONS.test(name) ? properties : [])
        .filter((property) => !property.documentation)
        .map((property) => `${name}.${property.name}`),
    ]);
    expect(bare).toEqual([]);
  });

  function expectDocumentation(code: string, names: readonly string[]) {
    for (const name of names) {
      expect(editor.describeCompletion(typed(code), name), name).toMatch(/^[A-Z].*\.$/);
    }
  }

  it.each(Object.entries(COMPLETED))("%s is completed, with documentation", (code, names) => {
    expect(editor.completionsAtEndOf(typed(code)).sort()).toEqual(names);
    expectDocumentation(code, names);
  });

  it("so are authClient. and auth.api., beside what better-auth has", () => {
    expectDocumentation("authClient.", ["tenant", "useSignInMethods"]);
    const offered = editor.completionsAtEndOf(typed("auth.api."));
    const own = offered.filter((name) => /Tenants?/.test(name));
    expect(own).toHaveLength(18);
    expectDocumentation("auth.api.", own);
  });

  it.each(PROVIDERS)("%s is completed with the built-in providers", (code) => {
    const offered = editor.completionsAtEndOf(typed(code));
    expect(offered.toSorted()).toEqual([...socialProviderList].sort());
  });
});
