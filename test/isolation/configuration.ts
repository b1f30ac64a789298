import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { nextCookies } from "better-auth/next-js";
import { byDomain, bySlug, bySubdomain, type TenantAuthOptions } from "../../src/index";
import type { Address } from "../../src/testing/index";
import { createMemory } from "../configurations/memory";
import { ORDERS, SHUFFLED } from "../configurations/orders";
import { createStorage, STORAGE_KINDS } from "../configurations/storages";
import { createInstance, type InstanceOptions } from "../support/instance";
import { PLUGIN_SETS } from "./plugin-sets";

/** What an application may have that the border has to hold with: one value of each axis. */
export const AXES = {
  plugins: ["none", "groups", "codes", "keys", "others"],
  order: ["first", "last", "in between", "shuffled, seed 1"],
  sessions: [
    "database",
    "storage",
    "reordering storage",
    "both",
    "compact",
    "jwt",
    "jwe",
    "stateless",
  ],
  naming: ["header", "own header", "slug", "subdomain", "domain", "resolver"],
  cookies: ["shared", "per-tenant"],
  ids: ["text", "serial", "uuid"],
  joins: ["off", "on"],
  state: ["database", "cookie"],
  names: ["plain", "renamed"],
  database: ["sqlite", "memory", "postgres", "mysql"],
  hooks: ["none", "database hooks", "nextCookies"],
} as const;

type Axes = typeof AXES;
export type Configuration = {
  [Axis in Exclude<keyof Axes, "plugins">]: Axes[Axis][number];
} & { plugins: keyof typeof PLUGIN_SETS };

export const PLAIN: Configuration = {
  plugins: "all",
  order: "first",
  sessions: "database",
  naming: "header",
  cookies: "shared",
  ids: "text",
  joins: "off",
  state: "database",
  names: "plain",
  database: "sqlite",
  hooks: "none",
};

const BASE_DOMAIN = "example.com";

/** better-auth answers on every host. */
const manyHosts: BetterAuthOptions["baseURL"] = {
  allowedHosts: [BASE_DOMAIN, `*.${BASE_DOMAIN}`, "*.example.org"],
  protocol: "http",
  fallback: `http://${BASE_DOMAIN}`,
};

/**
 * better-auth writes renamed models into the schemas of its plugins, which are shared by all
 * instances of a process, and so by all tests of a worker.
 */
function withSchemaOfItsOwn(plugin: BetterAuthPlugin): BetterAuthPlugin {
  const tables = Object.entries(plugin.schema ?? {}).map(([model, table]) => {
    const fields = Object.entries(table.fields).map(([name, field]) => [
      name,
      field.references ? { ...field, references: { ...field.references } } : field,
    ]);
    return [model, { ...table, fields: Object.fromEntries(fields) }];
  });
  return plugin.schema ? { ...plugin, schema: Object.fromEntries(tables) } : plugin;
}

/** What an application would write. */
export async function createConfigured(configuration: Configuration) {
  const { database, order, cookies } = configuration;
  const entries = new Map<string, string>();
  const { plugins, scopedModels } = PLUGIN_SETS[configuration.plugins](usesStorage(configuration));
  const [, arrange] = [...ORDERS, ...SHUFFLED].find(([name]) => name === order) ?? [];
  const memory = configuration.sessions === "stateless" || database === "memory";
  const extra: BetterAuthPlugin[] = configuration.hooks === "nextCookies" ? [nextCookies()] : [];
  const instance = await createInstance({
    plugins: [...plugins.map(withSchemaOfItsOwn), ...extra],
    tenant: {
      scopedModels,
      sessionCookies: cookies,
      ...naming(configuration),
      ...names(configuration),
    },
    auth: { ...authOptions(configuration), ...sessions(configuration, entries) },
    ...(arrange && { arrange }),
    ...(memory ? { database: createMemory().database, migrate: false } : { database }),
  } as InstanceOptions);
  const address = addresses(configuration);
  return { ...instance, entries, options: address ? { address } : {} };
}

const usesStorage = ({ sessions }: Configuration) => /storage|both/.test(sessions);

function naming({ naming: kind }: Configuration): TenantAuthOptions {
  if (kind === "own header") return { tenantHeader: "x-organisation" };
  if (kind === "slug") return { resolveTenantId: bySlug() };
  if (kind === "subdomain") return { resolveTenantId: bySubdomain({ baseDomain: BASE_DOMAIN }) };
  if (kind === "domain") {
    const suffix = ".example.org";
    const find = (host: string) =>
      host.endsWith(suffix) ? { slug: host.slice(0, -suffix.length) } : false;
    return { resolveTenantId: byDomain(find) };
  }
  if (kind === "resolver") {
    return {
      resolveTenantId: ({ headers, request }) =>
        (headers ?? request?.headers)?.get("x-resolved-tenant"),
    };
  }
  return {};
}

function addresses({ naming: kind }: Configuration): Address | undefined {
  if (kind === "domain") {
    return (tenant) => `http://${tenant ? `${tenant.slug}.example.org` : BASE_DOMAIN}`;
  }
  if (kind !== "resolver") return undefined;
  return (tenant) => (tenant ? { headers: { "x-resolved-tenant": tenant.id } } : {});
}

function names({ names: kind }: Configuration): TenantAuthOptions {
  if (kind === "plain") return {};
  const column = { fields: { tenantId: "organisation_id" } };
  return {
    schema: {
      tenant: { modelName: "organisations", fields: { slug: "handle" } },
      tenantOauthConfig: { modelName: "providers", fields: { tenantId: "organisation_id" } },
      user: { fields: { tenantId: "organisation_id", email: "email_address" } },
      session: column,
      account: { fields: { tenantId: "organisation_id", accountId: "provider_key" } },
      verification: column,
    },
  };
}

const nowhere = async () => {
  throw new Error("the kit was to stand in for this sender");
};

function authOptions(configuration: Configuration): Partial<BetterAuthOptions> {
  const { ids, joins, state, hooks, names: kind, naming: by } = configuration;
  const renamed = kind === "renamed";
  return {
    ...(/domain/.test(by) && { baseURL: manyHosts }),
    emailAndPassword: { enabled: true, sendResetPassword: nowhere },
    emailVerification: { autoSignInAfterVerification: true, sendVerificationEmail: nowhere },
    user: {
      changeEmail: { enabled: true },
      deleteUser: { enabled: true, sendDeleteAccountVerification: nowhere },
      ...(renamed && { modelName: "people", fields: { email: "email_address" } }),
    },
    account: {
      storeStateStrategy: state,
      ...(renamed && { modelName: "people_accounts", fields: { accountId: "provider_key" } }),
    },
    ...(renamed && { verification: { modelName: "people_tokens" } }),
    socialProviders: { google: { clientId: "google-platform", clientSecret: "secret-platform" } },
    advanced: {
      database: { ...(ids !== "text" && { generateId: ids }) },
    },
    ...(joins === "on" && JOINS),
    ...(hooks === "database hooks" && { databaseHooks }),
  };
}

/** Not in the types of this version any more, and still looked at. */
const JOINS = { experimental: { joins: true } } as Partial<BetterAuthOptions>;

const databaseHooks: BetterAuthOptions["databaseHooks"] = {
  user: {
    create: { before: async (user) => ({ data: { ...user, image: "https://example.com/i" } }) },
  },
  session: {
    create: { before: async (session) => ({ data: { ...session, userAgent: "hooked" } }) },
  },
};

function sessions(
  { sessions: kind, names: named }: Configuration,
  entries: Map<string, string>,
): Partial<BetterAuthOptions> {
  const model = named === "renamed" ? { modelName: "people_sessions" } : {};
  if (kind === "database") return { session: model };
  if (kind === "stateless") {
    const cookieCache = {
      enabled: true,
      strategy: "jwe",
      maxAge: 3600,
      refreshCache: true,
    } as const;
    return {
      session: { ...model, cookieCache },
      account: { storeAccountCookie: true, storeStateStrategy: "cookie" },
    };
  }
  if (usesStorage({ sessions: kind } as Configuration)) {
    const habit =
      kind === "reordering storage" ? "orders keys and adds blanks" : "gives back what it got";
    const storage = STORAGE_KINDS.find(({ name }) => name === habit);
    if (!storage) throw new Error(`no storage that ${habit}`);
    return {
      session: { ...model, storeSessionInDatabase: kind === "both" },
      secondaryStorage: createStorage(storage, entries),
    };
  }
  const strategy = kind as "compact" | "jwt" | "jwe";
  return { session: { ...model, cookieCache: { enabled: true, strategy, maxAge: 3600 } } };
}
