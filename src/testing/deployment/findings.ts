import { pagesOf } from "../../core/database";
import type { Subject } from "../instance/subject";

/** All rows of a table, read a page at a time. */
export async function* rowsOf<T extends { id: string }>({ raw }: Subject, model: string) {
  for await (const page of pagesOf<T>(raw, model, PAGE)) yield* page;
}

export const PAGE = 500;

/** Something about a database that is in use, what it means, and what mends it. */
export interface Finding {
  /** A short name: `email-index`. */
  id: string;
  /** What was found, and where. */
  found: string;
  meaning: string;
  /** A statement, an option, or what to look at first. */
  mend: string;
}

export interface DeploymentReport {
  findings: Finding[];
  /** What could not be looked at, and why. */
  skipped: string[];
  milliseconds: number;
  /** A list that a person can read. */
  toString(): string;
}

/** What one check has found, or why it could not look. */
export interface Checked {
  findings: Finding[];
  skipped?: string[];
}
