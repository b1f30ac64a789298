import type { Query } from "../data/query";
import type { Subject } from "../instance/subject";
import type { Catalog } from "./catalog";
import type { Finding } from "./findings";

/** Collations that compare texts exactly. The last one ignores trailing spaces. */
const EXACT = ["utf8mb4_nopad_bin", "utf8mb4_0900_bin", "utf8mb4_bin"];

/**
 * Columns of MySQL and MariaDB by which rows are found, and whose collation takes different texts for
 * equal. Ids and references are left out: callers do not choose them, and a foreign key keeps its two
 * columns from being changed one by one.
 */
export async function collationFindings(
  { ctx }: Subject,
  catalog: Catalog,
  query: Query,
): Promise<Finding[]> {
  const { tables } = ctx;
  const isReferenced = (model: string, name: string) =>
    Object.values(tables).some(({ fields }) =>
      Object.values(fields).some(
        ({ references }) =>
          references?.field === name &&
          [model, tables[model]?.modelName].includes(references.model),
      ),
    );
  const inexact = Object.keys(tables).flatMap((model) => {
    const table = catalog.table(model);
    const indexed = table?.indexes.flatMap(({ keys }) => keys.map(({ column }) => column)) ?? [];
    return Object.entries(tables[model]?.fields ?? {}).flatMap(([name, { references }]) => {
      const column = catalog.column(model, name);
      const isAssigned = name === "tenantId" || references || isReferenced(model, name);
      if (!table || !column?.collation || isAssigned || column.generated) return [];
      const isExact = /(^|_)bin(ary)?$/.test(column.collation);
      return isExact || !indexed.includes(column.name) ? [] : [{ table, column }];
    });
  });
  if (inexact.length === 0) return [];
  const { collation, isMariaDB } = await findExactCollation(query);
  const statements = inexact.map(({ table, column }) => {
    const { type, nullable, initial } = column;
    // MariaDB has a literal here, and NULL as a word; MySQL has the value.
    const isLiteral = isMariaDB && initial !== undefined;
    const value = isLiteral ? initial : initial && `'${initial.replaceAll("'", "''")}'`;
    const rest = [nullable ? "null" : "not null", ...(value ? [`default ${value}`] : [])].join(" ");
    const definition = `${type} character set utf8mb4 collate ${collation} ${rest}`;
    return `alter table ${catalog.quote(table.name)} modify ${catalog.quote(column.name)} ${definition};`;
  });
  const names = inexact.map(({ table, column }) => `${table.name}.${column.name}`);
  return [
    {
      id: "inexact-collation",
      found: `these columns compare texts inexactly (${inexact[0]?.column.collation}): ${names.join(", ")}`,
      meaning:
        "For the database, another case or an accent makes no other value. The plugin compares rows itself; your own SQL does not. Of two such values, the second one is refused as taken.",
      mend: statements.join("\n"),
    },
  ];
}

async function findExactCollation(query: Query) {
  const list = EXACT.map((name) => `'${name}'`).join(", ");
  const rows = await query(
    `select collation_name as name, version() as version from information_schema.collations where collation_name in (${list})`,
  );
  const values = rows.map((row) => Object.values(row ?? {}).map(String));
  const known = values.map(([name]) => name);
  return {
    collation: EXACT.find((name) => known.includes(name)) ?? "utf8mb4_bin",
    isMariaDB: values.some(([, version]) => /mariadb/i.test(version ?? "")),
  };
}
