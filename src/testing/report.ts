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

type Found = Omit<IsolationReport, "assert" | "toString" | "toMarkdown">;

export function createReport(
  all: Omit<Found, "accepted" | "stale">,
  allow: Record<string, string>,
): IsolationReport {
  const accepted = Object.entries(allow).map(([endpoint, reason]) => ({
    endpoint,
    reason,
    leaks: all.leaks.filter((leak) => leak.endpoint === endpoint),
    untried: all.untried.filter(({ what }) => what === endpoint),
  }));
  const isUsed = ({ leaks, untried }: Accepted) => leaks.length > 0 || untried.length > 0;
  const found: Found = {
    ...all,
    leaks: all.leaks.filter(({ endpoint }) => !(endpoint in allow)),
    untried: all.untried.filter(({ what }) => !(what in allow)),
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

function summary({ counts, ...found }: Found): [name: string, value: string][] {
  const values = {
    ...counts,
    time: `${(found.milliseconds / 1000).toFixed(1)} s`,
    leaks: found.leaks.length,
    failures: found.failures.length,
    untried: found.untried.length,
    "not applicable": found.notApplicable.length,
    accepted: found.accepted.length,
  };
  return Object.entries(values).map(([name, value]) => [name, String(value)]);
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

const indented = (spaces: number, lines: string[]) =>
  lines.map((line) => " ".repeat(spaces) + line);

function asText(found: Found): string {
  const leaks = byEndpoint(found.leaks).flatMap(([endpoint, kinds]) => [
    endpoint,
    ...kinds.flatMap((leak) => [`  ${leak.summary}`, ...indented(4, curl(leak.request))]),
  ]);
  const sections = {
    [`Leaks (${found.leaks.length} requests)`]: leaks,
    Failures: found.failures,
    Untried: found.untried.flatMap(({ what, reason, give }) => [
      what,
      `  ${reason}`,
      `  pass: ${give}`,
    ]),
    Accepted: found.accepted.map(({ endpoint, reason }) => `${endpoint}: ${reason}`),
    "Allowed, but it does not happen any more": found.stale,
    "Left in the database": found.left,
  };
  return [
    headline(found),
    ...summary(found).map(([name, value]) => `  ${name.padEnd(15)}${value.padStart(8)}`),
    ...Object.entries(sections).flatMap(([title, lines]) =>
      lines.length ? ["", `${title}:`, ...indented(2, lines)] : [],
    ),
  ].join("\n");
}

function asMarkdown(found: Found): string {
  const row = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  const table = (head: string[], rows: string[][]) =>
    rows.length ? [head, head.map(() => "---"), ...rows].map(row) : [];
  const leaks = byEndpoint(found.leaks).flatMap(([endpoint, kinds]) => [
    `**${endpoint}**`,
    "",
    ...kinds.flatMap((leak) => [
      `- ${leak.summary}`,
      "",
      ...indented(2, ["```sh", ...curl(leak.request), "```"]),
    ]),
  ]);
  const untried = found.untried.map(({ what, reason, give }) => [what, reason, give]);
  const sections = {
    Leaks: leaks,
    Untried: table(["what", "reason", "pass"], untried),
    Accepted: found.accepted.map(({ endpoint, reason }) => `- ${endpoint}: ${reason}`),
  };
  const counted = summary(found);
  return [
    `### ${headline(found)}`,
    "",
    ...table(
      counted.map(([name]) => name),
      [counted.map(([, value]) => value)],
    ),
    ...Object.entries(sections).flatMap(([title, lines]) =>
      lines.length ? ["", `#### ${title}`, "", ...lines] : [],
    ),
    "",
  ].join("\n");
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** The request as a command. Without the option `keep`, the users in it are deleted. */
function curl({ method, url, headers, body }: Repeatable): string[] {
  const lines = Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  const data = body === undefined ? [] : [`-d ${quoted(body)}`];
  return [`curl -X ${method} ${quoted(url)}`, ...lines, ...data].map((line, index, all) =>
    index < all.length - 1 ? `${line} \\` : line,
  );
}
