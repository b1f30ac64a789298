import type { HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware } from "better-auth/api";
import { tenantError } from "../errors";
import { type BeforeHook, decodeBase64url } from "../framework";
import type { Isolation } from "../isolation/isolation";
import { tenantOfRow } from "../isolation/users";
import { isDirectoryRequest } from "../policy/admission";
import { isOutermost } from "../request/endpoint";
import { requireTenantId } from "../request/resolve";
import { hostOf, isAtPlatformHost } from "../request/resolvers";
import { enter, enteredBy, getTenantId, namedScope, scopeOf } from "../request/scope";
import { badRequest, SSO_PROVIDER } from "./sso-providers";
import { ACS, openReturnedState, removeStatePrefix } from "./sso-state";

/*
 * R4 for identity providers. A request from one carries no tenant and may come in a browser that is
 * signed in elsewhere, so neither R1 nor the session decides.
 */

/** Endpoints that identity providers call or redirect to, and where these carry the provider id. */
const PROVIDER_ID_IN = new Map<string | undefined, "params" | "query">([
  ["/sso/callback/:providerId", "params"],
  [ACS, "params"],
  ["/sso/saml2/sp/slo/:providerId", "params"],
  ["/sso/saml2/sp/metadata", "query"],
]);

const isDirectory = (path: string | undefined) => path?.startsWith("/scim/v2/") === true;

/**
 * The tenant that started the returned state decides, else the tenant of the row that the request
 * carries the id of. A request that R1 resolved stays in its tenant, where the state or row of
 * another tenant does not exist.
 */
export function enterByProvider(isolation: Isolation): BeforeHook {
  return {
    matcher: ({ path }) => PROVIDER_ID_IN.has(path) || isDirectory(path),

    handler: createAuthMiddleware(async (ctx) => {
      if (!isOutermost(ctx)) return;
      const returned = isDirectory(ctx.path) ? undefined : await openReturnedState(ctx);
      const owner = returned?.tenantId ?? (await tenantOfRow(isolation, ...rowOf(ctx)));
      if (owner !== null && ctx.path === ACS) assertSignsIn(ctx);
      if (!namedScope()) enter(scopeOf(owner ? await requireTenantId(ctx, owner) : null));
      if (isDirectory(ctx.path)) return void admitDirectory(owner);
      if (returned && getTenantId() === owner) removeStatePrefix(ctx, returned.state);
    }),
  };
}

/**
 * A tenant's session is not valid at a host of the platform (R5), where its cookie would stay. The
 * response would be used up without signing the user in.
 */
function assertSignsIn(ctx: HookEndpointContext): void {
  if (enteredBy.get() !== "resolver without tenant" || !isAtPlatformHost(ctx)) return;
  if (ctx.context.options.advanced?.crossSubDomainCookies?.enabled) return;
  const message = `This SAML response belongs to a tenant, and ${hostOf(ctx)} is a host of the platform. Set the ACS URL at the identity provider to the host of the tenant.`;
  ctx.context.logger.error(`${ctx.params?.providerId}: ${message}`);
  throw tenantError("TENANT_SCOPE_CONFLICT", message);
}

/**
 * A token is valid only in the tenant of its row. A token without a row is the application's own,
 * and valid on the platform only: its bearer could otherwise choose any tenant.
 */
function admitDirectory(owner: string | null): void {
  if (owner !== getTenantId()) {
    // The SCIM plugin's response to an unknown token.
    const schemas = ["urn:ietf:params:scim:api:messages:2.0:Error"];
    const body = { schemas, status: "401", detail: "Invalid SCIM bearer token" };
    throw new APIError("UNAUTHORIZED", body, { "www-authenticate": 'Bearer realm="SCIM"' });
  }
  if (owner !== null) isDirectoryRequest.set(true);
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

/** A declaration (not a comment, not CDATA), which no SAML message has (SAML core, 1.3.1). */
const DECLARATION = /<!(?!--|\[CDATA\[)/;

/** An ID that contains a character reference, such as `&#95;`. */
const ENCODED_ID = /\bID\s*=\s*(?:"[^"<&]*&|'[^'<&]*&|[^\s"'<>&=]*&)/;

/**
 * better-auth reads a SAML response with two parsers: one for the signature, and one for the ID that
 * makes an assertion valid once. The second one does not decode references in the ID, and finds no
 * ID behind a long DTD, so a used response could be replayed in another spelling, with a provider of
 * `defaultSSO` also in other tenants. Refuses what the parsers may disagree about.
 */
export const refuseAmbiguousResponse: BeforeHook = {
  matcher: ({ path }) => path === ACS,

  handler: createAuthMiddleware(async ({ body }) => {
    const encoded: unknown = body?.SAMLResponse;
    if (typeof encoded !== "string") return;
    // All of the markup is ASCII.
    const xml = decodeBase64url(encoded.replaceAll(/\s/g, ""));
    if (xml === undefined) {
      throw badRequest("SAML_INVALID_ENCODING", "Invalid base64-encoded SAML response");
    }
    if (DECLARATION.test(xml) || ENCODED_ID.test(xml)) {
      const message = "A SAML response has no DOCTYPE, and no character references in an ID";
      throw badRequest("SAML_INVALID_XML", message);
    }
  }),
};
