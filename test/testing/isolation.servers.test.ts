import { describe, expect, it } from "vitest";
import { databases } from "../support/database";
import { everyCase, isTaken, partOf, sample } from "../support/matrix";
import {
  AXES,
  type Configuration,
  coveringSet,
  createConfigured,
  holds,
  oneOf,
  PLAIN,
  pairsIn,
} from "./configurations";

// Official packages, single sign-on, directories and invitations: isolation-packages.

/** These give numbers twice, and are refused at start. */
const isImpossible = ({ ids, database }: Partial<Configuration>) =>
  ids === "serial" && (database === "memory" || database === "sqlite");

const needsServer = ({ database }: Configuration) =>
  database === "postgres" || database === "mysql";

const ALL = coveringSet(isImpossible);
const HERE = ALL.filter((one) => databases.includes("postgres") || !needsServer(one));

describe("a covering set of configurations", () => {
  it("has every pair of values at least once", () => {
    const sizes = Object.values(AXES).map(({ length }) => length);
    const pairs = sizes.flatMap((size, n) => sizes.slice(n + 1).map((other) => size * other));
    // Numbers for ids in the memory adapter and on SQLite.
    const possible = pairs.reduce((sum, count) => sum + count, 0) - 2;
    expect(new Set(ALL.flatMap(pairsIn)).size).toBe(possible);
  });

  // A sixth of them: all of them take five minutes.
  const tried = everyCase ? HERE.filter((_, index) => isTaken(index, 6)) : sample(HERE, 2);

  it.each(tried.map((one, index) => [Object.values(one).join(", "), one, index] as const))(
    "nothing leaks: %s",
    { timeout: 600_000 },
    async (_, configuration, index) => {
      const { auth, options } = await createConfigured(configuration);
      const { attempts } = await holds(auth, { ...options, extent: oneOf(50, 25, index) });
      expect(attempts).toBeGreaterThan(20);
    },
  );
});

/** All 23 official plugins, in the configurations that have had holes: each value at least once. */
const ALL_PLUGINS: [name: string, changes: Partial<Configuration>, oneOf: number][] = [
  ["as they come", {}, 4],
  ["compact", { sessions: "compact" }, 12],
  ["a resolver, jwt, ours last", { naming: "resolver", sessions: "jwt", order: "last" }, 12],
  [
    "own domains, jwe, ours in between",
    { naming: "domain", sessions: "jwe", order: "in between" },
    12,
  ],
  [
    "hosts, storage, per-tenant cookies",
    { naming: "subdomain", sessions: "storage", cookies: "per-tenant" },
    12,
  ],
  [
    "hosts, shuffled, a storage that reorders JSON",
    { naming: "subdomain", order: "shuffled, seed 1", sessions: "reordering storage" },
    12,
  ],
];

// Furnishing a world with all of them takes longer than all other tests of a room.
it.runIf(everyCase).each(ALL_PLUGINS)(
  "R3, R4, R5, R6, R8: nothing leaks (all plugins, %s)",
  { timeout: 900_000 },
  async (_, changes, of) => {
    const { auth, options, entries } = await createConfigured({ ...PLAIN, ...changes });
    const { endpoints } = await holds(auth, { ...options, extent: partOf(of) });
    expect(endpoints).toBe(164);
    // Everything was taken away again.
    expect([...entries.keys()]).toEqual([]);
  },
);
