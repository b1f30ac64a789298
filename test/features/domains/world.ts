import { type TenantDomainsOptions, tenantDomains } from "../../../src/features/domains/index";
import { byDomain, bySubdomain, firstOf, type TenantEvent } from "../../../src/index";
import { Browser } from "../../support/browser";
import { createWorld, shareMade, type Where, type WorldOptions } from "../../support/world";

/** A name server: what it has, how long it takes, and how it fails. */
export function createDns() {
  const records = new Map<string, (string | string[])[]>();
  const dns = {
    records,
    asked: [] as string[],
    /** The code of the next answers, instead of one. */
    failure: undefined as string | undefined,
    delay: 0,
    /** Called before an answer. */
    before: async (_name: string) => {},
    publish: ({ name, value }: Record, ...more: (string | string[])[]) =>
      void records.set(name, [...(records.get(name) ?? []), value, ...more]),
    resolveTxt: async (name: string) => {
      dns.asked.push(name);
      await dns.before(name);
      if (dns.delay) await new Promise((resolve) => setTimeout(resolve, dns.delay));
      const code = dns.failure ?? (records.has(name) ? undefined : "ENOTFOUND");
      if (code) throw Object.assign(new Error(`queryTxt ${code} ${name}`), { code });
      return records.get(name) ?? [];
    },
  };
  return dns;
}

interface Record {
  name: string;
  value: string;
}

export interface DomainAnswer {
  domain: string;
  verified: boolean;
  verifiedAt: string | null;
  discoverable: boolean;
  host: boolean;
  record: Record & { type: string };
}

export const APP = "example.com";
export const SUBDOMAINS_AND_DOMAINS = firstOf(bySubdomain({ baseDomain: APP }), byDomain());

/** What better-auth is told: its own hosts, and no domain of a tenant. */
export const OWN_HOSTS = {
  allowedHosts: [APP, `*.${APP}`],
  protocol: "http" as const,
  fallback: `http://${APP}`,
};

interface DomainsOptions extends WorldOptions {
  domains?: TenantDomainsOptions;
}

export type DomainWorld = Awaited<ReturnType<typeof createDomains>>;

/** A world with domains and a name server. Tenants are named by the header, unless told. */
export async function createDomains(options: DomainsOptions = {}) {
  const { domains, plugins = [], tenant, ...rest } = options;
  const dns = createDns();
  const events: TenantEvent[] = [];
  const plugin = tenantDomains({ resolveTxt: dns.resolveTxt, ...domains });
  const world = await createWorld({
    ...rest,
    plugins: (send) => [plugin, ...(typeof plugins === "function" ? plugins(send) : plugins)],
    tenant: { onTenantEvent: (event) => void events.push(event), ...tenant },
  });
  const api = world.api as typeof world.api & (typeof plugin)["endpoints"];
  const about = (where: Where, domain: string) => ({
    body: { tenantId: world.idOf(where) ?? "", domain },
  });
  const verify = (where: Where, domain: string) => api.verifyTenantDomain(about(where, domain));

  return {
    ...world,
    api,
    dns,
    events,
    verify,
    add: (where: Where, domain: string) => api.addTenantDomain(about(where, domain)),
    remove: (where: Where, domain: string) => api.removeTenantDomain(about(where, domain)),
    list: (where: Where) => api.listTenantDomains({ query: { tenantId: world.idOf(where) ?? "" } }),

    /** Adds, publishes and verifies. */
    async own(where: Where, domain: string) {
      const { record } = await api.addTenantDomain(about(where, domain));
      dns.publish(record);
      return { record, ...(await verify(where, domain)) };
    },

    /** The record was last seen so many seconds ago. */
    seen: (seconds: number) =>
      world.write("tenantDomain", {
        recordSeenAt: new Date(Date.now() - seconds * 1000).toISOString(),
      }),

    /** The record of a domain has been gone for so many seconds. */
    gone: (domain: string, seconds: number) =>
      world.write(
        "tenantDomain",
        { recordGoneAt: new Date(Date.now() - seconds * 1000).toISOString() },
        { domain },
      ),

    /** A browser at a host. */
    atHost: (host: string, headers: { [name: string]: string } = {}) =>
      new Browser(world.auth.handler, `http://${host}/api/auth`, { host, ...headers }),
  };
}

/** One of them for all tests of a file. */
export const shareDomains = (options: DomainsOptions = {}): DomainWorld =>
  shareMade((database) => createDomains({ ...options, database }));

/** Waits for what runs in the background. */
export const settled = () => new Promise((resolve) => setTimeout(resolve, 50));
