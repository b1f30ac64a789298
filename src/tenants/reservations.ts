import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { DBTransactionAdapter } from "better-auth/types";
import { inTurn, lockTenant } from "../border/administrators";
import type { AdapterMethod, Border, Row } from "../border/border";
import { PLATFORM } from "../schema";
import { type Notes, runInScope, settled } from "../scope/scope";
import { settle } from "../scope/settle";
import { hasNumericIds } from "./find";

/*
 * better-auth marks what is good once (a SAML assertion, an address that is being claimed) by a row
 * whose id is made from the mark alone: whoever comes second finds the id taken. In a tenant that
 * would be all tenants' id, so the tenant is in it. It has the form of a UUID, which every column
 * for ids takes: better-auth's own is too long for MySQL, and none for a column of UUIDs. Numbers
 * are given by the database, so there the tenant's row is locked while somebody looks.
 *
 * An assertion of a provider that the application has for everybody is good once altogether: its
 * mark is the platform's, wherever it is used.
 */

export type Reservation = { model: string; data: Row; forceAllowId?: boolean };

export async function reserve(
  border: Border,
  reserved: NonNullable<Notes["reserved"]>,
  call: Reservation,
  run: AdapterMethod,
  transaction: DBTransactionAdapter | undefined,
): Promise<unknown> {
  const { ctx } = border;
  const { tenantId: here } = await settle(border.readSession);
  const { model } = call;
  const { id: asked, ...data } = call.data;
  const isShared = border.identityProviders?.isSharedMark(data.value) === true;
  const tenantId = isShared ? null : here;
  const there = <T>(ask: () => Promise<T>) =>
    tenantId === here ? ask() : runInScope(settled(tenantId), ask);
  const isNumeric = hasNumericIds(ctx);
  if (isNumeric && tenantId === null && !isShared) return run(call as never);

  const id = await uuidFrom(`${tenantId ?? PLATFORM}:${asked}`);
  const where = isNumeric
    ? [{ field: "identifier", value: String(data.identifier) }]
    : [{ field: "id", value: id }];
  reserved.set(asked, (findOne) => there(() => findOne({ model, where } as never)));
  if (!isNumeric) return there(() => run({ ...call, data: { ...data, id } } as never));

  const since = tenantId && ((await border.tenantSince(tenantId, transaction)) ?? "");
  const insert = async (adapter: DBTransactionAdapter) => {
    if (tenantId !== null) await lockTenant(adapter, tenantId, since ?? "");
    if (await adapter.findOne({ model, where })) throw new Error("Reserved already");
    const row = await adapter.create({ model, data });
    // On the platform there is nothing to lock: of two in two processes at once, neither is good.
    if (tenantId !== null || (await adapter.count({ model, where })) === 1) return row;
    throw new Error("Reserved meanwhile");
  };
  if (transaction) return there(() => insert(transaction));
  const inTransaction = () =>
    runWithTransaction(ctx.adapter, async () => insert(await getCurrentAdapter(ctx.adapter)));
  // What is not locked has to be visible to others when they count.
  const runInsert = tenantId === null ? () => insert(ctx.adapter) : inTransaction;
  return inTurn(ctx, tenantId ?? PLATFORM, () => there(runInsert));
}

async function uuidFrom(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
  const digits = hex.join("");
  const parts = [digits.slice(0, 8), digits.slice(8, 12), `4${digits.slice(13, 16)}`];
  return [...parts, `8${digits.slice(17, 20)}`, digits.slice(20, 32)].join("-");
}
