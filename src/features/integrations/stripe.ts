import type { AuthContext, HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { CHANGES, type Guard, type Row } from "../../core/database";
import { isOutermost } from "../../core/endpoint";
import { tenantError } from "../../core/errors";
import type { Claim } from "../../core/extension";
import type { BeforeHook } from "../../core/hooks";
import type { Isolation } from "../../core/isolation";
import { getTenantId, isScopeFinal } from "../../core/request";

type ReadEvent = (payload: string, signature: string, secret: string) => unknown;

/** The options of @better-auth/stripe that this file reads. */
interface StripeOptions {
  stripeWebhookSecret?: string;
  stripeClient?: {
    customers?: { search?: Search };
    webhooks?: { constructEventAsync?: ReadEvent; constructEvent?: ReadEvent };
  };
}

type Found = { data: { metadata?: { userId?: unknown } }[] };

interface Search {
  (params: { query?: string }, ...rest: unknown[]): Promise<Found>;
  [ISOLATED]?: true;
}

const ISOLATED = Symbol.for("better-auth-tenant:isolated-customers");

export const stripeOptions = ({ options }: AuthContext) =>
  options.plugins?.find(({ id }) => id === "stripe")?.options as StripeOptions | undefined;

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

/** Returns an id, which Stripe may replace with the whole object. */
const idOf = (value: unknown) => text(value) ?? text((value as { id?: unknown } | null)?.id);

const conflict = () => tenantError("TENANT_SCOPE_CONFLICT");

/**
 * R4 for Stripe: claims (see `Claim` in core/extension.ts) a signed event for the tenant of its
 * subscription or customer. Enters a suspended tenant too, because payments must be recorded.
 */
export const claimOfEvent =
  (isolation: Isolation) =>
  async (ctx: HookEndpointContext): Promise<Claim | undefined> => {
    if (ctx.path !== "/stripe/webhook" || !isOutermost(ctx)) return undefined;
    const event = await readEvent(ctx);
    if (!event) return undefined;
    const owner = await ownerOf(isolation, event);
    // Refuses an event of another tenant than the request's. An error makes Stripe send the event
    // again. After a 200, the event would be lost.
    if (isScopeFinal() && owner !== undefined && owner !== getTenantId()) throw conflict();
    return { tenantId: owner ?? null, unavailable: "enter", overridesEmptyResolver: true };
  };

/** Returns the object of an event that Stripe signed. The endpoint itself refuses other events. */
async function readEvent(ctx: HookEndpointContext): Promise<Row | undefined> {
  const { stripeClient, stripeWebhookSecret = "" } = stripeOptions(ctx.context) ?? {};
  const signature = ctx.request?.headers.get("stripe-signature");
  if (!ctx.request || !signature) return undefined;
  const { webhooks } = stripeClient ?? {};
  try {
    const payload = await ctx.request.clone().text();
    const event = await (webhooks?.constructEventAsync
      ? webhooks.constructEventAsync(payload, signature, stripeWebhookSecret)
      : webhooks?.constructEvent?.(payload, signature, stripeWebhookSecret));
    return (event as { data?: { object?: Row } } | undefined)?.data?.object;
  } catch {
    return undefined;
  }
}

/** Models with a customer id, in the order in which @better-auth/stripe looks for a customer. */
const WITH_CUSTOMER = ["subscription", "organization", "user"];

type Place = [model: string, field: string, value: string | undefined];

/**
 * Returns the tenant of an event's object. Null is the platform. Looks in the same order as
 * @better-auth/stripe.
 */
async function ownerOf(isolation: Isolation, object: Row): Promise<string | null | undefined> {
  // Ignores the metadata of a customer: users can write it.
  const metadata = (object.customer ? object.metadata : undefined) as Row | undefined;
  const customer = idOf(object.customer) ?? text(object.id);
  const places: Place[] = [
    ["subscription", "id", text(metadata?.subscriptionId)],
    ["subscription", "stripeSubscriptionId", text(object.id)],
    ["subscription", "stripeSubscriptionId", idOf(object.subscription)],
    ...WITH_CUSTOMER.map((model): Place => [model, "stripeCustomerId", customer]),
  ];
  for (const place of places) {
    const [owner, ...others] = await ownersOf(isolation, isolation.unscoped, place);
    // Two tenants may share a customer from before the plugin was installed. Then the event could
    // be of either, so it is refused.
    if (others.length > 0) throw conflict();
    if (owner !== undefined) return owner;
  }
  return undefined;
}

/** Returns the scopes that have rows with this value. Null is the platform. */
async function ownersOf(
  { ctx, isolatedModel }: Isolation,
  unscoped: DBTransactionAdapter,
  [model, field, value]: Place,
): Promise<Set<string | null>> {
  const isKnown = field === "id" || ctx.tables[model]?.fields[field];
  if (!value || !isolatedModel(model) || !isKnown) return new Set();
  const rows = await unscoped.findMany<Row>({ model, where: [{ field, value }], limit: 100 });
  return new Set(rows.map(({ tenantId }) => tenantId ?? null));
}

/**
 * Refuses a customer id that another tenant has. better-auth lets users write their own customer
 * id, and the id gives access to the customer's invoices.
 */
export const guardCustomers = (isolation: Isolation, options: StripeOptions): Guard => ({
  models: WITH_CUSTOMER,
  methods: ["create", ...CHANGES],
  async run({ method, call, model, unscoped }, next) {
    if (method === "create" && model === "user") isolateSearch(options);
    const { stripeCustomerId } = call.data ?? call.update ?? call.set ?? {};
    const customer = text(stripeCustomerId);
    if (!customer || model === undefined) return next(call);
    for (const each of WITH_CUSTOMER) {
      const owners = await ownersOf(isolation, unscoped, [each, "stripeCustomerId", customer]);
      owners.delete(getTenantId());
      if (owners.size > 0) throw tenantError("VALUE_TAKEN");
    }
    return next(call);
  },
});

/**
 * In a tenant, hides Stripe customers that were not created for a user. @better-auth/stripe takes
 * over such a customer by a user's verified email, but a tenant's administrator decides which
 * emails are verified. Of other customers, that package checks itself which user they were created
 * for. Changes the Stripe client in place, because the package already has it.
 */
function isolateSearch({ stripeClient }: StripeOptions): void {
  const customers = stripeClient?.customers;
  if (!customers || customers.search?.[ISOLATED]) return;
  const { search } = customers;
  const isolated: Search = (params, ...rest) => {
    const find = () => (search as Search).call(customers, params, ...rest);
    if (getTenantId() === null || !params.query?.startsWith("email:")) return find();
    // An error counts as an empty result. After an error, the package would take a customer from an
    // unfiltered list.
    return createdForUsers(find).catch(() => ({ data: [] }));
  };
  customers.search = Object.assign(isolated, { [ISOLATED]: true as const });
}

async function createdForUsers(find: () => Promise<Found>): Promise<Found> {
  const found = await find();
  return { ...found, data: found.data.filter(({ metadata }) => metadata?.userId) };
}

/** Isolates the search when a checkout starts, because the client may not exist at startup. */
export const isolateSearchAtCheckout: BeforeHook = {
  matcher: ({ path }) => path === "/subscription/upgrade",

  handler: createAuthMiddleware(async (ctx) => isolateSearch(stripeOptions(ctx.context) ?? {})),
};
