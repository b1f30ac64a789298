import { AsyncLocalStorage } from "node:async_hooks";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { electron } from "@better-auth/electron";
import { expo } from "@better-auth/expo";
import { i18n } from "@better-auth/i18n";
import { mcp } from "@better-auth/mcp";
import { oauthProvider } from "@better-auth/oauth-provider";
import { stripe } from "@better-auth/stripe";
import type { BetterAuthPlugin } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { bearer, jwt, oAuthProxy, oauthPopup } from "better-auth/plugins";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { tenantInvitations } from "../../src/invitations/index";
import { checkIsolation, type Extent, type IsolationOptions } from "../../src/testing/index";
import { SCIM_MODELS } from "../enterprise/world";
import { createStripe, PRICE, WEBHOOK_SECRET } from "../packages/fake-stripe";
import { databases } from "../support/database";
import { createInstance, type InstanceOptions } from "../support/instance";
import { everyCase, sample } from "../support/matrix";
import { createStorage } from "../support/stores";
import { SUBDOMAINS } from "../support/world";
import {
  AXES,
  type Configuration,
  coveringSet,
  createConfigured,
  enterprisePlugins,
  oneOf,
  PLAIN,
  pairsIn,
} from "./configurations";

const LONG = { timeout: 600_000 };
type Auth = Parameters<typeof checkIsolation>[0];

/** Nothing crosses the border, and all is tried but what is known not to be. */
async function holds(auth: Auth, options: IsolationOptions, untried: Record<string, string> = {}) {
  const report = await checkIsolation(auth, options);
  const unexplained = report.untried.filter(
    ({ what, reason }) => !(what in untried && reason.includes(String(untried[what]))),
  );
  expect([report.leaks, report.failures, unexplained]).toEqual([[], [], []]);
  return report.counts;
}

/** better-auth's memory adapter numbers rows by how many there are, so a number is soon given twice. */
const isImpossible = ({ ids, database, sessions }: Partial<Configuration>) =>
  ids === "serial" && (database === "memory" || sessions === "stateless");

describe("a covering set of configurations", () => {
  const all: Configuration[] = coveringSet(AXES, 60, isImpossible);
  const needsServer = ({ database, sessions }: Configuration) =>
    sessions !== "stateless" && (database === "postgres" || database === "mysql");
  const here = all.filter((one) => databases.includes("postgres") || !needsServer(one));
  const wanted = sample(here, 2);

  it("has every pair of values at least once, in sixty configurations or more", () => {
    const there = new Set(all.flatMap(pairsIn));
    const axes = Object.entries(AXES).flatMap(([axis, values]) =>
      values.map((value) => [axis, value] as const),
    );
    for (const [one, a] of axes) {
      for (const [other, b] of axes) {
        const possible = one !== other && !isImpossible({ [one]: a, [other]: b });
        const names = [`${one}=${a} ${other}=${b}`, `${other}=${b} ${one}=${a}`];
        if (possible)
          expect(
            names.some((pair) => there.has(pair)),
            names[0],
          ).toBe(true);
      }
    }
    expect(all.length).toBeGreaterThanOrEqual(60);
    console.log(
      `isolation: ${wanted.length} of ${all.length} configurations here (npm run test:servers tries all)`,
    );
  });

  it.each(wanted.map((one, index) => [Object.values(one).join(", "), one, index] as const))(
    "nothing crosses the border: %s",
    LONG,
    async (_title, configuration, index) => {
      const { auth, options } = await createConfigured(configuration);
      const { attempts } = await holds(auth, {
        ...options,
        extent: oneOf(25, needsServer(configuration) ? 16 : 25, index),
      });
      expect(attempts).toBeGreaterThan(20);
    },
  );
});

/** All 23 official plugins, in the configurations that have had holes. */
const ALL_PLUGINS: [name: string, changes: Partial<Configuration>, extent: Extent][] = [
  ["as they come", {}, { ...oneOf(21, 1), everyNaming: everyCase }],
  ["compact", { sessions: "compact" }, oneOf(21, 10)],
  ["jwt, ours last", { sessions: "jwt", order: "last" }, oneOf(21, 10, 1)],
  ["jwe, ours in between", { sessions: "jwe", order: "in between" }, oneOf(21, 10, 2)],
  ["secondary storage", { sessions: "storage" }, oneOf(21, 10)],
  ["a storage that reorders JSON", { sessions: "reordering storage" }, oneOf(21, 10, 1)],
  ["hosts, shuffled", { naming: "subdomain", order: "shuffled, seed 1" }, oneOf(21, 14)],
  [
    "hosts, storage, per-tenant cookies",
    { naming: "subdomain", sessions: "storage", cookies: "per-tenant" },
    oneOf(21, 14, 1),
  ],
  ["own domains, jwe", { naming: "domain", sessions: "jwe" }, oneOf(21, 14, 2)],
  ["a resolver, ours last", { naming: "resolver", order: "last" }, oneOf(21, 14)],
];

// Furnishing a world with all of them takes longer than all other tests of a room.
it.runIf(everyCase).each(ALL_PLUGINS)(
  "R3, R4, R5, R6, R8: nothing crosses the border (all plugins, %s)",
  { timeout: 900_000 },
  async (name, changes, extent) => {
    const { auth, options, entries } = await createConfigured({ ...PLAIN, ...changes });
    const { endpoints, credentials, attempts } = await holds(auth, { ...options, extent });
    console.log(
      `isolation (${name}): ${endpoints} endpoints, ${credentials} credentials, ${attempts} attempts`,
    );
    expect(endpoints).toBe(157);
    // Everything was taken away again.
    expect([...entries.keys()]).toEqual([]);
  },
);

interface PackageSet {
  plugins: () => BetterAuthPlugin[];
  scopedModels?: string[];
  endpoints?: IsolationOptions["endpoints"];
  /** What the kit cannot make, by endpoint and why; tests of the package try these by hand. */
  untried?: Record<string, string>;
}

/** OAuth takes forms, and the kit sends JSON. */
const FORMS = Object.fromEntries(
  ["authorize", "token", "introspect", "revoke", "userinfo", "end-session/confirm"].map((name) => [
    `POST /oauth2/${name}`,
    "415 UNSUPPORTED_MEDIA_TYPE",
  ]),
);

const login = { loginPage: "/login", consentPage: "/consent" };
const page = "http://localhost:3000";

const apps: PackageSet = {
  plugins: () => [
    expo(),
    electron(),
    i18n({ translations: { en: {}, de: { UNAUTHORIZED: "Nicht angemeldet" } } }),
    bearer(),
    oauthPopup(),
    oAuthProxy({ productionURL: page }),
  ],
  endpoints: {
    "/expo-authorization-proxy": {
      query: { authorizationURL: "https://provider.example/authorize?state=a-state" },
    },
    "/electron/transfer-user": {
      query: { client_id: "electron", state: "a-state", code_challenge: "a-challenge" },
    },
    "/oauth-popup/start": { query: { popupOrigin: page, popupNonce: "a-nonce" } },
  },
  // A code that an app has made a challenge for, and a profile that another deployment has encrypted.
  untried: {
    "POST /electron/token": "INVALID_TOKEN",
    "GET /oauth-proxy-callback": "missing_profile",
    "GET /callback/:id/oauth-proxy": "missing_profile",
  },
};

const payments: PackageSet = {
  plugins: () => [
    stripe({
      stripeClient: createStripe().client,
      stripeWebhookSecret: WEBHOOK_SECRET,
      createCustomerOnSignUp: true,
      subscription: { enabled: true, plans: [{ name: "pro", priceId: PRICE }] },
    }),
  ],
  scopedModels: ["subscription"],
  endpoints: {
    "/subscription/upgrade": { body: { plan: "pro", successUrl: "/bought", cancelUrl: "/" } },
    "/subscription/cancel": { body: { returnUrl: "/account", subscriptionId: undefined } },
    "/subscription/billing-portal": { body: { returnUrl: "/account" } },
  },
  untried: {
    "POST /stripe/webhook": "STRIPE_SIGNATURE_NOT_FOUND",
    // Nobody has paid at the checkout.
    "POST /subscription/cancel": "SUBSCRIPTION_NOT_FOUND",
    "POST /subscription/restore": "SUBSCRIPTION_NOT_FOUND",
  },
};

const PACKAGES: [name: string, set: PackageSet][] = [
  ["expo, electron, i18n, oauthPopup, oAuthProxy", apps],
  ["stripe", payments],
  ["oauth-provider", { plugins: () => [jwt(), oauthProvider(login)], untried: FORMS }],
  ["mcp", { plugins: () => [jwt(), mcp({ ...login, resource: `${page}/mcp` })], untried: FORMS }],
];

const atHosts = (): InstanceOptions => ({
  auth: {
    baseURL: {
      allowedHosts: ["example.com", "*.example.com"],
      protocol: "http",
      fallback: "http://example.com",
    },
  },
  tenant: { resolveTenantId: SUBDOMAINS.resolveTenantId },
});

/** What sessions are kept in, how tenants are named, and where the packages stand. */
const PACKAGE_VARIANTS: [name: string, variant: () => InstanceOptions][] = [
  ["as it is", () => ({})],
  ["tenants at hosts of their own", atHosts],
  [
    "secondary storage and a cookie for each tenant",
    () => ({
      auth: { secondaryStorage: createStorage(), session: { storeSessionInDatabase: true } },
      tenant: { sessionCookies: "per-tenant" },
    }),
  ],
  ["the packages in front", () => ({ arrange: (ours, others) => [...others, ours] })],
];

/** Every package in every way, or one of them in one. */
const PACKAGE_RUNS = PACKAGES.flatMap(([name, set], row) =>
  PACKAGE_VARIANTS.map(([variant, options], offset) => ({
    name,
    set,
    variant,
    options,
    offset,
    row,
  })),
).filter(({ offset, row }) => everyCase || (offset === row && row === 1));

it.each(PACKAGE_RUNS)(
  "nothing crosses the border with $name, $variant",
  LONG,
  async ({ set, options, offset }) => {
    const { plugins, scopedModels = [], endpoints, untried } = set;
    const { auth: authOptions, tenant, arrange } = options();
    const { auth } = await createInstance({
      plugins: plugins(),
      tenant: { scopedModels, ...tenant },
      auth: {
        socialProviders: { google: { clientId: "platform", clientSecret: "secret" } },
        ...authOptions,
      },
      ...(arrange && { arrange }),
    });
    // The electron package calls the server over the network.
    const onTheNetwork = AsyncLocalStorage.snapshot();
    onTestFinished(() => void vi.unstubAllGlobals());
    vi.stubGlobal("fetch", (input: string | URL | Request, init?: RequestInit) =>
      onTheNetwork(() => auth.handler(new Request(input, init))),
    );
    const extent = offset === 0 ? oneOf(27, 1) : oneOf(27, 5, offset);
    await holds(auth, { extent, ...(endpoints && { endpoints }) }, untried);
  },
);

const ENTERPRISE_PATHS = ["/sso/", "/sign-in/sso", "/scim/v2/"];
const ENTERPRISE: [name: string, instance: () => InstanceOptions, extent: Extent][] = [
  ["as they come", () => ({}), oneOf(40, 1)],
  ["tenants at hosts of their own", atHosts, { ...oneOf(24, 4), paths: ENTERPRISE_PATHS }],
  [
    "a cookie for each tenant",
    () => ({ tenant: { sessionCookies: "per-tenant" } }),
    { ...oneOf(24, 4), paths: ENTERPRISE_PATHS },
  ],
  [
    "one user for an address",
    () => ({ tenant: { keepEmailGloballyUnique: true } }),
    { ...oneOf(24, 4), paths: ENTERPRISE_PATHS },
  ],
];

it.each(sample(ENTERPRISE, 1))(
  "nothing crosses the border with sso() and scim(), %s",
  LONG,
  async (_, instance, extent) => {
    const { tenant, ...rest } = instance();
    const scopedModels = ["ssoProvider", ...SCIM_MODELS];
    const { auth } = await createInstance({
      ...rest,
      plugins: enterprisePlugins(),
      tenant: { scopedModels, tenantRoles: { admin: ["sso:*"] }, ...tenant },
    });
    await holds(auth, { extent });
  },
);

it.each(sample([true, false], 1))(
  "invitations: nothing crosses the border (passwords: %s)",
  LONG,
  async (enabled) => {
    const { auth, rows } = await createInstance({
      auth: { emailAndPassword: { enabled } },
      tenant: { tenantRoles: { admin: ["invitation:*"] } },
      plugins: [
        tenantInvitations({ sendInvitationEmail: () => Promise.reject(new Error("no mail")) }),
      ],
    });
    const paths = enabled ? ["/tenant/", "/sign-up/"] : ["/tenant/invitation/"];
    const { endpoints } = await holds(auth, {
      extent: { ...oneOf(9, 1), paths, everyNaming: everyCase && enabled },
    });
    if (enabled) expect(endpoints).toBeGreaterThan(20);
    expect(await rows("tenantInvitation")).toBe(0);
  },
);

it.runIf(everyCase)("the Next.js example keeps its tenants apart", LONG, async () => {
  const dir = mkdtempSync(join(tmpdir(), "isolation-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  vi.stubEnv("DATA_DIR", dir);
  vi.stubEnv("BETTER_AUTH_SECRET", "a test secret that is long enough for everybody");
  onTestFinished(() => void vi.unstubAllEnvs());
  const { auth } = await import("../../examples/nextjs/lib/auth");
  await (await getMigrations(auth.options)).runMigrations();
  await holds(auth, { extent: oneOf(9, 1) });
});
