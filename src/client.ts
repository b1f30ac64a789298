import type { ClientFetchOption } from "@better-auth/core";
import type { BetterFetch, BetterFetchResponse } from "@better-fetch/fetch";
import { type BetterAuthClientPlugin, useAuthQuery } from "better-auth/client";
import type { StrictEndpoint } from "better-call";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import type { tenantAuth } from "./plugin";
import type { SignInMethods, SignUpAnswer, SignUpInput } from "./routes/sign-in";

export { TENANT_AUTH_ERROR_CODES } from "./error-codes";

/** The options of `tenantAuthClient()`. */
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

/**
 * Sign-up with the application's own fields; and what editors say about the other calls. Their types
 * come from the server's endpoints by way of the paths, and comments get lost there. `unknown` adds
 * nothing to a type, but its comment stays.
 */
interface Actions {
  /** What the tenant's sign-in page offers, and the tenant's name, as a hook or as a store. */
  useSignInMethods: unknown;
  /** Tenants: their people's sign-up and sign-in, and for managers the tenants themselves. */
  tenant: {
    /** Creates a tenant. For managers. */
    create: unknown;
    /** A tenant, by `id` or by `slug`. For managers. */
    get: unknown;
    /** Lists tenants. For managers. */
    list: unknown;
    /** Changes the name, the slug, the metadata or the status of a tenant. For managers. */
    update: unknown;
    /** Deletes a tenant with all that is in it, at once or later. For managers. */
    delete: unknown;
    /** What the tenant's sign-in page offers, and the tenant's name. For everybody. */
    signInMethods: unknown;
    /** Sign-in under a tenant. */
    signIn: {
      /** Signs in with e-mail and password. */
      email: unknown;
      /** Starts social sign-in: the page goes to the provider, unless `disableRedirect` is set. */
      social: unknown;
    };
    /** The tenant's own credentials at OAuth providers. For managers. */
    oauthConfig: {
      /** Creates the config for a provider, or replaces it. */
      register: unknown;
      /** Lists the configs, without secrets. */
      list: unknown;
      /** Changes some of a config and leaves the rest. */
      update: unknown;
      /** Tries a config, stored or not, without signing anybody in. */
      check: unknown;
      /** Deletes the config for a provider: the global one is used from then on, if there is one. */
      delete: unknown;
    };
    /** Sign-up under a tenant. */
    signUp: {
      /** Signs up with e-mail and password, and with the application's own fields. */
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
    getAtoms: ($fetch: BetterFetch) => ({
      // `useSignInMethods()`, and a store of that name where better-auth has stores, not hooks.
      signInMethods: useAuthQuery<SignInMethods>([], "/tenant/sign-in-methods", $fetch, {
        method: "GET",
      }),
    }),
    $ERROR_CODES: TENANT_AUTH_ERROR_CODES,
    // Calls without arguments would be sent as GET or POST by guess.
    pathMethods: {
      "/tenant/list": "GET",
      "/tenant/get": "GET",
      "/tenant/oauth-config/list": "GET",
      "/tenant/sign-in-methods": "GET",
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
