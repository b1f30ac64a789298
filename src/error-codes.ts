import { CORE_ERROR_CODES } from "./core/error-codes";
import { ENTERPRISE_ERROR_CODES } from "./features/enterprise/error-codes";
import { INTEGRATIONS_ERROR_CODES } from "./features/integrations/error-codes";
import { MANAGEMENT_ERROR_CODES } from "./features/management/error-codes";
import { OAUTH_ERROR_CODES } from "./features/oauth/error-codes";
import { POLICY_ERROR_CODES } from "./features/policy/error-codes";

/** Every error of this plugin. better-auth's own codes pass through unchanged. */
export const TENANT_AUTH_ERROR_CODES = {
  ...CORE_ERROR_CODES,
  ...MANAGEMENT_ERROR_CODES,
  ...OAUTH_ERROR_CODES,
  ...POLICY_ERROR_CODES,
  ...ENTERPRISE_ERROR_CODES,
  ...INTEGRATIONS_ERROR_CODES,
};

export type ErrorCode = keyof typeof TENANT_AUTH_ERROR_CODES;
