import type { BetterAuthPlugin } from "better-auth";
import { describe, expect, it } from "vitest";
import { databases } from "../support/database";
import { combine } from "../support/matrix";
import { PLACES, type Place, type WorldOptions } from "../support/world";
import {
  type Adapter,
  byId,
  CHANGES,
  CONFINED,
  CROSSINGS,
  create,
  DOORS,
  expectNothing,
  type Model,
  NOT_IN_TENANT,
  newRow,
  type Row,
  shareBench,
} from "./bench";

type Joined = Row & { user?: Row | null; account?: Row[]; session?: Row[] };

/** A table of somebody else's plugin, outside of the border, that points at users. */
const notes = {
  id: "notes",
  schema: {
    note: {
      fields: {
        text: { type: "string", required: true },
        userId: {
          type: "string",
          required: true,
          references: { model: "user", field: "id", onDelete: "cascade" },
        },
      },
    },
  },
} satisfies BetterAuthPlugin;

const sessionWithUser = (row: Row) => ({
  model: "session",
  where: byId(row),
  join: { user: true as const },
});
const userWithRest = (row: Row) => ({
  model: "user",
  where: byId(row),
  join: { account: true as const, session: true as const },
});

/** The same row by findOne and by findMany. */
async function findBothWays(
  adapter: Adapter,
  call: ReturnType<typeof sessionWithUser> | ReturnType<typeof userWithRest>,
): Promise<Joined[]> {
  const one = await adapter.findOne<Joined>(call);
  const many = await adapter.findMany<Joined>(call);
  expect(many).toHaveLength(1);
  return [one, ...many].map((row) => row ?? expect.fail("found nothing"));
}

/** better-auth joins in the database when it is told to, and by further queries otherwise. */
const CASES = databases.flatMap((kind) =>
  [true, false].flatMap((joins) => DOORS.map((door) => ({ kind, joins, door }))),
);

describe.each(CASES)("joins in the database: $joins, through $door on $kind", (options) => {
  const { kind, joins, door } = options;
  const auth = { advanced: { database: { joins } } };
  const bench = shareBench(
    { auth, plugins: [notes], tenant: { sharedModels: ["note"] } },
    kind,
    door,
  );
  const { world, inside, populate, handTo } = bench;

  it("R3: rows of the scope come with what is joined to them", async () => {
    const rows = await populate();
    for (const place of PLACES) {
      const { user, session, account } = rows[place];
      const tenantId = world.ids[place];
      await inside(place, async (adapter) => {
        for (const found of await findBothWays(adapter, sessionWithUser(session))) {
          expect(found).toMatchObject({ id: session.id, tenantId });
          expect(found.user).toMatchObject({ id: user.id, email: user.email, tenantId });
        }
        for (const found of await findBothWays(adapter, userWithRest(user))) {
          expect(found).toMatchObject({ id: user.id, tenantId });
          expect(found.account).toMatchObject([{ id: account.id, tenantId }]);
          expect(found.session).toMatchObject([{ id: session.id, tenantId }]);
        }
      });
    }
  });

  it("R3: a session that points at a user of another side comes without the user", async () => {
    const rows = await populate();
    for (const [here, there] of CROSSINGS) {
      const { session } = rows[here];
      await handTo(rows[there].user, "session", session);
      await inside(here, async (adapter) => {
        for (const found of await findBothWays(adapter, sessionWithUser(session))) {
          expect(found).toMatchObject({ id: session.id, tenantId: world.ids[here] });
          expect(found.user, `from ${here} to ${there}`).toBeNull();
        }
      });
    }
  });

  it("R3: accounts and sessions of another side are not joined to a user", async () => {
    for (const [here, there] of CROSSINGS) {
      const rows = await populate();
      const { user, account, session } = rows[here];
      for (const model of ["account", "session"] as const) {
        await handTo(user, model, rows[there][model]);
      }
      await inside(here, async (adapter) => {
        for (const found of await findBothWays(adapter, userWithRest(user))) {
          const ids = [found.account, found.session].map((joined) => joined?.map(({ id }) => id));
          expect(ids, `from ${here} to ${there}`).toEqual([[account.id], [session.id]]);
        }
      });
    }
  });

  it("R3: a join out of a table without tenants brings no user of another side", async () => {
    const rows = await populate();
    for (const place of PLACES) {
      const data = { text: place, userId: rows[place].user.id };
      await bench.adapter().create({ model: "note", data });
    }
    for (const here of PLACES) {
      const seen = await inside(here, (adapter) =>
        adapter.findMany<Joined & { text: Place }>({ model: "note", join: { user: true } }),
      );
      expect(seen).toHaveLength(3);
      for (const { text, user } of seen) {
        expect(user?.id ?? null).toBe(text === here ? rows[here].user.id : null);
      }
    }
  });

  it("R8: a user who came in by a join of another side is not vouched for", async () => {
    const rows = await populate();
    const { user } = rows.globex;
    await handTo(user, "session", rows.acme.session);
    const attempt = () =>
      inside("acme", async (adapter) => {
        await adapter.findOne(sessionWithUser(rows.acme.session));
        return create(adapter, "account", newRow("account", user.id));
      });
    await world.unchanged(() => expect(attempt()).rejects.toMatchObject(NOT_IN_TENANT));
  });

  it("R3: over HTTP, a session that points at a user of another side is no session", async () => {
    const victim = await world.signUp("globex", "victim@example.com");
    const person = await world.signUp("acme", "person@example.com");
    const { query, quote } = world.database;
    await query(
      `update ${quote("session")} set ${quote("userId")} = ? where ${quote("userId")} = ?`,
      [victim.id, person.id],
    );
    for (const place of ["platform", "acme"] as const) {
      expect((await world.at(place, person).get("/list-accounts")).status).toBe(401);
      expect(await world.whoIs(person, place)).toBe(null);
    }
  });
});

const TABLES: Record<Model, string> = {
  user: "people",
  session: "visits",
  account: "keys_of_people",
  verification: "proofs",
};
const tables = Object.fromEntries(
  CONFINED.map((model) => [model, { modelName: TABLES[model] }]),
) satisfies WorldOptions["auth"];
const columns = Object.fromEntries(
  CONFINED.map((model) => [model, { fields: { tenantId: "tenant_id" } }]),
);

const RENAMED = combine(
  [
    { what: "tables", schema: {} },
    { what: "tables and tenant columns", schema: columns },
  ],
  [true, false],
  databases,
).map(([names, joins, kind]) => ({ ...names, joins, kind }));

describe.each(RENAMED)("other names for $what on $kind, joins: $joins", (options) => {
  const { kind, joins, schema } = options;
  const auth = { ...tables, advanced: { database: { joins } } };
  const { world, inside, populate, handTo } = shareBench({ auth, tenant: { schema } }, kind);

  it("R3: rows are confined by the model's name and by the table's", async () => {
    const rows = await populate();
    await world.unchanged(async () => {
      for (const [here, there] of CROSSINGS) {
        for (const key of CONFINED) {
          const stored = (await world.rowsIn(here, key)).length;
          expect(stored).toBeGreaterThan(0);
          for (const model of [key, TABLES[key]]) {
            const label = `${model} from ${here} to ${there}`;
            const own = { model, where: byId(rows[here][key]) };
            const foreign = { model, where: byId(rows[there][key]) };
            await inside(here, async (adapter) => {
              const tenantId = world.ids[here];
              expect(await adapter.findOne<Row>(own), label).toMatchObject({ tenantId });
              expect(await adapter.count({ model }), label).toBe(stored);
              await expectNothing(adapter, foreign, CHANGES[key], label);
            });
          }
        }
      }
    });
  });

  it("R8: no session for a foreign user under the table's name either", async () => {
    const { user } = (await populate()).globex;
    for (const model of ["session", TABLES.session]) {
      const data = newRow("session", user.id);
      const attempt = () => inside("acme", (adapter) => adapter.create({ model, data }));
      await world.unchanged(() => expect(attempt()).rejects.toMatchObject(NOT_IN_TENANT));
    }
  });

  it("R3: joined rows are confined by both names", async () => {
    const rows = await populate();
    const { session, user } = rows.acme;
    const joined = async (model: string, join: string) => {
      const call = { model, where: byId(session), join: { [join]: true as const } };
      const found = await inside("acme", (adapter) => adapter.findOne<Record<string, Row>>(call));
      return found?.[join];
    };
    const names = ["session", TABLES.session].flatMap((model) =>
      ["user", TABLES.user].map((join) => [model, join] as const),
    );
    for (const [model, join] of names) {
      // better-auth itself joins in the database by the model's name only.
      if (joins && join !== "user") continue;
      expect(await joined(model, join), `${model}, ${join}`).toMatchObject({ id: user.id });
    }
    await handTo(rows.globex.user, "session", session);
    for (const [model, join] of names) {
      expect(await joined(model, join), `${model}, ${join}`).toBeNull();
    }
  });

  it("R3: over HTTP, people of two tenants and of the platform stay apart", async () => {
    const people = await world.janes();
    for (const place of PLACES) {
      const { id, email } = people[place];
      const expected = { id, email, tenantId: world.ids[place] };
      expect(await world.whoIs(people[place])).toEqual(expected);
    }
    const stored = await world.rows(TABLES.user, "email = ?", [people.acme.email]);
    expect(stored).toBe(3);
  });
});
