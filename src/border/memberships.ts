import { getCurrentAdapter } from "@better-auth/core/context";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import type { Border, Row } from "./border";

/*
 * Organizations that all tenants share. better-auth shows members with their users, and fails where
 * it cannot see one of them. Loaded where there are such organizations.
 */

/**
 * The members of an organization are of one tenant, or all of the platform. A member from elsewhere
 * could neither be shown to the others nor removed by them. So are those of its teams.
 */
export async function keepTogether(raw: DBTransactionAdapter, member: Row): Promise<void> {
  const { organizationId = await organizationOf(raw, member) } = member;
  const others = await membersOf(raw, organizationId);
  const users = await findUsers(raw, [member, ...others]);
  // The platform has no tenant, however that is stored.
  if (new Set(users.map(({ tenantId }) => tenantId || null)).size < 2) return;
  throw tenantError("USER_NOT_IN_TENANT");
}

async function organizationOf(raw: DBTransactionAdapter, { teamId }: Row): Promise<unknown> {
  const where = [{ field: "id", value: String(teamId) }];
  return (await raw.findOne<Row>({ model: "team", where }))?.organizationId;
}

const membersOf = (raw: DBTransactionAdapter, organizationId: unknown) =>
  raw.findMany<Row>({
    model: "member",
    where: [{ field: "organizationId", value: String(organizationId) }],
  });

function findUsers(adapter: DBTransactionAdapter, members: Row[]): Promise<Row[]> {
  const ids = members.map(({ userId }) => String(userId));
  const where = [{ field: "id", operator: "in" as const, value: ids }];
  return adapter.findMany<Row>({ model: "user", where, limit: ids.length });
}

/**
 * What the organization plugin reads, without members whose users are elsewhere, and without
 * invitations to where nobody here can be a member: a namesake of whoever is invited could only
 * reject them.
 */
export async function withoutStrangers(
  { ctx }: Border,
  model: string,
  found: unknown,
  raw: DBTransactionAdapter,
  transaction: DBTransactionAdapter | undefined,
): Promise<unknown> {
  const rows = [found].flat().filter(Boolean) as Row[];
  const adapter = transaction ?? (await getCurrentAdapter(ctx.adapter));
  if (model === "organization") {
    const isHere = await whoIsHere(adapter, rows.flatMap(membersIn));
    for (const row of rows) row.member = membersIn(row).filter(isHere);
    return found;
  }
  const isKept = model === "member" ? whoIsHere(adapter, rows) : whatIsOpen(adapter, raw, rows);
  const kept = rows.filter(await isKept);
  return Array.isArray(found) ? kept : (kept[0] ?? null);
}

const membersIn = ({ member }: Row) => (member as Row[] | undefined) ?? [];

/** Tells which of these members are users of the scope. */
async function whoIsHere(adapter: DBTransactionAdapter, members: Row[]) {
  const users = members.length ? await findUsers(adapter, members) : [];
  const here = new Set(users.map(({ id }) => String(id)));
  return ({ userId }: Row) => here.has(String(userId));
}

/** Tells which of these invitations are to where somebody of the scope is a member. */
async function whatIsOpen(
  adapter: DBTransactionAdapter,
  raw: DBTransactionAdapter,
  invitations: Row[],
) {
  const ids = new Set(invitations.map(({ organizationId }) => organizationId));
  const members = (await Promise.all([...ids].map((id) => membersOf(raw, id)))).flat();
  const isHere = await whoIsHere(adapter, [...members, ...invitations.map(inviterOf)]);
  return (invitation: Row) => {
    const { organizationId } = invitation;
    const inside = members.filter((member) => member.organizationId === organizationId);
    // Everybody may have left.
    return (inside.length ? inside : [inviterOf(invitation)]).some(isHere);
  };
}

const inviterOf = ({ inviterId }: Row): Row => ({ userId: String(inviterId) });
