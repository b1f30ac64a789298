import type { BetterAuthPlugin } from "better-auth";
import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import { describe, expect, it } from "vitest";
import { runInScope, scopeOf } from "../../../src/core/request";
import { runInTenant } from "../../../src/index";
import { countingIds, type DatabaseKind, databases, idKindsOn } from "../../support/database";
import { ID_IS_REFUSED } from "../../support/differences";
import { PASSWORD } from "../../support/instance";
import { combine } from "../../support/matrix";
import { createMemory } from "../../support/stores";
import {
  createWorld,
  EMAIL,
  PLACES,
  type Place,
  shareWorld,
  type WorldOptions,
} from "../../support/world";

const MODELS = ["user", "session", "account", "verification"] as const;
type Model = (typeof MODELS)[number];
type Data = Record<string, unknown>;
type Row = Data & { id: string; tenantId: string | null };
type Adapter = DBTransactionAdapter;

const NOT_IN_TENANT = { statusCode: 403, body: { code: "USER_NOT_IN_TENANT" } };
const byId = ({ id }: { id: string }) => [{ field: "id", value: id }];

let count = 0;

/** Makes a row. Every value is one of a kind. */
function create(adapter: Adapter, model: Model, userId = "", more: Data = {}): Promise<Row> {
  const unique = `new-${++count}`;
  const times = { createdAt: new Date(), updatedAt: new Date() };
  const expiresAt = new Date(Date.now() + 3_600_000);
  const rows: Record<Model, Data> = {
    user: { name: unique, email: `${unique}@example.com`, emailVerified: false },
    session: { userId, token: unique, expiresAt },
    account: { userId, providerId: "credential", accountId: unique },
    verification: { identifier: unique, value: unique, expiresAt },
  };
  return adapter.create<Data, Row>({ model, data: { ...rows[model], ...times, ...more } });
}

/** The adapter of a world that the tests of a suite share, each with rows of its own. */
function shareBench({ auth, ...options }: WorldOptions, kind: DatabaseKind) {
  const credits = { type: "number", defaultValue: 10, input: false } as const;
  const user = { ...auth?.user, additionalFields: { credits } };
  const world = shareWorld({ ...options, auth: { ...auth, user } }, kind);

  /** The type in the context says which options it was made with, and fits no other adapter. */
  const adapter = () => world.context.adapter as unknown as DBAdapter;

  /** Runs a function inside a tenant or on the platform. */
  const inside = <T>(place: Place, run: (adapter: Adapter) => Promise<T>): Promise<T> =>
    runInScope(scopeOf(world.ids[place]), () => run(adapter()));

  const settle = (place: Place, email: string) =>
    inside(place, async (here): Promise<Record<Model, Row>> => {
      const user = await create(here, "user", "", { email });
      const more = (model: Model) => create(here, model, user.id);
      const [session, account] = [await more("session"), await more("account")];
      return { user, session, account, verification: await more("verification") };
    });

  return {
    world,
    adapter,
    inside,

    /** Somebody at each place with a row in every table, all of one e-mail. */
    async populate() {
      const email = `everywhere-${++count}@example.com`;
      const rows = {} as Record<Place, Record<Model, Row>>;
      for (const place of PLACES) rows[place] = await settle(place, email);
      return { email, ...rows };
    },

    /** Breaks the rules on purpose, without isolation: gives a row to another user. */
    async handTo({ id: userId }: Row, model: Model, { id }: Row) {
      const { query, quote } = world.database;
      const table = quote(world.context.tables[model]?.modelName ?? model);
      const set = `${quote("userId")} = ? where ${quote("id")} = ?`;
      await query(`update ${table} set ${set}`, [userId, id]);
    },
  };
}

// That it answers in a scope as a plain adapter over the rows of that scope, whatever the clauses,
// joins, writes and transactions: adapter-properties.
describe.each(databases)("the isolated adapter on %s", (kind) => {
  const { world, adapter, inside, populate } = shareBench({}, kind);

  it("R3: the same email is another user in each tenant", async () => {
    const { email } = await populate();
    const call = { model: "user", where: [{ field: "email", value: email }] };
    for (const place of PLACES) {
      const tenantId = world.ids[place];
      await world.touchesOnly(place, () =>
        inside(place, async (adapter) => {
          const own = await adapter.findOne<Row>(call);
          expect(own).toMatchObject({ email, tenantId });
          // The row that comes back from a write is the row that was written, too.
          const updated = await adapter.update<Row>({ ...call, update: { name: place } });
          expect(updated).toMatchObject({ id: own?.id, name: place, tenantId });
          const more = await adapter.incrementOne<Row>({ ...call, increment: { credits: 5 } });
          expect(more).toMatchObject({ id: own?.id, credits: 15, tenantId });
          const consumed = await adapter.consumeOne<Row>(call);
          expect(consumed).toMatchObject({ id: own?.id, name: place, tenantId });
        }),
      );
    }
  });

  it("R3: a transaction inside a transaction is isolated as well", async () => {
    await populate();
    const rename = { model: "user", where: [], update: { name: "all" } };
    await world.touchesOnly("acme", () =>
      inside("acme", (outer) =>
        (outer as DBAdapter).transaction((inner) =>
          // Left out of its type, and there all the same.
          (inner as DBAdapter).transaction((innermost) => innermost.updateMany(rename)),
        ),
      ),
    );
  });

  it("R4: outside of a request it is the platform, which reads null and stores no null", async () => {
    const { platform, acme } = await populate();
    const call = { model: "user", where: byId(platform.user) };
    const made = await create(adapter(), "user");
    const seen = [
      made,
      await adapter().findOne<Row>(call),
      await adapter().findOne<Row>({ ...call, select: ["tenantId"] }),
      ...(await adapter().findMany<Row>({ model: "user" })),
      await adapter().update<Row>({ ...call, update: { name: "n" } }),
      await adapter().incrementOne<Row>({ ...call, increment: { credits: 1 } }),
      await adapter().consumeOne<Row>({ model: "account", where: byId(platform.account) }),
    ];
    expect(new Set(seen.map((row) => row?.tenantId))).toEqual(new Set([null]));
    expect(await adapter().findOne({ ...call, where: byId(acme.user) })).toBeNull();
    expect((await world.rowsIn("platform", "user")).map(({ id }) => id)).toContain(made.id);
  });

  it("R8: no session and no account for a user of another tenant, or without a user, now or later", async () => {
    const rows = await populate();
    await world.unchanged(async () => {
      for (const [here, there, model] of [
        ["acme", "globex", "session"],
        ["globex", "platform", "account"],
        ["platform", "acme", "session"],
      ] as const) {
        const { user } = rows[there];
        const beside = { tenantId: world.ids[there], user };
        const set = { userId: user.id };
        const call = { model, where: byId(rows[here][model]), increment: {}, update: set, set };
        const look = { model: "user", where: byId(user) };
        const attempts: ((adapter: Adapter) => Promise<unknown>)[] = [
          (adapter) => create(adapter, model, "nobody"),
          // Neither their name nor their tenant beside the id changes anything.
          (adapter) => create(adapter, model, user.id, beside),
          (adapter) => adapter.update(call),
          (adapter) => adapter.updateMany(call),
          (adapter) => adapter.incrementOne(call),
          // A look that finds nothing does not vouch for anybody.
          async (adapter) => {
            expect([await adapter.findOne(look), await adapter.findMany(look)]).toEqual([null, []]);
            return create(adapter, model, user.id);
          },
        ];
        for (const [n, attempt] of attempts.entries()) {
          const label = `${model} in ${here} for ${there}, attempt ${n}`;
          await expect(inside(here, attempt), label).rejects.toMatchObject(NOT_IN_TENANT);
        }
      }
    });
  });
});

type Joined = Row & { user?: Row | null; account?: Row[]; session?: Row[] };
/** A plugin with a table that points at users, and at another one without tenants. */
const notes: BetterAuthPlugin = {
  id: "notes",
  schema: {
    topic: { fields: { text: { type: "string", required: true } } },
    note: {
      fields: {
        text: { type: "string", required: true },
        topicId: { type: "string", required: true, references: { model: "topic", field: "id" } },
        userId: { type: "string", required: true, references: { model: "user", field: "id" } },
      },
    },
  },
};

/** better-auth joins in the database when it is told to, and by further queries otherwise. */
describe.each(combine([true, false], databases).map(([joins, kind]) => ({ joins, kind })))(
  "rows that were given to a user of another tenant, joins: $joins, on $kind",
  ({ joins, kind }) => {
    const auth = { advanced: { database: { joins } } };
    const bench = shareBench(
      { auth, plugins: [notes], tenant: { sharedModels: ["note", "topic"] } },
      kind,
    );
    const { world, inside, populate, handTo } = bench;

    it("R3, R8: a session comes without its user, who is not vouched for", async () => {
      const rows = await populate();
      for (const [here, there] of [
        ["acme", "globex"],
        ["platform", "acme"],
      ] as const) {
        const join = { user: true as const };
        const call = { model: "session", where: byId(rows[here].session), join };
        const find = () => inside(here, (adapter) => adapter.findMany<Joined>(call));
        expect(await find()).toMatchObject([{ user: { id: rows[here].user.id } }]);
        await handTo(rows[there].user, "session", rows[here].session);
        expect(await find()).toMatchObject([{ id: rows[here].session.id, user: null }]);
        const attempt = inside(here, async (adapter) => {
          expect(await adapter.findOne<Joined>(call)).toMatchObject({ user: null });
          return create(adapter, "account", rows[there].user.id);
        });
        await expect(attempt).rejects.toMatchObject(NOT_IN_TENANT);
      }
    });

    it("R3: a user comes with accounts and sessions of the scope alone", async () => {
      const rows = await populate();
      const { user, account, session } = rows.acme;
      for (const model of ["account", "session"] as const) {
        await handTo(user, model, rows.globex[model]);
      }
      const join = { account: true as const, session: true as const };
      const call = { model: "user", where: byId(user), join };
      const found = await inside("acme", async (adapter) => [
        await adapter.findOne<Joined>(call),
        ...(await adapter.findMany<Joined>(call)),
      ]);
      const ids = found.map((row) =>
        [row?.account, row?.session].map((it) => it?.map(({ id }) => id)),
      );
      expect(ids).toEqual(Array(2).fill([[account.id], [session.id]]));
    });

    it("R3: a join from a table without tenants returns no user of another tenant", async () => {
      const rows = await populate();
      const topic: Data = { text: "any" };
      const { id: topicId } = await bench.adapter().create({ model: "topic", data: topic });
      for (const place of PLACES) {
        const data = { text: place, topicId, userId: rows[place].user.id };
        await bench.adapter().create({ model: "note", data });
      }
      for (const here of PLACES) {
        const call = { model: "note", join: { topic: true as const, user: true as const } };
        const seen = await inside(here, (adapter) => adapter.findMany<Joined>(call));
        expect(seen.map(({ text, user }) => [text, user?.id]).sort()).toEqual(
          PLACES.map((place) => [place, place === here ? rows[here].user.id : undefined]).sort(),
        );
      }
    });

    it("R3: over HTTP, such a session is none", async () => {
      const victim = await world.signUp("globex", `${++count}@example.com`);
      const person = await world.signUp("acme", `${count}@example.com`);
      const { query, quote } = world.database;
      const moved = `update ${quote("session")} set ${quote("userId")} = ? where token = ?`;
      await query(moved, [victim.id, person.token]);
      for (const place of ["platform", "acme"] as const) {
        expect((await world.at(place, person).get("/list-accounts")).status).toBe(401);
        expect(await world.whoIs(person, place)).toBe(null);
      }
    });
  },
);

const TABLES = { user: "people", session: "visits", account: "keys", verification: "proofs" };
const RENAMED: WorldOptions = {
  auth: Object.fromEntries(MODELS.map((model) => [model, { modelName: TABLES[model] }])),
  tenant: {
    schema: Object.fromEntries(
      MODELS.map((model) => [model, { fields: { tenantId: "tenant_id" } }]),
    ),
  },
};

describe.each(databases)("other names for tables and tenant columns on %s", (kind) => {
  const { world, inside, populate, handTo } = shareBench(RENAMED, kind);

  it("R3: rows and joined rows are isolated by the name of the model and of the table", async () => {
    const rows = await populate();
    const find = (model: string, { id }: Row, join?: string) =>
      inside("acme", (adapter) => {
        const joined = join && { join: { [join]: true as const } };
        return adapter.findOne<Row>({ model, where: byId({ id }), ...joined });
      });
    for (const key of MODELS) {
      for (const model of [key, TABLES[key]]) {
        const { acme: tenantId } = world.ids;
        expect(await find(model, rows.acme[key]), model).toMatchObject({ tenantId });
        expect(await find(model, rows.globex[key]), model).toBeNull();
      }
    }
    const { session, user } = rows.acme;
    const joined = async (join: string) => (await find("session", session, join))?.[join];
    const both = () => Promise.all(["user", TABLES.user].map(joined));
    expect(await both()).toMatchObject([{ id: user.id }, { id: user.id }]);
    await handTo(rows.globex.user, "session", session);
    expect(await both()).toEqual([null, null]);
  });
});

it.each([
  ["takes no new properties", Object.preventExtensions],
  ["is frozen", Object.freeze],
  ["swallows what is written", (inner: object) => new Proxy(inner, { set: () => true })],
])("an adapter that %s is refused at start", async (_, close) => {
  const { database } = createMemory((inner) => close({ ...inner }) as DBAdapter);
  const start = createWorld({ database, migrate: false });
  await expect(start).rejects.toThrow("so it cannot be isolated");
});

it("an application's own JSON fields, called like models, are not taken for joins", async () => {
  const talks = [{ title: "Opening" }, { title: "Closing", tenantId: "somebody's" }];
  const field = { type: "json", required: false } as const;
  const names = ["sessions", "accounts", "verification"];
  const additionalFields = Object.fromEntries(names.map((name) => [name, field]));
  const written = Object.fromEntries(names.map((name) => [name, talks]));
  const { at, ids } = await createWorld({ auth: { user: { additionalFields } } });
  for (const place of ["acme", "platform"] as const) {
    const tab = at(place);
    const body = { name: "Somebody", email: EMAIL, password: PASSWORD, ...written };
    for (const { data } of [
      await tab.post("/sign-up/email", body),
      await tab.get("/get-session"),
    ]) {
      expect(data.user, place).toMatchObject({ ...written, tenantId: ids[place] });
    }
  }
});

const FORMS = databases.flatMap((database) =>
  idKindsOn(database).flatMap((ids) => (ids === "text" ? [] : [[ids, database] as const])),
);

it.each(FORMS)(
  "R8: an id of the wrong form is no user's, where ids are %s, on %s",
  async (generateId, database) => {
    const auth = { advanced: { database: { generateId } } };
    const { context, ids } = await createWorld({ auth, database });
    const { adapter } = context;
    const data = {
      token: "t",
      expiresAt: new Date(),
      createdAt: new Date(),
      updatedAt: new Date(),
    };
    for (const userId of ["xyz", "99999999999999999999", "x\0"]) {
      const made = runInTenant(ids.acme, () =>
        adapter.create({ model: "session", data: { ...data, userId } }),
      );
      await expect(made).rejects.toMatchObject({ body: { code: "USER_NOT_IN_TENANT" } });
    }
  },
);

describe.each(databases)("the id of a row on %s", (kind) => {
  const { inside, populate } = shareBench({}, kind);

  it("never changes, whichever code writes", async () => {
    const rows = await populate();
    for (const model of MODELS) {
      const row = rows.acme[model];
      const set = { id: "another", createdAt: new Date(1e12) };
      const call = { model, where: byId(row), increment: {}, update: set, set };
      for (const method of ["update", "updateMany", "incrementOne"] as const) {
        await inside("acme", (adapter) => adapter[method](call as never));
        const kept = await inside("acme", (adapter) => adapter.findOne<Row>(call));
        expect(kept, `${method} of ${model}`).toMatchObject({ id: row.id });
      }
    }
  });

  // threat: whoever chooses the number that the next person gets leaves something behind for them.
  it("is chosen by no caller, be it an administrator or an operator", async () => {
    const generateId = kind === "sqlite" ? countingIds() : ("serial" as const);
    const auth = { advanced: { disableOriginCheck: false, database: { generateId } } };
    const own = await createWorld({ auth, database: kind });
    const victim = await own.signUp("globex", "before@example.com");
    for (const place of ["acme", "platform"] as const) {
      const admin = await own.as("admin", place);
      for (const [n, id] of [2147483647, "5000", "", -7, null, { a: 1 }].entries()) {
        const body = { email: `made-${n}@example.com`, name: "Made", password: PASSWORD };
        const made = await admin.post<{ user: Row }>("/admin/create-user", {
          ...body,
          data: { id },
        });
        expect(made.status, JSON.stringify(made.data)).toBe(200);
        const userId = made.data.user.id;
        expect(Number(userId)).toBeLessThan(1000);
        expect(Number(userId)).toBeGreaterThan(Number(victim.id));
        const changed = await admin.post<Row>("/admin/update-user", { userId, data: { id } });
        const expected = ID_IS_REFUSED ? [400, undefined] : [200, userId];
        expect([changed.status, changed.data.id], JSON.stringify(id)).toEqual(expected);
      }
    }
    const next = await own.signUp("globex", "after@example.com");
    expect(Number(next.id)).toBeLessThan(1000);
  });

  it("is chosen by the server's own code, and by hooks", async () => {
    const before = async (user: Data) =>
      user.name === "Hooked" ? { data: { ...user, id: "chosen-by-a-hook" } } : undefined;
    const databaseHooks = { user: { create: { before } } } as object;
    const own = await createWorld({ auth: { databaseHooks }, database: kind });
    const hooked = await own.signUp("acme", "hooked@example.com", { name: "Hooked" });
    expect(hooked.id).toBe("chosen-by-a-hook");
    const seed = { id: "chosen-by-a-seed", name: "Seed", email: "seed@example.com" };
    const source = { method: "admin" } as const;
    const { internalAdapter } = own.context;
    const tenantId = own.ids.acme;
    const user = await runInTenant(tenantId, () => internalAdapter.createUser(seed, source));
    expect(user).toMatchObject({ id: seed.id, tenantId });
    const account = { id: "an-account", userId: user.id, providerId: "p", accountId: "1" };
    const linked = await runInTenant(tenantId, () => internalAdapter.linkAccount(account));
    expect(linked).toMatchObject(account);
    const body = { email: "api@example.com", name: "Api", data: { id: "chosen-by-a-call" } };
    expect((await own.auth.api.createUser({ body })).user.id).toBe("chosen-by-a-call");
  });
});
