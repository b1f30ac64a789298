import type { HookEndpointContext } from "better-auth";
import { APIError } from "better-auth/api";
import { isOutermost } from "../../core/endpoint";
import { tenantError } from "../../core/errors";
import type { Claim } from "../../core/extension";
import { tenantOfRow } from "../../core/isolate/users";
import type { Isolation } from "../../core/isolation";
import { currentRequest } from "../../core/request";
import { hostOf, isAtPlatformHost } from "../../core/resolve/resolvers";
import { refuseUnsafeXML } from "./saml-messages";
import { SSO_PROVIDER } from "./sso-providers";
import { ACS, openReturnedState, removeStatePrefix } from "./sso-state";

/*
 * R4 for identity providers and directories. Their requests name no tenant, and may come in a
 * browser with a session of another tenant. So the tenant is the owner of the state, of the
 * provider's row or of the SCIM credential's row.
 */

/** Endpoints that identity providers use, and where the request has the provider id. */
const PROVIDER_ID_IN = new Map<string | undefined, "params" | "query">([
  ["/sso/callback/:providerId", "params"],
  [ACS, "params"],
  ["/sso/saml2/sp/slo/:providerId", "params"],
  ["/sso/saml2/sp/metadata", "query"],
]);

const isDirectory = (path: string | undefined) => path?.startsWith("/scim/v2/") === true;

/**
 * Claims a request (see `Claim` in core/extension.ts) for the tenant that started its state, else
 * for the tenant of its provider or SCIM credential. A request that R1 resolved stays in its
 * tenant, where the state or row of another tenant does not exist.
 */
export async function claimOfProvider(
  isolation: Isolation,
  ctx: HookEndpointContext,
): Promise<Claim | undefined> {
  const { path } = ctx;
  await refuseUnsafeXML(ctx);
  if (!(PROVIDER_ID_IN.has(path) || isDirectory(path)) || !isOutermost(ctx)) return undefined;
  const returned = isDirectory(path) ? undefined : await openReturnedState(ctx);
  const owner = returned?.tenantId ?? (await tenantOfRow(isolation, ...rowOf(ctx)));
  if (owner !== null && path === ACS) assertSignsIn(ctx);
  return {
    tenantId: owner,
    overridesEmptyResolver: true,
    isTenantItself: isDirectory(path) && owner !== null,
    onScopeKnown(isHere) {
      if (isDirectory(path) && !isHere) throw unknownToken();
      else if (returned && isHere) removeStatePrefix(ctx, returned.state);
    },
  };
}

/**
 * Refuses a tenant's SAML response at a host of the platform, where the tenant's session is not
 * valid (R5). The response would be used up without signing the user in.
 */
function assertSignsIn(ctx: HookEndpointContext): void {
  if (currentRequest().enteredBy !== "resolver without tenant" || !isAtPlatformHost(ctx)) return;
  if (ctx.context.options.advanced?.crossSubDomainCookies?.enabled) return;
  const message = `This SAML response belongs to a tenant, and ${hostOf(ctx)} is a host of the platform. Set the ACS URL at the identity provider to the host of the tenant.`;
  ctx.context.logger.error(`${ctx.params?.providerId}: ${message}`);
  throw tenantError("TENANT_SCOPE_CONFLICT", message);
}

/**
 * Returns the SCIM plugin's response to an unknown token. A token is valid only in the tenant of
 * its row. A token without a row belongs to the application, and is valid on the platform only:
 * otherwise, its bearer could choose any tenant.
 */
function unknownToken(): APIError {
  const schemas = ["urn:ietf:params:scim:api:messages:2.0:Error"];
  const body = { schemas, status: "401", detail: "Invalid SCIM bearer token" };
  return new APIError("UNAUTHORIZED", body, { "www-authenticate": 'Bearer realm="SCIM"' });
}

/** A SCIM token: the id of its row, and a secret. */
const CREDENTIAL = /^Bearer\s+(ba_scim_credential_[\w-]+)\.[\w-]+$/i;

type RowKey = [model: string, field: string, value: unknown];

function rowOf({ path, params, query, headers }: HookEndpointContext): RowKey {
  if (isDirectory(path)) {
    const [, value] = CREDENTIAL.exec(headers?.get("authorization") ?? "") ?? [];
    return ["scimManagedCredential", "credentialId", value];
  }
  const { providerId: value } = (PROVIDER_ID_IN.get(path) === "query" ? query : params) ?? {};
  return [SSO_PROVIDER, "providerId", value];
}
