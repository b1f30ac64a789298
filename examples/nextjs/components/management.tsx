"use client";

import { createContext, type ReactNode, useContext, useMemo } from "react";
import { platformClient, tenantClient } from "@/lib/auth-client";

/** The tenant that an administrator of its own manages; null in the operators' console. */
const OwnTenant = createContext<string | null>(null);

/** Everything in here is done by a tenant's own administrator. */
export function AsAdministrator({ tenantId, children }: { tenantId: string; children: ReactNode }) {
  return <OwnTenant value={tenantId}>{children}</OwnTenant>;
}

export const useOwnTenant = () => useContext(OwnTenant);

/** The management calls, as whoever the page is for: the same forms serve both. */
export function useManagement() {
  const own = useOwnTenant();
  // The client is a proxy: what it returns is another one each time, and effects would run again.
  return useMemo(() => (own ? tenantClient(own) : platformClient).tenant, [own]);
}

/** better-auth's own calls about users. An operator's work in every tenant. */
export function useAdmin() {
  const own = useOwnTenant();
  return (own ? tenantClient(own) : platformClient).admin;
}

/** The same for better-auth's own calls about identity providers. The query names the tenant. */
export function useSSO(tenantId: string) {
  const own = useOwnTenant();
  const { sso } = own ? tenantClient(own) : platformClient;
  return { sso, named: { query: { tenantId } } };
}
