import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { generatePrismaSchema } from "auth/api";
import { prismaAdapter } from "better-auth/adapters/prisma";
import type { DBAdapter } from "better-auth/types";
import type { Pool } from "pg";
import { beforeAll, describe, it } from "vitest";
import { createDatabase } from "../support/database";
import { behaves } from "./behaviour";
import {
  because,
  expectOurTables,
  expectUniqueKeys,
  type GeneratedTable,
  ID_KINDS,
  type IdKind,
  type Row,
  type Store,
  tableOptions,
} from "./store";

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

interface GeneratedSchema {
  code: string;
  file: string;
  /** Where the client is after `prisma generate`. */
  client: string;
}

async function generatePrisma(provider: PrismaProvider, ids: IdKind): Promise<GeneratedSchema> {
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
async function prisma(command: "validate" | "generate", { file }: GeneratedSchema) {
  const args = [join(FOLDER, "node_modules/prisma/build/index.js"), command, "--schema", file];
  const env = {
    ...process.env,
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    PRISMA_HIDE_UPDATE_MESSAGE: "1",
    CHECKPOINT_DISABLE: "1",
  };
  await promisify(execFile)(process.execPath, args, { cwd: FOLDER, env });
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
async function writeMigration({ code }: GeneratedSchema): Promise<string> {
  engine ??= startEngine();
  const { PrismaPg } = await load("@prisma/adapter-pg");
  const { bindMigrationAwareSqlAdapterFactory } = await load("@prisma/driver-adapter-utils");
  const server = new PrismaPg({ host: "127.0.0.1", user: "postgres", database: "test" });
  const options = { datamodels: [["schema.prisma", code]] };
  const writer = await (await engine).new(
    options,
    () => {},
    bindMigrationAwareSqlAdapterFactory(server),
  );
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

/** A client for the generated schema, and a way to a fresh database with its tables. */
async function preparePrisma(ids: IdKind) {
  const schema = await generatePrisma("postgresql", ids);
  await prisma("generate", schema);
  const migration = await writeMigration(schema);
  const { PrismaClient } = await load(schema.client);
  const { PrismaPg } = await load("@prisma/adapter-pg");

  return async (): Promise<Store> => {
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
      async close() {
        await client.$disconnect();
        await database.close();
      },
    };
  };
}

const PROVIDERS: PrismaProvider[] = ["postgresql", "mysql", "sqlite"];

const lowerFirst = (name: string) => name.charAt(0).toLowerCase() + name.slice(1);

/** Text without a native type is this on MySQL. */
const DEFAULT_TEXT = { mysql: "String @db.VarChar(191)", postgresql: "String", sqlite: "String" };

function describeModels(provider: PrismaProvider, code: string) {
  const models = [...code.matchAll(/^model (\w+) \{\n(.*?)^\}/gms)];
  const names = models.map(([, name]) => name);

  return Object.fromEntries(
    models.map(([, name = "", body = ""]) => {
      const table: GeneratedTable = { columns: {}, indexes: [], references: [] };
      for (const line of body.split("\n").map((line) => line.trim())) {
        const [, field = "", base = "", modifier = "", rest = ""] =
          /^(\w+)\s+(\w+)(\[\]|\?)?(.*)$/.exec(line) ?? [];
        if (field && !names.includes(base)) {
          const native = /@db\.\S+/.exec(rest)?.[0];
          const type = native ? `${base} ${native}` : base;
          table.columns[field] = {
            type: type === "String" ? DEFAULT_TEXT[provider] : type,
            required: modifier !== "?",
            unique: false,
          };
        }
        const [, key, onDelete] = /fields: \[(\w+)\].*onDelete: (\w+)/.exec(rest) ?? [];
        if (key) {
          table.references.push({
            field: key,
            model: lowerFirst(base),
            onDelete: String(onDelete).toLowerCase(),
          });
        }
        const [, kind, list = ""] = /^@@(unique|index)\(\[(.*?)\]/.exec(line) ?? [];
        const fields = list.split(", ").map((name) => name.replace(/\(.*\)/, ""));
        if (kind) table.indexes.push({ fields, unique: kind === "unique" });
      }
      return [lowerFirst(name), table];
    }),
  );
}

/** With numeric ids on MySQL the CLI gives a column two types; docs/databases.md says to take one out. */
const edited = (code: string) => code.replaceAll(/(\bInt\s+)@db\.VarChar\(\d+\)/g, "$1");

const asksPrisma = process.env.TEST_PRISMA;

describe.each(PROVIDERS)(
  "the schema that better-auth's CLI generates for Prisma on %s",
  (provider) => {
    it.each(ID_KINDS)(
      "has our tables, columns, references and indexes, with %s ids",
      async (ids) => {
        const { code } = await generatePrisma(provider, ids);
        const tables = describeModels(provider, edited(code));
        expectOurTables(tables);
        expectUniqueKeys(tables);
      },
    );

    it.skipIf(!asksPrisma)(
      because("is valid for Prisma itself", asksPrisma ? undefined : "npm run test:prisma asks it"),
      async () => {
        for (const ids of ID_KINDS) {
          const schema = await generatePrisma(provider, ids);
          writeFileSync(schema.file, edited(schema.code));
          await prisma("validate", schema);
        }
      },
      120_000,
    );
  },
);

describe.skipIf(!asksPrisma)(
  because(
    "Prisma",
    asksPrisma ? undefined : "npm run test:prisma installs it, and wants PostgreSQL",
  ),
  () => {
    for (const ids of ID_KINDS) {
      let open: () => Promise<Store>;
      beforeAll(async () => {
        open = await preparePrisma(ids);
      }, 120_000);
      behaves({ name: "Prisma on PostgreSQL", ids, open: () => open() });
    }
  },
);
