import { apiKey } from "@better-auth/api-key";
import type { BetterAuthPlugin } from "better-auth";
import {
  APIError,
  createAuthEndpoint,
  createAuthMiddleware,
  sessionMiddleware,
} from "better-auth/api";
import { admin, organization, twoFactor } from "better-auth/plugins";
import * as z from "zod";
import { bySubdomain } from "../../../src/index";
import type { TestDatabase } from "../../support/database";
import { type Application, assemble, here, must, newId, PASSWORD, says } from "./support";

const signedIn = [sessionMiddleware];

const secondFactor: Application = {
  name: "twoFactor() as it comes",
  async build() {
    const { auth, attack } = await assemble({
      auth: () => ({ appName: "Example" }),
      plugins: () => [twoFactor()],
    });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        await must(a.browser.post("/two-factor/enable", { password: PASSWORD }));
        const credentials = { email: b.email, password: PASSWORD };
        const signedInAgain = await must(b.browser.post("/sign-in/email", credentials));
        return says(signedInAgain, "twoFactorRedirect");
      }),
    };
  },
};

const keys: Application = {
  name: "apiKey() as it comes",
  async build() {
    const { auth, attack } = await assemble({
      plugins: () => [apiKey()],
      tenant: { scopedModels: ["apikey"] },
    });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/api-key/create", { name: "key of Globex" }));
        const query = { id: String(data.id) };
        await must(b.browser.get("/api-key/get", { query }));
        return says(await a.browser.get("/api-key/get", { query }), "key of Globex");
      }),
    };
  },
};

const closed: Application = {
  name: "sign-up is closed",
  async build() {
    const { auth, attack } = await assemble({
      auth: () => ({ emailAndPassword: { enabled: true, disableSignUp: true } }),
      plugins: () => [admin()],
    });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        const body = { email: "new@example.com", name: "New", password: PASSWORD };
        const signUp = { ...body, tenantId: b.tenantId };
        return (await a.browser.post("/tenant/sign-up/email", signUp)).status === 200;
      }),
    };
  },
};

/** How many visits there were, of all tenants: the operators want to know, and nobody else is told. */
const visits = (db: TestDatabase): BetterAuthPlugin => ({
  id: "visits",
  endpoints: {
    visit: createAuthEndpoint("/visits/add", { method: "POST", use: signedIn }, async (ctx) => {
      await db.query("update counter set visits = visits + 1 where name = 'all'");
      return ctx.json({ thanks: true });
    }),
  },
});

const globalCounter: Application = {
  name: "a counter that belongs to no tenant",
  async build() {
    const { auth, attack } = await assemble({
      plugins: (db) => [visits(db)],
      sql: [
        "create table counter (name text primary key, visits integer not null)",
        "insert into counter values ('all', 0)",
      ],
    });
    return {
      auth,
      options: { tables: ["counter"], sharedTables: ["counter"] },
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.post("/visits/add"));
        return says(await must(a.browser.post("/visits/add")), "visits");
      }),
    };
  },
};

const directory: Application = {
  name: "a directory of workspaces that is public by design",
  async build() {
    const { auth, attack } = await assemble({
      plugins: (db) => [
        {
          id: "workspaces",
          endpoints: {
            workspaces: createAuthEndpoint("/workspaces", { method: "GET" }, async (ctx) =>
              ctx.json(await db.query("select name, slug from tenant order by name")),
            ),
          },
        },
      ],
    });
    return {
      auth,
      options: { allow: { "GET /workspaces": "public by design" } },
      exploit: attack(async ({ a, b }) => {
        const listed = await must(a.browser.get("/workspaces"));
        return [b.userId, b.tenantId, b.name, b.email].some((secret) => says(listed, secret));
      }),
    };
  },
};

const subdomains: Application = {
  name: "a subdomain for each tenant, with any port",
  async build() {
    const { auth, attack } = await assemble({
      auth: () => ({ baseURL: { allowedHosts: ["*.localhost:*"], protocol: "http" } }),
      tenant: { resolveTenantId: bySubdomain({ baseDomain: "localhost" }) },
      origin: (slug) => `http://${slug}.localhost:3000`,
    });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        const { origin: _, ...headers } = a.headers();
        const session = `http://${b.slug}.localhost:3000/api/auth/get-session`;
        const answer = await a.browser.get(session, { headers });
        return says(answer, a.userId) || says(answer, b.userId);
      }),
    };
  },
};

/** Users are never deleted here, so nobody has said what happens to their badges then. */
const badges = (db: TestDatabase): BetterAuthPlugin => ({
  id: "badges",
  endpoints: {
    earn: createAuthEndpoint(
      "/badges/earn",
      { method: "POST", body: z.object({ title: z.string() }), use: signedIn },
      async (ctx) => {
        const values = [newId(), ctx.context.session.user.id, ctx.body.title];
        await db.query("insert into badge (id, user_id, title) values (?, ?, ?)", values);
        return ctx.json({ earned: true });
      },
    ),
    mine: createAuthEndpoint("/badges/mine", { method: "GET", use: signedIn }, async (ctx) => {
      const { id } = ctx.context.session.user;
      return ctx.json(await db.query("select title from badge where user_id = ?", [id]));
    }),
  },
});

const foreignKeys: Application = {
  name: "a foreign key to the user, without a cascade",
  async build() {
    const { auth, attack } = await assemble({
      plugins: (db) => [badges(db)],
      sql: [
        "pragma foreign_keys = on",
        `create table badge (
           id text primary key, user_id text not null references "user" (id), title text)`,
      ],
    });
    return {
      auth,
      options: { tables: ["badge"] },
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.post("/badges/earn", { title: "Hero of Globex" }));
        return says(await must(a.browser.get("/badges/mine")), "Hero of Globex");
      }),
    };
  },
};

const verified: Application = {
  name: "verified addresses, and fields that users must have",
  async build() {
    const { auth, attack } = await assemble({
      auth: () => ({
        emailAndPassword: { enabled: true, requireEmailVerification: true },
        emailVerification: { sendOnSignUp: true, sendVerificationEmail: async () => {} },
        user: {
          additionalFields: {
            company: { type: "string", required: true },
            birthday: { type: "date", required: true },
            plan: { type: ["free", "paid"], required: true },
          },
        },
      }),
      person: { company: "Initech", birthday: "1990-01-01", plan: "free" },
    });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        const headers = { ...a.headers(), "x-tenant-id": b.tenantId };
        const answer = await a.browser.get("/get-session", { headers });
        return says(answer, b.userId) || says(answer, a.userId);
      }),
    };
  },
};

/** Plans that anybody can book. Only a migration writes them. */
const catalogue: BetterAuthPlugin = {
  id: "catalogue",
  schema: {
    plan: { fields: { title: { type: "string", required: true }, price: { type: "number" } } },
  },
  endpoints: {
    plans: createAuthEndpoint("/plans", { method: "GET" }, async (ctx) =>
      ctx.json(await ctx.context.adapter.findMany({ model: "plan" })),
    ),
    plan: createAuthEndpoint(
      "/plans/get",
      { method: "GET", query: z.object({ id: z.string() }) },
      async (ctx) => {
        const where = [{ field: "id", value: ctx.query.id }];
        const plan = await ctx.context.adapter.findOne<object>({ model: "plan", where });
        if (!plan) throw new APIError("NOT_FOUND");
        return ctx.json(plan);
      },
    ),
  },
};

const plans: Application = {
  name: "a shared model with the same plans for everybody",
  async build() {
    const { auth, attack } = await assemble({
      plugins: () => [catalogue],
      tenant: { sharedModels: ["plan"] },
      sql: ["insert into plan (id, title, price) values ('basic', 'Basic', 5), ('pro', 'Pro', 9)"],
    });
    return {
      auth,
      options: { endpoints: { "/plans/get": { query: { id: "pro" } } } },
      exploit: attack(async ({ a, b }) => says(await must(a.browser.get("/plans")), b.tenantId)),
    };
  },
};

const previews: Application = {
  name: "an endpoint that answers what it was sent",
  async build() {
    const preview = createAuthEndpoint(
      "/preview",
      {
        method: "POST",
        body: z.object({ title: z.string(), email: z.string(), userId: z.string().optional() }),
        use: signedIn,
      },
      async (ctx) => ctx.json({ ...ctx.body, by: ctx.context.session.user.name }),
    );
    const { auth, attack } = await assemble({
      plugins: () => [{ id: "preview", endpoints: { preview } }],
    });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        const body = { title: "Hello", email: b.email, userId: b.userId };
        return says(await must(a.browser.post("/preview", body)), b.name);
      }),
    };
  },
};

/** No two answers are the same, and what they say is nobody's. */
const clock: Application = {
  name: "an answer that is different every time",
  async build() {
    let served = 0;
    const now = createAuthEndpoint("/clock", { method: "GET" }, async (ctx) => {
      ctx.setHeader("x-request-id", newId());
      return ctx.json({ now: Date.now(), random: Math.random(), served: ++served });
    });
    const { auth, attack } = await assemble({
      plugins: () => [{ id: "clock", endpoints: { now } }],
    });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => says(await must(a.browser.get("/clock")), b.tenantId)),
    };
  },
};

/** Every request leaves a line. */
const accessLog = (db: TestDatabase): BetterAuthPlugin => ({
  id: "access-log",
  hooks: {
    after: [
      {
        matcher: () => true,
        handler: createAuthMiddleware(async (ctx) => {
          await db.query("insert into access_log (tenant_id, path, at) values (?, ?, ?)", [
            here(),
            ctx.path,
            Date.now(),
          ]);
        }),
      },
    ],
  },
  endpoints: {
    activity: createAuthEndpoint("/activity", { method: "GET", use: signedIn }, async (ctx) => {
      const lines = await db.query(
        "select path, at from access_log where tenant_id = ? order by id desc limit 10",
        [here()],
      );
      return ctx.json({ lines });
    }),
  },
});

const logging: Application = {
  name: "every request is logged, and a tenant reads its own",
  async build() {
    const { auth, attack } = await assemble({
      plugins: (db) => [accessLog(db)],
      sql: [
        "create table access_log (id integer primary key autoincrement, tenant_id text, path text, at bigint)",
      ],
    });
    return {
      auth,
      options: { tables: ["access_log"] },
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.get("/list-sessions"));
        return says(await must(a.browser.get("/activity")), "/list-sessions");
      }),
    };
  },
};

const organizations: Application = {
  name: "organization() with scoped models",
  async build() {
    const { auth, attack } = await assemble({
      plugins: () => [organization()],
      tenant: { scopedModels: ["organization", "member", "invitation"] },
    });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        const body = { name: "Lab of Globex", slug: "lab" };
        const { data } = await must(b.browser.post("/organization/create", body));
        const query = { organizationId: String(data.id) };
        const path = "/organization/get-full-organization";
        return says(await a.browser.get(path, { query }), "Lab of Globex");
      }),
    };
  },
};

export const sound: Application[] = [
  secondFactor,
  keys,
  closed,
  globalCounter,
  directory,
  subdomains,
  foreignKeys,
  verified,
  plans,
  previews,
  clock,
  logging,
  organizations,
];
