import type { DBTransactionAdapter, Where } from "better-auth/types";
import { notes, type Settled } from "../scope/scope";
import { isInside, type Row } from "./border";

/** Several sessions that are asked for at once: of those not found here, some are good elsewhere. */
export async function noteMissing(
  raw: DBTransactionAdapter,
  scope: Settled,
  { model, where: asked }: { model: string; where?: Where[] | undefined },
  found: Row[],
): Promise<void> {
  const clause = asked?.find(({ field, operator }) => field === "token" && operator === "in");
  const here = new Set(found.map(({ token }) => token));
  const tokens = Array.isArray(clause?.value) ? clause.value.map(String) : [];
  const value = tokens.filter((token) => !here.has(token));
  if (!value.length) return;
  const where = [{ field: "token", operator: "in" as const, value }];
  for (const row of await raw.findMany<Row>({ model, where })) {
    if (!isInside(scope, row)) notes().elsewhere.add(String(row.token));
  }
}
