import type { StripeOptions } from "@better-auth/stripe";

type Client = StripeOptions["stripeClient"];

interface Customer {
  id: string;
  email: string | undefined;
  metadata: Record<string, string>;
}

interface Checkout {
  customer: string;
  metadata: Record<string, string>;
  subscription_data: { metadata: Record<string, string> };
}

export const PRICE = "price_pro";
export const WEBHOOK_SECRET = "whsec_test";
const SIGNATURE = "signed by Stripe";

const DAY = 24 * 3600;

/**
 * Stripe, as far as the package calls it: it keeps what it is told, and signs its events. Its search
 * is not available everywhere, and old clients have none.
 */
export function createStripe(options: { canSearch?: boolean | undefined } = { canSearch: true }) {
  const { canSearch } = options;
  const customers: Customer[] = [];
  const checkouts: Checkout[] = [];
  const portals: string[] = [];
  /** Subscriptions that Stripe knows by now. */
  const paid = new Map<string, ReturnType<typeof subscription>>();
  let count = 0;

  const subscription = (id: string, customer: string, metadata = {}, status = "active") => {
    const now = Math.floor(Date.now() / 1000);
    const price = { id: PRICE, recurring: { interval: "month" } };
    const period = { current_period_start: now, current_period_end: now + 30 * DAY };
    const items = { data: [{ id: "item", quantity: 1, price, ...period }] };
    return { id, customer, metadata, status, items, cancel_at_period_end: false };
  };

  async function search({ query }: { query: string }) {
    if (!canSearch) throw new Error("search is not available here");
    const [, email] = /^email:"([^"]*)"/.exec(query) ?? [];
    return { data: customers.filter((customer) => customer.email === email).slice(0, 1) };
  }

  const client = {
    customers: {
      search: canSearch === undefined ? undefined : search,
      list: async function* ({ email }: { email?: string }) {
        yield* customers.filter((customer) => customer.email === email);
      },
      create: async ({ email, metadata = {} }: Partial<Customer>) => {
        const customer = { id: `cus_${++count}`, email, metadata };
        customers.push(customer);
        return customer;
      },
      retrieve: async (id: string) => customers.find((customer) => customer.id === id),
      update: async () => ({}),
    },
    subscriptions: {
      list: ({ customer }: { customer: string }) => {
        const data = [...paid.values()].filter((known) => known.customer === customer);
        const iterated = async function* () {
          yield* data;
        };
        return Object.assign(Promise.resolve({ data }), { [Symbol.asyncIterator]: iterated });
      },
      retrieve: async (id: string) => paid.get(id) ?? subscription(id, "cus_any"),
      update: async (id: string, change: object) => Object.assign(paid.get(id) ?? {}, change),
    },
    prices: { list: async () => ({ data: [] }), retrieve: async (id: string) => ({ id }) },
    checkout: {
      sessions: {
        create: async (checkout: Checkout) => {
          checkouts.push(checkout);
          return { id: `cs_${checkouts.length}`, url: "https://checkout.stripe.example/" };
        },
      },
    },
    billingPortal: {
      sessions: {
        create: async ({ customer }: { customer: string }) => {
          portals.push(customer);
          return { url: `https://billing.stripe.example/${customer}` };
        },
      },
    },
    webhooks: {
      constructEventAsync: async (payload: string, signature: string, secret: string) => {
        if (signature !== SIGNATURE || secret !== WEBHOOK_SECRET) throw new Error("bad signature");
        return JSON.parse(payload);
      },
    },
  };

  return {
    client: client as unknown as Client,
    customers,
    portals,
    lastCheckout: () => checkouts.at(-1),
    subscription,

    /** A subscription that Stripe has from now on. */
    pay(id: string, customer: string) {
      const made = subscription(id, customer);
      paid.set(id, made);
      return made;
    },

    /** A customer that somebody has made by hand, for an address and for nobody's account. */
    addCustomer(email: string) {
      const customer = { id: `cus_by_hand_${++count}`, email, metadata: {} };
      customers.push(customer);
      return customer;
    },

    /** The request that tells of an event. */
    event: (type: string, object: object, signature = SIGNATURE) => ({
      body: { id: "evt_1", type, data: { object } },
      options: { headers: { "stripe-signature": signature } },
    }),
  };
}
