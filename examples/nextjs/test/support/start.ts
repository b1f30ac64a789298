import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { resolve } from "node:path";

interface Running {
  /** What the command has printed: where to go, and with which passwords. */
  printed: string;
  stop(): Promise<void>;
}

const READY = "Stop with Ctrl+C.";

const repository = resolve(import.meta.dirname, "../../../..");

/** Runs the command of the README until it is ready. If it never is, nothing is left running. */
export async function startExample(
  env: Record<string, string | undefined>,
  { patience = 300_000, args = [] as string[] } = {},
): Promise<Running> {
  const child = spawn("npm", ["run", "--silent", "example", ...args], {
    cwd: repository,
    env: {
      ...process.env,
      // Without the test runner's own: better-auth would take it for its own tests.
      NODE_ENV: undefined,
      TEST: undefined,
      VITEST: undefined,
      // Nobody writes into its stdin. It closes when this process is gone, however it went.
      STOP_WITH_STDIN: "1",
      ...env,
    },
    stdio: ["pipe", "pipe", "pipe"],
    // In a group of its own, so that it ends with all that it has started.
    detached: true,
  });
  const ended = new Promise<void>((done) => {
    child.once("close", () => done()).once("error", () => done());
  });
  const end = () => signalGroup(child, "SIGTERM");
  process.once("exit", end);
  const stop = async () => {
    end();
    const stubborn = setTimeout(() => signalGroup(child, "SIGKILL"), 10_000);
    await ended;
    clearTimeout(stubborn);
    process.off("exit", end);
  };

  let printed = "";
  try {
    await new Promise<void>((ready, failed) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk) => {
          printed += chunk;
          if (printed.includes(READY)) ready();
        });
      }
      child.once("error", failed);
      child.once("close", () => failed(new Error(printed)));
      setTimeout(
        () => failed(new Error(`Not ready after ${patience / 1000} s:\n${printed}`)),
        patience,
      ).unref();
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { printed, stop };
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals) {
  // Without a process there is no group, and 0 would be our own.
  if (!pid) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended by itself.
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "localhost", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
