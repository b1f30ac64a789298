import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import type { AuthContext, BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware, sessionMiddleware } from "better-auth/api";
import { customSession, organization } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { borderOf } from "../../src/border/border";
import type { TenantAuthOptions } from "../../src/index";
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

it.each(sample(["by its name", "by a function"], 1))(
  "finds endpoints and routes of an application that go past the border; a table of its own, read %s",
  LONG,
  async (how) => {
    const database = await createDatabase("sqlite");
    await database.query("create table todo (id integer primary key, owner text, done int)");
    const add = async ({ userId }: { userId: string }) =>
      void (await database.query("insert into todo (owner, done) values (?, 0)", [userId]));
    const todos = async () => ({ todo: await database.query("select * from todo") });
    const everybody = async () => Response.json(await everyUser(database));
    const leaks = await leaksOf(
      {
        database,
        plugins: [notes(database)],
        tenant: { scopedModels: ["note"] },
        auth: { databaseHooks: { session: { create: { after: add } } } },
      },
      {
        ...only("/notes/"),
        endpoints: {
          "/notes/create": { body: { text: "a note" } },
          "/notes/by-slug": ({ rows }) => ({ query: { slug: String(rows("note")[0]?.slug) } }),
        },
        tables: how === "by its name" ? ["todo"] : todos,
        routes: [everybody],
      },
    );
    await database.close();
    for (const [path, found] of HOLES) expectFound(leaks, path, found);
    expect(leaks.some(({ endpoint }) => endpoint.endsWith("/notes/create"))).toBe(false);
    const shown = leaks.map(({ endpoint, found }) => `${endpoint} ${found}`);
    expect(shown.join("\n")).toMatch(/everybody tells of b/);
  },
);

const HOLES = [
  ["/notes/people", /tells of b/],
  ["/notes/by-slug", /tells of a/],
  ["/notes/newest", /tells of/],
  ["/notes/rename", /user of a: 1 changed \(name\)/],
  ["/notes/sweep", /note of a: 1 gone/],
  ["/notes/become", /session of a: 1 new/],
  ["/notes/find", /tells of b/],
  ["/notes/done", /todo of a: \d+ changed or gone/],
] as const;

const base = { emailAndPassword: { enabled: true, sendResetPassword: async () => {} } };

/** What better-auth would do in a tenant if a part of the border were missing. */
const MISSING: [path: string, found: RegExp][] = [
  ["/revoke-session", /session of|the session counts|tells of/],
  ["/admin/get-user", /tells of a/],
  ["/passkey/verify-authentication", /passkey of a: 1 changed \(counter\)/],
  ["/organization/get", /tells of a/],
  ["/get-session", /tells of a/],
];

describe("a border with a part missing", LONG, () => {
  it("finds that sessions, users, passkeys, organizations and keys are not confined", async () => {
    const organizations = ["organization", "member", "invitation"];
    const leaks = await leaksOf(
      {
        auth: base,
        plugins: [
          organization(),
          passkey(),
          apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } }),
        ],
        tenant: { scopedModels: [...organizations, "apikey", "passkey"] },
      },
      only(...MISSING.map(([path]) => path)),
      (ctx) => unconfine(ctx, "session", "user", "passkey", "apikey", ...organizations),
    );
    for (const [path, found] of MISSING) expectFound(leaks, path, found);
  });

  it.runIf(everyCase)("finds reset tokens that are good everywhere", async () => {
    const leaks = await leaksOf({ auth: base }, only("/reset-password"), (ctx) =>
      takeOutOfBorder(ctx, "verification"),
    );
    expectFound(leaks, "/reset-password", /verification of platform: 1 gone/);
  });

  it.runIf(everyCase)("finds sessions in secondary storage that are good everywhere", async () => {
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
  const allowedHosts = ["example.com", "*.example.com"];
  const hosts: Partial<BetterAuthOptions> = { baseURL: { allowedHosts, protocol: "http" } };

  it.runIf(everyCase)("finds a resolver that drops its answer for some paths", async () => {
    const path = "/list-sessions";
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

  it.runIf(everyCase)("finds that everybody may manage tenants", async () => {
    const leaks = await leaksOf(
      { tenant: { canManageTenants: () => true } },
      only("/tenant/get", "/tenant/update", "/tenant/oauth-config/list"),
    );
    expectFound(leaks, "/tenant/get", /tells of a/);
    expectFound(leaks, "/tenant/update", /tenant of a: 1 changed/);
    expectFound(leaks, "/tenant/oauth-config/list", /tells of a/);
  });

  it.runIf(everyCase)("finds a hook and a session that tell everybody who there is", async () => {
    const database = await createDatabase("sqlite");
    const everybody = customSession(async ({ user, session }) => ({
      user,
      session,
      people: (await everyUser(database)).map(({ name }) => name),
    }));
    const leaks = await leaksOf(
      { database, plugins: [everybody], auth: { hooks: tellingHook(database) } },
      only("/get-session", "/ok"),
    );
    await database.close();
    expectFound(leaks, "/ok", /tells of b/);
    expectFound(leaks, "/get-session", /tells of b/);
  });
});

describe.runIf(everyCase)("single sign-on and directories", LONG, () => {
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
});

const rawOf = ({ adapter }: AuthContext) => borderOf(adapter)?.raw as DBAdapter;

/** A plugin with notes, whose author has not thought of tenants in one way or another. */
function notes(database: TestDatabase): BetterAuthPlugin {
  const fields = {
    slug: { type: "string", required: true },
    text: { type: "string", required: true },
    userId: { type: "string", required: true, references: { model: "user", field: "id" } },
  } as const;
  const endpoints = { createNote, ...pastTheAdapter(database), ...belowTheBorder };
  return { id: "notes", schema: { note: { fields } }, endpoints };
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

const queryWith = (name: string) =>
  ({ method: "GET", query: z.object({ [name]: z.string() }) }) as const;
const bodyWithUser = { method: "POST", body: z.object({ userId: z.string() }) } as const;

/** With a connection of their own. */
const pastTheAdapter = (database: TestDatabase) => ({
  people: createAuthEndpoint("/notes/people", { method: "GET" }, async (ctx) =>
    ctx.json(await everyUser(database)),
  ),
  rename: createAuthEndpoint("/notes/rename", bodyWithUser, async (ctx) => {
    const table = database.quote("user");
    await database.query(`update ${table} set name = 'x' where id = ?`, [ctx.body.userId]);
    return ctx.json({ done: true });
  }),
  done: createAuthEndpoint("/notes/done", bodyWithUser, async (ctx) => {
    await database.query("update todo set done = done + 1 where owner = ?", [ctx.body.userId]);
    return ctx.json({ done: true });
  }),
});

/** With the adapter below the border, or what they remember. */
const belowTheBorder = {
  newest: createAuthEndpoint("/notes/newest", { method: "GET" }, async (ctx) => ctx.json(newest)),
  bySlug: createAuthEndpoint("/notes/by-slug", queryWith("slug"), async (ctx) => {
    const where = [{ field: "slug", value: String(ctx.query.slug) }];
    return ctx.json(await rawOf(ctx.context).findOne<object>({ model: "note", where }));
  }),
  find: createAuthEndpoint("/notes/find", queryWith("email"), async (ctx) => {
    const where = [{ field: "email", value: String(ctx.query.email) }];
    return ctx.json(await rawOf(ctx.context).findMany({ model: "user", where }));
  }),
  sweep: createAuthEndpoint("/notes/sweep", bodyWithUser, async (ctx) => {
    const where = [{ field: "userId", value: ctx.body.userId }];
    await rawOf(ctx.context).deleteMany({ model: "note", where });
    return ctx.json({ done: true });
  }),
  become: createAuthEndpoint("/notes/become", bodyWithUser, async (ctx) => {
    const { userId } = ctx.body;
    const raw = rawOf(ctx.context);
    const where = [{ field: "id", value: userId }];
    const user = await raw.findOne<{ tenantId: string | null }>({ model: "user", where });
    const now = new Date();
    const token = `made-${Math.random()}`;
    const stamps = { createdAt: now, updatedAt: now, expiresAt: new Date(+now + 60_000) };
    const data = { userId, token, ...stamps, tenantId: user?.tenantId ?? "" };
    await raw.create({ model: "session", data });
    return ctx.json({ done: true });
  }),
};

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
  const methods = "findOne findMany update updateMany delete deleteMany consumeOne";
  for (const name of methods.split(" ")) {
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
