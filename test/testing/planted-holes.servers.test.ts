import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import type { AuthContext, BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware, sessionMiddleware } from "better-auth/api";
import { customSession, emailOTP, organization } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { borderOf } from "../../src/border/border";
import type { TenantAuthOptions } from "../../src/index";
import { tenantInvitations } from "../../src/invitations/index";
import { checkIsolation, type IsolationOptions } from "../../src/testing/index";
import { SCIM_MODELS } from "../enterprise/world";
import { createDatabase, type TestDatabase } from "../support/database";
import { createInstance, type InstanceOptions } from "../support/instance";
import { everyCase, sample } from "../support/matrix";
import { createStorage } from "../support/stores";
import { SUBDOMAINS } from "../support/world";
import { enterprisePlugins } from "./configurations";

/** Runs the kit on an instance with a hole; the endpoints that leak, and a control without it. */
async function leaksOf(
  instance: InstanceOptions,
  options: IsolationOptions,
  plant: (ctx: AuthContext) => void = () => {},
) {
  const { auth, context } = await createInstance(instance);
  plant(context as unknown as AuthContext);
  const report = await checkIsolation(auth, options);
  for (const { request } of report.leaks) expect(request.url).toMatch(/^http/);
  expect(report.toString()).toContain("Leaks");
  return report.leaks;
}

/** Every leak that is found belongs to a path, and says something. */
function expectFound(leaks: Awaited<ReturnType<typeof leaksOf>>, path: string, found: RegExp) {
  const shown = leaks.filter(({ endpoint }) => endpoint.includes(path));
  expect(shown.map((leak) => leak.found).join("\n")).toMatch(found);
  expect(shown[0]?.request.url).toContain("/api/auth/");
}

const LONG = { timeout: 600_000 };
const only = (...paths: string[]) => ({ extent: { paths } });

const EXPECTED: [hole: keyof typeof HOLES, path: string, found: RegExp][] = [
  ["reads users with a connection of its own", "/notes/people", /tells of b/],
  ["looks a row up by its slug, below the border", "/notes/by-slug", /tells of a/],
  ["keeps the newest row in a variable", "/notes/newest", /tells of/],
  ["changes a row with a connection of its own", "/notes/rename", /user of a: 1 changed \(name\)/],
  ["deletes rows below the border", "/notes/sweep", /note of a: 1 gone/],
  ["makes a session for whoever is named", "/notes/become", /session of a: 1 new/],
  ["takes an e-mail for a person", "/notes/find", /tells of b/],
];

describe("endpoints of an application", LONG, () => {
  it.each(sample(EXPECTED, 2))("finds a plugin that %s", async (hole, path, found) => {
    const database = await createDatabase("sqlite");
    const leaks = await leaksOf(
      { database, plugins: [notes(HOLES[hole](database))], tenant: { scopedModels: ["note"] } },
      {
        ...only("/notes/"),
        endpoints: {
          "/notes/create": { body: { text: "a note" } },
          "/notes/by-slug": ({ rows }) => ({ query: { slug: String(rows("note")[0]?.slug) } }),
        },
      },
    );
    await database.close();
    expectFound(leaks, path, found);
    expect(leaks.some(({ endpoint }) => endpoint.endsWith("/notes/create"))).toBe(false);
  });
});

const base = { emailAndPassword: { enabled: true, sendResetPassword: async () => {} } };

/** What better-auth would do in a tenant if a part of the border were missing. */
const MISSING: [part: string, model: string[], path: string, found: RegExp][] = [
  ["sessions", ["session"], "/revoke-session", /session of|the session counts|tells of/],
  ["users", ["user"], "/admin/get-user", /tells of a/],
  [
    "passkeys",
    ["passkey"],
    "/passkey/verify-authentication",
    /passkey of a: 1 changed \(counter\)/,
  ],
  ["invitations", ["organization", "member", "invitation"], "/organization/get", /tells of a/],
  ["API keys", ["apikey", "user"], "/get-session", /tells of a/],
];

describe("a border with a part missing", LONG, () => {
  it.each(sample(MISSING, 1))(
    "finds that %s are not confined",
    async (_part, models, path, found) => {
      const leaks = await leaksOf(
        {
          auth: base,
          plugins: [
            organization(),
            passkey(),
            apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } }),
          ],
          tenant: { scopedModels: ["organization", "member", "invitation", "apikey", "passkey"] },
        },
        only(path),
        (ctx) => unconfine(ctx, ...models),
      );
      expectFound(leaks, path, found);
    },
  );

  it.runIf(everyCase)("finds reset tokens that are good everywhere", async () => {
    const leaks = await leaksOf({ auth: base }, only("/reset-password"), (ctx) =>
      takeOutOfBorder(ctx, "verification"),
    );
    expectFound(leaks, "/reset-password", /verification of platform: 1 gone/);
  });

  it.runIf(everyCase)("finds one-time codes that are good everywhere", async () => {
    const leaks = await leaksOf(
      { plugins: [emailOTP({ sendVerificationOTP: async () => {} })] },
      only("/sign-in/email-otp", "/email-otp/"),
      (ctx) => unconfine(ctx, "verification", "user"),
    );
    expectFound(leaks, "email-otp", /of a: /);
  });

  it("finds sessions in secondary storage that are good everywhere", async () => {
    const entries = new Map<string, string>();
    const secondaryStorage = createStorage({}, entries);
    const leaks = await leaksOf({ auth: { secondaryStorage } }, only("/get-session"), (ctx) => {
      const raw = Symbol.for("better-auth-tenant:raw-storage");
      const storage = ctx.options.secondaryStorage as unknown as Record<symbol, object>;
      const { get } = storage[raw] as { get(key: string): Promise<string | null> };
      // Opens every label, as if it were not there.
      Object.assign(storage, {
        get: async (key: string) => {
          const stored = JSON.parse((await get(key)) ?? "null");
          return stored?.tenantAuth
            ? (stored.value ?? JSON.stringify(stored))
            : JSON.stringify(stored);
        },
      });
    });
    expectFound(leaks, "/get-session", /the session counts|tells of/);
  });

  it.runIf(everyCase)("finds cached sessions that are good everywhere", async () => {
    const session = { cookieCache: { enabled: true, maxAge: 3600 } };
    const leaks = await leaksOf({ auth: { session } }, only("/get-session"), (ctx) => {
      const { cookieCache } = ctx.options.session ?? {};
      if (cookieCache) Object.assign(cookieCache, { version: "1" });
    });
    expectFound(leaks, "/get-session", /the session counts|tells of/);
  });
});

describe("options of an application", LONG, () => {
  const resolver: NonNullable<TenantAuthOptions["resolveTenantId"]> = SUBDOMAINS.resolveTenantId;
  const baseURL = { allowedHosts: ["example.com", "*.example.com"], protocol: "http" } as const;
  const hosts: Partial<BetterAuthOptions> = {
    baseURL: { ...baseURL, allowedHosts: [...baseURL.allowedHosts] },
  };

  it.each(
    sample(
      [
        ["for some paths", "/list-sessions"],
        ["for the session itself", "/get-session"],
      ],
      1,
    ),
  )("finds a resolver that drops its answer %s", async (_when, path) => {
    const leaks = await leaksOf(
      {
        auth: hosts,
        tenant: { resolveTenantId: (ctx) => (ctx.path === path ? undefined : resolver(ctx)) },
      },
      {
        ...only(path),
        address: (tenant) => `http://${tenant ? `${tenant.slug}.` : ""}example.com`,
      },
    );
    expectFound(leaks, path, /the session counts|tells of/);
  });

  it("finds that everybody may manage tenants", async () => {
    const leaks = await leaksOf(
      { tenant: { canManageTenants: () => true } },
      only("/tenant/get", "/tenant/update", "/tenant/oauth-config/list"),
    );
    expectFound(leaks, "/tenant/get", /tells of a/);
    expectFound(leaks, "/tenant/update", /tenant of a: 1 changed/);
    expectFound(leaks, "/tenant/oauth-config/list", /tells of a/);
  });

  it.runIf(everyCase)("finds a hook that tells everybody who there is", async () => {
    const database = await createDatabase("sqlite");
    const leaks = await leaksOf({ database, auth: { hooks: tellingHook(database) } }, only("/ok"));
    await database.close();
    expectFound(leaks, "/ok", /tells of b/);
  });

  it.runIf(everyCase)("finds a session that is told more than its own", async () => {
    const database = await createDatabase("sqlite");
    const everybody = customSession(async ({ user, session }) => ({
      user,
      session,
      people: await database.query(`select name from ${database.quote("user")}`),
    }));
    const leaks = await leaksOf({ database, plugins: [everybody] }, only("/get-session"));
    await database.close();
    expectFound(leaks, "/get-session", /tells of b/);
  });
});

describe("beyond better-auth", LONG, () => {
  it("finds a route that tells of others, and one that changes their rows", async () => {
    const { auth, database } = await createInstance();
    const everybody = async () =>
      Response.json(await database.query(`select name from ${database.quote("user")}`));
    const report = await checkIsolation(auth, { ...only("/ok"), routes: [everybody] });
    expect(report.leaks.map(({ endpoint, found }) => `${endpoint} ${found}`).join("\n")).toMatch(
      /everybody tells of b/,
    );
    expect(report.untried).toEqual([]);
  });

  it.each(sample(["by its name", "by a function"], 1))(
    "finds changes in a table, read %s",
    async (how) => {
      const database = await createDatabase("sqlite");
      await database.query("create table todo (id integer primary key, owner text, done int)");
      const add = async ({ id }: { id: string }) =>
        void (await database.query("insert into todo (owner, done) values (?, 0)", [id]));
      const leaks = await leaksOf(
        {
          database,
          plugins: [notes(HOLES["changes a table of the application's own"](database))],
          tenant: { scopedModels: ["note"] },
          auth: {
            databaseHooks: { session: { create: { after: ({ userId }) => add({ id: userId }) } } },
          },
        },
        {
          ...only("/notes/done"),
          tables:
            how === "by its name"
              ? ["todo"]
              : async () => ({ todo: await database.query("select * from todo") }),
        },
      );
      await database.close();
      expectFound(leaks, "/notes/done", /todo of a: \d+ changed or gone/);
    },
  );
});

describe.runIf(everyCase)("single sign-on, directories and invitations", LONG, () => {
  const enterprise: InstanceOptions = {
    plugins: enterprisePlugins(),
    tenant: {
      scopedModels: ["ssoProvider", ...SCIM_MODELS],
      tenantRoles: { admin: ["sso:*"] },
    },
  };

  it("finds that the tokens of directories are good everywhere", async () => {
    const leaks = await leaksOf(enterprise, only("/scim/v2/"), (ctx) => {
      for (const model of SCIM_MODELS) takeOutOfBorder(ctx, model);
      for (const hook of ctx.options.plugins?.flatMap(({ hooks }) => hooks?.before ?? []) ?? []) {
        const matches = (path: string) =>
          hook.matcher({ path, headers: new Headers(), context: {} } as never);
        if (matches("/scim/v2/Users") && !matches("/ok")) hook.matcher = () => false;
      }
    });
    expectFound(leaks, "GET /scim/v2/Users", /the credential counts: 200, but for nobody 401/);
    expectFound(leaks, "DELETE /scim/v2/Users/:userId", /scimUser of \w+: 1 gone/);
  });

  it("finds that providers are not confined", async () => {
    const leaks = await leaksOf(enterprise, only("/sso/", "/sign-in/sso"), (ctx) =>
      unconfine(ctx, "ssoProvider", "verification"),
    );
    expectFound(leaks, "POST /sso/saml2/sp/acs/:providerId", /verification of a: .*gone/);
    expectFound(leaks, "GET /sso/callback/:providerId", /gone/);
  });

  const inviting = (tenant: TenantAuthOptions): InstanceOptions => ({
    tenant: { tenantRoles: { admin: ["invitation:*"] }, ...tenant },
    plugins: [tenantInvitations({ sendInvitationEmail: async () => {} })],
  });
  const invitations = { extent: { paths: ["/tenant/invitation/"], everyNaming: true } };

  it("finds an application that lets everybody with a session manage", async () => {
    const canManageTenants: TenantAuthOptions["canManageTenants"] = (_, { session }) =>
      session !== null;
    const leaks = await leaksOf(inviting({ canManageTenants }), invitations);
    expectFound(leaks, "/revoke", /tenantInvitation of \w+: 1 changed/);
    expectFound(leaks, "/list", /tells of/);
  });

  it("finds that invitations are not confined", async () => {
    const leaks = await leaksOf(inviting({}), invitations, (ctx) =>
      unconfine(ctx, "tenantInvitation"),
    );
    expectFound(leaks, "/list", /tells of/);
  });
});

const rawOf = ({ adapter }: AuthContext) => borderOf(adapter)?.raw as DBAdapter;

/** A plugin with notes, whose author has not thought of tenants in one way or another. */
function notes(endpoints: BetterAuthPlugin["endpoints"]): BetterAuthPlugin {
  return {
    id: "notes",
    schema: {
      note: {
        fields: {
          slug: { type: "string", required: true },
          text: { type: "string", required: true },
          userId: { type: "string", required: true, references: { model: "user", field: "id" } },
        },
      },
    },
    endpoints: { createNote, ...endpoints },
  };
}

let newest: Record<string, unknown> | null = null;

const createNote = createAuthEndpoint(
  "/notes/create",
  { method: "POST", body: z.object({ text: z.string() }), use: [sessionMiddleware] },
  async (ctx) => {
    const { user } = ctx.context.session;
    const data = { slug: `note-${user.id}`, text: `note of ${user.name}`, userId: user.id };
    newest = await ctx.context.adapter.create({ model: "note", data });
    return ctx.json(newest);
  },
);

const everyUser = (database: TestDatabase) =>
  database.query(`select * from ${database.quote("user")}`);

const bodyWithUser = { method: "POST", body: z.object({ userId: z.string() }) } as const;

/** Endpoints with a hole, made with a connection of their own or below the border. */
const HOLES = {
  "reads users with a connection of its own": (database: TestDatabase) => ({
    people: createAuthEndpoint("/notes/people", { method: "GET" }, async (ctx) =>
      ctx.json(await everyUser(database)),
    ),
  }),

  "looks a row up by its slug, below the border": () => ({
    bySlug: createAuthEndpoint(
      "/notes/by-slug",
      { method: "GET", query: z.object({ slug: z.string() }) },
      async (ctx) => {
        const where = [{ field: "slug", value: ctx.query.slug }];
        return ctx.json(await rawOf(ctx.context).findOne<object>({ model: "note", where }));
      },
    ),
  }),

  "keeps the newest row in a variable": () => ({
    newest: createAuthEndpoint("/notes/newest", { method: "GET" }, async (ctx) => ctx.json(newest)),
  }),

  "changes a row with a connection of its own": (database: TestDatabase) => ({
    rename: createAuthEndpoint("/notes/rename", bodyWithUser, async (ctx) => {
      const { userId } = ctx.body;
      const table = database.quote("user");
      await database.query(`update ${table} set name = 'x' where id = ?`, [userId]);
      return ctx.json({ done: true });
    }),
  }),

  "deletes rows below the border": () => ({
    sweep: createAuthEndpoint("/notes/sweep", bodyWithUser, async (ctx) => {
      const where = [{ field: "userId", value: ctx.body.userId }];
      await rawOf(ctx.context).deleteMany({ model: "note", where });
      return ctx.json({ done: true });
    }),
  }),

  "makes a session for whoever is named": () => ({
    become: createAuthEndpoint("/notes/become", bodyWithUser, async (ctx) => {
      const { userId } = ctx.body;
      const raw = rawOf(ctx.context);
      const user = await raw.findOne<{ tenantId: string | null }>({
        model: "user",
        where: [{ field: "id", value: userId }],
      });
      const now = new Date();
      const token = `made-${Math.random()}`;
      const stamps = { createdAt: now, updatedAt: now, expiresAt: new Date(+now + 60_000) };
      const data = { userId, token, ...stamps, tenantId: user?.tenantId ?? "" };
      await raw.create({ model: "session", data });
      return ctx.json({ done: true });
    }),
  }),

  "changes a table of the application's own": (database: TestDatabase) => ({
    done: createAuthEndpoint("/notes/done", bodyWithUser, async (ctx) => {
      await database.query("update todo set done = done + 1 where owner = ?", [ctx.body.userId]);
      return ctx.json({ done: true });
    }),
  }),

  "takes an e-mail for a person": () => ({
    find: createAuthEndpoint(
      "/notes/find",
      { method: "GET", query: z.object({ email: z.string() }) },
      async (ctx) => {
        const where = [{ field: "email", value: ctx.query.email }];
        return ctx.json(await rawOf(ctx.context).findMany({ model: "user", where }));
      },
    ),
  }),
} satisfies Record<string, (database: TestDatabase) => BetterAuthPlugin["endpoints"]>;

/** A hook of the application that is too helpful: it tells everybody who there is. */
const tellingHook = (database: TestDatabase): BetterAuthOptions["hooks"] => ({
  after: createAuthMiddleware(async (ctx) => {
    if (ctx.path !== "/ok") return;
    const users = await everyUser(database);
    ctx.setHeader("x-people", users.map(({ name }) => String(name)).join(", "));
  }),
});

/** Takes models out of the border again: what it was before there was one. */
function unconfine(ctx: AuthContext, ...models: string[]): void {
  const raw = rawOf(ctx);
  const adapter = ctx.adapter as unknown as Record<string, (call: { model: string }) => unknown>;
  for (const name of [
    "findOne",
    "findMany",
    "update",
    "updateMany",
    "delete",
    "deleteMany",
    "consumeOne",
  ]) {
    const confined = adapter[name];
    adapter[name] = (call) =>
      models.includes(call.model)
        ? (raw as unknown as typeof adapter)[name]?.(call)
        : confined?.(call);
  }
}

/** The same for all that is done to a model: its rows belong to nobody any more. */
function takeOutOfBorder({ adapter }: AuthContext, model: string): void {
  const border = borderOf(adapter);
  if (!border) throw new Error("there is no border");
  const { confinedModel } = border;
  border.confinedModel = (name) => (name === model ? undefined : confinedModel(name));
}
