import type { InstanceOptions } from "./instance";

/** Whether every combination is tried: `npm run test:servers` does, `npm test` takes a sample. */
export const everyCase = process.env.MATRIX === "full";

/** All of a list where every case is tried; otherwise so many, and the next ones for the next row. */
export function turnOf<T>(list: readonly T[], count: number, row: number): T[] {
  if (everyCase || list.length <= count) return [...list];
  const at = (index: number) => list[(row * count + index) % list.length] as T;
  return Array.from({ length: count }, (_, index) => at(index));
}

/** All of a list where every case is tried, and otherwise so many of it, evenly spread. */
export function sample<T>(list: readonly T[], count: number): T[] {
  if (everyCase || list.length <= count) return [...list];
  const at = (index: number) => list[Math.floor((index * list.length) / count)] as T;
  return Array.from({ length: count }, (_, index) => at(index));
}

const TODAY = Math.floor(Date.now() / 86_400_000);

/** Where all of a list takes too long: another part of it every day, and in so many days all of it. */
export const partOfToday = (days: number) => ({ oneOf: days, offset: TODAY % days });

/**
 * Every combination of the values of several lists, where every case is tried; otherwise as many
 * rows as the longest list has, with every value of every list in them.
 */
export function combine<Lists extends readonly (readonly unknown[])[]>(
  ...lists: Lists
): Row<Lists>[] {
  if (everyCase) {
    const add = (rows: unknown[][], list: readonly unknown[]) =>
      rows.flatMap((row) => list.map((value) => [...row, value]));
    return lists.reduce(add, [[]]) as Row<Lists>[];
  }
  const length = Math.max(...lists.map((list) => list.length));
  return Array.from({ length }, (_, n) => lists.map((list) => list[n % list.length]) as Row<Lists>);
}

type Row<Lists extends readonly (readonly unknown[])[]> = {
  -readonly [Index in keyof Lists]: Lists[Index][number];
};

type Arrange = NonNullable<InstanceOptions["arrange"]>;

/** Where our plugin can stand among the others. */
export const ORDERS: [name: string, arrange: Arrange][] = [
  ["first", (ours, others) => [ours, ...others]],
  ["last", (ours, others) => [...others, ours]],
  [
    "in between",
    (ours, others) => {
      const middle = Math.ceil(others.length / 2);
      return [...others.slice(0, middle), ours, ...others.slice(middle)];
    },
  ],
];

/** The same orders in every run. */
export const SHUFFLED: typeof ORDERS = [1, 2, 3, 4, 5].map((seed) => [
  `shuffled, seed ${seed}`,
  (ours, others) => shuffle([ours, ...others], seed),
]);

/** The same numbers in every run. */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

function shuffle<T>(list: T[], seed: number): T[] {
  const random = createRandom(seed);
  return list
    .map((item) => ({ item, rank: random() }))
    .sort((one, other) => one.rank - other.rank)
    .map(({ item }) => item);
}
