import { type SCIMOptions, scim } from "@better-auth/scim";
import { runInTenant } from "../../src/index";
import type { Browser } from "../support/browser";
import type { DatabaseKind } from "../support/database";
import { createWorld, shareMade, type Where, type WorldOptions } from "../support/world";

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

export interface SCIMWorldOptions extends WorldOptions {
  scim?: Partial<SCIMOptions>;
}

interface SCIMResource {
  id: string;
  active: boolean;
  displayName: string;
  Resources: SCIMResource[];
  totalResults: number;
}

export type SCIMWorld = Awaited<ReturnType<typeof createSCIMWorld>>;

/** What the directory of a tenant says: with its token, and no word about a tenant. */
class Directory {
  constructor(
    readonly token: string,
    readonly browser: Browser,
  ) {}

  add = (name: string) => this.browser.post<SCIMResource>("/scim/v2/Users", person(name));
  addGroup = (displayName: string, ...members: string[]) =>
    this.browser.post<SCIMResource>("/scim/v2/Groups", {
      schemas: ["urn:ietf:params:scim:schemas:core:2.0:Group"],
      displayName,
      members: members.map((value) => ({ value })),
    });
  get = (path: string, query: Record<string, string> = {}) =>
    this.browser.get<SCIMResource>(`/scim/v2/${path}`, { query });
  delete = (path: string) =>
    this.browser.send<{ detail: string }>(`/scim/v2/${path}`, { method: "DELETE" });
  patch = (path: string, field: string, value: unknown, op = "replace") =>
    this.browser.send<SCIMResource>(`/scim/v2/${path}`, {
      method: "PATCH",
      body: {
        schemas: ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        Operations: [{ op, path: field, value }],
      },
    });
}

const person = (name: string) => ({
  schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"],
  userName: `${name}@example.com`,
  externalId: `external-${name}`,
  name: { givenName: name, familyName: "Example" },
  emails: [{ value: `${name}@example.com`, primary: true }],
});

/** A world whose tenants can have directories. */
export async function createSCIMWorld(options: SCIMWorldOptions = {}) {
  const { scim: scimOptions, plugins = [], tenant, ...rest } = options;
  const plugin = scim({
    connections: [],
    managedConnections: { credentialHashSecret: "a secret that hashes the tokens of directories" },
    ...scimOptions,
  });
  const world = await createWorld({
    ...rest,
    plugins: (send) => [plugin, ...(typeof plugins === "function" ? plugins(send) : plugins)],
    tenant: { scopedModels: SCIM_MODELS, ...tenant },
  });
  const api = world.api as typeof world.api & (typeof plugin)["endpoints"];

  const directory = (token: string, headers: Record<string, string> = {}) =>
    new Directory(
      token,
      world.browser({
        authorization: `Bearer ${token}`,
        "content-type": "application/scim+json",
        ...headers,
      }),
    );

  /** A managed connection, made by the application for a tenant. */
  async function connect(where: Where) {
    const tenantId = String(world.idOf(where));
    const scopes = ["users.read", "users.write", "groups.read", "groups.write"] as const;
    const { token } = await runInTenant(tenantId, () =>
      api.createSCIMManagedConnection({
        body: {
          creationRequestId: `connection-of-${tenantId}-${Math.random()}`,
          provisioningDomainId: `domain-of-${tenantId}`,
          actorId: "the application",
          scopes: scopes.map((scope) => `scim.${scope}` as const),
          expiresAt: new Date(Date.now() + 3_600_000),
        },
      }),
    );
    return directory(token);
  }

  return {
    ...world,
    directory,
    connect,

    /** The addresses of a place's people. */
    emails: async (where: Where) =>
      (await world.rowsIn(where, "user")).map(({ email }) => email).sort(),
  };
}

/** One such world for all tests of a database. */
export const shareSCIMWorld = (options: SCIMWorldOptions = {}, kind?: DatabaseKind): SCIMWorld =>
  shareMade((database) => createSCIMWorld({ ...options, database }), kind);
