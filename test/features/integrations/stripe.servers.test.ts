import { type StripeOptions, stripe } from "@better-auth/stripe";
import { organization } from "better-auth/plugins";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { getTenantId } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { createDatabase, databases } from "../../support/database";
import { createInstance, PASSWORD } from "../../support/instance";
import {
  createWorld,
  ELSEWHERE,
  expectRefused,
  type Person,
  PLACES,
  SUBDOMAINS,
  shareMade,
  type WorldOptions,
} from "../../support/world";
import { createStripe, PRICE, WEBHOOK_SECRET } from "./fake-stripe";

const WEBHOOK = "/stripe/webhook";
const ORGANIZATIONS = ["organization", "member", "invitation"];
const URLS = { successUrl: "/bought", cancelUrl: "/no", returnUrl: "/account" };

interface ShopOptions extends Omit<WorldOptions, "plugins"> {
  fake?: ReturnType<typeof createStripe>;
  stripe?: Partial<StripeOptions>;
  organizations?: ReturnType<typeof organization>;
}

/** Shops with two plans, in which organizations and whole tenants may pay. */
async function createShops(options: ShopOptions = {}) {
  const { fake = createStripe(), stripe: more, organizations, tenant, ...rest } = options;
  const events: (string | null)[] = [];
  /** Whether somebody may act for what they name. */
  const rules = { mayActFor: (referenceId: string) => referenceId === getTenantId() };
  const plugin = stripe({
    stripeClient: fake.client,
    stripeWebhookSecret: WEBHOOK_SECRET,
    createCustomerOnSignUp: true,
    onEvent: async () => void events.push(getTenantId()),
    ...(organizations && { organization: { enabled: true } }),
    subscription: {
      enabled: true,
      plans: [
        { name: "pro", priceId: PRICE },
        { name: "max", priceId: "price_max" },
      ],
      authorizeReference: async ({ referenceId }) => rules.mayActFor(referenceId),
    },
    ...more,
  });
  const world = await createWorld({
    ...rest,
    plugins: [...(organizations ? [organizations] : []), plugin],
    tenant: { scopedModels: ["subscription"], ...tenant },
  });

  /** Stripe tells of an event, and says nothing about a tenant unless told. */
  const tell = (type: string, object: object, at = world.at("platform"), signature?: string) => {
    const { body, options } = fake.event(type, object, signature);
    return at.post(WEBHOOK, body, options);
  };

  /** Goes to the checkout. */
  async function checkOut(browser: Browser, body: object = {}) {
    const answer = await browser.post("/subscription/upgrade", { plan: "pro", ...URLS, ...body });
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
    const { customer = "", metadata = {} } = fake.lastCheckout() ?? {};
    const order = { mode: "subscription", customer, metadata };
    const client_reference_id = metadata.referenceId;
    const paid = (subscription: string) => ({ ...order, subscription, client_reference_id });
    return { customer, paid };
  }

  /** Goes to the checkout, pays there, and Stripe tells of it. */
  async function buy(browser: Browser, id: string, body: object = {}) {
    const { customer, paid } = await checkOut(browser, body);
    fake.pay(id, customer);
    expect((await tell("checkout.session.completed", paid(id))).status).toBe(200);
    return customer;
  }

  async function list(browser: Browser, query: Record<string, string> = {}) {
    type Listed = { stripeSubscriptionId: string; status: string }[];
    const { data } = await browser.get<Listed>("/subscription/list", { query });
    return data.map(({ stripeSubscriptionId, status }) => `${stripeSubscriptionId} ${status}`);
  }

  /** A subscription as it is stored, wherever that is. */
  const stored = async (id: string) =>
    ((await world.everything()).subscription as Record<string, unknown>[]).find(
      ({ stripeSubscriptionId }) => stripeSubscriptionId === id,
    );

  const customerOf = ({ id }: Pick<Person, "id">) =>
    fake.customers.find(({ metadata }) => metadata.userId === id)?.id ?? "";

  return { ...world, fake, events, rules, tell, checkOut, buy, list, stored, customerOf };
}

describe.each(databases)("stripe, %s", (kind) => {
  const shops = shareMade((database) => createShops({ database }), kind);
  beforeEach(() => {
    shops.events.length = 0;
    shops.fake.portals.length = 0;
    shops.rules.mayActFor = (id) => id === getTenantId();
  });

  it.each(["acme", "platform"] as const)(
    "a subscription is paid for, changed, cancelled and restored on %s",
    async (place) => {
      const { fake, tell, stored, list, events } = shops;
      const jane = await shops.as("jane", place);
      const id = `sub_of_${place}`;
      const customer = await shops.buy(jane, id);
      expect(events).toEqual([shops.ids[place]]);
      expect(await list(jane)).toEqual([`${id} active`]);
      for (const [path, body] of [
        ["upgrade", { plan: "max", ...URLS }],
        ["cancel", URLS],
      ] as const) {
        const answer = await jane.post(`/subscription/${path}`, body);
        expect(answer.status, JSON.stringify(answer.data)).toBe(200);
        expect(fake.portals.splice(0)).toEqual([customer]);
      }
      const ending = Object.assign(fake.pay(id, customer), { cancel_at_period_end: true });
      expect((await tell("customer.subscription.updated", ending)).status).toBe(200);
      expect(Boolean((await stored(id))?.cancelAtPeriodEnd)).toBe(true);
      expect((await jane.post("/subscription/restore", {})).status).toBe(200);
      expect(Boolean((await stored(id))?.cancelAtPeriodEnd)).toBe(false);
      expect(await list(jane)).toEqual([`${id} active`]);
    },
  );

  it("an event about a customer goes to the customer's tenant", async () => {
    const customer = shops.customerOf(await shops.as("ada", "acme"));
    expect((await shops.tell("customer.updated", { id: customer })).status).toBe(200);
    expect((await shops.tell("invoice.paid", { id: "in_1", customer })).status).toBe(200);
    expect(shops.events).toEqual([shops.ids.acme, shops.ids.acme]);
  });

  it("threat: what a customer has written into their own metadata names no tenant", async () => {
    await shops.buy(await shops.as("gil", "globex"), "sub_of_gil");
    const { id: subscriptionId } = (await shops.stored("sub_of_gil")) ?? {};
    const id = shops.customerOf(await shops.as("hal", "acme"));
    shops.events.length = 0;
    const customer = { id, metadata: { subscriptionId } };
    expect((await shops.tell("customer.updated", customer)).status).toBe(200);
    expect(shops.events).toEqual([shops.ids.acme]);
  });

  it("a customer that two tenants have from before is an error, and goes to neither", async () => {
    for (const place of ["acme", "globex"]) {
      const { id } = await shops.as("twin", place);
      await shops.write("user", { stripeCustomerId: "cus_both" }, { id });
    }
    const answer = await shops.tell("invoice.paid", { id: "in_1", customer: "cus_both" });
    expectRefused(answer, 409, "TENANT_SCOPE_CONFLICT");
    expect(shops.events).toEqual([]);
  });

  it("one changes and ends by the id that Stripe has for it", async () => {
    const { fake, tell, stored } = shops;
    const [acme, globex, platform] = ["sub_acme", "sub_globex", "sub_platform"] as const;
    for (const place of PLACES) await shops.buy(await shops.as("ida", place), `sub_${place}`);
    const unpaid = fake.subscription(acme, "cus_any", {}, "unpaid");
    await tell("customer.subscription.updated", unpaid);
    await tell("customer.subscription.deleted", fake.subscription(globex, "cus_other"));
    expect(await stored(acme)).toMatchObject({ status: "unpaid" });
    expect(await stored(globex)).toMatchObject({ status: "canceled" });
    expect(await stored(platform)).toMatchObject({ status: "active" });
    expect(await shops.list(await shops.as("ida", "acme"))).toEqual([]);
  });

  it("an event that Stripe has not signed enters no tenant, and changes nothing", async () => {
    const { paid } = await shops.checkOut(await shops.as("cy", "acme"));
    for (const place of PLACES) {
      const call = () =>
        shops.tell("checkout.session.completed", paid("sub_forged"), shops.at(place), "forged");
      expectRefused(await shops.unchanged(call), 400, "FAILED_TO_CONSTRUCT_STRIPE_EVENT");
    }
    expect(shops.events).toEqual([]);
  });

  it("R4: an event of one tenant that is sent to another is an error, so that Stripe shows it", async () => {
    const dan = await shops.as("dan", "acme");
    const { paid } = await shops.checkOut(dan);
    const tellAt = (place: string) =>
      shops.tell("checkout.session.completed", paid("sub_sent"), shops.at(place));
    expectRefused(await shops.unchanged(() => tellAt("globex")), 409, "TENANT_SCOPE_CONFLICT");
    expect((await tellAt("acme")).status).toBe(200);
    expect(await shops.list(dan)).toEqual(["sub_sent active"]);
  });

  it("an event about a suspended tenant counts: who has paid may be let in again", async () => {
    const { id } = await shops.createTenant();
    const { paid } = await shops.checkOut(await shops.as("eve", id));
    await shops.change(id, { status: "suspended" });
    const answer = await shops.tell("checkout.session.completed", paid("sub_suspended"));
    expect(answer.status).toBe(200);
    expect(await shops.stored("sub_suspended")).toMatchObject({ status: "active", tenantId: id });
  });

  it("subscriptions go with their tenant, and a late event brings nothing back", async () => {
    const { id: tenantId } = await shops.createTenant();
    await shops.buy(await shops.as("fay", tenantId), "sub_gone");
    const before = await shops.rows("subscription");
    await shops.api.deleteTenant({ body: { tenantId } });
    for (const type of ["created", "updated", "deleted"]) {
      const late = shops.fake.subscription("sub_gone", "cus_gone");
      expect((await shops.tell(`customer.subscription.${type}`, late)).status).toBe(200);
    }
    expect(await shops.rows("subscription")).toBe(before - 1);
    expect(await shops.stored("sub_gone")).toBeUndefined();
  });

  it.each(ELSEWHERE)(
    "threat: no user on %s takes a customer of Acme for their own",
    async (place) => {
      const { fake, at, rows } = shops;
      const stripeCustomerId = shops.customerOf(await shops.as("victim", "acme"));
      const thief = await shops.as("thief", place);
      const change = () => thief.post("/update-user", { stripeCustomerId });
      expectRefused(await shops.unchanged(change), 422, "VALUE_TAKEN");
      await thief.post("/subscription/billing-portal", URLS);
      expect(fake.portals).toEqual([expect.not.stringMatching(`^${stripeCustomerId}$`)]);
      const email = `new-thief-${place}@example.com`;
      const body = { name: "T", email, password: PASSWORD, stripeCustomerId };
      const users = await rows("user");
      expectRefused(await at(place).post("/sign-up/email", body), 422, "VALUE_TAKEN");
      expect(await rows("user")).toBe(users);
      const free = { ...body, stripeCustomerId: `cus_of_nobody_${place}` };
      expect((await at(place).post("/sign-up/email", free)).status).toBe(200);
    },
  );
});

describe("a customer that Stripe knows by an email", () => {
  const notOnSignUp = { createCustomerOnSignUp: false };

  it.each([
    ["with search", true],
    ["with an old client", undefined],
  ])(
    "threat: belongs to no user whose email a tenant's administrator has verified, %s",
    async (_, canSearch) => {
      const fake = createStripe({ canSearch });
      const shops = await createShops({ fake, stripe: notOnSignUp });
      const victim = fake.addCustomer("victim@example.com");
      const admin = await shops.as("admin", "acme");
      const person = { name: "V", email: victim.email, password: PASSWORD };
      const body = { ...person, data: { emailVerified: true } };
      expect((await admin.post("/admin/create-user", body)).status).toBe(200);
      const { person: browser } = await shops.signIn("acme", victim.email);
      expect((await shops.checkOut(browser)).customer).not.toBe(victim.id);
      await browser.post("/subscription/billing-portal", { returnUrl: "/" });
      expect(fake.portals).not.toContain(victim.id);
    },
  );

  it("control: is found on the platform by a verified address", async () => {
    const shops = await createShops({ stripe: notOnSignUp });
    const jane = await shops.as("jane", "platform");
    const known = shops.fake.addCustomer(jane.email);
    await shops.write("user", { emailVerified: true });
    expect((await shops.checkOut(jane)).customer).toBe(known.id);
  });
});

describe("organizations", () => {
  const tenant = { scopedModels: ["subscription", ...ORGANIZATIONS] };
  async function createOrganizations() {
    // An application that lists the column makes it one that people may write.
    const additionalFields = { stripeCustomerId: { type: "string", required: false } } as const;
    const organizations = organization({ schema: { organization: { additionalFields } } });
    const shops = await createShops({ organizations, tenant });
    shops.rules.mayActFor = () => true;
    const create = (browser: Browser, slug: string, more: object = {}) =>
      browser.post<{ id: string }>("/organization/create", { name: slug, slug, ...more });
    return { ...shops, create };
  }

  it("pay in their tenant, and an event finds them there", async () => {
    const shops = await createOrganizations();
    const { buy, list, stored, fake, tell } = shops;
    const jane = await shops.as("jane", "acme");
    const { data } = await shops.create(jane, "team");
    const whom = { referenceId: data.id, customerType: "organization" };
    const customer = await buy(jane, "sub_1", whom);
    expect(await list(jane, whom)).toEqual(["sub_1 active"]);
    const ending = Object.assign(fake.pay("sub_1", customer), { cancel_at_period_end: true });
    await tell("customer.subscription.updated", ending);
    const row = { tenantId: shops.ids.acme, cancelAtPeriodEnd: 1 };
    expect(await stored("sub_1")).toMatchObject(row);
    const other = await shops.as("jane", "globex");
    expect(await list(other, whom)).toEqual([]);
    const answer = await other.post("/subscription/billing-portal", { ...whom, returnUrl: "/" });
    expectRefused(answer, 404, "CUSTOMER_NOT_FOUND");
  });

  it("threat: an organization takes no customer of another tenant for its own", async () => {
    const shops = await createOrganizations();
    const victim = await shops.as("jane", "acme");
    const stripeCustomerId = shops.customerOf(victim);
    expect(stripeCustomerId).toBeTruthy();
    const jane = await shops.as("jane", "globex");
    const thieves = await shops.create(jane, "thieves", { stripeCustomerId });
    expectRefused(thieves, 422, "VALUE_TAKEN");
    const { data } = await shops.create(jane, "team");
    const change = { organizationId: data.id, data: { stripeCustomerId } };
    expectRefused(await jane.post("/organization/update", change), 422, "VALUE_TAKEN");
    const portal = { referenceId: data.id, customerType: "organization", returnUrl: "/" };
    await jane.post("/subscription/billing-portal", portal);
    expect(shops.fake.portals).toEqual([]);
    const where = '"stripeCustomerId" = ?';
    expect(await shops.rows("organization", where, [stripeCustomerId])).toBe(0);
    expect((await victim.post("/subscription/billing-portal", URLS)).status).toBe(200);
  });
});

const named = (modelName: string, stripeCustomerId: string): Partial<StripeOptions> => ({
  schema: {
    subscription: { modelName, fields: { stripeCustomerId } },
    user: { fields: { stripeCustomerId } },
  } as NonNullable<StripeOptions["schema"]>,
});

it.each<[name: string, options: ShopOptions]>([
  ["in front of tenantAuth()", { arrange: (ours, others) => [...others, ours] }],
  ["with renamed tables", { stripe: named("contract", "customer") }],
])("stripe %s: events find their tenants, and nobody takes a customer", async (_, options) => {
  const shops = await createShops(options);
  const { acme, globex } = await shops.janes();
  // The package keeps names for whoever comes next in the process.
  onTestFinished(async () => {
    const stripe = named("subscription", "stripeCustomerId");
    await createShops({ stripe, database: await createDatabase("sqlite") });
  });
  await shops.buy(acme, "sub_1");
  const customer = shops.customerOf(globex);
  await shops.tell("customer.subscription.created", shops.fake.pay("sub_2", customer));
  expect(await shops.list(acme)).toEqual(["sub_1 active"]);
  expect(await shops.list(globex)).toEqual(["sub_2 active"]);
  const change = { stripeCustomerId: shops.customerOf(acme) };
  const taken = await shops.unchanged(() => globex.post("/update-user", change));
  expectRefused(taken, 422, "VALUE_TAKEN");
});

describe("stripe at start", () => {
  const { client } = createStripe();
  const options = { stripeClient: client, stripeWebhookSecret: WEBHOOK_SECRET };

  it("R11: asks for its model to be scoped, and refuses to share it", async () => {
    const subscription = { enabled: true as const, plans: [] };
    const plugins = [stripe({ ...options, subscription })];
    await expect(createInstance({ plugins })).rejects.toThrow('scopedModels: ["subscription"]');
    const tenant = { sharedModels: ["subscription"] };
    await expect(createInstance({ plugins, tenant })).rejects.toThrow(
      /"subscription"\] cannot be shared.*\n.*\n {2}scopedModels: \["subscr/,
    );
  });

  it("needs no decision without subscriptions", async () => {
    const fake = createStripe();
    const stripeClient = fake.client;
    const plugin = stripe({ ...options, stripeClient, createCustomerOnSignUp: true });
    const world = await createWorld({ plugins: [plugin] });
    await world.as("jane", "platform");
    expect(fake.customers).toHaveLength(1);
    const { body, options: sent } = fake.event("invoice.paid", { customer: "cus_1" });
    expect((await world.at("platform").post(WEBHOOK, body, sent)).status).toBe(200);
  });
});

it("an event about what a deleted tenant has left behind runs on the platform", async () => {
  const shops = await createShops();
  await shops.buy(await shops.as("jane", "acme"), "sub_1");
  await shops.write("subscription", { tenantId: "gone" });
  shops.events.length = 0;
  const late = shops.fake.subscription("sub_1", "cus_gone");
  expect((await shops.tell("customer.subscription.updated", late)).status).toBe(200);
  expect(shops.events).toEqual([null]);
});

it("R4: an event that comes to the platform's host goes to its tenant", async () => {
  const shops = await createShops({ hosts: SUBDOMAINS });
  const jane = await shops.as("jane", "acme");
  const made = shops.fake.subscription("sub_1", shops.customerOf(jane));
  const answer = await shops.tell("customer.subscription.created", made);
  expect(answer.status).toBe(200);
  expect(await shops.stored("sub_1")).toMatchObject({ tenantId: shops.ids.acme });
  expect(shops.events).toEqual([shops.ids.acme]);
});
