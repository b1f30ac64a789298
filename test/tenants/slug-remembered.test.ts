import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { bySlug, bySubdomain, type TenantAuthOptions } from "../../src/index";
import { gate } from "../support/gate";
import { createInstance, type Instance, type InstanceOptions } from "../support/instance";

const KEPT_MS = 10_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
});

afterEach(() => {
  vi.useRealTimers();
});

const later = (ms: number) => vi.setSystemTime(Date.now() + ms);

/** The ways to say a slug, all of which share what is remembered. */
const WAYS: [name: string, tenant: TenantAuthOptions, host: (slug: string) => string][] = [
  ["bySlug()", { resolveTenantId: bySlug() }, () => "localhost:3000"],
  [
    "bySubdomain()",
    { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
    (slug) => `${slug}.example.com`,
  ],
];

describe.each(WAYS)("a slug by %s", (_, tenant, hostOf) => {
  const options: InstanceOptions = {
    tenant,
    auth: {
      baseURL: {
        allowedHosts: ["localhost:3000", "*.example.com"],
        protocol: "http",
        fallback: "http://example.com",
      },
    },
  };

  /** Two servers on one database. */
  async function createServers() {
    const here = await createInstance(options);
    const elsewhere = await createInstance({
      ...options,
      database: here.database,
      migrate: false,
    });
    return { here, elsewhere };
  }

  /** Which tenant a slug leads to: the sign-in page says its name. */
  async function landing(server: Instance, slug: string): Promise<string> {
    const url = `http://${hostOf(slug)}/api/auth/tenant/sign-in-methods`;
    const headers = { "x-tenant-slug": slug };
    const { data, code } = await server.browser(headers).get<{ tenant: { name: string } }>(url);
    return code ?? data.tenant.name;
  }

  const session = (server: Instance, slug: string) =>
    server.browser({ "x-tenant-slug": slug }).get(`http://${hostOf(slug)}/api/auth/get-session`);

  const lookUps = ({ database: { statements } }: Instance) =>
    statements.splice(0).filter((sql) => /from\s+"tenant"/i.test(sql)).length;

  it("is looked up once in ten seconds", async () => {
    const here = await createInstance(options);
    await here.createTenant("acme");
    await session(here, "acme");
    lookUps(here);
    for (let times = 0; times < 5; times++) expect((await session(here, "acme")).status).toBe(200);
    expect(lookUps(here)).toBe(0);
    later(KEPT_MS + 1);
    await session(here, "acme");
    await session(here, "acme");
    expect(lookUps(here)).toBe(1);
  });

  it("is not remembered where nobody has it, and counts as soon as somebody does", async () => {
    const { here, elsewhere } = await createServers();
    expect(await landing(here, "acme")).toBe("TENANT_NOT_FOUND");
    lookUps(here);
    expect(await landing(here, "acme")).toBe("TENANT_NOT_FOUND");
    // The second look is for the log: it may be an id.
    expect(lookUps(here)).toBe(2);
    await elsewhere.createTenant("acme");
    expect(await landing(here, "acme")).toBe("ACME");
  });

  it("that is changed counts here at once, and elsewhere within ten seconds", async () => {
    const { here, elsewhere } = await createServers();
    const { id: tenantId } = await here.createTenant("acme");
    for (const server of [here, elsewhere]) expect(await landing(server, "acme")).toBe("ACME");
    await here.api.updateTenant({ body: { tenantId, slug: "acme-corp" } });
    expect(await landing(here, "acme")).toBe("TENANT_NOT_FOUND");
    expect(await landing(here, "acme-corp")).toBe("ACME");
    expect(await landing(elsewhere, "acme-corp")).toBe("ACME");
    // It has been read again under its new slug: the old one is forgotten with that.
    expect(await landing(elsewhere, "acme")).toBe("TENANT_NOT_FOUND");
  });

  it("that is given to another tenant leads there, here at once and elsewhere within ten seconds", async () => {
    const { here, elsewhere } = await createServers();
    const { id: tenantId } = await here.createTenant("acme");
    for (const server of [here, elsewhere]) expect(await landing(server, "acme")).toBe("ACME");
    await here.api.updateTenant({ body: { tenantId, slug: "acme-corp" } });
    await here.api.createTenant({ body: { name: "Impostor", slug: "acme" } });
    expect(await landing(here, "acme")).toBe("Impostor");
    later(KEPT_MS - 1);
    // Whoever goes there all the time does not prolong it.
    expect(await landing(elsewhere, "acme")).toBe("ACME");
    later(2);
    expect(await landing(elsewhere, "acme")).toBe("Impostor");
  });

  it("that another process has freed and this one gives away leads to the new tenant at once", async () => {
    const { here, elsewhere } = await createServers();
    const { id: tenantId } = await here.createTenant("acme");
    for (const server of [here, elsewhere]) expect(await landing(server, "acme")).toBe("ACME");
    await here.api.updateTenant({ body: { tenantId, slug: "acme-corp" } });
    await elsewhere.api.createTenant({ body: { name: "New", slug: "acme" } });
    expect(await landing(elsewhere, "acme")).toBe("New");
    await elsewhere.createTenant("second");
    const { id: second } = await elsewhere.createTenant("third");
    expect(await landing(here, "second")).toBe("SECOND");
    await here.api.updateTenant({ body: { tenantId: second, slug: "fourth" } });
    expect(await landing(here, "fourth")).toBe("THIRD");
  });

  it("of a tenant that is deleted leads nowhere, here at once and elsewhere within ten seconds", async () => {
    const { here, elsewhere } = await createServers();
    const { id: tenantId } = await here.createTenant("acme");
    for (const server of [here, elsewhere]) expect(await landing(server, "acme")).toBe("ACME");
    await here.api.deleteTenant({ body: { tenantId } });
    expect(await landing(here, "acme")).toBe("TENANT_NOT_FOUND");
    expect((await session(elsewhere, "acme")).data).toBeNull();
    later(KEPT_MS + 1);
    expect(await landing(elsewhere, "acme")).toBe("TENANT_NOT_FOUND");
  });

  it("that is being looked up while it is given away is not remembered", async () => {
    const here = await createInstance(options);
    const { id: tenantId } = await here.createTenant("acme");
    const { adapter } = here.context;
    const { findOne } = adapter;
    const answered = gate();
    adapter.findOne = async (input) => {
      const row = await findOne<never>(input);
      if (input.model !== "tenant" || input.where[0]?.value !== "acme") return row;
      adapter.findOne = findOne;
      await answered.pass();
      return row;
    };
    const slow = session(here, "acme");
    await answered.reached;
    await here.api.updateTenant({ body: { tenantId, slug: "acme-corp" } });
    await here.api.createTenant({ body: { name: "Impostor", slug: "acme" } });
    answered.open();
    await slow;
    expect(await landing(here, "acme")).toBe("Impostor");
  });

  it("that was looked up slowly is not remembered for longer", async () => {
    const { here, elsewhere } = await createServers();
    const { id: tenantId } = await here.createTenant("acme");
    const { adapter } = elsewhere.context;
    const { findOne } = adapter;
    const answered = gate();
    adapter.findOne = async (input) => {
      const row = await findOne<never>(input);
      if (input.model !== "tenant") return row;
      adapter.findOne = findOne;
      await answered.pass();
      return row;
    };
    const slow = session(elsewhere, "acme");
    await answered.reached;
    await here.api.updateTenant({ body: { tenantId, slug: "acme-corp" } });
    await here.api.createTenant({ body: { name: "Impostor", slug: "acme" } });
    later(KEPT_MS + 1);
    answered.open();
    await slow;
    expect(await landing(elsewhere, "acme")).toBe("Impostor");
  });

  it("is right under everybody at once who looks while it changes hands", async () => {
    const here = await createInstance(options);
    const { id: tenantId } = await here.createTenant("acme");
    const looks: Promise<unknown>[] = [];
    const look = () => looks.push(...Array.from({ length: 20 }, () => session(here, "acme")));
    look();
    const changed = here.api.updateTenant({ body: { tenantId, slug: "acme-corp" } });
    look();
    await changed;
    look();
    await here.api.createTenant({ body: { name: "Impostor", slug: "acme" } });
    look();
    expect(await landing(here, "acme")).toBe("Impostor");
    await Promise.all(looks);
    expect(await landing(here, "acme")).toBe("Impostor");
  });
});
