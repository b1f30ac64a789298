import { writeFileSync } from "node:fs";
import { describe, it } from "vitest";
import { generatePrisma, type PrismaProvider, prisma } from "./prisma";
import { because, expectOurTables, expectUniqueKeys, type GeneratedTable, ID_KINDS } from "./store";

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
