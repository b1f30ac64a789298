import { defineErrorCodes } from "@better-auth/core/utils/error-codes";
import { inWords } from "../../core/error-codes";

/** Errors of better-auth's plugins inside a tenant. */
export const INTEGRATIONS_ERROR_CODES = defineErrorCodes(
  inWords({
    PLATFORM_ONLY: "",
  }),
);
