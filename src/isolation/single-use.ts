import { parseJSON, toHex } from "../framework";
import { effectiveScope } from "../request/endpoint";
import { requestSlot, runInScope, scopeOf } from "../request/scope";
import { PLATFORM } from "../schema";
import { hasNumericIds } from "../tenants/cache";
import type { AdapterCall, Guard, Isolation } from "./isolation";

/*
 * Values that are valid once.
 */

/**
 * The OAuth state of the running callback, once the browser has shown the cookie that belongs to it;
 * undefined if it has not. better-auth reads a state first and deletes it later; a state that is
 * held is consumed when it is read, so that a replayed callback finds nothing (R6).
 */
export const heldState = requestSlot<Promise<string | undefined>>();

/** Whether a stored verification is the OAuth state that the callback came back with. */
export const isState = (value: unknown, state: string | undefined): boolean =>
  state !== undefined && Object(parseJSON(value)).oauthState === state;

type Find = (call: AdapterCall) => Promise<unknown>;

/** The ids that better-auth reserves in this request, and how to find their rows. */
export const reservations = requestSlot<Map<unknown, (find: Find) => Promise<unknown>>>();

/**
 * better-auth marks single-use values (a SAML assertion, an email that is being claimed) with a row
 * whose id is derived from the mark: the second attempt finds the id taken. All tenants would share
 * that id, so ours is derived from the tenant as well, and has the form of a UUID, which fits every
 * id column.
 *
 * An assertion of a provider that the application configures for all tenants is valid once in total:
 * its mark belongs to the platform.
 */
export const guardReservations =
  (isolation: Isolation): Guard =>
  ({ method, call, model }, next) => {
    const reserved = model === "verification" ? reservations.get() : undefined;
    if (!reserved) return undefined;
    if (method === "create" && (call as { forceAllowId?: boolean }).forceAllowId) {
      return reserve(isolation, reserved, call, next);
    }
    const [clause] = method === "findOne" ? (call.where ?? []) : [];
    return clause?.field === "id" ? reserved.get(clause.value)?.(next) : undefined;
  };

async function reserve(
  { ctx, identityProviders }: Isolation,
  reserved: NonNullable<ReturnType<typeof reservations.get>>,
  call: AdapterCall,
  create: Find,
): Promise<unknown> {
  const { model } = call;
  const { id: asked, ...data } = call.data ?? {};
  const { tenantId: here } = effectiveScope();
  const tenantId = identityProviders?.isSharedMark(data.value) ? null : here;
  const there = <T>(run: () => Promise<T>) =>
    tenantId === here ? run() : runInScope(scopeOf(tenantId), run);
  const isNumeric = hasNumericIds(ctx);
  const id = await uuidFrom(`${tenantId ?? PLATFORM}:${asked}`);
  const where = isNumeric
    ? [{ field: "identifier", value: String(data.identifier) }]
    : [{ field: "id", value: id }];
  reserved.set(asked, (find) => there(() => find({ model, where })));
  if (!isNumeric) return there(() => create({ ...call, data: { ...data, id } }));
  // The database assigns numeric ids. Insert first, then count: two concurrent attempts both fail.
  return there(async () => {
    const { adapter } = ctx;
    if (await adapter.findOne({ model, where })) throw new Error("Reserved already");
    const row = await adapter.create({ model, data });
    if ((await adapter.count({ model, where })) === 1) return row;
    throw new Error("Reserved meanwhile");
  });
}

async function uuidFrom(text: string): Promise<string> {
  const digits = toHex(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const parts = [digits.slice(0, 8), digits.slice(8, 12), `4${digits.slice(13, 16)}`];
  return [...parts, `8${digits.slice(17, 20)}`, digits.slice(20, 32)].join("-");
}
