import { removeCredentials } from "../isolation/changed-hands";
import type { Guard, GuardedCall, Isolation, Row } from "../isolation/isolation";
import { isDirectoryRequest, vouchedDomains } from "../policy/admission";
import { isInDomains } from "../policy/email-domains";
import { currentEndpoint } from "../request/endpoint";
import { getTenantId, requestSlot } from "../request/scope";
import { isCreatedByDirectory, SCIM_USER } from "./scim-rows";
import { isEndOfFlow } from "./sso-state";

/*
 * SCIM creates users with an unverified email, and better-auth links no SSO account to such a user:
 * an attacker may have signed up with the email of another person. A user that the tenant's
 * directory created did not sign up, and a provider of the tenant proves emails of its verified
 * domain. If both hold, the email counts as verified.
 */

/** The user that the directory created in this request. */
const createdUserId = requestSlot<string>();

/** The directory's user whose email the identity provider of the request proves. */
const provenUserId = requestSlot<string>();

/**
 * Stores in the row of a directory whether the same request created its user, even if the tenant has
 * no identity provider yet: it may get one later.
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
    if (isLookupToLink(guarded)) return lookUp(guarded, next);
    return isLinkToProven(guarded) ? link(isolation, guarded, next) : undefined;
  };

type Next = Parameters<Guard>[1];

/** better-auth reads the user's accounts too, because it is about to add one. */
const isLookupToLink = ({ method, model, call }: GuardedCall) =>
  method === "findOne" &&
  model === "user" &&
  call.where?.[0]?.field === "email" &&
  call.join?.account !== undefined;

async function lookUp({ call, raw }: GuardedCall, next: Next): Promise<unknown> {
  const user = (await next(call)) as Row | null;
  const tenantId = getTenantId();
  if (!user || !tenantId || user.emailVerified) return user;
  if (!isInDomains(vouchedDomains.get() ?? [], user.email)) return user;
  if (!(await isCreatedByDirectory(raw, tenantId, user))) return user;
  provenUserId.set(String(user.id));
  return { ...user, emailVerified: true };
}

const isLinkToProven = ({ method, model, call }: GuardedCall) =>
  method === "create" && model === "account" && String(call.data?.userId) === provenUserId.get();

/**
 * First removes, as better-auth does for a magic link, the credentials from before the email was
 * proven: they may be another person's, such as the user's before the directory changed its email.
 */
async function link(isolation: Isolation, { call, raw }: GuardedCall, next: Next) {
  const ctx = currentEndpoint()?.context ?? isolation.ctx;
  const userId = String(call.data?.userId);
  await removeCredentials(ctx, raw, userId);
  await ctx.internalAdapter.updateUser(userId, { emailVerified: true });
  return next(call);
}
