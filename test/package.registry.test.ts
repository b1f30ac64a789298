import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ts from "typescript";
import { afterAll, beforeEach, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { blocksIn, root } from "./guides/pages";
import { PASSWORD } from "./support/instance";
import { isTaken } from "./support/matrix";
import { run } from "./support/processes";

/*
 * The package as others get it: packed, installed into fresh projects, compiled and run there. It
 * asks the registry for better-auth, so it runs on demand: npm run test:package.
 */

/** How each of them adds packages to a project. */
const INSTALLERS = {
  npm: ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"],
  pnpm: ["npx", "--yes", "pnpm@10.34.9", "add", "--silent"],
  // On Node 20 it refuses better-auth itself: the newest kysely asks for Node 22.
  yarn: ["npx", "--yes", "yarn@1.22.22", "add", "--silent", "--ignore-engines"],
} as const;
type Installer = keyof typeof INSTALLERS;

/** The oldest better-auth that we promise to work with, and the newest there is. */
const VERSIONS = [manifest.devDependencies["better-auth"], "latest"];
/** npm always, and one of the others: each takes a minute. */
const TRIED = (Object.keys(INSTALLERS) as Installer[]).filter(
  (installer, index) => installer === "npm" || isTaken(index, 2),
);
const CASES = VERSIONS.flatMap((version) => TRIED.map((installer) => ({ installer, version })));

const tool = (path: string) => join(root, "node_modules", path);
const TSC = tool("typescript/bin/tsc");

/** Signs somebody up, with the server and the client of the package. */
const PROGRAM = `
import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { createAuthClient } from "better-auth/client";
import { bySubdomain, getTenantId, type Tenant, tenantAuth } from "better-auth-tenant";
import { TENANT_AUTH_ERROR_CODES, tenantAuthClient } from "better-auth-tenant/client";

const seen: (string | null)[] = [];
export const auth = betterAuth({
  baseURL: "http://localhost:3000",
  secret: "a test secret that is long enough for everybody",
  database: memoryAdapter({
    user: [], session: [], account: [], verification: [], tenant: [], tenantOauthConfig: [],
  }),
  emailAndPassword: { enabled: true },
  databaseHooks: { user: { create: { after: async () => void seen.push(getTenantId()) } } },
  plugins: [tenantAuth()],
});
tenantAuth({ resolveTenantId: bySubdomain({ baseDomain: "example.com" }) });

const acme: Tenant = await auth.api.createTenant({ body: { name: "Acme", slug: "acme" } });
export const authClient = createAuthClient({
  baseURL: "http://localhost:3000",
  plugins: [tenantAuthClient({ tenantId: () => acme.id })],
  fetchOptions: { customFetchImpl: (url, init) => auth.handler(new Request(url, init)) },
});

const { data, error } = await authClient.tenant.signUp.email({
  name: "Al",
  email: "al@example.com",
  password: "correct horse battery",
});
const tenantId: string | null | undefined = data?.session?.tenantId;
if (error || tenantId !== acme.id || seen[0] !== acme.id) throw new Error(JSON.stringify(error));

// For the compiler only. Where types got lost, these would be any, and no error.
export function refused() {
  // @ts-expect-error
  data?.nothing;
  // @ts-expect-error
  auth.api.createTenant({ body: { name: "Acme" } });
  // @ts-expect-error
  tenantAuth({ nothing: true });
}

const { error: none } = await authClient.tenant.signInMethods({
  fetchOptions: { headers: { "x-tenant-id": "none" } },
});
if (none?.code !== TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND.code) throw new Error("found none");
console.log("signed up at", acme.slug);
`;

const strict = { strict: true, target: "ES2022", lib: ["ES2023", "DOM"], types: [] };
const CONFIGS = {
  node16: { ...strict, module: "Node16", moduleResolution: "node16", outDir: "out" },
  bundler: {
    ...strict,
    module: "ESNext",
    moduleResolution: "bundler",
    noEmit: true,
    // As most applications have it. It saves half of the time.
    skipLibCheck: true,
  },
};

describe("the packed package", () => {
  const temporary = mkdtempSync(join(tmpdir(), "better-auth-tenant-package-"));
  const { checkout, tarball, files: packed } = inject("packed");

  afterAll(() => rmSync(temporary, { recursive: true, force: true }), 60_000);

  test("holds what users need and nothing else", () => {
    const papers = ["CHANGELOG.md", "LICENSE", "README.md", "package.json"];
    const rest = packed.filter((path) => !papers.includes(path));
    expect(packed).toEqual(expect.arrayContaining(papers));
    expect(rest.filter((path) => !/^dist\/[\w.-]+\.(js|js\.map|d\.ts)$/.test(path))).toEqual([]);
    for (const entry of Object.values(manifest.exports).flatMap((target) =>
      Object.values(target),
    )) {
      if (entry.startsWith("./dist/")) expect(rest).toContain(entry.slice(2));
    }
  });

  test("declares its types with packages that come with it", () => {
    // Where a package manager hides the others, types from them would turn into any.
    const promised = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
    const comesWithIt = (name: string) =>
      promised.some((known) => name === known || name.startsWith(`${known}/`));
    const declarations = packed.filter((path) => path.endsWith(".d.ts"));
    expect(declarations.length).toBeGreaterThan(4);
    for (const path of declarations) {
      const { importedFiles } = ts.preProcessFile(readFileSync(join(checkout, path), "utf8"));
      const others = importedFiles.filter(({ fileName }) => !fileName.startsWith("."));
      expect(
        others.filter(({ fileName }) => !comesWithIt(fileName)),
        path,
      ).toEqual([]);
    }
  });

  test("says nothing about the machine that it was built on", () => {
    for (const name of readdirSync(join(checkout, "dist"))) {
      const text = readFileSync(join(checkout, "dist", name), "utf8");
      for (const place of [checkout, root]) expect(text.includes(place), name).toBe(false);
      if (!name.endsWith(".map")) continue;
      const { sources } = JSON.parse(text) as { sources: string[] };
      expect(sources.filter((source) => !source.startsWith("../src/"))).toEqual([]);
    }
  });

  test.for(CASES)(
    "one command of $installer installs it beside better-auth $version, with one copy of the core",
    { timeout: 300_000 },
    async ({ installer, version }, { skip }) => {
      if (!(await canBeInstalled(version))) skip(`better-auth ${version} cannot be installed`);
      const project = join(temporary, `${installer}-${version}`);
      const write = (file: string, content: object) =>
        writeFileSync(join(project, file), JSON.stringify(content));
      mkdirSync(project);
      write("package.json", { name: "fresh", private: true, type: "module" });
      writeFileSync(join(project, "main.ts"), PROGRAM);
      await install(project, installer, `better-auth@${version}`, `file:${tarball}`);
      for (const name of ["@better-auth/core", "better-call", "@better-fetch/fetch"]) {
        expect([name, copiesOf(name, project)]).toEqual([name, 1]);
      }
      // Where a package lies differs between installers, how it is found between compilers.
      const { node16, bundler } = CONFIGS;
      // Declarations are checked once; whether types are found shows in the program.
      const found = { node16: { ...node16, skipLibCheck: true } };
      const resolutions = installer === "npm" ? { node16, bundler } : found;
      for (const [resolution, options] of Object.entries(resolutions)) {
        write(`tsconfig.${resolution}.json`, { compilerOptions: options, files: ["main.ts"] });
        expect(await compile(project, resolution), resolution).toEqual([]);
      }
      expect(await run({ cwd: project }, process.execPath, "out/main.js")).toContain(
        "signed up at acme",
      );
    },
  );

  const probes = new Map<string, Promise<boolean>>();

  /** By itself: some versions ask for packages that the registry does not have. */
  function canBeInstalled(version: string): Promise<boolean> {
    const probe = join(temporary, `probe-${version}`);
    mkdirSync(probe, { recursive: true });
    const asking =
      probes.get(version) ??
      run({ cwd: probe }, "npm", "install", "--dry-run", `better-auth@${version}`).then(
        () => true,
        () => false,
      );
    probes.set(version, asking);
    return asking;
  }
});

async function install(project: string, installer: Installer, ...packages: string[]) {
  const [command, ...args] = INSTALLERS[installer];
  await run({ cwd: project }, command, ...args, ...packages);
}

/** How many copies of a package there are in a project, wherever they lie. */
function copiesOf(name: string, project: string): number {
  const manifests = readdirSync(join(project, "node_modules"), { recursive: true })
    .map(String)
    .filter((path) => path.endsWith(join("node_modules", name, "package.json")))
    .concat(join(name, "package.json"))
    .map((path) => join(project, "node_modules", path))
    .filter((path) => existsSync(path));
  return new Set(manifests.map((path) => realpathSync(path))).size;
}

/**
 * The errors in the program and in the declarations of this package. Those of other packages are
 * not ours to mend: most applications set skipLibCheck for them.
 */
async function compile(project: string, resolution: string): Promise<string[]> {
  const compiling = run(
    { cwd: project },
    process.execPath,
    TSC,
    "-p",
    `tsconfig.${resolution}.json`,
  );
  const said = await compiling.catch((error: Error) => error.message);
  const errors = said.split("\n").filter((line) => line.includes("error TS"));
  return errors.filter((line) => /better-auth-tenant\/dist|^main\.ts/.test(line));
}

// What creates the tables, as the README says. It takes a while to start, and the second way asks
// the registry for tsx, so it runs with the package: npm run test:package.
describe("migrating", () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "better-auth-tenant-cli-"));
    vi.resetModules();
    vi.stubEnv("DATABASE_FILE", join(directory, "auth.db"));
    onTestFinished(() => {
      rmSync(directory, { recursive: true });
      vi.unstubAllEnvs();
    });
  });

  async function expectTables() {
    const { auth } = await import("./guides/cli-auth");
    const { id } = await auth.api.createTenant({ body: { name: "Acme", slug: "acme" } });
    const person = { name: "Al", email: "al@example.com", password: PASSWORD };
    const { user } = await auth.api.signUpEmailTenant({ body: { ...person, tenantId: id } });
    expect(user.tenantId).toBe(id);
  }

  test("the CLI creates the tables, and once is enough", async () => {
    // In the version that goes with our better-auth.
    const cli = join(root, "node_modules/auth/dist/index.mjs");
    const args = [cli, "migrate", "--yes", "--config", "test/guides/cli-auth.ts"];
    const migrate = () => run({ cwd: root }, process.execPath, ...args);
    expect(await migrate()).toContain("migration was completed successfully");
    expect(await migrate()).toContain("No migrations needed");
    await expectTables();
  }, 120_000);

  // A fresh Next.js project has no type, which makes its files CommonJS.
  test.each([{}, { type: "module" }])(
    "the script for Node 20 does so too, in a project with %j",
    async (manifest) => {
      const script = blocksIn("README.md").find(({ code }) => code.includes("runMigrations"));
      const [, path = ""] = /^\/\/ (\S+)\n/.exec(script?.code ?? "") ?? [];
      const write = (name: string, text: string) => {
        mkdirSync(join(directory, name, ".."), { recursive: true });
        writeFileSync(join(directory, name), text);
      };
      write("package.json", JSON.stringify({ private: true, ...manifest }));
      const application = JSON.stringify(join(root, "test/guides/cli-auth"));
      write("lib/auth.ts", `export { auth } from ${application};`);
      write(path, script?.code ?? "");
      symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
      const migrate = () => run({ cwd: directory }, "npx", "--yes", "tsx@4.23.15", path);
      await migrate();
      await migrate();
      await expectTables();
    },
    120_000,
  );
});
