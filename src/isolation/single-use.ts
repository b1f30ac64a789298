import { effectiveScope } from "../request/endpoint";
import { type Notes, runInScope, scopeOf } from "../request/scope";
import { PLATFORM } from "../schema";
import { hasNumericIds } from "../tenants/cache";
import type { AdapterMethod, Isolation, Row } from "./isolation";

/*
 * better-auth marks single-use values (a SAML assertion, an email that is being claimed) with a row
 * whose id is derived from the mark: the second attempt finds the id taken. All tenants would share
 * that id, so ours is derived from the tenant as well, and has the form of a UUID, which fits every
 * id column.
 *
 * An assertion of a provider that the application configures for all tenants is valid once in total:
 * its mark belongs to the platform.
 */

export type Reservation = { model: string; data: Row; forceAllowId?: boolean };

export async function reserveInScope(
  isolation: Isolation,
  reserved: NonNullable<Notes["reserved"]>,
  call: Reservation,
  run: AdapterMethod,
): Promise<unknown> {
  const { model } = call;
  const { id: asked, ...data } = call.data;
  const isShared = isolation.identityProviders?.isSharedMark(data.value) === true;
  const { tenantId: here } = effectiveScope();
  const tenantId = isShared ? null : here;
  const there = <T>(ask: () => Promise<T>) =>
    tenantId === here ? ask() : runInScope(scopeOf(tenantId), ask);
  const isNumeric = hasNumericIds(isolation.ctx);
  const id = await uuidFrom(`${tenantId ?? PLATFORM}:${asked}`);
  const where = isNumeric
    ? [{ field: "identifier", value: String(data.identifier) }]
    : [{ field: "id", value: id }];
  reserved.set(asked, (findOne) => there(() => findOne({ model, where } as never)));
  if (!isNumeric) return there(() => run({ ...call, data: { ...data, id } } as never));
  // The database assigns numeric ids. Insert first, then count: of two attempts at the same time,
  // both fail.
  return there(async () => {
    const { adapter } = isolation.ctx;
    if (await adapter.findOne({ model, where })) throw new Error("Reserved already");
    const row = await adapter.create({ model, data });
    if ((await adapter.count({ model, where })) === 1) return row;
    throw new Error("Reserved meanwhile");
  });
}

async function uuidFrom(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
  const digits = hex.join("");
  const parts = [digits.slice(0, 8), digits.slice(8, 12), `4${digits.slice(13, 16)}`];
  return [...parts, `8${digits.slice(17, 20)}`, digits.slice(20, 32)].join("-");
}
