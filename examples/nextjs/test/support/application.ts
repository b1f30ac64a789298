import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import type { TestProject } from "vitest/node";
import { freePort, startExample } from "./start";

declare module "vitest" {
  interface ProvidedContext {
    appUrl: string;
    idpUrl: string;
    /** What the command has printed: where to go, and with which passwords. */
    printed: string;
    /** The variables that it was run with. */
    env: Record<string, string>;
    /** How long that took; in a fresh clone, from the clone on. */
    milliseconds: number;
  }
}

/** Starts the example as the README says, on ports and with data of its own. */
export default async function startApplication({ provide }: TestProject) {
  const began = Number(process.env.CLONED_AT || Date.now());
  const temporary = mkdtempSync(join(tmpdir(), "tenant-example-"));
  const database = await createDatabase();
  const clean = async () => {
    await database?.drop();
    rmSync(temporary, { recursive: true, force: true });
  };

  try {
    const [port, idpPort] = [String(await freePort()), String(await freePort())];
    const env = {
      DATA_DIR: join(temporary, "data"),
      CRON_SECRET: "the secret of a cron job",
      ...database?.env,
    };
    const example = await startExample({ ...env, PORT: port, IDP_PORT: idpPort });
    console.log(example.printed);
    provide("appUrl", `http://localhost:${port}`);
    provide("idpUrl", `http://localhost:${idpPort}`);
    provide("printed", example.printed);
    provide("env", env);
    provide("milliseconds", Date.now() - began);
    return async () => {
      await example.stop();
      await clean();
    };
  } catch (error) {
    await clean();
    throw error;
  }
}

/** With DATABASE_URL, a fresh database on that server; else the example takes SQLite. */
async function createDatabase() {
  const { DATABASE_URL } = process.env;
  if (!DATABASE_URL) return undefined;
  const run = async (statement: string) => {
    const client = new Client({ connectionString: DATABASE_URL });
    await client.connect();
    await client.query(statement);
    await client.end();
  };
  const name = `tenant_example_${Date.now()}`;
  await run(`create database ${name}`);
  const url = new URL(DATABASE_URL);
  url.pathname = name;
  return {
    env: { DATABASE_URL: url.href },
    drop: () => run(`drop database ${name} with (force)`),
  };
}
