// Installs, builds, seeds and starts the example, with nothing but Node. What is up to date already
// is left alone, so that running it again takes a few seconds.
//
//   node scripts/run.mjs          as in production
//   node scripts/run.mjs dev      with reloading
//   node scripts/run.mjs install  up to what is installed, and no further

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { startIdentityProvider } from "../idp.mjs";

const example = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const plugin = resolve(example, "../..");
const mode = process.argv[2] ?? "start";
const began = Date.now();

const port = Number(process.env.PORT ?? 3000);
const idpPort = Number(process.env.IDP_PORT ?? 4000);
const appUrl = new URL(process.env.APP_URL ?? `http://localhost:${port}`);

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
  if (mode !== "install") {
    await requireFree(port, "PORT");
    await requireFree(idpPort, "IDP_PORT");
  }
  await buildPlugin();
  await installExample();
  if (mode === "install") return;
  if (mode !== "dev") await buildExample();

  await startIdentityProvider(idpPort, appUrl);
  // By name: with a number here, Next.js takes its own rewrites for ones to another host.
  const server = start("node_modules/next/dist/bin/next", [
    mode === "dev" ? "dev" : "start",
    ...["--port", String(port), "--hostname", "localhost"],
  ]);
  await Promise.race([answers(), server.ended]);
  console.log(invitation());
  await server.ended;
}

async function buildPlugin() {
  const sources = ["src", "rolldown.config.js", "tsup.config.ts", "package.json"].map((name) =>
    join(plugin, name),
  );
  if (isNewer(join(plugin, "dist/index.d.ts"), sources)) return;
  if (
    !isNewer(join(plugin, "node_modules/.package-lock.json"), [join(plugin, "package-lock.json")])
  ) {
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
  const directory = resolve(example, process.env.DATA_DIR ?? ".data");
  const file = join(directory, "secret");
  if (!existsSync(file)) {
    mkdirSync(directory, { recursive: true });
    writeFileSync(file, randomBytes(32).toString("base64url"), { mode: 0o600 });
  }
  return readFileSync(file, "utf8");
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

function invitation() {
  const { operator, tenants } = JSON.parse(readFileSync(join(example, "demo.json"), "utf8"));
  const row = (label, text) => `  ${label.padEnd(18)}${text}`;
  return [
    "",
    `Ready after ${seconds(began)} s. Open ${appUrl.origin}`,
    "",
    ...tenants.flatMap(({ name, slug, people: [person] }) => [
      row(name, `${appUrl.origin}/t/${slug}  or  ${appUrl.protocol}//${slug}.${appUrl.host}`),
      row("", `${person.email}  ${person.password}`),
    ]),
    row("Operator", `${appUrl.origin}/console`),
    row("", `${operator.email}  ${operator.password}`),
    row("Inbox", `${appUrl.origin}/inbox`),
    row("Identity provider", `http://localhost:${idpPort}`),
    "",
    "Stop with Ctrl+C.",
    "",
  ].join("\n");
}

function seconds(from) {
  return Math.round((Date.now() - from) / 1000);
}
