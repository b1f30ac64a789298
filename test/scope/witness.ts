import type { BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { getTenantId } from "../../src/index";
import { PASSWORD } from "../support/instance";

type Seen = [where: string, tenantId: string | null];

/** Options with a hook in every place, each of which writes down where it runs. */
export function createWitness() {
  const seen: Seen[] = [];
  const note = (where: string) => void seen.push([where, getTenantId()]);
  const noteBothSides = (model: string) => ({
    create: {
      before: async () => note(`before ${model}`),
      after: async () => note(`after ${model}`),
    },
    update: {
      before: async () => note(`before update of ${model}`),
      after: async () => note(`after update of ${model}`),
    },
  });
  const auth = {
    hooks: {
      before: createAuthMiddleware(async ({ path }) => note(`before ${path}`)),
      after: createAuthMiddleware(async ({ path }) => note(`after ${path}`)),
    },
    databaseHooks: {
      user: noteBothSides("user"),
      session: noteBothSides("session"),
      account: noteBothSides("account"),
      verification: noteBothSides("verification"),
    },
  } satisfies Partial<BetterAuthOptions>;
  return { seen, auth };
}

/** The body of a sign-up. */
export const person = (email = "new@example.com") => ({ name: "New", email, password: PASSWORD });
