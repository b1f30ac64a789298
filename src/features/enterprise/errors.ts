import { errorsWith } from "../../core/errors";
import { ENTERPRISE_ERROR_CODES } from "./error-codes";

export const enterpriseError = errorsWith(ENTERPRISE_ERROR_CODES, {
  XML_TOO_LARGE: "BAD_REQUEST",
});
