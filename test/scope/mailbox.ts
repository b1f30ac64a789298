import type { BetterAuthOptions } from "better-auth";
import { getTenantId } from "../../src/index";

export interface Mail {
  kind: "reset" | "verification";
  userId: string;
  /** Where the user belongs, and where the sender says it runs. */
  ofTenant: unknown;
  sentIn: string | null;
  url: string;
}

/** Options that make better-auth send its mails here. */
export function createMailbox() {
  const mails: Mail[] = [];
  const put = (kind: Mail["kind"], user: { id: string; tenantId?: unknown }, url: string) => {
    const ofTenant = user.tenantId ?? null;
    mails.push({ kind, userId: user.id, ofTenant, sentIn: getTenantId(), url });
  };
  const auth = {
    emailAndPassword: {
      enabled: true,
      sendResetPassword: async ({ user, url }) => put("reset", user, url),
    },
    emailVerification: {
      sendVerificationEmail: async ({ user, url }) => put("verification", user, url),
    },
  } satisfies Partial<BetterAuthOptions>;
  return { mails, auth };
}
