import { fromBase64Url } from "../makers/authenticator";
import { parse } from "../sides/browser";

/** Every text in a value, also in JSON that is inside of JSON. */
export function textsIn(value: unknown): string[] {
  const parsed = typeof value === "string" ? (parse(value) ?? value) : value;
  if (typeof parsed === "string") return [parsed];
  if (parsed instanceof Date) return [];
  if (typeof parsed !== "object" || parsed === null) return [];
  return Object.values(parsed).flatMap(textsIn);
}

/** Dates and short words are on every side, or say nothing. */
export const isSecret = (text: string) => text.length >= 8 && !/^\d{4}-\d\d-\d\dT/.test(text);

/** What is inside tokens and cookies that are only encoded, not encrypted. */
export function decoded(text: string): string {
  const encoded = text.match(/[\w-]{24,}/g) ?? [];
  return encoded
    .map((part) => {
      try {
        return new TextDecoder().decode(fromBase64Url(part));
      } catch {
        return "";
      }
    })
    .join("\n");
}

export function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Good enough for what comes out of JSON. */
export function isDeepStrictEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}
