import type { Where } from "better-auth/types";
import { describe, expect, it } from "vitest";
import type { tenantInvitations } from "../../src/features/invitations/index";
import { runInTenant } from "../../src/index";
import { PASSWORD } from "../support/instance";
import { GLOBAL } from "../support/social";
import { queryOf } from "../support/world";
import { because, CODE, createWorld, type Ground, type Row, type World } from "./store";

const EMAIL = "same@example.com";
const SOMEBODY = { name: "Somebody", email: EMAIL, password: PASSWORD };

/** Signs in at a side with better-auth's endpoint or ours: the status, and who it is. */
async function signIn({ browser }: World, side: string | null) {
  const body = { email: EMAIL, password: PASSWORD, ...(side && { tenantId: side }) };
  const path = side ? "/tenant/sign-in/email" : "/sign-in/email";
  const { status, data } = await browser().post<{ user?: { id: string } }>(path, body);
  return { status, id: data.user?.id };
}

/** What tenants and people do first of all. */
function followsTheSpecification(ground: Ground) {
  it("creates, gets, lists, updates and deletes tenants", async () => {
    const { api, a, b, count } = await createWorld(ground);
    expect(typeof a.id).toBe("string");
    for (const query of [{ id: a.id }, { slug: "acme" }]) {
      expect(await api.getTenant({ query })).toEqual(a);
    }
    const body = { tenantId: a.id, name: "Acme Inc", slug: "acme-inc" };
    const updated = await api.updateTenant({ body });
    expect(updated).toMatchObject({ id: a.id, name: "Acme Inc", slug: "acme-inc" });
    const all = await api.listTenants();
    expect(all).toHaveLength(2);
    expect(all).toEqual(expect.arrayContaining([updated, b]));
    const taken = api.updateTenant({ body: { tenantId: a.id, slug: "bolt" } });
    await expect(taken).rejects.toMatchObject({ body: { code: "TENANT_ALREADY_EXISTS" } });
    expect(await api.deleteTenant({ body: { tenantId: a.id } })).toEqual({ success: true });
    const gone = api.getTenant({ query: { id: a.id } });
    await expect(gone).rejects.toMatchObject({ body: { code: "TENANT_NOT_FOUND" } });
    expect(await count("tenant")).toBe(1);
  });

  it("knows no tenant by an id that is no id, and does not stumble over it", async () => {
    const { browser, a } = await createWorld(ground);
    const strange = ["0", "-1", "1.0", "01", " 1", "99999999999", "abc", "%", "null", "a\u0000b"];
    const similar = [`${a.id} `, `0${a.id}`, `${a.id}.0`, "x".repeat(300)];
    for (const tenantId of [...strange, ...similar, "00000000-0000-4000-8000-000000000000"]) {
      const answer = await browser().post("/tenant/sign-in/email", { ...SOMEBODY, tenantId });
      expect([tenantId, answer.status, answer.code]).toEqual([tenantId, 404, "TENANT_NOT_FOUND"]);
    }
  });

  it("R15: has the same username, phone number and slug in two tenants and on the platform", async () => {
    const { browser, a, b, rows } = await createWorld(ground);
    const sides = [a.id, b.id, null];
    const slug = { name: "Sales", slug: "sales" };
    const phone = { phoneNumber: "+15551234567" };
    const ids = new Set<unknown>();
    for (const [index, side] of sides.entries()) {
      const at = () => browser(side ? { "x-tenant-id": side } : {});
      const person = { ...SOMEBODY, username: "somebody", password: `${PASSWORD} ${index}` };
      expect((await at().post("/sign-up/email", person)).status).toBe(200);
      const me = at();
      const signedIn = await me.post<{ user: Row }>("/sign-in/username", person);
      expect(signedIn.data.user).toMatchObject({ username: "somebody" });
      ids.add(signedIn.data.user.id);
      const other = { ...person, password: `${PASSWORD} ${(index + 1) % 3}` };
      expect((await at().post("/sign-in/username", other)).status).toBe(401);
      expect((await me.post("/organization/create", slug)).data).toMatchObject(slug);
      expect((await me.post("/organization/create", slug)).status).toBe(400);

      await me.post("/phone-number/send-otp", phone);
      const proof = { ...phone, code: CODE, updatePhoneNumber: true };
      expect((await me.post("/phone-number/verify", proof)).status).toBe(200);
      const byPhone = { ...phone, password: person.password };
      const called = await at().post<{ user: Row }>("/sign-in/phone-number", byPhone);
      expect(called.data.user).toMatchObject({ ...phone, id: signedIn.data.user.id });
      const { data } = await me.get<{ user: Row }>("/get-session");
      expect(data.user).toMatchObject({ ...phone, username: "somebody" });
    }
    expect(ids.size).toBe(3);
    const stored = (await rows("user")).map((row) => row.username).sort();
    expect(stored).toEqual([`${a.id}~somebody`, `${b.id}~somebody`, "somebody"].sort());
  });

  it("R15: finds unique values by a part of them, not of the tenant's prefix", async () => {
    const { browser, a, context } = await createWorld(ground);
    const person = { ...SOMEBODY, username: "somebody", tenantId: a.id };
    await browser().post("/tenant/sign-up/email", person);
    const find = (operator: Where["operator"], value: string, mode?: Where["mode"]) =>
      runInTenant(a.id, () => {
        const where: Where[] = [{ field: "username", operator, value, ...(mode && { mode }) }];
        return context.adapter.count({ model: "user", where });
      });
    for (const [operator, value] of [
      ["contains", "meb"],
      ["ends_with", "body"],
      ["starts_with", "some"],
      ["gt", "some"],
      ["lt", "somf"],
    ] as const) {
      expect([operator, await find(operator, value)]).toEqual([operator, 1]);
    }
    expect(await find("contains", "MEB", "insensitive")).toBe(1);
    for (const value of [a.id, `${a.id}~`, `${a.id.at(-1)}~s`, "~"]) {
      expect(await find("contains", value)).toBe(0);
      expect(await find("ends_with", value)).toBe(0);
    }
  });

  const taken = "refuses with 422 what is taken by the time it is written";
  it.skipIf(ground.noUniqueValues)(because(taken, ground.noUniqueValues), async () => {
    const { a, context, count } = await createWorld(ground);
    const create = (email: string) =>
      runInTenant(a.id, () => {
        const data = { name: "Somebody", email, username: "somebody" };
        return context.adapter.create({ model: "user", data });
      });
    await create(EMAIL);
    const refused = { statusCode: 422, body: { code: "VALUE_TAKEN" } };
    await expect(create("other@example.com")).rejects.toMatchObject(refused);
    expect(await count("user")).toBe(1);
  });
}

const METADATA = {
  nested: { list: [1, -2.5, true, false, null, "", { deep: [[]] }], empty: {} },
  text: "Ünïcødé 😀 'quoted' \"twice\" \\ and\na line",
  looksLikeADate: "2024-01-01T00:00:00.000Z",
  looksLikeJson: '{"a":1}',
  looksLikeANumber: "007",
  large: Number.MAX_SAFE_INTEGER,
};

const CREDENTIALS = { clientId: "the-client-id", clientSecret: "the-client-secret" };

/** What a database stores in a way of its own has to come back the way it went in. */
function keepsValues(ground: Ground) {
  it("gives metadata back as it was, and none where there is none", async () => {
    const { api, a } = await createWorld(ground);
    for (const metadata of [METADATA, {}, { only: "this" }, null]) {
      const updated = await api.updateTenant({ body: { tenantId: a.id, metadata } });
      const read = await api.getTenant({ query: { slug: "acme" } });
      expect([updated.metadata, read.metadata]).toEqual([metadata, metadata]);
    }
    const body = { name: "Meta", slug: "meta", metadata: METADATA };
    expect((await api.createTenant({ body })).metadata).toEqual(METADATA);
    const listed = (await api.listTenants()).map(({ metadata }) => metadata);
    expect(listed).toEqual(expect.arrayContaining([METADATA, null]));
  });

  it("gives dates back as dates, the same to the millisecond", async () => {
    const before = Date.now();
    const { api, a, context, signUp } = await createWorld(ground);
    expect(a.createdAt.getTime()).toBeGreaterThanOrEqual(before);
    const read = await api.getTenant({ query: { id: a.id } });
    const updated = await api.updateTenant({ body: { tenantId: a.id, name: "New" } });
    expect([read.createdAt, updated.createdAt]).toEqual([a.createdAt, a.createdAt]);
    expect(updated.updatedAt.getTime()).toBeGreaterThanOrEqual(a.updatedAt.getTime());
    const { token } = await signUp(a.id);
    const expiresAt = new Date("2031-02-03T04:05:06.789Z");
    const found = await runInTenant(a.id, async () => {
      await context.internalAdapter.updateSession(token, { expiresAt });
      return context.internalAdapter.findSession(token);
    });
    expect(found?.session.expiresAt).toEqual(expiresAt);
    expect(found?.user).toMatchObject({ createdAt: expect.any(Date), emailVerified: false });
  });

  it("gives OAuth configs back as they were, and replaces them as a whole", async () => {
    const { api, a, b, rows } = await createWorld(ground);
    const register = (config: object) => {
      const body = { tenantId: a.id, providerId: "google", ...CREDENTIALS, ...config };
      return api.registerTenantOAuthConfig({ body });
    };
    const list = (tenantId: string) => api.listTenantOAuthConfigs({ query: { tenantId } });
    const { id, createdAt } = await register({});
    expect([typeof id, createdAt]).toEqual(["string", expect.any(Date)]);
    const nothing = { ...CREDENTIALS, scopes: null, redirectURI: null, enabled: true };
    for (const config of [
      {},
      { scopes: ["email", "https://example.com/a b,c", 'qu"ote'], enabled: false },
      { scopes: ["one"], redirectURI: "https://example.com/callback", clientId: "another" },
      { scopes: [] },
    ]) {
      const replaced = await register(config);
      const { clientSecret: _, ...expected } = { ...nothing, ...config };
      expect(replaced).toMatchObject({ ...expected, id, createdAt, tenantId: a.id });
      expect(await list(a.id)).toEqual([replaced]);
    }

    await register({ providerId: "github" });
    expect([(await list(a.id)).length, await list(b.id)]).toEqual([2, []]);
    const stored = JSON.stringify(await rows("tenantOauthConfig"));
    for (const secret of Object.values(CREDENTIALS)) expect(stored).not.toContain(secret);
    const body = { tenantId: a.id, providerId: "google" };
    expect(await api.deleteTenantOAuthConfig({ body })).toEqual({ success: true });
    const again = api.deleteTenantOAuthConfig({ body });
    await expect(again).rejects.toMatchObject({ body: { code: "OAUTH_CONFIG_NOT_FOUND" } });
    expect(await rows("tenantOauthConfig")).toHaveLength(1);
  });
}

/** Nothing of one side can be read, changed or deleted from another, whatever the adapter. */
function keepsSidesApart(ground: Ground) {
  /** The same person on three sides, and what every side has at the beginning. */
  async function populated(joins = false) {
    const world = await createWorld(ground, { joins });
    const sides = [world.a.id, world.b.id, null];
    const people = [];
    for (const side of sides) people.push(await world.signUp(side, EMAIL));
    return { ...world, sides, people };
  }

  it("one email is a user of each tenant and of the platform, who is signed in there only", () =>
    checkSessions(false));

  const joined =
    "a session that is read with its user in one query is valid in its own tenant only";
  it.skipIf(ground.noJoins)(because(joined, ground.noJoins), () => checkSessions(true));

  async function checkSessions(joins: boolean) {
    const world = await populated(joins);
    const { sides, people, whoIs, count } = world;
    for (const [index, { browser, user }] of people.entries()) {
      const home = sides[index] ?? null;
      expect([user.tenantId, typeof user.id]).toEqual([home, "string"]);
      expect((await signIn(world, home)).id).toBe(user.id);
      for (const side of sides) {
        // Naming none, a request with a tenant's session runs in that tenant.
        const expected = side === home || side === null ? user.id : undefined;
        expect((await whoIs(browser.fork(), side))?.user.id).toBe(expected);
      }
      const inA = browser.fork({ "x-tenant-id": String(sides[0]) });
      const update = await inA.post("/update-user", { name: "Changed" });
      expect(update.status).toBe(home === sides[0] ? 200 : 401);
    }
    expect([await count("account"), await count("session")]).toEqual([3, 6]);
  }

  it("rows of elsewhere are not found, by whatever condition", async () => {
    const { a, people, context } = await populated();
    const [inA, ...others] = people;
    const either = (field: string, values: string[]): Where[] =>
      values.map((value) => ({ field, value, connector: "OR" as const }));
    const ids = others.map(({ user }) => user.id);
    const tokens = others.map(({ token }) => token);
    const foreign: Record<string, Where[][]> = {
      user: [
        ...ids.map((value) => [{ field: "id", value }]),
        [{ field: "id", operator: "in", value: ids }],
        either("id", ids),
      ],
      session: [
        [{ field: "token", operator: "in", value: tokens }],
        either("token", tokens),
        ...ids.map((value) => [{ field: "userId", value }]),
      ],
      account: [[{ field: "userId", operator: "in", value: ids }]],
    };
    const { adapter } = context;
    await runInTenant(a.id, async () => {
      for (const [model, conditions] of Object.entries(foreign)) {
        for (const where of conditions) {
          expect(await adapter.findOne({ model, where })).toBeNull();
          expect(await adapter.findMany({ model, where })).toEqual([]);
          expect(await adapter.count({ model, where })).toBe(0);
        }
        expect(await adapter.findMany({ model })).toHaveLength(1);
        expect(await adapter.count({ model })).toBe(1);
      }
      const where = either("email", [EMAIL, "nobody@example.com"]);
      const found = await adapter.findMany<{ id: string }>({ model: "user", where });
      expect(found.map(({ id }) => id)).toEqual([inA?.user.id]);
    });
  });

  it("writes change rows of the current tenant only, by whatever condition", async () => {
    const { a, people, context, rows } = await populated();
    const { adapter } = context;
    const inA = people[0]?.user.id;
    const others = async () => {
      const found: Row[][] = [];
      for (const model of ["user", "session", "account"]) {
        found.push((await rows(model)).filter(({ tenantId }) => String(tenantId) !== a.id));
      }
      return structuredClone(found);
    };
    const before = await others();
    const where: Where[] = [{ field: "email", value: EMAIL }];
    const foreign: Where[] = [{ field: "id", value: String(people[1]?.user.id) }];
    await runInTenant(a.id, async () => {
      const update = { name: "Changed" };
      const changed = await adapter.update({ model: "user", where, update });
      expect(changed).toMatchObject({ id: inA, name: "Changed", tenantId: a.id });
      expect(await adapter.update({ model: "user", where: foreign, update })).toBeNull();
      expect(await adapter.updateMany({ model: "user", where, update })).toBe(1);
      expect(await adapter.updateMany({ model: "user", where: foreign, update })).toBe(0);
      expect(await adapter.consumeOne({ model: "user", where: foreign })).toBeNull();
      await adapter.delete({ model: "user", where: foreign });
      expect(await adapter.deleteMany({ model: "user", where: foreign })).toBe(0);
      expect(await adapter.deleteMany({ model: "session", where: [] })).toBe(1);
      const consumed = await adapter.consumeOne({ model: "account", where: [] });
      expect(consumed).toMatchObject({ userId: inA });
      expect(await adapter.deleteMany({ model: "user", where })).toBe(1);
    });
    expect(await others()).toEqual(before);
    expect(await rows("user")).toHaveLength(2);
  });
}

const MODELS = ["user", "session", "account", "verification", "tenantOauthConfig"];

/** Somebody by password, Alice by her provider, a reset token, an OAuth state, a config. */
async function populate(app: World, side: string | null) {
  const { browser } = await app.signUp(side, EMAIL);
  const headers: Record<string, string> = side === null ? {} : { "x-tenant-id": side };
  await app.browser(headers).post("/request-password-reset", { email: EMAIL });
  const { clientId } = side === null ? GLOBAL : await app.configure(side);
  // Coming back is the same person, not another one.
  for (const _ of ["first", "again"]) {
    expect((await app.signIn(app.browser(), side)).location).toBe("/welcome");
  }
  const { data } = await app.start(app.browser(), side);
  expect(queryOf(data.url).client_id).toBe(clientId);
  return browser;
}

function deletesTenants(ground: Ground) {
  it("users sign in by password and provider; a deleted tenant loses everything, the others nothing", async () => {
    const app = await createWorld(ground);
    const { a, b, rowsOf, rows, api } = app;
    const leaver = await populate(app, a.id);
    const stayer = await populate(app, b.id);
    await populate(app, null);
    const all = async (side: string | null) => {
      const found: Row[][] = [];
      for (const model of MODELS) found.push(await rowsOf(model, side));
      return structuredClone(found);
    };
    const counts = async (side: string | null) => (await all(side)).map((found) => found.length);
    expect(await counts(a.id)).toEqual([2, 3, 2, 2, 1]);
    expect(await counts(null)).toEqual([2, 3, 2, 2, 0]);
    const [ofB, ofPlatform] = [await all(b.id), await all(null)];

    expect(await api.deleteTenant({ body: { tenantId: a.id } })).toEqual({ success: true });
    expect(await counts(a.id)).toEqual([0, 0, 0, 0, 0]);
    expect([await all(b.id), await all(null)]).toEqual([ofB, ofPlatform]);
    expect((await rows("tenant")).map(({ id }) => String(id ?? ""))).toEqual([b.id]);
    for (const side of [a.id, null]) expect(await app.whoIs(leaver, side)).toBeNull();
    expect((await app.whoIs(stayer, b.id))?.user.email).toBe(EMAIL);
    expect((await signIn(app, a.id)).status).toBe(404);
  });

  it("a new tenant of the old name has nothing of the old one", async () => {
    const world = await createWorld(ground);
    const { api, a, b, signUp, whoIs } = world;
    await signUp(a.id, EMAIL);
    const old = await signUp(b.id, EMAIL);
    await api.deleteTenant({ body: { tenantId: b.id } });
    const again = await api.createTenant({ body: { name: "Bolt", slug: "bolt" } });
    // Some count from what is left, and b was the youngest.
    expect([a.id, b.id]).not.toContain(again.id);
    expect((await signIn(world, again.id)).status).toBe(401);
    await signUp(again.id, EMAIL);
    expect(await whoIs(old.browser, again.id)).toBeNull();
  });
}

type Api = World["api"] & ReturnType<typeof tenantInvitations>["endpoints"];

/** Invitations on the adapters and databases that are not Kysely's. */
function invitesPeople(ground: Ground) {
  const name =
    "invitations are made, renewed, revoked, accepted once, listed, and go with their tenant";
  it(name, async () => {
    const world = await createWorld(ground);
    const { a, b, browser, rows, rowsOf } = world;
    const api = world.api as Api;
    const invite = async (tenantId: string) => {
      const body = { tenantId, email: "ada@example.com", send: false };
      const { id, url = "" } = await api.createTenantInvitation({ body });
      return { id, token: queryOf(url).token };
    };
    const accept = (token: string | undefined) =>
      browser().post("/tenant/invitation/accept", { token, name: "Ada", password: PASSWORD });
    const first = await invite(a.id);
    const second = await invite(a.id);
    expect(second.id).toBe(first.id);
    await invite(b.id);
    expect((await accept(first.token)).code).toBe("INVITATION_NOT_FOUND");
    await api.revokeTenantInvitation({ body: { id: second.id } });
    expect((await accept(second.token)).code).toBe("INVITATION_NOT_FOUND");
    const third = await invite(a.id);
    // Where values can be unique, of many at once one is let in.
    const crowd = ground.noUniqueValues ? 1 : 8;
    const answers = await Promise.all(Array.from({ length: crowd }, () => accept(third.token)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect((await accept(third.token)).code).toBe("INVITATION_ALREADY_ACCEPTED");
    expect(await rowsOf("user", a.id)).toHaveLength(1);
    const counts: number[] = [];
    for (const status of ["accepted", "revoked", "pending", "expired"] as const) {
      const query = { tenantId: a.id, status };
      counts.push((await api.listTenantInvitations({ query })).length);
    }
    expect(counts).toEqual([1, 1, 0, 0]);
    await api.deleteTenant({ body: { tenantId: a.id } });
    expect(await rows("tenantInvitation")).toHaveLength(1);
  });
}

/** Small races; the large ones are in test/core/isolate/explain-errors.servers.test.ts. */
function survivesRaces(ground: Ground) {
  const { noUniqueValues, crowd = 20 } = ground;
  const times = <T>(run: (index: number) => Promise<T>) =>
    Promise.all(Array.from({ length: crowd }, (_, index) => run(index)));
  const race = (name: string, run: () => Promise<void>) =>
    it.skipIf(noUniqueValues)(because(name, noUniqueValues), run);

  race(`of ${crowd} sign-ups with one e-mail at once, one gets it`, async () => {
    const { browser, a, count } = await createWorld(ground);
    const body = { ...SOMEBODY, tenantId: a.id };
    const answers = await times(() => browser().post("/tenant/sign-up/email", body));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array(crowd - 1).fill(422)]);
    for (const model of ["user", "account", "session"]) expect(await count(model)).toBe(1);
  });

  race(`${crowd} registrations of one config at once leave one`, async () => {
    const { api, a, count } = await createWorld(ground);
    const body = { tenantId: a.id, providerId: "google", ...CREDENTIALS };
    const configs = await times(() => api.registerTenantOAuthConfig({ body }));
    expect(new Set(configs.map(({ id }) => id)).size).toBe(1);
    expect(await count("tenantOauthConfig")).toBe(1);
  });

  it(`${crowd} tenants that register a config at once each get their own`, async () => {
    const { api } = await createWorld(ground);
    const tenants: string[] = [];
    for (let i = 0; i < crowd; i++) {
      const { id } = await api.createTenant({ body: { name: `T ${i}`, slug: `tenant-${i}` } });
      tenants.push(id);
    }
    const configs = await times((index) => {
      const own = { tenantId: tenants[index] ?? "", clientId: `client-of-${tenants[index]}` };
      const body = { providerId: "google", clientSecret: "secret", ...own };
      return api.registerTenantOAuthConfig({ body });
    });
    expect(configs).toMatchObject(
      tenants.map((tenantId) => ({ tenantId, clientId: `client-of-${tenantId}` })),
    );
  });

  it(`a tenant that is deleted while ${crowd} users sign in and up leaves no rows after a purge`, async () => {
    const world = await createWorld(ground);
    const { api, a, b, browser, rowsOf } = world;
    for (const { id } of [a, b]) await world.signUp(id, EMAIL);
    const config = { providerId: "google", clientId: "id", clientSecret: "secret" };
    await api.registerTenantOAuthConfig({ body: { tenantId: b.id, ...config } });
    const visits = times(async (index) => {
      const fresh = { ...SOMEBODY, tenantId: a.id, email: `new-${index}@example.com` };
      const answers = await Promise.all([
        signIn(world, a.id),
        browser().post("/tenant/sign-up/email", fresh),
      ]);
      return answers.map(({ status }) => status);
    });
    await api.deleteTenant({ body: { tenantId: a.id } });
    expect(Math.max(...(await visits).flat())).toBeLessThanOrEqual(ground.deadlocks ? 500 : 499);
    expect((await api.purgeTenants()).failed).toEqual([]);
    for (const model of ["user", "account", "session"]) {
      expect(await rowsOf(model, a.id)).toEqual([]);
      expect(await rowsOf(model, b.id)).toHaveLength(1);
    }
    expect(await api.listTenantOAuthConfigs({ query: { tenantId: b.id } })).toHaveLength(1);
  });
}

/** One suite for every adapter, database and kind of ids: see what stands on which ground. */
export function behaves(ground: Ground) {
  describe(`${ground.name}, ${ground.ids} ids`, () => {
    followsTheSpecification(ground);
    keepsValues(ground);
    keepsSidesApart(ground);
    deletesTenants(ground);
    invitesPeople(ground);
    survivesRaces(ground);
  });
}
