import type { BetterAuthOptions, ClientFetchOption } from "@better-auth/core";
import type { DBFieldAttribute } from "@better-auth/core/db";
import type { BetterFetch, BetterFetchResponse } from "@better-fetch/fetch";
import {
  type BetterAuthClientPlugin,
  type InferAdditionalFromClient,
  useAuthQuery,
} from "better-auth/client";
import type { StrictEndpoint } from "better-call";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import type { tenantAuth } from "./plugin";
import type { SignInMethods } from "./policy/sign-in-methods";
import type { SignUpAnswer, SignUpInput } from "./request/tenant-routes";

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
  /**
   * The same by the tenant's slug, as pages at `/t/acme` know it. The server needs `bySlug()` for
   * it: `tenantAuth({ resolveTenantId: bySlug() })`.
   */
  tenantSlug?: string | (() => string | null | undefined);
  /**
   * The header that the slug goes in; the option `header` of the server's `bySlug()`.
   * @default "x-tenant-slug"
   */
  slugHeader?: string;
}

type Server = ReturnType<typeof tenantAuth>;
type Endpoints = Server["endpoints"];
type SignUpEndpoint = Endpoints["signUpEmailTenant"];

/** The application's `auth`, as far as types go. */
type Application = { options: BetterAuthOptions };
type IsKnown<App extends Application> = Application extends App ? false : true;

type Fields = Record<string, DBFieldAttribute>;
type FieldsOf<
  App extends Application,
  Model extends "user" | "session",
> = App["options"][Model] extends { additionalFields: infer Known extends Fields }
  ? Known
  : Record<never, never>;

/** The application's own fields, as the schema of a plugin: better-auth infers from there. */
type SchemaOf<App extends Application> = {
  user: { fields: FieldsOf<App, "user"> };
  session: { fields: FieldsOf<App, "session"> };
};
type AdditionalFields<App extends Application> = InferAdditionalFromClient<
  { plugins: { id: string; $InferServerPlugin: { schema: Pick<SchemaOf<App>, "user"> } }[] },
  "user",
  "input"
>;
type SignUpBody<App extends Application> = SignUpInput & AdditionalFields<App>;

/**
 * The server as the client's types see it. better-auth's client flattens the type of a body, and a
 * body that takes any field besides its own loses its own on the way: so here sign-up takes the
 * fields that are known.
 */
type ServerForClient<App extends Application> = Omit<Server, "endpoints" | "schema"> & {
  schema: Server["schema"] & SchemaOf<App>;
  endpoints: Omit<Endpoints, "signUpEmailTenant"> & {
    signUpEmailTenant: StrictEndpoint<
      SignUpEndpoint["path"],
      Omit<SignUpEndpoint["options"], "metadata"> & {
        metadata: { $Infer: { body: Pick<SignUpBody<App>, keyof SignUpBody<App>> } };
      },
      SignUpAnswer
    >;
  };
};

/** Sign-up at an application whose fields are not known: it takes any. */
type SignUpWithAnyFields = <Fields extends Record<string, unknown>>(
  data: SignUpInput & Fields & { fetchOptions?: ClientFetchOption },
  fetchOptions?: ClientFetchOption,
) => Promise<BetterFetchResponse<SignUpAnswer, { code?: string; message?: string }, false>>;

/**
 * What editors say about the calls. Their types come from the server's endpoints by way of the paths,
 * and comments get lost there. `unknown` adds nothing to a type, but its comment stays.
 */
interface Actions<App extends Application> {
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
      email: IsKnown<App> extends true ? unknown : SignUpWithAnyFields;
    };
  };
}

/**
 * The browser's side of `tenantAuth()`: `authClient.tenant.*`, and the tenant on every request. With
 * the type of the server, `tenantAuthClient<typeof auth>()`, it knows the application's own fields.
 */
export const tenantAuthClient = <App extends Application = Application>({
  tenantId,
  tenantHeader = "x-tenant-id",
  tenantSlug,
  slugHeader = "x-tenant-slug",
}: TenantAuthClientOptions = {}) =>
  ({
    id: "tenant-auth",
    $InferServerPlugin: {} as ServerForClient<App>,
    getActions: () => ({}) as Actions<App>,
    getAtoms: ($fetch: BetterFetch) => ({
      // `useSignInMethods()`, and a store of that name where better-auth has stores, not hooks.
      signInMethods: useAuthQuery<SignInMethods>([], "/tenant/sign-in-methods", $fetch, {
        method: "GET",
      }),
    }),
    $ERROR_CODES: TENANT_AUTH_ERROR_CODES,
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
            const { headers } = request;
            const names = { [tenantHeader]: tenantId, [slugHeader]: tenantSlug };
            for (const header in names) {
              const given = names[header];
              const name = typeof given === "function" ? given() : given;
              // One name is enough, and one that is set on the call wins.
              if (name && !headers.has(tenantHeader) && !headers.has(slugHeader)) {
                headers.set(header, name);
              }
            }
            return request;
          },
        },
      },
    ],
  }) satisfies BetterAuthClientPlugin;
