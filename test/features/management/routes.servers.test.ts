import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { databases, idKindsOn, servers } from "../../support/database";
import { createInstance } from "../../support/instance";
import { createWorld, outcome, shareWorld } from "../../support/world";

type TenantAnswer = Record<"id" | "createdAt" | "updatedAt", string> & { metadata: object | null };

const KEYS = "createdAt deleteAt id metadata name policy slug status updatedAt".split(" ");
const keysOf = (value: object) => Object.keys(value).sort();
const NOT_FOUND = [404, "TENANT_NOT_FOUND"];
const asJson = (value: unknown) => JSON.parse(JSON.stringify(value));

describe.each(databases)("on %s", (database) => {
  const world = shareWorld({}, database);
  const post = async (path: string, body: object) =>
    (await world.operator()).post<TenantAnswer>(path, body);
  const get = async (query: string) => (await world.operator()).get(`/tenant/get?${query}`);
  const newSlug = () => crypto.randomUUID();

  it("POST /tenant/create answers the tenant, with these fields and no others, whatever is in the body", async () => {
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
    const called = await world.api.createTenant({ body: { name, slug: newSlug() } });
    expect([keysOf(called), called.createdAt]).toEqual([KEYS, expect.any(Date)]);
  });

  it("GET /tenant/get finds a tenant by its id or by its slug, and does not mix them up", async () => {
    const created = asJson(await world.createTenant());
    const { id, slug } = created;
    for (const query of [`id=${id}`, `slug=${slug}`]) {
      expect((await get(query)).data).toEqual(created);
    }
    for (const query of [{ id }, { slug }]) {
      expect(asJson(await world.api.getTenant({ query }))).toEqual(created);
    }
    for (const query of [`id=${slug}`, `slug=${id}`]) {
      expect(outcome(await get(query))).toEqual(NOT_FOUND);
    }
    const both = world.api.getTenant({ query: { id, slug } });
    const body = { code: "TENANT_ID_OR_SLUG_REQUIRED" };
    await expect(both).rejects.toMatchObject({ statusCode: 400, body });
  });

  describe("POST /tenant/update", () => {
    const OLD = { name: "Old", metadata: { a: 1, b: 2 } };
    /** From long ago, so that every change after it shows in `updatedAt` without waiting. */
    async function create() {
      const { id } = await world.api.createTenant({ body: { ...OLD, slug: newSlug() } });
      const then = new Date(Date.UTC(2020, 0, 1));
      const where = [{ field: "id", value: id }];
      const update = { createdAt: then, updatedAt: then };
      await world.context.adapter.update({ model: "tenant", where, update });
      return { id, old: then.toISOString() };
    }

    it.each([
      ["name", () => ({ name: "New" })],
      ["slug", () => ({ slug: newSlug() })],
      ["metadata, as a whole", () => ({ metadata: { b: [2] } })],
      ["metadata, to none", () => ({ metadata: null })],
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

  it.each(idKindsOn(database).filter((ids) => ids !== "text"))(
    "does all of it with %s ids, and ids of another form are no tenant's",
    async (generateId) => {
      const own = await createWorld({ database, auth: { advanced: { database: { generateId } } } });
      const operator = await own.operator();
      const jane = await own.as("jane", "acme");
      const { acme: tenantId } = own.ids;
      const created = await operator.get("/tenant/get", { query: { id: tenantId } });
      expect(created.data).toMatchObject({ id: expect.any(String), slug: "acme" });
      const forms = ["abc", "0", "-1", "1.5", "2147483648", "9".repeat(30)];
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

/** Columns that the application has given a type, with ids that the database makes. */
it.runIf(servers.asked).each([
  ["postgres", "alter id type uuid using id::uuid, alter id set default gen_random_uuid()"],
  ["postgres", "alter id type bigint using id::bigint, alter id add generated always as identity"],
  ["mysql", "modify id bigint not null auto_increment"],
] as const)("%s: an id that a column cannot hold is nobody's: %s", async (kind, typed) => {
  const generateId = ({ model }: { model: string }) => model !== "tenant" && crypto.randomUUID();
  const advanced = { database: { generateId, validateSchema: false } };
  const { database, createTenant, browser } = await createInstance({
    database: kind,
    auth: { advanced },
  });
  await database.query(`drop table ${database.quote("tenantOauthConfig")}`);
  await database.query(`alter table tenant ${typed}`);
  const { id } = await createTenant("acme");
  const ask = (tenantId: string) => browser().get("/list-sessions", { query: { tenantId } });
  expect((await ask(id)).status).toBe(401);
  for (const other of ["abc", "0", `${id}abc`, `0${id}`, `${id} `, `${id}.0`, "9".repeat(30)]) {
    expect([other, ...outcome(await ask(other))]).toEqual([other, ...NOT_FOUND]);
  }
});

type Listed = { id: string; name: string; slug: string };
type Query = Record<string, string>;

const SORTS = ["createdAt", "-createdAt", "slug", "-slug"] as const;

/** Names as people give them, each with a slug in another order. */
const NAMES = ["Acme", "Bolt", "Crane", "Delta", "Echo", "Foxtrot", "Golf", "Hotel"];
const WILD = ["100% Sure", "under_score", "back\\slash", "100 Sure", "underscore", "backslash"];
// Some databases take these for the same, some do not.
const ALIKE = ["Same", "same", "Same", "SAME", "Sàme", "Same", "Samf"];

describe.each(databases)("a list of tenants on %s", (kind) => {
  const world = shareWorld({}, kind);

  /** The tenants that there are from now on: one made a second after the other, unless told. */
  async function have(
    names: string[],
    { slug = (index: number) => `t-${900 - index}`, second = (index: number) => index } = {},
  ) {
    const { query, quote } = world.database;
    const rows = names.map((name, index) => {
      const time = new Date(Date.UTC(2020, 0, 1, 0, 0, second(index)));
      const stored = kind === "sqlite" ? time.toISOString() : time;
      const id = createHash("md5").update(`${index}`).digest("hex");
      return [id, name, slug(index), "active", stored, stored];
    });
    const columns = ["id", "name", "slug", "status", "createdAt", "updatedAt"].map(quote).join();
    const values = rows.map(() => "(?, ?, ?, ?, ?, ?)").join(", ");
    await query("delete from tenant");
    if (rows.length) await query(`insert into tenant (${columns}) values ${values}`, rows.flat());
    return rows.map(([id]) => String(id)).sort();
  }

  async function list(query: Query = {}): Promise<Listed[]> {
    return (await (await world.operator()).get<Listed[]>("/tenant/list", { query })).data;
  }
  const names = async (query?: Query) => (await list(query)).map(({ name }) => name);

  /** The ids on all pages of a size, one page after the other. */
  async function walk(size: number, sort: (typeof SORTS)[number]): Promise<string[]> {
    const ids: string[] = [];
    for (let offset = 0; ; offset += size) {
      const page = await world.api.listTenants({ query: { sort, limit: size, offset } });
      ids.push(...page.map(({ id }) => id));
      if (page.length < size) return ids.sort();
    }
  }

  it("is empty, or has every tenant, and is cut by limit and offset", async () => {
    await have([]);
    expect([await list(), await world.api.listTenants()]).toEqual([[], []]);
    const many = Array.from({ length: 130 }, (_, index) => `Tenant ${index}`);
    await have(many);
    const cuts: [Query, from: number, to?: number][] = [
      [{}, 0],
      [{ limit: "3", offset: "2" }, 2, 5],
      [{ offset: "126" }, 126],
      [{ limit: "1000", offset: "127" }, 127],
      [{ limit: "3", offset: "130" }, 130],
      [{ limit: "1", offset: "2147483647" }, 130],
    ];
    for (const [query, from, to] of cuts) expect(await names(query)).toEqual(many.slice(from, to));
    expect(await world.api.listTenants({ query: {} })).toHaveLength(130);
  });

  it("is sorted by age and slug, in both directions", async () => {
    const byAge = NAMES.toReversed();
    await have(byAge);
    for (const sort of SORTS) {
      const expected = ["createdAt", "-slug"].includes(sort) ? byAge : NAMES;
      expect(await names({ sort }), sort).toEqual(expected);
      expect(await names({ sort, limit: "2", offset: "1" }), sort).toEqual(expected.slice(1, 3));
    }
  });

  it("has each tenant on exactly one page, also where they are of one name", async () => {
    const all = await have(
      Array.from({ length: 40 }, (_, index) => ALIKE[index % ALIKE.length] ?? ""),
    );
    for (const sort of SORTS) expect(await walk(7, sort), sort).toEqual(all);
    // Those of one age have a fixed order by slug alone.
    await have(NAMES, { second: () => 0 });
    for (const sort of ["slug", "-slug"] as const) {
      expect(await walk(2, sort), sort).toHaveLength(NAMES.length);
    }
  });

  it("is searched by a part of the name or of the slug, in capital letters or not", async () => {
    const all = ["Acme North", "Acme South", "Bolt", "Größe 株式会社", "Grosse"];
    const slugs = ["aa", "bb", "acme", "dd", "ee"];
    await have(all, { slug: (index) => `slug-${slugs[index]}` });
    const searches: [Query, string[]][] = [
      [{ search: "acme" }, ["Acme North", "Acme South", "Bolt"]],
      [{ search: "ACME S" }, ["Acme South"]],
      [{ search: "SLUG-B" }, ["Acme South"]],
      [{ search: "nobody" }, []],
      [{ search: "" }, all],
      [{ search: "acme", limit: "1", offset: "1" }, ["Acme South"]],
      [{ search: "acme", sort: "-createdAt", limit: "2" }, ["Bolt", "Acme South"]],
      [{ search: "größe 株" }, ["Größe 株式会社"]],
    ];
    for (const [query, expected] of searches) expect(await names(query)).toEqual(expected);
    // What a database may take for wildcards is taken for what it is.
    await have(WILD);
    const wild = { "0% s": 0, _: 1, R_S: 1, "\\": 2, "k\\S": 2, rs: 4 };
    for (const [search, index] of Object.entries(wild)) {
      expect(await names({ search, limit: "1" }), search).toEqual([WILD[index]]);
      expect(await names({ search }), search).toEqual([WILD[index]]);
    }
    for (const search of ["%%", "1%S", "r__s", "\\%", "'"]) {
      expect(await names({ search }), search).toEqual([]);
    }
  });

  it("refuses what makes no sense, and takes what is just inside the limits", async () => {
    await have(["Acme"]);
    const operator = await world.operator();
    const search = "x".repeat(255);
    const wrong = `limit=0 limit=-1 limit=1001 limit=1.5 limit=1e3 limit= limit=%205 limit=ten
      offset=-1 offset=1.5 offset=2147483648 offset=ten sort= sort=id sort=name sort=Slug sort=--slug
      sort=createdAt%20desc search=${search}x search=a%00b limit=1&limit=2 sort=createdAt&sort=slug`;
    for (const query of wrong.split(/\s+/)) {
      const answer = await operator.get(`/tenant/list?${query}`);
      expect([query, ...outcome(answer)]).toEqual([query, 400, "VALIDATION_ERROR"]);
    }
    const call = world.api.listTenants({ query: { limit: 0 } });
    await expect(call).rejects.toMatchObject({ statusCode: 400 });
    for (const query of ["limit=1", "limit=1000", "offset=0", `search=${search}`]) {
      expect((await operator.get(`/tenant/list?${query}`)).status, query).toBe(200);
    }
  });
});

it("asks the database once for a page", async () => {
  const { createTenant, api, database } = await createWorld();
  for (const slug of ["aa", "bb"]) await createTenant(slug);
  for (const sort of ["slug", "-createdAt"] as const) {
    database.statements.length = 0;
    await api.listTenants({ query: { sort, limit: 2, offset: 1 } });
    expect(database.statements).toHaveLength(1);
  }
});
