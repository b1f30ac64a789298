import type { TestDatabase } from "../../support/database";

/**
 * Collations that take different texts for equal: MariaDB's default, that of Unicode 5.2 and 14, and
 * two for which trailing spaces count.
 */
export const COLLATIONS = [
  "utf8mb4_general_ci",
  "utf8mb4_unicode_520_ci",
  "uca1400_ai_ci",
  "utf8mb4_unicode_nopad_ci",
  "uca1400_nopad_ai_ci",
] as const;

/** Gives the tables of an empty database a collation. */
export const collate = ({ query }: TestDatabase, collation: string) =>
  query(`alter database character set utf8mb4 collate ${collation}`);

/** The texts that a collation takes for a given one. */
export async function findAlike(
  { query }: TestDatabase,
  collation: string,
  text: string,
  others: string[],
): Promise<string[]> {
  const collated = `convert(? using utf8mb4) collate ${collation}`;
  const alike: string[] = [];
  for (const other of others) {
    const [row] = await query(`select ${collated} = ${collated} as alike`, [text, other]);
    if (Number(row?.alike) === 1) alike.push(other);
  }
  return alike;
}

/** Texts that a collation may take for a given one: in each, one character is another. */
export function lookAlikesOf(text: string): string[] {
  const replaced = Object.entries(SIMILAR).flatMap(([letter, others]) =>
    text.includes(letter) ? others.map((other) => text.replace(letter, other)) : [],
  );
  const around = [`${text} `, `${text}\u200b`, `\u00ad${text}`];
  return [...new Set([...replaced, ...around])].filter((other) => other !== text);
}

/** Case, accents, ß, full-width and mathematical letters, and emoji. */
const SIMILAR: Record<string, string[]> = {
  a: ["A", "á", "ａ", "𝐚"],
  b: ["B", "ｂ"],
  e: ["E", "é", "ë"],
  o: ["O", "ó", "ø", "º"],
  s: ["S", "ß", "ſ"],
  ss: ["ß", "ẞ"],
  "1": ["１", "¹"],
  "😀": ["😁", "🙈"],
};
