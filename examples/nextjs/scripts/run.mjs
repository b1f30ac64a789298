// Installs, builds, seeds and starts the example, with nothing but Node. What is up to date already
// is left alone, so that running it again takes a few seconds.
//
//   node scripts/run.mjs          as in production
//   node scripts/run.mjs dev      with reloading
//   node scripts/run.mjs install  up to what is installed, and no further
//   node scripts/run.mjs reset    deletes all data of the demo, then starts

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { KEY_FILES } from "../idp/keys.mjs";

const example = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const plugin = resolve(example, "../..");
const mode = process.argv[2] ?? "start";
const began = Date.now();

let port;
let idpPort;
let appUrl;

process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));
// For whoever starts this from a program: it ends with that program, even if nobody says so.
if (process.env.STOP_WITH_STDIN) process.stdin.resume().once("end", () => process.exit(0));

try {
  await main();
} catch (error) {
  console.error(`\n${error.message}\n`);
  process.exit(1);
}

async function main() {
  readSettings();
  if (mode !== "install") {
    await requireFree(port, "PORT");
    await requireFree(idpPort, "IDP_PORT");
  }
  await buildPlugin();
  await installExample();
  if (mode === "install") return;
  if (mode === "reset") deleteData();
  if (mode !== "dev") await buildExample();

  // Not before everything is installed: it signs with a library.
  const { startIdentityProvider } = await import("../idp/index.mjs");
  await startIdentityProvider({ port: idpPort, appUrl, directory: dataDirectory() });
  // By name: with a number here, Next.js takes its own rewrites for ones to another host.
  const server = start("node_modules/next/dist/bin/next", [
    mode === "dev" ? "dev" : "start",
    ...["--port", String(port), "--hostname", "localhost"],
  ]);
  await Promise.race([answers(), server.ended]);
  console.log(await invitation());
  await server.ended;
}

function readSettings() {
  if (!["start", "dev", "install", "reset"].includes(mode)) {
    throw new Error(`“${mode}” is not known here. Try: npm run example, or npm run example reset`);
  }
  port = portFrom("PORT", 3000);
  idpPort = portFrom("IDP_PORT", 4000);
  if (port === idpPort) throw new Error(`PORT and IDP_PORT are both ${port}.`);
  const url = process.env.APP_URL || `http://localhost:${port}`;
  if (!/^https?:/.test(url) || !URL.canParse(url)) {
    throw new Error(`APP_URL must be an address such as http://localhost:3000, not “${url}”.`);
  }
  appUrl = new URL(url);
}

function portFrom(variable, otherwise) {
  const value = process.env[variable] || String(otherwise);
  const number = Number(value);
  if (/^\d+$/.test(value) && number > 0 && number < 65_536) return number;
  throw new Error(`${variable} must be a number from 1 to 65535, not “${value}”.`);
}

/** What the demo has written, and nothing else that may be in that directory. */
function deleteData() {
  if (process.env.DATABASE_URL) {
    const name = new URL(process.env.DATABASE_URL).pathname.slice(1);
    throw new Error(`A PostgreSQL database is yours to delete: dropdb ${name} && createdb ${name}`);
  }
  for (const name of ["example.db", "example.db-shm", "example.db-wal", "secret", ...KEY_FILES]) {
    rmSync(join(dataDirectory(), name), { force: true });
  }
}

async function buildPlugin() {
  const sources = ["src", "tsup.config.ts", "package.json"].map((name) => join(plugin, name));
  if (isNewer(join(plugin, "dist/index.d.ts"), sources)) return;
  const modules = join(plugin, "node_modules");
  const installed = join(modules, ".package-lock.json");
  // npm would empty the folder that a link leads to, which is somebody else's.
  if (!isLink(modules) && !isNewer(installed, [join(plugin, "package-lock.json")])) {
    await step("Installing what the plugin is built with", "npm", ["ci"], plugin);
  }
  await step("Building the plugin", "npm", ["run", "build"], plugin);
}

async function installExample() {
  const sources = [join(example, "package-lock.json"), join(plugin, "dist/index.d.ts")];
  if (isNewer(join(example, "node_modules/.package-lock.json"), sources)) return;
  await step("Installing the example", "npm", ["ci"], example);
}

async function buildExample() {
  const names = ["app", "components", "lib", "demo.json", "instrumentation.ts", "next.config.ts"];
  const sources = [...names, "proxy.ts", "tsconfig.json", "node_modules/.package-lock.json"];
  if (
    isNewer(
      join(example, ".next/BUILD_ID"),
      sources.map((name) => join(example, name)),
    )
  ) {
    return;
  }
  const next = join(example, "node_modules/next/dist/bin/next");
  await step("Building the example", process.execPath, [next, "build"], example);
}

/** Whether a file is there and newer than all that it is made from. */
function isNewer(target, sources) {
  return (
    existsSync(target) && sources.every((source) => newest(source) <= statSync(target).mtimeMs)
  );
}

function isLink(path) {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function newest(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

/** Runs a command to its end. Its output is shown only if it fails. */
async function step(title, command, args, cwd) {
  const from = Date.now();
  process.stdout.write(`${title} … `);
  const windows = process.platform === "win32" && command === "npm";
  const child = spawn(command, args, { cwd, env: environment(), shell: windows });
  process.on("exit", () => child.kill());
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
    });
  }
  const code = await new Promise((done, failed) => child.on("close", done).on("error", failed));
  if (code !== 0) throw new Error(`failed.\n\n${output}`);
  console.log(`${seconds(from)} s`);
}

/** The server. It goes when this process goes. */
function start(script, args) {
  const child = spawn(process.execPath, [script, ...args], {
    cwd: example,
    env: environment(),
    stdio: ["ignore", mode === "dev" ? "inherit" : "ignore", "inherit"],
  });
  process.on("exit", () => child.kill());
  const ended = new Promise((_, failed) => {
    child.on("exit", (code) => failed(new Error(`The server has stopped (${code}).`)));
  });
  return { ended };
}

function environment() {
  return {
    ...process.env,
    NEXT_TELEMETRY_DISABLED: "1",
    APP_URL: appUrl.origin,
    IDP_HOST: `localhost:${idpPort}`,
    BETTER_AUTH_SECRET: process.env.BETTER_AUTH_SECRET ?? keptSecret(),
  };
}

/** What is in the database is encrypted with it, so it stays beside the database. */
function keptSecret() {
  const directory = dataDirectory();
  const file = join(directory, "secret");
  if (!existsSync(file)) {
    mkdirSync(directory, { recursive: true });
    writeFileSync(file, randomBytes(32).toString("base64url"), { mode: 0o600 });
  }
  return readFileSync(file, "utf8");
}

function dataDirectory() {
  return resolve(example, process.env.DATA_DIR ?? ".data");
}

async function requireFree(number, variable) {
  await new Promise((free, taken) => {
    const probe = createServer()
      .once("error", () =>
        taken(
          new Error(
            `Port ${number} is taken. Stop what runs there, or choose another one: ` +
              `${variable}=${number + 1} npm run example`,
          ),
        ),
      )
      .listen(number, "localhost", () => probe.close(free));
  });
}

async function answers() {
  for (;;) {
    const { ok } = await fetch(`http://localhost:${port}/api/auth/ok`).catch(() => ({ ok: false }));
    if (ok) return;
    await new Promise((wait) => setTimeout(wait, 200));
  }
}

async function invitation() {
  const { tenants } = JSON.parse(readFileSync(join(example, "demo.json"), "utf8"));
  const answer = await fetch(`http://localhost:${port}/api/demo-accounts`);
  const accounts = await answer.json();
  const row = (label, text) => `  ${label.padEnd(18)}${text}`;
  const credentials = (slug) =>
    accounts
      .filter((account) => account.slug === slug)
      .map(({ email, password, isAdmin }) => {
        const administers = slug && isAdmin ? "  (administrator)" : "";
        return row("", `${email}  ${password ?? "(password was changed)"}${administers}`);
      });
  return [
    "",
    `Ready after ${seconds(began)} s. Open ${appUrl.origin}`,
    "",
    ...tenants.flatMap(({ name, slug }) => [
      row(name, `${appUrl.origin}/t/${slug}  or  ${appUrl.protocol}//${slug}.${appUrl.host}`),
      ...credentials(slug),
    ]),
    row("Operator", `${appUrl.origin}/console`),
    ...credentials(null),
    row("Inbox", `${appUrl.origin}/inbox`),
    row("Identity provider", `http://localhost:${idpPort}`),
    "",
    "To start over with fresh data: npm run example reset",
    "Stop with Ctrl+C.",
    "",
  ].join("\n");
}

function seconds(from) {
  return Math.round((Date.now() - from) / 1000);
}
