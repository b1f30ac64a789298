import { readPage } from "./pages";

const PAGE = readPage("docs/reference.md");

/** Path, server function, client function, and who may call it. */
const ENDPOINT =
  /^(?:`([A-Z, ]+) (\/\S+)` · )?`auth\.api\.(\w+)`(?: · `authClient\.([\w.]+)`)? · (.+)$/m;

/** The endpoints as docs/reference.md describes them. */
export const endpoints = textUnder("## Endpoints")
  .split(/^#### /m)
  .slice(1)
  .map((section) => {
    const title = section.split("\n")[0] ?? "";
    const [line, methods, path, server = "", client, who = ""] = ENDPOINT.exec(section) ?? [];
    if (!line) throw new Error(`docs/reference.md does not say how to call "${title}"`);
    return {
      title,
      methods: methods?.split(", ") ?? [],
      path,
      server,
      client,
      who,
      /** What it takes, by "body" or "query" and name: "string, required". */
      parameters: parametersIn(section),
    };
  });

/** The rows of the first table under a heading: the first cell, bare, and the others. */
export function rowsUnder(heading: string): [name: string, ...cells: string[]][] {
  return rowsOf(tablesIn(textUnder(heading))[0] ?? []);
}

/** The rows of all tables under a heading. */
export const allRowsUnder = (heading: string) => tablesIn(textUnder(heading)).flatMap(rowsOf);

/** The text under a heading, up to the next one of its level. */
export function textUnder(heading: string): string {
  const [marks = ""] = heading.split(" ");
  const [, text = ""] = `\n${PAGE}`.split(`\n${heading}\n`);
  const [own = ""] = text.split(new RegExp(`^#{1,${marks.length}} `, "m"));
  if (!own) throw new Error(`docs/reference.md has nothing under "${heading}"`);
  return own;
}

function parametersIn(section: string): Record<string, string> {
  const found = tablesIn(section).flatMap((table) => {
    const [places = ""] = cellsOf(table[0] ?? "");
    return places
      .split(", ")
      .flatMap((place) => rowsOf(table).map(([name, type]) => [`${place}.${name}`, type ?? ""]));
  });
  return Object.fromEntries(found);
}

/** The lines of each table, with its head. */
function tablesIn(text: string): string[][] {
  return [...text.matchAll(/(?:^\|.*\n)+/gm)].map(([table]) => table.trim().split("\n"));
}

function rowsOf(table: string[]): [name: string, ...cells: string[]][] {
  return table.slice(2).map((line) => {
    const [name = "", ...cells] = cellsOf(line);
    return [bare(name) ?? "", ...cells];
  });
}

function cellsOf(line: string): string[] {
  const cells = line.slice(1, -1).split("|");
  return cells.map((cell) => cell.trim());
}

function bare(text: string | undefined) {
  return text?.replaceAll("`", "");
}
