import { getCurrentAdapter } from "@better-auth/core/context";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import type { Border, Row } from "./border";

/*
 * Organizations that all tenants share. better-auth shows members with their users, and fails where
 * it cannot see one of them. Loaded where there are such organizations.
 */

/**
 * The members of an organization are of one tenant, or all of the platform. A member from elsewhere
 * could neither be shown to the others nor removed by them.
 */
export async function keepTogether(raw: DBTransactionAdapter, member: Row): Promise<void> {
  const where = [{ field: "organizationId", value: String(member.organizationId) }];
  const others = await raw.findMany<Row>({ model: "member", where });
  const users = await findUsers(raw, [member, ...others]);
  // The platform has no tenant, however that is stored.
  if (new Set(users.map(({ tenantId }) => tenantId || null)).size < 2) return;
  throw APIError.from("FORBIDDEN", TENANT_AUTH_ERROR_CODES.USER_NOT_IN_TENANT);
}

function findUsers(adapter: DBTransactionAdapter, members: Row[]): Promise<Row[]> {
  const ids = members.map(({ userId }) => String(userId));
  const where = [{ field: "id", operator: "in" as const, value: ids }];
  return adapter.findMany<Row>({ model: "user", where, limit: ids.length });
}

/** What the organization plugin reads, without members whose users are elsewhere. */
export async function withoutStrangers(
  { ctx }: Border,
  model: string,
  found: unknown,
  transaction: DBTransactionAdapter | undefined,
): Promise<unknown> {
  const rows = [found].flat().filter(Boolean) as Row[];
  const members = model === "member" ? rows : rows.flatMap(({ member }) => (member as Row[]) ?? []);
  if (!members.length) return found;
  const users = await findUsers(transaction ?? (await getCurrentAdapter(ctx.adapter)), members);
  const here = new Set(users.map(({ id }) => String(id)));
  const isHere = ({ userId }: Row) => userId === undefined || here.has(String(userId));
  if (model !== "member") {
    for (const row of rows) row.member = (row.member as Row[] | undefined)?.filter(isHere);
    return found;
  }
  return Array.isArray(found) ? members.filter(isHere) : (members.find(isHere) ?? null);
}
