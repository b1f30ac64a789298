import type { DBTransactionAdapter } from "better-auth/types";
import { removeCredentials } from "../isolation/changed-hands";
import type { Guard, GuardedCall, Isolation, Row } from "../isolation/isolation";
import { isDirectoryRequest, vouchedDomains } from "../policy/admission";
import { isInDomains } from "../policy/email-domains";
import { currentEndpoint } from "../request/endpoint";
import { getTenantId, requestSlot } from "../request/scope";
import { isCreatedByDirectory, SCIM_USER } from "./scim-rows";
import { isEndOfFlow } from "./sso-state";

/*
 * SCIM creates users with an unverified address, and better-auth links no SSO account to such a
 * user: an attacker may have signed up with the address of another person. A user that the tenant's
 * directory created did not sign up, and a provider of the tenant proves the addresses of its
 * verified domain. Where both hold, the address counts as verified.
 */

/** The user that the directory has created in this request. */
const createdUserId = requestSlot<string>();

/** The user of the directory whose email the identity provider of the request proves. */
const provenUserId = requestSlot<string>();

/**
 * Writes into the row of a directory whether the same request has created its user. Where there is
 * no identity provider yet, too: one may come later.
 */
export const markCreatedUsers: Guard = ({ method, call, model }, next) => {
  if (method !== "create" || !isDirectoryRequest.get()) return undefined;
  if (model === SCIM_USER) {
    const createdUser = String(call.data?.userId) === createdUserId.get();
    return next({ ...call, data: { ...call.data, createdUser } });
  }
  if (model !== "user") return undefined;
  return next(call).then((user) => {
    createdUserId.set(String((user as Row).id));
    return user;
  });
};

/** Lets better-auth link an SSO account to a user of the directory. Nothing else becomes linkable. */
export const linkDirectoryUsers =
  (isolation: Isolation): Guard =>
  (guarded, next) => {
    if (!isEndOfFlow()) return undefined;
    const { call, raw } = guarded;
    if (isLookupToLink(guarded)) return next(call).then((found) => asProven(raw, found));
    if (!isLinkToProven(guarded)) return undefined;
    return revokeUnproven(isolation, raw, String(call.data?.userId)).then(() => next(call));
  };

/** better-auth reads the accounts of the user as well, because it is about to add one. */
const isLookupToLink = ({ method, model, call }: GuardedCall) =>
  method === "findOne" &&
  model === "user" &&
  call.where?.[0]?.field === "email" &&
  call.join?.account !== undefined;

async function asProven(raw: DBTransactionAdapter, found: unknown): Promise<unknown> {
  const user = found as Row | null;
  const tenantId = getTenantId();
  if (!user || !tenantId || user.emailVerified) return found;
  if (!isInDomains(vouchedDomains.get() ?? [], user.email)) return found;
  if (!(await isCreatedByDirectory(raw, tenantId, user))) return found;
  provenUserId.set(String(user.id));
  return { ...user, emailVerified: true };
}

const isLinkToProven = ({ method, model, call }: GuardedCall) =>
  method === "create" && model === "account" && String(call.data?.userId) === provenUserId.get();

/**
 * Before the account is linked, and as better-auth does it for a magic link: what was there before
 * the address was proven may be another person's, for example of the one who had this user before
 * the directory changed its address.
 */
async function revokeUnproven(
  isolation: Isolation,
  raw: DBTransactionAdapter,
  userId: string,
): Promise<void> {
  const ctx = currentEndpoint()?.context ?? isolation.ctx;
  await removeCredentials(ctx, raw, userId);
  await ctx.internalAdapter.updateUser(userId, { emailVerified: true });
}
