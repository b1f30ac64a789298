import { AsyncLocalStorage } from "node:async_hooks";
import { electron } from "@better-auth/electron";
import { expo } from "@better-auth/expo";
import { i18n } from "@better-auth/i18n";
import { mcp } from "@better-auth/mcp";
import { oauthProvider } from "@better-auth/oauth-provider";
import { stripe } from "@better-auth/stripe";
import type { BetterAuthPlugin } from "better-auth";
import { bearer, jwt, oAuthProxy, oauthPopup } from "better-auth/plugins";
import { expect, it, onTestFinished, vi } from "vitest";
import { tenantDomains } from "../../src/features/domains/index";
import { tenantInvitations } from "../../src/features/invitations/index";
import type { TenantEvent } from "../../src/index";
import type { IsolationOptions } from "../../src/testing/index";
import { APP, OWN_HOSTS, SUBDOMAINS_AND_DOMAINS } from "../features/domains/world";
import { SCIM_MODELS } from "../features/enterprise/world";
import { createStripe, PRICE, WEBHOOK_SECRET } from "../features/integrations/fake-stripe";
import { databases } from "../support/database";
import { createInstance, type InstanceOptions } from "../support/instance";
import { everyCase } from "../support/matrix";
import { createStorage } from "../support/stores";
import { SUBDOMAINS } from "../support/world";
import { enterprisePlugins, holds } from "./configurations";

const LONG = { timeout: 600_000 };

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
      query: { authorizationURL: `https://provider.example/authorize?state=${"s".repeat(32)}` },
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
    // Nobody has paid at the checkout, or is a customer there.
    "POST /subscription/billing-portal": "CUSTOMER_NOT_FOUND",
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

/** Every package in every way. */
const PACKAGE_RUNS = PACKAGES.flatMap(([name, set]) =>
  PACKAGE_VARIANTS.map(([variant, options], offset) => ({ name, set, variant, options, offset })),
);

it.runIf(everyCase).each(PACKAGE_RUNS)(
  "nothing leaks with $name, $variant",
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
    const extent = { oneOf: offset === 0 ? 2 : 20, offset };
    await holds(auth, { extent, ...(endpoints && { endpoints }) }, untried);
  },
);

const ENTERPRISE: [name: string, instance: () => InstanceOptions, oneOf: number][] = [
  ["as they come", () => ({}), 2],
  [
    "tenants at hosts of their own, with a cookie for each",
    () => ({ ...atHosts(), tenant: { ...atHosts().tenant, sessionCookies: "per-tenant" } }),
    20,
  ],
  ["one user for an address", () => ({ tenant: { keepEmailGloballyUnique: true } }), 20],
];

it.runIf(everyCase).each(ENTERPRISE)(
  "nothing leaks with sso() and scim(), %s",
  LONG,
  async (_, instance, oneOf) => {
    const { tenant, ...rest } = instance();
    const scopedModels = ["ssoProvider", ...SCIM_MODELS];
    const { auth } = await createInstance({
      ...rest,
      plugins: enterprisePlugins(),
      tenant: { scopedModels, tenantRoles: { admin: ["sso:*"] }, ...tenant },
    });
    await holds(auth, { extent: { oneOf } });
  },
);

it.runIf(everyCase).each([true, false])(
  "invitations: nothing leaks (passwords: %s)",
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
    await holds(auth, { extent: { paths } });
    expect(await rows("tenantInvitation")).toBe(0);
  },
);

it.each([...databases])("domains on %s: nothing leaks", LONG, async (database) => {
  const { auth, rows } = await createInstance({
    database,
    tenant: { tenantRoles: { admin: ["domain:*"] } },
    plugins: [tenantDomains({ signInURL: ({ slug }) => `https://example.com/t/${slug}` })],
  });
  const paths = everyCase ? ["/tenant/", "/sign-in/", "/get-session"] : ["/tenant/d"];
  await holds(auth, { extent: { paths } });
  expect(await rows("tenantDomain")).toBe(0);
});

it("domains as hosts: nothing leaks", LONG, async () => {
  const records = new Map<string, string>();
  const plugin = tenantDomains({ resolveTxt: async (name) => [records.get(name) ?? ""] });
  // Every tenant verifies a domain as soon as it is there.
  const verify = async ({ type, tenantId }: TenantEvent) => {
    if (type !== "tenant:created") return;
    const api = auth.api as unknown as (typeof plugin)["endpoints"];
    const { slug } = await auth.api.getTenant({ query: { id: tenantId } });
    const body = { tenantId, domain: `${slug}.verified.org` };
    const { record } = await api.addTenantDomain({ body });
    records.set(record.name, record.value);
    expect((await api.verifyTenantDomain({ body })).verified).toBe(true);
  };
  const { auth } = await createInstance({
    auth: { baseURL: OWN_HOSTS },
    tenant: {
      resolveTenantId: SUBDOMAINS_AND_DOMAINS,
      tenantRoles: { admin: ["domain:*"] },
      onTenantEvent: verify,
    },
    plugins: [plugin],
  });
  const address: IsolationOptions["address"] = (tenant) =>
    `http://${tenant ? `${tenant.slug}.verified.org` : APP}`;
  const paths = everyCase ? ["/"] : ["/tenant/d", "/get-session"];
  await holds(auth, { address, extent: { paths } });
});
