import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import type { Row } from "../../core/database";
import { serviceOf } from "../../core/extensions";
import { type Isolation, isolationOf } from "../../core/isolation";
import { refuse } from "../../core/schema";
import { lookUpTenant } from "../../core/tenants/tenants";
import { EVERY_ADDRESS } from "./email-domains";
import { policyOptions } from "./options";
import { parseStoredPolicy, type TenantPolicy, VERIFIED } from "./schema";

/** The names of the two extensions that enforce policies. */
export const POLICY = "policy";
export const SECOND_FACTOR = "second-factor";

/**
 * Refuses to start if tenants can have policies and nothing enforces them. Called by the feature
 * that stores them.
 */
export function requirePolicy({ extensions }: Isolation): void {
  const names = extensions.map(({ name }) => name);
  if (names.includes(POLICY) && names.includes(SECOND_FACTOR)) return;
  refuse("tenants have policies, but `policy` or `secondFactors` is not in the list in plugin.ts.");
}

/** Returns the policy, or null if there is none. Undefined if the tenant does not exist. */
export async function policyOf(
  ctx: AuthContext,
  tenantId: string | null,
  adapter?: DBTransactionAdapter,
): Promise<TenantPolicy | null | undefined> {
  if (tenantId === null) return policyOptions(ctx).platformPolicy ?? null;
  const tenant = await lookUpTenant(ctx, tenantId, adapter);
  return tenant?.ofExtensions[POLICY] as TenantPolicy | null | undefined;
}

/** Returns the policy in a tenant's row, with a list of verified domains instead of "verified". */
export async function keepPolicy(ctx: AuthContext, row: Row, adapter?: DBTransactionAdapter) {
  const policy = parseStoredPolicy(row.policy);
  return policy && withVerifiedDomains(ctx, String(row.id), policy, adapter);
}

/** Replaces "verified" in a policy by the list of domains that the tenant has verified. */
export async function withVerifiedDomains(
  ctx: AuthContext,
  tenantId: string,
  policy: TenantPolicy,
  adapter?: DBTransactionAdapter,
): Promise<TenantPolicy> {
  if (policy.emailDomains !== VERIFIED) return policy;
  const verified = await serviceOf(isolationOf(ctx), "domains")?.verifiedBy(ctx, tenantId, adapter);
  return { ...policy, emailDomains: [EVERY_ADDRESS, ...(verified ?? [])] };
}
