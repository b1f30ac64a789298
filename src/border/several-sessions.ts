import type { DBTransactionAdapter, Where } from "better-auth/types";
import { notes, type Settled } from "../scope/scope";
import { isInside, type Row } from "./border";

const isByToken = ({ field, operator = "eq" }: Where) =>
  field === "token" && (operator === "eq" || operator === "in");

/**
 * Sessions that are asked for by their tokens: of those not found here, some are good elsewhere.
 * better-auth asks for one so before it deletes it, and then drops its cookie.
 */
export async function noteMissing(
  raw: DBTransactionAdapter,
  scope: Settled,
  { model, where: asked }: { model: string; where?: Where[] | undefined },
  found: Row[],
): Promise<void> {
  const tokens = asked?.filter(isByToken).flatMap(({ value }) => value) ?? [];
  const here = new Set(found.map(({ token }) => token));
  const value = tokens.map(String).filter((token) => !here.has(token));
  if (!value.length) return;
  const where = [{ field: "token", operator: "in" as const, value }];
  for (const row of await raw.findMany<Row>({ model, where })) {
    if (!isInside(scope, row)) notes().elsewhere.add(String(row.token));
  }
}
