import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseKind } from "../support/database";

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
