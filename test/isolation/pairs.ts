type Axes = Record<string, readonly string[]>;
type Row<A extends Axes> = { [Axis in keyof A]: A[Axis][number] };

/** Every pair of values of two axes. */
function pairsOf(axes: Axes): Set<string> {
  const names = Object.keys(axes);
  const pairs = new Set<string>();
  for (const [index, one] of names.entries()) {
    for (const other of names.slice(index + 1)) {
      for (const a of axes[one] ?? []) {
        for (const b of axes[other] ?? []) pairs.add(`${one}=${a} ${other}=${b}`);
      }
    }
  }
  return pairs;
}

/** The pairs that a row has. */
export function pairsIn(row: Record<string, string>): string[] {
  const entries = Object.entries(row).map(([axis, value]) => `${axis}=${value}`);
  return entries.flatMap((one, index) =>
    entries.slice(index + 1).map((other) => `${one} ${other}`),
  );
}

const valuesIn = (pair: string): Record<string, string> =>
  Object.fromEntries(
    [...pair.matchAll(/(\w+)=(.*?)(?= \w+=|$)/g)].map(([, axis = "", value = ""]) => [axis, value]),
  );

/** The same numbers in every run. */
function createRandom(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

const CANDIDATES = 60;

/**
 * Rows in which every pair of values occurs at least once, at least so many of them. Greedy: of a
 * few rows that have a pair which is still missing, the one that has most of those comes next.
 */
export function coveringSet<A extends Axes>(
  axes: A,
  least: number,
  isImpossible: (row: Record<string, string>) => boolean,
): Row<A>[] {
  const random = createRandom(7);
  const names = Object.keys(axes);
  const missing = pairsOf(axes);
  for (const pair of missing) if (isImpossible(valuesIn(pair))) missing.delete(pair);
  const rows: Record<string, string>[] = [];
  const pick = () =>
    Object.fromEntries(
      names.map((name) => [name, axes[name]?.[random(axes[name]?.length ?? 0)] ?? ""]),
    );
  while (missing.size > 0 || rows.length < least) {
    const [first = ""] = missing;
    const fixed = valuesIn(first);
    const candidates = Array.from({ length: CANDIDATES }, () => ({ ...pick(), ...fixed })).filter(
      (row) => !isImpossible(row),
    );
    const gain = (row: Record<string, string>) =>
      pairsIn(row).filter((pair) => missing.has(pair)).length;
    const [best] = candidates
      .map((row) => ({ row, gain: gain(row) }))
      .sort((one, other) => other.gain - one.gain);
    if (!best) throw new Error("no candidates");
    for (const pair of pairsIn(best.row)) missing.delete(pair);
    rows.push(best.row);
  }
  return rows as Row<A>[];
}
