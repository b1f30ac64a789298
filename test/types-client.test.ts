import { type BetterAuthClientPlugin, createAuthClient } from "better-auth/client";
import { adminClient, inferAdditionalFields, organizationClient } from "better-auth/client/plugins";
import type { createAuthClient as createForReact } from "better-auth/react";
import type { createAuthClient as createForSolid } from "better-auth/solid";
import type { createAuthClient as createForSvelte } from "better-auth/svelte";
import type { Session, User } from "better-auth/types";
import type { createAuthClient as createForVue } from "better-auth/vue";
import { describe, expectTypeOf, test } from "vitest";
import {
  type TENANT_AUTH_ERROR_CODES,
  type TenantAuthClientOptions,
  tenantAuthClient,
} from "../src/client";
import type { OAuthConfigCheck, SignInMethods, Tenant, TenantOAuthConfig } from "../src/index";
import { compiles, type HasAny } from "./support/types";

const options = () => ({
  plugins: [
    tenantAuthClient(),
    adminClient(),
    organizationClient(),
    inferAdditionalFields({ user: { nickname: { type: "string", required: false } } }),
  ],
});
const createClient = () => createAuthClient(options());
// The frameworks themselves are not needed to look at the types of their clients.
const createReactClient = (create: typeof createForReact) => create(options());
const createVueClient = (create: typeof createForVue) => create(options());
const createSvelteClient = (create: typeof createForSvelte) => create(options());
const createSolidClient = (create: typeof createForSolid) => create(options());
declare const authClient: ReturnType<typeof createClient>;
declare const reactClient: ReturnType<typeof createReactClient>;
declare const vueClient: ReturnType<typeof createVueClient>;
declare const svelteClient: ReturnType<typeof createSvelteClient>;
declare const solidClient: ReturnType<typeof createSolidClient>;

type TenantOf = string | null | undefined;
const person = { name: "Al", email: "al@example.com", password: "secret" };
const credentials = { providerId: "google", clientId: "id", clientSecret: "secret" };

describe("tenants", () => {
  test("create", () => {
    compiles(async () => {
      const { data, error } = await authClient.tenant.create({ name: "Acme", slug: "acme" });
      expectTypeOf(data).toEqualTypeOf<Tenant | null>();
      expectTypeOf(error?.code).toEqualTypeOf<string | undefined>();
      expectTypeOf(error?.status).toEqualTypeOf<number | undefined>();
      authClient.tenant.create({ name: "Acme", slug: "acme", metadata: { plan: ["pro"] } });
      authClient.tenant.create({ name: "Acme", slug: "acme", fetchOptions: { headers: {} } });
      // @ts-expect-error: no slug
      authClient.tenant.create({ name: "Acme" });
      // @ts-expect-error: nothing
      authClient.tenant.create();
      // @ts-expect-error: no such field
      authClient.tenant.create({ name: "Acme", slug: "acme", id: "mine" });
      // @ts-expect-error: metadata is an object
      authClient.tenant.create({ name: "Acme", slug: "acme", metadata: "pro" });
    });
  });

  test("get", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.get({ query: { id: "1" } });
      expectTypeOf(data).toEqualTypeOf<Tenant | null>();
      authClient.tenant.get({ query: { slug: "acme" } });
      // @ts-expect-error: no query
      authClient.tenant.get();
      // @ts-expect-error: no such field
      authClient.tenant.get({ query: { tenantId: "1" } });
      // @ts-expect-error: it is a query
      authClient.tenant.get({ id: "1" });
    });
  });

  test("list", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.list();
      expectTypeOf(data).toEqualTypeOf<Tenant[] | null>();
      const query = { limit: 20, offset: 40, search: "acme", sort: "-createdAt" } as const;
      const page = await authClient.tenant.list({ query });
      expectTypeOf(page.data).toEqualTypeOf<Tenant[] | null>();
      authClient.tenant.list({ query: { limit: "20" } });
      // @ts-expect-error: a tenant has no age
      authClient.tenant.list({ query: { sort: "age" } });
      // @ts-expect-error: a number
      authClient.tenant.list({ query: { limit: true } });
      // @ts-expect-error: it is a query
      authClient.tenant.list({ limit: 20 });
    });
  });

  test("update", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.update({ tenantId: "1", metadata: null });
      expectTypeOf(data).toEqualTypeOf<Tenant | null>();
      // A tenant's own administrator need not name it.
      authClient.tenant.update({ name: "Acme" });
      authClient.tenant.update({ policy: { signUp: "invited", methods: ["social:google"] } });
      authClient.tenant.update({ tenantId: "1", policy: null, endSessions: true });
      // @ts-expect-error: no such method
      authClient.tenant.update({ policy: { methods: ["passwort"] } });
      // @ts-expect-error: no such key
      authClient.tenant.update({ policy: { signup: "closed" } });
      // @ts-expect-error: no such field
      authClient.tenant.update({ tenantId: "1", createdAt: new Date() });
      // @ts-expect-error: metadata is an object
      authClient.tenant.update({ tenantId: "1", metadata: 1 });
    });
  });

  test("delete", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.delete({ tenantId: "1" });
      expectTypeOf(data).toEqualTypeOf<{ success: true } | null>();
      // @ts-expect-error: no tenant
      authClient.tenant.delete({});
    });
  });
});

describe("sign-in", () => {
  test("signUp.email answers with user and session", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.signUp.email({ ...person, tenantId: "1" });
      expectTypeOf(data?.token).toEqualTypeOf<string | null | undefined>();
      expectTypeOf(data?.user.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf(data?.user.nickname).toEqualTypeOf<TenantOf>();
      expectTypeOf(data?.session?.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf<NonNullable<typeof data>["user"]>().toExtend<User>();
      expectTypeOf<NonNullable<typeof data>["session"]>().toExtend<Session | null>();
      expectTypeOf<HasAny<typeof data>>().toEqualTypeOf<false>();
    });
  });

  test("signUp.email takes what the server takes", () => {
    compiles(() => {
      authClient.tenant.signUp.email({
        ...person,
        tenantId: "1",
        image: "https://example.com/al.png",
        callbackURL: "/",
        rememberMe: false,
        fetchOptions: { headers: {} },
      });
      // The application's own fields pass through.
      authClient.tenant.signUp.email({ ...person, nickname: "Ally" });
      const { email: _, ...incomplete } = person;
      // @ts-expect-error: no e-mail
      authClient.tenant.signUp.email(incomplete);
      // @ts-expect-error: nothing
      authClient.tenant.signUp.email();
      // @ts-expect-error: the e-mail is a string
      authClient.tenant.signUp.email({ ...person, email: 1 });
      // @ts-expect-error: rememberMe is a boolean
      authClient.tenant.signUp.email({ ...person, rememberMe: "yes" });
    });
  });

  test("signIn.email", () => {
    compiles(async () => {
      const { name: _, ...body } = person;
      const { data } = await authClient.tenant.signIn.email({ ...body, rememberMe: false });
      expectTypeOf(data?.redirect).toEqualTypeOf<boolean | undefined>();
      expectTypeOf(data?.url).toEqualTypeOf<string | undefined>();
      expectTypeOf(data?.token).toEqualTypeOf<string | undefined>();
      expectTypeOf(data?.user.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf(data?.session?.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf<NonNullable<typeof data>["user"]>().toExtend<User>();
      expectTypeOf<HasAny<typeof data>>().toEqualTypeOf<false>();
      // @ts-expect-error: no password
      authClient.tenant.signIn.email({ email: "al@example.com" });
      // @ts-expect-error: no such field
      authClient.tenant.signIn.email({ ...body, tenant: "1" });
    });
  });

  test("signIn.social", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.signIn.social({ provider: "google" });
      expectTypeOf(data?.redirect).toEqualTypeOf<boolean | undefined>();
      expectTypeOf(data?.url).toEqualTypeOf<string | undefined>();
      expectTypeOf<HasAny<typeof data>>().toEqualTypeOf<false>();
      authClient.tenant.signIn.social({
        provider: "my-own",
        tenantId: "1",
        callbackURL: "/",
        disableRedirect: true,
        scopes: ["email"],
      });
      // @ts-expect-error: no provider
      authClient.tenant.signIn.social({ callbackURL: "/" });
      // @ts-expect-error: the provider is a string
      authClient.tenant.signIn.social({ provider: 1 });
      // @ts-expect-error: no such field
      authClient.tenant.signIn.social({ provider: "google", providerId: "google" });
    });
  });

  test("signInMethods", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.signInMethods();
      expectTypeOf(data).toEqualTypeOf<SignInMethods | null>();
      authClient.tenant.signInMethods({ query: { tenantId: "1" } });
      // @ts-expect-error: no such field
      authClient.tenant.signInMethods({ query: { slug: "acme" } });
    });
  });

  test("the callback is no call of the client", () => {
    expectTypeOf<typeof authClient.tenant>().not.toHaveProperty("callback");
  });
});

describe("OAuth configs", () => {
  test("register", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.oauthConfig.register(credentials);
      expectTypeOf(data).toEqualTypeOf<TenantOAuthConfig | null>();
      const { clientSecret: _, ...incomplete } = credentials;
      // @ts-expect-error: no secret
      authClient.tenant.oauthConfig.register(incomplete);
      // @ts-expect-error: no such field
      authClient.tenant.oauthConfig.register({ ...credentials, issuer: "https://a.b" });
      // @ts-expect-error: scopes are a list
      authClient.tenant.oauthConfig.register({ ...credentials, scopes: "email" });
    });
  });

  test("list", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.oauthConfig.list();
      expectTypeOf(data).toEqualTypeOf<TenantOAuthConfig[] | null>();
      authClient.tenant.oauthConfig.list({ query: { tenantId: "1" } });
      // @ts-expect-error: no such field
      authClient.tenant.oauthConfig.list({ query: { id: "1" } });
    });
  });

  test("update", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.oauthConfig.update({
        providerId: "google",
        options: { hd: "a.b" },
      });
      expectTypeOf(data).toEqualTypeOf<TenantOAuthConfig | null>();
      // @ts-expect-error: the client id is who the client is
      authClient.tenant.oauthConfig.update({ providerId: "google", clientId: "id" });
      // @ts-expect-error: no provider
      authClient.tenant.oauthConfig.update({ enabled: false });
    });
  });

  test("check", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.oauthConfig.check({ providerId: "google" });
      expectTypeOf(data).toEqualTypeOf<OAuthConfigCheck | null>();
      authClient.tenant.oauthConfig.check({ ...credentials, options: null });
      // @ts-expect-error: no provider
      authClient.tenant.oauthConfig.check({ tenantId: "1" });
    });
  });

  test("secrets are not rotated from outside", () => {
    expectTypeOf<typeof authClient.tenant>().not.toHaveProperty("rotate");
    expectTypeOf<typeof authClient>().not.toHaveProperty("rotateTenantOAuthSecrets");
  });

  test("delete", () => {
    compiles(async () => {
      const { data } = await authClient.tenant.oauthConfig.delete({ providerId: "google" });
      expectTypeOf(data).toEqualTypeOf<{ success: true } | null>();
      // @ts-expect-error: no provider
      authClient.tenant.oauthConfig.delete({ tenantId: "1" });
    });
  });
});

describe("inference", () => {
  test("users and sessions have a tenant", () => {
    type Inferred = typeof authClient.$Infer.Session;
    expectTypeOf<Inferred["session"]["tenantId"]>().toEqualTypeOf<TenantOf>();
    expectTypeOf<Inferred["user"]["tenantId"]>().toEqualTypeOf<TenantOf>();
    // The other plugins' fields and the application's are still there.
    expectTypeOf<Inferred["session"]["activeOrganizationId"]>().toEqualTypeOf<TenantOf>();
    expectTypeOf<Inferred["user"]["role"]>().toEqualTypeOf<TenantOf>();
    expectTypeOf<Inferred["user"]["nickname"]>().toEqualTypeOf<TenantOf>();
    expectTypeOf<HasAny<Inferred>>().toEqualTypeOf<false>();
  });

  test("getSession and useSession answer with them", () => {
    compiles(async () => {
      const { data } = await authClient.getSession();
      expectTypeOf(data?.session.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf(data?.user.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf<HasAny<typeof data>>().toEqualTypeOf<false>();
      const state = authClient.useSession.get().data;
      expectTypeOf(state?.session.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf(state?.user.tenantId).toEqualTypeOf<TenantOf>();
    });
  });

  test("the other plugins keep their calls", () => {
    compiles(async () => {
      const { data } = await authClient.admin.listUsers({ query: {} });
      expectTypeOf(data?.total).toEqualTypeOf<number | undefined>();
      const created = await authClient.organization.create({ name: "Org", slug: "org" });
      expectTypeOf(created.data?.slug).toEqualTypeOf<string | undefined>();
      // @ts-expect-error: no such call
      authClient.tenant.rename;
    });
  });

  test("with `throw` the data comes alone", () => {
    compiles(async () => {
      const fetchOptions = { throw: true } as const;
      const tenant = await authClient.tenant.create({ name: "A", slug: "a", fetchOptions });
      expectTypeOf(tenant).toEqualTypeOf<Tenant>();
    });
  });

  test("error codes", () => {
    type Codes = typeof authClient.$ERROR_CODES;
    expectTypeOf<Codes["TENANT_NOT_FOUND"]["code"]>().toEqualTypeOf<"TENANT_NOT_FOUND">();
    expectTypeOf<keyof typeof TENANT_AUTH_ERROR_CODES>().toExtend<keyof Codes>();
    // @ts-expect-error: no such code
    expectTypeOf<Codes["TENANT_NOT_THERE"]>();
  });

  test("useSignInMethods answers with them, as a hook, a ref, a store or an accessor", () => {
    compiles(() => {
      const inReact = reactClient.useSignInMethods();
      expectTypeOf(inReact.data).toEqualTypeOf<SignInMethods | null>();
      expectTypeOf(inReact.isPending).toEqualTypeOf<boolean>();
      expectTypeOf(inReact.error?.message).toEqualTypeOf<string | undefined>();
      expectTypeOf(inReact.error?.status).toEqualTypeOf<number | undefined>();
      expectTypeOf(inReact.refetch).returns.toEqualTypeOf<Promise<void>>();
      expectTypeOf<HasAny<typeof inReact.data>>().toEqualTypeOf<false>();

      const inVue = vueClient.useSignInMethods().value;
      expectTypeOf(inVue.data?.tenant.name).toEqualTypeOf<string | undefined>();
      const inSvelte = svelteClient.useSignInMethods().get();
      expectTypeOf(inSvelte.data).toEqualTypeOf<SignInMethods | null>();
      const inSolid = solidClient.useSignInMethods()();
      expectTypeOf(inSolid.data).toEqualTypeOf<SignInMethods | null>();
      const plain = authClient.useSignInMethods.get();
      expectTypeOf(plain.data).toEqualTypeOf<SignInMethods | null>();
      // @ts-expect-error: no such field
      inReact.data?.password;
    });
  });

  test("React's client has the same calls", () => {
    expectTypeOf<typeof reactClient.tenant>().toEqualTypeOf<typeof authClient.tenant>();
    compiles(() => {
      const { data } = reactClient.useSession();
      expectTypeOf(data?.session.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf(data?.user.tenantId).toEqualTypeOf<TenantOf>();
    });
  });
});

test("options", () => {
  expectTypeOf(tenantAuthClient()).toExtend<BetterAuthClientPlugin>();
  expectTypeOf(tenantAuthClient).parameters.toEqualTypeOf<[TenantAuthClientOptions?]>();
  compiles(() => {
    tenantAuthClient({ tenantId: "1", tenantHeader: "x-organisation" });
    tenantAuthClient({ tenantId: () => null });
    tenantAuthClient({ tenantId: () => undefined });
    // @ts-expect-error: a string
    tenantAuthClient({ tenantId: 1 });
    // @ts-expect-error: the header has to be set at once
    tenantAuthClient({ tenantId: async () => "1" });
    // @ts-expect-error: no such option
    tenantAuthClient({ header: "x-organisation" });
  });
});
