import { requestSlot } from "../../core/request";
import type { TenantPolicy } from "./schema";

/** The values that this feature keeps during a request. */
interface PolicyRequest {
  /**
   * The policy of the request's tenant, or of the platform. `applyOverrides` sets it for code that
   * is not asynchronous, and cannot look the policy up.
   */
  policy?: TenantPolicy | null | undefined;
  /**
   * Which sessions count besides those that satisfy the policy. "setup": setup sessions (see
   * second-factor.ts). Set by `openEnrollment` and removed by `closeEnrollment`, so that setup
   * sessions count while the endpoint runs, but not in the hooks of other plugins, which may issue
   * tokens for a session. "any": all sessions. Set by `countingAny`, while `second-factor.ts`
   * completes or ends a session.
   */
  counting?: "setup" | "any" | undefined;
  /** Set by `acceptsSession` if a setup session may not set up the factor that is asked for. */
  isEnrollmentRefused?: boolean;
}

export const policyRequest = requestSlot((): PolicyRequest => ({}));
