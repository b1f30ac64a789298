import type { Where } from "better-auth/types";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import type { tenantInvitations } from "../../src/invitations/index";
import { PASSWORD } from "../support/instance";
import { queryOf } from "../support/social";
import { because, createWorld, type Ground, type Row, type World } from "./store";

const EMAIL = "same@example.com";

/** The flows of the specification, once each: what differs between adapters is below them. */
function followsTheSpecification(ground: Ground) {
  it("creates, gets, lists, updates and deletes tenants", async () => {
    const { api, a, b, count } = await createWorld(ground);
    expect(typeof a.id).toBe("string");
    expect(await api.getTenant({ query: { id: a.id } })).toEqual(a);
    expect(await api.getTenant({ query: { slug: "acme" } })).toEqual(a);
    const all = await api.listTenants();
    expect(all).toHaveLength(2);
    expect(all).toEqual(expect.arrayContaining([a, b]));

    const body = { tenantId: a.id, name: "Acme Inc", slug: "acme-inc" };
    const updated = await api.updateTenant({ body });
    expect(updated).toMatchObject({ id: a.id, name: "Acme Inc", slug: "acme-inc" });
    expect(await api.getTenant({ query: { id: a.id } })).toEqual(updated);
    expect(await api.getTenant({ query: { id: b.id } })).toEqual(b);

    const taken = { tenantId: a.id, slug: "bolt" };
    await expect(api.updateTenant({ body: taken })).rejects.toMatchObject({
      body: { code: "TENANT_ALREADY_EXISTS" },
    });
    expect(await api.deleteTenant({ body: { tenantId: a.id } })).toEqual({ success: true });
    await expect(api.getTenant({ query: { id: a.id } })).rejects.toMatchObject({
      body: { code: "TENANT_NOT_FOUND" },
    });
    expect(await count("tenant")).toBe(1);
  });

  it("knows no tenant by an id that is no id, and does not stumble over it", async () => {
    const { browser, signUp, a } = await createWorld(ground);
    await signUp(a.id, EMAIL);
    const strange = ["0", "-1", "1.0", "01", " 1", "99999999999", "abc", "%", "tenant", "null"];
    const similar = [`${a.id} `, `0${a.id}`, `${a.id}.0`];
    const uuid = "00000000-0000-4000-8000-000000000000";
    for (const tenantId of [...strange, ...similar, uuid, "x".repeat(300), "a\u0000b"]) {
      const body = { tenantId, email: EMAIL, password: PASSWORD };
      const answer = await browser().post("/tenant/sign-in/email", body);
      expect([tenantId, answer.status, answer.code]).toEqual([tenantId, 404, "TENANT_NOT_FOUND"]);
    }
  });

  it("signs up and in with one e-mail in two tenants and on the platform", async () => {
    const { signUp, whoIs, browser, a, b, rows } = await createWorld(ground);
    const sides = [a.id, b.id, null];
    const users = new Set<string>();
    for (const side of sides) {
      const person = await signUp(side, EMAIL);
      expect(person.user.tenantId).toBe(side);
      expect(typeof person.user.id).toBe("string");
      users.add(person.user.id);
      const body = { email: EMAIL, password: PASSWORD, ...(side && { tenantId: side }) };
      const returning = browser();
      const path = side ? "/tenant/sign-in/email" : "/sign-in/email";
      const answer = await returning.post<{ user: unknown }>(path, body);
      expect([answer.status, answer.data.user]).toEqual([
        200,
        expect.objectContaining(person.user),
      ]);
      expect(await whoIs(returning, side)).toMatchObject({
        user: { id: person.user.id, tenantId: side },
        session: { userId: person.user.id, tenantId: side },
      });
    }
    expect(users.size).toBe(3);
    expect(await rows("user")).toHaveLength(3);
    expect(await rows("account")).toHaveLength(3);
    expect(await rows("session")).toHaveLength(6);
  });

  it("refuses an e-mail that is taken in the tenant, and a wrong password", async () => {
    const { signUp, browser, a, count } = await createWorld(ground);
    await signUp(a.id, EMAIL);
    const person = { tenantId: a.id, name: "Somebody", email: EMAIL, password: PASSWORD };
    const again = await browser().post("/tenant/sign-up/email", person);
    expect([again.status, again.code]).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);
    const wrong = { ...person, password: "not this one" };
    const signIn = await browser().post("/tenant/sign-in/email", wrong);
    expect([signIn.status, signIn.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
    expect(await count("user")).toBe(1);
  });

  const taken = "refuses with 422 what is unique over all tenants and taken in another";
  it.skipIf(ground.noUniqueValues)(because(taken, ground.noUniqueValues), async () => {
    const { browser, a, b, count } = await createWorld(ground);
    const person = { name: "Somebody", password: PASSWORD, username: "somebody" };
    const signUp = (tenantId: string) =>
      browser().post("/tenant/sign-up/email", { ...person, tenantId, email: EMAIL });
    expect((await signUp(a.id)).status).toBe(200);
    const answer = await signUp(b.id);
    expect([answer.status, answer.code]).toEqual([422, "VALUE_TAKEN"]);
    expect([await count("user"), await count("account"), await count("session")]).toEqual([
      1, 1, 1,
    ]);
  });

  it("resets a password in its tenant only, once", async () => {
    const sent: string[] = [];
    const sendResetPassword = async ({ token }: { token: string }) => void sent.push(token);
    const { signUp, browser, a, b } = await createWorld(ground, { sendResetPassword });
    for (const side of [a.id, b.id, null]) await signUp(side, EMAIL);
    const inA = browser({ "x-tenant-id": a.id });
    expect((await inA.post("/request-password-reset", { email: EMAIL })).status).toBe(200);
    expect(sent).toHaveLength(1);
    const reset = { token: sent[0], newPassword: "another long password" };
    const elsewhere = browser({ "x-tenant-id": b.id });
    expect((await elsewhere.post("/reset-password", reset)).status).toBe(400);
    expect((await inA.post("/reset-password", reset)).status).toBe(200);
    expect((await inA.post("/reset-password", reset)).status).toBe(400);

    const statuses = async (password: string) => {
      const found: number[] = [];
      for (const side of [a.id, b.id, null]) {
        const path = side ? "/tenant/sign-in/email" : "/sign-in/email";
        const body = { email: EMAIL, password, ...(side && { tenantId: side }) };
        found.push((await browser().post(path, body)).status);
      }
      return found;
    };
    expect(await statuses("another long password")).toEqual([200, 401, 401]);
    expect(await statuses(PASSWORD)).toEqual([401, 200, 200]);
  });

  it("signs in through the tenant's own provider, and through the global one without", async () => {
    const app = await createWorld(ground);
    const { a, b } = app;
    const config = await app.configure(a.id, { scopes: ["read_user", "email"] });
    const people = [];
    for (const side of [a.id, b.id, null]) {
      const visitor = app.browser();
      const started = await app.start(visitor, side);
      expect(queryOf(started.data.url)).toMatchObject({
        client_id: side === a.id ? config.clientId : "global-client",
      });
      const back = await app.signIn(visitor, side);
      expect([back.status, back.location]).toEqual([302, "/welcome"]);
      const who = await app.whoIs(visitor, side);
      expect(who).toMatchObject({
        user: { email: "alice@example.com", tenantId: side },
        session: { tenantId: side },
      });
      people.push(who?.user.id);
      // Coming back is the same person, not another one.
      await app.signIn(visitor, side);
      expect((await app.whoIs(visitor, side))?.user.id).toBe(who?.user.id);
    }
    expect(new Set(people).size).toBe(3);
    expect(await app.count("user")).toBe(3);
    expect(await app.count("account")).toBe(3);
    await app.configure(a.id, { enabled: false });
    const off = await app.start(app.browser(), a.id);
    expect(queryOf(off.data.url).client_id).toBe("global-client");
  });

  it("accepts an OAuth state once, and in the tenant it was made for", async () => {
    const app = await createWorld(ground);
    await app.configure(app.a.id);
    const visitor = app.browser();
    const back = await app.authorize(visitor, app.a.id);
    const thief = app.browser();
    const stolen = await thief.get(back);
    expect(queryOf(stolen.location).error).toBeDefined();
    expect(await app.count("user")).toBe(0);
    const again = await app.signIn(visitor, app.a.id);
    expect(again.location).toBe("/welcome");
    expect(await app.count("session")).toBe(1);
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
  it("gives metadata back as it was", async () => {
    const { api } = await createWorld(ground);
    const body = { name: "Meta", slug: "meta", metadata: METADATA };
    const created = await api.createTenant({ body });
    expect(created.metadata).toEqual(METADATA);
    const read = async () => (await api.getTenant({ query: { slug: "meta" } })).metadata;
    expect(await read()).toEqual(METADATA);
    const listed = (await api.listTenants()).find(({ id }) => id === created.id);
    expect(listed?.metadata).toEqual(METADATA);
    for (const metadata of [{}, { only: "this" }, null]) {
      const updated = await api.updateTenant({ body: { tenantId: created.id, metadata } });
      expect(updated.metadata).toEqual(metadata);
      expect(await read()).toEqual(metadata);
    }
  });

  it("has no metadata where none was given", async () => {
    const { api, a } = await createWorld(ground);
    expect(a.metadata).toBeNull();
    expect((await api.getTenant({ query: { id: a.id } })).metadata).toBeNull();
  });

  it("gives dates back as dates, the same to the millisecond", async () => {
    const before = Date.now();
    const { api, a, context, signUp } = await createWorld(ground);
    const read = await api.getTenant({ query: { id: a.id } });
    for (const date of [a.createdAt, a.updatedAt, read.createdAt]) {
      expect(date).toBeInstanceOf(Date);
      expect(date.getTime()).toBeGreaterThanOrEqual(before);
      expect(date.getTime()).toBeLessThanOrEqual(Date.now());
    }
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
    expect(found?.user.createdAt).toBeInstanceOf(Date);
    expect(found?.user.emailVerified).toBe(false);
  });

  it("gives OAuth configs back as they were, and replaces them as a whole", async () => {
    const { api, a, b, rows } = await createWorld(ground);
    const register = (config: object) => {
      const body = { tenantId: a.id, providerId: "google", ...CREDENTIALS, ...config };
      return api.registerTenantOAuthConfig({ body });
    };
    const list = (tenantId: string) => api.listTenantOAuthConfigs({ query: { tenantId } });
    const first = await register({});
    expect(first).toMatchObject({
      id: expect.any(String),
      tenantId: a.id,
      providerId: "google",
      clientId: CREDENTIALS.clientId,
      scopes: null,
      redirectURI: null,
      enabled: true,
      createdAt: expect.any(Date),
      updatedAt: expect.any(Date),
    });
    expect(await list(a.id)).toEqual([first]);

    for (const config of [
      { scopes: ["email", "https://example.com/a b,c", 'qu"ote'], enabled: false },
      { scopes: ["one"], redirectURI: "https://example.com/callback", clientId: "another" },
      { scopes: [] },
      {},
    ]) {
      const replaced = await register(config);
      const nothing = { ...CREDENTIALS, scopes: null, redirectURI: null, enabled: true };
      const { clientSecret: _, ...expected } = { ...nothing, ...config };
      const { id, createdAt } = first;
      expect(replaced).toMatchObject({ ...expected, id, createdAt });
      expect(await list(a.id)).toEqual([replaced]);
    }

    await register({ providerId: "github" });
    expect((await list(a.id)).map(({ providerId }) => providerId).sort()).toEqual([
      "github",
      "google",
    ]);
    expect(await list(b.id)).toEqual([]);
    const stored = JSON.stringify(await rows("tenantOauthConfig"));
    for (const secret of Object.values(CREDENTIALS)) expect(stored).not.toContain(secret);

    const body = { tenantId: a.id, providerId: "google" };
    expect(await api.deleteTenantOAuthConfig({ body })).toEqual({ success: true });
    await expect(api.deleteTenantOAuthConfig({ body })).rejects.toMatchObject({
      body: { code: "OAUTH_CONFIG_NOT_FOUND" },
    });
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

  it("a session is good on its own side only", () => checkSessions(false));

  const joined = "a session that comes with its user in one query is good on its own side only";
  it.skipIf(ground.noJoins)(because(joined, ground.noJoins), () => checkSessions(true));

  async function checkSessions(joins: boolean) {
    const { sides, people, whoIs } = await populated(joins);
    for (const [index, { browser, user }] of people.entries()) {
      const home = sides[index] ?? null;
      for (const side of sides) {
        // Naming none, a request with a tenant's session runs in that tenant.
        const expected = side === home || side === null ? user.id : undefined;
        expect((await whoIs(browser.fork(), side))?.user.id).toBe(expected);
      }
      const inA = browser.fork({ "x-tenant-id": String(sides[0]) });
      const update = await inA.post("/update-user", { name: "Changed" });
      expect(update.status).toBe(home === sides[0] ? 200 : 401);
    }
  }

  it("rows of elsewhere are not found, by whatever condition", async () => {
    const { sides, people, context } = await populated();
    const [[a = ""], [inA, inB, onPlatform]] = [sides as string[], people];
    const { adapter } = context;
    const either = (...clauses: Where[]) =>
      clauses.map((clause) => ({ ...clause, connector: "OR" as const }));
    const elsewhere = [inB, onPlatform].map((person) => String(person?.user.id));
    const tokens = [inB, onPlatform].map((person) => String(person?.token));
    const foreign: Record<string, Where[][]> = {
      user: [
        ...elsewhere.map((value) => [{ field: "id", value }]),
        [{ field: "id", operator: "in", value: elsewhere }],
        either(...elsewhere.map((value) => ({ field: "id", value }))),
        [
          { field: "email", value: EMAIL },
          { field: "id", operator: "in", value: elsewhere },
        ],
      ],
      session: [
        [{ field: "token", operator: "in", value: tokens }],
        either(...tokens.map((value) => ({ field: "token", value }))),
        ...elsewhere.map((value) => [{ field: "userId", value }]),
      ],
      account: [[{ field: "userId", operator: "in", value: elsewhere }]],
    };
    await runInTenant(a, async () => {
      for (const [model, conditions] of Object.entries(foreign)) {
        for (const where of conditions) {
          expect(await adapter.findOne({ model, where })).toBeNull();
          expect(await adapter.findMany({ model, where })).toEqual([]);
          expect(await adapter.count({ model, where })).toBe(0);
        }
        expect(await adapter.findMany({ model })).toHaveLength(1);
        expect(await adapter.count({ model })).toBe(1);
      }
      const where = either(
        { field: "email", value: EMAIL },
        { field: "email", value: "nobody@example.com" },
      );
      const found = await adapter.findMany<{ id: string }>({ model: "user", where });
      expect(found.map(({ id }) => id)).toEqual([inA?.user.id]);
    });
  });

  it("writes stay on their side, by whatever condition", async () => {
    const { sides, people, context, rows } = await populated();
    const [a = ""] = sides as string[];
    const { adapter } = context;
    const inA = people[0]?.user.id;
    const others = async () => {
      const found: Record<string, unknown> = {};
      for (const model of ["user", "session", "account"]) {
        const all = await rows(model);
        found[model] = all.filter(({ tenantId }) => String(tenantId) !== a);
      }
      return structuredClone(found);
    };
    const before = await others();
    const where: Where[] = [{ field: "email", value: EMAIL }];
    const foreign: Where[] = [{ field: "id", value: String(people[1]?.user.id) }];
    await runInTenant(a, async () => {
      const update = { name: "Changed" };
      const changed = await adapter.update({ model: "user", where, update });
      expect(changed).toMatchObject({ id: inA, name: "Changed", tenantId: a });
      expect(await adapter.update({ model: "user", where: foreign, update })).toBeNull();
      expect(await adapter.updateMany({ model: "user", where, update })).toBe(1);
      expect(await adapter.updateMany({ model: "user", where: foreign, update })).toBe(0);
      expect(await adapter.consumeOne({ model: "user", where: foreign })).toBeNull();
      await adapter.delete({ model: "user", where: foreign });
      expect(await adapter.deleteMany({ model: "user", where: foreign })).toBe(0);
      expect(await adapter.deleteMany({ model: "session", where: [] })).toBe(1);
      expect(await adapter.consumeOne({ model: "account", where: [] })).toMatchObject({
        userId: inA,
      });
      expect(await adapter.deleteMany({ model: "user", where })).toBe(1);
    });
    expect(await others()).toEqual(before);
    expect(await rows("user")).toHaveLength(2);
  });

  it("no session is made for a user of elsewhere", async () => {
    const { sides, people, context, count } = await populated();
    const stranger = String(people[1]?.user.id);
    await expect(
      runInTenant(String(sides[0]), () => context.internalAdapter.createSession(stranger)),
    ).rejects.toMatchObject({ body: { code: "USER_NOT_IN_TENANT" } });
    expect(await count("session")).toBe(3);
  });
}

const MODELS = ["user", "session", "account", "verification", "tenantOauthConfig"];
/** Somebody by password, Alice by her provider, a reset token, an OAuth state, a config. */
async function populate(app: World, side: string | null) {
  const { browser } = await app.signUp(side, EMAIL);
  const headers: Record<string, string> = side === null ? {} : { "x-tenant-id": side };
  await app.browser(headers).post("/request-password-reset", { email: EMAIL });
  if (side !== null) await app.configure(side);
  await app.signIn(app.browser(), side);
  await app.start(app.browser(), side);
  return browser;
}

function deletesTenants(ground: Ground) {
  it("deletes everything of a tenant, and nothing of anybody else", async () => {
    const app = await createWorld(ground, { sendResetPassword: async () => {} });
    const { a, b, rowsOf, rows, api } = app;
    const leaver = await populate(app, a.id);
    const stayer = await populate(app, b.id);
    await populate(app, null);
    const all = async (side: string | null) => {
      const found: Record<string, Row[]> = {};
      for (const model of MODELS) found[model] = await rowsOf(model, side);
      return structuredClone(found);
    };
    const counts = async (side: string | null) =>
      Object.values(await all(side)).map((found) => found.length);
    expect(await counts(a.id)).toEqual([2, 2, 2, 2, 1]);
    expect(await counts(null)).toEqual([2, 2, 2, 2, 0]);
    const [ofB, ofPlatform] = [await all(b.id), await all(null)];

    expect(await api.deleteTenant({ body: { tenantId: a.id } })).toEqual({ success: true });
    expect(await counts(a.id)).toEqual([0, 0, 0, 0, 0]);
    expect([await all(b.id), await all(null)]).toEqual([ofB, ofPlatform]);
    expect((await rows("tenant")).map(({ id }) => String(id ?? ""))).toEqual([b.id]);
    expect(await app.whoIs(leaver, a.id)).toBeNull();
    expect(await app.whoIs(leaver, null)).toBeNull();
    expect((await app.whoIs(stayer, b.id))?.user.email).toBe(EMAIL);

    const body = { tenantId: a.id, email: EMAIL, password: PASSWORD };
    const late = await app.browser().post("/tenant/sign-in/email", body);
    expect([late.status, late.code]).toEqual([404, "TENANT_NOT_FOUND"]);
  });

  it("a new tenant of the old name has nothing of the old one", async () => {
    const { api, a, b, browser, signUp, whoIs } = await createWorld(ground);
    await signUp(a.id, EMAIL);
    const old = await signUp(b.id, EMAIL);
    await api.deleteTenant({ body: { tenantId: b.id } });
    const again = await api.createTenant({ body: { name: "Bolt", slug: "bolt" } });
    // Some count from what is left, and b was the youngest.
    if (!ground.reusesIds) expect([a.id, b.id]).not.toContain(again.id);
    expect(again.id).not.toBe(a.id);
    const body = { tenantId: again.id, email: EMAIL, password: PASSWORD };
    const answer = await browser().post("/tenant/sign-in/email", body);
    expect([answer.status, answer.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
    await signUp(again.id, EMAIL);
    expect(await whoIs(old.browser, again.id)).toBeNull();
  });
}

const INVITED = "ada@example.com";

type Api = World["api"] & ReturnType<typeof tenantInvitations>["endpoints"];

/** Invitations on the adapters and databases that are not Kysely's. */
function invitesPeople(ground: Ground) {
  describe("invitations", () => {
    async function createInvited() {
      const world = await createWorld(ground);
      const api = world.api as Api;
      const invite = async (tenantId: string) => {
        const body = { tenantId, email: INVITED, send: false };
        const { id, url = "" } = await api.createTenantInvitation({ body });
        return { id, token: new URL(url).searchParams.get("token") ?? "" };
      };
      const accept = (token: string) =>
        world
          .browser()
          .post("/tenant/invitation/accept", { token, name: "Ada", password: PASSWORD });
      return { ...world, api, invite, accept };
    }

    it("are made, renewed, revoked, accepted once, listed, and deleted with their tenant", async () => {
      const { a, b, api, invite, accept, rows, rowsOf } = await createInvited();
      const first = await invite(a.id);
      const second = await invite(a.id);
      expect(second.id).toBe(first.id);
      await invite(b.id);
      expect((await accept(first.token)).code).toBe("INVITATION_NOT_FOUND");
      await api.revokeTenantInvitation({ body: { id: second.id } });
      expect((await accept(second.token)).code).toBe("INVITATION_NOT_FOUND");
      const third = await invite(a.id);
      expect((await accept(third.token)).status).toBe(200);
      expect((await accept(third.token)).code).toBe("INVITATION_ALREADY_ACCEPTED");
      expect(await rowsOf("user", a.id)).toHaveLength(1);
      const list = async (status: "pending" | "accepted" | "revoked" | "expired") =>
        (await api.listTenantInvitations({ query: { tenantId: a.id, status } })).length;
      expect([await list("accepted"), await list("revoked")]).toEqual([1, 1]);
      expect([await list("pending"), await list("expired")]).toEqual([0, 0]);
      await api.deleteTenant({ body: { tenantId: a.id } });
      expect(await rows("tenantInvitation")).toHaveLength(1);
    });

    it("let in whoever comes with a verified address, in the role that they were invited to", async () => {
      const { a, b, api, browser, signIn, rowsOf } = await createInvited();
      const email = "alice@example.com";
      for (const { id: tenantId } of [a, b]) {
        await api.updateTenant({ body: { tenantId, policy: { signUp: "invited" } } });
      }
      await api.createTenantInvitation({ body: { tenantId: a.id, email, role: "admin" } });
      expect((await signIn(browser(), b.id)).location).toContain("/failed");
      expect((await signIn(browser(), a.id)).location).toBe("/welcome");
      expect(await rowsOf("user", a.id)).toMatchObject([{ email, role: "admin" }]);
      expect(await rowsOf("user", b.id)).toEqual([]);
      const [invitation] = await api.listTenantInvitations({ query: { tenantId: a.id } });
      expect(invitation?.status).toBe("accepted");
    });

    const { noUniqueValues } = ground;
    const name = because("are accepted by one of many who try at once", noUniqueValues);
    it.skipIf(noUniqueValues)(name, async () => {
      const { a, invite, accept, rowsOf } = await createInvited();
      const { token } = await invite(a.id);
      const answers = await Promise.all(Array.from({ length: 8 }, () => accept(token)));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(await rowsOf("user", a.id)).toHaveLength(1);
    });
  });
}

interface SignIn {
  user: { id: string };
  session: { userId: string };
}

/** Small races; the large ones are in races.test.ts. */
function survivesRaces(ground: Ground) {
  const { noUniqueValues, crowd = 20 } = ground;
  const times = <T>(run: () => Promise<T>) => Promise.all(Array.from({ length: crowd }, run));
  const others = <T>(value: T): T[] => Array(crowd - 1).fill(value);
  const race = (name: string, run: () => Promise<void>) =>
    it.skipIf(noUniqueValues)(because(name, noUniqueValues), run);

  race(`of ${crowd} sign-ups with one e-mail at once, one gets it`, async () => {
    const { browser, a, b, signUp, count } = await createWorld(ground);
    const body = { tenantId: a.id, name: "Somebody", email: "x@example.com", password: PASSWORD };
    const answers = await times(() => browser().post("/tenant/sign-up/email", body));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...others(422)]);
    expect([await count("user"), await count("account"), await count("session")]).toEqual([
      1, 1, 1,
    ]);
    // It is free in other tenants all the same.
    await signUp(b.id, body.email);
  });

  race(`${crowd} registrations of one config at once leave one`, async () => {
    const { api, a, count } = await createWorld(ground);
    const body = { tenantId: a.id, providerId: "google", clientId: "id", clientSecret: "secret" };
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
    const configs = tenants.map((tenantId) => {
      const credentials = { clientId: `client-of-${tenantId}`, clientSecret: "secret" };
      const body = { tenantId, providerId: "google", ...credentials };
      return api.registerTenantOAuthConfig({ body });
    });
    expect(await Promise.all(configs)).toMatchObject(
      tenants.map((tenantId) => ({ tenantId, clientId: `client-of-${tenantId}` })),
    );
  });

  race(`of ${crowd} tenants with one slug at once, one is created`, async () => {
    const { api, count } = await createWorld(ground);
    const create = () => api.createTenant({ body: { name: "Race", slug: "race" } });
    const answers = await times(() =>
      create().then(
        ({ slug }) => slug,
        ({ body }) => body?.code,
      ),
    );
    expect(answers.sort()).toEqual([...others("TENANT_ALREADY_EXISTS"), "race"]);
    expect(await count("tenant")).toBe(3);
  });

  it(`of ${crowd} people who sign in at once, everybody gets their own session`, async () => {
    const { a, b, browser, signUp, whoIs } = await createWorld(ground);
    const people: { tenantId: string; id: string; email: string }[] = [];
    for (const tenantId of Array(crowd / 2)
      .fill([a.id, b.id])
      .flat()) {
      const { user, email } = await signUp(tenantId);
      people.push({ tenantId, id: user.id, email });
    }
    const found = people.map(async ({ tenantId, email }) => {
      const person = browser();
      const body = { tenantId, email, password: PASSWORD };
      const { data } = await person.post<SignIn>("/tenant/sign-in/email", body);
      return [data.user.id, data.session.userId, (await whoIs(person, null))?.user.id];
    });
    expect(await Promise.all(found)).toEqual(people.map(({ id }) => [id, id, id]));
  });

  it(`a tenant that is deleted while ${crowd} people sign in and up leaves nobody behind`, async () => {
    const { api, a, browser, signUp, rowsOf } = await createWorld(ground);
    const person = { tenantId: a.id, name: "Somebody", password: PASSWORD };
    const email = "there@example.com";
    await signUp(a.id, email);
    let count = 0;
    const visits = times(async () => {
      const fresh = { ...person, email: `new-${++count}@example.com` };
      const answers = await Promise.all([
        browser().post("/tenant/sign-in/email", { ...person, email }),
        browser().post("/tenant/sign-up/email", fresh),
      ]);
      return answers.map(({ status }) => status);
    });
    await api.deleteTenant({ body: { tenantId: a.id } });
    expect(Math.max(...(await visits).flat())).toBeLessThanOrEqual(ground.deadlocks ? 500 : 499);
    for (const model of ["user", "account", "session"]) {
      expect(await rowsOf(model, a.id)).toEqual([]);
    }
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
