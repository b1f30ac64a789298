import type { Leak, Repeatable, Untried } from "./findings";

/** What a run of `checkIsolation` has found. */
export interface IsolationReport {
  /** What crossed the border, with the request that shows it. */
  leaks: Leak[];
  /** What could not be tried. */
  untried: Untried[];
  /** Requests that the instance broke down at, with a status of 500 or more. */
  failures: string[];
  counts: { endpoints: number; credentials: number; attempts: number; controls: number };
  milliseconds: number;
  /** A table that a person can read. */
  toString(): string;
  /** The same for a pull request. */
  toMarkdown(): string;
}

export function createReport(
  found: Omit<IsolationReport, "toString" | "toMarkdown">,
): IsolationReport {
  return { ...found, toString: () => asText(found), toMarkdown: () => asMarkdown(found) };
}

type Found = Omit<IsolationReport, "toString" | "toMarkdown">;

const seconds = ({ milliseconds }: Found) => `${(milliseconds / 1000).toFixed(1)} s`;

function summary(found: Found): [string, string][] {
  const { counts, leaks, untried, failures } = found;
  return [
    ["endpoints", String(counts.endpoints)],
    ["credentials", String(counts.credentials)],
    ["attempts", String(counts.attempts)],
    ["controls", String(counts.controls)],
    ["time", seconds(found)],
    ["leaks", String(leaks.length)],
    ["failures", String(failures.length)],
    ["untried", String(untried.length)],
  ];
}

/** The same hole shows in many requests: one for each endpoint and kind is enough to read. */
function distinct(leaks: Leak[]): Leak[] {
  const seen = new Map<string, Leak>();
  for (const leak of leaks) {
    const key = `${leak.endpoint} ${leak.found.split(":")[0]}`;
    if (!seen.has(key)) seen.set(key, leak);
  }
  return [...seen.values()];
}

function asText(found: Found): string {
  const rows = summary(found).map(([name, value]) => `  ${name.padEnd(12)}${value.padStart(8)}`);
  const shown = distinct(found.leaks);
  const leaks = shown.flatMap(({ attempt, found: what, request }) => [
    `  ${attempt}`,
    `    ${what}`,
    ...curl(request).map((line) => `    ${line}`),
  ]);
  const untried = found.untried.flatMap(({ what, reason, give }) => [
    `  ${what}`,
    `    ${reason}`,
    `    give: ${give}`,
  ]);
  return [
    found.leaks.length ? "Something crosses the border." : "Nothing crosses the border.",
    ...rows,
    ...(leaks.length
      ? ["", `Leaks (${shown.length} of ${found.leaks.length} shown):`, ...leaks]
      : []),
    ...(found.failures.length ? ["", "Failures:", ...found.failures.map((one) => `  ${one}`)] : []),
    ...(untried.length ? ["", "Untried:", ...untried] : []),
  ].join("\n");
}

function asMarkdown(found: Found): string {
  const [names, values] = [0, 1].map((part) => summary(found).map((row) => row[part]));
  const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll("\n", " ");
  const leaks = distinct(found.leaks).flatMap(({ attempt, found: what, request }) => [
    `- **${attempt}**: ${what}`,
    "",
    "  ```sh",
    ...curl(request).map((line) => `  ${line}`),
    "  ```",
  ]);
  const untried = found.untried.map(
    ({ what, reason, give }) => `| ${cell(what)} | ${cell(reason)} | ${cell(give)} |`,
  );
  return [
    `### Isolation of tenants: ${found.leaks.length ? "broken" : "holds"}`,
    "",
    `| ${names?.join(" | ")} |`,
    `|${names?.map(() => " --- |").join("")}`,
    `| ${values?.join(" | ")} |`,
    ...(leaks.length ? ["", "#### Leaks", "", ...leaks] : []),
    ...(untried.length
      ? ["", "#### Untried", "", "| what | reason | give |", "| --- | --- | --- |", ...untried]
      : []),
    "",
  ].join("\n");
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** The request as a command; the people in it are gone unless the run was told to keep them. */
function curl({ method, url, headers, body }: Repeatable): string[] {
  const lines = Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  const data = body === undefined ? [] : [`-d ${quoted(body)}`];
  return [`curl -X ${method} ${quoted(url)}`, ...lines, ...data].map((line, index, all) =>
    index < all.length - 1 ? `${line} \\` : line,
  );
}
