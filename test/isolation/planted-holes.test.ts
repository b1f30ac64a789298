import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import type { AuthContext, BetterAuthOptions } from "better-auth";
import { customSession, emailOTP, organization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { bySubdomain, type TenantAuthOptions } from "../../src/index";
import { checkIsolation, type IsolationOptions } from "../../src/testing/index";
import { createStorage } from "../configurations/storages";
import { createDatabase } from "../support/database";
import { createInstance, type InstanceOptions } from "../support/instance";
import { HOLES, notes, takeOutOfBorder, tellingHook, unconfine } from "./holes";

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

describe("endpoints of an application", () => {
  it.each(EXPECTED)("finds a plugin that %s", async (hole, path, found) => {
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

describe("a border with a part missing", () => {
  it.each(MISSING)("finds that %s are not confined", async (_part, models, path, found) => {
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
  });

  it("finds reset tokens that are good everywhere", async () => {
    const leaks = await leaksOf({ auth: base }, only("/reset-password"), (ctx) =>
      takeOutOfBorder(ctx, "verification"),
    );
    expectFound(leaks, "/reset-password", /verification of platform: 1 gone/);
  });

  it("finds one-time codes that are good everywhere", async () => {
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

  it("finds cached sessions that are good everywhere", async () => {
    const session = { cookieCache: { enabled: true, maxAge: 3600 } };
    const leaks = await leaksOf({ auth: { session } }, only("/get-session"), (ctx) => {
      const { cookieCache } = ctx.options.session ?? {};
      if (cookieCache) Object.assign(cookieCache, { version: "1" });
    });
    expectFound(leaks, "/get-session", /the session counts|tells of/);
  });
});

describe("options of an application", () => {
  const resolver: TenantAuthOptions["resolveTenantId"] = bySubdomain({ baseDomain: "example.com" });
  const baseURL = { allowedHosts: ["example.com", "*.example.com"], protocol: "http" } as const;
  const hosts: Partial<BetterAuthOptions> = {
    baseURL: { ...baseURL, allowedHosts: [...baseURL.allowedHosts] },
  };

  it.each([
    ["for some paths", "/list-sessions"],
    ["for the session itself", "/get-session"],
  ])("finds a resolver that drops its answer %s", async (_when, path) => {
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

  it("finds a hook that tells everybody who there is", async () => {
    const database = await createDatabase("sqlite");
    const leaks = await leaksOf({ database, auth: { hooks: tellingHook(database) } }, only("/ok"));
    await database.close();
    expectFound(leaks, "/ok", /tells of b/);
  });

  it("finds a session that is told more than its own", async () => {
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

describe("beyond better-auth", () => {
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

  it.each(["by its name", "by a function"])("finds changes in a table, read %s", async (how) => {
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
  });
});
