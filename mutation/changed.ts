import { execFileSync } from "node:child_process";

const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8", stdio: "pipe" });

function tried(...args: string[]): string | undefined {
  try {
    return git(...args).trim();
  } catch {
    return undefined;
  }
}

/** Where this branch left the remote's default branch; on that branch itself, the commit before. */
export function baseRevision(): string {
  const head = git("rev-parse", "HEAD").trim();
  for (const branch of ["origin/HEAD", "origin/main"]) {
    const base = tried("merge-base", "HEAD", branch);
    if (base && base !== head) return base;
  }
  return tried("rev-parse", "HEAD~1") ?? head;
}

/** Lines that are new or changed since a revision, by file. */
export function changedLines(base: string): Map<string, Set<number>> {
  const lines = new Map<string, Set<number>>();
  let current = new Set<number>();
  for (const line of git("diff", "-U0", "--no-color", base, "--", "src").split("\n")) {
    const file = /^\+\+\+ b\/(.*)$/.exec(line)?.[1];
    if (file) {
      current = new Set();
      lines.set(file, current);
    }
    const [, from, count = "1"] = /^@@ .* \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (from) for (let n = 0; n < Number(count); n++) current.add(Number(from) + n);
  }
  return lines;
}
