import { type StripeOptions, stripe } from "@better-auth/stripe";
import type { BetterAuthPlugin } from "better-auth";
import { organization } from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { getTenantId, type TenantAuthOptions } from "../../src/index";
import type { Browser } from "../support/browser";
import type { InstanceOptions } from "../support/instance";
import { createStripe, PRICE, WEBHOOK_SECRET } from "./fake-stripe";
import { createPlaces, ELSEWHERE, expectRefused, PLACES } from "./places";

const ORGANIZATIONS = ["organization", "member", "invitation"];
const URLS = { successUrl: "/bought", cancelUrl: "/no", returnUrl: "/account" };

type Schema = NonNullable<Parameters<typeof stripe>[0]["schema"]>;

const names = (modelName: string, stripeCustomerId: string): Schema => ({
  subscription: { modelName, fields: { stripeCustomerId } },
  user: { fields: { stripeCustomerId } },
});

interface ShopOptions {
  schema?: Schema;
  tenant?: TenantAuthOptions;
  arrange?: InstanceOptions["arrange"];
  plugins?: BetterAuthPlugin[];
  /** Whether somebody may act for what they name; default is for their own tenant. */
  mayActFor?: (referenceId: string) => boolean;
}

/** Shops with two plans, in which organizations and whole tenants may pay. */
async function createShops(options: ShopOptions = {}) {
  const { schema, arrange, plugins = [], mayActFor = (id) => id === getTenantId() } = options;
  const fake = createStripe();
  const client = { stripeClient: fake.client, stripeWebhookSecret: WEBHOOK_SECRET };
  // The package keeps names for whoever comes next in the process.
  const restored = { ...client, schema: names("subscription", "stripeCustomerId") };
  onTestFinished(
    () => void stripe({ ...restored, subscription: { enabled: true, plans: [] } } as StripeOptions),
  );
  const plugin = stripe({
    ...client,
    createCustomerOnSignUp: true,
    ...(schema && { schema }),
    ...(plugins.length > 0 && { organization: { enabled: true } }),
    subscription: {
      enabled: true,
      plans: [
        { name: "pro", priceId: PRICE },
        { name: "max", priceId: "price_max" },
      ],
      authorizeReference: async ({ referenceId }) => mayActFor(referenceId),
    },
  });
  const places = await createPlaces([...plugins, plugin], {
    tenant: { scopedModels: ["subscription"], ...options.tenant },
    ...(arrange && { arrange }),
  });

  const tell = (type: string, object: object) => {
    const { body, options } = fake.event(type, object);
    return places.instance.browser().post("/stripe/webhook", body, options);
  };

  /** Goes to the checkout, pays there, and Stripe tells of it. */
  async function buy(browser: Browser, id: string, more: object = {}) {
    const answer = await browser.post("/subscription/upgrade", { plan: "pro", ...URLS, ...more });
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
    const checkout = fake.lastCheckout();
    if (!checkout) throw new Error("nobody has come to the checkout");
    const { customer, metadata } = checkout;
    fake.pay(id, customer);
    const completed = await tell("checkout.session.completed", {
      mode: "subscription",
      customer,
      subscription: id,
      client_reference_id: metadata.referenceId,
      metadata,
    });
    expect(completed.status).toBe(200);
    return customer;
  }

  async function list(browser: Browser, query: Record<string, string> = {}) {
    type Listed = { stripeSubscriptionId: string; cancelAtPeriodEnd: boolean }[];
    const { data } = await browser.get<Listed>("/subscription/list", { query });
    return data.map(({ stripeSubscriptionId }) => stripeSubscriptionId);
  }
  return { ...places, fake, tell, buy, list };
}

describe("a subscription", () => {
  it.each(PLACES)("is changed, cancelled and restored on %s", async (place) => {
    const { signUp, buy, fake, tell, rows, list } = await createShops();
    const { browser } = await signUp(place);
    const customer = await buy(browser, "sub_1");
    const changed = await browser.post("/subscription/upgrade", { plan: "max", ...URLS });
    expect(changed.status, JSON.stringify(changed.data)).toBe(200);
    expect(fake.portals).toEqual([customer]);
    const cancelled = await browser.post("/subscription/cancel", URLS);
    expect(cancelled.status, JSON.stringify(cancelled.data)).toBe(200);
    expect(fake.portals).toEqual([customer, customer]);
    const ending = Object.assign(fake.pay("sub_1", customer), { cancel_at_period_end: true });
    expect((await tell("customer.subscription.updated", ending)).status).toBe(200);
    expect(await rows("subscription", '"cancelAtPeriodEnd" = 1')).toBe(1);
    const restored = await browser.post("/subscription/restore", {});
    expect(restored.status, JSON.stringify(restored.data)).toBe(200);
    expect(await rows("subscription", '"cancelAtPeriodEnd" = 1')).toBe(0);
    expect(await list(browser)).toEqual(["sub_1"]);
  });

  it.each(ELSEWHERE)("of A is none on %s, whoever it is said to be for", async (place) => {
    const shops = await createShops({ mayActFor: () => true });
    const { signUp, buy, unchanged, fake, list, ids } = shops;
    const owner = await signUp("a");
    await buy(owner.browser, "sub_1");
    await buy(owner.browser, "sub_2", { referenceId: ids.a });
    const { browser } = await signUp(place);
    for (const referenceId of [owner.user.id, ids.a ?? ""]) {
      expect(await list(browser, { referenceId })).toEqual([]);
      for (const path of ["cancel", "restore"]) {
        const call = () => browser.post(`/subscription/${path}`, { ...URLS, referenceId });
        expectRefused(await unchanged(call), 400, "SUBSCRIPTION_NOT_FOUND");
      }
    }
    expect(fake.portals).toEqual([]);
  });

  it("of a whole tenant is seen and cancelled by its people, and by nobody else", async () => {
    const { signUp, buy, list, ids } = await createShops();
    const referenceId = ids.a ?? "";
    const first = await signUp("a");
    await buy(first.browser, "sub_1", { referenceId });
    const second = await signUp("a", "second@example.com");
    expect(await list(second.browser, { referenceId })).toEqual(["sub_1"]);
    const body = { ...URLS, referenceId };
    expect((await second.browser.post("/subscription/cancel", body)).status).toBe(200);
    for (const place of ELSEWHERE) {
      const { browser } = await signUp(place);
      expect((await browser.post("/subscription/cancel", body)).status).toBe(401);
    }
  });
});

describe.each([
  ["scoped", { scopedModels: ["subscription", ...ORGANIZATIONS] }],
  ["shared", { scopedModels: ["subscription"], sharedModels: ORGANIZATIONS }],
])("organizations that are %s", (kind, tenant) => {
  const createOrganizations = async () => {
    // An application that lists the column makes it one that people may write.
    const additionalFields = { stripeCustomerId: { type: "string", required: false } } as const;
    const plugins = [organization({ schema: { organization: { additionalFields } } })];
    const shops = await createShops({ plugins, tenant, mayActFor: () => true });
    const create = async (browser: Browser, slug: string, more: object = {}) => {
      const body = { name: slug, slug, ...more };
      return browser.post<{ id: string }>("/organization/create", body);
    };
    return { ...shops, create };
  };

  it("pay in their tenant, and an event finds them there", async () => {
    const { signUp, create, buy, list, tell, fake, ids, rows } = await createOrganizations();
    const { browser } = await signUp("a");
    const { data } = await create(browser, "team");
    const whom = { referenceId: data.id, customerType: "organization" };
    const customer = await buy(browser, "sub_1", whom);
    expect(await list(browser, whom)).toEqual(["sub_1"]);
    expect(await rows("subscription", '"tenantId" = ?', [ids.a])).toBe(1);
    const ending = Object.assign(fake.pay("sub_1", customer), { cancel_at_period_end: true });
    await tell("customer.subscription.updated", ending);
    expect(await rows("subscription", '"cancelAtPeriodEnd" = 1')).toBe(1);
    const other = (await signUp("b")).browser;
    expect(await list(other, whom)).toEqual([]);
    if (kind === "shared") return;
    const portal = { ...whom, returnUrl: "/" };
    const answer = await other.post("/subscription/billing-portal", portal);
    expectRefused(answer, 404, "CUSTOMER_NOT_FOUND");
  });

  it("threat: an organization takes no customer of another tenant for its own", async () => {
    const { signUp, create, fake, rows } = await createOrganizations();
    const victim = await signUp("a");
    const stripeCustomerId = fake.customers[0]?.id;
    expect(stripeCustomerId).toBeTruthy();
    const { browser } = await signUp("b");
    expectRefused(await create(browser, "thieves", { stripeCustomerId }), 422, "VALUE_TAKEN");
    const { data } = await create(browser, "team");
    const change = { organizationId: data.id, data: { stripeCustomerId } };
    expectRefused(await browser.post("/organization/update", change), 422, "VALUE_TAKEN");
    const portal = { referenceId: data.id, customerType: "organization", returnUrl: "/" };
    await browser.post("/subscription/billing-portal", portal);
    expect(fake.portals).toEqual([]);
    expect(await rows("organization", '"stripeCustomerId" = ?', [stripeCustomerId])).toBe(0);
    expect((await victim.browser.post("/subscription/billing-portal", URLS)).status).toBe(200);
  });
});

describe.each<[name: string, options: ShopOptions]>([
  ["in front of tenantAuth()", { arrange: (ours, others) => [...others, ours] }],
  [
    "renamed",
    {
      schema: names("contract", "customer"),
    },
  ],
])("stripe with its tables %s", (_, options) => {
  it("an event goes to the tenant of its subscription, or of its customer", async () => {
    const { signUp, buy, list, tell, fake } = await createShops(options);
    const a = await signUp("a");
    const b = await signUp("b");
    await buy(a.browser, "sub_1");
    const customer = fake.customers.find(({ metadata }) => metadata.userId === b.user.id)?.id ?? "";
    await tell("customer.subscription.created", fake.pay("sub_2", customer));
    expect([await list(a.browser), await list(b.browser)]).toEqual([["sub_1"], ["sub_2"]]);
  });

  it("threat: nobody takes a customer of another tenant for their own", async () => {
    const { signUp, fake, unchanged } = await createShops(options);
    await signUp("a");
    const { browser } = await signUp("b");
    const change = { stripeCustomerId: fake.customers[0]?.id };
    const answer = await unchanged(() => browser.post("/update-user", change));
    expectRefused(answer, 422, "VALUE_TAKEN");
  });
});
