import type { AuthContext, HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import type { BeforeHook } from "../framework";
import type { Guard, Isolation, Row } from "../isolation/isolation";
import { effectiveScope, isOutermost } from "../request/endpoint";
import { statusOf } from "../request/resolve";
import { enter, getTenantId, namedScope, scopeOf } from "../request/scope";

/** What the package is given, as far as it matters here. */
interface StripeOptions {
  stripeWebhookSecret?: string;
  stripeClient?: {
    customers?: { search?: Search };
    webhooks?: Record<
      "constructEventAsync" | "constructEvent",
      ((payload: string, signature: string, secret: string) => unknown) | undefined
    >;
  };
}

interface Search {
  (params: { query?: string }, ...rest: unknown[]): Promise<{ data: Customer[] }>;
  [CONFINED]?: true;
}

type Customer = { metadata?: { userId?: unknown } };

export const stripeOptions = ({ options }: AuthContext) =>
  options.plugins?.find(({ id }) => id === "stripe")?.options as StripeOptions | undefined;

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

/** The id of something that Stripe may have put in the place of its id. */
const idOf = (value: unknown) => text(value) ?? text((value as { id?: unknown } | null)?.id);

/**
 * R4 for Stripe: its webhook says nothing about a tenant, but for the subscription or the customer
 * that an event is about. Their row names it, once the signature of the event is found to be good.
 * That includes suspended tenants: who has paid should be found to have paid.
 */
export function enterByEvent(isolation: Isolation): BeforeHook {
  return {
    matcher: ({ path }) => path === "/stripe/webhook",

    handler: createAuthMiddleware(async (ctx) => {
      const event = isOutermost(ctx) ? await readEvent(ctx) : undefined;
      if (!event) return;
      const owner = await ownerOf(isolation, event);
      const named = namedScope();
      if (!named) {
        enter(scopeOf(owner && (await statusOf(ctx, owner)) ? owner : null));
      } else if (owner !== undefined && owner !== named.tenantId) {
        // An answer of 200 would tell Stripe that the event has been taken in.
        throw conflict();
      }
    }),
  };
}

const conflict = () => tenantError("TENANT_SCOPE_CONFLICT");

/** The object of an event that Stripe has signed; the endpoint itself refuses all others. */
async function readEvent(ctx: HookEndpointContext): Promise<Row | undefined> {
  const { stripeClient, stripeWebhookSecret = "" } = stripeOptions(ctx.context) ?? {};
  const signature = ctx.request?.headers.get("stripe-signature");
  if (!ctx.request || !signature) return undefined;
  const { webhooks } = stripeClient ?? {};
  try {
    const payload = await ctx.request.clone().text();
    const event = webhooks?.constructEventAsync
      ? await webhooks.constructEventAsync(payload, signature, stripeWebhookSecret)
      : webhooks?.constructEvent?.(payload, signature, stripeWebhookSecret);
    return (event as { data?: { object?: Row } } | undefined)?.data?.object;
  } catch {
    return undefined;
  }
}

/** The tenant of what an event is about, looked for in the order of the package; null: platform. */
async function ownerOf(isolation: Isolation, object: Row): Promise<string | null | undefined> {
  // An event may be about the customer itself. What is written there comes from whoever it is.
  const metadata = (object.customer ? object.metadata : undefined) as Row | undefined;
  const customer = idOf(object.customer) ?? text(object.id);
  const places: [model: string, field: string, value: string | undefined][] = [
    ["subscription", "id", text(metadata?.subscriptionId)],
    ["subscription", "stripeSubscriptionId", text(object.id)],
    ["subscription", "stripeSubscriptionId", idOf(object.subscription)],
    ["subscription", "stripeCustomerId", customer],
    ["organization", "stripeCustomerId", customer],
    ["user", "stripeCustomerId", customer],
  ];
  for (const [model, field, value] of places) {
    const rows = value === undefined ? [] : await rowsWith(isolation, model, field, value);
    const [owner, ...others] = new Set(rows.map(({ tenantId }) => tenantId ?? null));
    // A customer that two tenants have had since before the plugin was installed.
    if (others.length > 0) throw conflict();
    if (owner !== undefined) return owner;
  }
  return undefined;
}

/** Rows of all tenants, read below the isolation. */
async function rowsWith(
  { raw, ctx, isolatedModel }: Omit<Isolation, "raw"> & { raw: DBTransactionAdapter },
  ...[model, field, value]: [string, string, string]
) {
  const isKnown = field === "id" || ctx.tables[model]?.fields[field];
  if (!isolatedModel(model) || !isKnown) return [];
  return raw.findMany<Row>({ model, where: [{ field, value }], limit: 100 });
}

/**
 * The id of a customer shows that customer's invoices, and better-auth lets users write their own. So
 * an id that another scope has is refused.
 */
export const guardCustomers =
  (isolation: Isolation, options: StripeOptions): Guard =>
  ({ method, call, model = "", raw }, next) => {
    if (method === "create" && model === "user") isolateSearch(options);
    const { stripeCustomerId } = call.data ?? call.update ?? call.set ?? {};
    const customer = text(stripeCustomerId);
    if (!customer || !WITH_CUSTOMER.includes(model)) return undefined;
    return refuseForeignCustomer(isolation, raw, customer).then(() => next(call));
  };

const WITH_CUSTOMER = ["user", "organization", "subscription"];

async function refuseForeignCustomer(
  isolation: Isolation,
  raw: DBTransactionAdapter,
  customer: string,
): Promise<void> {
  const { tenantId } = effectiveScope();
  for (const model of WITH_CUSTOMER) {
    const rows = await rowsWith({ ...isolation, raw }, model, "stripeCustomerId", customer);
    if (rows.every((row) => (row.tenantId ?? null) === tenantId)) continue;
    throw tenantError("VALUE_TAKEN");
  }
}

const CONFINED = Symbol.for("better-auth-tenant:confined-customers");

/**
 * The package takes over a customer that Stripe knows by the verified address of a user. Inside a
 * tenant it is the tenant's administrator who says which addresses are verified. So there it finds
 * only those that were made for a user, and it compares which. The search is changed in place: the
 * package has taken the client by now.
 */
function isolateSearch({ stripeClient }: StripeOptions): void {
  const customers = stripeClient?.customers;
  if (!customers || customers.search?.[CONFINED]) return;
  const { search } = customers;
  const confined: Search = (params, ...rest) => {
    const find = () => (search as Search).call(customers, params, ...rest);
    const isByAddress = params.query?.startsWith("email:");
    if (getTenantId() === null || !isByAddress) return find();
    // Where there is no search, the package would go through a list, and take what it finds.
    return Promise.resolve()
      .then(find)
      .then(ofUsers, () => ({ data: [] }));
  };
  customers.search = Object.assign(confined, { [CONFINED]: true as const });
}

const ofUsers = <Found extends { data: Customer[] }>(found: Found): Found => ({
  ...found,
  data: found.data.filter(({ metadata }) => metadata?.userId),
});

/**
 * Before the package searches: when it makes a user, and at the checkout. Not at start, where the
 * key of a client that is made late may not be there yet.
 */
export const isolateSearchAtCheckout: BeforeHook = {
  matcher: ({ path }) => path === "/subscription/upgrade",

  handler: createAuthMiddleware(async (ctx) => isolateSearch(stripeOptions(ctx.context) ?? {})),
};
