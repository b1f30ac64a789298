import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import type { DatabaseKind } from "./database";

export const root = join(import.meta.dirname, "../..");

/** Every page that people read. */
export const pages = [
  "README.md",
  "CONTRIBUTING.md",
  ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`),
].filter((name) => name.endsWith(".md"));

export interface Block {
  page: string;
  /** The line that the code begins in. */
  line: number;
  /** The heading that it stands under. */
  heading: string;
  language: string;
  code: string;
}

export const readPage = (page: string) => readFileSync(join(root, page), "utf8");

/** The blocks of code in a page. */
export function blocksIn(page: string): Block[] {
  const blocks: Block[] = [];
  let open: Block | undefined;
  let heading = "";
  for (const [index, text] of readPage(page).split("\n").entries()) {
    const fence = /^```(\w*)$/.exec(text);
    if (fence && !open) {
      open = { page, line: index + 2, heading, language: fence[1] ?? "", code: "" };
    } else if (fence && open) {
      blocks.push(open);
      open = undefined;
    } else if (open) open.code += `${text}\n`;
    else heading = /^#+ (.*)$/.exec(text)?.[1] ?? heading;
  }
  if (open) throw new Error(`${page}: the block in line ${open.line} has no end`);
  return blocks;
}

const NAMES = { postgres: "PostgreSQL", mysql: "MySQL", sqlite: "SQLite" };

/** The statements of a guide for a database: of the only block under a heading that names it. */
export function statementsFor(kind: DatabaseKind, page: string, heading: string): string[] {
  const found = blocksIn(page).filter(({ language, code, ...block }) => {
    const [label = ""] = (/^-- (.*)\n/.exec(code)?.[1] ?? "").split(":");
    return language === "sql" && block.heading === heading && label.includes(NAMES[kind]);
  });
  const [block, ...others] = found;
  if (!block || others.length) {
    throw new Error(`${page}: ${found.length} blocks for ${kind} under "${heading}"`);
  }
  return statementsOf(block.code);
}

export function statementsOf(sql: string): string[] {
  return sql
    .replaceAll(/^\s*--.*$/gm, "")
    .split(";")
    .map((statement) => statement.trim())
    .filter(Boolean);
}

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

/** Where files live that only the compiler sees. */
export const SCRATCH = join(root, ".scratch");

/** TypeScript as an editor runs it, over files of this repository and files that are made up. */
export function createEditor(files: Map<string, string>, paths: Record<string, string[]>) {
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const read = (path: string) => files.get(path) ?? ts.sys.readFile(path);
  const service = ts.createLanguageService({
    getCompilationSettings: () => ({
      ...options,
      jsx: ts.JsxEmit.ReactJSX,
      paths: { ...options.paths, ...paths },
    }),
    getScriptFileNames: () => [...files.keys()],
    getScriptVersion: () => "1",
    getScriptSnapshot(path) {
      const text = read(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => root,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (path) => files.has(path) || ts.sys.fileExists(path),
    readFile: read,
    directoryExists: (path) =>
      ts.sys.directoryExists(path) || [...files.keys()].some((file) => file.startsWith(`${path}/`)),
    getDirectories: ts.sys.getDirectories,
    realpath: (path) => (files.has(path) ? path : (ts.sys.realpath?.(path) ?? path)),
  });
  const program = service.getProgram();
  if (!program) throw new Error("there is no program");
  const checker = program.getTypeChecker();
  const endOf = (path: string) => read(path)?.length ?? 0;
  const describe = (symbol: ts.Symbol, target = symbol) => ({
    name: symbol.name,
    documentation: ts.displayPartsToString(target.getDocumentationComment(checker)),
  });

  return {
    /** What is wrong in a file, with the line that it is wrong in. */
    problemsIn(path: string) {
      const found = [
        ...service.getSyntacticDiagnostics(path),
        ...service.getSemanticDiagnostics(path),
      ];
      return found.map(({ messageText, file, start = 0 }) => ({
        line: file ? file.getLineAndCharacterOfPosition(start).line : 0,
        message: ts.flattenDiagnosticMessageText(messageText, "\n"),
      }));
    },

    /** What a module exports: names, and what is written about them and about their properties. */
    exportsOf(path: string) {
      const file = program.getSourceFile(path);
      const module = file && checker.getSymbolAtLocation(file);
      if (!module) throw new Error(`${path} is no module of the program`);
      return checker.getExportsOfModule(module).map((symbol) => {
        const isAlias = symbol.flags & ts.SymbolFlags.Alias;
        const target = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
        const properties = checker.getDeclaredTypeOfSymbol(target).getProperties();
        return {
          ...describe(symbol, target),
          properties: properties.map((property) => describe(property)),
        };
      });
    },

    /** What an editor offers behind the end of a file. */
    completionsAtEndOf(path: string): string[] {
      const completions = service.getCompletionsAtPosition(path, endOf(path), {});
      return (completions?.entries ?? []).map(({ name }) => name);
    },

    /** What it says about one of them. */
    describeCompletion(path: string, name: string): string {
      const [none, position] = [undefined, endOf(path)];
      const details = service.getCompletionEntryDetails(path, position, name, {}, none, {}, none);
      return ts.displayPartsToString(details?.documentation);
    },

    /** What an editor says when somebody points at a word, at its first place behind `before`. */
    quickInfo(path: string, before: string, word: string): string {
      const text = read(path) ?? "";
      const position = text.indexOf(word, text.indexOf(before));
      if (!text.includes(before) || position < 0)
        throw new Error(`${path} has no ${before}${word}`);
      const info = service.getQuickInfoAtPosition(path, position + 1);
      return ts.displayPartsToString(info?.documentation);
    },
  };
}
