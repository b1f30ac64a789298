import type { Cost } from "./many-tenants";
import type { Ratio } from "./measure";

export interface Report {
  machine: { node: string; cpu: string; database: string; storage: string; hash: string };
  ratios: Ratio[];
  tenants: Cost[];
}

type Cell = string | number;

function table(head: Cell[], rows: Cell[][]): string {
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((row) => String(row[column]).length)),
  );
  const line = (row: Cell[]) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column ? String(cell).padStart(width) : String(cell).padEnd(width);
      })
      .join("  ");
  return [head, ...rows].map(line).join("\n");
}

export function print({ machine, ratios, tenants }: Report): string {
  const { node, cpu, database, storage, hash } = machine;
  return [
    `Node ${node}, ${cpu}, ${database}, secondary storage in ${storage}, ${hash} password hash`,
    table(
      [
        "speed, better-auth's own is 1",
        "median",
        "quartiles",
        "target",
        "µs",
        "better-auth's",
        "queries",
        "better-auth's",
      ],
      ratios.map(({ name, ratio, quartiles, target, ours, theirs, queries }) => [
        name,
        ratio.toFixed(2),
        quartiles.map((value) => value.toFixed(2)).join(" to "),
        target?.toFixed(2) ?? "",
        ours.toFixed(0),
        theirs.toFixed(0),
        queries?.ours ?? "",
        queries?.theirs ?? "",
      ]),
    ),
    table(
      ["tenants", "", "heap MB", "resident MB", "first answer ms", "sign-ins/s"],
      tenants.map((cost) => [
        cost.layout,
        cost.tenants,
        cost.heap.toFixed(1),
        cost.resident.toFixed(0),
        cost.firstAnswer.toFixed(2),
        cost.throughput.toFixed(0),
      ]),
    ),
  ].join("\n\n");
}
