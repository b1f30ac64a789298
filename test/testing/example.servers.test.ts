import { randomBytes } from "node:crypto";
import { getMigrations } from "better-auth/db/migration";
import { Client } from "pg";
import { expect, it, onTestFinished, vi } from "vitest";
import { checkIsolation } from "../../src/testing/index";
import { servers } from "../support/database";

/** A database that the example opens by its address. */
async function createDatabase() {
  const name = `example_${randomBytes(6).toString("hex")}`;
  const address = "postgres://postgres@127.0.0.1:5432";
  const client = new Client({ connectionString: `${address}/test` });
  await client.connect();
  await client.query(`create database ${name}`);
  onTestFinished(async () => {
    await client.query(`drop database ${name} with (force)`);
    await client.end();
  });
  return `${address}/${name}`;
}

it.runIf(servers.asked)(
  "Next.js: the isolation test of the docs passes, on PostgreSQL",
  async () => {
    vi.stubEnv("DATABASE_URL", await createDatabase());
    vi.stubEnv("BETTER_AUTH_SECRET", "a secret that only the tests use");
    onTestFinished(() => void vi.unstubAllEnvs());
    const { auth } = await import("../../examples/nextjs/lib/auth");
    const { runMigrations } = await getMigrations(auth.options);
    await runMigrations();
    const report = await checkIsolation(auth, { progress: false });
    console.log(String(report));
    report.assert();
    expect(report.untried).toEqual([]);
  },
  300_000,
);
