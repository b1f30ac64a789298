import type { GenericEndpointContext } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import * as z from "zod";
import { get, getOfTenant, post, tenantId } from "../../core/input";
import { runInScope, scopeOf } from "../../core/request";
import { requireTarget } from "../management/management";
import type { TenantManagementAction } from "../management/options";
import { findTenant, type Tenant } from "../management/tenant";
import { normalizeDomain, requireDomain } from "./name";
import type { ResolvedDomainOptions, StoredDomain } from "./options";
import * as store from "./store";
import { type DomainRecord, recheck, recordOf, tell, verify } from "./verify";

/** A domain, as managers see it. */
export interface TenantDomain {
  tenantId: string;
  /** In ASCII, in lower case, without a trailing dot. */
  domain: string;
  verified: boolean;
  verifiedAt: Date | null;
  /** Whether `discover` returns the tenant for this domain, once it is verified. */
  discoverable: boolean;
  /** Whether the domain is a host of the tenant as well, once it is verified. */
  host: boolean;
  /** The DNS record that proves the domain. */
  record: DomainRecord;
  createdAt: Date;
}

/** A tenant in the public response of `discover`. */
export interface DiscoveredTenant extends Pick<Tenant, "name" | "slug"> {
  /** The result of the option `signInURL`, or null without this option. */
  signInURL: string | null;
}

/** Copies the fields that managers see, one by one, so that a new column cannot leak. */
function toDomain(row: StoredDomain): TenantDomain {
  const { tenantId, domain, discoverable, host, createdAt, verifiedAt = null } = row;
  const [verified, record] = [store.isVerified(row), recordOf(row)];
  return { tenantId, domain, verified, verifiedAt, discoverable, host, record, createdAt };
}

export const VERIFY_PATH = "/tenant/domain/verify";
export const DISCOVER_PATH = "/tenant/discover";

const domain = z.string().meta({ description: "A domain name, such as acme.com" });
const domainBody = z.object({ tenantId: tenantId.optional(), domain });
const host = z.boolean().optional().meta({ description: "Whether the domain is a host as well" });

/** Calls `run` inside the tenant that the call is about, if the caller may manage its domains. */
async function manage<T>(
  ctx: GenericEndpointContext,
  action: TenantManagementAction,
  run: (target: Awaited<ReturnType<typeof requireTarget>>) => Promise<T>,
): Promise<T> {
  const target = await requireTarget(ctx, action);
  return runInScope(scopeOf(target.tenantId), () => run(target));
}

export const addDomainEndpoint = ({ maxDomains }: ResolvedDomainOptions) =>
  createAuthEndpoint(
    "/tenant/domain/add",
    post(domainBody.extend({ host }), "Add a domain to a tenant"),
    async (ctx) => {
      const { context, body } = ctx;
      const { domain, record } = await manage(ctx, "domain:add", async ({ actor, tenantId }) => {
        const most = actor === "server" ? Infinity : maxDomains;
        const name = requireDomain(body.domain);
        const { row, isNew } = await store.add(context, tenantId, name, body.host ?? true, most);
        if (isNew) await tell(context, actor, row, { type: "domain:added" });
        return toDomain(row);
      });
      return ctx.json({ domain, record });
    },
  );

export const verifyDomainEndpoint = (options: ResolvedDomainOptions) =>
  createAuthEndpoint(
    VERIFY_PATH,
    post(domainBody, "Look for the DNS record that proves a domain"),
    async (ctx) => {
      const { context, body } = ctx;
      const row = await manage(ctx, "domain:verify", async ({ actor }) => {
        const known = await store.requireRow(context, requireDomain(body.domain));
        return verify(context, options, actor, known);
      });
      const { domain, verified, verifiedAt } = toDomain(row);
      return ctx.json({ domain, verified, verifiedAt });
    },
  );

export const listDomainsEndpoint = (options: ResolvedDomainOptions) =>
  createAuthEndpoint(
    "/tenant/domain/list",
    getOfTenant("List a tenant's domains, by name"),
    async (ctx) => {
      const rows = await manage(ctx, "domain:list", () => store.list(ctx.context));
      recheck(ctx.context, options, rows);
      return ctx.json(rows.map(toDomain));
    },
  );

export const updateDomainEndpoint = createAuthEndpoint(
  "/tenant/domain/update",
  post(
    domainBody.extend({
      discoverable: z.boolean().optional().meta({ description: "Whether discover returns it" }),
      host,
    }),
    "Change what a domain is used for",
  ),
  async (ctx) => {
    const { context, body } = ctx;
    const row = await manage(ctx, "domain:update", async ({ actor }) => {
      const known = await store.requireRow(context, normalizeDomain(body.domain));
      const { discoverable = known.discoverable, host = known.host } = body;
      const changed = await store.update(context, known, { discoverable, host });
      await tell(context, actor, changed, { type: "domain:updated" });
      return changed;
    });
    return ctx.json(toDomain(row));
  },
);

export const removeDomainEndpoint = createAuthEndpoint(
  "/tenant/domain/remove",
  post(domainBody, "Remove a domain from a tenant"),
  async (ctx) => {
    const { context, body } = ctx;
    await manage(ctx, "domain:remove", async ({ actor }) => {
      // Does not use `requireDomain`: a stored domain may have become a public suffix since, and
      // must still be removable.
      const row = await store.requireRow(context, normalizeDomain(body.domain));
      await store.remove(context, row);
      await tell(context, actor, row, { type: "domain:removed" });
    });
    return ctx.json({ success: true as const });
  },
);

export const discoverEndpoint = (options: ResolvedDomainOptions) =>
  createAuthEndpoint(
    DISCOVER_PATH,
    get(
      z.object({ domain }),
      "The tenants of a verified domain, for sign-in pages that ask for the email",
    ),
    async (ctx) => {
      const row = await store.verifiedRow(ctx.context, requireDomain(ctx.query.domain));
      if (row) recheck(ctx.context, options, [row]);
      const found: DiscoveredTenant[] = [];
      const tenant = row?.discoverable && (await findTenant(ctx.context, "id", row.tenantId));
      if (tenant && tenant.status === "active") {
        const { id, name, slug } = tenant;
        found.push({ name, slug, signInURL: options.signInURL?.({ id, name, slug }) ?? null });
      }
      return ctx.json(found);
    },
  );
