import { expect, onTestFinished, test, vi } from "vitest";
import { ORDERS, SHUFFLED } from "./configurations/orders";
import { STORAGE_KINDS, type StorageKind } from "./configurations/storages";
import { attemptsIn, type Extent, problemsOf } from "./matrix/attempts";
import { refusedAtHome } from "./matrix/control";
import type { Variant } from "./matrix/instance";
import { type Carrier, carriersOf, NOBODY, namingAtHome, send, type Try } from "./matrix/requests";
import { createMatrixWorld } from "./matrix/world";
import { hear } from "./support/secret-spy";

type Order = (typeof ORDERS)[number];
type Orders = [Order, Order, Order];

const MINUTES = 60_000;

/** All of it takes minutes; without it, each variant tries a part that the others leave out. */
const FULL = process.env.MATRIX === "full";
const oneOf = (fast: number, full: number, offset = 0): Extent => ({
  oneOf: FULL ? full : fast,
  offset,
});

const storage = {
  plain: storageThat("gives back what it got"),
  reordering: storageThat("orders keys and adds blanks"),
};
const [, [, last], [, between]] = ORDERS as Orders;
const [[, shuffled1], [, shuffled2], [, shuffled3]] = SHUFFLED as Orders;
const otherOrders = [...ORDERS.slice(1), ...SHUFFLED];

const cached = {
  carriers: ({ name }: Carrier) => name.startsWith("cached") || name === "every cookie",
};

const variants: [string, Variant, Extent][] = [
  ["every credential", {}, { everyNaming: FULL }],
  [
    "cached sessions, compact",
    { cookieCache: "compact" },
    { ...cached, ...oneOf(5, 1), everyNaming: FULL },
  ],
  [
    "cached sessions, jwt, ours last",
    { cookieCache: "jwt", arrange: last },
    { ...cached, ...oneOf(5, 1, 1) },
  ],
  [
    "cached sessions, jwe, ours in between",
    { cookieCache: "jwe", arrange: between },
    { ...cached, ...oneOf(5, 1, 2) },
  ],
  ["secondary storage", { storage: storage.plain }, oneOf(21, 2)],
  [
    "secondary storage that reorders JSON, ours last",
    { storage: storage.reordering, arrange: last },
    oneOf(21, 2, 1),
  ],
  ["hosts, shuffled", { hosts: true, arrange: shuffled1 }, oneOf(21, 3)],
  [
    "hosts, secondary storage, compact, shuffled",
    { hosts: true, storage: storage.plain, cookieCache: "compact", arrange: shuffled2 },
    oneOf(21, 3, 1),
  ],
  [
    "hosts, secondary storage that reorders JSON, jwe, shuffled",
    { hosts: true, storage: storage.reordering, cookieCache: "jwe", arrange: shuffled3 },
    oneOf(21, 3, 2),
  ],
  // The other variants stand in various orders as well.
  ...(FULL ? otherOrders : otherOrders.slice(0, 1)).map(
    ([name, arrange], index): [string, Variant, Extent] => [
      `ours ${name}`,
      { arrange },
      oneOf(21, otherOrders.length, index),
    ],
  ),
];

test.each(variants)(
  "R3, R4, R5, R6, R8: nothing crosses the border (%s)",
  { timeout: 15 * MINUTES },
  async (title, variant, extent) => {
    const world = await createWorld(variant);
    const endpoints = new Set<string>();
    const credentials = new Set<string>();
    const problems: string[] = [];
    let combinations = 0;
    for (const attempt of attemptsIn(world, extent)) {
      combinations++;
      endpoints.add(`${attempt.endpoint.method} ${attempt.endpoint.path}`);
      credentials.add(attempt.oneTime?.name ?? attempt.carrier.name);
      problems.push(...(await problemsOf(world, attempt)));
    }
    console.log(
      `border matrix (${title}): ${endpoints.size} endpoints, ${credentials.size} credentials, ${combinations} combinations`,
    );
    expect(problems).toEqual([]);
    expect(endpoints.size).toBe(world.endpoints.length);
    expect(world.instance.entries.size > 0).toBe(variant.storage !== undefined);
    // Only now: none of them has expired meanwhile, or was used up.
    for (const home of [world.sides.a, world.sides.platform]) {
      expect(await refusedAtHome(world, home), `at home on ${home.name}`).toEqual([]);
    }
  },
);

test("the input of the matrix is good enough for every endpoint", async () => {
  const { instance, endpoints, sides, watch } = await createWorld({});
  const [carrier = NOBODY] = carriersOf(sides.a);
  const invalid: string[] = [];
  for (const endpoint of endpoints) {
    const home = sides.a;
    const attempt: Try = { endpoint, home, place: home, naming: namingAtHome(home), carrier };
    const { code, body } = await send(instance, attempt);
    if (code === "VALIDATION_ERROR") invalid.push(`${endpoint.path}: ${body}`);
    await watch.changesOf([]);
  }
  expect(invalid).toEqual([]);
});

function storageThat(habit: string): StorageKind {
  const kind = STORAGE_KINDS.find(({ name }) => name === habit);
  if (!kind) throw new Error(`no storage that ${habit}`);
  return kind;
}

async function createWorld(variant: Variant) {
  hurry();
  // Some plugins write to the console past better-auth's logger.
  const quiet = vi
    .spyOn(console, "error")
    .mockImplementation((...args) => hear("console", ...args));
  onTestFinished(() => quiet.mockRestore());
  return createMatrixWorld(variant);
}

/** better-auth takes half a second for some answers, so that their time tells nothing. */
function hurry() {
  const original = globalThis.setTimeout;
  const hasty = vi
    .spyOn(globalThis, "setTimeout")
    .mockImplementation(((run: () => void, delay = 0, ...rest: []) =>
      original(run, delay <= 500 ? 0 : delay, ...rest)) as typeof setTimeout);
  onTestFinished(() => hasty.mockRestore());
}
