import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import type { AuthContext, BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware, sessionMiddleware } from "better-auth/api";
import { customSession, organization } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { expect, it } from "vitest";
import * as z from "zod";
import { isolationOf } from "../../src/core/isolation";
import { tenantInPrefix } from "../../src/core/prefix";
import { enterByPrefix } from "../../src/core/resolve/enter";
import { getTenantId, type TenantAuthOptions } from "../../src/index";
import { checkIsolation, type IsolationOptions } from "../../src/testing/index";
import { SCIM_MODELS } from "../features/enterprise/world";
import { createDatabase, type TestDatabase } from "../support/database";
import { createInstance, type InstanceOptions } from "../support/instance";
import { everyCase, sample } from "../support/matrix";
import { createStorage } from "../support/stores";
import { SUBDOMAINS } from "../support/world";
import { enterprisePlugins } from "./configurations";

type Plant = (ctx: AuthContext) => void;
type Found = (readonly [path: string, found: RegExp])[];

/** Runs the kit on an instance with a hole: every leak that is found belongs to a path, and says something. */
async function expectLeaks(
  instance: InstanceOptions,
  options: IsolationOptions,
  expected: Found,
  plant: Plant = () => {},
) {
  const { auth, context } = await createInstance(instance);
  plant(context as unknown as AuthContext);
  const report = await checkIsolation(auth, options);
  expect(report.toString()).toContain("Leaks");
  for (const [path, found] of expected) {
    const shown = report.leaks.filter(({ endpoint }) => endpoint.includes(path));
    expect(shown.map((leak) => leak.found).join("\n")).toMatch(found);
    expect(shown[0]?.request.url).toContain("/api/auth/");
  }
  return report.leaks;
}

const LONG = { timeout: 600_000 };
const only = (found: Found) => ({
  extent: { paths: found.map(([path]) => path.replace(/^\w+ |:.*$/g, "")) },
});

it.each(sample(["by its name", "by a function"], 1))(
  "finds endpoints and routes of an application that go past the isolation; a table of its own, read %s",
  LONG,
  async (how) => {
    const database = await createDatabase("sqlite");
    await database.query("create table todo (id integer primary key, owner text, done int)");
    const add = async ({ userId }: { userId: string }) =>
      void (await database.query("insert into todo (owner, done) values (?, 0)", [userId]));
    const todos = async () => ({ todo: await database.query("select * from todo") });
    const everybody = async () => Response.json(await everyUser(database));
    const leaks = await expectLeaks(
      {
        database,
        plugins: [notes(database)],
        tenant: { scopedModels: ["note"] },
        auth: { databaseHooks: { session: { create: { after: add } } } },
      },
      {
        extent: { paths: ["/notes/"] },
        endpoints: {
          "/notes/create": { body: { text: "a note" } },
          "/notes/by-slug": ({ rows }) => ({ query: { slug: String(rows("note")[0]?.slug) } }),
        },
        tables: how === "by its name" ? ["todo"] : todos,
        routes: [everybody],
      },
      HOLES,
    );
    await database.close();
    expect(leaks.some(({ endpoint }) => endpoint.endsWith("/notes/create"))).toBe(false);
    const shown = leaks.map(({ endpoint, found }) => `${endpoint} ${found}`);
    expect(shown.join("\n")).toMatch(/everybody tells of b/);
  },
);

const HOLES: Found = [
  ["/notes/people", /tells of b/],
  ["/notes/by-slug", /tells of a/],
  ["/notes/newest", /tells of/],
  ["/notes/rename", /user of a: 1 changed \(name\)/],
  ["/notes/sweep", /note of a: \d+ gone/],
  ["/notes/become", /session of a: 1 new/],
  ["/notes/find", /tells of b/],
  ["/notes/done", /todo of a: \d+ changed/],
];

const emailAndPassword = { enabled: true, sendResetPassword: async () => {} };
const organizations = ["organization", "member", "invitation"];

/** What better-auth would do in a tenant if a part of the isolation were missing. */
it("finds that users, passkeys, organizations and keys are not isolated", LONG, async () => {
  const missing: Found = [
    ["/admin/get-user", /tells of a/],
    ["/passkey/verify-authentication", /passkey of a: 1 changed \(counter\)/],
    ["/organization/get", /tells of a/],
    ["/get-session", /tells of a/],
  ];
  const keys = apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } });
  await expectLeaks(
    {
      auth: { emailAndPassword },
      plugins: [organization(), passkey(), keys],
      tenant: { scopedModels: [...organizations, "apikey", "passkey"] },
    },
    only(missing),
    missing,
    (ctx) => unconfine(ctx, "user", "passkey", "apikey", ...organizations),
  );
});

const baseURL = {
  allowedHosts: ["example.com", "*.example.com"],
  protocol: "http" as const,
};
const resolveTenantId: TenantAuthOptions["resolveTenantId"] = (ctx) =>
  ctx.path === "/list-sessions" ? undefined : SUBDOMAINS.resolveTenantId(ctx);
const enterprise = (): InstanceOptions => ({
  plugins: enterprisePlugins(),
  tenant: { scopedModels: ["ssoProvider", ...SCIM_MODELS], tenantRoles: { admin: ["sso:*"] } },
});
const COUNTS = /the session counts|tells of/;

/** Of the isolation, of the options of an application, of single sign-on and directories. */
const MORE: [what: string, make: () => InstanceOptions, Found, plant?: Plant][] = [
  [
    "reset tokens that are good everywhere",
    () => ({ auth: { emailAndPassword } }),
    [["/reset-password", /verification of platform: 1 gone/]],
    (ctx) => takeOutOfBorder(ctx, "verification"),
  ],
  [
    "sessions in secondary storage that are good everywhere",
    () => ({ auth: { secondaryStorage: createStorage() } }),
    [["/get-session", COUNTS]],
    shareStoredSessions,
  ],
  [
    "cached sessions that are good everywhere",
    () => ({ auth: { session: { cookieCache: { enabled: true, maxAge: 3600 } } } }),
    [["/get-session", COUNTS]],
    (ctx) => {
      letForeignSessionsIn(ctx);
      Object.assign(ctx.options.session?.cookieCache ?? {}, { version: "1" });
    },
  ],
  [
    "a resolver that drops its answer for some paths",
    () => ({ auth: { baseURL }, tenant: { resolveTenantId } }),
    [["/list-sessions", COUNTS]],
  ],
  [
    "that everybody may manage tenants",
    () => ({ tenant: { canManageTenants: () => true } }),
    [
      ["/tenant/get", /tells of a/],
      ["/tenant/update", /tenant of a: 1 changed/],
      ["/tenant/oauth-config/list", /tells of a/],
    ],
  ],
  [
    "that the tokens of directories are good everywhere",
    enterprise,
    [
      ["GET /scim/v2/Users", /the credential counts: 200, but for nobody 401/],
      ["DELETE /scim/v2/Users/:userId", /scimUser of \w+: 1 gone/],
    ],
    freeDirectories,
  ],
  [
    "that identity providers are not isolated",
    enterprise,
    [
      ["POST /sso/saml2/sp/acs/:providerId", /verification of a: .*gone/],
      ["GET /sso/callback/:providerId", /gone/],
    ],
    (ctx) => unconfine(ctx, "ssoProvider", "verification"),
  ],
];

it.runIf(everyCase).each(MORE)("finds %s", LONG, async (_, make, found, plant) => {
  const instance = make();
  const address: IsolationOptions["address"] = (tenant) =>
    `http://${tenant ? `${tenant.slug}.` : ""}example.com`;
  const byHost = instance.auth?.baseURL ? { address } : {};
  await expectLeaks(instance, { ...only(found), ...byHost }, found, plant);
});

it.runIf(everyCase)(
  "finds a hook and a session that tell everybody who there is",
  LONG,
  async () => {
    const database = await createDatabase("sqlite");
    const names = async () => (await everyUser(database)).map(({ name }) => String(name));
    const everybody = customSession(async (known) => ({ ...known, people: await names() }));
    const after = createAuthMiddleware(async (ctx) => {
      if (ctx.path === "/ok") ctx.setHeader("x-people", (await names()).join(", "));
    });
    const found: Found = [
      ["/ok", /tells of b/],
      ["/get-session", /tells of b/],
    ];
    const instance = { database, plugins: [everybody], auth: { hooks: { after } } };
    await expectLeaks(instance, only(found), found);
    await database.close();
  },
);

const rawOf = ({ adapter }: AuthContext) => isolationOf(adapter)?.unscoped as DBAdapter;

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

/** With the adapter below the isolation, or what they remember. */
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

/** Takes models out of the isolation again: what it was before there was one. */
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
  const isolation = isolationOf(adapter);
  if (!isolation) throw new Error("there is no isolation");
  const { isolatedModel } = isolation;
  isolation.isolatedModel = (name) => (name === model ? undefined : isolatedModel(name));
}

/** Sessions of other tenants reach better-auth, though the request names a tenant. */
function letForeignSessionsIn({ options }: AuthContext): void {
  for (const hooks of hooksIn(options)) {
    const at = hooks.indexOf(enterByPrefix);
    if (at < 0) continue;
    hooks.splice(at, 1, { ...enterByPrefix, matcher: () => getTenantId() === null });
  }
}

type BeforeHooks = NonNullable<NonNullable<BetterAuthPlugin["hooks"]>["before"]>;

/** The lists of before-hooks. Ours is one hook that runs several. */
const hooksIn = ({ plugins = [] }: BetterAuthOptions): BeforeHooks[] =>
  plugins.flatMap(({ hooks }) => {
    const before = hooks?.before ?? [];
    const inside = before.map((hook) => (hook as { hooks?: BeforeHooks }).hooks ?? []);
    return [before, ...inside];
  });

/** Sessions are looked up by the prefix of their token, wherever the request runs. */
function shareStoredSessions(ctx: AuthContext): void {
  letForeignSessionsIn(ctx);
  const storage = ctx.options.secondaryStorage as unknown as Record<symbol | string, unknown>;
  const raw = storage[Symbol.for("better-auth-tenant:raw-storage")] as typeof storage;
  const get = raw.get as (key: string) => Promise<string | null>;
  storage.get = (key: string) => {
    const tenantId = tenantInPrefix(key);
    return get(tenantId === null ? key : `tenant:${tenantId}:${key}`);
  };
}

/** Takes directories out of the isolation, and away the hook that looks at their tokens. */
function freeDirectories(ctx: AuthContext): void {
  for (const model of SCIM_MODELS) takeOutOfBorder(ctx, model);
  for (const extension of isolationOf(ctx)?.extensions ?? []) {
    if (extension.name === "enterprise") extension.claim = async () => undefined;
  }
}
