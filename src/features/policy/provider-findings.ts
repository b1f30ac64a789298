import type { AuthContext } from "better-auth";
import type { SignInMethod } from "../../core/sign-in-endpoints";
import { allows } from "./methods";
import { policyOf } from "./policy-of";
import { canHaveSecondFactor } from "./second-factor";

/** Why the policy blocks sign-in with a provider that is set up. */
export interface PolicyFinding {
  subject: "policy";
  ok: false;
  /** The error that a sign-in with the provider would return. */
  code: "SIGN_IN_METHOD_NOT_ALLOWED" | "TWO_FACTOR_REQUIRED";
  message: string;
}

/** Finds the rules of a tenant's policy that refuse sign-in with a provider. */
export async function findPolicyRefusals(
  ctx: AuthContext,
  tenantId: string | null,
  method: SignInMethod,
): Promise<PolicyFinding[]> {
  const policy = (await policyOf(ctx, tenantId)) ?? {};
  const findings: PolicyFinding[] = [];
  if (!allows(policy, method)) {
    const message = `The policy does not allow this provider. Add "${method}" to its methods`;
    findings.push({ subject: "policy", ok: false, code: "SIGN_IN_METHOD_NOT_ALLOWED", message });
  }
  if (!canHaveSecondFactor(policy, method)) {
    const message = `The policy requires a second factor, and a sign-in with this provider has none. Add "${method}" to twoFactor.exemptMethods`;
    findings.push({ subject: "policy", ok: false, code: "TWO_FACTOR_REQUIRED", message });
  }
  return findings;
}
