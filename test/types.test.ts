import { type BetterAuthPlugin, betterAuth } from "better-auth";
import { type BetterAuthClientPlugin, createAuthClient } from "better-auth/client";
import { adminClient, inferAdditionalFields, organizationClient } from "better-auth/client/plugins";
import { admin, organization } from "better-auth/plugins";
import { createAccessControl } from "better-auth/plugins/access";
import { adminAc } from "better-auth/plugins/admin/access";
import type { createAuthClient as createForReact } from "better-auth/react";
import type { createAuthClient as createForSolid } from "better-auth/solid";
import type { createAuthClient as createForSvelte } from "better-auth/svelte";
import type { Session, User } from "better-auth/types";
import type { createAuthClient as createForVue } from "better-auth/vue";
import { expectTypeOf, test } from "vitest";
import { type TENANT_AUTH_ERROR_CODES, tenantAuthClient } from "../src/client";
import { tenantInvitations } from "../src/features/invitations";
import { tenantInvitationsClient } from "../src/features/invitations/client";
import type { TENANT_INVITATION_ERROR_CODES } from "../src/features/invitations/error-codes";
import {
  getTenantId,
  type OAuthConfigCheck,
  runInTenant,
  type SignInMethods,
  type Tenant,
  type TenantOAuthConfig,
  type TenantOAuthOptions,
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
declare const authClient: ReturnType<typeof createClient>;
declare const tenant: (typeof authClient)["tenant"];
// The frameworks themselves are not needed to look at the types of their clients.
declare const forReact: typeof createForReact;
declare const forVue: typeof createForVue;
declare const forSvelte: typeof createForSvelte;
declare const forSolid: typeof createForSolid;

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
  expectTypeOf<HasAny<[Tenant, TenantOAuthConfig, OAuthConfigCheck]>>().toEqualTypeOf<false>();
  expectTypeOf<TenantOAuthConfig>().not.toHaveProperty("clientSecret");
});

test("tenants", () => {
  compiles(async () => {
    expectTypeOf(await api.createTenant({ body: acme })).toEqualTypeOf<Tenant>();
    // @ts-expect-error: no slug
    api.createTenant({ body: { name: "Acme" } });
    // @ts-expect-error: no such field
    api.createTenant({ body: { ...acme, id: "mine" } });
    expectTypeOf(await api.getTenant({ query: { slug: "a" } })).toEqualTypeOf<Tenant>();
    expectTypeOf(await api.listTenants()).toEqualTypeOf<Tenant[]>();
    // A tenant's own administrator need not name it.
    expectTypeOf(await api.updateTenant({ body: { name: "A" } })).toEqualTypeOf<Tenant>();
    // @ts-expect-error: no such method
    api.updateTenant({ body: { tenantId, policy: { methods: ["passwort"] } } });
    // @ts-expect-error: no such key
    api.updateTenant({ body: { tenantId, policy: { signup: "closed" } } });
    type Deleted = { dryRun?: true; rows?: Record<string, number>; deleteAt?: Date };
    const deleted = await api.deleteTenant({ body: { tenantId, after: 60 } });
    expectTypeOf(deleted).branded.toEqualTypeOf<{ success: true } & Deleted>();
  });
  compiles(async () => {
    const { data, error } = await tenant.create({ ...acme, fetchOptions: { headers: {} } });
    expectTypeOf(data).toEqualTypeOf<Tenant | null>();
    // Codes are suggested, and those of other plugins accepted.
    type Code = keyof typeof TENANT_AUTH_ERROR_CODES | (string & {}) | undefined;
    expectTypeOf(error?.code).toEqualTypeOf<Code>();
    expectTypeOf((await tenant.signIn.email(credential)).error?.code).toEqualTypeOf<Code>();
    expectTypeOf((await tenant.signUp.email(person)).error?.code).toEqualTypeOf<Code>();
    expectTypeOf(error?.status).toEqualTypeOf<number | undefined>();
    const thrown = await tenant.create({ ...acme, fetchOptions: { throw: true } });
    expectTypeOf(thrown).toEqualTypeOf<Tenant>();
    // @ts-expect-error: no slug
    tenant.create({ name: "Acme" });
    const got = await tenant.get({ query: { id: "1" } });
    expectTypeOf(got.data).toEqualTypeOf<Tenant | null>();
    expectTypeOf((await tenant.list()).data).toEqualTypeOf<Tenant[] | null>();
    const changed = await tenant.update({ tenantId, status: "suspended" });
    expectTypeOf(changed.data).toEqualTypeOf<Tenant | null>();
    // @ts-expect-error: that has a time, and goes through delete
    tenant.update({ tenantId, status: "deleting" });
    const deleted = await tenant.delete({ tenantId, dryRun: true });
    expectTypeOf(deleted.data?.rows).toEqualTypeOf<Record<string, number> | undefined>();
  });
});

test("signing up and in, on the server", () => {
  compiles(async () => {
    // The application's own fields pass through.
    const body = { ...person, nickname: "Ally" };
    const answer = await api.signUpEmailTenant({ body });
    expectTypeOf(answer.token).toEqualTypeOf<string | null>();
    expectTypeOf(answer.user).toExtend<User>();
    expectTypeOf(answer.session).toExtend<Session | null>();
    expectTypeOf([answer.user.tenantId, answer.session?.tenantId]).toEqualTypeOf<TenantOf[]>();
    const { headers, response } = await api.signUpEmailTenant({ body, returnHeaders: true });
    expectTypeOf(headers).toEqualTypeOf<Headers>();
    expectTypeOf(response).toEqualTypeOf<typeof answer>();
    // @ts-expect-error: no e-mail
    api.signUpEmailTenant({ body: nameless });

    const signedIn = await api.signInEmailTenant({ body: { ...credential, callbackURL: "/" } });
    expectTypeOf([signedIn.token, signedIn.url]).toEqualTypeOf<(string | undefined)[]>();
    expectTypeOf(signedIn.user).toExtend<User>();
    expectTypeOf(signedIn.session?.tenantId).toEqualTypeOf<TenantOf>();
    // @ts-expect-error: no such field
    api.signInEmailTenant({ body: { ...credential, tenant: "1" } });

    // A provider of another plugin has a name that is not built in.
    const social = await api.signInSocialTenant({ body: { provider: "my-own" } });
    // Either somewhere to go, or somebody who is signed in.
    if (social.url !== undefined) expectTypeOf(social.url).toEqualTypeOf<string>();
    else expectTypeOf(social.user.tenantId).toEqualTypeOf<TenantOf>();
    type All = [typeof answer, typeof signedIn, typeof social];
    expectTypeOf<HasAny<All>>().toEqualTypeOf<false>();
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
    const { data } = await tenant.signUp.email({ ...person, fetchOptions: { headers: {} } });
    expectTypeOf(data?.token).toEqualTypeOf<TenantOf>();
    expectTypeOf([data?.user.tenantId, data?.session?.tenantId]).toEqualTypeOf<TenantOf[]>();
    expectTypeOf(data?.user.nickname).toEqualTypeOf<TenantOf>();
    expectTypeOf<NonNullable<typeof data>["user"]>().toExtend<User>();
    // The application's own fields pass through.
    tenant.signUp.email({ ...person, nickname: "Ally" });
    // @ts-expect-error: no e-mail
    tenant.signUp.email(nameless);
    const signedIn = await tenant.signIn.email({ ...credential, rememberMe: false });
    expectTypeOf(signedIn.data?.url).toEqualTypeOf<string | undefined>();
    expectTypeOf(signedIn.data?.session?.tenantId).toEqualTypeOf<TenantOf>();
    const social = await tenant.signIn.social({ provider: "my-own", disableRedirect: true });
    expectTypeOf(social.data?.url).toEqualTypeOf<string | undefined>();
    type All = [typeof data, typeof signedIn.data, typeof social.data];
    expectTypeOf<HasAny<All>>().toEqualTypeOf<false>();
    expectTypeOf((await tenant.signInMethods()).data).toEqualTypeOf<SignInMethods | null>();
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
    const made = await api.registerTenantOAuthConfig({ body: config });
    expectTypeOf(made).toEqualTypeOf<TenantOAuthConfig>();
    // @ts-expect-error: no secret
    api.registerTenantOAuthConfig({ body: secretless });
    const list = await api.listTenantOAuthConfigs({ headers: { "x-tenant-id": tenantId } });
    expectTypeOf(list).toEqualTypeOf<TenantOAuthConfig[]>();
    const changed = await api.updateTenantOAuthConfig({ body: { providerId, scopes: null } });
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
    expectTypeOf((await list()).data).toEqualTypeOf<TenantOAuthConfig[] | null>();
    expectTypeOf((await update({ providerId })).data).toEqualTypeOf<TenantOAuthConfig | null>();
    expectTypeOf((await check({ providerId })).data).toEqualTypeOf<OAuthConfigCheck | null>();
    expectTypeOf((await remove({ providerId })).data).toEqualTypeOf<{ success: true } | null>();
  });
  // Options of a known provider are suggested. In a form, the provider is not known.
  type Known<Input> = Extract<Input, { providerId: "microsoft" }>;
  type Options = TenantOAuthOptions<"microsoft"> | null | undefined;
  const { register, check, update } = {} as typeof tenant.oauthConfig;
  expectTypeOf<Known<Parameters<typeof register>[0]>["options"]>().toEqualTypeOf<Options>();
  expectTypeOf<Known<Parameters<typeof check>[0]>["options"]>().toEqualTypeOf<Options>();
  expectTypeOf<Known<Parameters<typeof update>[0]>["options"]>().toEqualTypeOf<Options>();
  compiles(() => check({ providerId: String(providerId), options: { [String(name)]: 1 } }));
  ({ tenantId: "common", prompt: "login" }) satisfies Options;
  // @ts-expect-error: not an option of this provider
  ({ tenantID: "common" }) satisfies Options;
  // @ts-expect-error: a tenant can only tighten what the application allows
  ({ disableSignUp: false }) satisfies Options;
  // They are no calls of the client.
  expectTypeOf<typeof tenant>().not.toHaveProperty("callback");
  expectTypeOf<typeof tenant>().not.toHaveProperty("rotate");
  expectTypeOf<typeof authClient>().not.toHaveProperty("rotateTenantOAuthSecrets");
  // @ts-expect-error: no such call
  compiles(() => tenant.rename);
});

test("users and sessions have a tenant, and everybody else's fields", () => {
  type OnServer = typeof auth.$Infer.Session;
  type OnClient = typeof authClient.$Infer.Session;
  for (const { session, user } of [{} as OnServer, {} as OnClient]) {
    expectTypeOf<typeof session.tenantId>().toEqualTypeOf<TenantOf>();
    expectTypeOf<typeof user.tenantId>().toEqualTypeOf<TenantOf>();
    expectTypeOf<typeof session.activeOrganizationId>().toEqualTypeOf<TenantOf>();
    expectTypeOf<typeof user.role>().toEqualTypeOf<TenantOf>();
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
    // The other plugins keep their endpoints and calls.
    const org = { name: "Org", slug: "org" };
    const made = await api.createOrganization({ body: org, headers: {} });
    expectTypeOf(made.slug).toEqualTypeOf<string>();
    const created = await authClient.organization.create(org);
    expectTypeOf(created.data?.slug).toEqualTypeOf<string | undefined>();
    // @ts-expect-error: no such endpoint
    api.createTenants;
  });
  compiles(async () => {
    const { data } = await authClient.getSession();
    expectTypeOf<HasAny<typeof data>>().toEqualTypeOf<false>();
    const seen = [
      data,
      authClient.useSession.get().data,
      forReact(clientOptions()).useSession().data,
    ];
    expectTypeOf(seen[0]?.session.tenantId).toEqualTypeOf<TenantOf>();
    expectTypeOf(seen[0]?.user.tenantId).toEqualTypeOf<TenantOf>();
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
  compiles(() => {
    const reactClient = forReact(clientOptions());
    expectTypeOf(reactClient.tenant).toEqualTypeOf<typeof tenant>();
    const inReact = reactClient.useSignInMethods();
    expectTypeOf(inReact.isPending).toEqualTypeOf<boolean>();
    expectTypeOf(inReact.error?.status).toEqualTypeOf<number | undefined>();
    expectTypeOf(inReact.refetch).returns.toEqualTypeOf<Promise<void>>();
    expectTypeOf(inReact.data).toEqualTypeOf<SignInMethods | null>();
    const inVue = forVue(clientOptions()).useSignInMethods().value;
    expectTypeOf(inVue.data?.tenant.name).toEqualTypeOf<string | undefined>();
    const inSvelte = forSvelte(clientOptions()).useSignInMethods().get();
    expectTypeOf(inSvelte.data).toEqualTypeOf<SignInMethods | null>();
    const inSolid = forSolid(clientOptions()).useSignInMethods()();
    expectTypeOf(inSolid.data).toEqualTypeOf<SignInMethods | null>();
    expectTypeOf(authClient.useSignInMethods.get().data).toEqualTypeOf<SignInMethods | null>();
  });
});

test("the plugin is one, is known to the context, and runs code in a tenant", () => {
  expectTypeOf(tenantAuth()).toExtend<BetterAuthPlugin>();
  expectTypeOf(tenantAuthClient()).toExtend<BetterAuthClientPlugin>();
  expectTypeOf(tenantAuth().id).toEqualTypeOf<"tenant-auth">();
  expectTypeOf(getTenantId).toEqualTypeOf<() => string | null>();
  compiles(async () => {
    const tenants = runInTenant("1", () => api.listTenants());
    expectTypeOf(tenants).toEqualTypeOf<Promise<Tenant[]>>();
    // @ts-expect-error: which tenant
    runInTenant(null, async () => {});
    const plugin = (await auth.$context).getPlugin("tenant-auth");
    expectTypeOf(plugin).not.toBeAny();
    expectTypeOf(plugin).toExtend<{ id: "tenant-auth" } | null>();
  });
});

test("options", () => {
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
    // @ts-expect-error: the header has to be set at once
    tenantAuthClient({ tenantId: async () => "1" });
    // @ts-expect-error: no such option
    tenantAuthClient({ header: "x-organisation" });
  });
});

test("roles in invitations", () => {
  const roles = { member: createAccessControl({}).newRole({}), owner: adminAc };
  const create = () =>
    betterAuth({
      plugins: [
        admin({ roles }),
        tenantAuth(),
        tenantInvitations<keyof typeof roles>({ sendInvitationEmail: () => {} }),
      ],
    });
  const createClient = () =>
    createAuthClient({
      plugins: [tenantAuthClient(), tenantInvitationsClient<ReturnType<typeof create>>()],
    });
  compiles(async () => {
    const { email } = person;
    const { invitation } = createClient().tenant;
    const { error } = await invitation.create({ email, role: "member,owner" });
    type Codes = keyof typeof TENANT_AUTH_ERROR_CODES | keyof typeof TENANT_INVITATION_ERROR_CODES;
    expectTypeOf(error?.code).toEqualTypeOf<Codes | (string & {}) | undefined>();
    // @ts-expect-error: no such role
    invitation.create({ email, role: "admin" });
    create().api.createTenantInvitation({ body: { email, role: "owner" } });
    // @ts-expect-error: no such role
    create().api.createTenantInvitation({ body: { email, role: "admin" } });
    // Without the type of the server, any text.
    const plain = createAuthClient({ plugins: [tenantAuthClient(), tenantInvitationsClient()] });
    plain.tenant.invitation.create({ email, role: "admin" });
  });
});
