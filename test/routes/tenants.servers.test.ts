import { describe, expect, it } from "vitest";
import { databases } from "../support/database";
import { createWorld, outcome, shareWorld, type World } from "../support/world";

interface TenantAnswer {
  id: string;
  name: string;
  slug: string;
  metadata: Record<string, unknown> | null;
  createdAt: string;
  updatedAt: string;
}

const KEYS = "createdAt deleteAt id metadata name policy slug status updatedAt".split(" ");
const keysOf = (value: object) => Object.keys(value).sort();
const NOT_FOUND = [404, "TENANT_NOT_FOUND"];
const asJson = (value: unknown) => JSON.parse(JSON.stringify(value));

/** Long ago, so that every change after it shows in `updatedAt` without waiting. */
async function makeOld({ context }: World, tenantId: string, day = 1) {
  const then = new Date(Date.UTC(2020, 0, day));
  await context.adapter.update({
    model: "tenant",
    where: [{ field: "id", value: tenantId }],
    update: { createdAt: then, updatedAt: then },
  });
  return then.toISOString();
}

describe.each(databases)("on %s", (database) => {
  const world = shareWorld({}, database);
  const post = async (path: string, body: object) =>
    (await world.operator()).post<TenantAnswer>(path, body);
  const get = async (query: Record<string, string>) =>
    (await world.operator()).get<TenantAnswer>("/tenant/get", { query });
  const newSlug = () => crypto.randomUUID();

  describe("POST /tenant/create", () => {
    it("answers the tenant, with these fields and no others, whatever else is in the body", async () => {
      const before = Date.now();
      const body = { name: "Acme Größe 株式会社 🏢", slug: newSlug(), metadata: { plan: "pro" } };
      const more = { id: "mine", createdAt: "2001-01-01T00:00:00.000Z", owner: "me" };
      const { status, data } = await post("/tenant/create", { ...body, ...more });
      expect([status, data]).toMatchObject([200, body]);
      expect(keysOf(data)).toEqual(KEYS);
      expect(data.id).toMatch(/^(?!mine$)\S+$/);
      expect(data.createdAt).toBe(data.updatedAt);
      // PostgreSQL and MariaDB keep whole milliseconds; a second of slack is for their rounding.
      expect(Math.abs(new Date(data.createdAt).getTime() - before)).toBeLessThan(5000);
      expect(await world.rows("tenant", "id = ?", [data.id])).toBe(1);
      // Two may have the same name, and null is as good as no metadata.
      const { name } = body;
      const again = await post("/tenant/create", { name, slug: newSlug(), metadata: null });
      expect([again.status, again.data.metadata]).toEqual([200, null]);
    });

    it("does the same through the server API, with dates as dates", async () => {
      const body = { name: "Acme", slug: newSlug() };
      const tenant = await world.api.createTenant({ body });
      expect(keysOf(tenant)).toEqual(KEYS);
      expect(tenant).toMatchObject({ ...body, metadata: null });
      expect(tenant.createdAt).toBeInstanceOf(Date);
      expect(tenant.updatedAt).toEqual(tenant.createdAt);
    });
  });

  describe("GET /tenant/get", () => {
    it("finds a tenant by its id and by its slug", async () => {
      const body = { name: "Acme", slug: newSlug(), metadata: { a: 1 } };
      const { data: created } = await post("/tenant/create", body);
      const { id, slug } = created;
      const byId = await world.api.getTenant({ query: { id } });
      const bySlug = await world.api.getTenant({ query: { slug } });
      const answers = [(await get({ id })).data, (await get({ slug })).data, byId, bySlug];
      for (const answer of answers) expect(asJson(answer)).toEqual(created);
    });

    it("asks for exactly one of them, and does not mix them up", async () => {
      const { acme: id } = world.ids;
      const both = [{}, { id, slug: "acme" }, { id, slug: "globex" }, { id: "", slug: "" }];
      for (const query of both as Record<string, string>[]) {
        const code = "TENANT_ID_OR_SLUG_REQUIRED";
        expect(outcome(await get(query))).toEqual([400, code]);
        const call = world.api.getTenant({ query });
        await expect(call).rejects.toMatchObject({ statusCode: 400, body: { code } });
      }
      const none: Record<string, string>[] = [
        { id: "x" },
        { slug: "x" },
        { id: "acme" },
        { slug: id },
      ];
      for (const query of none) {
        expect(outcome(await get(query))).toEqual(NOT_FOUND);
      }
    });
  });

  describe("POST /tenant/update", () => {
    const OLD = { name: "Old", metadata: { a: 1, b: 2 } };
    async function create() {
      const { id } = await world.api.createTenant({ body: { ...OLD, slug: newSlug() } });
      return { id, old: await makeOld(world, id) };
    }

    it.each([
      ["name", () => ({ name: "New" })],
      ["slug", () => ({ slug: newSlug() })],
      ["metadata, as a whole", () => ({ metadata: { b: [2] } })],
      ["metadata, to none", () => ({ metadata: null })],
      ["metadata, to nothing", () => ({ metadata: {} })],
      ["all of them", () => ({ name: "New", slug: newSlug(), metadata: { b: [2] } })],
    ])("changes what is given and nothing else: %s", async (_, changesOf) => {
      const { id, old: then } = await create();
      const before = await world.api.getTenant({ query: { id } });
      const other = await world.api.getTenant({ query: { slug: "acme" } });
      const changes = changesOf();
      const body = { tenantId: id, id: "mine", createdAt: "2001-01-01T00:00:00.000Z", ...changes };
      const { status, data } = await post("/tenant/update", body);
      expect(status).toBe(200);
      expect(data).toEqual({ ...asJson(before), ...changes, updatedAt: data.updatedAt });
      expect(data.createdAt).toBe(then);
      expect(new Date(data.updatedAt).getTime()).toBeGreaterThan(new Date(then).getTime());
      expect(asJson(await world.api.getTenant({ query: { id } }))).toEqual(data);
      expect(await world.api.getTenant({ query: { slug: "acme" } })).toEqual(other);
      expect(await world.rows("tenant", "id = ?", ["mine"])).toBe(0);
    });

    it("answers the tenant as it is when there is nothing to change", async () => {
      const { id, old: then } = await create();
      const { status, data } = await post("/tenant/update", { tenantId: id });
      expect([status, data]).toMatchObject([200, { id, ...OLD, createdAt: then, updatedAt: then }]);
      const nothing = { name: undefined, slug: undefined, metadata: undefined };
      expect(asJson(await world.change(id, nothing))).toEqual(data);
    });
  });

  it("POST /tenant/delete: the tenant is gone, the second time not found, and its slug free", async () => {
    const { id, slug } = await world.createTenant();
    expect(await post("/tenant/delete", { tenantId: id })).toMatchObject({
      status: 200,
      data: { success: true },
    });
    expect(outcome(await post("/tenant/delete", { tenantId: id }))).toEqual(NOT_FOUND);
    const next = await world.createTenant(slug);
    expect(next.id).not.toBe(id);
    const body = { tenantId: next.id };
    expect(await world.api.deleteTenant({ body })).toEqual({ success: true });
    const notFound = { statusCode: 404, body: { code: "TENANT_NOT_FOUND" } };
    await expect(world.api.deleteTenant({ body })).rejects.toMatchObject(notFound);
    await expect(world.api.updateTenant({ body })).rejects.toMatchObject(notFound);
    const left = (await world.api.listTenants()).map((tenant) => tenant.id);
    expect(left).toEqual(expect.arrayContaining([world.ids.acme, world.ids.globex]));
    expect(left).not.toContain(id);
  });

  it.each(["serial", "uuid"] as const)(
    "does all of it with %s ids, and ids of another form are nobody's",
    async (generateId) => {
      const own = await createWorld({ database, auth: { advanced: { database: { generateId } } } });
      const operator = await own.operator();
      const jane = await own.as("jane", "acme");
      const { acme: tenantId } = own.ids;
      const created = await operator.get("/tenant/get", { query: { id: tenantId } });
      expect(created.data).toMatchObject({ id: expect.any(String), slug: "acme" });
      const forms = ["abc", "0", "-1", "1.5", "1e1", " 1", "2147483648", "9".repeat(30), "0x1"];
      for (const id of [...forms, crypto.randomUUID(), `${tenantId} `]) {
        const answers = [
          await operator.get("/tenant/get", { query: { id } }),
          await operator.post("/tenant/update", { tenantId: id, name: "New" }),
          await operator.post("/tenant/delete", { tenantId: id }),
        ];
        expect([id, ...answers.map(outcome)]).toEqual([id, ...answers.map(() => NOT_FOUND)]);
      }
      expect(await own.whoIs(jane)).toMatchObject({ tenantId });
      const updated = await operator.post("/tenant/update", { tenantId, name: "New" });
      expect(updated.data).toMatchObject({ id: tenantId, name: "New" });
      expect((await operator.post("/tenant/delete", { tenantId })).data).toEqual({ success: true });
      expect(await own.rows("tenant")).toBe(1);
      expect(await own.rows("user", "id = ?", [jane.id])).toBe(0);
    },
  );
});
