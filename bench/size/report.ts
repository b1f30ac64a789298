import type { Ratio } from "../measure";
import type { Deletion, SignIns } from "./deletion";

export interface Report {
  machine: { node: string; cpu: string; database: string };
  sizes: { tenants: number; users: number; sessions: number; loadSeconds: number }[];
  ratios: Ratio[];
  deletion: Deletion;
}

const number = (value: number) => value.toLocaleString("en");

export function print({ machine, sizes, ratios, deletion }: Report): string {
  const { node, cpu, database } = machine;
  const { before, during } = deletion;
  const widest = Math.max(...ratios.map(({ name }) => name.length));
  const row = ({ name, ratio, quartiles, target = 0, ours, theirs }: Ratio) =>
    [
      name.padEnd(widest),
      ratio.toFixed(2),
      `(${quartiles.map((value) => value.toFixed(2)).join(" to ")})`,
      `${theirs.toFixed(0).padStart(6)} µs with few, ${ours.toFixed(0).padStart(6)} µs with many`,
      ...(ratio < target ? [`under ${target}`] : []),
    ].join("  ");
  const signIns = ({ count, median, p95, max }: SignIns) =>
    `${count} sign-ins elsewhere, median ${median.toFixed(1)} ms, 95 % within ` +
    `${p95.toFixed(1)} ms, longest ${max.toFixed(0)} ms`;
  return [
    `Node ${node}, ${cpu}, ${database}`,
    ...sizes.map(
      ({ tenants, users, sessions, loadSeconds }) =>
        `${number(tenants)} tenants, ${number(users)} users, ${number(sessions)} sessions: ` +
        `loaded in ${loadSeconds.toFixed(0)} s`,
    ),
    "",
    "speed; with few tenants it is 1 (median, quartiles)",
    ...ratios.map(row),
    "",
    `deletion of a tenant with ${number(deletion.users)} users: ` +
      `${deletion.seconds.toFixed(1)} s, ${deletion.memory.toFixed(0)} MB`,
    `  before: ${signIns(before)}`,
    `  during: ${signIns(during)}`,
  ].join("\n");
}
