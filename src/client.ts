import type { ClientFetchOption } from "@better-auth/core";
import type { BetterFetchResponse } from "@better-fetch/fetch";
import type { BetterAuthClientPlugin } from "better-auth/client";
import type { StrictEndpoint } from "better-call";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import type { tenantAuth } from "./plugin";
import type { SignUpAnswer, SignUpInput } from "./sign-in/email";

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

type Server = ReturnType<typeof tenantAuth>;
type Endpoints = Server["endpoints"];
type SignUpEndpoint = Endpoints["signUpEmailTenant"];

/**
 * The server as the client's types see it. better-auth's client flattens the type of a body, and a
 * body that takes any field besides its own loses its own on the way: so here sign-up takes its
 * own fields only, and `getActions` adds the ones of the application.
 */
type ServerForClient = Omit<Server, "endpoints"> & {
  endpoints: Omit<Endpoints, "signUpEmailTenant"> & {
    signUpEmailTenant: StrictEndpoint<
      SignUpEndpoint["path"],
      Omit<SignUpEndpoint["options"], "metadata"> & {
        metadata: { $Infer: { body: Pick<SignUpInput, keyof SignUpInput> } };
      },
      SignUpAnswer
    >;
  };
};

interface Actions {
  tenant: {
    signUp: {
      email<Fields extends Record<string, unknown>>(
        data: SignUpInput & Fields & { fetchOptions?: ClientFetchOption },
        fetchOptions?: ClientFetchOption,
      ): Promise<BetterFetchResponse<SignUpAnswer, { code?: string; message?: string }, false>>;
    };
  };
}

/** The browser's side of `tenantAuth()`: `authClient.tenant.*`, and the tenant on every request. */
export const tenantAuthClient = ({
  tenantId,
  tenantHeader = "x-tenant-id",
}: TenantAuthClientOptions = {}) =>
  ({
    id: "tenant-auth",
    $InferServerPlugin: {} as ServerForClient,
    getActions: () => ({}) as Actions,
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
