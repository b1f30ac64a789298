import { errorsWith } from "../../core/errors";
import { INTEGRATIONS_ERROR_CODES } from "./error-codes";

export const integrationsError = errorsWith(INTEGRATIONS_ERROR_CODES, {
  PLATFORM_ONLY: "FORBIDDEN",
});
