import { readPage } from "./markdown";

/** An endpoint as docs/reference.md describes it. */
export interface DocumentedEndpoint {
  title: string;
  methods: string[];
  path: string | undefined;
  server: string;
  client: string | undefined;
  who: string;
  /** What it takes, by "body" or "query" and name: "string, required". */
  parameters: Record<string, string>;
}

const PAGE = readPage("docs/reference.md");

export const endpoints: DocumentedEndpoint[] = textUnder("## Endpoints")
  .split(/^#### /m)
  .slice(1)
  .map((section) => {
    const said = (label: string) => new RegExp(`^- ${label}: (.*)$`, "m").exec(section)?.[1];
    const [, methods, path] = /^- `([A-Z, ]+) (\/\S+)`$/m.exec(section) ?? [];
    return {
      title: section.split("\n")[0] ?? "",
      methods: methods?.split(", ") ?? [],
      path,
      server: bare(said("Server")?.replace("auth.api.", "")) ?? "",
      client: bare(said("Client")?.replace("authClient.", "")),
      who: said("Who") ?? "",
      parameters: parametersIn(section),
    };
  });

/** The rows of the first table under a heading: the first cell, bare, and the others. */
export function rowsUnder(heading: string): [name: string, ...cells: string[]][] {
  return rowsOf(tablesIn(textUnder(heading))[0] ?? []);
}

/** The rows of all tables under a heading. */
export const allRowsUnder = (heading: string) => tablesIn(textUnder(heading)).flatMap(rowsOf);

function textUnder(heading: string): string {
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
