import { beforeAll, describe, expect, it } from "vitest";
import { parseStoredPolicy } from "../../../src/features/policy/schema";
import { DEFAULT_RESERVED_SLUGS } from "../../../src/index";
import { crowdOn, databases } from "../../support/database";
import { PASSWORD } from "../../support/instance";
import { createWorld, outcome, shareWorld, type World } from "../../support/world";

const create = async (world: World, slug: string) =>
  (await world.operator()).post<{ slug: string }>("/tenant/create", { name: "Name", slug });
const rename = async (world: World, tenantId: string, slug: string) =>
  (await world.operator()).post<{ slug: string }>("/tenant/update", { tenantId, slug });

const LONGEST = "a".repeat(63);
const VALID = ["ab", "a1", "1a", "00", "a-b", "a--b", "xn--bcher-kva", LONGEST];
const INVALID = [
  ...["", "a", `${LONGEST}a`, "Acme", "-acme", "acme-", "--", "a_b", "a.b", "a/b"],
  ...["a b", "acme ", "acme\n", "acme\nacme"],
  // Letters that look alike, those that are k or s in lower case, and what is no letter at all.
  ...["\u00e1cme", "\u0430cme", "\uff41cme", "acme\u0663", "acme\u212a", "acme\u017f"],
  ...["acme🏢", "ac\0me", "acme\ud83c"],
];

describe("the form of a slug", () => {
  const world = shareWorld();

  it.each(VALID)("takes %s", async (slug) => {
    const created = await create(world, slug);
    expect([created.status, created.data.slug]).toEqual([200, slug]);
  });

  it.each(INVALID)("refuses %j, also from the server's own code", async (slug) => {
    const answers = [await create(world, slug), await rename(world, world.ids.acme, slug)];
    expect(answers.map(outcome)).toEqual(answers.map(() => [400, "INVALID_SLUG"]));
    const call = world.api.createTenant({ body: { name: "Name", slug } });
    await expect(call).rejects.toMatchObject({ statusCode: 400, body: { code: "INVALID_SLUG" } });
  });

  it("is not one of the reserved names, unless the tenant has it already", async () => {
    const names = ["admin", "api", "app", "auth", "www", "mail", "login", "tenant"];
    expect(DEFAULT_RESERVED_SLUGS).toEqual(expect.arrayContaining(names));
    for (const slug of names.slice(0, 2)) {
      const answers = [await create(world, slug), await rename(world, world.ids.acme, slug)];
      expect(answers.map(outcome)).toEqual(answers.map(() => [400, "SLUG_RESERVED"]));
    }
    const { id } = await world.createTenant();
    await world.database.query("update tenant set slug = 'admin' where id = ?", [id]);
    const kept = await rename(world, id, "admin");
    expect([kept.status, kept.data.slug]).toEqual([200, "admin"]);
  });

  it("has other reserved names where the option says so; all of the default are good slugs", async () => {
    const { api } = await createWorld({ tenant: { reservedSlugs: ["ours"] } });
    const make = (slug: string) => api.createTenant({ body: { name: "Name", slug } });
    await expect(make("ours")).rejects.toMatchObject({ body: { code: "SLUG_RESERVED" } });
    for (const slug of DEFAULT_RESERVED_SLUGS) expect((await make(slug)).slug).toBe(slug);
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
      expect(outcome(await (await world.operator()).post("/tenant/update", body))).toEqual(TAKEN);
    });
    // Not with the tenant itself.
    const answer = await rename(world, world.ids.acme, "acme");
    expect([answer.status, answer.data.slug]).toEqual([200, "acme"]);
  });

  async function expectOneWinner(slug: string, outcomes: unknown[][]) {
    const losers = outcomes.filter(([status]) => status !== 200);
    expect(losers).toEqual(outcomes.slice(1).map(() => TAKEN));
    expect(await world.rows("tenant", "slug = ?", [slug])).toBe(1);
  }

  it("threat: races. Of many creations at once, one wins and the others hear that it is taken", async () => {
    const length = crowdOn(database);
    const answers = await Promise.all(Array.from({ length }, () => create(world, "wanted")));
    await expectOneWinner("wanted", answers.map(outcome));
  }, 60_000);

  it("threat: races. Of 20 tenants that take a slug at once, one gets it", async () => {
    const tenants = await Promise.all(Array.from({ length: 20 }, () => world.createTenant()));
    const answers = await Promise.all(tenants.map(({ id }) => rename(world, id, "fought-for")));
    await expectOneWinner("fought-for", answers.map(outcome));
  });
});

/** What somebody may have written into the column past us. */
const STRANGE = [
  ...['"closed"', "[]", "7", "false", '{"password":null}', '{"fromANewerVersion":true}'],
  ...['{"signUp":"never"}', '{"methods":"password"}', '{"methods":[null]}'],
  ...['{"emailDomains":"example.com"}', '{"session":{"expiresIn":-1}}'],
];
/** Only a database without a type for JSON takes these. */
const NO_JSON = ["", "closed", "{"];

describe.each(databases)("a stored policy on %s", (kind) => {
  const world = shareWorld({}, kind);

  /** A tenant that nobody has looked at yet: it is remembered from its first request on. */
  async function store(policy: string) {
    const { id } = await world.createTenant();
    const table = world.database.quote("tenant");
    await world.database.query(`update ${table} set policy = ? where id = ?`, [policy, id]);
    return id;
  }

  it.each([...STRANGE, ...(kind === "sqlite" ? NO_JSON : [])])(
    "that cannot be parsed admits no user, until a manager sets another: %s",
    async (stored) => {
      const tenantId = await store(stored);
      const at = world.at(tenantId);
      const operator = await world.operator();
      const person = { name: "New", email: "new@example.com", password: PASSWORD };
      for (const path of ["/sign-up/email", "/sign-in/email"]) {
        const refused = await at.post(path, person);
        expect(outcome(refused)).toEqual([403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
      }
      // It breaks nothing.
      expect((await operator.get("/tenant/list")).status).toBe(200);
      const got = await operator.get("/tenant/get", { query: { id: tenantId } });
      const renamed = await operator.post("/tenant/update", { tenantId, name: "Renamed" });
      expect([renamed.status, renamed.data.policy]).toEqual([got.status, got.data.policy]);
      const mended = await operator.post("/tenant/update", { tenantId, policy: null });
      expect([mended.status, mended.data.policy]).toEqual([200, null]);
      expect((await at.post("/sign-up/email", person)).status).toBe(200);
    },
  );

  // An adapter may return JSON as the text that it has stored.
  it("that is not there is not written, and null as a text is none", async () => {
    const { id } = await world.createTenant();
    const table = world.database.quote("tenant");
    const [row] = await world.database.query(`select * from ${table} where id = ?`, [id]);
    expect([row?.policy, row?.metadata]).toEqual([null, null]);
    expect(parseStoredPolicy("null")).toBeNull();
  });

  it.each(["null", '{"signUp":"open"}', '{"methods":["password"]}', "{}"])(
    "that is understood counts as it is: %s",
    async (stored) => {
      expect((await world.signUp(await store(stored))).token).toBeTruthy();
    },
  );
});
