import type { BetterAuthOptions, ClientFetchOption } from "@better-auth/core";
import type { DBFieldAttribute } from "@better-auth/core/db";
import type { BetterFetch, BetterFetchResponse } from "@better-fetch/fetch";
import {
  type BetterAuthClientPlugin,
  type InferAdditionalFromClient,
  useAuthQuery,
} from "better-auth/client";
import type { StrictEndpoint } from "better-call";
import type { Failure, WithErrorCodes } from "./core/error-codes";
import { type ErrorCode, TENANT_AUTH_ERROR_CODES } from "./error-codes";
import type { SignUpAnswer, SignUpInput } from "./features/email/routes";
import type { SignInMethods } from "./features/sign-in-page/sign-in-methods";
import type { tenantAuth } from "./plugin";

export { TENANT_AUTH_ERROR_CODES } from "./error-codes";

/** The options of `tenantAuthClient()`. */
export interface TenantAuthClientOptions {
  /** The id of the tenant, or a function that returns it. Sent in a header of every request. */
  tenantId?: string | (() => string | null | undefined);
  /**
   * The header with the tenant's id. Must be the same as the server's option `tenantHeader`.
   * @default "x-tenant-id"
   */
  tenantHeader?: string;
  /** The tenant's slug, instead of the id. Requires `resolveTenantId: bySlug()` on the server. */
  tenantSlug?: string | (() => string | null | undefined);
  /**
   * The header with the slug. Must be the same as the option `header` of the server's `bySlug()`.
   * @default "x-tenant-slug"
   */
  slugHeader?: string;
}

type Server = WithErrorCodes<ReturnType<typeof tenantAuth>, ErrorCode>;
type Endpoints = Server["endpoints"];
type SignUpEndpoint = Endpoints["signUpEmailTenant"];

/** The type of the application's `auth`. */
type Application = { options: BetterAuthOptions };

type Fields = Record<string, DBFieldAttribute>;
type FieldsOf<
  App extends Application,
  Model extends "user" | "session",
> = App["options"][Model] extends { additionalFields: infer Known extends Fields }
  ? Known
  : Record<never, never>;

/** The application's own fields, as the schema of a plugin, so that better-auth infers types. */
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
 * The server's type for better-auth's client, which flattens the type of a body. A body that
 * accepts any additional field would lose its declared fields, so sign-up accepts only known fields
 * here.
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

/** Sign-up with any additional fields, for an application whose fields are not known. */
type SignUpWithAnyFields = <Fields extends Record<string, unknown>>(
  data: SignUpInput & Fields & { fetchOptions?: ClientFetchOption },
  fetchOptions?: ClientFetchOption,
) => Promise<BetterFetchResponse<SignUpAnswer, Failure<ErrorCode>, false>>;

/**
 * The comments that editors show. better-auth infers the types of the calls from paths, which loses
 * the endpoints' comments. `unknown` adds nothing to a type, but keeps its comment.
 */
interface Actions<App extends Application> {
  /** The tenant's name and sign-in methods, as a hook or a store. */
  useSignInMethods: unknown;
  /** Sign-up and sign-in in a tenant, and the management of tenants. */
  tenant: {
    /** Creates a tenant. For managers. */
    create: unknown;
    /** Returns a tenant, by `id` or by `slug`. For managers. */
    get: unknown;
    /** Lists tenants. For managers. */
    list: unknown;
    /** Changes a tenant. For managers. */
    update: unknown;
    /** Deletes a tenant with everything in it, at once or later. For managers. */
    delete: unknown;
    /** Returns the tenant's name and sign-in methods. Public. */
    signInMethods: unknown;
    /** Sign-in in a tenant. */
    signIn: {
      /** Signs in with email and password. */
      email: unknown;
      /** Starts social sign-in: redirects to the provider, unless `disableRedirect` is set. */
      social: unknown;
    };
    /** The tenant's own credentials at OAuth providers. For managers. */
    oauthConfig: {
      /** Creates or replaces the config for a provider. */
      register: unknown;
      /** Lists the configs, without secrets. */
      list: unknown;
      /** Changes parts of a config. */
      update: unknown;
      /** Tries a config, stored or not, without a sign-in. */
      check: unknown;
      /** Deletes the config for a provider. Afterwards the global config applies, if any. */
      delete: unknown;
    };
    /** The users of a tenant. For managers. */
    user: {
      /** Removes a user's second factors, passkeys and trusted devices, and ends their sessions. */
      resetTwoFactor: unknown;
    };
    /** Sign-up in a tenant. */
    signUp: {
      /** Signs up with email and password, and the application's own fields. */
      email: Application extends App ? SignUpWithAnyFields : unknown;
    };
  };
}

/**
 * The client of `tenantAuth()`: `authClient.tenant.*`, and the tenant on every request. With the
 * type of the server, `tenantAuthClient<typeof auth>()`, it knows the application's own fields.
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
      // `useSignInMethods()`: a hook or a store, depending on better-auth's client.
      signInMethods: useAuthQuery<SignInMethods>([], "/tenant/sign-in-methods", $fetch, {
        method: "GET",
      }),
    }),
    $ERROR_CODES: TENANT_AUTH_ERROR_CODES,
    atomListeners: [
      { signal: "$sessionSignal", matcher: (path) => /^\/tenant\/sign-(in|up)\//.test(path) },
    ],
    fetchPlugins: [
      {
        id: "tenant-auth",
        name: "tenant-auth",
        hooks: {
          onRequest(request) {
            const { headers } = request;
            const tenant = { [tenantHeader]: tenantId, [slugHeader]: tenantSlug };
            for (const [header, given] of Object.entries(tenant)) {
              const value = typeof given === "function" ? given() : given;
              // One of the two headers is enough, and a header that is set on the call wins.
              if (value && !headers.has(tenantHeader) && !headers.has(slugHeader)) {
                headers.set(header, value);
              }
            }
            return request;
          },
        },
      },
    ],
  }) satisfies BetterAuthClientPlugin;
