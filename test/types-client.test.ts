import { betterAuth } from "better-auth";
import { type BetterAuthClientPlugin, createAuthClient } from "better-auth/client";
import { adminClient, inferAdditionalFields, organizationClient } from "better-auth/client/plugins";
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
  type OAuthConfigCheck,
  type SignInMethods,
  type Tenant,
  type TenantOAuthConfig,
  tenantAuth,
} from "../src/index";
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

test("tenants", () => {
  compiles(async () => {
    const { data, error } = await tenant.create({ ...acme, fetchOptions: { headers: {} } });
    expectTypeOf(data).toEqualTypeOf<Tenant | null>();
    expectTypeOf(error?.code).toEqualTypeOf<string | undefined>();
    expectTypeOf(error?.status).toEqualTypeOf<number | undefined>();
    const thrown = await tenant.create({ ...acme, fetchOptions: { throw: true } });
    expectTypeOf(thrown).toEqualTypeOf<Tenant>();
    tenant.create({ ...acme, metadata: { plan: ["pro"] } });
    // @ts-expect-error: no slug
    tenant.create({ name: "Acme" });
    // @ts-expect-error: nothing
    tenant.create();

    const got = await tenant.get({ query: { id: "1" } });
    expectTypeOf(got.data).toEqualTypeOf<Tenant | null>();
    tenant.get({ query: { slug: "acme" } });
    // @ts-expect-error: no query
    tenant.get();
    // @ts-expect-error: it is a query
    tenant.get({ id: "1" });
  });
  compiles(async () => {
    const query = { limit: 20, offset: 40, search: "acme", sort: "-createdAt" } as const;
    expectTypeOf((await tenant.list()).data).toEqualTypeOf<Tenant[] | null>();
    expectTypeOf((await tenant.list({ query })).data).toEqualTypeOf<Tenant[] | null>();
    tenant.list({ query: { limit: "20" } });
    // @ts-expect-error: a tenant has no age
    tenant.list({ query: { sort: "age" } });
    // @ts-expect-error: a number
    tenant.list({ query: { limit: true } });
    // @ts-expect-error: it is a query
    tenant.list({ limit: 20 });
  });
});

test("changing and deleting tenants", () => {
  compiles(async () => {
    const tenantId = "1";
    const changed = await tenant.update({ tenantId, metadata: null });
    expectTypeOf(changed.data).toEqualTypeOf<Tenant | null>();
    // A tenant's own administrator need not name it.
    tenant.update({ name: "Acme" });
    tenant.update({ policy: { signUp: "invited", methods: ["social:google"] } });
    tenant.update({ tenantId, policy: null, endSessions: true });
    tenant.update({ tenantId, status: "suspended" });
    // @ts-expect-error: no such field
    tenant.update({ tenantId, createdAt: new Date() });
    // @ts-expect-error: that has a time, and goes through delete
    tenant.update({ tenantId, status: "deleting" });

    const { data } = await tenant.delete({ tenantId, dryRun: true });
    expectTypeOf(data).toExtend<{ success: true } | null>();
    expectTypeOf(data?.rows).toEqualTypeOf<Record<string, number> | undefined>();
    tenant.delete({ tenantId, after: 3600 });
    // @ts-expect-error: seconds are a number
    tenant.delete({ tenantId, after: "3600" });
    // @ts-expect-error: no tenant
    tenant.delete({});
  });
});

test("signing up", () => {
  compiles(async () => {
    const more = { tenantId: "1", image: "https://example.com/al.png", callbackURL: "/" };
    const fetchOptions = { headers: {} };
    const body = { ...person, ...more, rememberMe: false, fetchOptions };
    const { data } = await tenant.signUp.email(body);
    expectTypeOf(data?.token).toEqualTypeOf<string | null | undefined>();
    expectTypeOf(data?.user.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf(data?.user.nickname).toEqualTypeOf<TenantOf>();
    expectTypeOf(data?.session?.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf<NonNullable<typeof data>["user"]>().toExtend<User>();
    expectTypeOf<NonNullable<typeof data>["session"]>().toExtend<Session | null>();
    expectTypeOf<HasAny<typeof data>>().toEqualTypeOf<false>();
    // The application's own fields pass through.
    tenant.signUp.email({ ...person, nickname: "Ally" });
    // @ts-expect-error: no e-mail
    tenant.signUp.email(nameless);
    // @ts-expect-error: nothing
    tenant.signUp.email();
    // @ts-expect-error: rememberMe is a boolean
    tenant.signUp.email({ ...person, rememberMe: "yes" });
  });
});

test("signing up at an application whose fields are known", () => {
  compiles(async () => {
    const { email } = teamClient.tenant.signUp;
    const { data } = await email({ ...person, team: "blue", level: 1 });
    expectTypeOf(data?.user.team).toEqualTypeOf<string | undefined>();
    expectTypeOf(data?.user.level).toEqualTypeOf<number | null | undefined>();
    expectTypeOf(data?.user.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf(data?.session?.device).toEqualTypeOf<TenantOf>();
    expectTypeOf<HasAny<typeof data>>().toEqualTypeOf<false>();
    email({ ...person, team: "blue" }, { headers: {} });
    // @ts-expect-error: no team
    email(person);
    // @ts-expect-error: a team is a string
    email({ ...person, team: 1 });
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

test("signing in", () => {
  compiles(async () => {
    const { data } = await tenant.signIn.email({ ...credential, rememberMe: false });
    expectTypeOf(data?.redirect).toEqualTypeOf<boolean | undefined>();
    expectTypeOf(data?.url).toEqualTypeOf<string | undefined>();
    expectTypeOf(data?.token).toEqualTypeOf<string | undefined>();
    expectTypeOf(data?.user.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf(data?.session?.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf<NonNullable<typeof data>["user"]>().toExtend<User>();
    // @ts-expect-error: no password
    tenant.signIn.email({ email: "al@example.com" });
    // @ts-expect-error: no such field
    tenant.signIn.email({ ...credential, tenant: "1" });

    const more = { tenantId: "1", callbackURL: "/", disableRedirect: true, scopes: ["email"] };
    const social = await tenant.signIn.social({ provider: "my-own", ...more });
    expectTypeOf(social.data?.redirect).toEqualTypeOf<boolean | undefined>();
    expectTypeOf(social.data?.url).toEqualTypeOf<string | undefined>();
    expectTypeOf<HasAny<[typeof data, typeof social.data]>>().toEqualTypeOf<false>();
    // @ts-expect-error: no provider
    tenant.signIn.social({ callbackURL: "/" });
    // @ts-expect-error: no such field
    tenant.signIn.social({ provider: "google", providerId: "google" });

    const methods = await tenant.signInMethods({ query: { tenantId: "1" } });
    expectTypeOf(methods.data).toEqualTypeOf<SignInMethods | null>();
    tenant.signInMethods();
    // @ts-expect-error: no such field
    tenant.signInMethods({ query: { slug: "acme" } });
  });
});

test("OAuth configs", () => {
  compiles(async () => {
    const { register, list, update, check, delete: remove } = tenant.oauthConfig;
    const providerId = "google";
    expectTypeOf((await register(config)).data).toEqualTypeOf<TenantOAuthConfig | null>();
    // @ts-expect-error: no secret
    register(secretless);
    expectTypeOf((await list()).data).toEqualTypeOf<TenantOAuthConfig[] | null>();
    list({ query: { tenantId: "1" } });
    // @ts-expect-error: no such field
    list({ query: { id: "1" } });
    const changed = await update({ providerId, options: { hd: "a.b" } });
    expectTypeOf(changed.data).toEqualTypeOf<TenantOAuthConfig | null>();
    // @ts-expect-error: the client id is who the client is
    update({ providerId, clientId: "id" });
    expectTypeOf((await check({ providerId })).data).toEqualTypeOf<OAuthConfigCheck | null>();
    check({ ...config, options: null });
    // @ts-expect-error: no provider
    check({ tenantId: "1" });
    expectTypeOf((await remove({ providerId })).data).toEqualTypeOf<{ success: true } | null>();
    // @ts-expect-error: no provider
    remove({ tenantId: "1" });
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
  type Inferred = typeof authClient.$Infer.Session;
  expectTypeOf<Inferred["session"]["tenantId"]>().toEqualTypeOf<TenantOf>();
  expectTypeOf<Inferred["user"]["tenantId"]>().toEqualTypeOf<TenantOf>();
  expectTypeOf<Inferred["session"]["activeOrganizationId"]>().toEqualTypeOf<TenantOf>();
  expectTypeOf<Inferred["user"]["role"]>().toEqualTypeOf<TenantOf>();
  expectTypeOf<Inferred["user"]["nickname"]>().toEqualTypeOf<TenantOf>();
  expectTypeOf<HasAny<Inferred>>().toEqualTypeOf<false>();
  compiles(async () => {
    const { data } = await authClient.getSession();
    expectTypeOf<HasAny<typeof data>>().toEqualTypeOf<false>();
    expectTypeOf(data?.session.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf(data?.user.tenantId).toEqualTypeOf<TenantOf>();
    const state = authClient.useSession.get().data;
    const inReact = reactClient.useSession().data;
    expectTypeOf([state?.session.tenantId, state?.user.tenantId]).toEqualTypeOf<TenantOf[]>();
    expectTypeOf([inReact?.session.tenantId, inReact?.user.tenantId]).toEqualTypeOf<TenantOf[]>();
    // The other plugins keep their calls.
    const users = await authClient.admin.listUsers({ query: {} });
    expectTypeOf(users.data?.total).toEqualTypeOf<number | undefined>();
    const created = await authClient.organization.create({ name: "Org", slug: "org" });
    expectTypeOf(created.data?.slug).toEqualTypeOf<string | undefined>();
  });
  type Codes = typeof authClient.$ERROR_CODES;
  expectTypeOf<Codes["TENANT_NOT_FOUND"]["code"]>().toEqualTypeOf<"TENANT_NOT_FOUND">();
  expectTypeOf<keyof typeof TENANT_AUTH_ERROR_CODES>().toExtend<keyof Codes>();
  // @ts-expect-error: no such code
  expectTypeOf<Codes["TENANT_NOT_THERE"]>();
});

test("useSignInMethods answers with them, as a hook, a ref, a store or an accessor", () => {
  expectTypeOf<typeof reactClient.tenant>().toEqualTypeOf<typeof authClient.tenant>();
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
