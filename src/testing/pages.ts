import type { Subject } from "./subject";

const PAGE = 500;

/** All rows of a table, a page at a time. */
export async function* pagesOf<T extends { id: string }>(
  { raw }: Subject,
  model: string,
): AsyncGenerator<T[]> {
  let last: string | undefined;
  for (;;) {
    const rows: T[] = await raw.findMany<T>({
      model,
      where: last === undefined ? [] : [{ field: "id", operator: "gt", value: last }],
      sortBy: { field: "id", direction: "asc" },
      limit: PAGE,
    });
    if (rows.length) yield rows;
    if (rows.length < PAGE) return;
    last = rows.at(-1)?.id;
  }
}
