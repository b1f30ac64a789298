import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { DBTransactionAdapter } from "better-auth/types";
import { inTurn, lockTenant } from "../border/administrators";
import type { AdapterMethod, Border, Row } from "../border/border";
import type { Notes } from "../scope/scope";
import { settle } from "../scope/settle";
import { hasNumericIds } from "./find";

/*
 * better-auth marks what is good once (a SAML assertion, an address that is being claimed) by a row
 * whose id is made from the mark alone: whoever comes second finds the id taken. In a tenant that
 * would be all tenants' id, so the tenant is in it. It has the form of a UUID, which every column
 * for ids takes: better-auth's own is too long for MySQL, and none for a column of UUIDs. Numbers
 * are given by the database, so there the tenant's row is locked while somebody looks.
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
  const { tenantId } = await settle(border.readSession);
  if (tenantId === null) return run(call as never);
  const { model } = call;
  const { id: asked, ...data } = call.data;
  if (!hasNumericIds(ctx)) {
    const id = await uuidFrom(`${tenantId}:${asked}`);
    reserved.set(asked, [{ field: "id", value: id }]);
    return run({ ...call, data: { ...data, id } } as never);
  }
  const where = [{ field: "identifier", value: String(data.identifier) }];
  reserved.set(asked, where);
  const since = (await border.tenantSince(tenantId, transaction)) ?? "";
  const insert = async (adapter: DBTransactionAdapter) => {
    await lockTenant(adapter, tenantId, since);
    if (await adapter.findOne({ model, where })) throw new Error("Reserved already");
    return adapter.create({ model, data });
  };
  if (transaction) return insert(transaction);
  return inTurn(ctx, tenantId, () =>
    runWithTransaction(ctx.adapter, async () => insert(await getCurrentAdapter(ctx.adapter))),
  );
}

async function uuidFrom(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
  const digits = hex.join("");
  const parts = [digits.slice(0, 8), digits.slice(8, 12), `4${digits.slice(13, 16)}`];
  return [...parts, `8${digits.slice(17, 20)}`, digits.slice(20, 32)].join("-");
}
