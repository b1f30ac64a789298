import type { Extension } from "../../core/extension";
import type { Isolation } from "../../core/isolation";
import { admitSession, admitUser, askPolicy, guardEmails } from "./admission";
import { assertPlatformPolicy } from "./input";
import { policyOptions } from "./options";
import { applyOverrides, trustMailedInvitations } from "./overrides";
import { keepPolicy, POLICY, SECOND_FACTOR } from "./policy-of";
import * as secondFactor from "./second-factor";

/** Enforces the policy of a tenant, or of the platform, for new users, sign-ins and sessions. */
export const policy = (isolation: Isolation): Extension => {
  const { ctx } = isolation;
  return {
    name: POLICY,
    cacheWithTenant: keepPolicy,
    hooks: { entered: [applyOverrides, askPolicy] },
    guards: [guardEmails(isolation)],
    admitUser,
    admitSession: (admitted) => admitSession(isolation, admitted),
    install: trustMailedInvitations,
    check: () => assertPlatformPolicy(ctx, policyOptions(ctx).platformPolicy),
  };
};

/** Enforces `policy.twoFactor`. */
export const secondFactors = (isolation: Isolation): Extension => ({
  name: SECOND_FACTOR,
  hooks: {
    beforeEndpoint: [secondFactor.openEnrollment],
    afterEndpoint: [secondFactor.closeEnrollment, secondFactor.answerWithSetup],
    afterPlugins: [secondFactor.completeFactors],
  },
  admitSession: (admitted) => secondFactor.admitSession(isolation, admitted),
  acceptsSession: (session, source) => secondFactor.acceptsSession(isolation, session, source),
});
