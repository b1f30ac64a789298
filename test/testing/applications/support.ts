import {
  type AuthContext,
  type BetterAuthOptions,
  type BetterAuthPlugin,
  betterAuth,
  type GenericEndpointContext,
} from "better-auth";
import { APIError, createAuthEndpoint, sessionMiddleware } from "better-auth/api";
import { getMigrations } from "better-auth/db/migration";
import type { User } from "better-auth/types";
import { Hono } from "hono";
import { onTestFinished } from "vitest";
import { getTenantId, runInTenant, type TenantAuthOptions, tenantAuth } from "../../../src/index";
import {
  type AuthInstance,
  checkIsolation,
  type IsolationOptions,
  type Route,
} from "../../../src/testing/index";
import { type Answer, Browser } from "../../support/browser";
import { createDatabase, type TestDatabase } from "../../support/database";
import { everyCase, isTaken, sample } from "../../support/matrix";

/** A small application as somebody would write it, with one hole or none. */
export interface Application {
  name: string;
  /** What is wrong, in a sentence. A sound application has none. */
  hole?: string;
  /** What a report has to name when the hole is found: the path of an endpoint, or the name of a route. */
  endpoint?: string;
  build(): Promise<Built>;
}

export interface Built {
  auth: AuthInstance;
  /** What a newcomer passes after reading the documentation. */
  options: IsolationOptions;
  /** Whether somebody of one tenant reaches what belongs to another, over HTTP. */
  exploit(): Promise<boolean>;
}

/** better-auth's endpoints that hooks of these applications wait for; the others have other tests. */
const PATHS = ["/sign-in/email", "/sign-up/email", "/sign-out", "/get-session", "/update-user"];
const OF_PLUGINS = ["/two-factor", "/api-key", "/organization", "/tenant/"];

export async function check({ build }: Application) {
  const { auth, options } = await build();
  const { plugins = [] } = auth.options as BetterAuthOptions;
  const own = plugins.flatMap(({ endpoints }) => Object.values(endpoints ?? {}));
  const ofOwn = own.map(({ path }) => String(path)).filter((path) => !path.startsWith("/tenant/"));
  const paths = [...PATHS, ...ofOwn, ...OF_PLUGINS];
  return checkIsolation(auth, { ...options, extent: { paths }, progress: false });
}

/** A tenth of the applications on the servers (all of them with TEST_ALL=1), a few on SQLite. */
export const share = (list: Application[]): Application[] =>
  everyCase ? list.filter((_, index) => isTaken(index, 10)) : sample(list, 4);

/** A hole, and the same application without it. */
export function twins(both: {
  name: string;
  sound: string;
  hole: string;
  endpoint: string;
  define(sound: boolean): Definition;
}): Application[] {
  const { name, hole, endpoint, define } = both;
  return [
    { name, hole, endpoint, build: () => build(define(false)) },
    application(both.sound, () => define(true)),
  ];
}

export const application = (name: string, define: () => Definition): Application => ({
  name,
  build: () => build(define()),
});

interface Definition extends Parts {
  /** What the application's own plugin has. */
  endpoints?: (db: TestDatabase) => Endpoint[];
  hooks?: (db: TestDatabase) => Required<BetterAuthPlugin>["hooks"];
  schema?: Required<BetterAuthPlugin>["schema"];
  init?: Required<BetterAuthPlugin>["init"];
  /** A server with better-auth and routes of its own, and how the kit calls these. */
  server?: (app: Hono, application: { api: Api; db: TestDatabase }) => unknown;
  routes?: (request: Request) => Record<string, Route>;
  options?: IsolationOptions;
  exploit(two: Two): Promise<boolean>;
}

type Api = Awaited<ReturnType<typeof assemble>>["api"];
type Request = (
  path: string,
  headers: Record<string, string>,
  method?: string,
) => Promise<Response>;

export async function build(definition: Definition): Promise<Built> {
  const { endpoints, hooks, schema, init, server, routes, options, exploit, ...parts } = definition;
  const own = (db: TestDatabase): BetterAuthPlugin => ({
    id: "application",
    endpoints: Object.fromEntries(endpoints?.(db).map((one) => [one.path, one]) ?? []),
    ...(hooks && { hooks: hooks(db) }),
    ...(schema && { schema }),
    ...(init && { init }),
  });
  const plugins = (db: TestDatabase) => [...(parts.plugins?.(db) ?? []), own(db)];
  const { auth, api, db, attack } = await assemble({ ...parts, plugins });
  const app = new Hono();
  app.on(["GET", "POST"], "/api/auth/*", (c) => auth.handler(c.req.raw));
  server?.(app, { api, db });
  const request: Request = async (path, headers, method = "GET") =>
    app.request(`${ORIGIN}${path}`, { method, headers });
  return {
    auth,
    options: { ...options, ...(routes && { routes: Object.values(routes(request)) }) },
    exploit: attack((two) => exploit({ ...two, request })),
  };
}

type Endpoint = Required<BetterAuthPlugin>["endpoints"][string];

interface Call<Input> {
  /** The query or the body, as the schema has checked it. */
  input: Input;
  /** Who is signed in. */
  user: User & { role?: string; company?: string };
  adapter: AuthContext["adapter"];
  ctx: GenericEndpointContext;
}

/** A schema of zod or of another library. */
interface Schema<Output> {
  "~standard": { version: 1; types?: { output: Output } | undefined };
}

const endpointWith =
  (use: (typeof sessionMiddleware)[]) =>
  <Input>(
    route: `GET ${string}` | `POST ${string}`,
    schema: Schema<Input> | null,
    run: (call: Call<Input>) => unknown,
  ): Endpoint => {
    const [method = "", path = ""] = route.split(" ");
    const options = { method: method as "GET" | "POST", use, requireHeaders: true };
    const checked = schema && { [method === "GET" ? "query" : "body"]: schema };
    return createAuthEndpoint(path, { ...options, ...checked }, async (context) => {
      const ctx = context as unknown as GenericEndpointContext;
      const { session, adapter } = ctx.context;
      const user = session?.user as Call<Input>["user"];
      const input = method === "GET" ? ctx.query : ctx.body;
      return run({ input, user, adapter, ctx });
    });
  };

/** An endpoint for people who are signed in: what it takes by query or body, and its answer. */
export const endpoint = endpointWith([sessionMiddleware]);

/** An endpoint for everybody. */
export const openEndpoint = endpointWith([]);

type Row = Record<string, unknown>;

const isOfThisTenant = (row: Row) => (row.tenant_id ?? row.tenantId) === here();

/** Rows of this tenant where the application is sound, and of all tenants otherwise. */
export const ofTenant = (rows: Row[], sound: boolean) =>
  rows.filter((row) => !sound || isOfThisTenant(row));

/** The row with a value in a column, of this tenant where the application is sound. */
export async function find(
  db: TestDatabase,
  sound: boolean,
  [table, column]: [table: string, column: string],
  value: unknown,
): Promise<Row> {
  const rows = await db.query(`select * from ${table} where ${column} = ?`, [value ?? null]);
  const [row] = ofTenant(rows, sound);
  if (!row) throw new APIError("NOT_FOUND");
  return row;
}

/** A new row, with a value for each column. */
export const insert = (db: TestDatabase, table: string, ...values: unknown[]) =>
  db.query(`insert into ${table} values (${values.map(() => "?").join(", ")})`, values);

interface Parts {
  plugins?: (db: TestDatabase) => BetterAuthPlugin[];
  tenant?: TenantAuthOptions;
  auth?: (db: TestDatabase) => Partial<BetterAuthOptions>;
  /** Tables that the application makes itself. */
  sql?: string[];
  /** Where a tenant is, if it has an address of its own. */
  origin?: (slug: string) => string;
  /** What people have to say when they sign up. */
  person?: Record<string, unknown>;
}

const ORIGIN = "http://localhost:3000";
export const PASSWORD = "correct horse battery";

/** Somebody of a tenant, in a browser that is signed in. */
interface Person {
  tenantId: string;
  slug: string;
  userId: string;
  email: string;
  name: string;
  browser: Browser;
  headers(): Record<string, string>;
}

/** Both have the same e-mail address, as the same person at two companies has. */
interface Two {
  a: Person;
  b: Person;
  db: TestDatabase;
  /** A browser without a session, which names the tenant of somebody. */
  strangerAt(of: Person): Browser;
  /** A request to a route of the application. */
  request: Request;
  /** Somebody else at the tenant of somebody. */
  colleague(of: Person, email: string, name: string): Promise<Person>;
}

async function assemble({ plugins = () => [], sql = [], ...parts }: Parts) {
  const db = await createDatabase(process.env.TEST_SERVERS ? "postgres" : "sqlite");
  onTestFinished(() => db.close());
  const options = parts.auth?.(db);
  const auth = betterAuth({
    baseURL: ORIGIN,
    secret: "a test secret that is long enough for everybody",
    database: db.option,
    logger: { disabled: true },
    ...options,
    emailAndPassword: { enabled: true, password: CHEAP, ...options?.emailAndPassword },
    // better-auth switches this check off under test runners.
    advanced: { disableOriginCheck: false },
    plugins: [tenantAuth(parts.tenant), ...plugins(db)] as BetterAuthPlugin[],
  });
  await (await getMigrations(auth.options)).runMigrations();
  for (const statement of sql) {
    if (db.kind === "sqlite") await db.query(statement);
    else if (!statement.startsWith("pragma")) await db.query(statement.replace(...COUNTING));
  }
  /** Two tenants with somebody in each, for an exploit. */
  const attack = (run: (two: Omit<Two, "request">) => Promise<boolean>) => async () => {
    const join = (tenant: Tenant, email: string, name: string) =>
      signUp(auth, db, tenant, { email, name, ...parts.person }, parts.origin?.(tenant.slug));
    const acme = await createTenant(auth, "acme");
    const globex = await createTenant(auth, "globex");
    return run({
      a: await join(acme, "sam@example.com", "Sam of Acme"),
      b: await join(globex, "sam@example.com", "Sam of Globex"),
      db,
      strangerAt: ({ tenantId }) =>
        new Browser(auth.handler, `${ORIGIN}/api/auth`, { "x-tenant-id": tenantId }),
      colleague: (of, email, name) => join({ id: of.tenantId, slug: of.slug }, email, name),
    });
  };
  return { auth: auth as unknown as AuthInstance, api: auth.api, db, attack };
}

/** How SQLite and PostgreSQL count rows. */
const COUNTING = ["integer primary key autoincrement", "serial primary key"] as const;

/** A real hash costs a tenth of a second, and says nothing about tenants. */
const CHEAP = {
  hash: async (password: string) => `hashed:${password}`,
  verify: async ({ hash, password }: { hash: string; password: string }) =>
    hash === `hashed:${password}`,
};

interface Tenant {
  id: string;
  slug: string;
}

/** By the adapter: where the base URL goes by the request, a call of `auth.api` takes one. */
async function createTenant({ $context }: { $context: Promise<object> }, slug: string) {
  const { adapter } = (await $context) as AuthContext;
  const now = new Date();
  const data = { name: slug, slug, status: "active", createdAt: now, updatedAt: now };
  return adapter.create<typeof data, Tenant>({ model: "tenant", data });
}

/** Signs somebody up; where that is closed, an operator of the server has put them there. */
async function signUp(
  { handler, api }: Pick<AuthInstance, "handler" | "api">,
  db: TestDatabase,
  { id: tenantId, slug }: Tenant,
  values: { email: string; name: string },
  origin = ORIGIN,
): Promise<Person> {
  const { email, name } = values;
  const browser = new Browser(handler, `${origin}/api/auth`, { "x-tenant-id": tenantId });
  const body = { ...values, password: PASSWORD, tenantId };
  const signedUp = await browser.post("/tenant/sign-up/email", body);
  if (signedUp.status !== 200) await putThere(api, body);
  if (!browser.cookies.size) {
    await db.query(`update "user" set "emailVerified" = true where email = ?`, [email]);
    await must(browser.post("/sign-in/email", { email, password: PASSWORD }));
  }
  const { data } = await must(browser.get<{ user: { id: string } }>("/get-session"));
  const headers = () => ({ "x-tenant-id": tenantId, cookie: browser.cookieHeader(), origin });
  return { tenantId, slug, userId: data.user.id, email, name, browser, headers };
}

async function putThere(api: object, { tenantId, ...values }: Record<string, unknown>) {
  const { createUser } = api as { createUser?(call: object): Promise<unknown> };
  const { email, name, password, ...data } = values;
  if (!createUser) throw new Error("nobody can sign up, and there is no admin plugin");
  const body = { email, name, password, data };
  await runInTenant(String(tenantId), async () => createUser({ body }));
}

/** An exploit whose preparation fails proves nothing. */
export async function must<T>(answer: Promise<Answer<T>>): Promise<Answer<T>> {
  const { status, data, ...rest } = await answer;
  if (status < 400) return { status, data, ...rest };
  throw new Error(`${status}: ${JSON.stringify(data)}`);
}

/** Whether an answer says something. */
export const says = ({ data }: { data: unknown }, text: string) =>
  JSON.stringify(data)?.includes(text) ?? false;

/** The tenant of the running request, as it is stored: the platform is an empty text. */
export const here = () => getTenantId() ?? "";

export const newId = () => crypto.randomUUID();
