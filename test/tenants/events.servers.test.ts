import { runWithTransaction } from "@better-auth/core/context";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { TenantEvent } from "../../src/index";
import { createDatabase } from "../support/database";
import { createInstance, type InstanceOptions } from "../support/instance";
import { blocksIn } from "../support/markdown";
import { databases } from "../support/servers";

afterEach(() => vi.useRealTimers());

async function start(options: InstanceOptions = {}) {
  const events: TenantEvent[] = [];
  const instance = await createInstance({
    ...options,
    tenant: { ...options.tenant, onTenantEvent: (event) => void events.push(event) },
  });
  /** What has happened since it was last asked. */
  const happened = () => events.splice(0);
  return { instance, happened };
}

const GOOGLE = { providerId: "google", clientId: "an-id", clientSecret: "a-secret-of-google" };

describe("onTenantEvent", () => {
  it("is told about a tenant's whole life, by whom and when", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
    const { instance, happened } = await start();
    const { browser, user } = await instance.operator();
    const common = { actor: { userId: user.id, tenantId: null }, at: new Date() };
    const post = async (path: string, body: object) => {
      const { status, data } = await browser.post<Record<string, string>>(path, body);
      expect(status, path).toBe(200);
      return data;
    };
    const { id: tenantId } = await post("/tenant/create", { name: "Acme", slug: "acme" });
    const update = (body: object) => post("/tenant/update", { tenantId, ...body });
    const remove = (body: object) => post("/tenant/delete", { tenantId, ...body });
    expect(happened()).toMatchObject([
      { type: "tenant:created", tenantId, ...common, tenant: { id: tenantId, slug: "acme" } },
    ]);
    await update({ name: "New", metadata: null });
    expect(happened()).toMatchObject([
      { type: "tenant:updated", ...common, changed: ["name", "metadata"], tenant: { name: "New" } },
    ]);
    await update({ status: "suspended" });
    await update({ status: "suspended" });
    expect(happened()).toMatchObject([
      { type: "tenant:suspended", ...common, tenant: { status: "suspended" } },
    ]);
    await update({ status: "active", name: "Newer" });
    expect(happened().map(({ type }) => type)).toEqual(["tenant:updated", "tenant:resumed"]);
    const deleteAt = new Date(Date.now() + 60_000);
    await remove({ after: 60 });
    expect(happened()).toMatchObject([
      { type: "tenant:deletion-scheduled", ...common, deleteAt, tenant: { status: "deleting" } },
    ]);
    await update({ status: "active" });
    expect(happened()).toMatchObject([{ type: "tenant:restored", ...common, tenantId }]);
    await instance.signUp(String(tenantId));
    await remove({ dryRun: true });
    await remove({});
    const rows = { user: 1, session: 1, account: 1, verification: 0, tenantOauthConfig: 0 };
    expect(happened()).toEqual([{ type: "tenant:deleted", tenantId, ...common, rows }]);
  });

  it("is told about OAuth configs, and never a secret", async () => {
    const { instance, happened } = await start();
    const { id: tenantId } = await instance.createTenant();
    happened();
    const { api } = instance;
    await api.registerTenantOAuthConfig({ body: { tenantId, ...GOOGLE } });
    const changes = { clientSecret: "another-secret", enabled: false };
    await api.updateTenantOAuthConfig({ body: { tenantId, providerId: "google", ...changes } });
    await api.deleteTenantOAuthConfig({ body: { tenantId, providerId: "google" } });
    const events = happened();
    const common = { tenantId, actor: "server", at: expect.any(Date), providerId: "google" };
    expect(events).toEqual([
      { type: "oauth-config:registered", ...common },
      { type: "oauth-config:changed", ...common, changed: ["clientSecret", "enabled"] },
      { type: "oauth-config:deleted", ...common },
    ]);
    expect(JSON.stringify(events)).not.toMatch(/a-secret|another-secret/);
  });

  it("is told nothing where nothing has happened", async () => {
    const { instance, happened } = await start();
    const { id: tenantId } = await instance.createTenant("acme");
    const { browser } = await instance.operator();
    happened();
    await browser.post("/tenant/create", { name: "Acme", slug: "acme" });
    await browser.post("/tenant/update", { tenantId, slug: "Not A Slug", status: "suspended" });
    await browser.post("/tenant/update", { tenantId });
    await browser.post("/tenant/update", { tenantId, status: "active" });
    await browser.post("/tenant/delete", { tenantId: "unknown" });
    await browser.post("/tenant/oauth-config/delete", { tenantId, providerId: "google" });
    await instance.browser().post("/tenant/delete", { tenantId });
    await instance.api.purgeTenants();
    expect(happened()).toEqual([]);
    expect((await instance.api.getTenant({ query: { id: tenantId } })).status).toBe("active");
  });

  it("knows the server's own code, people without a session, and where people belong", async () => {
    const { instance, happened } = await start({ tenant: { canManageTenants: () => true } });
    const { id } = await instance.createTenant();
    const { browser, user } = await instance.signUp(id);
    await browser.post("/tenant/update", { tenantId: id, name: "By its own user" });
    await instance.browser().post("/tenant/update", { tenantId: id, name: "By nobody" });
    await instance.api.deleteTenant({ body: { tenantId: id, after: 0 } });
    await instance.api.purgeTenants();
    expect(happened().map(({ actor }) => actor)).toEqual([
      "server",
      { userId: user.id, tenantId: id },
      { userId: null, tenantId: null },
      "server",
      "server",
    ]);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("the audit log is away");
      },
    ],
    [
      "rejects",
      async () => {
        throw new Error("the audit log is away");
      },
    ],
  ])("breaks nothing when it %s, and that is logged", async (_, onTenantEvent) => {
    const instance = await createInstance({ tenant: { onTenantEvent } });
    const { browser } = await instance.operator();
    const created = await browser.post("/tenant/create", { name: "Acme", slug: "acme" });
    expect(created.status).toBe(200);
    const tenantId = created.data.id;
    for (const [path, body] of [
      ["/tenant/update", { status: "suspended" }],
      ["/tenant/oauth-config/register", GOOGLE],
      ["/tenant/delete", {}],
    ] as const) {
      expect((await browser.post(path, { tenantId, ...body })).status, path).toBe(200);
    }
    const logged = instance.logs.filter((line) => line.includes("the audit log is away"));
    expect(logged).toHaveLength(4);
    expect(logged[0]).toContain("onTenantEvent failed for tenant:created");
  });

  it("has a copy: what it does to that shows nowhere", async () => {
    const instance = await createInstance({
      tenant: {
        onTenantEvent: (event) => {
          if (event.type === "tenant:updated") event.tenant.name = "Changed by the handler";
          if (event.type === "policy:changed" && event.after) event.after.signUp = "open";
        },
      },
    });
    const { id: tenantId } = await instance.createTenant();
    const body = { tenantId, name: "Renamed", policy: { signUp: "closed" as const } };
    const answer = await instance.api.updateTenant({ body });
    expect(answer).toMatchObject({ name: "Renamed", policy: { signUp: "closed" } });
  });

  it("is told after the commit: not at all when it is rolled back", async () => {
    const { instance, happened } = await start();
    const adapter = instance.context.adapter as unknown as Parameters<typeof runWithTransaction>[0];
    const create = () => instance.createTenant("acme");
    const failing = runWithTransaction(adapter, async () => {
      await create();
      throw new Error("rolled back");
    });
    await expect(failing).rejects.toThrow("rolled back");
    expect(happened()).toEqual([]);
    await runWithTransaction(adapter, async () => {
      await create();
      expect(happened()).toEqual([]);
    });
    expect(happened()).toMatchObject([{ type: "tenant:created" }]);
  });

  it("finds what it is told about, and may ask better-auth", async () => {
    const found: unknown[] = [];
    const instance = await createInstance({
      tenant: {
        onTenantEvent: async ({ tenantId }) => {
          found.push(await instance.api.getTenant({ query: { id: tenantId } }));
        },
      },
    });
    const tenant = await instance.createTenant();
    expect(found).toEqual([tenant]);
  });
});

it.runIf(databases.includes("postgres"))(
  "the recipe of the guide keeps them in a table",
  async () => {
    const guide = blocksIn("docs/tenants.md");
    const [table] = guide.filter(({ language }) => language === "sql");
    const recipe = guide.find(({ code }) => code.startsWith("// tenant-events.ts"))?.code ?? "";
    const [statement = ""] = /insert into[^"]+/.exec(recipe) ?? [];
    const database = await createDatabase("postgres");
    onTestFinished(() => database.close());
    for (const line of (table?.code ?? "").split(";")) {
      if (line.trim()) await database.query(line);
    }
    const kept: Promise<unknown>[] = [];
    const instance = await createInstance({
      database,
      tenant: {
        // As in the guide, whose types the compiler looks at.
        onTenantEvent: (event) => {
          const { tenantId, type, actor, at } = event;
          const who = actor === "server" ? "server" : (actor.userId ?? "unknown");
          const values = [tenantId, type, who, at, JSON.stringify(event)];
          kept.push(database.query(statement.replaceAll(/\$\d/g, "?"), values));
        },
      },
    });
    const { id } = await instance.createTenant();
    await instance.api.deleteTenant({ body: { tenantId: id } });
    await Promise.all(kept);
    const rows = await database.query("select type, actor, event from tenant_event order by id");
    expect(rows.map(({ type, actor }) => [type, actor])).toEqual([
      ["tenant:created", "server"],
      ["tenant:deleted", "server"],
    ]);
    expect(rows[1]?.event).toMatchObject({ tenantId: id, rows: { user: 0 } });
  },
);
