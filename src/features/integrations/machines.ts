import type { HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import * as z from "zod";
import { changeCall, isOutermost } from "../../core/endpoint";
import type { Claim } from "../../core/extension";
import type { AfterHook } from "../../core/hooks";
import { tenantOfRow } from "../../core/isolate/users";
import type { Isolation } from "../../core/isolation";
import { tenantInPrefix, withPrefix } from "../../core/prefix";
import { enteredScope, getTenantId } from "../../core/request";

/*
 * R4 for API keys and device codes: a machine that sends one need not name its tenant.
 */

const MAX_KEY_LENGTH = 512;

const keyIn = ({ headers, request }: Pick<HookEndpointContext, "headers" | "request">) => {
  const key = (headers ?? request?.headers)?.get("x-api-key");
  return key && key.length <= MAX_KEY_LENGTH ? key : undefined;
};

/**
 * Claims a request (see `Claim` in core/extension.ts) for the tenant of its API key, unless the
 * request already has a scope: hooks that ran before have relied on it. Keys in secondary storage,
 * or in another header, need a request that names the tenant.
 *
 * Guarded by "R4: an API key alone leads into its tenant".
 */
export const claimOfKey =
  (isolation: Isolation) =>
  async (ctx: HookEndpointContext): Promise<Claim | undefined> => {
    const key = keyIn(ctx);
    const isAsked = key !== undefined && isOutermost(ctx) && !enteredScope();
    if (!isAsked || isolation.isolatedModel("apikey") === undefined) return undefined;
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
    const hash = z.util.uint8ArrayToBase64url(new Uint8Array(digest));
    // api-key has an option to store keys without hashing them, so this also looks for the key
    // itself.
    const owner =
      (await tenantOfRow(isolation, "apikey", "key", hash)) ??
      (await tenantOfRow(isolation, "apikey", "key", key));
    return owner === null ? undefined : { tenantId: owner, countsAsUnnamed: true };
  };

/**
 * Adds the tenant to the device code. The user code stays as it is, because the user enters it at
 * the tenant.
 */
export const prefixDeviceCode: AfterHook = {
  matcher: ({ path }) => path === "/device/code" && getTenantId() !== null,

  handler: createAuthMiddleware(async ({ context: { returned } }) => {
    const tenantId = getTenantId();
    const { device_code } = Object(returned);
    if (!tenantId || typeof device_code !== "string") return;
    return { ...Object(returned), device_code: withPrefix(tenantId, device_code) };
  }),
};

/** Claims a request for the tenant in its device code. A forged code does not exist there. */
export const claimOfDeviceCode = ({ path, body }: HookEndpointContext): Claim | undefined => {
  const sent: unknown = path === "/device/token" ? body?.device_code : undefined;
  const tenantId = typeof sent === "string" ? tenantInPrefix(sent) : null;
  if (tenantId === null) return undefined;
  const device_code = String(sent).slice(tenantId.length + 1);
  return {
    tenantId,
    onScopeKnown: (isHere) => (isHere ? changeCall("body", { device_code }) : undefined),
  };
};
