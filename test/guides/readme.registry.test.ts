import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { Client } from "pg";
import { afterAll, describe, expect, inject, type TestContext, test, vi } from "vitest";
import example from "../../examples/nextjs/package.json" with { type: "json" };
import manifest from "../../package.json" with { type: "json" };
import { isTaken } from "../support/matrix";
import { run } from "../support/processes";
import { blocksIn } from "./pages";

/*
 * What the README says about setting up, and docs/testing.md about a first test, typed word for word
 * into fresh Next.js projects. It builds and starts one of them and asks the registry, so it runs on
 * demand: npm run test:package.
 *
 * Two words differ: our own package is the packed one, and better-auth has the version that the
 * other tests run with.
 */

const PACKAGES: Record<string, string> = {
  "better-auth": `better-auth@${manifest.devDependencies["better-auth"]}`,
  "better-auth-tenant": inject("packed").tarball,
};
const SET_UP = blocksIn("README.md");
const URL_IN_README = "http://localhost:3000";
// Alone it takes two minutes; beside other work on two cores it may take many.
const LONG = 15 * 60_000;

type Finished = TestContext["onTestFinished"];

interface Project {
  directory: string;
  /** Runs a line of the README there. */
  type(line: string): Promise<string>;
  env: Record<string, string>;
}

describe("the setup of the README", () => {
  const temporary = mkdtempSync(join(tmpdir(), "better-auth-tenant-readme-"));

  afterAll(() => rmSync(temporary, { recursive: true, force: true, maxRetries: 3 }), LONG);

  // One of the two: each builds or compiles a project of Next.js.
  test.runIf(isTaken(0, 2))(
    `on SQLite, built, with Node ${process.versions.node}`,
    async ({ onTestFinished }) => {
      const project = await createProject("sqlite", dirname(process.execPath));
      await project.type(commandWith("better-auth-tenant"));
      typeFiles(project);
      await fill(project);
      expect(await followTesting(project)).toContain("Tenants are isolated.");
      await project.type("npm run build");
      await visit(await start(project, "start", onTestFinished));
    },
    LONG,
  );

  test.runIf(isTaken(1, 2))(
    "on PostgreSQL if it runs here, in development, with the newest Node",
    async ({ onTestFinished, skip }) => {
      const newest = await installNewestNode().catch((error: Error) => error.message);
      if (typeof newest === "string") return skip(`no newer Node can be installed: ${newest}`);
      const database = await createPostgres(onTestFinished);
      const project = await createProject("newest", newest.bin);
      expect(Number.parseInt(newest.version, 10)).toBeGreaterThan(20);
      expect(await project.type("node --version")).toContain(`v${newest.version}`);
      await project.type(commandWith("better-auth-tenant"));
      if (database) await project.type(commandWith("@types/pg"));
      typeFiles(project, database);
      await fill(project);
      await project.type("npx next typegen");
      await project.type("npx tsc --noEmit");
      const application = await start(project, "dev", onTestFinished);
      await visit(application);
      // Next.js complains there about what a build may let pass.
      expect(application.log()).not.toMatch(/^Error/m);
    },
    LONG,
  );

  async function createProject(name: string, node: string): Promise<Project> {
    const directory = join(temporary, name);
    const env = {
      PATH: [node, process.env.PATH].join(delimiter),
      NEXT_TELEMETRY_DISABLED: "1",
      npm_config_yes: "true",
      npm_config_audit: "false",
      npm_config_fund: "false",
    };
    const type = (line: string) => run({ cwd: directory, env }, "sh", "-c", line);
    const { next } = example.dependencies;
    // What is asked about is what the README leaves open; --empty has no fonts to download.
    const choices = "--ts --app --no-src-dir --no-tailwind --no-eslint --empty --import-alias @/*";
    const quiet = "--yes --use-npm --skip-install --disable-git";
    const create = `npx create-next-app@${next} ${name} ${choices} ${quiet}`;
    await run({ cwd: temporary, env }, "sh", "-c", create);
    return { directory, env, type };
  }

  async function installNewestNode() {
    const directory = join(temporary, "node");
    mkdirSync(directory);
    await run({ cwd: directory }, "npm", "install", "--no-audit", "--no-fund", "node@latest");
    const bin = join(directory, "node_modules/node/bin");
    const version = await run({ cwd: directory }, join(bin, "node"), "--version");
    return { bin, version: version.trim().slice(1) };
  }
});

/** The command of the README that has this in it, with the packages that are to be tested. */
function commandWith(text: string): string {
  const lines = SET_UP.filter(({ language }) => language === "sh").map(({ code }) => code.trim());
  const [line, ...others] = lines.filter((code) => code.includes(text));
  if (!line || others.length) throw new Error(`the README has no single command with ${text}`);
  const words = line.split(" ").map((word) => PACKAGES[word] ?? word);
  return words.join(" ");
}

/** Every block of the README that begins with the name of a file. */
function typeFiles({ directory }: Project, postgres?: string) {
  const typed = new Map<string, string>();
  for (const { code } of SET_UP) {
    const [, name = "", variant] =
      /^(?:\/\/|#) (\S+\/\S+|\.env|proxy\.ts)( with PostgreSQL)?\n/.exec(code) ?? [];
    if (name && (!variant || postgres)) typed.set(name, code);
  }
  if (postgres) typed.set(".env", `${typed.get(".env")}DATABASE_URL=${postgres}\n`);
  expect(typed.size).toBe(12);
  for (const [name, code] of typed) typeFile(directory, name, code);
}

/** A secret, the tables and what is in them. The second time nothing is left to do, and nothing breaks. */
async function fill({ type }: Project) {
  await type(commandWith("BETTER_AUTH_SECRET"));
  const steps = [
    ["migrate", "Created or changed: user, "],
    ["migrate", "Created or changed: nothing"],
    ["seed", "Created tenant acme"],
    ["seed", "Already exists: tenant acme"],
  ];
  for (const [script, printed] of steps) {
    expect(await type(commandWith(`scripts/${script}.mts`))).toContain(printed);
  }
}

/**
 * What docs/testing.md adds, in its order, and what its last command printed. The test would refuse
 * the database of the application, which has tenants.
 */
async function followTesting({ directory, type }: Project): Promise<string> {
  const steps = blocksIn("docs/testing.md").filter(({ heading }) => heading === "A first test");
  let printed = "";
  for (const { language, code } of steps) {
    const [, name] = /^\/\/ (\S+)\n/.exec(code) ?? [];
    if (language === "sh") printed = await type(code.trim());
    else if (language === "diff") replaceLine(join(directory, "lib/database.ts"), code);
    else if (name) typeFile(directory, name, code);
  }
  return printed;
}

function replaceLine(path: string, diff: string) {
  const [, before = "?", after = ""] = /^-(.*)\n\+(.*)\n$/.exec(diff) ?? [];
  const text = readFileSync(path, "utf8");
  expect(text).toContain(before);
  writeFileSync(path, text.replace(before, after));
}

function typeFile(directory: string, name: string, code: string) {
  mkdirSync(dirname(join(directory, name)), { recursive: true });
  writeFileSync(join(directory, name), code);
}

/** Starts the application on a free port. Its pages think that they are at the README's address. */
async function start({ directory, env }: Project, script: "start" | "dev", finished: Finished) {
  const port = await freePort();
  const server = spawn("npm", ["run", script], {
    cwd: directory,
    env: { ...process.env, ...env, PORT: String(port) },
    detached: true, // A process group of its own: npm starts others, and all of them have to end.
  });
  let log = "";
  const listen = (chunk: Buffer) => {
    log += chunk;
  };
  for (const stream of [server.stdout, server.stderr]) stream.on("data", listen);
  finished(async () => {
    if (!server.pid || server.exitCode !== null) return;
    const gone = new Promise((resolve) => server.once("close", resolve));
    process.kill(-server.pid, "SIGTERM");
    await gone;
  });
  const url = `http://localhost:${port}`;
  await vi.waitFor(() => expect(log).toContain("Ready"), { timeout: LONG, interval: 200 });
  return { url, log: () => log };
}

/** Signs in at Acme, as its page does, and looks at the page that is protected. */
async function visit({ url, log }: Awaited<ReturnType<typeof start>>) {
  const page = async (path: string, headers: Record<string, string> = {}) =>
    (await fetch(url + path, { headers })).text();
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${url}/api/auth${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: URL_IN_README, ...headers },
      body: JSON.stringify(body),
    });
  const signIn = (slug: string, password: string) =>
    post("/sign-in/email", { email: "al@example.com", password }, { "x-tenant-slug": slug });
  const password = "a long password";

  expect(await page("/t/acme/sign-in")).toMatch(/<form.*Sign in<\/button>/);
  expect(await page("/t/acme/sign-up")).toMatch(/<form.*Sign up<\/button>/);
  const closed = await page("/t/acme");
  expect(closed).not.toContain("Signed in as");
  expect(closed).toContain("NEXT_REDIRECT;replace;/t/acme/sign-in");

  expect((await signIn("acme", "a wrong password")).status).toBe(401);
  const al = await signIn("acme", password);
  expect(al.status, log()).toBe(200);
  expect(await page("/t/acme", cookiesOf(al))).toMatch(/Signed in as (<!-- -->)?Al/);
  for (const path of ["/t/globex", "/t/globex/sign-in", "/t/%00"]) {
    const unknown = await fetch(url + path, { headers: cookiesOf(al) });
    expect([path, unknown.status]).toEqual([path, 404]);
  }

  // The operator of the seed adds a tenant. Whoever belongs there is nobody at Acme, even if they
  // name their own tenant in a header.
  const olga = await post("/sign-in/email", { email: "olga@example.com", password });
  const created = await post("/tenant/create", { name: "Globex", slug: "globex" }, cookiesOf(olga));
  const { id } = (await created.json()) as { id: string };
  const gus = { tenantId: id, name: "Gus", email: "gus@example.com", password };
  const stranger = cookiesOf(await post("/tenant/sign-up/email", gus));
  expect(await page("/t/globex", stranger)).toMatch(/Signed in as (<!-- -->)?Gus/);
  expect(await page("/t/acme", stranger)).not.toContain("Signed in as");
  expect(await page("/t/acme", { ...stranger, "x-tenant-id": id })).not.toContain("Signed in as");
}

const cookiesOf = ({ headers }: Response) => ({
  cookie: headers
    .getSetCookie()
    .map((cookie) => cookie.split(";")[0])
    .join("; "),
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== "object" || !address) throw new Error("no port");
  return address.port;
}

/** A database of its own, where PostgreSQL runs. */
async function createPostgres(finished: Finished): Promise<string | undefined> {
  const server = new Client("postgres://postgres@127.0.0.1:5432/postgres");
  try {
    await server.connect();
  } catch {
    return undefined;
  }
  const name = `readme_${process.pid}`;
  await server.query(`create database ${name}`);
  finished(async () => {
    await server.query(`drop database ${name} with (force)`);
    await server.end();
  });
  return `postgres://postgres@127.0.0.1:5432/${name}`;
}
