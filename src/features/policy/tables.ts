import type { BetterAuthPluginDBSchema } from "better-auth/db";
import { type Inferred, jsonColumn } from "../../core/schema";
import type { SessionRow } from "../../core/session";

/** The columns that policies need. */
export const policyColumns = () =>
  ({
    tenant: { fields: { policy: jsonColumn() } },
    session: {
      fields: {
        // How the user signed in, and when with a second factor: see `second-factor.ts`.
        signInMethod: { type: "string", required: false, input: false },
        secondFactorAt: { type: "date", required: false, input: false },
      },
    },
  }) satisfies BetterAuthPluginDBSchema;

/** The columns of sessions, for better-auth's types. */
export type InferredPolicyColumns = {
  session: { fields: { signInMethod: Inferred<"string">; secondFactorAt: Inferred<"date"> } };
};

/** A session with the columns of this feature. */
export type SessionWithMethod = SessionRow & {
  signInMethod?: string | null;
  secondFactorAt?: Date | string | null;
};
