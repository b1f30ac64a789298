import { type SCIMOptions, scim } from "@better-auth/scim";
import type { TenantPolicy } from "../../src/index";
import { runInTenant } from "../../src/index";
import type { Browser } from "../support/browser";
import { createInstance, type InstanceOptions } from "../support/instance";

export const SCIM_MODELS = [
  "scimManagedConnection",
  "scimManagedCredential",
  "scimManagedConnectionEvent",
  "scimConnectionBinding",
  "scimIdentityTombstone",
  "scimSubject",
  "scimUser",
  "scimProjectionGrant",
  "scimGroup",
  "scimGroupMember",
];

const SCOPES = ["users.read", "users.write", "groups.read", "groups.write"] as const;

export interface SCIMWorldOptions extends InstanceOptions {
  scim?: Partial<SCIMOptions>;
}

export interface SCIMResource {
  id: string;
  userName: string;
  active: boolean;
  displayName: string;
  members?: { value: string }[];
  Resources: SCIMResource[];
  totalResults: number;
}

export type SCIMWorld = Awaited<ReturnType<typeof createSCIMWorld>>;

/** Two tenants, each with a directory of its own that knows the same people. */
export async function createSCIMWorld(options: SCIMWorldOptions = {}) {
  const { scim: scimOptions, tenant, plugins = [] } = options;
  const plugin = scim({
    connections: [],
    managedConnections: { credentialHashSecret: "a secret that hashes the tokens of directories" },
    ...scimOptions,
  });
  const instance = await createInstance({
    ...options,
    plugins: [plugin, ...plugins],
    tenant: { scopedModels: SCIM_MODELS, ...tenant },
  });
  const api = instance.api as typeof instance.api & (typeof plugin)["endpoints"];

  /** A managed connection, made by the application for a tenant. */
  async function connect(tenantId: string) {
    const { token, connection } = await runInTenant(tenantId, () =>
      api.createSCIMManagedConnection({
        body: {
          creationRequestId: `connection-of-${tenantId}-${Math.random()}`,
          provisioningDomainId: `domain-of-${tenantId}`,
          actorId: "the application",
          scopes: SCOPES.map((scope) => `scim.${scope}` as const),
          expiresAt: new Date(Date.now() + 3_600_000),
        },
      }),
    );
    return { token, connection, directory: directory(token) };
  }

  /** What a directory says: with its token, and no word about a tenant. */
  const directory = (token: string): Browser =>
    instance.browser({
      authorization: `Bearer ${token}`,
      "content-type": "application/scim+json",
    });

  async function furnish(slug: string, policy: TenantPolicy | null = null) {
    const { id } = await instance.createTenant(slug);
    if (policy) await api.updateTenant({ body: { tenantId: id, policy } });
    return { id, slug, ...(await connect(id)) };
  }

  const acme = await furnish("acme");
  const globex = await furnish("globex");
  return { ...instance, api, acme, globex, connect, directory, furnish };
}

export const person = (name: string, more: object = {}) => ({
  schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"],
  userName: `${name}@corp.example`,
  externalId: `external-${name}`,
  name: { givenName: name, familyName: "Example" },
  emails: [{ value: `${name}@corp.example`, primary: true }],
  ...more,
});

export const group = (displayName: string, ...members: string[]) => ({
  schemas: ["urn:ietf:params:scim:schemas:core:2.0:Group"],
  displayName,
  members: members.map((value) => ({ value })),
});

export const patch = (...operations: object[]) => ({
  schemas: ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
  Operations: operations,
});

/** As a directory says it. */
export const setActive = (directory: Browser, id: string, value: boolean) =>
  directory.send<SCIMResource>(`/scim/v2/Users/${id}`, {
    method: "PATCH",
    body: patch({ op: "replace", path: "active", value }),
  });
