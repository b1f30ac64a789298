import type { AuthContext } from "better-auth";
import { coreOptions } from "../../core/isolation";
import type { ResolvedCoreOptions } from "../../core/options";
import { policySchema, type TenantPolicy } from "./schema";

/** The option of `tenantAuth()` for the policy of the platform. */
export interface PolicyOptions {
  /**
   * The policy of the platform: who may become its user, and how its users sign in. With
   * `{ signUp: "closed" }`, a request that names no tenant cannot create a user. `signUp` cannot be
   * `"invited"`, because the platform has no invitations.
   */
  platformPolicy?: TenantPolicy;
}

export const policyChecks = {
  platformPolicy: policySchema
    .refine(({ signUp }) => signUp !== "invited", {
      path: ["signUp"],
      error: 'expected "open" or "closed", not "invited": the platform has no invitations',
    })
    .optional(),
};

export const policyOptions = (ctx: AuthContext) =>
  coreOptions(ctx) as ResolvedCoreOptions & PolicyOptions;
