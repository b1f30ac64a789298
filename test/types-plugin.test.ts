import { type BetterAuthPlugin, betterAuth } from "better-auth";
import { admin, organization } from "better-auth/plugins";
import { describe, expectTypeOf, test } from "vitest";
import {
  getTenantId,
  runInTenant,
  type Tenant,
  type TenantAuthOptions,
  tenantAuth,
} from "../src/index";
import { compiles, type HasAny } from "./support/types";

const createAuth = () =>
  betterAuth({
    user: { additionalFields: { nickname: { type: "string", required: true } } },
    plugins: [tenantAuth(), admin(), organization()],
  });
declare const auth: ReturnType<typeof createAuth>;

type TenantOf = string | null | undefined;
const person = { name: "Al", email: "al@example.com", password: "secret" };

test("HasAny finds any", () => {
  // biome-ignore lint/suspicious/noExplicitAny: this is what it looks for
  expectTypeOf<HasAny<{ a: { b: any }[] }>>().toEqualTypeOf<true>();
  expectTypeOf<HasAny<{ a: { b: unknown; c: Date }[] } | null>>().toEqualTypeOf<false>();
});

describe("inference", () => {
  test("users and sessions have a tenant", () => {
    type Inferred = typeof auth.$Infer.Session;
    expectTypeOf<Inferred["session"]["tenantId"]>().toEqualTypeOf<TenantOf>();
    expectTypeOf<Inferred["user"]["tenantId"]>().toEqualTypeOf<TenantOf>();
    // The other plugins' fields and the application's are still there.
    expectTypeOf<Inferred["session"]["activeOrganizationId"]>().toEqualTypeOf<TenantOf>();
    expectTypeOf<Inferred["user"]["role"]>().toEqualTypeOf<TenantOf>();
    expectTypeOf<Inferred["user"]["nickname"]>().toEqualTypeOf<string>();
    expectTypeOf<Inferred["user"]["email"]>().toEqualTypeOf<string>();
    expectTypeOf<HasAny<Inferred>>().toEqualTypeOf<false>();
  });

  test("getSession answers with them", () => {
    compiles(async () => {
      const answer = await auth.api.getSession({ headers: new Headers() });
      expectTypeOf(answer?.session.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf(answer?.user.tenantId).toEqualTypeOf<TenantOf>();
      expectTypeOf<HasAny<typeof answer>>().toEqualTypeOf<false>();
    });
  });

  test("nobody chooses a tenant by better-auth's own sign-up", () => {
    compiles(async () => {
      const body = { ...person, nickname: "Ally" };
      const answer = await auth.api.signUpEmail({ body });
      expectTypeOf(answer.user.tenantId).toEqualTypeOf<TenantOf>();
      // @ts-expect-error: it is not an input
      auth.api.signUpEmail({ body: { ...body, tenantId: "1" } });
      // @ts-expect-error: nickname is required
      auth.api.signUpEmail({ body: person });
    });
  });

  test("the other plugins keep their endpoints", () => {
    compiles(async () => {
      const users = await auth.api.listUsers({ query: {}, headers: {} });
      expectTypeOf(users.total).toEqualTypeOf<number>();
      const body = { name: "Org", slug: "org" };
      const org = await auth.api.createOrganization({ body, headers: {} });
      expectTypeOf(org).not.toBeAny();
      expectTypeOf(org.slug).toEqualTypeOf<string>();
      // @ts-expect-error: no such endpoint
      auth.api.createTenants;
    });
  });

  test("error codes", () => {
    expectTypeOf<
      typeof auth.$ERROR_CODES.TENANT_NOT_FOUND.code
    >().toEqualTypeOf<"TENANT_NOT_FOUND">();
    expectTypeOf<typeof auth.$ERROR_CODES>().toHaveProperty("USER_NOT_FOUND");
    // @ts-expect-error: no such code
    expectTypeOf<(typeof auth.$ERROR_CODES)["TENANT_NOT_THERE"]>();
  });
});

describe("the plugin", () => {
  test("is a plugin", () => {
    expectTypeOf(tenantAuth()).toExtend<BetterAuthPlugin>();
    expectTypeOf(tenantAuth().id).toEqualTypeOf<"tenant-auth">();
    expectTypeOf(tenantAuth).parameters.toEqualTypeOf<[TenantAuthOptions?]>();
  });

  test("runs code in a tenant", () => {
    expectTypeOf(getTenantId).toEqualTypeOf<() => string | null>();
    compiles(() => {
      const tenants = runInTenant("1", () => auth.api.listTenants());
      expectTypeOf(tenants).toEqualTypeOf<Promise<Tenant[]>>();
      // @ts-expect-error: which tenant
      runInTenant(null, async () => {});
    });
  });

  test("context.hasPlugin and getPlugin know it", () => {
    compiles(async () => {
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
        tenantHeader: "x-organisation",
        adminUserIds: ["1"],
        adminRoles: ["owner"],
        canManageTenants: async (ctx, { action, tenantId, session }) => {
          expectTypeOf(ctx).not.toBeAny();
          expectTypeOf(tenantId).toEqualTypeOf<string | undefined>();
          expectTypeOf(session?.session.tenantId).toEqualTypeOf<TenantOf>();
          expectTypeOf(session?.user.role).toEqualTypeOf<TenantOf>();
          // @ts-expect-error: no such action
          if (action === "tenant:rename") return false;
          return action === "tenant:list";
        },
        reservedSlugs: ["www"],
        keepEmailGloballyUnique: true,
        sessionCookies: "per-tenant",
        scopedModels: ["organization"],
        sharedModels: ["passkey"],
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
});
