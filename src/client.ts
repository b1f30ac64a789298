import type { BetterAuthClientPlugin } from "better-auth/client";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import type { tenantAuth } from "./plugin";

export { TENANT_AUTH_ERROR_CODES } from "./error-codes";

export interface TenantAuthClientOptions {
  /**
   * The tenant that this client works for: its id, or a function that is asked before every
   * request. It goes along in a header, so every call of the client runs in that tenant.
   */
  tenantId?: string | (() => string | null | undefined);
  /**
   * The header it goes in; the server's option of the same name.
   * @default "x-tenant-id"
   */
  tenantHeader?: string;
}

/** The browser's side of `tenantAuth()`: `authClient.tenant.*`, and the tenant on every request. */
export const tenantAuthClient = ({
  tenantId,
  tenantHeader = "x-tenant-id",
}: TenantAuthClientOptions = {}) =>
  ({
    id: "tenant-auth",
    $InferServerPlugin: {} as ReturnType<typeof tenantAuth>,
    $ERROR_CODES: TENANT_AUTH_ERROR_CODES,
    // Calls without arguments would be sent as GET or POST by guess.
    pathMethods: {
      "/tenant/list": "GET",
      "/tenant/get": "GET",
      "/tenant/oauth-config/list": "GET",
    },
    atomListeners: [
      {
        signal: "$sessionSignal",
        matcher: (path) => /^\/tenant\/sign-(in|up)\//.test(path),
      },
    ],
    fetchPlugins: [
      {
        id: "tenant-auth",
        name: "tenant-auth",
        hooks: {
          onRequest(request) {
            const id = typeof tenantId === "function" ? tenantId() : tenantId;
            if (id && !request.headers.has(tenantHeader)) request.headers.set(tenantHeader, id);
            return request;
          },
        },
      },
    ],
  }) satisfies BetterAuthClientPlugin;
