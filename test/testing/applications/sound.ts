import { apiKey } from "@better-auth/api-key";
import { APIError, createAuthMiddleware } from "better-auth/api";
import { admin, twoFactor } from "better-auth/plugins";
import * as z from "zod";
import { bySubdomain } from "../../../src/index";
import {
  type Application,
  application,
  endpoint,
  here,
  insert,
  must,
  newId,
  openEndpoint,
  PASSWORD,
  says,
} from "./support";

const secondFactor = application("twoFactor() as it comes", () => ({
  auth: () => ({ appName: "Example" }),
  plugins: () => [twoFactor()],
  exploit: async ({ a, b }) => {
    await must(a.browser.post("/two-factor/enable", { password: PASSWORD }));
    const credentials = { email: b.email, password: PASSWORD };
    const signedInAgain = await must(b.browser.post("/sign-in/email", credentials));
    return says(signedInAgain, "twoFactorRedirect");
  },
}));

const keys = application("apiKey() as it comes", () => ({
  plugins: () => [apiKey()],
  tenant: { scopedModels: ["apikey"] },
  exploit: async ({ a, b }) => {
    const { data } = await must(b.browser.post("/api-key/create", { name: "key of Globex" }));
    const query = { id: String(data.id) };
    await must(b.browser.get("/api-key/get", { query }));
    return says(await a.browser.get("/api-key/get", { query }), "key of Globex");
  },
}));

const closed = application("sign-up is closed", () => ({
  auth: () => ({ emailAndPassword: { enabled: true, disableSignUp: true } }),
  plugins: () => [admin()],
  exploit: async ({ a, b }) => {
    const body = { email: "new@example.com", name: "New", password: PASSWORD };
    const signUp = { ...body, tenantId: b.tenantId };
    return (await a.browser.post("/tenant/sign-up/email", signUp)).status === 200;
  },
}));

/** How many visits there were, of all tenants: the operators want to know, and nobody else is told. */
const globalCounter = application("a counter that belongs to no tenant", () => ({
  sql: [
    "create table counter (name text primary key, visits integer not null)",
    "insert into counter values ('all', 0)",
  ],
  endpoints: (db) => [
    endpoint("POST /visits/add", null, async () => {
      await db.query("update counter set visits = visits + 1 where name = 'all'");
      return { thanks: true };
    }),
  ],
  options: { tables: ["counter"], sharedTables: ["counter"] },
  exploit: async ({ a, b }) => {
    await must(b.browser.post("/visits/add"));
    return says(await must(a.browser.post("/visits/add")), "visits");
  },
}));

const directory = application("a directory of workspaces that is public by design", () => ({
  endpoints: (db) => [
    openEndpoint("GET /workspaces", null, () =>
      db.query("select name, slug from tenant order by name"),
    ),
  ],
  options: { allow: { "GET /workspaces": "public by design" } },
  exploit: async ({ a, b }) => {
    const listed = await must(a.browser.get("/workspaces"));
    return [b.userId, b.tenantId, b.name, b.email].some((secret) => says(listed, secret));
  },
}));

const subdomains = application("a subdomain for each tenant, with any port", () => ({
  auth: () => ({ baseURL: { allowedHosts: ["*.localhost:*"], protocol: "http" } }),
  tenant: { resolveTenantId: bySubdomain({ baseDomain: "localhost" }) },
  origin: (slug) => `http://${slug}.localhost:3000`,
  exploit: async ({ a, b }) => {
    const { origin: _, ...headers } = a.headers();
    const session = `http://${b.slug}.localhost:3000/api/auth/get-session`;
    const answer = await a.browser.get(session, { headers });
    return says(answer, a.userId) || says(answer, b.userId);
  },
}));

/** Users are never deleted here, so nobody has said what happens to their badges then. */
const foreignKeys = application("a foreign key to the user, without a cascade", () => ({
  sql: [
    "pragma foreign_keys = on",
    `create table badge (
       id text primary key, user_id text not null references "user" (id), title text)`,
  ],
  endpoints: (db) => [
    endpoint("POST /badges/earn", z.object({ title: z.string() }), async ({ input, user }) => {
      await insert(db, "badge", newId(), user.id, input.title);
      return { earned: true };
    }),
    endpoint("GET /badges/mine", null, ({ user }) =>
      db.query("select title from badge where user_id = ?", [user.id]),
    ),
  ],
  options: { tables: ["badge"] },
  exploit: async ({ a, b }) => {
    await must(b.browser.post("/badges/earn", { title: "Hero of Globex" }));
    return says(await must(a.browser.get("/badges/mine")), "Hero of Globex");
  },
}));

const verified = application("verified addresses, and fields that users must have", () => ({
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
  exploit: async ({ a, b }) => {
    const headers = { ...a.headers(), "x-tenant-id": b.tenantId };
    const answer = await a.browser.get("/get-session", { headers });
    return says(answer, b.userId) || says(answer, a.userId);
  },
}));

/** Plans that anybody can book. Only a migration writes them. */
const plans = application("a shared model with the same plans for everybody", () => ({
  tenant: { sharedModels: ["plan"] },
  schema: {
    plan: { fields: { title: { type: "string", required: true }, price: { type: "number" } } },
  },
  sql: ["insert into plan (id, title, price) values ('basic', 'Basic', 5), ('pro', 'Pro', 9)"],
  endpoints: () => [
    openEndpoint("GET /plans", null, ({ adapter }) => adapter.findMany({ model: "plan" })),
    openEndpoint("GET /plans/get", z.object({ id: z.string() }), async ({ input, adapter }) => {
      const where = [{ field: "id", value: input.id }];
      const plan = await adapter.findOne<object>({ model: "plan", where });
      if (!plan) throw new APIError("NOT_FOUND");
      return plan;
    }),
  ],
  options: { endpoints: { "/plans/get": { query: { id: "pro" } } } },
  exploit: async ({ a, b }) => says(await must(a.browser.get("/plans")), b.tenantId),
}));

const previews = application("an endpoint that answers what it was sent", () => ({
  endpoints: () => [
    endpoint(
      "POST /preview",
      z.object({ title: z.string(), email: z.string(), userId: z.string().optional() }),
      ({ input, user }) => ({ ...input, by: user.name }),
    ),
  ],
  exploit: async ({ a, b }) => {
    const body = { title: "Hello", email: b.email, userId: b.userId };
    return says(await must(a.browser.post("/preview", body)), b.name);
  },
}));

/** No two answers are the same, and what they say is nobody's. */
const clock = application("an answer that is different every time", () => {
  let served = 0;
  return {
    endpoints: () => [
      openEndpoint("GET /clock", null, ({ ctx }) => {
        ctx.setHeader("x-request-id", newId());
        return { now: Date.now(), random: Math.random(), served: ++served };
      }),
    ],
    exploit: async ({ a, b }) => says(await must(a.browser.get("/clock")), b.tenantId),
  };
});

/** Every request leaves a line. */
const logging = application("every request is logged, and a tenant reads its own", () => ({
  sql: [
    "create table access_log (id integer primary key autoincrement, tenant_id text, path text, at bigint)",
  ],
  hooks(db) {
    const handler = createAuthMiddleware(async ({ path }) => {
      const values = [here(), path, Date.now()];
      await db.query("insert into access_log (tenant_id, path, at) values (?, ?, ?)", values);
    });
    return { after: [{ matcher: () => true, handler }] };
  },
  endpoints: (db) => [
    endpoint("GET /activity", null, async () => {
      const query = "select path, at from access_log where tenant_id = ? order by id desc limit 10";
      return { lines: await db.query(query, [here()]) };
    }),
  ],
  options: { tables: ["access_log"] },
  exploit: async ({ a, b }) => {
    await must(b.browser.get("/list-sessions"));
    return says(await must(a.browser.get("/activity")), "/list-sessions");
  },
}));

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
];
