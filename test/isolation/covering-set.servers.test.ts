import { describe, expect, it } from "vitest";
import { checkIsolation } from "../../src/testing/index";
import { databases } from "../support/servers";
import { AXES, type Configuration, createConfigured } from "./configuration";
import { oneOf } from "./depth";
import { coveringSet, pairsIn } from "./pairs";

const LEAST = 60;

/** better-auth's memory adapter numbers rows by how many there are, so a number is soon given twice. */
const isImpossible = ({ ids, database, sessions }: Partial<Configuration>) =>
  ids === "serial" && (database === "memory" || sessions === "stateless");

const all: Configuration[] = coveringSet(AXES, LEAST, isImpossible);
const onServers = ({ database, sessions }: Configuration) =>
  sessions !== "stateless" && (database === "postgres" || database === "mysql");
const isWanted = (configuration: Configuration) =>
  onServers(configuration) === databases.includes("postgres");
const wanted = all.filter(isWanted);

const titleOf = (configuration: Configuration) => Object.values(configuration).join(", ");

describe("a covering set of configurations", () => {
  it("has every pair of values at least once, in sixty configurations or more", () => {
    const there = new Set(all.flatMap(pairsIn));
    const axes = Object.entries(AXES);
    for (const [index, [one, ones]] of axes.entries()) {
      for (const [other, others] of axes.slice(index + 1)) {
        for (const a of ones) {
          for (const b of others) {
            if (!isImpossible({ [one]: a, [other]: b })) {
              expect(there).toContain(`${one}=${a} ${other}=${b}`);
            }
          }
        }
      }
    }
    expect(all.length).toBeGreaterThanOrEqual(LEAST);
    console.log(
      `isolation: ${all.length} configurations, ${wanted.length} of them here, ${all.length - wanted.length} ${databases.includes("postgres") ? "without servers" : "on PostgreSQL and MariaDB (npm run test:servers)"}`,
    );
  });

  it.each(
    wanted.map((configuration, index) => [titleOf(configuration), configuration, index] as const),
  )(
    "nothing crosses the border: %s",
    { timeout: 600_000 },
    async (_title, configuration, index) => {
      const { auth, options } = await createConfigured(configuration);
      const report = await checkIsolation(auth, { ...options, extent: oneOf(25, 16, index) });
      expect(report.leaks).toEqual([]);
      expect(report.failures).toEqual([]);
      expect(report.untried).toEqual([]);
      expect(report.counts.attempts).toBeGreaterThan(20);
    },
  );
});
