import {
  type AuthContext,
  type BetterAuthOptions,
  type BetterAuthPlugin,
  betterAuth,
} from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { onTestFinished } from "vitest";
import { getTenantId, runInTenant, type TenantAuthOptions, tenantAuth } from "../../../src/index";
import {
  type AuthInstance,
  checkIsolation,
  type IsolationOptions,
} from "../../../src/testing/index";
import { type Answer, Browser } from "../../support/browser";
import { createDatabase, type TestDatabase } from "../../support/database";
import { everyCase, partOfToday, sample } from "../../support/matrix";

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

/** On PostgreSQL another tenth of the applications every day, on SQLite a few; APPLICATIONS=all: all. */
export function share(list: Application[]): Application[] {
  if (process.env.APPLICATIONS === "all") return list;
  const { oneOf, offset } = partOfToday(10);
  return everyCase ? list.filter((_, index) => index % oneOf === offset) : sample(list, 4);
}

/** A hole, and the same application without it. */
export function twins(both: {
  name: string;
  sound: string;
  hole: string;
  endpoint: string;
  build(sound: boolean): Promise<Built>;
}): Application[] {
  const { name, hole, endpoint, build } = both;
  return [
    { name, hole, endpoint, build: () => build(false) },
    { name: both.sound, build: () => build(true) },
  ];
}

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

export const ORIGIN = "http://localhost:3000";
export const PASSWORD = "correct horse battery";

/** Somebody of a tenant, in a browser that is signed in. */
export interface Person {
  tenantId: string;
  slug: string;
  userId: string;
  email: string;
  name: string;
  browser: Browser;
  headers(): Record<string, string>;
}

/** Both have the same e-mail address, as the same person at two companies has. */
export interface Two {
  a: Person;
  b: Person;
  /** Somebody else at the tenant of somebody. */
  colleague(of: Person, email: string, name: string): Promise<Person>;
}

export async function assemble({ plugins = () => [], sql = [], ...parts }: Parts) {
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
  const attack = (run: (two: Two) => Promise<boolean>) => async () => {
    const join = (tenant: Tenant, email: string, name: string) =>
      signUp(auth, db, tenant, { email, name, ...parts.person }, parts.origin?.(tenant.slug));
    const acme = await createTenant(auth, "acme");
    const globex = await createTenant(auth, "globex");
    return run({
      a: await join(acme, "sam@example.com", "Sam of Acme"),
      b: await join(globex, "sam@example.com", "Sam of Globex"),
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
