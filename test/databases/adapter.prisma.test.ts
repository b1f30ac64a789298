import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { generatePrismaSchema } from "auth/api";
import { prismaAdapter } from "better-auth/adapters/prisma";
import type { DBAdapter } from "better-auth/types";
import type { Pool } from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { checkDeployment, type DeploymentOptions } from "../../src/testing/index";
import { createDatabase, ID_KINDS, type IdKind, type TestDatabase } from "../support/database";
import { run } from "../support/processes";
import { behaves } from "./behaviour";
import { because, createWorld, type Row, type Store, tableOptions } from "./store";

/** Prisma is installed in a folder of its own, so nothing of it is imported by its name. */
const FOLDER = join(import.meta.dirname, "../prisma");
const { resolve } = createRequire(join(FOLDER, "package.json"));
const load = (name: string) => import(/* @vite-ignore */ resolve(name));

type PrismaProvider = "postgresql" | "mysql" | "sqlite";

/** What somebody's schema.prisma says before `npx auth generate` adds the models. */
const header = (provider: PrismaProvider, output: string) => `
generator client {
  provider = "prisma-client-js"
  output   = ${JSON.stringify(output)}
}

datasource db {
  provider = "${provider}"
}
`;

/** The schema, its file, and where the client is after `prisma generate`. */
async function generatePrisma(provider: PrismaProvider, ids: IdKind) {
  // A folder of its own each time: test files run side by side. Below Prisma's, which the client imports.
  const cache = join(FOLDER, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, `${provider}-${ids}-`));
  const [file, client] = [join(folder, "schema.prisma"), join(folder, "client")];
  writeFileSync(file, header(provider, client));
  const adapter = { options: { provider } } as unknown as DBAdapter;
  const { code } = await generatePrismaSchema({ options: tableOptions(ids), adapter, file });
  if (!code) throw new Error("nothing was generated");
  writeFileSync(file, code);
  return { code, file, client };
}

/** Prisma's own command line. It would download an engine that neither of the commands needs. */
async function prisma(command: "validate" | "generate", file: string) {
  const args = [join(FOLDER, "node_modules/prisma/build/index.js"), command, "--schema", file];
  const env = {
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    PRISMA_HIDE_UPDATE_MESSAGE: "1",
    CHECKPOINT_DISABLE: "1",
  };
  await run({ cwd: FOLDER, env }, process.execPath, ...args);
}

let engine: ReturnType<typeof startEngine> | undefined;

/** The part of Prisma that writes migrations, without the binary that its command line downloads. */
async function startEngine() {
  const bindings = await load("@prisma/schema-engine-wasm/schema_engine_bg");
  const file = join(FOLDER, "node_modules/@prisma/schema-engine-wasm/schema_engine_bg.wasm");
  const { instance } = await WebAssembly.instantiate(readFileSync(file), {
    "./schema_engine_bg.js": bindings,
  });
  bindings.__wbg_set_wasm(instance.exports);
  (instance.exports.__wbindgen_start as () => void)();
  return bindings.SchemaEngine;
}

/** The migration that Prisma writes for a schema, from nothing. */
async function writeMigration(code: string): Promise<string> {
  engine ??= startEngine();
  const { PrismaPg } = await load("@prisma/adapter-pg");
  const { bindMigrationAwareSqlAdapterFactory } = await load("@prisma/driver-adapter-utils");
  const server = new PrismaPg({ host: "127.0.0.1", user: "postgres", database: "test" });
  const options = { datamodels: [["schema.prisma", code]] };
  const connection = bindMigrationAwareSqlAdapterFactory(server);
  const writer = await (await engine).new(options, () => {}, connection);
  const { stdout } = await writer.diff({
    from: { tag: "empty" },
    to: { tag: "schemaDatamodel", files: [{ path: "schema.prisma", content: code }] },
    script: true,
    exitCode: null,
    shadowDatabaseUrl: null,
    filters: { externalTables: [], externalEnums: [] },
  });
  return stdout;
}

type Client = Record<string, { findMany(): Promise<Row[]> }> & { $disconnect(): Promise<void> };

type PrismaStore = Store & { client: Client; query: TestDatabase["query"] };

/** A client for the generated schema, and a way to a fresh database with its tables. */
async function preparePrisma(ids: IdKind, edit = (code: string) => code) {
  const schema = await generatePrisma("postgresql", ids);
  const code = edit(schema.code);
  writeFileSync(schema.file, code);
  await prisma("generate", schema.file);
  const migration = await writeMigration(code);
  const { PrismaClient } = await load(schema.client);
  const { PrismaPg } = await load("@prisma/adapter-pg");

  return async (): Promise<PrismaStore> => {
    const database = await createDatabase("postgres");
    await database.query(migration);
    const { host, port, user, database: name, max } = (database.option as Pool).options;
    const client: Client = new PrismaClient({
      adapter: new PrismaPg({ host, port, user, database: name, max }),
      // Prisma gives up after two seconds, which a busy machine may need.
      transactionOptions: { maxWait: 20_000, timeout: 20_000 },
    });
    return {
      option: prismaAdapter(client, { provider: "postgresql", transaction: true }),
      migrate: false,
      rows: (model) => (client[model] as Client[string]).findMany(),
      client,
      query: database.query,
      async close() {
        await client.$disconnect();
        await database.close();
      },
    };
  };
}

/** With numeric ids on MySQL the CLI gives a column two types; docs/databases.md says to take one out. */
const edited = (code: string) => code.replaceAll(/(\bInt\s+)@db\.VarChar\(\d+\)/g, "$1");

const asksPrisma = process.env.TEST_PRISMA;

describe.each<PrismaProvider>(["postgresql", "mysql", "sqlite"])(
  "Prisma's schema on %s",
  (provider) => {
    it.each(ID_KINDS)("has our unique keys, with %s ids", async (ids) => {
      const { code } = await generatePrisma(provider, ids);
      for (const [model, key] of [
        ["Tenant", "slug"],
        ["TenantOauthConfig", "tenantId, providerId"],
        ["TenantInvitation", "tenantId, pendingFor"],
        ["User", "tenantId, email"],
      ]) {
        const [, body = ""] = code.split(new RegExp(`^model ${model} {$(.*?)^}$`, "ms"));
        // A text has a length there on MySQL.
        expect(body.replaceAll(/\(length: \d+\)/g, "")).toContain(`@@unique([${key}]`);
        expect(body).not.toMatch(/^ *email .*@unique|@@unique\(\[email/m);
      }
    });

    const name = because("is valid", asksPrisma ? undefined : "npm run test:prisma asks it");
    it.skipIf(!asksPrisma)(name, { timeout: 120_000 }, async () => {
      for (const ids of ID_KINDS) {
        const schema = await generatePrisma(provider, ids);
        writeFileSync(schema.file, edited(schema.code));
        await prisma("validate", schema.file);
      }
    });
  },
);

const reason = "npm run test:prisma installs it, and wants PostgreSQL";
describe.skipIf(!asksPrisma)(because("Prisma", asksPrisma ? undefined : reason), () => {
  for (const ids of ID_KINDS) {
    let open: () => Promise<PrismaStore>;
    beforeAll(async () => {
      open = await preparePrisma(ids);
    }, 120_000);
    behaves({ name: "Prisma on PostgreSQL", ids, open: () => open() });
  }

  it.each(["company", "tenant_id"])(
    "checkDeployment() finds what is missing, where the tenant is in %s",
    { timeout: 120_000 },
    async (column) => {
      const open = await preparePrisma("text", (code) =>
        code
          .replace('@@map("user")', '@@map("users")')
          .replace(/(model User \{[^}]*\btenantId +String)/, `$1 @map("${column}")`),
      );
      const { client, query, ...store } = await open();
      // The client knows every name. Usual names are found without it.
      const database = column === "company" ? { database: client } : { query };
      await findsWhatIsMissing(store, query, database, column);
    },
  );
});

async function findsWhatIsMissing(
  store: Store,
  query: TestDatabase["query"],
  options: DeploymentOptions,
  column: string,
) {
  const { auth } = await createWorld({ name: "", ids: "text", open: async () => store });
  const look = async () => {
    const { findings, skipped } = await checkDeployment(auth, options);
    return [...findings.map(({ id, found }) => `${id} ${found}`), ...skipped];
  };
  expect(await look()).toEqual([]);
  await query('drop index "user_tenantId_email_uidx"');
  await query('create unique index "old" on "users" (lower(email))');
  expect(await look()).toEqual([
    'email-index "old" keeps the email unique in all of "users"',
    `missing-index users (${column}, email) has no unique index, and there are no duplicates`,
  ]);
  await query('alter table "tenant" drop column "deleteAt"');
  expect((await look())[0]).toBe("missing-column migrations have not run: tenant (deleteAt)");
  const unread = await checkDeployment(auth);
  expect(unread.findings.map(({ id }) => id)).toEqual(["unreadable-rows"]);
  expect(unread.skipped[0]).toContain("pass `database`");
}
