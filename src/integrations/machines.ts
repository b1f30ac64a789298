import type { HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import * as z from "zod";
import { type AfterHook, type BeforeHook, silentHook } from "../framework";
import type { Isolation } from "../isolation/isolation";
import { tenantOfRow } from "../isolation/users";
import { changeCall, isOutermost } from "../request/endpoint";
import { tenantInPrefix, withPrefix } from "../request/prefix";
import { requireTenantId } from "../request/resolve";
import { enter, enteredBy, enteredScope, getTenantId, scopeOf } from "../request/scope";

/*
 * R4 for machines, which need not name their tenant: API keys and device codes.
 */

const MAX_KEY_LENGTH = 512;

const keyIn = ({ headers, request }: Pick<HookEndpointContext, "headers" | "request">) => {
  const key = (headers ?? request?.headers)?.get("x-api-key");
  return key && key.length <= MAX_KEY_LENGTH ? key : undefined;
};

/**
 * The row of an API key resolves its tenant, unless anything else has: a scope that other hooks have
 * relied on must not change. Keys in secondary storage, or in another header, need a request that
 * names the tenant.
 *
 * Guarded by "R4: an API key alone leads into its tenant".
 */
export const enterByKey = (isolation: Isolation): BeforeHook => ({
  matcher: (ctx) =>
    keyIn(ctx) !== undefined &&
    isOutermost(ctx) &&
    !enteredScope() &&
    isolation.isolatedModel("apikey") !== undefined,

  handler: silentHook(async (ctx) => {
    const key = keyIn(ctx) ?? "";
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
    const hash = z.util.uint8ArrayToBase64url(new Uint8Array(digest));
    // The plugin has an option to store keys without hashing them.
    const owner =
      (await tenantOfRow(isolation, "apikey", "key", hash)) ??
      (await tenantOfRow(isolation, "apikey", "key", key));
    if (owner === null) return;
    enter(scopeOf(await requireTenantId(ctx, owner)));
    enteredBy.set("credential");
  }),
});

/** A device gets its code with the tenant prefix. The user enters the user code at the tenant. */
export const prefixDeviceCode: AfterHook = {
  matcher: ({ path }) => path === "/device/code" && getTenantId() !== null,

  handler: createAuthMiddleware(async ({ context: { returned } }) => {
    const tenantId = getTenantId();
    const { device_code } = Object(returned);
    if (!tenantId || typeof device_code !== "string") return;
    return { ...Object(returned), device_code: withPrefix(tenantId, device_code) };
  }),
};

/** The prefix of a device code leads into its tenant, where the rest of a forged one does not exist. */
export const enterByDeviceCode: BeforeHook = {
  matcher: ({ path, body }) =>
    path === "/device/token" &&
    typeof body?.device_code === "string" &&
    tenantInPrefix(body.device_code) !== null,

  handler: silentHook(async (ctx) => {
    const sent: string = ctx.body.device_code;
    const tenantId = tenantInPrefix(sent) ?? "";
    if (!enteredScope()) enter(scopeOf(await requireTenantId(ctx, tenantId)));
    if (getTenantId() === tenantId) {
      changeCall("body", { device_code: sent.slice(tenantId.length + 1) });
    }
  }),
};
