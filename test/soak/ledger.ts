/** What must not happen, or at least is worth a line. */
export type Finding =
  | "crossing"
  | "late session"
  | "left behind"
  /** A 5xx, or no answer at all from a process that nobody killed. */
  | "server error"
  /** Something ordinary that was refused in a tenant that was there all the time. */
  | "refused"
  /** A 5xx in a tenant that was being deleted: listed, but the request had no future anyway. */
  | "overtaken";

const SHOWN = 8;
const LINE = 450;

/** Counts what happens in a run, and lists what must not happen. */
export class Ledger {
  private readonly findings: { kind: Finding; text: string }[] = [];
  private readonly counts = new Map<string, number>();

  count(what: string, times = 1): void {
    this.counts.set(what, this.counted(what) + times);
  }

  counted(what: string): number {
    return this.counts.get(what) ?? 0;
  }

  fail(kind: Finding, text: string): void {
    this.findings.push({ kind, text });
  }

  /** How often each kind of failure was seen. */
  failures(): Partial<Record<Finding, number>> {
    const { overtaken: _, ...failures } = this.byKind();
    return failures;
  }

  report(title: string): string {
    const figures = [...this.counts].sort().map(([what, times]) => `  ${what}: ${times}`);
    const kinds = Object.entries(this.byKind()) as [Finding, number][];
    const findings = kinds.flatMap(([kind, times]) => [
      `  ${kind}: ${times}`,
      ...this.findings
        .filter((finding) => finding.kind === kind)
        .slice(0, SHOWN)
        .map(({ text }) => `    ${text.slice(0, LINE)}`),
      ...(times > SHOWN ? [`    and ${times - SHOWN} more`] : []),
    ]);
    return [title, ...figures, kinds.length ? "Found" : "Found nothing", ...findings].join("\n");
  }

  private byKind(): Partial<Record<Finding, number>> {
    const kinds: Partial<Record<Finding, number>> = {};
    for (const { kind } of this.findings) kinds[kind] = (kinds[kind] ?? 0) + 1;
    return kinds;
  }
}
