import type { Repeatable } from "../findings";

/** A text of the same form that stands for nothing: letters and digits one further. */
export function otherId(id: string): string {
  // The beginning of a UUID says which kind it is.
  const kept = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-/i.exec(id)?.[0] ?? "";
  const rest = id.slice(kept.length);
  return kept + rest.replaceAll(/[a-zA-Z0-9]/g, (character) => NEXT[character] ?? character);
}

const circle = (characters: string) =>
  [...characters].map((one, index) => [one, characters[(index + 1) % characters.length]]);

// In a UUID, letters stay below "g".
const NEXT: Record<string, string> = Object.fromEntries(
  ["0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ"].flatMap(
    circle,
  ),
);

/** The ids that a request says, of those given: texts without spaces, and no emails. */
export const idsIn = ({ url, body = "" }: Repeatable, texts: string[]) => {
  const said = `${decodeURIComponent(url)} ${body}`;
  return texts.filter((text) => /^[\w.-]+$/.test(text) && said.includes(text));
};

export function withOtherIds({ url, body, ...rest }: Repeatable, ids: string[]): Repeatable {
  const replace = (text: string) =>
    ids.reduce((changed, id) => changed.replaceAll(id, otherId(id)), text);
  return { ...rest, url: replace(url), ...(body !== undefined && { body: replace(body) }) };
}
