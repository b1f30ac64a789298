import { betterAuth } from "better-auth";
import type { Session, User } from "better-auth/types";
import { describe, expectTypeOf, test } from "vitest";
import {
  type OAuthConfigCheck,
  type SignInMethod,
  type SignInMethods,
  type Tenant,
  type TenantOAuthConfig,
  type TenantPolicy,
  tenantAuth,
} from "../src/index";
import { compiles, type HasAny } from "./support/types";

const createAuth = () =>
  betterAuth({
    user: { additionalFields: { nickname: { type: "string", required: true } } },
    plugins: [tenantAuth()],
  });
declare const auth: ReturnType<typeof createAuth>;

type TenantOf = string | null | undefined;
const person = { name: "Al", email: "al@example.com", password: "secret" };
const credentials = { providerId: "google", clientId: "id", clientSecret: "secret" };

describe("tenants", () => {
  test("Tenant", () => {
    expectTypeOf<Tenant>().toEqualTypeOf<{
      id: string;
      name: string;
      slug: string;
      metadata: Record<string, unknown> | null;
      status: "active" | "suspended" | "deleting";
      deleteAt: Date | null;
      policy: TenantPolicy | null;
      createdAt: Date;
      updatedAt: Date;
    }>();
    expectTypeOf<HasAny<Tenant>>().toEqualTypeOf<false>();
  });

  test("createTenant", () => {
    compiles(async () => {
      const tenant = await auth.api.createTenant({ body: { name: "Acme", slug: "acme" } });
      expectTypeOf(tenant).toEqualTypeOf<Tenant>();
      auth.api.createTenant({ body: { name: "Acme", slug: "acme", metadata: { a: [1, {}] } } });
      auth.api.createTenant({ body: { name: "Acme", slug: "acme", metadata: null } });
      // @ts-expect-error: no name
      auth.api.createTenant({ body: { slug: "acme" } });
      // @ts-expect-error: no slug
      auth.api.createTenant({ body: { name: "Acme" } });
      // @ts-expect-error: no body
      auth.api.createTenant({});
      // @ts-expect-error: no such field
      auth.api.createTenant({ body: { name: "Acme", slug: "acme", id: "mine" } });
      // @ts-expect-error: the name is a string
      auth.api.createTenant({ body: { name: 1, slug: "acme" } });
      // @ts-expect-error: metadata is an object
      auth.api.createTenant({ body: { name: "Acme", slug: "acme", metadata: "pro" } });
      // @ts-expect-error: an array is not
      auth.api.createTenant({ body: { name: "Acme", slug: "acme", metadata: ["pro"] } });
    });
  });

  test("getTenant", () => {
    compiles(async () => {
      expectTypeOf(await auth.api.getTenant({ query: { id: "1" } })).toEqualTypeOf<Tenant>();
      expectTypeOf(await auth.api.getTenant({ query: { slug: "a" } })).toEqualTypeOf<Tenant>();
      // @ts-expect-error: no query
      auth.api.getTenant({});
      // @ts-expect-error: no such field
      auth.api.getTenant({ query: { tenantId: "1" } });
      // @ts-expect-error: the id is a string
      auth.api.getTenant({ query: { id: 1 } });
    });
  });

  test("listTenants", () => {
    compiles(async () => {
      expectTypeOf(await auth.api.listTenants()).toEqualTypeOf<Tenant[]>();
      expectTypeOf(await auth.api.listTenants({ headers: {} })).toEqualTypeOf<Tenant[]>();
    });
  });

  test("updateTenant", () => {
    compiles(async () => {
      const tenant = await auth.api.updateTenant({ body: { tenantId: "1" } });
      expectTypeOf(tenant).toEqualTypeOf<Tenant>();
      auth.api.updateTenant({ body: { tenantId: "1", name: "A", slug: "a", metadata: {} } });
      auth.api.updateTenant({ body: { tenantId: "1", metadata: null } });
      // A tenant's own administrator need not name it.
      auth.api.updateTenant({ body: { name: "Acme" } });
      auth.api.updateTenant({ body: { tenantId: "1", policy: null, endSessions: true } });
      const methods: SignInMethod[] = ["password", "social:google", "passkey"];
      const policy: TenantPolicy = { signUp: "closed", emailDomains: ["acme.com"], methods };
      auth.api.updateTenant({ body: { tenantId: "1", policy } });
      auth.api.createTenant({ body: { name: "Acme", slug: "acme", policy } });
      // @ts-expect-error: no such method
      auth.api.updateTenant({ body: { tenantId: "1", policy: { methods: ["passwort"] } } });
      // @ts-expect-error: no such key
      auth.api.updateTenant({ body: { tenantId: "1", policy: { signup: "closed" } } });
      // @ts-expect-error: the name cannot be cleared
      auth.api.updateTenant({ body: { tenantId: "1", name: null } });
      // @ts-expect-error: no such field
      auth.api.updateTenant({ body: { tenantId: "1", createdAt: new Date() } });
      // @ts-expect-error: metadata is an object
      auth.api.updateTenant({ body: { tenantId: "1", metadata: 1 } });
    });
  });

  test("deleteTenant", () => {
    compiles(async () => {
      const answer = await auth.api.deleteTenant({ body: { tenantId: "1", after: 60 } });
      expectTypeOf(answer).toEqualTypeOf<{
        success: true;
        dryRun?: true;
        rows?: Record<string, number>;
        deleteAt?: Date;
      }>();
      // @ts-expect-error: no tenant
      auth.api.deleteTenant({ body: {} });
      // @ts-expect-error: no such field
      auth.api.deleteTenant({ body: { tenantId: "1", force: true } });
    });
  });
});

describe("sign-in", () => {
  test("signUpEmailTenant", () => {
    compiles(async () => {
      const answer = await auth.api.signUpEmailTenant({ body: { ...person, tenantId: "1" } });
      expectTypeOf(answer.token).toEqualTypeOf<string | null>();
      expectTypeOf(answer.user).toExtend<User>();
      expectTypeOf(answer.user.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf(answer.session).toExtend<Session | null>();
      expectTypeOf(answer.session?.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf<HasAny<typeof answer>>().toEqualTypeOf<false>();

      const { headers, response } = await auth.api.signUpEmailTenant({
        body: { ...person, image: "https://example.com/al.png", rememberMe: false },
        headers: { "x-tenant-id": "1" },
        returnHeaders: true,
      });
      expectTypeOf(headers).toEqualTypeOf<Headers>();
      expectTypeOf(response).toEqualTypeOf<typeof answer>();

      // The application's own fields pass through.
      auth.api.signUpEmailTenant({ body: { ...person, nickname: "Ally" } });
      const { email: _, ...incomplete } = person;
      // @ts-expect-error: no e-mail
      auth.api.signUpEmailTenant({ body: incomplete });
      // @ts-expect-error: rememberMe is a boolean
      auth.api.signUpEmailTenant({ body: { ...person, rememberMe: "yes" } });
      // @ts-expect-error: the tenant is a string
      auth.api.signUpEmailTenant({ body: { ...person, tenantId: 1 } });
    });
  });

  test("signInEmailTenant", () => {
    compiles(async () => {
      const { name: _, ...body } = person;
      const answer = await auth.api.signInEmailTenant({ body });
      expectTypeOf(answer.redirect).toEqualTypeOf<boolean>();
      expectTypeOf(answer.token).toEqualTypeOf<string>();
      expectTypeOf(answer.url).toEqualTypeOf<string | undefined>();
      expectTypeOf(answer.user).toExtend<User>();
      expectTypeOf(answer.user.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf(answer.session).toExtend<Session | null>();
      expectTypeOf(answer.session?.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf<HasAny<typeof answer>>().toEqualTypeOf<false>();
      auth.api.signInEmailTenant({
        body: { ...body, tenantId: "1", callbackURL: "/", rememberMe: false },
      });
      // @ts-expect-error: no password
      auth.api.signInEmailTenant({ body: { email: "al@example.com" } });
      // @ts-expect-error: no such field
      auth.api.signInEmailTenant({ body: { ...body, tenant: "1" } });
    });
  });

  test("signInSocialTenant", () => {
    compiles(async () => {
      const answer = await auth.api.signInSocialTenant({ body: { provider: "google" } });
      expectTypeOf(answer.redirect).toEqualTypeOf<boolean>();
      expectTypeOf<HasAny<typeof answer>>().toEqualTypeOf<false>();
      // Either somewhere to go, or somebody who is signed in.
      if (answer.url !== undefined) expectTypeOf(answer.url).toEqualTypeOf<string>();
      else expectTypeOf(answer.user.tenantId).toEqualTypeOf<TenantOf>();
      auth.api.signInSocialTenant({
        body: {
          provider: "google",
          tenantId: "1",
          callbackURL: "/",
          errorCallbackURL: "/",
          newUserCallbackURL: "/",
          disableRedirect: true,
          scopes: ["email"],
          requestSignUp: true,
          loginHint: "al@example.com",
          additionalParams: { prompt: "consent" },
          additionalData: { from: "campaign" },
          idToken: { token: "token", nonce: "nonce" },
        },
      });
      // A provider of another plugin has a name that is not built in.
      auth.api.signInSocialTenant({ body: { provider: "my-own" } });
      // @ts-expect-error: no provider
      auth.api.signInSocialTenant({ body: { callbackURL: "/" } });
      // @ts-expect-error: the provider is a string
      auth.api.signInSocialTenant({ body: { provider: 1 } });
      // @ts-expect-error: no such field
      auth.api.signInSocialTenant({ body: { provider: "google", providerId: "google" } });
    });
  });

  test("callbackTenantOAuth", () => {
    compiles(async () => {
      const query = { code: "code", state: "state" };
      // It always answers with a redirect, which a call of the server gets as an error.
      expectTypeOf(
        auth.api.callbackTenantOAuth({ method: "GET", params: { id: "google" }, query }),
      ).resolves.toBeNever();
      // @ts-expect-error: no provider
      auth.api.callbackTenantOAuth({ method: "GET", query });
      // @ts-expect-error: no such field
      auth.api.callbackTenantOAuth({ method: "GET", params: { id: "google" }, query: { a: "b" } });
    });
  });
});

describe("OAuth configs", () => {
  test("TenantOAuthConfig has no secret", () => {
    expectTypeOf<TenantOAuthConfig>().toEqualTypeOf<{
      id: string;
      tenantId: string;
      providerId: string;
      clientId: string | null;
      scopes: string[] | null;
      redirectURI: string | null;
      callbackURL: string;
      enabled: boolean;
      options: Record<string, unknown> | null;
      readable: boolean;
      secretChangedAt: Date;
      createdAt: Date;
      updatedAt: Date;
    }>();
    expectTypeOf<TenantOAuthConfig>().not.toHaveProperty("clientSecret");
    expectTypeOf<HasAny<TenantOAuthConfig>>().toEqualTypeOf<false>();
  });

  test("registerTenantOAuthConfig", () => {
    compiles(async () => {
      const config = await auth.api.registerTenantOAuthConfig({ body: credentials });
      expectTypeOf(config).toEqualTypeOf<TenantOAuthConfig>();
      auth.api.registerTenantOAuthConfig({
        body: {
          ...credentials,
          tenantId: "1",
          scopes: ["email"],
          redirectURI: "https://example.com/callback",
          enabled: false,
        },
      });
      const { clientSecret: _, ...incomplete } = credentials;
      // @ts-expect-error: no secret
      auth.api.registerTenantOAuthConfig({ body: incomplete });
      // @ts-expect-error: no such field
      auth.api.registerTenantOAuthConfig({ body: { ...credentials, issuer: "https://a.b" } });
      // @ts-expect-error: scopes are a list
      auth.api.registerTenantOAuthConfig({ body: { ...credentials, scopes: "email" } });
      // @ts-expect-error: enabled is a boolean
      auth.api.registerTenantOAuthConfig({ body: { ...credentials, enabled: "no" } });
    });
  });

  test("listTenantOAuthConfigs", () => {
    compiles(async () => {
      const configs = await auth.api.listTenantOAuthConfigs({ query: { tenantId: "1" } });
      expectTypeOf(configs).toEqualTypeOf<TenantOAuthConfig[]>();
      auth.api.listTenantOAuthConfigs({ headers: { "x-tenant-id": "1" } });
      // @ts-expect-error: no such field
      auth.api.listTenantOAuthConfigs({ query: { id: "1" } });
    });
  });

  test("updateTenantOAuthConfig", () => {
    compiles(async () => {
      const config = await auth.api.updateTenantOAuthConfig({
        body: { providerId: "google", enabled: false, options: { hd: "a.b" }, scopes: null },
      });
      expectTypeOf(config).toEqualTypeOf<TenantOAuthConfig>();
      // @ts-expect-error: the client id is who the client is
      auth.api.updateTenantOAuthConfig({ body: { providerId: "google", clientId: "id" } });
    });
  });

  test("checkTenantOAuthConfig", () => {
    compiles(async () => {
      const check = await auth.api.checkTenantOAuthConfig({ body: { providerId: "google" } });
      expectTypeOf(check).toEqualTypeOf<OAuthConfigCheck>();
      expectTypeOf<HasAny<OAuthConfigCheck>>().toEqualTypeOf<false>();
      // @ts-expect-error: no provider
      auth.api.checkTenantOAuthConfig({ body: {} });
    });
  });

  test("rotateTenantOAuthSecrets", () => {
    compiles(async () => {
      const touched = await auth.api.rotateTenantOAuthSecrets();
      expectTypeOf(touched).toEqualTypeOf<{
        rotated: number;
        upToDate: number;
        unreadable: number;
      }>();
    });
  });

  test("getTenantSignInMethods", () => {
    compiles(async () => {
      const methods = await auth.api.getTenantSignInMethods({ query: { tenantId: "1" } });
      expectTypeOf(methods).toEqualTypeOf<SignInMethods>();
      expectTypeOf<SignInMethods>().toEqualTypeOf<{
        tenant: { id: string; name: string; slug: string; status: Tenant["status"] };
        emailAndPassword: { enabled: boolean; signUp: boolean };
        providers: { id: string; name: string }[];
        sso?: { id: string }[];
      }>();
    });
  });

  test("deleteTenantOAuthConfig", () => {
    compiles(async () => {
      const answer = await auth.api.deleteTenantOAuthConfig({
        body: { tenantId: "1", providerId: "google" },
      });
      expectTypeOf(answer).toEqualTypeOf<{ success: true }>();
      // @ts-expect-error: no provider
      auth.api.deleteTenantOAuthConfig({ body: { tenantId: "1" } });
      // @ts-expect-error: no such field
      auth.api.deleteTenantOAuthConfig({ body: { providerId: "google", clientId: "id" } });
    });
  });
});
