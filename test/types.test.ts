import { type BetterAuthPlugin, betterAuth } from "better-auth";
import { type BetterAuthClientPlugin, createAuthClient } from "better-auth/client";
import { adminClient, inferAdditionalFields, organizationClient } from "better-auth/client/plugins";
import { admin, organization } from "better-auth/plugins";
import type { createAuthClient as createForReact } from "better-auth/react";
import type { createAuthClient as createForSolid } from "better-auth/solid";
import type { createAuthClient as createForSvelte } from "better-auth/svelte";
import type { Session, User } from "better-auth/types";
import type { createAuthClient as createForVue } from "better-auth/vue";
import { expectTypeOf, test } from "vitest";
import {
  type TENANT_AUTH_ERROR_CODES,
  type TenantAuthClientOptions,
  tenantAuthClient,
} from "../src/client";
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

type IsAny<T> = 0 extends 1 & T ? true : false;

/** True where `any` hides in a type or in one of its fields, however deep. */
type HasAny<T> =
  IsAny<T> extends true
    ? true
    : T extends Date | ((...args: never) => unknown)
      ? false
      : T extends readonly (infer Item)[]
        ? HasAny<Item>
        : T extends object
          ? true extends { [Key in keyof T]-?: HasAny<T[Key]> }[keyof T]
            ? true
            : false
          : false;

/**
 * Code for the compiler only: `npm run typecheck` reads it, nobody runs it. Lines that have to be
 * refused stand under a `@ts-expect-error`, which is an error itself when they are not.
 */
function compiles(_code: () => unknown): void {}

const createAuth = () =>
  betterAuth({
    user: { additionalFields: { nickname: { type: "string", required: true } } },
    plugins: [tenantAuth(), admin(), organization()],
  });
declare const auth: ReturnType<typeof createAuth>;
declare const api: (typeof auth)["api"];

const clientOptions = () => ({
  plugins: [
    tenantAuthClient(),
    adminClient(),
    organizationClient(),
    inferAdditionalFields({ user: { nickname: { type: "string", required: false } } }),
  ],
});
const createClient = () => createAuthClient(clientOptions());
// The frameworks themselves are not needed to look at the types of their clients.
const createReactClient = (create: typeof createForReact) => create(clientOptions());
const createVueClient = (create: typeof createForVue) => create(clientOptions());
const createSvelteClient = (create: typeof createForSvelte) => create(clientOptions());
const createSolidClient = (create: typeof createForSolid) => create(clientOptions());
declare const authClient: ReturnType<typeof createClient>;
declare const tenant: (typeof authClient)["tenant"];
declare const reactClient: ReturnType<typeof createReactClient>;
declare const vueClient: ReturnType<typeof createVueClient>;
declare const svelteClient: ReturnType<typeof createSvelteClient>;
declare const solidClient: ReturnType<typeof createSolidClient>;

const createTeams = () =>
  betterAuth({
    user: {
      additionalFields: {
        team: { type: "string" },
        level: { type: "number", required: false },
        score: { type: "number", required: false, input: false },
      },
    },
    session: { additionalFields: { device: { type: "string", required: false } } },
    plugins: [tenantAuth()],
  });
const createTeamClient = () =>
  createAuthClient({ plugins: [tenantAuthClient<ReturnType<typeof createTeams>>()] });
declare const teamClient: ReturnType<typeof createTeamClient>;

type TenantOf = string | null | undefined;
const person = { name: "Al", email: "al@example.com", password: "secret" };
const { name: _name, ...credential } = person;
const { email: _email, ...nameless } = person;
const config = { providerId: "google", clientId: "id", clientSecret: "secret" };
const { clientSecret: _secret, ...secretless } = config;
const acme = { name: "Acme", slug: "acme" };
const tenantId = "1";
const providerId = "google";

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

test("tenants, on the server", () => {
  compiles(async () => {
    const policy: TenantPolicy = {
      signUp: "closed",
      emailDomains: ["acme.com"],
      methods: ["password", "social:google", "passkey"],
    };
    expectTypeOf(await api.createTenant({ body: { ...acme, policy } })).toEqualTypeOf<Tenant>();
    api.createTenant({ body: { ...acme, metadata: { a: [1, {}] } } });
    // @ts-expect-error: no slug
    api.createTenant({ body: { name: "Acme" } });
    // @ts-expect-error: no such field
    api.createTenant({ body: { ...acme, id: "mine" } });
    // @ts-expect-error: metadata is an object
    api.createTenant({ body: { ...acme, metadata: ["pro"] } });
    expectTypeOf(await api.getTenant({ query: { slug: "a" } })).toEqualTypeOf<Tenant>();
    // @ts-expect-error: no such field
    api.getTenant({ query: { tenantId } });
    expectTypeOf(await api.listTenants()).toEqualTypeOf<Tenant[]>();

    // A tenant's own administrator need not name it.
    expectTypeOf(await api.updateTenant({ body: { name: "A" } })).toEqualTypeOf<Tenant>();
    api.updateTenant({ body: { tenantId, policy: null, metadata: null, endSessions: true } });
    // @ts-expect-error: no such method
    api.updateTenant({ body: { tenantId, policy: { methods: ["passwort"] } } });
    // @ts-expect-error: no such key
    api.updateTenant({ body: { tenantId, policy: { signup: "closed" } } });
    // @ts-expect-error: the name cannot be cleared
    api.updateTenant({ body: { tenantId, name: null } });

    type Deleted = { dryRun?: true; rows?: Record<string, number>; deleteAt?: Date };
    const deleted = await api.deleteTenant({ body: { tenantId, after: 60 } });
    expectTypeOf(deleted).branded.toEqualTypeOf<{ success: true } & Deleted>();
    // @ts-expect-error: no tenant
    api.deleteTenant({ body: {} });
  });
});

test("tenants, on the client", () => {
  compiles(async () => {
    const { data, error } = await tenant.create({ ...acme, fetchOptions: { headers: {} } });
    expectTypeOf(data).toEqualTypeOf<Tenant | null>();
    expectTypeOf(error?.code).toEqualTypeOf<string | undefined>();
    expectTypeOf(error?.status).toEqualTypeOf<number | undefined>();
    const thrown = await tenant.create({ ...acme, fetchOptions: { throw: true } });
    expectTypeOf(thrown).toEqualTypeOf<Tenant>();
    // @ts-expect-error: no slug
    tenant.create({ name: "Acme" });
    const got = await tenant.get({ query: { id: "1" } });
    expectTypeOf(got.data).toEqualTypeOf<Tenant | null>();
    // @ts-expect-error: it is a query
    tenant.get({ id: "1" });
    const query = { limit: 20, offset: 40, search: "acme", sort: "-createdAt" } as const;
    expectTypeOf((await tenant.list()).data).toEqualTypeOf<Tenant[] | null>();
    tenant.list({ query });
    // @ts-expect-error: a tenant has no age
    tenant.list({ query: { sort: "age" } });
    const changed = await tenant.update({ tenantId, status: "suspended" });
    expectTypeOf(changed.data).toEqualTypeOf<Tenant | null>();
    // @ts-expect-error: that has a time, and goes through delete
    tenant.update({ tenantId, status: "deleting" });
    const deleted = await tenant.delete({ tenantId, dryRun: true });
    expectTypeOf(deleted.data?.rows).toEqualTypeOf<Record<string, number> | undefined>();
    // @ts-expect-error: seconds are a number
    tenant.delete({ tenantId, after: "3600" });
  });
});

test("signing up and in, on the server", () => {
  compiles(async () => {
    const answer = await api.signUpEmailTenant({ body: { ...person, tenantId } });
    expectTypeOf(answer.token).toEqualTypeOf<string | null>();
    expectTypeOf(answer.user).toExtend<User>();
    expectTypeOf(answer.user.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf(answer.session).toExtend<Session | null>();
    expectTypeOf(answer.session?.tenantId).toEqualTypeOf<TenantOf>();
    const { headers, response } = await api.signUpEmailTenant({
      body: { ...person, image: "https://example.com/al.png", rememberMe: false },
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

    const signedIn = await api.signInEmailTenant({ body: { ...credential, callbackURL: "/" } });
    expectTypeOf(signedIn.token).toEqualTypeOf<string>();
    expectTypeOf(signedIn.url).toEqualTypeOf<string | undefined>();
    expectTypeOf(signedIn.user).toExtend<User>();
    expectTypeOf(signedIn.session?.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf<HasAny<[typeof answer, typeof signedIn]>>().toEqualTypeOf<false>();
    // @ts-expect-error: no such field
    api.signInEmailTenant({ body: { ...credential, tenant: "1" } });
  });
  compiles(async () => {
    // A provider of another plugin has a name that is not built in.
    const body = { provider: "my-own", idToken: { token: "token", nonce: "nonce" } };
    const answer = await api.signInSocialTenant({ body });
    expectTypeOf<HasAny<typeof answer>>().toEqualTypeOf<false>();
    // Either somewhere to go, or somebody who is signed in.
    if (answer.url !== undefined) expectTypeOf(answer.url).toEqualTypeOf<string>();
    else expectTypeOf(answer.user.tenantId).toEqualTypeOf<TenantOf>();
    // @ts-expect-error: no provider
    api.signInSocialTenant({ body: { callbackURL: "/" } });
    const [query, params] = [{ code: "code", state: "state" }, { id: "google" }];
    // It always answers with a redirect, which a call of the server gets as an error.
    const called = api.callbackTenantOAuth({ method: "GET", params, query });
    expectTypeOf(called).resolves.toBeNever();
    const methods = await api.getTenantSignInMethods({ query: { tenantId } });
    expectTypeOf(methods).toEqualTypeOf<SignInMethods>();
  });
});

test("signing up and in, on the client", () => {
  compiles(async () => {
    const body = { ...person, tenantId, rememberMe: false, fetchOptions: { headers: {} } };
    const { data } = await tenant.signUp.email(body);
    expectTypeOf(data?.token).toEqualTypeOf<string | null | undefined>();
    expectTypeOf(data?.user.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf(data?.user.nickname).toEqualTypeOf<TenantOf>();
    expectTypeOf(data?.session?.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf<NonNullable<typeof data>["user"]>().toExtend<User>();
    // The application's own fields pass through.
    tenant.signUp.email({ ...person, nickname: "Ally" });
    // @ts-expect-error: no e-mail
    tenant.signUp.email(nameless);

    const signedIn = await tenant.signIn.email({ ...credential, rememberMe: false });
    expectTypeOf(signedIn.data?.url).toEqualTypeOf<string | undefined>();
    expectTypeOf(signedIn.data?.session?.tenantId).toEqualTypeOf<TenantOf>();
    // @ts-expect-error: no such field
    tenant.signIn.email({ ...credential, tenant: "1" });
    const social = await tenant.signIn.social({ provider: "my-own", disableRedirect: true });
    expectTypeOf(social.data?.url).toEqualTypeOf<string | undefined>();
    type All = [typeof data, typeof signedIn.data, typeof social.data];
    expectTypeOf<HasAny<All>>().toEqualTypeOf<false>();
    // @ts-expect-error: no provider
    tenant.signIn.social({ callbackURL: "/" });
    const methods = await tenant.signInMethods();
    expectTypeOf(methods.data).toEqualTypeOf<SignInMethods | null>();
    // @ts-expect-error: no such field
    tenant.signInMethods({ query: { slug: "acme" } });
  });
});

test("signing up at an application whose fields are known", () => {
  compiles(async () => {
    const { email } = teamClient.tenant.signUp;
    const { data } = await email({ ...person, team: "blue", level: 1 });
    expectTypeOf(data?.user.team).toEqualTypeOf<string | undefined>();
    expectTypeOf(data?.user.level).toEqualTypeOf<number | null | undefined>();
    expectTypeOf(data?.session?.device).toEqualTypeOf<TenantOf>();
    expectTypeOf<HasAny<typeof data>>().toEqualTypeOf<false>();
    email({ ...person, team: "blue" }, { headers: {} });
    // @ts-expect-error: no team
    email(person);
    // @ts-expect-error: misspelt
    email({ ...person, team: "blue", levle: 1 });
    // @ts-expect-error: the server sets it
    email({ ...person, team: "blue", score: 1 });
  });
  // It takes the same fields as better-auth's own.
  type Own = Parameters<typeof teamClient.signUp.email>[0];
  type Ours = Parameters<typeof teamClient.tenant.signUp.email>[0];
  expectTypeOf<Pick<Ours, "team" | "level">>().toEqualTypeOf<Pick<Own, "team" | "level">>();
});

test("OAuth configs", () => {
  compiles(async () => {
    const full = { ...config, tenantId, scopes: ["email"], redirectURI: "https://a.b/c" };
    const made = await api.registerTenantOAuthConfig({ body: { ...full, enabled: false } });
    expectTypeOf(made).toEqualTypeOf<TenantOAuthConfig>();
    // @ts-expect-error: no secret
    api.registerTenantOAuthConfig({ body: secretless });
    const list = await api.listTenantOAuthConfigs({ query: { tenantId } });
    expectTypeOf(list).toEqualTypeOf<TenantOAuthConfig[]>();
    api.listTenantOAuthConfigs({ headers: { "x-tenant-id": tenantId } });
    const change = { providerId, enabled: false, options: { hd: "a.b" }, scopes: null };
    const changed = await api.updateTenantOAuthConfig({ body: change });
    expectTypeOf(changed).toEqualTypeOf<TenantOAuthConfig>();
    // @ts-expect-error: the client id is who the client is
    api.updateTenantOAuthConfig({ body: { providerId, clientId: "id" } });
    const check = await api.checkTenantOAuthConfig({ body: { providerId } });
    expectTypeOf(check).toEqualTypeOf<OAuthConfigCheck>();
    type Rotated = { rotated: number; upToDate: number; unreadable: number };
    expectTypeOf(await api.rotateTenantOAuthSecrets()).toEqualTypeOf<Rotated>();
    const deleted = await api.deleteTenantOAuthConfig({ body: { tenantId, providerId } });
    expectTypeOf(deleted).toEqualTypeOf<{ success: true }>();
  });
  compiles(async () => {
    const { register, list, update, check, delete: remove } = tenant.oauthConfig;
    expectTypeOf((await register(config)).data).toEqualTypeOf<TenantOAuthConfig | null>();
    // @ts-expect-error: no secret
    register(secretless);
    expectTypeOf((await list()).data).toEqualTypeOf<TenantOAuthConfig[] | null>();
    const changed = await update({ providerId, options: { hd: "a.b" } });
    expectTypeOf(changed.data).toEqualTypeOf<TenantOAuthConfig | null>();
    expectTypeOf((await check({ providerId })).data).toEqualTypeOf<OAuthConfigCheck | null>();
    expectTypeOf((await remove({ providerId })).data).toEqualTypeOf<{ success: true } | null>();
  });
});

test("what is no call of the client", () => {
  expectTypeOf<typeof tenant>().not.toHaveProperty("callback");
  expectTypeOf<typeof tenant>().not.toHaveProperty("rotate");
  expectTypeOf<typeof authClient>().not.toHaveProperty("rotateTenantOAuthSecrets");
  // @ts-expect-error: no such call
  compiles(() => tenant.rename);
});

test("users and sessions have a tenant, and everybody else's fields", () => {
  type OnServer = typeof auth.$Infer.Session;
  type OnClient = typeof authClient.$Infer.Session;
  for (const inferred of [{} as OnServer, {} as OnClient]) {
    compiles(() => {
      expectTypeOf(inferred.session.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf(inferred.user.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf(inferred.session.activeOrganizationId).toEqualTypeOf<TenantOf>();
      expectTypeOf(inferred.user.role).toEqualTypeOf<TenantOf>();
    });
  }
  expectTypeOf<OnServer["user"]["nickname"]>().toEqualTypeOf<string>();
  expectTypeOf<HasAny<[OnServer, OnClient]>>().toEqualTypeOf<false>();
  compiles(async () => {
    const answer = await api.getSession({ headers: new Headers() });
    expectTypeOf(answer?.session.tenantId).toEqualTypeOf<TenantOf>();
    // Nobody chooses a tenant by better-auth's own sign-up.
    const body = { ...person, nickname: "Ally" };
    expectTypeOf((await api.signUpEmail({ body })).user.tenantId).toEqualTypeOf<TenantOf>();
    // @ts-expect-error: it is not an input
    api.signUpEmail({ body: { ...body, tenantId } });
    // The other plugins keep their endpoints.
    const org = await api.createOrganization({ body: { name: "Org", slug: "org" }, headers: {} });
    expectTypeOf(org.slug).toEqualTypeOf<string>();
    // @ts-expect-error: no such endpoint
    api.createTenants;
  });
  compiles(async () => {
    const { data } = await authClient.getSession();
    expectTypeOf<HasAny<typeof data>>().toEqualTypeOf<false>();
    expectTypeOf(data?.session.tenantId).toEqualTypeOf<TenantOf>();
    const state = authClient.useSession.get().data;
    const inReact = reactClient.useSession().data;
    expectTypeOf([state?.session.tenantId, state?.user.tenantId]).toEqualTypeOf<TenantOf[]>();
    expectTypeOf([inReact?.session.tenantId, inReact?.user.tenantId]).toEqualTypeOf<TenantOf[]>();
    // The other plugins keep their calls.
    const created = await authClient.organization.create({ name: "Org", slug: "org" });
    expectTypeOf(created.data?.slug).toEqualTypeOf<string | undefined>();
  });
});

test("error codes", () => {
  type OnServer = typeof auth.$ERROR_CODES;
  type OnClient = typeof authClient.$ERROR_CODES;
  expectTypeOf<OnServer["TENANT_NOT_FOUND"]["code"]>().toEqualTypeOf<"TENANT_NOT_FOUND">();
  expectTypeOf<OnClient["TENANT_NOT_FOUND"]["code"]>().toEqualTypeOf<"TENANT_NOT_FOUND">();
  expectTypeOf<OnServer>().toHaveProperty("USER_NOT_FOUND");
  expectTypeOf<keyof typeof TENANT_AUTH_ERROR_CODES>().toExtend<keyof OnClient>();
  // @ts-expect-error: no such code
  expectTypeOf<OnServer["TENANT_NOT_THERE"]>();
});

test("useSignInMethods answers with them, as a hook, a ref, a store or an accessor", () => {
  expectTypeOf<typeof reactClient.tenant>().toEqualTypeOf<typeof authClient.tenant>();
  compiles(() => {
    const inReact = reactClient.useSignInMethods();
    expectTypeOf(inReact.data).toEqualTypeOf<SignInMethods | null>();
    expectTypeOf(inReact.isPending).toEqualTypeOf<boolean>();
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
  });
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

test("options of the server", () => {
  compiles(() => {
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
      adminRoles: ["owner"],
      sessionCookies: "per-tenant",
      schema: {
        tenant: { modelName: "organisations", fields: { slug: "handle" } },
        user: { fields: { tenantId: "tenant_id" } },
        organization: { fields: { tenantId: "tenant_id" } },
      },
    });
    // @ts-expect-error: no such option
    tenantAuth({ header: "x-organisation" });
    // @ts-expect-error: a string
    tenantAuth({ resolveTenantId: () => 1 });
    // @ts-expect-error: an answer
    tenantAuth({ canManageTenants: () => undefined });
    // @ts-expect-error: no such model
    tenantAuth({ schema: { tenants: { modelName: "organisations" } } });
    // @ts-expect-error: no such field
    tenantAuth({ schema: { tenant: { fields: { title: "name" } } } });
  });
});

test("options of the client", () => {
  expectTypeOf(tenantAuthClient()).toExtend<BetterAuthClientPlugin>();
  expectTypeOf(tenantAuthClient).parameters.toEqualTypeOf<[TenantAuthClientOptions?]>();
  compiles(() => {
    tenantAuthClient({ tenantId: "1", tenantHeader: "x-organisation" });
    tenantAuthClient({ tenantId: () => null });
    tenantAuthClient({ tenantId: () => undefined });
    // @ts-expect-error: the header has to be set at once
    tenantAuthClient({ tenantId: async () => "1" });
    // @ts-expect-error: no such option
    tenantAuthClient({ header: "x-organisation" });
  });
});
