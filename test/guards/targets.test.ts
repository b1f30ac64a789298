import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { createInstance, type Instance } from "../support/instance";
import { fakeNetwork } from "../support/network";
import { byDomains, byOwnFunctions, bySubdomains, type Naming } from "./hosts";

interface Call {
  path: string;
  method: "GET" | "POST";
  body?: Record<string, unknown>;
  /** What the target is called in the body, or in the query of a GET. */
  field: "tenantId" | "id";
}

const CALLS: Call[] = [
  {
    path: "/tenant/oauth-config/register",
    method: "POST",
    body: { providerId: "github", clientId: "new-id", clientSecret: "new-secret" },
    field: "tenantId",
  },
  { path: "/tenant/oauth-config/list", method: "GET", field: "tenantId" },
  {
    path: "/tenant/oauth-config/update",
    method: "POST",
    body: { providerId: "google", enabled: false },
    field: "tenantId",
  },
  {
    path: "/tenant/oauth-config/check",
    method: "POST",
    body: { providerId: "google" },
    field: "tenantId",
  },
  {
    path: "/tenant/oauth-config/delete",
    method: "POST",
    body: { providerId: "google" },
    field: "tenantId",
  },
  { path: "/tenant/update", method: "POST", body: { name: "Changed" }, field: "tenantId" },
  { path: "/tenant/delete", method: "POST", field: "tenantId" },
  { path: "/tenant/get", method: "GET", field: "id" },
];
const byPath = CALLS.map((call) => [call.path, call] as const);
const POSTS = byPath.filter(([, { method }]) => method === "POST");

/** A world where everybody may manage, so that only the target is in question. */
async function createTargets(naming?: Naming) {
  const instance = await createInstance({
    tenant: {
      canManageTenants: () => true,
      ...(naming && { resolveTenantId: naming.resolveTenantId }),
    },
    auth: { baseURL: "http://example.com", trustedOrigins: ["http://*", "http://*.*"] },
  });
  const tenants = { acme: "", globex: "" };
  for (const slug of ["acme", "globex"] as const) {
    tenants[slug] = (await instance.createTenant(slug)).id;
    await instance.api.registerTenantOAuthConfig({
      body: {
        tenantId: tenants[slug],
        providerId: "google",
        clientId: `client-${slug}`,
        clientSecret: `secret-of-${slug}`,
      },
    });
  }
  fakeNetwork();
  return { instance, tenants };
}

async function stored({ database }: Instance) {
  return {
    tenants: await database.query(`select * from "tenant" order by id`),
    configs: await database.query(`select * from "tenantOauthConfig" order by id`),
  };
}

/** Sends a call with a target in its proper place, and other names elsewhere. */
function send(
  browser: Browser,
  origin: string,
  { path, method, body, field }: Call,
  target: string | undefined,
  more: { query?: Record<string, string>; headers?: Record<string, string> } = {},
) {
  const url = `${origin}/api/auth${path}`;
  const named = target === undefined ? {} : { [field]: target };
  const { headers = {}, query = {} } = more;
  return method === "GET"
    ? browser.get(url, { query: { ...named, ...query }, headers })
    : browser.post(url, { ...body, ...named }, { query, headers });
}

const NAMINGS: [string, Naming][] = [
  ["bySubdomain", bySubdomains],
  ["byDomain", byDomains],
  ...Object.entries(byOwnFunctions),
];

describe.each(NAMINGS)("R7: management at a tenant's host, with %s", (_, naming) => {
  const host = { host: naming.hosts.acme };
  const origin = `http://${naming.hosts.acme}`;

  it.each(byPath)("%s about another tenant is a conflict, and does nothing", async (__, call) => {
    const { instance, tenants } = await createTargets(naming);
    const before = await stored(instance);
    const answer = await send(instance.browser(host), origin, call, tenants.globex);
    expect(answer.status, JSON.stringify(answer.data)).toBe(409);
    expect(JSON.stringify(answer.data)).not.toMatch(/client-|GLOBEX/);
    expect(await stored(instance)).toEqual(before);
  });

  it.each(POSTS)("%s with another tenant in the query is one as well", async (__, call) => {
    const { instance, tenants } = await createTargets(naming);
    const before = await stored(instance);
    const query = { tenantId: tenants.globex };
    for (const target of [undefined, tenants.acme]) {
      const needed = /\/(update|delete)$/.test(call.path) && !call.path.includes("oauth");
      if (needed && !target) continue;
      const answer = await send(instance.browser(host), origin, call, target, { query });
      expect(answer.status, JSON.stringify(answer.data)).toBe(409);
    }
    expect(await stored(instance)).toEqual(before);
  });

  it.each(byPath)("control: %s about the host's own tenant works", async (__, call) => {
    const { instance, tenants } = await createTargets(naming);
    const answer = await send(instance.browser(host), origin, call, tenants.acme);
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
  });

  it.each(byPath.filter(([path]) => path.includes("oauth")))(
    "control: %s without a target is about the host's own tenant",
    async (__, call) => {
      const { instance, tenants } = await createTargets(naming);
      const [, globex] = (await stored(instance)).configs.toSorted((a) =>
        a.tenantId === tenants.globex ? 1 : -1,
      );
      const answer = await send(instance.browser(host), origin, call, undefined);
      expect(answer.status, JSON.stringify(answer.data)).toBe(200);
      const after = (await stored(instance)).configs;
      expect(after.find(({ id }) => id === globex?.id)).toEqual(globex);
    },
  );

  it.each(byPath)("control: at the platform's host %s is about whom it names", async (__, call) => {
    const { instance, tenants } = await createTargets(naming);
    const platform = instance.browser({ host: naming.hosts.platform });
    const answer = await send(platform, `http://${naming.hosts.platform}`, call, tenants.globex);
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
  });
});

describe("R7: /tenant/get by slug at a tenant's host", () => {
  it("is a conflict about another tenant, and works about its own", async () => {
    const { instance } = await createTargets(bySubdomains);
    const browser = instance.browser({ host: "acme.example.com" });
    const get = (slug: string) =>
      browser.get("http://acme.example.com/api/auth/tenant/get", { query: { slug } });
    const other = await get("globex");
    expect([other.status, other.data.name]).toEqual([409, undefined]);
    const own = await get("acme");
    expect([own.status, own.data.slug]).toEqual([200, "acme"]);
  });
});

describe("R1 among body, query and header, where no resolver speaks", () => {
  let world: Awaited<ReturnType<typeof createTargets>>;
  beforeAll(async () => {
    const { createDatabase } = await import("../support/database");
    const instance = await createInstance({
      database: await createDatabase("sqlite"),
      tenant: { canManageTenants: () => true },
    });
    const tenants = {
      acme: (await instance.createTenant("acme")).id,
      globex: (await instance.createTenant("globex")).id,
    };
    world = { instance, tenants };
  });
  afterAll(() => world.instance.database.close());

  const register = { providerId: "google", clientId: "an-id", clientSecret: "a-secret-of-it" };

  it("the body overrules a client's default header", async () => {
    const { instance, tenants } = world;
    const browser = instance.browser({ "x-tenant-id": tenants.globex });
    const body = { ...register, tenantId: tenants.acme };
    const answer = await browser.post("/tenant/oauth-config/register", body);
    expect([answer.status, answer.data.tenantId]).toEqual([200, tenants.acme]);
    const renamed = await browser.post("/tenant/update", { tenantId: tenants.acme, name: "New" });
    expect([renamed.status, renamed.data.id]).toEqual([200, tenants.acme]);
  });

  it("the body overrules the query, and the query the header", async () => {
    const { instance, tenants } = world;
    const browser = instance.browser({ "x-tenant-id": tenants.globex });
    const path = `/tenant/oauth-config/register?tenantId=${tenants.globex}`;
    const inBody = await browser.post(path, { ...register, tenantId: tenants.acme });
    expect([inBody.status, inBody.data.tenantId]).toEqual([200, tenants.acme]);
    const query = { tenantId: tenants.acme };
    const inQuery = await browser.get<{ tenantId: string }[]>("/tenant/oauth-config/list", {
      query,
    });
    expect(inQuery.data.map(({ tenantId }) => tenantId)).toEqual([tenants.acme]);
  });
});

describe("R7: a header of another tenant at a tenant's host", () => {
  it("is overruled by the host, as everywhere", async () => {
    const { instance, tenants } = await createTargets(bySubdomains);
    const browser = instance.browser({ host: "acme.example.com", "x-tenant-id": tenants.globex });
    const url = "http://acme.example.com/api/auth/tenant/oauth-config/list";
    const { data, status } = await browser.get<{ tenantId: string }[]>(url);
    expect([status, data.map(({ tenantId }) => tenantId)]).toEqual([200, [tenants.acme]]);
  });
});
