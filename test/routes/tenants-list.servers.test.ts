import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { databases } from "../support/database";
import { createWorld, outcome, shareWorld } from "../support/world";

type Listed = { id: string; name: string; slug: string };
type Query = Record<string, string>;

const SORTS = ["createdAt", "-createdAt", "name", "-name", "slug", "-slug"] as const;

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
      // Ids in no order at all.
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
    const { status, data } = await (await world.operator()).get<Listed[]>("/tenant/list", {
      query,
    });
    expect([status, JSON.stringify(data)]).toEqual([200, expect.any(String)]);
    return data;
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

  it("is empty, or has every tenant, also when there are more than a hundred", async () => {
    await have([]);
    expect([await list(), await world.api.listTenants()]).toEqual([[], []]);
    const many = Array.from({ length: 130 }, (_, index) => `Tenant ${index}`);
    await have(many);
    expect(await names()).toEqual(many);
  });

  it("is cut by limit and offset, and is whole without them", async () => {
    await have(NAMES);
    const cuts: [Query, from: number, to?: number][] = [
      [{}, 0],
      [{ limit: "3" }, 0, 3],
      [{ limit: "3", offset: "2" }, 2, 5],
      [{ offset: "6" }, 6],
      [{ limit: "1000", offset: "7" }, 7],
      [{ limit: "3", offset: "8" }, 8],
      [{ limit: "1", offset: "2147483647" }, 8],
    ];
    for (const [query, from, to] of cuts) {
      expect(await names(query)).toEqual(NAMES.slice(from, to));
    }
    const query = { limit: 2, offset: 1, search: "o", sort: "-name" } as const;
    const listed = await world.api.listTenants({ query });
    expect(listed.map(({ name }) => name)).toEqual(["Golf", "Foxtrot"]);
    expect(await world.api.listTenants({ query: {} })).toHaveLength(NAMES.length);
  });

  it("has the fields of a tenant, page or not", async () => {
    await have(["Acme%25"]);
    const [whole] = await list();
    const keys = "createdAt deleteAt id metadata name policy slug status updatedAt";
    expect(
      Object.keys(whole ?? {})
        .sort()
        .join(" "),
    ).toBe(keys);
    for (const part of ["limit=1", "search=c", "search=Acme%2525", "sort=-name"]) {
      const { data } = await (await world.operator()).get(`/tenant/list?${part}`);
      expect(data).toEqual([whole]);
    }
  });

  it("is sorted by age, name and slug, in both directions", async () => {
    const byAge = NAMES.toReversed();
    await have(byAge);
    for (const sort of SORTS) {
      const expected = ["createdAt", "-name", "-slug"].includes(sort) ? byAge : NAMES;
      expect(await names({ sort }), sort).toEqual(expected);
      expect(await names({ sort, limit: "2", offset: "1" }), sort).toEqual(expected.slice(1, 3));
    }
  });

  it.each([
    ["created at the same moment", NAMES, () => 0],
    ["of one name", ALIKE, undefined],
    ["of one name and age", ALIKE, () => 0],
    ["created in bursts", NAMES, (index: number) => Math.floor(index / 10)],
  ])("has each tenant on exactly one page, also where they are %s", async (_, given, second) => {
    const all = await have(
      Array.from({ length: 60 }, (_, index) => given[index % given.length] ?? ""),
      { second },
    );
    for (const sort of SORTS) {
      for (const size of [7, 20]) expect(await walk(size, sort), `${sort}, ${size}`).toEqual(all);
    }
  });

  it.runIf(kind === "postgres")("loses none that differ by less than a millisecond", async () => {
    const all = await have(NAMES);
    const moment = `timestamptz '2020-01-01' + ascii(name) * interval '300 microseconds'`;
    await world.database.query(`update tenant set "createdAt" = ${moment}`);
    for (const size of [1, 2, 3]) {
      expect(await walk(size, "createdAt"), `pages of ${size}`).toEqual(all);
      expect(await walk(size, "-createdAt"), `pages of ${size}`).toEqual(all);
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
      [{ search: "acme", sort: "-name", limit: "2" }, ["Bolt", "Acme South"]],
      [{ search: "株式" }, ["Größe 株式会社"]],
      [{ search: "größe 株" }, ["Größe 株式会社"]],
    ];
    for (const [query, expected] of searches) expect(await names(query)).toEqual(expected);
  });

  it("takes characters that a database may take for wildcards for what they are", async () => {
    await have(WILD);
    const searches: [found: string[], searches: string[]][] = [
      [["100% Sure"], ["%", "0% s"]],
      [["under_score"], ["_", "R_S"]],
      [["back\\slash"], ["\\", "k\\S"]],
      [["underscore"], ["rs"]],
      [[], ["%%", "1%S", "r__s", "\\%", "'"]],
    ];
    for (const [found, search] of searches.flatMap(([found, all]) =>
      all.map((search) => [found, search] as const),
    )) {
      expect(await names({ search }), search).toEqual(found);
      expect(await names({ search, limit: "1" }), search).toEqual(found);
      expect(await names({ search, offset: "1" }), search).toEqual([]);
    }
  });

  it("refuses what makes no sense, and takes what is just inside the limits", async () => {
    await have(["Acme"]);
    const operator = await world.operator();
    const WRONG: Record<string, string[]> = {
      limit: ["0", "-1", "1001", "1.5", "1e3", "0x10", "", " 5", "5 ", "ten", "NaN", "١"],
      offset: ["-1", "1.5", "2147483648", "99999999999999999999", "", "ten", "null"],
      sort: ["", "id", "Name", "--name", "name,slug", "createdAt desc", "metadata", "updatedAt"],
      search: ["x".repeat(256), "a\0b"],
    };
    const queries = Object.entries(WRONG).flatMap(([name, values]) => [
      ...values.map((value) => `${name}=${encodeURIComponent(value)}`),
      `${name}=1&${name}=2`,
    ]);
    for (const query of queries) {
      const answer = await operator.get(`/tenant/list?${query}`);
      expect([query, ...outcome(answer)]).toEqual([query, 400, "VALIDATION_ERROR"]);
    }
    const limits = [0, 1001, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map((limit) => ({ limit }));
    for (const query of [...limits, { offset: -1 }, { offset: 2 ** 31 }, { search: "\ud800" }]) {
      const call = world.api.listTenants({ query });
      await expect(call, JSON.stringify(query)).rejects.toMatchObject({ statusCode: 400 });
    }
    for (const query of ["limit=1", "limit=1000", "offset=0", `search=${"x".repeat(255)}`]) {
      expect((await operator.get(`/tenant/list?${query}`)).status, query).toBe(200);
    }
  });
});

/** A database may put equals in any order, and this one does, in another one each time. */
it("has each tenant on exactly one page of a database that shuffles equals", async () => {
  const { api, context, createTenant } = await createWorld();
  for (let count = 2; count < 30; count++) await createTenant();
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
  const { createTenant, api, database } = await createWorld();
  for (const slug of ["aa", "bb"]) await createTenant(slug);
  for (const sort of ["slug", "-name"] as const) {
    database.statements.length = 0;
    await api.listTenants({ query: { sort, limit: 2, offset: 1 } });
    expect(database.statements).toHaveLength(1);
  }
});
