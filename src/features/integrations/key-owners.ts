import type { DBTransactionAdapter } from "better-auth/types";
import type { Guard, Row } from "../../core/database";
import { clauses } from "../../core/database";
import { nullIfInvalidId } from "../../core/database-errors";
import { serviceOf } from "../../core/extensions";
import { couldBeUserId, readUser } from "../../core/isolate/users";
import { type Isolation, unscopedAdapter } from "../../core/isolation";
import { parseJSON } from "../../core/utils";

type Owner = {
  tenantId?: string | null;
  banned?: boolean | null;
  banExpires?: Date | string | null;
};

/** Hides an API key from its verification while the key's owner may not sign in. */
export const guardKeyOwners = (isolation: Isolation): Guard => ({
  models: ["apikey"],
  methods: ["findOne"],
  async run({ call, unscoped }, next) {
    const key = (await next(call)) as Row | null;
    const isVerification = call.where?.[0]?.field === "key";
    if (!key || !isVerification) return key;
    return (await hasOwner(isolation, key, unscoped)) ? key : null;
  },
});

/** Hides keys in secondary storage in the same way, by the owner in the stored value. */
export function guardStoredKeys(isolation: Isolation): void {
  const { options, secondaryStorage } = isolation.ctx;
  for (const storage of new Set([options.secondaryStorage, secondaryStorage])) {
    if (!storage) continue;
    const { get } = storage;
    storage.get = async (name) => {
      const value = await get(name);
      const isKey = name.startsWith("api-key:") && !name.startsWith("api-key:by-");
      if (!value || !isKey) return value;
      const stored: Row = Object(typeof value === "string" ? parseJSON(value) : value);
      if (stored.referenceId === undefined) return value;
      return (await hasOwner(isolation, stored, await unscopedAdapter(isolation))) ? value : null;
    };
  }
}

/** Returns whether the user of a key may sign in, or the organization of the key exists. */
async function hasOwner(
  isolation: Isolation,
  { referenceId }: Row,
  unscoped: DBTransactionAdapter,
): Promise<boolean> {
  const id = String(referenceId);
  if (!couldBeUserId(isolation, id)) return false;
  const user = await readUser<Owner>(unscoped, id);
  if (user && !isBanned(user)) {
    const { tenantId } = user;
    return (
      !tenantId || !(await serviceOf(isolation, "directory")?.isBarred(tenantId, id, unscoped))
    );
  }
  if (!isolation.ctx.tables.organization) return false;
  const call = { model: "organization", where: clauses({ id }) };
  return Boolean(await unscoped.findOne(call).catch(nullIfInvalidId));
}

const isBanned = ({ banned, banExpires }: Owner) =>
  Boolean(banned) && !(banExpires && new Date(banExpires).getTime() < Date.now());
