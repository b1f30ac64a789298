import { beforeAll, describe, expect, it } from "vitest";
import { DEFAULT_RESERVED_SLUGS } from "../../src/index";
import { crowdOn, databases } from "../support/database";
import { createWorld, outcome, shareWorld, type World } from "../support/world";

const LONGEST = "a".repeat(63);
const VALID = ["ab", "a1", "1a", "00", "42", "a-b", "a--b", "xn--bcher-kva", LONGEST];

const INVALID: [description: string, ...slugs: string[]][] = [
  ["of a wrong length", "", "a", `${LONGEST}a`, "a".repeat(100_000)],
  ["upper case", "Acme"],
  ["a hyphen first or last", "-acme", "acme-", "--"],
  ["signs", "a_b", "a.b", "a/b", "<b>acme</b>"],
  ["blanks", "a b", "acme ", "acme\n", "acme\nacme"],
  ["a letter that looks alike", "\u00e1cme", "\u0430cme", "\uff41cme", "acme\u0663"],
  ["what is k or s in lower case", "acme\u212a", "acme\u017f"],
  ["no letters at all", "acme🏢", "ac\0me", "acme\ud83c"],
];

const create = async (world: World, slug: string) =>
  (await world.operator()).post<{ slug: string }>("/tenant/create", { name: "Name", slug });
const rename = async (world: World, tenantId: string, slug: string) =>
  (await world.operator()).post<{ slug: string }>("/tenant/update", { tenantId, slug });
const refused = (code: string, statusCode = 400) => ({ statusCode, body: { code } });

describe("the form of a slug", () => {
  const world = shareWorld();
  beforeAll(async () => void (await world.operator()));

  it.each(VALID)("takes %s", async (slug) => {
    const created = await create(world, slug);
    expect([created.status, created.data.slug]).toEqual([200, slug]);
    const { id } = await world.api.getTenant({ query: { slug } });
    await world.api.deleteTenant({ body: { tenantId: id } });
    const other = await world.createTenant();
    expect((await rename(world, other.id, slug)).data.slug).toBe(slug);
  });

  it.each(INVALID)("refuses %s", async (_, ...slugs) => {
    await world.unchanged(async () => {
      for (const slug of slugs) {
        const answers = [await create(world, slug), await rename(world, world.ids.acme, slug)];
        expect(answers.map(outcome)).toEqual(answers.map(() => [400, "INVALID_SLUG"]));
        const call = world.api.createTenant({ body: { name: "Name", slug } });
        await expect(call).rejects.toMatchObject(refused("INVALID_SLUG"));
      }
    });
  });
});

describe("reserved slugs", () => {
  const world = shareWorld();
  beforeAll(async () => void (await world.operator()));

  it("are the names that collide most, whoever asks for one", async () => {
    const names = ["admin", "api", "app", "auth", "www", "mail", "login", "tenant"];
    expect(DEFAULT_RESERVED_SLUGS).toEqual(expect.arrayContaining(names));
    await world.unchanged(async () => {
      for (const slug of DEFAULT_RESERVED_SLUGS) {
        const answers = [await create(world, slug), await rename(world, world.ids.acme, slug)];
        expect(answers.map(outcome)).toEqual(answers.map(() => [400, "SLUG_RESERVED"]));
      }
      const call = world.api.createTenant({ body: { name: "Name", slug: "admin" } });
      await expect(call).rejects.toMatchObject(refused("SLUG_RESERVED"));
    });
  });

  it("are replaced by the option, not added to; all of the default are good slugs", async () => {
    const own = await createWorld({ tenant: { reservedSlugs: ["ours"] } });
    expect((await create(own, "ours")).code).toBe("SLUG_RESERVED");
    for (const slug of ["ours-too", ...DEFAULT_RESERVED_SLUGS]) {
      expect((await create(own, slug)).status, slug).toBe(200);
    }
  });

  it("stay with a tenant that has one already", async () => {
    const { id } = await world.createTenant();
    await world.database.query("update tenant set slug = 'admin' where id = ?", [id]);
    const kept = await rename(world, id, "admin");
    expect([kept.status, kept.data.slug]).toEqual([200, "admin"]);
    expect((await rename(world, id, "api")).code).toBe("SLUG_RESERVED");
  });
});

describe.each(databases)("a slug that is taken, on %s", (database) => {
  const world = shareWorld({}, database);
  beforeAll(async () => void (await world.operator()));
  const TAKEN = [409, "TENANT_ALREADY_EXISTS"];

  it("is a conflict, and nothing of an update is done", async () => {
    const body = { tenantId: world.ids.globex, name: "New", slug: "acme" };
    await world.unchanged(async () => {
      expect(outcome(await create(world, "acme"))).toEqual(TAKEN);
      const call = world.api.createTenant({ body: { name: "Name", slug: "acme" } });
      await expect(call).rejects.toMatchObject(refused("TENANT_ALREADY_EXISTS", 409));
      expect(outcome(await (await world.operator()).post("/tenant/update", body))).toEqual(TAKEN);
    });
    // Not with the tenant itself.
    const answer = await rename(world, world.ids.acme, "acme");
    expect([answer.status, answer.data.slug]).toEqual([200, "acme"]);
  });

  const expectOneWinner = (outcomes: unknown[][]) => {
    const losers = outcomes.filter(([status]) => status !== 200);
    expect(losers).toEqual(outcomes.slice(1).map(() => TAKEN));
  };

  it("threat: races. Of many creations at once, one wins and the others hear that it is taken", async () => {
    const length = crowdOn(database);
    const answers = await Promise.all(Array.from({ length }, () => create(world, "wanted")));
    expectOneWinner(answers.map(outcome));
    expect(await world.rows("tenant", "slug = ?", ["wanted"])).toBe(1);
  }, 60_000);

  it("threat: races. Of 20 tenants that take a slug at once, one gets it", async () => {
    const tenants = await Promise.all(Array.from({ length: 20 }, () => world.createTenant()));
    const answers = await Promise.all(tenants.map(({ id }) => rename(world, id, "fought-for")));
    expectOneWinner(answers.map(outcome));
    expect(await world.rows("tenant", "slug = ?", ["fought-for"])).toBe(1);
    const left = await Promise.all(tenants.map(({ id }) => world.api.getTenant({ query: { id } })));
    expect(left).toHaveLength(20);
  });
});
