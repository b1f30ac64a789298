import { decodeBase64url, parseJSON } from "../../core/utils";

/** Every text in a value, also in JSON that is inside of JSON. */
export function textsIn(value: unknown): string[] {
  const parsed = parseJSON(value) ?? value;
  if (typeof parsed === "string") return [parsed];
  if (typeof parsed !== "object" || parsed === null || parsed instanceof Date) return [];
  return Object.values(parsed).flatMap(textsIn);
}

/** Dates and short words are on every side, or say nothing. */
export const isSecret = (text: string) => text.length >= 8 && !/^\d{4}-\d\d-\d\dT/.test(text);

/** A text together with what is inside its tokens and cookies that are only encoded. */
export const withDecoded = (text: string) =>
  [text, ...(text.match(/[\w-]{24,}/g) ?? []).map(decodeBase64url)].join("\n");

export const messageOf = (error: unknown) => (error instanceof Error ? error.message : error);

/** When an API key was last used is bookkeeping, in a table and in secondary storage. */
export const BOOKKEEPING = "lastRequest updatedAt requestCount remaining lastRefillAt".split(" ");

/** A value without bookkeeping, for comparison: storages may reorder JSON, also inside of JSON. */
export function withoutBookkeeping(value: unknown): unknown {
  const parsed = parseJSON(value) ?? value;
  if (typeof parsed !== "object" || parsed === null) return value;
  return Object.entries(parsed)
    .filter(([name]) => !BOOKKEEPING.includes(name))
    .map(([name, field]) => JSON.stringify([name, withoutBookkeeping(field)]))
    .sort();
}
