import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import { scim } from "@better-auth/scim";
import { sso } from "@better-auth/sso";
import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { nextCookies } from "better-auth/next-js";
import {
  anonymous,
  bearer,
  captcha,
  customSession,
  deviceAuthorization,
  emailOTP,
  genericOAuth,
  haveIBeenPwned,
  jwt,
  lastLoginMethod,
  magicLink,
  multiSession,
  oneTap,
  oneTimeToken,
  openAPI,
  organization,
  phoneNumber,
  siwe,
  twoFactor,
  username,
} from "better-auth/plugins";
import { expect } from "vitest";
import { tenantDomains } from "../../src/features/domains/index";
import { tenantInvitations } from "../../src/features/invitations/index";
import { byDomain, bySlug, bySubdomain, type TenantAuthOptions } from "../../src/index";
import {
  type Address,
  checkIsolation,
  type Extent,
  type IsolationOptions,
} from "../../src/testing/index";
import { createInstance, type InstanceOptions } from "../support/instance";
import { createRandom, everyCase, ORDERS, SHUFFLED } from "../support/matrix";
import { createMemory, createStorage, STORAGE_KINDS } from "../support/stores";

/** A part of what the kit can try: small in `npm test`, all of it or most where every case is tried. */
export const oneOf = (fast: number, full: number, offset = 0): Extent => ({
  oneOf: everyCase ? full : fast,
  offset,
});

type Auth = Parameters<typeof checkIsolation>[0];

/** Nothing leaks, and all is tried but what is known not to be. */
export async function holds(
  auth: Auth,
  options: IsolationOptions,
  untried: Record<string, string> = {},
) {
  const report = await checkIsolation(auth, options);
  const unexplained = report.untried.filter(
    ({ what, reason }) => !(what in untried && reason.includes(String(untried[what]))),
  );
  expect([report.leaks, report.failures, unexplained]).toEqual([[], [], []]);
  return report.counts;
}

const CACHES = ["compact", "jwt", "jwe"] as const;

/** What an application may have that isolation has to hold with: one value of each axis. */
export const AXES = {
  plugins: ["none", "groups", "codes", "keys", "others"],
  order: ["first", "last", "in between", "shuffled, seed 1"],
  sessions: ["database", "storage", "reordering storage", "both", ...CACHES],
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
  const _memory = database === "memory";
  const extra: BetterAuthPlugin[] = configuration.hooks === "nextCookies" ? [nextCookies()] : [];
  const instance = await createInstance({
    plugins: [...plugins.map(withSchemaOfItsOwn), ...extra],
    tenant: {
      scopedModels,
      sessionCookies: cookies,
      ...NAMING[configuration.naming],
      ...names(configuration),
    },
    auth: { ...authOptions(configuration), ...sessions(configuration, entries) },
    arrange: new Map([...ORDERS, ...SHUFFLED]).get(order),
    ...(database === "memory"
      ? { database: createMemory().database, migrate: false }
      : { database }),
  } as InstanceOptions);
  const address = ADDRESSES[configuration.naming];
  return { ...instance, entries, options: address ? { address } : {} };
}

const usesStorage = ({ sessions }: Configuration) => /storage|both/.test(sessions);

/** The domain of a tenant that has one of its own. */
const OWN_DOMAIN = /^(.+)\.example\.org$/;

const NAMING: Record<Configuration["naming"], TenantAuthOptions> = {
  header: {},
  "own header": { tenantHeader: "x-organisation" },
  slug: { resolveTenantId: bySlug() },
  subdomain: { resolveTenantId: bySubdomain({ baseDomain: BASE_DOMAIN }) },
  domain: {
    resolveTenantId: byDomain((host) => {
      const [, slug] = OWN_DOMAIN.exec(host) ?? [];
      return slug ? { slug } : false;
    }),
  },
  resolver: {
    resolveTenantId: ({ headers, request }) =>
      (headers ?? request?.headers)?.get("x-resolved-tenant"),
  },
};

const ADDRESSES: Partial<Record<Configuration["naming"], Address>> = {
  domain: (tenant) => `http://${tenant ? `${tenant.slug}.example.org` : BASE_DOMAIN}`,
  resolver: (tenant) => (tenant ? { headers: { "x-resolved-tenant": tenant.id } } : {}),
};

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

function authOptions(configuration: Configuration): Partial<BetterAuthOptions> {
  const { ids, joins, state, hooks, names: kind, naming: by } = configuration;
  const renamed = kind === "renamed";
  return {
    ...(/domain/.test(by) && { baseURL: manyHosts }),
    emailAndPassword: { enabled: true, sendResetPassword: never },
    emailVerification: { autoSignInAfterVerification: true, sendVerificationEmail: never },
    user: {
      changeEmail: { enabled: true },
      deleteUser: { enabled: true, sendDeleteAccountVerification: never },
      ...(renamed && { modelName: "people", fields: { email: "email_address" } }),
    },
    account: {
      storeStateStrategy: state,
      ...(renamed && { modelName: "people_accounts", fields: { accountId: "provider_key" } }),
    },
    ...(renamed && { verification: { modelName: "people_tokens" } }),
    socialProviders: { google: { clientId: "google-platform", clientSecret: "secret-platform" } },
    advanced: { database: { ...(ids !== "text" && { generateId: ids }) } },
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
  const cached = { enabled: true, maxAge: 3600 };
  if (kind === "compact" || kind === "jwt" || kind === "jwe") {
    return { session: { ...model, cookieCache: { ...cached, strategy: kind } } };
  }
  if (kind === "database") return { session: model };
  const habit =
    kind === "reordering storage" ? "orders keys and adds blanks" : "gives back what it got";
  const storage = STORAGE_KINDS.find(({ name }) => name === habit);
  if (!storage) throw new Error(`no storage that ${habit}`);
  return {
    session: { ...model, storeSessionInDatabase: kind === "both" },
    secondaryStorage: createStorage(storage, entries),
  };
}

interface PluginSet {
  plugins: BetterAuthPlugin[];
  scopedModels: string[];
}

/** On a slow machine a run takes longer than most codes are good for. */
const HOUR = 3600;

const never = async () => {
  throw new Error("the kit was to stand in for this sender");
};

/** Organizations and teams, our own invitations beside theirs, and domains. */
const groups = (): PluginSet => ({
  plugins: [
    organization({ teams: { enabled: true } }),
    bearer(),
    tenantInvitations({ sendInvitationEmail: never }),
    tenantDomains(),
  ],
  scopedModels: ["organization", "member", "team", "teamMember", "invitation"],
});

/** Everything that is sent to people. */
const codes = (): PluginSet => ({
  plugins: [
    twoFactor({
      otpOptions: { period: HOUR / 60, sendOTP: never },
      twoFactorCookieMaxAge: HOUR,
    }),
    emailOTP({
      expiresIn: HOUR,
      changeEmail: { enabled: true },
      sendVerificationOTP: async () => {},
    }),
    magicLink({ expiresIn: HOUR, sendMagicLink: never }),
    phoneNumber({
      expiresIn: HOUR,
      sendOTP: async () => {},
      sendPasswordResetOTP: async () => {},
    }),
    oneTimeToken({ expiresIn: HOUR / 60 }),
  ],
  scopedModels: ["twoFactor"],
});

/** Everything that people and machines keep. */
const keys = (inStorage: boolean): PluginSet => ({
  plugins: [
    passkey(),
    apiKey({
      enableSessionForAPIKeys: true,
      rateLimit: { enabled: false },
      storage: inStorage ? "secondary-storage" : "database",
    }),
    deviceAuthorization({ interval: "1s", expiresIn: "1h" }),
    siwe({ domain: "localhost:3000", getNonce: nonce, verifyMessage: async () => false }),
    jwt(),
    bearer(),
    multiSession(),
  ],
  scopedModels: ["passkey", "apikey", "deviceCode", "walletAddress"],
});

const nonce = async () => `nonce${Math.random().toString(36).slice(2)}`;

/** Those that have little to do with tenants, or so one would think. */
const others = (): PluginSet => ({
  plugins: [
    username(),
    anonymous(),
    captcha({ provider: "cloudflare-turnstile", secretKey: "key" }),
    customSession(async ({ user, session }) => ({ user, session, custom: true })),
    genericOAuth({ config: [] }),
    haveIBeenPwned(),
    lastLoginMethod(),
    oneTap(),
    openAPI(),
  ],
  scopedModels: [],
});

export const PLUGIN_SETS = {
  none: (): PluginSet => ({ plugins: [], scopedModels: [] }),
  groups,
  codes,
  keys,
  others,
  /** With the admin plugin, which every test instance has, all 23 official ones that we know of, and ours. */
  all: (inStorage: boolean): PluginSet => {
    const sets = [groups(), codes(), keys(inStorage), others()];
    const plugins = new Map(sets.flatMap(({ plugins }) => plugins.map((one) => [one.id, one])));
    return {
      plugins: [...plugins.values()],
      scopedModels: sets.flatMap(({ scopedModels }) => scopedModels),
    };
  },
} satisfies Record<string, (inStorage: boolean) => PluginSet>;

/** The pairs of values that a row has. */
export function pairsIn(row: Record<string, string>): string[] {
  const entries = Object.entries(row).map(([axis, value]) => `${axis}=${value}`);
  return entries.flatMap((one, index) =>
    entries.slice(index + 1).map((other) => `${one} ${other}`),
  );
}

/**
 * Rows in which every pair of values occurs. Greedy: first those that have many new pairs, and at
 * last those that have a single one.
 */
export function coveringSet(isImpossible: (row: Configuration) => boolean): Configuration[] {
  const random = createRandom(7);
  const pick = () =>
    Object.fromEntries(
      Object.entries(AXES).map(([axis, values]) => [
        axis,
        values[Math.floor(random() * values.length)],
      ]),
    ) as Configuration;
  const seen = new Set<string>();
  const rows: Configuration[] = [];
  for (let least = 55; least > 0; least--) {
    for (let tries = 0; tries < 400; tries++) {
      const row = pick();
      const fresh = pairsIn(row).filter((pair) => !seen.has(pair));
      if (isImpossible(row) || fresh.length < least) continue;
      for (const pair of fresh) seen.add(pair);
      rows.push(row);
    }
  }
  return rows;
}

/** Single sign-on and directories, with everything switched on. */
export const enterprisePlugins = () => [
  sso({ domainVerification: { enabled: true }, saml: { enableSingleLogout: true } }),
  scim({
    connections: [],
    managedConnections: { credentialHashSecret: "a secret that hashes the tokens of directories" },
  }),
];
