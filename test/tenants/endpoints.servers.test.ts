import { describe, expect, it } from "vitest";
import { createInstance, type Instance } from "../support/instance";
import { databases } from "../support/servers";

interface TenantAnswer {
  id: string;
  name: string;
  slug: string;
  metadata: Record<string, unknown> | null;
  createdAt: string;
  updatedAt: string;
}

const KEYS = [
  "createdAt",
  "deleteAt",
  "id",
  "metadata",
  "name",
  "policy",
  "slug",
  "status",
  "updatedAt",
];
const keysOf = (value: object) => Object.keys(value).sort();
const UNKNOWN_ID = "no-such-tenant";

/** Long ago, so that every change after it shows in `updatedAt` without waiting. */
async function makeOld(instance: Instance, tenantId: string, day = 1) {
  const then = new Date(Date.UTC(2020, 0, day));
  await instance.context.adapter.update({
    model: "tenant",
    where: [{ field: "id", value: tenantId }],
    update: { createdAt: then, updatedAt: then },
  });
  return then.toISOString();
}

async function start(options: Parameters<typeof createInstance>[0]) {
  const instance = await createInstance(options);
  const { browser } = await instance.operator();
  return { instance, operator: browser };
}

describe.each(databases)("on %s", (database) => {
  describe("POST /tenant/create", () => {
    it("answers the tenant, with these fields and no others", async () => {
      const { instance, operator } = await start({ database });
      const before = Date.now();
      const { status, data } = await operator.post<TenantAnswer>("/tenant/create", {
        name: "Acme Größe 株式会社 🏢",
        slug: "acme",
        metadata: { plan: "pro" },
      });
      expect(status).toBe(200);
      expect(keysOf(data)).toEqual(KEYS);
      expect(data).toMatchObject({
        name: "Acme Größe 株式会社 🏢",
        slug: "acme",
        metadata: { plan: "pro" },
      });
      expect(data.id).toMatch(/^\S+$/);
      expect(data.createdAt).toBe(data.updatedAt);
      // PostgreSQL and MariaDB keep whole milliseconds; a second of slack is for their rounding.
      expect(Math.abs(new Date(data.createdAt).getTime() - before)).toBeLessThan(5000);
      expect(await instance.rows("tenant", "id = ?", [data.id])).toBe(1);
    });

    it("answers null for metadata that was not given, and for null", async () => {
      const { operator } = await start({ database });
      const without = await operator.post<TenantAnswer>("/tenant/create", {
        name: "A",
        slug: "aa",
      });
      const withNull = await operator.post<TenantAnswer>("/tenant/create", {
        name: "B",
        slug: "bb",
        metadata: null,
      });
      expect([without.status, withNull.status]).toEqual([200, 200]);
      expect([without.data.metadata, withNull.data.metadata]).toEqual([null, null]);
    });

    it("takes neither id nor dates nor unknown fields from the body", async () => {
      const { operator } = await start({ database });
      const { data } = await operator.post<TenantAnswer>("/tenant/create", {
        name: "Acme",
        slug: "acme",
        id: "mine",
        createdAt: "2001-01-01T00:00:00.000Z",
        owner: "me",
      });
      expect(keysOf(data)).toEqual(KEYS);
      expect(data.id).not.toBe("mine");
      expect(new Date(data.createdAt).getUTCFullYear()).toBeGreaterThan(2001);
    });

    it("does the same through the server API, with dates as dates", async () => {
      const instance = await createInstance({ database });
      const tenant = await instance.api.createTenant({ body: { name: "Acme", slug: "acme" } });
      expect(keysOf(tenant)).toEqual(KEYS);
      expect(tenant).toMatchObject({ name: "Acme", slug: "acme", metadata: null });
      expect(tenant.createdAt).toBeInstanceOf(Date);
      expect(tenant.updatedAt).toEqual(tenant.createdAt);
    });

    it("allows two tenants of the same name", async () => {
      const { instance, operator } = await start({ database });
      await operator.post("/tenant/create", { name: "Acme", slug: "acme" });
      const again = await operator.post("/tenant/create", { name: "Acme", slug: "acme-2" });
      expect(again.status).toBe(200);
      expect(await instance.rows("tenant")).toBe(2);
    });
  });

  describe("GET /tenant/get", () => {
    it("finds a tenant by its id and by its slug", async () => {
      const { instance, operator } = await start({ database });
      const created = await operator.post<TenantAnswer>("/tenant/create", {
        name: "Acme",
        slug: "acme",
        metadata: { a: 1 },
      });
      await instance.createTenant("other");
      const queries: Record<string, string>[] = [{ id: created.data.id }, { slug: "acme" }];
      for (const query of queries) {
        const { status, data } = await operator.get<TenantAnswer>("/tenant/get", { query });
        expect(status).toBe(200);
        expect(data).toEqual(created.data);
        expect(keysOf(data)).toEqual(KEYS);
      }
      const { id } = created.data;
      const byId = await instance.api.getTenant({ query: { id } });
      const bySlug = await instance.api.getTenant({ query: { slug: "acme" } });
      expect(byId).toEqual(bySlug);
      expect(JSON.parse(JSON.stringify(byId))).toEqual(created.data);
    });

    it.each([
      ["neither", () => ({})],
      ["both", (id: string) => ({ id, slug: "acme" })],
      ["both, of different tenants", (id: string) => ({ id, slug: "other" })],
      ["two empty ones", () => ({ id: "", slug: "" })],
    ])("asks for exactly one of id and slug: %s", async (_, queryOf) => {
      const { instance, operator } = await start({ database });
      const { id } = await instance.createTenant("acme");
      await instance.createTenant("other");
      const query: Record<string, string> = queryOf(id);
      const answer = await operator.get("/tenant/get", { query });
      expect([answer.status, answer.code]).toEqual([400, "TENANT_ID_OR_SLUG_REQUIRED"]);
      await expect(instance.api.getTenant({ query })).rejects.toMatchObject({
        statusCode: 400,
        body: { code: "TENANT_ID_OR_SLUG_REQUIRED" },
      });
    });

    it("answers 404 for an unknown id and an unknown slug, and does not mix them up", async () => {
      const { instance, operator } = await start({ database });
      const { id } = await instance.createTenant("acme");
      const queries: Record<string, string>[] = [
        { id: UNKNOWN_ID },
        { slug: "nobody" },
        { id: "acme" },
        { slug: id },
      ];
      for (const query of queries) {
        const answer = await operator.get("/tenant/get", { query });
        expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      }
    });
  });

  describe("GET /tenant/list", () => {
    it("is an empty array without tenants", async () => {
      const { instance, operator } = await start({ database });
      const { status, data } = await operator.get("/tenant/list");
      expect(status).toBe(200);
      expect(data).toEqual([]);
      expect(await instance.api.listTenants()).toEqual([]);
    });

    it("lists oldest first, whatever the order of ids, names and slugs", async () => {
      const { instance, operator } = await start({ database });
      const slugs = ["mm", "zz", "aa", "kk"];
      const days = [3, 1, 4, 2];
      for (const [index, slug] of slugs.entries()) {
        const { id } = await instance.createTenant(slug);
        await makeOld(instance, id, days[index]);
      }
      const { data } = await operator.get<TenantAnswer[]>("/tenant/list");
      expect(data.map(({ slug }) => slug)).toEqual(["zz", "kk", "mm", "aa"]);
      for (const tenant of data) expect(keysOf(tenant)).toEqual(KEYS);
      const listed = await instance.api.listTenants();
      expect(listed.map(({ slug }) => slug)).toEqual(["zz", "kk", "mm", "aa"]);
    });

    it("lists every tenant, also when there are more than a hundred", async () => {
      const { instance, operator } = await start({ database });
      const slugs = Array.from({ length: 130 }, (_, index) => `tenant-${index}`);
      await Promise.all(slugs.map((slug) => instance.createTenant(slug)));
      const { data } = await operator.get<TenantAnswer[]>("/tenant/list");
      expect(data.map(({ slug }) => slug).sort()).toEqual(slugs.toSorted());
      const times = data.map(({ createdAt }) => createdAt);
      expect(times).toEqual(times.toSorted());
    });
  });

  describe("POST /tenant/update", () => {
    const NEW = { name: "New", slug: "new-slug", metadata: { b: [2] } };

    it.each([
      ["name", { name: NEW.name }],
      ["slug", { slug: NEW.slug }],
      ["metadata", { metadata: NEW.metadata }],
      ["all of them", NEW],
    ])("changes what is given and nothing else: %s", async (_, changes) => {
      const { instance, operator } = await start({ database });
      const body = { name: "Old", slug: "old-slug", metadata: { a: 1 } };
      const { id } = await instance.api.createTenant({ body });
      const then = await makeOld(instance, id);
      const other = await instance.createTenant("other");
      const { status, data } = await operator.post<TenantAnswer>("/tenant/update", {
        tenantId: id,
        ...changes,
      });
      expect(status).toBe(200);
      expect(keysOf(data)).toEqual(KEYS);
      expect(data).toMatchObject({ ...body, ...changes, id, createdAt: then });
      expect(data.metadata).toEqual({ ...body, ...changes }.metadata);
      expect(new Date(data.updatedAt).getTime()).toBeGreaterThan(new Date(then).getTime());
      const stored = await instance.api.getTenant({ query: { id } });
      expect(JSON.parse(JSON.stringify(stored))).toEqual(data);
      expect(await instance.api.getTenant({ query: { id: other.id } })).toEqual(other);
    });

    it("answers the tenant as it is when there is nothing to change", async () => {
      const { instance, operator } = await start({ database });
      const { id } = await instance.api.createTenant({
        body: { name: "Acme", slug: "acme", metadata: { a: 1 } },
      });
      const then = await makeOld(instance, id);
      const kept = { status: "active", deleteAt: null, policy: null };
      const expected = { id, name: "Acme", slug: "acme", metadata: { a: 1 }, ...kept };
      const { status, data } = await operator.post("/tenant/update", { tenantId: id });
      expect(status).toBe(200);
      expect(data).toEqual({ ...expected, createdAt: then, updatedAt: then });
      const answer = await instance.api.updateTenant({
        body: { tenantId: id, name: undefined, slug: undefined, metadata: undefined },
      });
      expect(answer).toMatchObject({ ...expected, updatedAt: new Date(then) });
    });

    it("clears the metadata with null, and replaces it as a whole otherwise", async () => {
      const { instance, operator } = await start({ database });
      const { id } = await instance.api.createTenant({
        body: { name: "Acme", slug: "acme", metadata: { a: 1, b: 2 } },
      });
      const update = (metadata: unknown) =>
        operator.post<TenantAnswer>("/tenant/update", { tenantId: id, metadata });
      expect((await update({ b: 3 })).data.metadata).toEqual({ b: 3 });
      expect((await update(null)).data.metadata).toBeNull();
      expect((await instance.api.getTenant({ query: { id } })).metadata).toBeNull();
      expect((await update({})).data.metadata).toEqual({});
      expect((await instance.api.getTenant({ query: { id } })).metadata).toEqual({});
    });

    it("takes neither another id nor dates from the body", async () => {
      const { instance, operator } = await start({ database });
      const { id } = await instance.createTenant("acme");
      const then = await makeOld(instance, id);
      const { data } = await operator.post<TenantAnswer>("/tenant/update", {
        tenantId: id,
        id: "mine",
        createdAt: "2001-01-01T00:00:00.000Z",
        name: "New",
      });
      expect(data).toMatchObject({ id, name: "New", createdAt: then });
      expect(await instance.rows("tenant", "id = ?", ["mine"])).toBe(0);
    });
  });

  describe("POST /tenant/delete", () => {
    it("answers success, and the tenant is gone; the second time it is not found", async () => {
      const { instance, operator } = await start({ database });
      const { id } = await instance.createTenant("acme");
      const other = await instance.createTenant("other");
      const { status, data } = await operator.post("/tenant/delete", { tenantId: id });
      expect(status).toBe(200);
      expect(data).toEqual({ success: true });
      const again = await operator.post("/tenant/delete", { tenantId: id });
      expect([again.status, again.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      expect(await instance.api.listTenants()).toEqual([other]);
    });

    it("frees the slug", async () => {
      const { instance } = await start({ database });
      const { id } = await instance.createTenant("acme");
      expect(await instance.api.deleteTenant({ body: { tenantId: id } })).toEqual({
        success: true,
      });
      const next = await instance.createTenant("acme");
      expect(next.id).not.toBe(id);
    });
  });

  it("answers 404 for unknown ids everywhere, and writes nothing", async () => {
    const { instance, operator } = await start({ database });
    const tenant = await instance.createTenant();
    for (const tenantId of [UNKNOWN_ID, tenant.slug, "1", "%", "_".repeat(32), "' or 1=1 --"]) {
      const update = await operator.post("/tenant/update", { tenantId, name: "New" });
      const nothing = await operator.post("/tenant/update", { tenantId });
      const remove = await operator.post("/tenant/delete", { tenantId });
      for (const { status, code } of [update, nothing, remove]) {
        expect([status, code]).toEqual([404, "TENANT_NOT_FOUND"]);
      }
    }
    const notFound = { statusCode: 404, body: { code: "TENANT_NOT_FOUND" } };
    const body = { tenantId: UNKNOWN_ID };
    await expect(instance.api.updateTenant({ body })).rejects.toMatchObject(notFound);
    await expect(instance.api.deleteTenant({ body })).rejects.toMatchObject(notFound);
    expect(await instance.api.listTenants()).toEqual([tenant]);
  });

  describe.each(["serial", "uuid"] as const)("with %s ids", (generateId) => {
    it("does all of it, and ids of another form are nobody's", async () => {
      const { instance, operator } = await start({
        database,
        auth: { advanced: { database: { generateId } } },
      });
      const created = await operator.post<TenantAnswer>("/tenant/create", {
        name: "Acme",
        slug: "acme",
      });
      const { id } = created.data;
      expect(created.status).toBe(200);
      expect(typeof id).toBe("string");
      expect((await operator.get("/tenant/get", { query: { id } })).data).toEqual(created.data);
      const forms = ["abc", "0", "-1", "1.5", "1e1", " 1", "2147483648", "9".repeat(30), "0x1"];
      for (const tenantId of [...forms, crypto.randomUUID(), `${id} `]) {
        const get = await operator.get("/tenant/get", { query: { id: tenantId } });
        const update = await operator.post("/tenant/update", { tenantId, name: "New" });
        const remove = await operator.post("/tenant/delete", { tenantId });
        for (const { status, code } of [get, update, remove]) {
          expect([tenantId, status, code]).toEqual([tenantId, 404, "TENANT_NOT_FOUND"]);
        }
      }
      const person = await instance.signUp(id);
      expect(person.user.tenantId).toBe(id);
      const updated = await operator.post<TenantAnswer>("/tenant/update", {
        tenantId: id,
        name: "New",
      });
      expect(updated.data).toMatchObject({ id, name: "New" });
      expect((await operator.post("/tenant/delete", { tenantId: id })).data).toEqual({
        success: true,
      });
      expect(await instance.rows("tenant")).toBe(0);
      expect(await instance.rows("user", "id = ?", [person.user.id])).toBe(0);
    });
  });
});
