import type { AdapterCall, Guard } from "../database";
import type { Isolation } from "../isolation";
import {
  currentRequest,
  type FindReserved,
  getTenantId,
  type RequestRecord,
  runInScope,
  scopeOf,
} from "../request";
import { PLATFORM } from "../schema";
import { hasNumericIds } from "../tenants/tenants";
import { parseJSON, toHex } from "../utils";

/*
 * Keeps values that are valid once (OAuth states, marks of used values) from being used again.
 */

/** Makes the plugin delete the OAuth state of the running callback as soon as it is read. */
export const consumeWhenRead = (state: Promise<string | undefined>) => {
  currentRequest().heldState = state;
};

/** Returns whether a stored verification is the OAuth state that the callback received. */
export const isState = (value: unknown, state: string | undefined): boolean =>
  state !== undefined && Object(parseJSON(value)).oauthState === state;

/**
 * Separates single-use marks by tenant. better-auth marks a used value (a SAML assertion, an email
 * that is being claimed) with a row whose id is derived from the value: a second attempt finds the
 * id taken. All tenants would share that id, so the plugin derives it from the tenant as well. The
 * id has the form of a UUID, which fits text and UUID columns. A mark for all tenants together
 * belongs to the platform: see `isSharedByTenants`.
 */
export const guardReservations = (isolation: Isolation): Guard => ({
  models: ["verification"],
  methods: ["create", "findOne"],
  async run({ method, call }, next) {
    const { reservations } = currentRequest();
    if (!reservations) return next(call);
    if (method === "create") {
      const isReservation = (call as { forceAllowId?: boolean }).forceAllowId;
      return isReservation ? reserve(isolation, reservations, call, next) : next(call);
    }
    const [clause] = call.where ?? [];
    const find = clause?.field === "id" ? reservations.get(clause.value) : undefined;
    return find ? find(next) : next(call);
  },
});

/**
 * Creates the mark of a used value in the scope that the mark belongs to, under another id than
 * better-auth has chosen. better-auth asks for the row by its own id, so `reserved` keeps how to
 * find it.
 */
async function reserve(
  { ctx }: Isolation,
  reserved: NonNullable<RequestRecord["reservations"]>,
  call: AdapterCall,
  create: FindReserved,
): Promise<unknown> {
  const { isSharedByTenants, ...reservation } = call;
  const { model } = call;
  const { id: chosenId, ...data } = call.data ?? {};
  const tenantId = isSharedByTenants ? null : getTenantId();
  const inScopeOfMark = <T>(run: () => Promise<T>) =>
    tenantId === getTenantId() ? run() : runInScope(scopeOf(tenantId), run);
  const isNumeric = hasNumericIds(ctx);
  const id = await uuidFrom(`${tenantId ?? PLATFORM}:${chosenId}`);
  const where = isNumeric
    ? [{ field: "identifier", value: String(data.identifier) }]
    : [{ field: "id", value: id }];
  reserved.set(chosenId, (find) => inScopeOfMark(() => find({ model, where })));
  if (!isNumeric) return inScopeOfMark(() => create({ ...reservation, data: { ...data, id } }));
  // The database assigns numeric ids, so the identifier marks the value. Counting after the insert
  // lets at most one of two concurrent attempts succeed, unless they run in transactions, which do
  // not see each other's rows.
  return inScopeOfMark(async () => {
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
