import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { createDatabase, type TestDatabase } from "../support/database";
import { createInstance, type Instance } from "../support/instance";
import { databases } from "../support/servers";

interface Listed {
  id: string;
  name: string;
  slug: string;
}

type Query = Record<string, string>;

const SORTS = ["createdAt", "-createdAt", "name", "-name", "slug", "-slug"] as const;
type Sort = (typeof SORTS)[number];

/** Names as people give them, each with a slug in another order. */
const NAMES = ["Acme", "Bolt", "Crane", "Delta", "Echo", "Foxtrot", "Golf", "Hotel"];
const WILD = ["100% Sure", "under_score", "back\\slash", "100 Sure", "underscore", "backslash"];

describe.each(databases)("a list of tenants on %s", (kind) => {
  let database: TestDatabase;
  let instance: Instance;
  let operator: Browser;

  beforeAll(async () => {
    database = await createDatabase(kind);
    instance = await createInstance({ database });
    operator = (await instance.operator()).browser;
  });
  afterAll(() => database.close());

  /** The tenants that there are from now on: one made a second after the other, unless told. */
  async function have(
    names: string[],
    { slug = (index: number) => `t-${900 - index}`, second = (index: number) => index } = {},
  ) {
    const rows = names.map((name, index) => {
      const time = new Date(Date.UTC(2020, 0, 1, 0, 0, second(index)));
      const stored = kind === "sqlite" ? time.toISOString() : time;
      // Ids in no order at all.
      const id = createHash("md5").update(`${index}`).digest("hex");
      return [id, name, slug(index), "active", stored, stored];
    });
    const fields = ["id", "name", "slug", "status", "createdAt", "updatedAt"];
    const columns = fields.map(database.quote).join(", ");
    const values = rows.map(() => "(?, ?, ?, ?, ?, ?)").join(", ");
    await database.query("delete from tenant");
    await database.query(`insert into tenant (${columns}) values ${values}`, rows.flat());
    return rows.map(([id]) => String(id));
  }

  async function list(query: Query = {}): Promise<Listed[]> {
    const { status, data } = await operator.get<Listed[]>("/tenant/list", { query });
    expect([status, JSON.stringify(data)]).toEqual([200, expect.any(String)]);
    return data;
  }

  const names = async (query?: Query) => (await list(query)).map(({ name }) => name);

  /** The ids on all pages of a size, one page after the other. */
  async function walk(size: number, sort: Sort): Promise<string[]> {
    const ids: string[] = [];
    for (let offset = 0; ; offset += size) {
      const query = { sort, limit: size, offset };
      const page = await instance.api.listTenants({ query });
      ids.push(...page.map(({ id }) => id));
      if (page.length < size) return ids;
    }
  }

  it("is cut by limit and offset, and is whole without them", async () => {
    await have(NAMES);
    expect(await names()).toEqual(NAMES);
    expect(await names({ limit: "3" })).toEqual(NAMES.slice(0, 3));
    expect(await names({ limit: "3", offset: "2" })).toEqual(NAMES.slice(2, 5));
    expect(await names({ offset: "6" })).toEqual(NAMES.slice(6));
    expect(await names({ limit: "1000", offset: "7" })).toEqual(NAMES.slice(7));
    expect(await names({ limit: "3", offset: "8" })).toEqual([]);
    expect(await names({ limit: "1", offset: "2147483647" })).toEqual([]);
  });

  it("has the fields of a tenant, page or not", async () => {
    await have(["Acme%25"]);
    const [whole] = await list();
    expect(Object.keys(whole ?? {}).sort()).toEqual([
      "createdAt",
      "deleteAt",
      "id",
      "metadata",
      "name",
      "policy",
      "slug",
      "status",
      "updatedAt",
    ]);
    for (const part of ["limit=1", "search=c", "search=Acme%2525", "sort=-name"]) {
      const { data } = await operator.get(`/tenant/list?${part}`);
      expect(data).toEqual([whole]);
    }
  });

  it("is sorted by age, name and slug, in both directions", async () => {
    await have([...NAMES].reverse());
    const byAge = [...NAMES].reverse();
    const expected: Record<Sort, string[]> = {
      createdAt: byAge,
      "-createdAt": NAMES,
      name: NAMES,
      "-name": byAge,
      slug: NAMES,
      "-slug": byAge,
    };
    for (const sort of SORTS) {
      expect(await names({ sort }), sort).toEqual(expected[sort]);
      expect(await names({ sort, limit: "2", offset: "1" }), sort).toEqual(
        expected[sort].slice(1, 3),
      );
    }
  });

  // Some databases take these for the same, some do not.
  const ALIKE = ["Same", "same", "Same", "SAME", "Sàme", "Same", "Samf"];

  it.each([
    ["created at the same moment", NAMES, () => 0],
    ["of one name", ALIKE, undefined],
    ["of one name and age", ALIKE, () => 0],
    ["created in bursts", NAMES, (index: number) => Math.floor(index / 10)],
  ])("has each tenant on exactly one page, also where they are %s", async (_, given, second) => {
    const names = Array.from({ length: 60 }, (_, index) => given[index % given.length] ?? "");
    const all = (await have(names, { second })).sort();
    for (const sort of SORTS) {
      for (const size of [7, 20]) {
        expect((await walk(size, sort)).sort(), `${sort}, pages of ${size}`).toEqual(all);
      }
    }
  });

  it.runIf(kind === "postgres")(
    "loses none of those that differ by less than a millisecond",
    async () => {
      const all = (await have(NAMES)).sort();
      await database.query(
        `update tenant set "createdAt" = timestamptz '2020-01-01' + ascii(name) * interval '300 microseconds'`,
      );
      for (const size of [1, 2, 3]) {
        expect((await walk(size, "createdAt")).sort(), `pages of ${size}`).toEqual(all);
        expect((await walk(size, "-createdAt")).sort(), `pages of ${size}`).toEqual(all);
      }
    },
  );

  it("is searched by a part of the name or of the slug, in capital letters or not", async () => {
    await have(["Acme North", "Acme South", "Bolt"], {
      slug: (index) => `slug-${["aa", "bb", "acme"][index]}`,
    });
    expect(await names({ search: "acme" })).toEqual(["Acme North", "Acme South", "Bolt"]);
    expect(await names({ search: "ACME S" })).toEqual(["Acme South"]);
    expect(await names({ search: "SLUG-B" })).toEqual(["Acme South"]);
    expect(await names({ search: "nobody" })).toEqual([]);
    expect(await names({ search: "" })).toEqual(["Acme North", "Acme South", "Bolt"]);
    expect(await names({ search: "acme", limit: "1", offset: "1" })).toEqual(["Acme South"]);
    expect(await names({ search: "acme", sort: "-name", limit: "2" })).toEqual([
      "Bolt",
      "Acme South",
    ]);
  });

  describe("where names have characters that a database may take for wildcards", () => {
    beforeAll(() => have(WILD));

    it.each([
      ["%", ["100% Sure"]],
      ["0% s", ["100% Sure"]],
      ["%%", []],
      ["1%S", []],
      ["_", ["under_score"]],
      ["R_S", ["under_score"]],
      ["r__s", []],
      ["\\", ["back\\slash"]],
      ["k\\S", ["back\\slash"]],
      ["\\%", []],
      ["'", []],
      ["rs", ["underscore"]],
    ])("takes %j for what it is", async (search, expected) => {
      expect(await names({ search })).toEqual(expected);
      expect(await names({ search, limit: "1" })).toEqual(expected.slice(0, 1));
      expect(await names({ search, offset: "1" })).toEqual([]);
    });
  });

  it("is found by letters of other alphabets", async () => {
    await have(["Größe 株式会社", "Grosse"]);
    expect(await names({ search: "株式" })).toEqual(["Größe 株式会社"]);
    expect(await names({ search: "größe 株" })).toEqual(["Größe 株式会社"]);
  });

  it("is cut, searched and sorted through the server API in the same way", async () => {
    await have(NAMES);
    const query = { limit: 2, offset: 1, search: "o", sort: "-name" } as const;
    const listed = await instance.api.listTenants({ query });
    expect(listed.map(({ name }) => name)).toEqual(["Golf", "Foxtrot"]);
    expect(await instance.api.listTenants({ query: {} })).toHaveLength(NAMES.length);
  });

  it.each([
    ...["0", "-1", "1001", "1.5", "1e3", "0x10", "", " 5", "5 ", "ten", "NaN", "١"].map(
      (value) => `limit=${encodeURIComponent(value)}`,
    ),
    ...["-1", "1.5", "2147483648", "99999999999999999999", "", "ten", "null"].map(
      (value) => `offset=${encodeURIComponent(value)}`,
    ),
    ...["", "id", "Name", "--name", "name,slug", "createdAt desc", "metadata", "updatedAt"].map(
      (value) => `sort=${encodeURIComponent(value)}`,
    ),
    `search=${"x".repeat(256)}`,
    "search=a%00b",
    "search=a&search=b",
    "limit=1&limit=2",
    "offset=1&offset=2",
    "sort=name&sort=slug",
  ])("refuses ?%s", async (query) => {
    const answer = await operator.get(`/tenant/list?${query}`);
    expect([answer.status, answer.code]).toEqual([400, "VALIDATION_ERROR"]);
  });

  it.each([
    { limit: 0 },
    { limit: 1001 },
    { limit: 1.5 },
    { limit: Number.NaN },
    { limit: Number.POSITIVE_INFINITY },
    { offset: -1 },
    { offset: 2 ** 31 },
    { search: "\ud800" },
  ])("refuses %j from the server's own code", async (query) => {
    await expect(instance.api.listTenants({ query })).rejects.toMatchObject({ statusCode: 400 });
  });

  it("takes what is just inside the limits", async () => {
    await have(["Acme"]);
    for (const query of ["limit=1", "limit=1000", "offset=0", `search=${"x".repeat(255)}`]) {
      const { status } = await operator.get(`/tenant/list?${query}`);
      expect(status, query).toBe(200);
    }
  });
});

/** A database may put equals in any order, and this one does, in another one each time. */
it("has each tenant on exactly one page of a database that shuffles equals", async () => {
  const { api, context, createTenant } = await createInstance();
  for (let index = 0; index < 30; index++) await createTenant();
  const createdAt = new Date();
  await context.adapter.updateMany({ model: "tenant", where: [], update: { createdAt } });
  const findMany = context.adapter.findMany.bind(context.adapter);
  let asked = 0;
  context.adapter.findMany = async (call) => {
    if (call.sortBy?.field !== "createdAt") return findMany(call);
    const { offset = 0, limit = 100, ...rest } = call;
    const rows = await findMany<never>({ ...rest, limit: 1000 });
    const turn = (7 * ++asked) % (rows.length || 1);
    return [...rows.slice(turn), ...rows.slice(0, turn)].slice(offset, offset + limit);
  };
  const seen: string[] = [];
  for (let offset = 0; offset < 30; offset += 4) {
    const page = await api.listTenants({ query: { limit: 4, offset } });
    seen.push(...page.map(({ id }) => id));
  }
  expect([seen.length, new Set(seen).size]).toEqual([30, 30]);
});

it("asks the database once for a page that neither begins nor ends among equals", async () => {
  const instance = await createInstance();
  for (const slug of ["aa", "bb", "cc", "dd"]) await instance.createTenant(slug);
  const { statements } = instance.database;
  for (const sort of ["slug", "-name"] as const) {
    statements.length = 0;
    await instance.api.listTenants({ query: { sort, limit: 2, offset: 1 } });
    expect(statements).toHaveLength(1);
  }
});
