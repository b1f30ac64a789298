import { AsyncLocalStorage } from "node:async_hooks";
import { electron } from "@better-auth/electron";
import { expo } from "@better-auth/expo";
import { i18n } from "@better-auth/i18n";
import { mcp } from "@better-auth/mcp";
import { oauthProvider } from "@better-auth/oauth-provider";
import { stripe } from "@better-auth/stripe";
import type { BetterAuthPlugin } from "better-auth";
import { bearer, jwt, oAuthProxy, oauthPopup } from "better-auth/plugins";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { bySubdomain } from "../../src/index";
import { checkIsolation, type IsolationOptions } from "../../src/testing/index";
import { createStorage } from "../configurations/storages";
import { createStripe, PRICE, WEBHOOK_SECRET } from "../plugins/fake-stripe";
import { createInstance, type InstanceOptions } from "../support/instance";
import { oneOf } from "./depth";

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

const SETS: [name: string, set: PackageSet][] = [
  [
    "apps: expo, electron, i18n, oauthPopup, oAuthProxy",
    {
      plugins: () => [
        expo(),
        electron(),
        i18n({ translations: { en: {}, de: { UNAUTHORIZED: "Nicht angemeldet" } } }),
        bearer(),
        oauthPopup(),
        oAuthProxy({ productionURL: "http://localhost:3000" }),
      ],
      endpoints: {
        "/expo-authorization-proxy": {
          query: { authorizationURL: "https://provider.example/authorize?state=a-state" },
        },
        "/electron/transfer-user": {
          query: { client_id: "electron", state: "a-state", code_challenge: "a-challenge" },
        },
        "/oauth-popup/start": {
          query: { popupOrigin: "http://localhost:3000", popupNonce: "a-nonce" },
        },
      },
      // A code that an app has made a challenge for, and a profile that another deployment has encrypted.
      untried: {
        "POST /electron/token": "INVALID_TOKEN",
        "GET /oauth-proxy-callback": "missing_profile",
        "GET /callback/:id/oauth-proxy": "missing_profile",
      },
    },
  ],
  [
    "stripe",
    {
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
    },
  ],
  ["oauth-provider", { plugins: () => [jwt(), oauthProvider(login)], untried: FORMS }],
  [
    "mcp",
    {
      plugins: () => [jwt(), mcp({ ...login, resource: "http://localhost:3000/mcp" })],
      untried: FORMS,
    },
  ],
];

/** What sessions are kept in, how tenants are named, and where the packages stand. */
const VARIANTS: [name: string, variant: () => InstanceOptions][] = [
  ["as it is", () => ({})],
  [
    "tenants at hosts of their own",
    () => ({
      auth: {
        baseURL: {
          allowedHosts: ["example.com", "*.example.com"],
          protocol: "http",
          fallback: "http://example.com",
        },
      },
      tenant: { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
    }),
  ],
  [
    "secondary storage and a cookie for each tenant",
    () => ({
      auth: {
        secondaryStorage: createStorage({}, new Map<string, string>()),
        session: { storeSessionInDatabase: true },
      },
      tenant: { sessionCookies: "per-tenant" },
    }),
  ],
  ["the packages in front", () => ({ arrange: (ours, others) => [...others, ours] })],
];

const RUNS = SETS.flatMap(([name, set]) =>
  VARIANTS.map(([variant, options], offset) => ({ name, set, variant, options, offset })),
);

describe.each(RUNS)("checkIsolation with $name, $variant", ({ set, options, offset }) => {
  it("finds nothing that crosses the border", { timeout: 600_000 }, async () => {
    const { plugins, scopedModels = [], endpoints, untried = {} } = set;
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
    const report = await checkIsolation(auth, {
      extent: offset === 0 ? oneOf(9, 1) : oneOf(27, 5, offset),
      ...(endpoints && { endpoints }),
    });
    expect(report.leaks).toEqual([]);
    expect(report.failures).toEqual([]);
    const unexplained = report.untried.filter(
      ({ what, reason }) => !(what in untried && reason.includes(String(untried[what]))),
    );
    expect(unexplained).toEqual([]);
  });
});
