import { runWithTransaction } from "@better-auth/core/context";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { TenantEvent } from "../../../src/index";
import { blocksIn } from "../../guides/pages";
import { createDatabase, servers } from "../../support/database";
import { createInstance } from "../../support/instance";
import { createWorld, type WorldOptions } from "../../support/world";

afterEach(() => vi.useRealTimers());

async function start(options: WorldOptions = {}) {
  const events: TenantEvent[] = [];
  const onTenantEvent = (event: TenantEvent) => void events.push(event);
  const world = await createWorld({ ...options, tenant: { ...options.tenant, onTenantEvent } });
  /** What has happened since it was last asked. */
  const happened = () => events.splice(0);
  happened();
  return { ...world, happened };
}

const GOOGLE = { providerId: "google", clientId: "an-id", clientSecret: "a-secret-of-google" };

describe("onTenantEvent", () => {
  it("is told about a tenant's whole life, with the actor and the time", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
    const { operator: arrive, signUp, happened } = await start();
    const operator = await arrive();
    const common = { actor: { userId: operator.id, tenantId: null }, at: new Date() };
    const post = async (path: string, body: object) => {
      const { status, data } = await operator.post<{ id: string }>(path, body);
      expect(status, path).toBe(200);
      return data;
    };
    const { id: tenantId } = await post("/tenant/create", { name: "New", slug: "new" });
    const update = (body: object) => post("/tenant/update", { tenantId, ...body });
    const remove = (body: object) => post("/tenant/delete", { tenantId, ...body });
    expect(happened()).toMatchObject([
      { type: "tenant:created", tenantId, ...common, tenant: { id: tenantId, slug: "new" } },
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
    await signUp(tenantId);
    await remove({ dryRun: true });
    await remove({});
    const rows = { user: 1, session: 1, account: 1, verification: 0, tenantOauthConfig: 0 };
    expect(happened()).toEqual([{ type: "tenant:deleted", tenantId, ...common, rows }]);
  });

  it("is told about OAuth configs, and never a secret", async () => {
    const { api, ids, happened } = await start();
    const tenantId = ids.acme;
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
    const { api, ids, as, at, happened } = await start();
    const tenantId = ids.acme;
    const operator = await as("admin", "platform");
    await operator.post("/tenant/create", { name: "Acme", slug: "acme" });
    await operator.post("/tenant/update", { tenantId, slug: "Not A Slug", status: "suspended" });
    await operator.post("/tenant/update", { tenantId });
    await operator.post("/tenant/update", { tenantId, status: "active" });
    await operator.post("/tenant/delete", { tenantId: "unknown" });
    await operator.post("/tenant/oauth-config/delete", { tenantId, providerId: "google" });
    await at(null).post("/tenant/delete", { tenantId });
    await api.purgeTenants();
    expect(happened()).toEqual([]);
    expect((await api.getTenant({ query: { id: tenantId } })).status).toBe("active");
  });

  it("names the actor: server code, a caller without a session, or a user and the user's tenant", async () => {
    const { api, as, at, ids, happened } = await start({
      tenant: { canManageTenants: () => true },
    });
    const tenantId = ids.acme;
    const jane = await as("jane", "acme");
    await jane.post("/tenant/update", { tenantId, name: "By its own user" });
    await at(null).post("/tenant/update", { tenantId, name: "By nobody" });
    await api.deleteTenant({ body: { tenantId, after: 0 } });
    await api.purgeTenants();
    expect(happened().map(({ actor }) => actor)).toEqual([
      { userId: jane.id, tenantId },
      { userId: null, tenantId: null },
      "server",
      "server",
    ]);
  });

  const away = () => {
    throw new Error("the audit log is away");
  };
  it.each<[string, () => void]>([
    ["throws", away],
    ["rejects", async () => away()],
  ])("breaks nothing when it %s, and that is logged", async (_, onTenantEvent) => {
    const { createTenant, logs } = await createWorld({ tenant: { onTenantEvent } });
    logs.length = 0;
    expect(await createTenant("new")).toMatchObject({ slug: "new" });
    const logged = logs.filter((line) => line.includes("the audit log is away"));
    expect(logged).toEqual([expect.stringContaining("onTenantEvent failed for tenant:created")]);
  });

  it("has a copy, finds what it is told about, and may ask better-auth", async () => {
    const found: unknown[] = [];
    const { change, api } = await createWorld({
      tenant: {
        onTenantEvent: async (event) => {
          if (event.type === "tenant:updated") {
            found.push(await api.getTenant({ query: { id: event.tenantId } }));
            event.tenant.name = "Changed by the handler";
          }
          if (event.type === "policy:changed" && event.after) event.after.signUp = "open";
        },
      },
    });
    const answer = await change("acme", { name: "Renamed", policy: { signUp: "closed" } });
    expect(answer).toMatchObject({ name: "Renamed", policy: { signUp: "closed" } });
    expect(found).toMatchObject([{ name: "Renamed" }]);
  });

  it("is told after the commit: not at all when it is rolled back", async () => {
    const { context, createTenant, happened } = await start();
    const adapter = context.adapter as unknown as Parameters<typeof runWithTransaction>[0];
    const failing = runWithTransaction(adapter, async () => {
      await createTenant("new");
      throw new Error("rolled back");
    });
    await expect(failing).rejects.toThrow("rolled back");
    expect(happened()).toEqual([]);
    await runWithTransaction(adapter, async () => {
      await createTenant("new");
      expect(happened()).toEqual([]);
    });
    expect(happened()).toMatchObject([{ type: "tenant:created" }]);
  });
});

it.runIf(servers.asked)("the recipe of the guide keeps them in a table", async () => {
  const guide = blocksIn("docs/tenants.md");
  const table = guide.find(({ language }) => language === "sql")?.code ?? "";
  const recipe = guide.find(({ code }) => code.startsWith("// tenant-events.ts"))?.code ?? "";
  const [statement = ""] = /insert into[^"]+/.exec(recipe) ?? [];
  const database = await createDatabase("postgres");
  onTestFinished(() => database.close());
  await database.query(table);
  const kept: Promise<unknown>[] = [];
  // As in the guide, whose types the compiler looks at.
  const onTenantEvent = (event: TenantEvent) => {
    const { tenantId, type, actor, at } = event;
    const values = [tenantId, type, actor, at, JSON.stringify(event)];
    kept.push(database.query(statement.replaceAll(/\$\d/g, "?"), values));
  };
  const { api, createTenant } = await createInstance({ database, tenant: { onTenantEvent } });
  const { id } = await createTenant();
  await api.deleteTenant({ body: { tenantId: id } });
  await Promise.all(kept);
  const rows = await database.query("select type, event from tenant_event order by id");
  expect(rows).toMatchObject([
    { type: "tenant:created" },
    { type: "tenant:deleted", event: { tenantId: id, rows: { user: 0 } } },
  ]);
});
