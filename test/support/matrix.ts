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

/** Whether nothing is left out, however long it takes: the nightly workflow sets this. */
const everything = process.env.TEST_ALL === "1";

/** Decides which part of a long list a run takes. The run prints it, and repeats it if it is set. */
const seed = Number(process.env.TEST_SEED ?? 0);

/** One of `count` parts of a list that takes too long as a whole. */
export const partOf = (count: number) =>
  everything ? { oneOf: 1, offset: 0 } : { oneOf: count, offset: seed % count };

/** Whether this run takes the case with this index, if it takes one of `count` parts. */
export const isTaken = (index: number, count: number) =>
  everything || index % count === seed % count;

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
