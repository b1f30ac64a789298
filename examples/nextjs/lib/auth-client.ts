import { passkeyClient } from "@better-auth/passkey/client";
import { ssoClient } from "@better-auth/sso/client";
import { adminClient, magicLinkClient, twoFactorClient } from "better-auth/client/plugins";
import { createAuthClient } from "better-auth/react";
import { tenantAuthClient } from "better-auth-tenant/client";
import { tenantDomainsClient } from "better-auth-tenant/domains/client";
import { tenantInvitationsClient } from "better-auth-tenant/invitations/client";

/** For operators, who belong to the platform and to no tenant. */
export const platformClient = createAuthClient({
  plugins: [
    tenantAuthClient(),
    tenantInvitationsClient(),
    tenantDomainsClient(),
    adminClient(),
    ssoClient(),
  ],
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
      adminClient(),
      ssoClient(),
      magicLinkClient(),
      twoFactorClient(),
      passkeyClient(),
    ],
  });

const clients = new Map<string, ReturnType<typeof createTenantClient>>();
