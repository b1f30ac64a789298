import type { HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware } from "better-auth/api";
import { tenantError } from "../errors";
import type { BeforeHook } from "../framework";
import { type Isolation, type Row, unscopedAdapter } from "../isolation/isolation";
import { isDirectoryRequest } from "../policy/admission";
import { isOutermost } from "../request/endpoint";
import { requireTenantId } from "../request/resolve";
import { hostOf, isAtPlatformHost } from "../request/resolvers";
import { enter, enteredBy, getTenantId, namedScope, scopeOf } from "../request/scope";
import { isText } from "../tenants/cache";
import { ACS } from "./saml-response";
import { openReturnedState } from "./sso-state";

/**
 * Where a request from an identity provider says whose it is. It names no tenant and may come in a
 * browser that is signed in elsewhere, so neither R1 nor the session decides.
 */
type Namer = (ctx: HookEndpointContext) => { model: string; field: string; value: unknown };

const byProvider =
  (place: "params" | "query"): Namer =>
  (ctx) => ({ model: "ssoProvider", field: "providerId", value: ctx[place]?.providerId });

/** The credential of a directory: its first part is the id of a row, the second one is secret. */
const byCredential: Namer = ({ headers }) => ({
  model: "scimManagedCredential",
  field: "credentialId",
  value: CREDENTIAL.exec(headers?.get("authorization") ?? "")?.[1],
});

const CREDENTIAL = /^Bearer\s+(ba_scim_credential_[\w-]+)\.[\w-]+$/i;

/** The endpoints that identity providers call or send people to, and the row that they show. */
const NAMERS: Readonly<Record<string, Namer>> = {
  "/sso/callback/:providerId": byProvider("params"),
  [ACS]: byProvider("params"),
  "/sso/saml2/sp/slo/:providerId": byProvider("params"),
  "/sso/saml2/sp/metadata": byProvider("query"),
};

const isDirectory = (path: string | undefined) => path?.startsWith("/scim/v2/") === true;

function namerOf(path: string | undefined): Namer | undefined {
  if (isDirectory(path)) return byCredential;
  return path !== undefined && Object.hasOwn(NAMERS, path) ? NAMERS[path] : undefined;
}

/**
 * R4 for identity providers: the state that a tenant has started names it, else the row that the
 * request shows does. One that names a tenant by R1 stays there, where the state or row of another
 * tenant does not exist.
 */
export function enterByProvider(isolation: Isolation): BeforeHook {
  return {
    matcher: ({ path }) => namerOf(path) !== undefined,

    handler: createAuthMiddleware(async (ctx) => {
      const namer = namerOf(ctx.path);
      if (!namer || !isOutermost(ctx)) return;
      const returned = isDirectory(ctx.path) ? undefined : await openReturnedState(ctx);
      const owner = returned?.tenantId ?? (await ownerOf(isolation, namer(ctx)));
      if (owner !== null && ctx.path === ACS) assertSignsIn(ctx);
      if (!namedScope()) enter(scopeOf(owner ? await requireTenantId(ctx, owner) : null));
      if (isDirectory(ctx.path)) return void admitDirectory(owner);
      return returned?.apply();
    }),
  };
}

/**
 * A session of a tenant is none at a host of the platform (R5), and the cookie stays at that host. A
 * response that is taken there is used up, and signs the person in nowhere.
 */
function assertSignsIn(ctx: HookEndpointContext): void {
  if (enteredBy.get() !== "resolver without tenant" || !isAtPlatformHost(ctx)) return;
  const { advanced } = ctx.context.options;
  if (advanced?.crossSubDomainCookies?.enabled) return;
  const message = `This SAML response belongs to a tenant, and ${hostOf(ctx)} is a host of the platform. Set the ACS URL at the identity provider to the host of the tenant.`;
  ctx.context.logger.error(`${ctx.params?.providerId}: ${message}`);
  throw tenantError("TENANT_SCOPE_CONFLICT", message);
}

/**
 * A token is valid in the tenant of its row alone. One without a row is the application's own and
 * valid on the platform only: a request that carries it could otherwise name any tenant.
 */
function admitDirectory(owner: string | null): void {
  if (owner !== getTenantId()) throw invalidToken();
  if (owner !== null) isDirectoryRequest.set(true);
}

/** As the SCIM plugin answers a token that it does not know. */
function invalidToken() {
  const body = { schemas: [SCIM_ERROR], status: "401", detail: "Invalid SCIM bearer token" };
  return new APIError("UNAUTHORIZED", body, { "www-authenticate": 'Bearer realm="SCIM"' });
}

const SCIM_ERROR = "urn:ietf:params:scim:api:messages:2.0:Error";

/** The tenant of the one row that has this value; none for a row of the platform, or for no row. */
async function ownerOf(
  isolation: Isolation,
  { model, field, value }: ReturnType<Namer>,
): Promise<string | null> {
  if (typeof value !== "string" || value === "" || !isText(value)) return null;
  const below = await unscopedAdapter(isolation);
  const found = await below.findMany<Row>({ model, where: [{ field, value }], limit: 2 });
  // MySQL takes other spellings of an id for the same.
  const rows = found.filter((row) => row[field] === value);
  return rows.length === 1 ? (rows[0]?.tenantId ?? null) : null;
}
