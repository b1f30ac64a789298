import { type BetterAuthPlugin, betterAuth } from "better-auth";
import { admin, organization } from "better-auth/plugins";
import type { Session, User } from "better-auth/types";
import { expectTypeOf, test } from "vitest";
import {
  getTenantId,
  type OAuthConfigCheck,
  runInTenant,
  type SignInMethods,
  type Tenant,
  type TenantAuthOptions,
  type TenantOAuthConfig,
  type TenantPolicy,
  tenantAuth,
} from "../src/index";
import { compiles, type HasAny } from "./support/types";

const createAuth = () =>
  betterAuth({
    user: { additionalFields: { nickname: { type: "string", required: true } } },
    plugins: [tenantAuth(), admin(), organization()],
  });
declare const auth: ReturnType<typeof createAuth>;
declare const api: (typeof auth)["api"];

type TenantOf = string | null | undefined;
const person = { name: "Al", email: "al@example.com", password: "secret" };
const { name: _name, ...credential } = person;
const { email: _email, ...nameless } = person;
const config = { providerId: "google", clientId: "id", clientSecret: "secret" };
const { clientSecret: _secret, ...secretless } = config;
const acme = { name: "Acme", slug: "acme" };

test("HasAny finds any", () => {
  // biome-ignore lint/suspicious/noExplicitAny: this is what it looks for
  expectTypeOf<HasAny<{ a: { b: any }[] }>>().toEqualTypeOf<true>();
  expectTypeOf<HasAny<{ a: { b: unknown; c: Date }[] } | null>>().toEqualTypeOf<false>();
});

test("the types that are exported", () => {
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
  // There is no secret in it.
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
  expectTypeOf<SignInMethods>().toEqualTypeOf<{
    tenant: { id: string; name: string; slug: string; status: Tenant["status"] };
    emailAndPassword: { enabled: boolean; signUp: boolean };
    providers: { id: string; name: string }[];
    sso?: { id: string }[];
  }>();
  expectTypeOf<HasAny<[Tenant, TenantOAuthConfig, OAuthConfigCheck]>>().toEqualTypeOf<false>();
});

test("creating, getting and listing tenants", () => {
  compiles(async () => {
    expectTypeOf(await api.createTenant({ body: acme })).toEqualTypeOf<Tenant>();
    api.createTenant({ body: { ...acme, metadata: { a: [1, {}] } } });
    api.createTenant({ body: { ...acme, metadata: null } });
    // @ts-expect-error: no name
    api.createTenant({ body: { slug: "acme" } });
    // @ts-expect-error: no slug
    api.createTenant({ body: { name: "Acme" } });
    // @ts-expect-error: no body
    api.createTenant({});
    // @ts-expect-error: no such field
    api.createTenant({ body: { ...acme, id: "mine" } });
    // @ts-expect-error: the name is a string
    api.createTenant({ body: { ...acme, name: 1 } });
    // @ts-expect-error: metadata is an object
    api.createTenant({ body: { ...acme, metadata: "pro" } });
    // @ts-expect-error: an array is not
    api.createTenant({ body: { ...acme, metadata: ["pro"] } });

    expectTypeOf(await api.getTenant({ query: { id: "1" } })).toEqualTypeOf<Tenant>();
    expectTypeOf(await api.getTenant({ query: { slug: "a" } })).toEqualTypeOf<Tenant>();
    // @ts-expect-error: no query
    api.getTenant({});
    // @ts-expect-error: no such field
    api.getTenant({ query: { tenantId: "1" } });
    // @ts-expect-error: the id is a string
    api.getTenant({ query: { id: 1 } });

    expectTypeOf(await api.listTenants()).toEqualTypeOf<Tenant[]>();
    expectTypeOf(await api.listTenants({ headers: {} })).toEqualTypeOf<Tenant[]>();
  });
});

test("changing and deleting tenants", () => {
  compiles(async () => {
    const tenantId = "1";
    expectTypeOf(await api.updateTenant({ body: { tenantId } })).toEqualTypeOf<Tenant>();
    api.updateTenant({ body: { tenantId, name: "A", slug: "a", metadata: {} } });
    api.updateTenant({ body: { tenantId, metadata: null } });
    // A tenant's own administrator need not name it.
    api.updateTenant({ body: { name: "Acme" } });
    api.updateTenant({ body: { tenantId, policy: null, endSessions: true } });
    const policy: TenantPolicy = {
      signUp: "closed",
      emailDomains: ["acme.com"],
      methods: ["password", "social:google", "passkey"],
    };
    api.updateTenant({ body: { tenantId, policy } });
    api.createTenant({ body: { ...acme, policy } });
    // @ts-expect-error: no such method
    api.updateTenant({ body: { tenantId, policy: { methods: ["passwort"] } } });
    // @ts-expect-error: no such key
    api.updateTenant({ body: { tenantId, policy: { signup: "closed" } } });
    // @ts-expect-error: the name cannot be cleared
    api.updateTenant({ body: { tenantId, name: null } });
    // @ts-expect-error: no such field
    api.updateTenant({ body: { tenantId, createdAt: new Date() } });
    // @ts-expect-error: metadata is an object
    api.updateTenant({ body: { tenantId, metadata: 1 } });

    type Deleted = { dryRun?: true; rows?: Record<string, number>; deleteAt?: Date };
    const deleted = await api.deleteTenant({ body: { tenantId, after: 60 } });
    expectTypeOf(deleted).branded.toEqualTypeOf<{ success: true } & Deleted>();
    // @ts-expect-error: no tenant
    api.deleteTenant({ body: {} });
    // @ts-expect-error: no such field
    api.deleteTenant({ body: { tenantId, force: true } });
  });
});

test("signing up and in with a password", () => {
  compiles(async () => {
    const answer = await api.signUpEmailTenant({ body: { ...person, tenantId: "1" } });
    expectTypeOf(answer.token).toEqualTypeOf<string | null>();
    expectTypeOf(answer.user).toExtend<User>();
    expectTypeOf(answer.user.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf(answer.session).toExtend<Session | null>();
    expectTypeOf(answer.session?.tenantId).toEqualTypeOf<TenantOf>();
    const { headers, response } = await api.signUpEmailTenant({
      body: { ...person, image: "https://example.com/al.png", rememberMe: false },
      headers: { "x-tenant-id": "1" },
      returnHeaders: true,
    });
    expectTypeOf(headers).toEqualTypeOf<Headers>();
    expectTypeOf(response).toEqualTypeOf<typeof answer>();
    // The application's own fields pass through.
    api.signUpEmailTenant({ body: { ...person, nickname: "Ally" } });
    // @ts-expect-error: no e-mail
    api.signUpEmailTenant({ body: nameless });
    // @ts-expect-error: rememberMe is a boolean
    api.signUpEmailTenant({ body: { ...person, rememberMe: "yes" } });
    // @ts-expect-error: the tenant is a string
    api.signUpEmailTenant({ body: { ...person, tenantId: 1 } });

    const more = { tenantId: "1", callbackURL: "/", rememberMe: false };
    const signedIn = await api.signInEmailTenant({ body: { ...credential, ...more } });
    expectTypeOf(signedIn.redirect).toEqualTypeOf<boolean>();
    expectTypeOf(signedIn.token).toEqualTypeOf<string>();
    expectTypeOf(signedIn.url).toEqualTypeOf<string | undefined>();
    expectTypeOf(signedIn.user).toExtend<User>();
    expectTypeOf(signedIn.user.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf(signedIn.session).toExtend<Session | null>();
    expectTypeOf(signedIn.session?.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf<HasAny<[typeof answer, typeof signedIn]>>().toEqualTypeOf<false>();
    // @ts-expect-error: no password
    api.signInEmailTenant({ body: { email: "al@example.com" } });
    // @ts-expect-error: no such field
    api.signInEmailTenant({ body: { ...credential, tenant: "1" } });
  });
});

test("signing in at a provider", () => {
  compiles(async () => {
    const answer = await api.signInSocialTenant({ body: { provider: "google" } });
    expectTypeOf(answer.redirect).toEqualTypeOf<boolean>();
    expectTypeOf<HasAny<typeof answer>>().toEqualTypeOf<false>();
    // Either somewhere to go, or somebody who is signed in.
    if (answer.url !== undefined) expectTypeOf(answer.url).toEqualTypeOf<string>();
    else expectTypeOf(answer.user.tenantId).toEqualTypeOf<TenantOf>();
    api.signInSocialTenant({
      body: {
        // A provider of another plugin has a name that is not built in.
        provider: "my-own",
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
    // @ts-expect-error: no provider
    api.signInSocialTenant({ body: { callbackURL: "/" } });
    // @ts-expect-error: the provider is a string
    api.signInSocialTenant({ body: { provider: 1 } });
    // @ts-expect-error: no such field
    api.signInSocialTenant({ body: { provider: "google", providerId: "google" } });
  });
  compiles(async () => {
    const [query, params] = [{ code: "code", state: "state" }, { id: "google" }];
    // It always answers with a redirect, which a call of the server gets as an error.
    const called = api.callbackTenantOAuth({ method: "GET", params, query });
    expectTypeOf(called).resolves.toBeNever();
    // @ts-expect-error: no provider
    api.callbackTenantOAuth({ method: "GET", query });
    // @ts-expect-error: no such field
    api.callbackTenantOAuth({ method: "GET", params, query: { a: "b" } });
  });
});

test("OAuth configs", () => {
  compiles(async () => {
    const full = { ...config, tenantId: "1", scopes: ["email"], redirectURI: "https://a.b/c" };
    const made = await api.registerTenantOAuthConfig({ body: { ...full, enabled: false } });
    expectTypeOf(made).toEqualTypeOf<TenantOAuthConfig>();
    // @ts-expect-error: no secret
    api.registerTenantOAuthConfig({ body: secretless });
    // @ts-expect-error: no such field
    api.registerTenantOAuthConfig({ body: { ...config, issuer: "https://a.b" } });
    // @ts-expect-error: scopes are a list
    api.registerTenantOAuthConfig({ body: { ...config, scopes: "email" } });
    // @ts-expect-error: enabled is a boolean
    api.registerTenantOAuthConfig({ body: { ...config, enabled: "no" } });

    const list = await api.listTenantOAuthConfigs({ query: { tenantId: "1" } });
    expectTypeOf(list).toEqualTypeOf<TenantOAuthConfig[]>();
    api.listTenantOAuthConfigs({ headers: { "x-tenant-id": "1" } });
    // @ts-expect-error: no such field
    api.listTenantOAuthConfigs({ query: { id: "1" } });
  });
  compiles(async () => {
    const providerId = "google";
    const change = { providerId, enabled: false, options: { hd: "a.b" }, scopes: null };
    const changed = await api.updateTenantOAuthConfig({ body: change });
    expectTypeOf(changed).toEqualTypeOf<TenantOAuthConfig>();
    // @ts-expect-error: the client id is who the client is
    api.updateTenantOAuthConfig({ body: { providerId, clientId: "id" } });

    const check = await api.checkTenantOAuthConfig({ body: { providerId } });
    expectTypeOf(check).toEqualTypeOf<OAuthConfigCheck>();
    // @ts-expect-error: no provider
    api.checkTenantOAuthConfig({ body: {} });

    type Rotated = { rotated: number; upToDate: number; unreadable: number };
    expectTypeOf(await api.rotateTenantOAuthSecrets()).toEqualTypeOf<Rotated>();
    const methods = await api.getTenantSignInMethods({ query: { tenantId: "1" } });
    expectTypeOf(methods).toEqualTypeOf<SignInMethods>();

    const deleted = await api.deleteTenantOAuthConfig({ body: { tenantId: "1", providerId } });
    expectTypeOf(deleted).toEqualTypeOf<{ success: true }>();
    // @ts-expect-error: no provider
    api.deleteTenantOAuthConfig({ body: { tenantId: "1" } });
    // @ts-expect-error: no such field
    api.deleteTenantOAuthConfig({ body: { providerId, clientId: "id" } });
  });
});

test("users and sessions have a tenant, and everybody else's fields", () => {
  type Inferred = typeof auth.$Infer.Session;
  expectTypeOf<Inferred["session"]["tenantId"]>().toEqualTypeOf<TenantOf>();
  expectTypeOf<Inferred["user"]["tenantId"]>().toEqualTypeOf<TenantOf>();
  expectTypeOf<Inferred["session"]["activeOrganizationId"]>().toEqualTypeOf<TenantOf>();
  expectTypeOf<Inferred["user"]["role"]>().toEqualTypeOf<TenantOf>();
  expectTypeOf<Inferred["user"]["nickname"]>().toEqualTypeOf<string>();
  expectTypeOf<Inferred["user"]["email"]>().toEqualTypeOf<string>();
  expectTypeOf<HasAny<Inferred>>().toEqualTypeOf<false>();
  compiles(async () => {
    const answer = await api.getSession({ headers: new Headers() });
    expectTypeOf(answer?.session.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf(answer?.user.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf<HasAny<typeof answer>>().toEqualTypeOf<false>();

    // Nobody chooses a tenant by better-auth's own sign-up.
    const body = { ...person, nickname: "Ally" };
    const signedUp = await api.signUpEmail({ body });
    expectTypeOf(signedUp.user.tenantId).toEqualTypeOf<TenantOf>();
    // @ts-expect-error: it is not an input
    api.signUpEmail({ body: { ...body, tenantId: "1" } });
    // @ts-expect-error: nickname is required
    api.signUpEmail({ body: person });

    // The other plugins keep their endpoints.
    const users = await api.listUsers({ query: {}, headers: {} });
    expectTypeOf(users.total).toEqualTypeOf<number>();
    const org = await api.createOrganization({ body: { name: "Org", slug: "org" }, headers: {} });
    expectTypeOf(org).not.toBeAny();
    expectTypeOf(org.slug).toEqualTypeOf<string>();
    // @ts-expect-error: no such endpoint
    api.createTenants;
  });
  type Codes = typeof auth.$ERROR_CODES;
  expectTypeOf<Codes["TENANT_NOT_FOUND"]["code"]>().toEqualTypeOf<"TENANT_NOT_FOUND">();
  expectTypeOf<Codes>().toHaveProperty("USER_NOT_FOUND");
  // @ts-expect-error: no such code
  expectTypeOf<Codes["TENANT_NOT_THERE"]>();
});

test("the plugin is one, is known to the context, and runs code in a tenant", () => {
  expectTypeOf(tenantAuth()).toExtend<BetterAuthPlugin>();
  expectTypeOf(tenantAuth().id).toEqualTypeOf<"tenant-auth">();
  expectTypeOf(tenantAuth).parameters.toEqualTypeOf<[TenantAuthOptions?]>();
  expectTypeOf(getTenantId).toEqualTypeOf<() => string | null>();
  compiles(async () => {
    const tenants = runInTenant("1", () => api.listTenants());
    expectTypeOf(tenants).toEqualTypeOf<Promise<Tenant[]>>();
    // @ts-expect-error: which tenant
    runInTenant(null, async () => {});
    const context = await auth.$context;
    expectTypeOf(context.getPlugin("tenant-auth")).not.toBeAny();
    expectTypeOf(context.getPlugin("tenant-auth")).toExtend<{ id: "tenant-auth" } | null>();
  });
});

test("options", () => {
  compiles(() => {
    tenantAuth();
    tenantAuth({});
    tenantAuth({
      resolveTenantId: ({ headers, request, path, context }) => {
        expectTypeOf(headers).toEqualTypeOf<Headers | undefined>();
        expectTypeOf(request).toEqualTypeOf<Request | undefined>();
        expectTypeOf(path).toEqualTypeOf<string | undefined>();
        expectTypeOf(context).not.toBeAny();
        return headers?.get("host")?.split(".")[0];
      },
      canManageTenants: async (ctx, { action, tenantId, session }) => {
        expectTypeOf(ctx).not.toBeAny();
        expectTypeOf(tenantId).toEqualTypeOf<string | undefined>();
        expectTypeOf(session?.session.tenantId).toEqualTypeOf<TenantOf>();
        expectTypeOf(session?.user.role).toEqualTypeOf<TenantOf>();
        // @ts-expect-error: no such action
        if (action === "tenant:rename") return false;
        return action === "tenant:list";
      },
      tenantHeader: "x-organisation",
      adminUserIds: ["1"],
      adminRoles: ["owner"],
      reservedSlugs: ["www"],
      keepEmailGloballyUnique: true,
      sessionCookies: "per-tenant",
      scopedModels: ["organization"],
      sharedModels: ["passkey"],
    });
  });
  compiles(() => {
    tenantAuth({
      schema: {
        tenant: { modelName: "organisations", fields: { slug: "handle" } },
        tenantOauthConfig: { fields: { clientSecret: "client_secret" } },
        user: { fields: { tenantId: "tenant_id" } },
        organization: { fields: { tenantId: "tenant_id" } },
      },
    });
    tenantAuth({ resolveTenantId: async () => null });
    // @ts-expect-error: no such option
    tenantAuth({ header: "x-organisation" });
    // @ts-expect-error: a list
    tenantAuth({ adminRoles: "admin" });
    // @ts-expect-error: a string
    tenantAuth({ resolveTenantId: () => 1 });
    // @ts-expect-error: an answer
    tenantAuth({ canManageTenants: () => undefined });
    // @ts-expect-error: shared or per-tenant
    tenantAuth({ sessionCookies: "both" });
    // @ts-expect-error: no such model
    tenantAuth({ schema: { tenants: { modelName: "organisations" } } });
    // @ts-expect-error: no such field
    tenantAuth({ schema: { tenant: { fields: { title: "name" } } } });
  });
});
