import { type Handler, send } from "./instance";

/** One side of a comparison: makes requests ahead of time, then answers them. */
export interface Side {
  handler: Handler;
  requests(count: number): Promise<Request[]> | Request[];
  /** The queries of its database so far. */
  queries?: (() => number) | undefined;
}

export interface Comparison {
  name: string;
  ours: Side;
  /** better-auth on its own. */
  theirs: Side;
  /** The ratio that it is meant to reach. */
  target?: number;
  /** How many queries more than better-auth's own it may cost. */
  moreQueries?: number | undefined;
}

export interface Effort {
  rounds: number;
  /** How long the requests of one batch take together. */
  batchMs: number;
  warmUpMs: number;
}

export interface Ratio {
  name: string;
  target?: number | undefined;
  /** Our speed by theirs: the median over the rounds, and its quartiles. */
  ratio: number;
  quartiles: [number, number];
  /** The same by processor time, which other processes on the machine do not reach. */
  cpuRatio: number;
  /** Microseconds for one request, medians. */
  ours: number;
  theirs: number;
  /** Queries for one request, ours and theirs, and how many more are allowed. */
  queries?: { ours: number; theirs: number; allowed: number } | undefined;
  rounds: number;
  batch: number;
}

interface Cost {
  wall: number;
  cpu: number;
}

/** Sends one request after the other, and reads each answer to its end. */
async function run({ handler, requests }: Side, count: number): Promise<Cost> {
  const prepared = await requests(count);
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (const request of prepared) await (await send(handler, request)).arrayBuffer();
  const wall = (performance.now() - start) * 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { wall: wall / count, cpu: (user + system) / count };
}

/** What one request costs the database, once everything that is kept in memory is there. */
async function countQueries(side: Side): Promise<number | undefined> {
  const [first, request] = await side.requests(2);
  if (first) await send(side.handler, first);
  const before = side.queries?.();
  if (!request || before === undefined) return undefined;
  await send(side.handler, request);
  return Number(side.queries?.()) - before;
}

async function compareQueries({ ours, theirs, moreQueries: allowed }: Comparison) {
  const counts = { ours: await countQueries(ours), theirs: await countQueries(theirs) };
  if (allowed === undefined || counts.ours === undefined || counts.theirs === undefined) return;
  return { ours: counts.ours, theirs: counts.theirs, allowed };
}

/** Queries are exact, so more of them than allowed is a mistake; times are only reported. */
export const costsTooMany = ({ queries }: Ratio) =>
  queries !== undefined && queries.ours !== queries.theirs + queries.allowed;

/**
 * Both sides by turns, in small batches. A round is a batch of each and the same backwards, so that
 * whatever slows the machine down, or the database as it fills, hits both.
 */
export async function compare(
  comparison: Comparison,
  { rounds, batchMs, warmUpMs }: Effort,
): Promise<Ratio> {
  const { name, ours, theirs, target } = comparison;
  const until = performance.now() + warmUpMs;
  let last = 1000;
  do {
    last = (await run(ours, 5)).wall;
    await run(theirs, 5);
  } while (performance.now() < until);
  const batch = Math.max(1, Math.round((batchMs * 1000) / last));

  const costs: { ours: Cost; theirs: Cost }[] = [];
  for (let round = 0; round < rounds; round++) {
    const [first, second] = round % 2 ? [ours, theirs] : [theirs, ours];
    const [a, b] = [await run(first, batch), await run(second, batch)];
    const [c, d] = [await run(second, batch), await run(first, batch)];
    const [outer, inner] = [mean(a, d), mean(b, c)];
    costs.push(round % 2 ? { ours: outer, theirs: inner } : { ours: inner, theirs: outer });
  }
  const ratios = costs.map(({ ours, theirs }) => theirs.wall / ours.wall);
  return {
    name,
    target,
    ratio: quantile(ratios, 0.5),
    quartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
    cpuRatio: quantile(
      costs.map(({ ours, theirs }) => theirs.cpu / ours.cpu),
      0.5,
    ),
    ours: quantile(
      costs.map(({ ours }) => ours.wall),
      0.5,
    ),
    theirs: quantile(
      costs.map(({ theirs }) => theirs.wall),
      0.5,
    ),
    queries: await compareQueries(comparison),
    rounds,
    batch,
  };
}

const mean = (a: Cost, b: Cost): Cost => ({
  wall: (a.wall + b.wall) / 2,
  cpu: (a.cpu + b.cpu) / 2,
});

export function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const position = (sorted.length - 1) * share;
  const [low = 0, high = low] = [sorted[Math.floor(position)], sorted[Math.ceil(position)]];
  return low + (high - low) * (position - Math.floor(position));
}
