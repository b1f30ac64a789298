import { ssoClient } from "@better-auth/sso/client";
import { magicLinkClient, twoFactorClient } from "better-auth/client/plugins";
import { createAuthClient } from "better-auth/react";
import { tenantAuthClient } from "better-auth-tenant/client";
import { tenantDomainsClient } from "better-auth-tenant/domains/client";
import { tenantInvitationsClient } from "better-auth-tenant/invitations/client";

/** For operators, who belong to the platform and to no tenant. */
export const platformClient = createAuthClient({
  plugins: [tenantAuthClient(), tenantInvitationsClient(), tenantDomainsClient(), ssoClient()],
});

/** For the pages of a tenant: every call of this client runs inside it. */
export function tenantClient(tenantId: string) {
  const client = clients.get(tenantId) ?? createTenantClient(tenantId);
  clients.set(tenantId, client);
  return client;
}

const createTenantClient = (tenantId: string) =>
  createAuthClient({
    plugins: [
      tenantAuthClient({ tenantId }),
      tenantInvitationsClient(),
      tenantDomainsClient(),
      ssoClient(),
      magicLinkClient(),
      twoFactorClient(),
    ],
  });

const clients = new Map<string, ReturnType<typeof createTenantClient>>();
