import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";

/*
 * Servers of one test alone, which it may stop. They run beside those that other tests use, on ports
 * of their own, and are gone with the test.
 */

const VERSIONS = "/usr/lib/postgresql";

export const postgresAt = () => {
  const [newest] = existsSync(VERSIONS)
    ? readdirSync(VERSIONS).sort((one, other) => Number(other) - Number(one))
    : [];
  return newest && join(VERSIONS, newest, "bin");
};

const find = (name: string) =>
  ["/usr/bin", "/usr/sbin", "/usr/local/bin"].map((at) => join(at, name)).find(existsSync);

/** The programs that the tests start; undefined if one of them is not installed. */
export function programs() {
  const [postgres, pgbouncer, redis] = [postgresAt(), find("pgbouncer"), find("redis-server")];
  return postgres && pgbouncer && redis ? { postgres, pgbouncer, redis } : undefined;
}

type Programs = NonNullable<ReturnType<typeof programs>>;

/** PostgreSQL, PgBouncer and MariaDB do not run as root. */
export function unprivileged(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"]));
  return { uid: id("-u"), gid: id("-g") };
}

/** A directory that is gone with the test. `npm run test:clusters` chooses where. */
export function makeDirectory() {
  const directory = mkdtempSync(join(process.env.CLUSTERS_DIRECTORY ?? tmpdir(), "soak-"));
  const { uid, gid } = unprivileged();
  if (uid !== undefined && gid !== undefined) chownSync(directory, uid, gid);
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

let lastPort = 20_000 + Math.floor(Math.random() * 10_000);

/**
 * A port that nobody listens on. It is not one of those that the system gives to outgoing connections,
 * which could take it while its server is stopped.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer().listen(++lastPort, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return lastPort;
  }
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const isUp = await new Promise<boolean>((resolve) => {
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
  });
  socket.destroy();
  return isUp;
}

/**
 * A server in the foreground, started again on the same port whenever it is asked to be. What it
 * prints goes into `log`, a file. The signal `end` stops it when the test is over.
 */
export async function server(
  port: number,
  command: string,
  args: string[],
  {
    log,
    end = "SIGQUIT",
    ...user
  }: { log?: string; end?: NodeJS.Signals; uid?: number; gid?: number } = {},
) {
  let child: ChildProcess | undefined;
  const start = async (...more: string[]) => {
    const output = log ? openSync(log, "a") : "ignore";
    child = spawn(command, [...args, ...more], { stdio: ["ignore", output, output], ...user });
    if (typeof output === "number") closeSync(output);
    for (let attempt = 0; !(await answers(port)); attempt++) {
      if (child.exitCode !== null || attempt > 1_200) {
        throw new Error(
          `${command} has not started\n${log ? readFileSync(log, "utf8").slice(-4_000) : ""}`,
        );
      }
      await sleep(50);
    }
  };
  const stop = async (signal: NodeJS.Signals) => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, "exit");
  };
  onTestFinished(() => stop(end));
  await start();
  return { port, start, stop };
}

export async function startPostgres({ postgres }: Programs) {
  const port = await freePort();
  const data = makeDirectory();
  const user = unprivileged();
  execFileSync(
    join(postgres, "initdb"),
    ["-D", data, "-U", "postgres", "--auth=trust", "--no-sync"],
    { ...user, stdio: "ignore" },
  );
  const settings = ["-c", "listen_addresses=127.0.0.1", "-c", `unix_socket_directories=${data}`];
  const args = ["-D", data, "-p", String(port), ...settings];
  return server(port, join(postgres, "postgres"), args, user);
}

/** In transaction mode: each transaction may get another connection. */
export async function startPgBouncer({ pgbouncer }: Programs, to: number) {
  const port = await freePort();
  const directory = makeDirectory();
  const file = join(directory, "pgbouncer.ini");
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${to} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 6
server_login_retry = 1
`,
  );
  return server(port, pgbouncer, ["-q", file], unprivileged());
}

export async function startRedis({ redis }: Programs) {
  const port = await freePort();
  const args = ["--bind", "127.0.0.1", "--port", String(port), "--save", "", "--appendonly", "no"];
  return server(port, redis, args);
}
