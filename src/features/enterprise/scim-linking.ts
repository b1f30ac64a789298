import type { Guard, GuardedCall, NextGuard, Row } from "../../core/database";
import { currentEndpoint } from "../../core/endpoint";
import type { Isolation } from "../../core/isolation";
import { currentRequest, getTenantId } from "../../core/request";
import { removeCredentials } from "../management/remove-credentials";
import { enterpriseRequest } from "./request";
import { isCreatedByDirectory, SCIM_USER } from "./scim-rows";
import { isVouched } from "./sso-providers";
import { isEndOfFlow } from "./sso-state";

/*
 * SCIM creates users with an unverified email, and better-auth links no SSO account to them: an
 * attacker may have signed up with another person's email. But a user that the tenant's directory
 * created did not sign up, and a provider of the tenant proves emails of its verified domain. If
 * both hold, the email counts as verified.
 */

/**
 * Records in the directory's row whether the same request created the user, even if the tenant has
 * no identity provider yet: it may get one later.
 */
export const markCreatedUsers: Guard = {
  models: [SCIM_USER, "user"],
  methods: ["create"],
  async run({ call, model }, next) {
    if (!currentRequest().isTenantItself) return next(call);
    if (model === SCIM_USER) {
      const createdUser = String(call.data?.userId) === enterpriseRequest.get().createdUserId;
      return next({ ...call, data: { ...call.data, createdUser } });
    }
    const user = await next(call);
    enterpriseRequest.get().createdUserId = String((user as Row).id);
    return user;
  },
};

/**
 * Lets better-auth link an SSO account to a directory's user. No other user becomes linkable. Guards
 * of invitations, which hide a user whose stored email is unverified, see the user before this guard
 * changes `emailVerified`: see the order of guards in `core/install/install.ts`.
 */
export const linkDirectoryUsers = (isolation: Isolation): Guard => ({
  models: ["user", "account"],
  methods: ["findOne", "create"],
  async run(guarded, next) {
    if (!isEndOfFlow()) return next(guarded.call);
    if (isLookupToLink(guarded)) return lookUp(guarded, next);
    return isLinkToProven(guarded) ? link(isolation, guarded, next) : next(guarded.call);
  },
});

/** Returns whether a query looks for a user to link: then better-auth reads the accounts too. */
const isLookupToLink = ({ method, model, call }: GuardedCall) =>
  method === "findOne" &&
  model === "user" &&
  call.where?.[0]?.field === "email" &&
  call.join?.account !== undefined;

async function lookUp({ call, unscoped }: GuardedCall, next: NextGuard): Promise<unknown> {
  const user = (await next(call)) as Row | null;
  const tenantId = getTenantId();
  if (!user || !tenantId || user.emailVerified) return user;
  if (!isVouched(user.email)) return user;
  if (!(await isCreatedByDirectory(unscoped, tenantId, user))) return user;
  enterpriseRequest.get().provenUserId = String(user.id);
  return { ...user, emailVerified: true };
}

const isLinkToProven = ({ method, model, call }: GuardedCall) =>
  method === "create" &&
  model === "account" &&
  String(call.data?.userId) === enterpriseRequest.get().provenUserId;

/**
 * Links the account after removing credentials from before the email was proven, as better-auth
 * does for a magic link. They may be another person's if the directory has changed the email.
 */
async function link(isolation: Isolation, { call, unscoped }: GuardedCall, next: NextGuard) {
  const ctx = currentEndpoint()?.context ?? isolation.ctx;
  const userId = String(call.data?.userId);
  await removeCredentials(ctx, unscoped, userId);
  await ctx.internalAdapter.updateUser(userId, { emailVerified: true });
  return next(call);
}
