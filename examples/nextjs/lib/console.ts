import { isAPIError } from "better-auth/api";
import { runInTenant } from "better-auth-tenant";
import { headers } from "next/headers";
import { notFound, redirect } from "next/navigation";
import { auth } from "./auth";

/**
 * Calls the management API as whoever is signed in, so that the plugin decides who may. Everybody
 * else is led to the sign-in page.
 */
export async function asOperator<T>(call: (headers: Headers) => Promise<T>): Promise<T> {
  try {
    return await call(new Headers(await headers()));
  } catch (error) {
    const status = isAPIError(error) ? error.statusCode : undefined;
    if (status === 401 || status === 403) redirect("/console/sign-in");
    if (status === 404) notFound();
    throw error;
  }
}

export const tenantForOperator = (id: string) =>
  asOperator((headers) => auth.api.getTenant({ query: { id }, headers }));

/** What there is of a tenant, and what goes when it is deleted. Ask for the right to see it first. */
export async function countOf(tenantId: string) {
  const { adapter } = await auth.$context;
  const where = [{ field: "tenantId", value: tenantId }];
  return runInTenant(tenantId, async () => {
    const [users, sessions, accounts, mails, providers] = await Promise.all([
      // Inside the tenant, "all users" are its own.
      ...["user", "session", "account", "mail"].map((model) => adapter.count({ model })),
      adapter.count({ model: "tenantOauthConfig", where }),
    ]);
    return { users, sessions, accounts, mails, providers };
  });
}
