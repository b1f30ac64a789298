import { describe, expect, it } from "vitest";
import { DEFAULT_RESERVED_SLUGS } from "../../src/index";
import { createInstance } from "../support/instance";
import { crowdOn, databases } from "../support/servers";

const LONGEST = "a".repeat(63);

const VALID = ["ab", "a1", "1a", "00", "42", "a-b", "a--b", "xn--bcher-kva", LONGEST];

const INVALID: [description: string, slug: string][] = [
  ["empty", ""],
  ["one letter", "a"],
  ["64 letters", `${LONGEST}a`],
  ["very long", "a".repeat(100_000)],
  ["upper case", "Acme"],
  ["a hyphen first", "-acme"],
  ["a hyphen last", "acme-"],
  ["only hyphens", "--"],
  ["an underscore", "a_b"],
  ["a dot", "a.b"],
  ["a slash", "a/b"],
  ["a space inside", "a b"],
  ["a space at the end", "acme "],
  ["a line break at the end", "acme\n"],
  ["a line break inside", "acme\nacme"],
  ["a letter with an accent", "\u00e1cme"],
  ["a Cyrillic look-alike", "\u0430cme"],
  ["a full-width letter", "\uff41cme"],
  ["a digit of another script", "acme\u0663"],
  ["the Kelvin sign, which is k in lower case", "acme\u212a"],
  ["the long s", "acme\u017f"],
  ["an emoji", "acme🏢"],
  ["NUL", "ac\0me"],
  ["half of a surrogate pair", "acme\ud83c"],
  ["markup", "<b>acme</b>"],
];

async function start(options: Parameters<typeof createInstance>[0] = {}) {
  const instance = await createInstance(options);
  const { browser } = await instance.operator();
  const create = (slug: string) =>
    browser.post<{ slug: string }>("/tenant/create", { name: "Name", slug });
  const rename = (tenantId: string, slug: string) =>
    browser.post<{ slug: string }>("/tenant/update", { tenantId, slug });
  return { instance, create, rename };
}

describe("the form of a slug", () => {
  it.each(VALID)("takes %s", async (slug) => {
    const { instance, create, rename } = await start();
    const created = await create(slug);
    expect([created.status, created.data.slug]).toEqual([200, slug]);
    const { id } = await instance.createTenant("other-one");
    await instance.api.deleteTenant({
      body: { tenantId: (await instance.api.getTenant({ query: { slug } })).id },
    });
    const renamed = await rename(id, slug);
    expect([renamed.status, renamed.data.slug]).toEqual([200, slug]);
  });

  it.each(INVALID)("refuses %s", async (_, slug) => {
    const { instance, create, rename } = await start();
    const tenant = await instance.createTenant("acme");
    for (const answer of [await create(slug), await rename(tenant.id, slug)]) {
      expect([answer.status, answer.code]).toEqual([400, "INVALID_SLUG"]);
    }
    await expect(instance.api.createTenant({ body: { name: "Name", slug } })).rejects.toMatchObject(
      { statusCode: 400, body: { code: "INVALID_SLUG" } },
    );
    expect(await instance.api.listTenants()).toEqual([tenant]);
  });
});

describe("reserved slugs", () => {
  it("has a default list with the names that collide most, all of them good slugs", async () => {
    expect(DEFAULT_RESERVED_SLUGS).toEqual(
      expect.arrayContaining(["admin", "api", "app", "auth", "www", "mail", "login", "tenant"]),
    );
    const { create } = await start({ tenant: { reservedSlugs: [] } });
    for (const slug of DEFAULT_RESERVED_SLUGS) expect((await create(slug)).status).toBe(200);
  });

  it("refuses every name of the default list", async () => {
    const { instance, create, rename } = await start();
    const tenant = await instance.createTenant("acme");
    for (const slug of DEFAULT_RESERVED_SLUGS) {
      const answer = await create(slug);
      expect([slug, answer.status, answer.code]).toEqual([slug, 400, "SLUG_RESERVED"]);
    }
    const renamed = await rename(tenant.id, "admin");
    expect([renamed.status, renamed.code]).toEqual([400, "SLUG_RESERVED"]);
    expect(await instance.api.listTenants()).toEqual([tenant]);
  });

  it("are not up to the server's own code either", async () => {
    const { instance } = await start();
    await expect(
      instance.api.createTenant({ body: { name: "Name", slug: "admin" } }),
    ).rejects.toMatchObject({ statusCode: 400, body: { code: "SLUG_RESERVED" } });
  });

  it("are replaced by the option, not added to", async () => {
    const { create } = await start({ tenant: { reservedSlugs: ["ours"] } });
    expect((await create("ours")).code).toBe("SLUG_RESERVED");
    expect((await create("ours-too")).status).toBe(200);
    expect((await create("admin")).status).toBe(200);
  });

  it("stay with a tenant that has one already", async () => {
    const { instance, rename } = await start();
    const tenant = await instance.createTenant("acme");
    await instance.context.adapter.update({
      model: "tenant",
      where: [{ field: "id", value: tenant.id }],
      update: { slug: "admin" },
    });
    const kept = await rename(tenant.id, "admin");
    expect([kept.status, kept.data.slug]).toEqual([200, "admin"]);
    const other = await rename(tenant.id, "api");
    expect(other.code).toBe("SLUG_RESERVED");
  });
});

describe.each(databases)("a slug that is taken, on %s", (database) => {
  it("is a conflict on create", async () => {
    const { instance, create } = await start({ database });
    const tenant = await instance.createTenant("acme");
    const answer = await create("acme");
    expect([answer.status, answer.code]).toEqual([409, "TENANT_ALREADY_EXISTS"]);
    await expect(
      instance.api.createTenant({ body: { name: "Name", slug: "acme" } }),
    ).rejects.toMatchObject({ statusCode: 409, body: { code: "TENANT_ALREADY_EXISTS" } });
    expect(await instance.api.listTenants()).toEqual([tenant]);
  });

  it("is a conflict on update, and nothing of the update is done", async () => {
    const { instance } = await start({ database });
    await instance.createTenant("acme");
    const tenant = await instance.createTenant("other");
    const operator = await instance.operator();
    const answer = await operator.browser.post("/tenant/update", {
      tenantId: tenant.id,
      name: "New",
      slug: "acme",
    });
    expect([answer.status, answer.code]).toEqual([409, "TENANT_ALREADY_EXISTS"]);
    expect(await instance.api.getTenant({ query: { id: tenant.id } })).toEqual(tenant);
  });

  it("is no conflict with the tenant itself", async () => {
    const { instance, rename } = await start({ database });
    const { id } = await instance.createTenant("acme");
    const answer = await rename(id, "acme");
    expect([answer.status, answer.data.slug]).toEqual([200, "acme"]);
  });

  it("threat: races. Of many creations at once, one wins and the others hear that it is taken", async () => {
    const { instance, create } = await start({ database });
    const length = crowdOn(database);
    const answers = await Promise.all(Array.from({ length }, () => create("acme")));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const losers = answers.filter(({ status }) => status !== 200);
    expect(new Set(losers.map(({ status, code }) => `${status} ${code}`))).toEqual(
      new Set(["409 TENANT_ALREADY_EXISTS"]),
    );
    expect(await instance.rows("tenant")).toBe(1);
  }, 60_000);

  it("threat: races. Of 20 tenants that take a slug at once, one gets it", async () => {
    const { instance, rename } = await start({ database });
    const tenants = await Promise.all(Array.from({ length: 20 }, () => instance.createTenant()));
    const answers = await Promise.all(tenants.map(({ id }) => rename(id, "acme")));
    const outcomes = answers.map(({ status, code }) => `${status} ${code}`).sort();
    expect(outcomes).toEqual([
      "200 undefined",
      ...Array<string>(19).fill("409 TENANT_ALREADY_EXISTS"),
    ]);
    expect(await instance.rows("tenant", "slug = ?", ["acme"])).toBe(1);
    expect(await instance.rows("tenant")).toBe(20);
  });
});
