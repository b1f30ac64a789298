import { runInTenant } from "better-auth-tenant";
import { auth } from "./auth";

/** What there is of a tenant. Ask for the right to see it first. */
export async function countOf(tenantId: string) {
  const { adapter } = await auth.$context;
  const where = [{ field: "tenantId", value: tenantId }];
  return runInTenant(tenantId, async () => {
    const [users, sessions, providers] = await Promise.all([
      // Inside the tenant, "all users" are its own.
      adapter.count({ model: "user" }),
      adapter.count({ model: "session" }),
      adapter.count({ model: "tenantOauthConfig", where }),
    ]);
    return { users, sessions, providers };
  });
}
