import type { DBTransactionAdapter } from "better-auth/types";

/** All rows of a table, a page at a time, by their ids: rows that come and go shift no others. */
export async function* pagesOf<Stored extends { id?: string }>(
  adapter: Pick<DBTransactionAdapter, "findMany">,
  model: string,
  size: number,
  select?: string[],
): AsyncGenerator<Stored[]> {
  let last: string | undefined;
  for (;;) {
    const rows: Stored[] = await adapter.findMany<Stored>({
      model,
      where: last === undefined ? [] : [{ field: "id", operator: "gt", value: last }],
      sortBy: { field: "id", direction: "asc" },
      limit: size,
      ...(select && { select }),
    });
    if (rows.length) yield rows;
    if (rows.length < size) return;
    last = rows.at(-1)?.id;
  }
}
