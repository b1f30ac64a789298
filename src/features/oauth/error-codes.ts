import { defineErrorCodes } from "@better-auth/core/utils/error-codes";
import { inWords } from "../../core/error-codes";

/** Errors of tenants' OAuth configs. */
export const OAUTH_ERROR_CODES = defineErrorCodes(
  inWords({
    UNSUPPORTED_PROVIDER: "",
    INVALID_PROVIDER_OPTIONS: "",
    UNTRUSTED_PROVIDER_HOST: "",
    PROVIDER_NOT_FOUND: "",
    INVALID_REDIRECT_URI: "Not an https URL (http on loopback only) without a fragment",
    OAUTH_CONFIG_NOT_FOUND: "",
    OAUTH_CONFIG_NOT_SAVED: "",
    OAUTH_CREDENTIAL_DECRYPT_FAILED: "",
  }),
);
