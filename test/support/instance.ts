import { copyFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type BetterAuthOptions, type BetterAuthPlugin, betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { admin } from "better-auth/plugins";
import { build } from "tsup";
import { afterAll, onTestFinished } from "vitest";
import { type TenantAuthOptions, tenantAuth } from "../../src/index";
import { Browser } from "./browser";
import { createDatabase, type DatabaseKind, type TestDatabase } from "./database";
import { hear, watchSecrets } from "./secret-spy";

export type Copy = typeof import("../../src/index");

const ROOT = join(import.meta.dirname, "../..");
/** Beside better-auth, so that all copies share that. */
const CACHE = join(ROOT, "node_modules/.cache/second-copy");

let bundle: Promise<string> | undefined;
let copies = 0;

/** In one piece: a copy is whole, also in what it would load late. */
async function buildBundle(): Promise<string> {
  const outDir = join(CACHE, `${process.pid}-${Date.now()}`);
  const entry = [join(ROOT, "src/index.ts")];
  await build({ config: false, entry, format: "esm", outDir, splitting: false, silent: true });
  return outDir;
}

/** For files that use copies: nothing of them is left behind. */
export function cleanUpCopies(): void {
  afterAll(async () => {
    if (bundle) await rm(await bundle, { recursive: true });
    bundle = undefined;
  });
}

/** The package once more, as a bundle of its own or a hot reload brings it into the process. */
export async function secondCopy(): Promise<Copy> {
  bundle ??= buildBundle();
  const directory = await bundle;
  const file = join(directory, `copy-${++copies}.js`);
  await copyFile(join(directory, "index.js"), file);
  return import(/* @vite-ignore */ pathToFileURL(file).href);
}

export const BASE_URL = "http://localhost:3000/api/auth";
export const PASSWORD = "correct horse battery";

/** What somebody new signs up with. */
export const newcomer = (email = `${crypto.randomUUID()}@example.com`) => ({
  name: "New",
  email,
  password: PASSWORD,
});

export interface InstanceOptions {
  /** Options of `tenantAuth()`. */
  tenant?: TenantAuthOptions;
  /** The plugin of another copy of the package. */
  tenantAuth?: typeof tenantAuth;
  /** Options of `betterAuth()`, on top of the ones below. */
  auth?: Partial<BetterAuthOptions>;
  plugins?: BetterAuthPlugin[];
  /** Puts the plugins in order: ours stands before the admin plugin and all others otherwise. */
  arrange?: (ours: BetterAuthPlugin, others: BetterAuthPlugin[]) => BetterAuthPlugin[];
  database?: DatabaseKind | TestDatabase;
  /** False leaves the tables to the test. */
  migrate?: boolean;
}

type Signed = { token: string; user: { id: string; email: string; tenantId: string | null } };

export type Instance = Awaited<ReturnType<typeof createInstance>>;

/** A whole better-auth with the plugin, on a real database with real migrations. */
export async function createInstance(options: InstanceOptions = {}) {
  const { tenant, auth: authOptions, plugins = [], arrange, migrate = true } = options;
  const ours = (options.tenantAuth ?? tenantAuth)(tenant);
  const database =
    typeof options.database === "object"
      ? options.database
      : await createDatabase(options.database ?? "sqlite");
  const logs: string[] = [];
  const auth = betterAuth({
    ...baseOptions(database, logs, authOptions),
    plugins: arranged([ours, admin(), ...plugins], arrange),
  });
  // First the start: what is wrong with the options shows there.
  const context = await auth.$context;
  if (migrate) await (await getMigrations(auth.options)).runMigrations();
  if (typeof options.database !== "object") onTestFinished(() => database.close());
  watchSecrets(auth, database, context.tables.tenantOauthConfig?.modelName ?? "");

  const browser = (headers?: Record<string, string>) =>
    new Browser(auth.handler, BASE_URL, headers);
  const api = auth.api;
  let count = 0;

  return {
    auth,
    api,
    context,
    database,
    logs,
    browser,

    /** A tenant, made by the server itself. */
    createTenant: (slug = `tenant-${++count}`) =>
      api.createTenant({ body: { name: slug.toUpperCase(), slug } }),

    /** Somebody signed up in a tenant, or on the platform with null; the browser is signed in. */
    async signUp(tenantId: string | null, email = `user-${++count}@example.com`) {
      const person = browser();
      const path = tenantId === null ? "/sign-up/email" : "/tenant/sign-up/email";
      const body = { name: "Somebody", email, password: PASSWORD };
      const named = tenantId === null ? body : { ...body, tenantId };
      const { status, data } = await person.post<Signed>(path, named);
      if (status !== 200) throw new Error(`sign-up: ${JSON.stringify(data)}`);
      return { ...data, browser: person, email };
    },

    /** A signed-in user of the platform with the admin role: may manage tenants by default. */
    async operator() {
      const person = await this.signUp(null);
      const table = database.quote("user");
      await database.query(`update ${table} set role = 'admin' where id = ?`, [person.user.id]);
      return person;
    },

    /** How many rows there are in a table. */
    async rows(table: string, where = "1 = 1", params: unknown[] = []) {
      const count = `select count(*) as n from ${database.quote(table)} where ${where}`;
      return Number((await database.query(count, params))[0]?.n);
    },
  };
}

/** The same plugins for the compiler, perhaps in another order. A test may bring its own admin plugin. */
function arranged<List extends [] | BetterAuthPlugin[]>(
  list: List,
  arrange: InstanceOptions["arrange"],
): List {
  const last = new Map(list.map((plugin: BetterAuthPlugin) => [plugin.id, plugin]));
  const [ours, ...others] = list.filter((plugin) => last.get(plugin.id) === plugin);
  return (ours && arrange ? arrange(ours, others) : [ours, ...others]) as List;
}

/** The same better-auth without the plugin: what an application was before, or is compared with. */
export async function createPlainInstance(
  database: Pick<TestDatabase, "option">,
  authOptions?: Partial<BetterAuthOptions>,
  plugins: BetterAuthPlugin[] = [admin()],
) {
  const logs: string[] = [];
  const auth = betterAuth({ ...baseOptions(database, logs, authOptions), plugins });
  await (await getMigrations(auth.options)).runMigrations();
  await auth.$context;
  return { auth, logs, browser: () => new Browser(auth.handler, BASE_URL) };
}

function baseOptions(
  database: Pick<TestDatabase, "option">,
  logs: string[],
  authOptions?: Partial<BetterAuthOptions>,
) {
  return {
    baseURL: "http://localhost:3000",
    secret: "a test secret that is long enough for everybody",
    database: database.option,
    ...authOptions,
    emailAndPassword: {
      enabled: true,
      // A real hash costs a tenth of a second, and says nothing about tenants.
      password: {
        hash: async (password) => `hashed:${password}`,
        verify: async ({ hash, password }) => hash === `hashed:${password}`,
      },
      ...authOptions?.emailAndPassword,
    },
    // better-auth switches this check off under test runners. We want to be tested with it.
    advanced: { disableOriginCheck: false, ...authOptions?.advanced },
    logger: {
      level: "debug",
      disableColors: true,
      ...authOptions?.logger,
      log: (level, message, ...args) => {
        hear("log", level, message, ...args);
        logs.push([level, message, ...args.map(printable)].join(" "));
        authOptions?.logger?.log?.(level, message, ...args);
      },
    },
  } satisfies BetterAuthOptions;
}

function printable(value: unknown): string {
  if (value instanceof Error) return `${value.stack} ${JSON.stringify(value)}`;
  try {
    return typeof value === "string" ? value : JSON.stringify(value);
  } catch {
    return String(value);
  }
}
