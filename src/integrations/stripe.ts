import type { AuthContext, HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import type { BeforeHook } from "../framework";
import type { Guard, Isolation, Row } from "../isolation/isolation";
import { effectiveScope, isOutermost } from "../request/endpoint";
import { enter, getTenantId, namedScope, scopeOf } from "../request/scope";
import { lookUpTenant } from "../tenants/cache";

type ReadEvent = (payload: string, signature: string, secret: string) => unknown;

/** The options of @better-auth/stripe that matter here. */
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

/** Stripe may put a whole object in the place of its id. */
const idOf = (value: unknown) => text(value) ?? text((value as { id?: unknown } | null)?.id);

const conflict = () => tenantError("TENANT_SCOPE_CONFLICT");

/**
 * R4 for Stripe: the row of the subscription or customer in a signed event decides the tenant, also
 * a suspended one: its payments must be recorded.
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
        enter(scopeOf(owner && (await lookUpTenant(ctx.context, owner)) ? owner : null));
      } else if (owner !== undefined && owner !== named.tenantId) {
        // After a 200, Stripe would not send the event again.
        throw conflict();
      }
    }),
  };
}

/** The object of an event that Stripe signed. The endpoint itself refuses other events. */
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

/** Models with a customer, in the order in which the package looks one up. */
const WITH_CUSTOMER = ["subscription", "organization", "user"];

type Place = [model: string, field: string, value: string | undefined];

/** The tenant of an event's object, looked up in the package's order; null is the platform. */
async function ownerOf(isolation: Isolation, object: Row): Promise<string | null | undefined> {
  // An event may be about the customer itself, whose metadata the customer can write.
  const metadata = (object.customer ? object.metadata : undefined) as Row | undefined;
  const customer = idOf(object.customer) ?? text(object.id);
  const places: Place[] = [
    ["subscription", "id", text(metadata?.subscriptionId)],
    ["subscription", "stripeSubscriptionId", text(object.id)],
    ["subscription", "stripeSubscriptionId", idOf(object.subscription)],
    ...WITH_CUSTOMER.map((model): Place => [model, "stripeCustomerId", customer]),
  ];
  for (const place of places) {
    const [owner, ...others] = await ownersOf(isolation, isolation.raw, place);
    // Two tenants may share a customer since before the plugin was installed.
    if (others.length > 0) throw conflict();
    if (owner !== undefined) return owner;
  }
  return undefined;
}

/** The scopes that have rows with this value; null is the platform. */
async function ownersOf(
  { ctx, isolatedModel }: Isolation,
  raw: DBTransactionAdapter,
  [model, field, value]: Place,
): Promise<Set<string | null>> {
  const isKnown = field === "id" || ctx.tables[model]?.fields[field];
  if (!value || !isolatedModel(model) || !isKnown) return new Set();
  const rows = await raw.findMany<Row>({ model, where: [{ field, value }], limit: 100 });
  return new Set(rows.map(({ tenantId }) => tenantId ?? null));
}

/** better-auth lets users write their customer id, which gives access to that customer's invoices. */
export const guardCustomers =
  (isolation: Isolation, options: StripeOptions): Guard =>
  ({ method, call, model = "", raw }, next) => {
    if (method === "create" && model === "user") isolateSearch(options);
    const { stripeCustomerId } = call.data ?? call.update ?? call.set ?? {};
    const customer = text(stripeCustomerId);
    if (!customer || !WITH_CUSTOMER.includes(model)) return undefined;
    const check = async () => {
      const { tenantId } = effectiveScope();
      for (const each of WITH_CUSTOMER) {
        const owners = await ownersOf(isolation, raw, [each, "stripeCustomerId", customer]);
        owners.delete(tenantId);
        if (owners.size > 0) throw tenantError("VALUE_TAKEN");
      }
      return next(call);
    };
    return check();
  };

/**
 * The package takes over a customer that Stripe knows by the verified email of a user, but a
 * tenant's administrator decides which emails are verified there. So in a tenant the search finds
 * only customers created for a user, and the package compares for which. Changed in place, because
 * the package has the client already.
 */
function isolateSearch({ stripeClient }: StripeOptions): void {
  const customers = stripeClient?.customers;
  if (!customers || customers.search?.[ISOLATED]) return;
  const { search } = customers;
  const isolated: Search = (params, ...rest) => {
    const find = () => (search as Search).call(customers, params, ...rest);
    if (getTenantId() === null || !params.query?.startsWith("email:")) return find();
    // If the search fails, the package would take a customer from an unfiltered list.
    return createdForUsers(find).catch(() => ({ data: [] }));
  };
  customers.search = Object.assign(isolated, { [ISOLATED]: true as const });
}

async function createdForUsers(find: () => Promise<Found>): Promise<Found> {
  const found = await find();
  return { ...found, data: found.data.filter(({ metadata }) => metadata?.userId) };
}

/** Not at startup, because the client may be created later. */
export const isolateSearchAtCheckout: BeforeHook = {
  matcher: ({ path }) => path === "/subscription/upgrade",

  handler: createAuthMiddleware(async (ctx) => isolateSearch(stripeOptions(ctx.context) ?? {})),
};
