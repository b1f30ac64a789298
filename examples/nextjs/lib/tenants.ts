import { isAPIError } from "better-auth/api";
import type { Tenant } from "better-auth-tenant";
import type { TenantDomain } from "better-auth-tenant/domains";
import { headers } from "next/headers";
import { notFound, redirect } from "next/navigation";
import { cache } from "react";
import { auth } from "./auth";
import { shownName } from "./format";
import { APP_URL } from "./hosts";

/** The tenant of a page. Shows "not found" where there is none. */
export const tenantOfPage = cache(async (slug: string): Promise<Tenant> => {
  try {
    // A call without headers comes from the server itself and is trusted.
    return withShownName(await auth.api.getTenant({ query: { slug } }));
  } catch (error) {
    if (isAPIError(error) && error.statusCode === 404) notFound();
    throw error;
  }
});

/** The same for pages that make no sense while nobody can sign in: the sign-in page says so. */
export async function activeTenantOfPage(slug: string): Promise<Tenant> {
  const tenant = await tenantOfPage(slug);
  if (tenant.status !== "active") redirect((await basePath(tenant)) || "/");
  return tenant;
}

/** The tenants that a page lists: the oldest 20. */
export const listedTenants = async () =>
  (await auth.api.listTenants({ query: { limit: 20 } })).map(withShownName);

export const withShownName = (tenant: Tenant): Tenant => ({
  ...tenant,
  name: shownName(tenant.name, tenant.slug),
});

/** Which email domains may join, or null for all. Some are no applicant's business. */
export async function domainsToJoin({ id, policy }: Tenant): Promise<string[] | null> {
  const { emailDomains = null } = policy ?? {};
  if (emailDomains !== "verified") return emailDomains;
  const domains = await auth.api.listTenantDomains({ query: { tenantId: id } });
  const isPublic = ({ verified, discoverable }: TenantDomain) => verified && discoverable;
  return domains.filter(isPublic).map(({ domain }) => domain);
}

/** What goes before the paths of a tenant's pages: nothing on a host of its own. */
export async function basePath({ slug }: Tenant): Promise<string> {
  return (await headers()).get("host")?.toLowerCase() === APP_URL.host ? `/t/${slug}` : "";
}

/** The request's headers, with the tenant that the page is about. */
export async function headersFor(tenantId: string): Promise<Headers> {
  const own = new Headers(await headers());
  own.set("x-tenant-id", tenantId);
  return own;
}

/** Who is signed in at a tenant in this browser. */
export const sessionAt = cache(async (tenantId: string) => {
  const found = await auth.api.getSession({ headers: await headersFor(tenantId) });
  // On the host of one tenant, every question is about that tenant.
  if (found?.session.tenantId !== tenantId) return null;
  const { session, user } = found;
  return { session, user: { ...user, name: shownName(user.name, user.email) } };
});

/** What is asked for a signed-in user. If the session has just ended, the sign-in page is next. */
export async function orSignIn<T>(tenant: Tenant, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (isAPIError(error) && error.statusCode === 401) redirect((await basePath(tenant)) || "/");
    throw error;
  }
}

/** A tenant's colour, as a hue. */
export function hueOf({ metadata }: Pick<Tenant, "metadata">): number {
  const hue = metadata?.hue;
  return typeof hue === "number" ? hue : 265;
}
