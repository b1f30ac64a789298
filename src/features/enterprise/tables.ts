import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { SCIM_USER } from "./scim-rows";

/** The column that is added to users of a directory, where they are isolated. */
export const directoryColumns = (scopedModels: string[]): BetterAuthPluginDBSchema =>
  scopedModels.includes(SCIM_USER)
    ? {
        [SCIM_USER]: {
          fields: {
            // True if the directory created the user, false if it linked a user who had signed up.
            createdUser: { type: "boolean", required: false, input: false },
          },
        },
      }
    : {};
