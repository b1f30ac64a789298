import type { Accepted, Leak, NotApplicable, Repeatable, Untried } from "./findings";

/** What a run of `checkIsolation` has found. */
export interface IsolationReport {
  /** What crossed from one tenant, or the platform, to another, with the request that shows it. */
  leaks: Leak[];
  /** What could not be tried, and what to pass so that it can be. */
  untried: Untried[];
  /** What there is nothing to try about: switched off, or for the platform only. */
  notApplicable: NotApplicable[];
  /** Requests that failed with a status of 500 or more. */
  failures: string[];
  /** What `allow` accepts, and what it names although it does not happen any more. */
  accepted: Accepted[];
  stale: string[];
  /** Rows of the application's own tables that the run caused and could not delete. */
  left: string[];
  counts: { endpoints: number; credentials: number; attempts: number; controls: number };
  milliseconds: number;
  /** Throws a short text unless nothing leaks, fails, is untried or is stale in `allow`. */
  assert(): void;
  /** A text for a terminal. */
  toString(): string;
  /** The same for a pull request. */
  toMarkdown(): string;
}

type Methods = "assert" | "toString" | "toMarkdown";
type Found = Omit<IsolationReport, Methods>;

export function createReport(
  all: Omit<Found, "accepted" | "stale">,
  allow: Record<string, string>,
): IsolationReport {
  const isAllowed = (endpoint: string) => endpoint in allow;
  const accepted = Object.entries(allow).map(([endpoint, reason]) => ({
    endpoint,
    reason,
    leaks: all.leaks.filter((leak) => leak.endpoint === endpoint),
    untried: all.untried.filter(({ what }) => what === endpoint),
  }));
  const isUsed = ({ leaks, untried }: Accepted) => leaks.length > 0 || untried.length > 0;
  const found: Found = {
    ...all,
    leaks: all.leaks.filter(({ endpoint }) => !isAllowed(endpoint)),
    untried: all.untried.filter(({ what }) => !isAllowed(what)),
    accepted: accepted.filter(isUsed),
    stale: accepted.filter((one) => !isUsed(one)).map(({ endpoint }) => endpoint),
  };
  return {
    ...found,
    assert() {
      const problems = shortText(found);
      if (problems.length) throw new Error(["checkIsolation():", ...problems].join("\n"));
    },
    toString: () => asText(found),
    toMarkdown: () => asMarkdown(found),
  };
}

function summary(found: Found): [string, string][] {
  const { counts, leaks, untried, failures, accepted, notApplicable } = found;
  return [
    ["endpoints", String(counts.endpoints)],
    ["credentials", String(counts.credentials)],
    ["attempts", String(counts.attempts)],
    ["controls", String(counts.controls)],
    ["time", `${(found.milliseconds / 1000).toFixed(1)} s`],
    ["leaks", String(leaks.length)],
    ["failures", String(failures.length)],
    ["untried", String(untried.length)],
    ["not applicable", String(notApplicable.length)],
    ["accepted", String(accepted.length)],
  ];
}

/** The same hole shows in many requests: one of each kind is enough to read, by endpoint. */
function byEndpoint(leaks: Leak[]): [endpoint: string, leaks: Leak[]][] {
  const endpoints = new Map<string, Map<string, Leak>>();
  for (const leak of leaks) {
    const kinds = endpoints.get(leak.endpoint) ?? new Map<string, Leak>();
    endpoints.set(leak.endpoint, kinds);
    const kind = leak.found.split(":")[0] ?? "";
    if (!kinds.has(kind)) kinds.set(kind, leak);
  }
  return [...endpoints].map(([endpoint, kinds]) => [endpoint, [...kinds.values()]]);
}

const headline = ({ leaks }: Found) => {
  const many = byEndpoint(leaks).length;
  if (!many) return "Tenants are isolated.";
  return `Tenants are not isolated: ${many} ${many === 1 ? "endpoint leaks" : "endpoints leak"}.`;
};

function shortText(found: Found): string[] {
  return [
    ...byEndpoint(found.leaks).map(([, [first]]) => `leak: ${first?.summary}`),
    ...found.failures.map((one) => `failure: ${one}`),
    ...found.untried.map(({ what, reason, give }) => `untried: ${what}: ${reason}. Pass ${give}`),
    ...found.stale.map((endpoint) => `allow: "${endpoint}" does not happen any more: remove it`),
  ];
}

const section = (title: string, lines: string[]) =>
  lines.length ? ["", `${title}:`, ...lines] : [];

function asText(found: Found): string {
  const leaks = byEndpoint(found.leaks).flatMap(([endpoint, kinds]) => [
    `  ${endpoint}`,
    ...kinds.flatMap(({ summary: what, request }) => [
      `    ${what}`,
      ...curl(request).map((line) => `      ${line}`),
    ]),
  ]);
  const untried = found.untried.flatMap(({ what, reason, give }) => [
    `  ${what}`,
    `    ${reason}`,
    `    pass: ${give}`,
  ]);
  return [
    headline(found),
    ...summary(found).map(([name, value]) => `  ${name.padEnd(15)}${value.padStart(8)}`),
    ...section(`Leaks (${found.leaks.length} requests)`, leaks),
    ...section(
      "Failures",
      found.failures.map((one) => `  ${one}`),
    ),
    ...section("Untried", untried),
    ...section(
      "Accepted",
      found.accepted.map((one) => `  ${one.endpoint}: ${one.reason}`),
    ),
    ...section(
      "Allowed, but it does not happen any more",
      found.stale.map((one) => `  ${one}`),
    ),
    ...section(
      "Left in the database",
      found.left.map((one) => `  ${one}`),
    ),
  ].join("\n");
}

function asMarkdown(found: Found): string {
  const [names, values] = [0, 1].map((part) => summary(found).map((row) => row[part]));
  const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll("\n", " ");
  const leaks = byEndpoint(found.leaks).flatMap(([endpoint, kinds]) => [
    `**${endpoint}**`,
    "",
    ...kinds.flatMap(({ summary: what, request }) => [
      `- ${what}`,
      "",
      "  ```sh",
      ...curl(request).map((line) => `  ${line}`),
      "  ```",
    ]),
  ]);
  const untried = found.untried.map(
    ({ what, reason, give }) => `| ${cell(what)} | ${cell(reason)} | ${cell(give)} |`,
  );
  const accepted = found.accepted.map(({ endpoint, reason }) => `- ${endpoint}: ${reason}`);
  return [
    `### ${headline(found)}`,
    "",
    `| ${names?.join(" | ")} |`,
    `|${names?.map(() => " --- |").join("")}`,
    `| ${values?.join(" | ")} |`,
    ...(leaks.length ? ["", "#### Leaks", "", ...leaks] : []),
    ...(untried.length
      ? ["", "#### Untried", "", "| what | reason | pass |", "| --- | --- | --- |", ...untried]
      : []),
    ...(accepted.length ? ["", "#### Accepted", "", ...accepted] : []),
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
