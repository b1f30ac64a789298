import { stripe } from "@better-auth/stripe";
import { describe, expect, it } from "vitest";
import { bySubdomain, getTenantId, type TenantAuthOptions } from "../../src/index";
import type { Browser } from "../support/browser";
import type { DatabaseKind } from "../support/database";
import { createInstance } from "../support/instance";
import { databases } from "../support/servers";
import { createStripe, PRICE, WEBHOOK_SECRET } from "./fake-stripe";
import { createPlaces, EMAIL, expectRefused, PLACES, type Place } from "./places";

const WEBHOOK = "/stripe/webhook";
const SCOPED: TenantAuthOptions = { scopedModels: ["subscription"] };

interface ShopOptions {
  database?: DatabaseKind;
  createCustomerOnSignUp?: boolean;
  tenant?: TenantAuthOptions;
  fake?: ReturnType<typeof createStripe>;
}

const pluginOf = (
  fake: ReturnType<typeof createStripe>,
  events: (string | null)[] = [],
  createCustomerOnSignUp = false,
) =>
  stripe({
    stripeClient: fake.client,
    stripeWebhookSecret: WEBHOOK_SECRET,
    createCustomerOnSignUp,
    onEvent: async () => void events.push(getTenantId()),
    subscription: { enabled: true, plans: [{ name: "pro", priceId: PRICE }] },
  });

async function createShops(options: ShopOptions = {}) {
  const { tenant = SCOPED, createCustomerOnSignUp, fake: given, database = "sqlite" } = options;
  const fake = given ?? createStripe();
  const events: (string | null)[] = [];
  const places = await createPlaces([pluginOf(fake, events, createCustomerOnSignUp)], {
    tenant,
    database,
  });

  /** Goes to the checkout, and pays there. */
  async function buy(browser: Browser) {
    const body = { plan: "pro", successUrl: "/bought", cancelUrl: "/no" };
    const answer = await browser.post("/subscription/upgrade", body);
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
    const checkout = fake.lastCheckout();
    if (!checkout) throw new Error("nobody has come to the checkout");
    return checkout;
  }

  /** Stripe tells of an event, and says nothing about a tenant. */
  const tell = (type: string, object: object, headers: Record<string, string> = {}) => {
    const { body, options } = fake.event(type, object);
    return places.instance
      .browser()
      .post(WEBHOOK, body, { headers: { ...options.headers, ...headers } });
  };

  const completed = ({ customer, metadata }: Awaited<ReturnType<typeof buy>>, id: string) =>
    tell("checkout.session.completed", {
      mode: "subscription",
      customer,
      subscription: id,
      client_reference_id: metadata.referenceId,
      metadata,
    });

  async function list(browser: Browser) {
    const { data } = await browser.get<{ plan: string; status: string }[]>("/subscription/list");
    return data.map(({ status }) => status);
  }
  return { ...places, fake, events, buy, tell, completed, list };
}

describe.each(databases)("stripe's webhook, %s", (database) => {
  it.each(PLACES)("a subscription that is paid for becomes active on %s", async (place) => {
    const { signUp, buy, completed, list, events, ids } = await createShops({ database });
    const { browser } = await signUp(place);
    const answer = await completed(await buy(browser), "sub_1");
    expect([answer.status, answer.data]).toEqual([200, { success: true }]);
    expect(await list(browser)).toEqual(["active"]);
    expect(events).toEqual([ids[place]]);
  });

  it("an event about a customer goes to the customer's tenant", async () => {
    const options = { database, createCustomerOnSignUp: true };
    const { signUp, tell, fake, events, ids } = await createShops(options);
    const { user } = await signUp("a");
    const customer = fake.customers.find(({ metadata }) => metadata.userId === user.id);
    expect((await tell("customer.updated", { id: customer?.id })).status).toBe(200);
    expect((await tell("invoice.paid", { id: "in_1", customer: customer?.id })).status).toBe(200);
    expect(events).toEqual([ids.a, ids.a]);
  });

  it("a customer that two tenants have from before is an error, and goes to neither", async () => {
    const { signUp, tell, instance, events } = await createShops({ database });
    await signUp("a");
    await signUp("b");
    const { quote, query } = instance.database;
    await query(`update ${quote("user")} set ${quote("stripeCustomerId")} = 'cus_both'`);
    const answer = await tell("invoice.paid", { id: "in_1", customer: "cus_both" });
    expectRefused(answer, 409, "TENANT_SCOPE_CONFLICT");
    expect(events).toEqual([]);
  });
});

describe("stripe with a scoped model", () => {
  it("changes and ends by the id that Stripe has for it", async () => {
    const { signUp, buy, completed, tell, list, fake, rows } = await createShops();
    const people = await Promise.all(PLACES.map((place) => signUp(place)));
    for (const [index, { browser }] of people.entries()) {
      await completed(await buy(browser), `sub_${index}`);
    }
    const customer = fake.customers[0]?.id ?? "";
    await tell("customer.subscription.updated", fake.subscription("sub_0", customer, {}, "unpaid"));
    expect(await rows("subscription", "status = 'unpaid'")).toBe(1);
    await tell("customer.subscription.deleted", fake.subscription("sub_1", "cus_other"));
    expect(await rows("subscription", "status = 'canceled'")).toBe(1);
    const [a, b, platform] = people.map(({ browser }) => browser);
    expect(a && (await list(a))).toEqual([]);
    expect(b && (await list(b))).toEqual([]);
    expect(platform && (await list(platform))).toEqual(["active"]);
  });

  it("one that was made by hand at Stripe goes to the tenant of its customer", async () => {
    const { signUp, tell, list, fake, ids, rows } = await createShops({
      createCustomerOnSignUp: true,
    });
    const { browser, user } = await signUp("b");
    const customer = fake.customers.find(({ metadata }) => metadata.userId === user.id);
    await tell("customer.subscription.created", fake.subscription("sub_9", customer?.id ?? ""));
    expect(await list(browser)).toEqual(["active"]);
    expect(await rows("subscription", '"tenantId" = ?', [ids.b])).toBe(1);
  });

  it.each([
    ["b", "a"],
    ["platform", "a"],
  ] as const)("R3: %s neither sees nor changes a subscription of %s", async (place, owner) => {
    const { signUp, buy, completed, list, unchanged } = await createShops();
    const { browser } = await signUp(owner);
    await completed(await buy(browser), "sub_1");
    const other = (await signUp(place)).browser;
    expect(await list(other)).toEqual([]);
    const body = { subscriptionId: "sub_1", returnUrl: "/", plan: "pro" };
    const urls = { successUrl: "/", cancelUrl: "/" };
    for (const path of ["upgrade", "cancel", "restore"]) {
      const answer = await unchanged(() =>
        other.post(`/subscription/${path}`, { ...body, ...urls }),
      );
      expectRefused(answer, 400, "SUBSCRIPTION_NOT_FOUND");
    }
  });

  it("an event that Stripe has not signed enters no tenant, and changes nothing", async () => {
    const { signUp, buy, fake, at, unchanged, instance } = await createShops();
    const { browser } = await signUp("a");
    const { customer, metadata } = await buy(browser);
    const forged = fake.event("checkout.session.completed", { customer, metadata }, "forged");
    for (const sender of [instance.browser(), at("a"), at("b")]) {
      const answer = await unchanged(() => sender.post(WEBHOOK, forged.body, forged.options));
      expectRefused(answer, 400, "FAILED_TO_CONSTRUCT_STRIPE_EVENT");
    }
  });

  it("R4: an event of A that is sent to B is an error, so that Stripe shows it", async () => {
    const { signUp, buy, fake, at, list, unchanged } = await createShops();
    const { browser } = await signUp("a");
    const { customer, metadata } = await buy(browser);
    const object = { mode: "subscription", customer, subscription: "sub_1", metadata };
    const { body, options } = fake.event("checkout.session.completed", object);
    const there = await unchanged(() => at("b").post(WEBHOOK, body, options));
    expectRefused(there, 409, "TENANT_SCOPE_CONFLICT");
    expect((await at("a").post(WEBHOOK, body, options)).status).toBe(200);
    expect(await list(browser)).toEqual(["active"]);
  });

  it("an event about a suspended tenant counts: who has paid may be let in again", async () => {
    const { signUp, buy, completed, instance, ids, rows } = await createShops();
    const { browser } = await signUp("a");
    const checkout = await buy(browser);
    await instance.api.updateTenant({ body: { tenantId: ids.a ?? "", status: "suspended" } });
    expect((await completed(checkout, "sub_1")).status).toBe(200);
    expect(await rows("subscription", "status = 'active'")).toBe(1);
  });

  it("subscriptions go with their tenant, and a late event brings nothing back", async () => {
    const { signUp, buy, completed, instance, ids, rows, tell, fake } = await createShops();
    const a = await signUp("a");
    const b = await signUp("b");
    await completed(await buy(a.browser), "sub_1");
    await completed(await buy(b.browser), "sub_2");
    await instance.api.deleteTenant({ body: { tenantId: ids.a ?? "" } });
    expect(await rows("subscription")).toBe(1);
    const late = fake.subscription("sub_1", "cus_gone");
    for (const type of ["created", "updated", "deleted"]) {
      expect((await tell(`customer.subscription.${type}`, late)).status).toBe(200);
    }
    expect(await rows("subscription", "status = 'active'")).toBe(1);
    expect(await rows("subscription")).toBe(1);
  });
});

describe("customers of Stripe", () => {
  it("the same address is three customers in three places", async () => {
    const { signUp, fake } = await createShops({ createCustomerOnSignUp: true });
    const people: string[] = [];
    for (const place of PLACES) people.push((await signUp(place)).user.id);
    expect(fake.customers.map(({ metadata }) => metadata.userId)).toEqual(people);
  });

  it.each([
    ["with search", true],
    ["without search", false],
    ["with an old client", undefined],
  ])("threat: a tenant's administrator makes up a verified address, %s", async (_, canSearch) => {
    const fake = createStripe({ canSearch });
    const { signUp, instance, setRole, fake: shop, naming, buy } = await createShops({ fake });
    const victim = shop.addCustomer("victim@example.com");
    const admin = await signUp("a");
    await setRole(admin.user.id, "admin");
    const person = { name: "V", email: victim.email, password: "a long password" };
    const made = await admin.browser.post("/admin/create-user", {
      ...person,
      data: { emailVerified: true },
    });
    expect(made.status, JSON.stringify(made.data)).toBe(200);
    const browser = instance.browser(naming("a"));
    expect((await browser.post("/sign-in/email", person)).status).toBe(200);
    const { customer } = await buy(browser);
    expect(customer).not.toBe(victim.id);
    await browser.post("/subscription/billing-portal", { returnUrl: "/" });
    expect(shop.portals).not.toContain(victim.id);
  });

  it("threat: nobody takes a customer of another tenant for their own", async () => {
    const { signUp, fake, unchanged } = await createShops({ createCustomerOnSignUp: true });
    const victim = await signUp("a");
    const customer = fake.customers.find(({ metadata }) => metadata.userId === victim.user.id);
    for (const place of ["b", "platform"] as Place[]) {
      const { browser } = await signUp(place, "thief@example.com");
      const change = { stripeCustomerId: customer?.id };
      const answer = await unchanged(() => browser.post("/update-user", change));
      expectRefused(answer, 422, "VALUE_TAKEN");
      await browser.post("/subscription/billing-portal", { returnUrl: "/" });
    }
    expect(fake.portals).not.toContain(customer?.id);
  });

  it("threat: nor when they sign up", async () => {
    const { signUp, fake, at, rows } = await createShops({ createCustomerOnSignUp: true });
    await signUp("a");
    const person = { name: "T", email: "thief@example.com", password: "a long password" };
    const taken = { ...person, stripeCustomerId: fake.customers[0]?.id };
    expectRefused(await at("b").post("/sign-up/email", taken), 422, "VALUE_TAKEN");
    expect(await rows("user")).toBe(1);
    const free = { ...person, stripeCustomerId: "cus_of_nobody" };
    expect((await at("b").post("/sign-up/email", free)).status).toBe(200);
  });

  it("control: on the platform a customer that is there is found by a verified address", async () => {
    const { signUp, fake, instance, buy } = await createShops();
    const known = fake.addCustomer(EMAIL);
    const { browser, user } = await signUp("platform");
    const { database } = instance;
    await database.query(
      `update ${database.quote("user")} set ${database.quote("emailVerified")} = 1 where id = ?`,
      [user.id],
    );
    expect((await buy(browser)).customer).toBe(known.id);
  });
});

describe("stripe at start", () => {
  it("R11: asks for its model to be scoped, and refuses to share it", async () => {
    const plugins = [pluginOf(createStripe())];
    await expect(createInstance({ plugins })).rejects.toThrow('scopedModels: ["subscription"]');
    await expect(
      createInstance({ plugins, tenant: { sharedModels: ["subscription"] } }),
    ).rejects.toThrow(/"subscription"\] cannot be shared.*\n.*\n {2}scopedModels: \["subscr/);
  });

  it("needs no decision without subscriptions", async () => {
    const fake = createStripe();
    const options = { stripeClient: fake.client, stripeWebhookSecret: WEBHOOK_SECRET };
    const { browser, signUp } = await createInstance({
      plugins: [stripe({ ...options, createCustomerOnSignUp: true })],
    });
    await signUp(null);
    expect(fake.customers).toHaveLength(1);
    const { body, options: sent } = fake.event("invoice.paid", { customer: "cus_1" });
    expect((await browser().post(WEBHOOK, body, sent)).status).toBe(200);
  });
});

describe("stripe where tenants have hosts", () => {
  it("R4: an event that comes to the platform's host goes to its tenant", async () => {
    const fake = createStripe();
    const events: (string | null)[] = [];
    const instance = await createInstance({
      plugins: [pluginOf(fake, events, true)],
      tenant: { ...SCOPED, resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
      auth: { baseURL: "http://example.com", trustedOrigins: ["http://*.example.com"] },
    });
    const { id } = await instance.createTenant("acme");
    const person = { name: "P", email: EMAIL, password: "a long password" };
    const acme = instance.browser({ host: "acme.example.com" });
    const signedUp = await acme.post("http://acme.example.com/api/auth/sign-up/email", person);
    expect(signedUp.status).toBe(200);
    const [customer] = fake.customers;
    const object = fake.subscription("sub_1", customer?.id ?? "");
    const { body, options } = fake.event("customer.subscription.created", object);
    const stripeItself = instance.browser({ host: "example.com" });
    const url = `http://example.com/api/auth${WEBHOOK}`;
    expect((await stripeItself.post(url, body, options)).status).toBe(200);
    expect(await instance.rows("subscription", '"tenantId" = ?', [id])).toBe(1);
    expect(events).toEqual([id]);
  });
});
