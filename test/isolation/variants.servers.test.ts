import { expect, it } from "vitest";
import { checkIsolation, type Extent } from "../../src/testing/index";
import { type Configuration, createConfigured, PLAIN } from "./configuration";
import { FULL, oneOf } from "./depth";

const MINUTES = 60_000;

/** All 23 official plugins, in the configurations that have had holes. */
const VARIANTS: [name: string, changes: Partial<Configuration>, extent: Extent][] = [
  ["as they come", {}, { ...oneOf(7, 1), everyNaming: FULL }],
  ["compact", { sessions: "compact" }, oneOf(21, 10)],
  ["jwt, ours last", { sessions: "jwt", order: "last" }, oneOf(21, 10, 1)],
  ["jwe, ours in between", { sessions: "jwe", order: "in between" }, oneOf(21, 10, 2)],
  ["secondary storage", { sessions: "storage" }, oneOf(21, 10)],
  ["a storage that reorders JSON", { sessions: "reordering storage" }, oneOf(21, 10, 1)],
  ["hosts, shuffled", { naming: "subdomain", order: "shuffled, seed 1" }, oneOf(21, 14)],
  [
    "hosts, storage, per-tenant cookies",
    { naming: "subdomain", sessions: "storage", cookies: "per-tenant" },
    oneOf(21, 14, 1),
  ],
  ["own domains, jwe", { naming: "domain", sessions: "jwe" }, oneOf(21, 14, 2)],
  ["a resolver, ours last", { naming: "resolver", order: "last" }, oneOf(21, 14)],
];

/** Each of them has to be furnished first, which takes longer than to try a part of it. */
const SHORT = ["as they come", "jwe, ours in between", "hosts, storage, per-tenant cookies"];
const chosen = VARIANTS.filter(([name]) => FULL || SHORT.includes(name));
const skipped = VARIANTS.length - chosen.length;
if (skipped) console.log(`Skipped: ${skipped} variants with all plugins (MATRIX=full runs them).`);

it.each(chosen)(
  "R3, R4, R5, R6, R8: nothing crosses the border (all plugins, %s)",
  { timeout: 15 * MINUTES },
  async (name, changes, extent) => {
    const { auth, options, entries } = await createConfigured({ ...PLAIN, ...changes });
    const report = await checkIsolation(auth, { ...options, extent });
    const { endpoints, credentials, attempts } = report.counts;
    console.log(
      `isolation (${name}): ${endpoints} endpoints, ${credentials} credentials, ${attempts} attempts`,
    );
    expect(report.leaks).toEqual([]);
    expect(report.failures).toEqual([]);
    expect(report.untried).toEqual([]);
    expect(endpoints).toBe(157);
    // Everything was taken away again.
    expect([...entries.keys()]).toEqual([]);
  },
);
