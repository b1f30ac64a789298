import type { Leak } from "../findings";
import type { SideName } from "../sides/places";
import type { Watch } from "./watch";

export const nameOf = (side: string) =>
  side === "platform" ? "the platform" : `tenant ${side.toUpperCase()}`;

/** A leak with its summary: "signed in at tenant A, GET /notes/get returned a note of tenant B". */
export function createLeak(
  watch: Watch,
  { who, ...leak }: Omit<Leak, "summary"> & { who: string },
): Leak {
  return { ...leak, summary: `${who}, ${leak.endpoint} ${inWords(watch, leak.found)}` };
}

function inWords(watch: Watch, found: string): string {
  const told = /^tells of (\w+): (.*)$/s.exec(found);
  if (told) {
    const [, side = "", texts = ""] = told;
    const source = watch.sourceOf(side as SideName, texts.split(", ")[0] ?? "");
    return `returned ${source ? `a ${source}` : "data"} of ${nameOf(side)}: ${texts}`;
  }
  const changed = /^([\w ]+) of (\w+): (.*)$/s.exec(found);
  if (!changed) return found;
  const [, table = "", side = "", what = ""] = changed;
  return `changed "${table}" of ${nameOf(side)}: ${what}`;
}
