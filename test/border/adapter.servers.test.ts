import { describe, expect, it } from "vitest";
import { databases } from "../support/database";
import { PLACES, type Place } from "../support/world";
import {
  type Adapter,
  byId,
  CHANGES,
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

/** What a row can be looked up by. */
const LOOKUPS = Object.entries({
  user: ["id", "email"],
  session: ["id", "token", "userId"],
  account: ["id", "accountId", "userId"],
  verification: ["id", "identifier", "value"],
}).flatMap(([model, fields]) => fields.map((field) => [model as Model, field] as const));

const idsOf = (rows: { id?: unknown }[] = []) => rows.map(({ id }) => id).sort();

const CASES = databases.flatMap((kind) => DOORS.map((door) => [door, kind] as const));

// That it answers in a scope as a plain adapter over the rows of that scope, whatever the clauses,
// joins and writes: adapter-properties.
describe.each(CASES)("the confined adapter, through %s on %s", (door, kind) => {
  const bench = shareBench({}, kind, door);
  const { world, inside, populate } = bench;

  it("R3, R4: neither finds nor changes nor deletes anything of another side, by any key", async () => {
    const rows = await populate();
    await world.unchanged(async () => {
      for (const [from, to] of CROSSINGS) {
        for (const [model, field] of LOOKUPS) {
          const call = { model, where: [{ field, value: String(rows[to][model][field]) }] };
          const label = `${model} by ${field} from ${from} to ${to}`;
          await inside(from, (adapter) => expectNothing(adapter, call, CHANGES[model], label));
        }
      }
    });
  });

  it("R3: the same e-mail is another person in each place", async () => {
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
          expect(await adapter.updateMany({ ...call, update: { image: "i" } })).toBe(1);
          const more = await adapter.incrementOne<Row>({ ...call, increment: { credits: 5 } });
          expect(more).toMatchObject({ id: own?.id, credits: 15, tenantId });
          const consumed = await adapter.consumeOne<Row>(call);
          expect(consumed).toMatchObject({ id: own?.id, name: place, image: "i", tenantId });
        }),
      );
    }
  });

  it("an update or a deletion of no row in particular is one of no row", async () => {
    await populate();
    // This is better-auth's contract of `update`. The clause of the border must not break it.
    const call = { model: "user", where: [], update: { name: "all" } };
    await world.unchanged(async () => {
      expect(await inside("acme", (adapter) => adapter.update(call))).toBeNull();
      await inside("acme", (adapter) => adapter.delete({ model: "session", where: [] }));
    });
  });

  it("R4: without any scope, outside of a request, it is the platform", async () => {
    const rows = await populate();
    await world.touchesOnly("platform", () =>
      bench.through(async (adapter) => {
        for (const [model, field] of LOOKUPS) {
          const by = (row: Row) => ({ model, where: [{ field, value: String(row[field]) }] });
          const { id } = rows.platform[model];
          const own = await adapter.findOne<Row>(by(rows.platform[model]));
          expect(own).toMatchObject({ id, tenantId: null });
          await expectNothing(adapter, by(rows.acme[model]), CHANGES[model], `${model} ${field}`);
        }
        const all = await adapter.findMany<Row>({ model: "user" });
        expect(new Set(all.map(({ tenantId }) => tenantId))).toEqual(new Set([null]));
        expect((await create(adapter, "user", newRow("user", ""))).tenantId).toBeNull();
      }),
    );
  });

  it("leaves tables alone that belong to nobody's tenant", async () => {
    const tenants = await inside("acme", (adapter) =>
      adapter.findMany<{ slug: string }>({ model: "tenant" }),
    );
    expect(tenants.map(({ slug }) => slug).sort()).toEqual(["acme", "globex"]);
  });

  it("R8: no session and no account for a user of another side, or for nobody, now or later", async () => {
    const rows = await populate();
    await world.unchanged(async () => {
      for (const [here, there] of CROSSINGS) {
        const { user, ...foreign } = rows[there];
        const beside = { tenantId: world.ids[there], user };
        for (const model of ["session", "account"] as const) {
          const call = { model, where: byId(rows[here][model]) };
          const set = { userId: user.id };
          const attempts: ((adapter: Adapter) => Promise<unknown>)[] = [
            (adapter) => create(adapter, model, newRow(model, user.id)),
            (adapter) => create(adapter, model, newRow(model, "nobody")),
            // Neither their name nor their tenant beside the id changes anything.
            (adapter) => create(adapter, model, { ...newRow(model, user.id), ...beside }),
            (adapter) => adapter.update({ ...call, update: set }),
            (adapter) => adapter.updateMany({ ...call, update: set }),
            (adapter) => adapter.incrementOne({ ...call, increment: {}, set }),
          ];
          expect(foreign[model].userId).toBe(user.id);
          for (const [n, attempt] of attempts.entries()) {
            const label = `${model} in ${here} for ${there}, attempt ${n}`;
            await expect(inside(here, attempt), label).rejects.toMatchObject(NOT_IN_TENANT);
          }
        }
      }
    });
  });

  it("R8: a look at a foreign user that finds nothing does not vouch for it", async () => {
    const { user } = (await populate()).globex;
    const attempt = () =>
      inside("acme", async (adapter) => {
        const call = { model: "user", where: byId(user) };
        expect(await adapter.findOne(call)).toBeNull();
        expect(await adapter.findMany(call)).toEqual([]);
        expect(await adapter.update({ ...call, update: { name: "x" } })).toBeNull();
        return create(adapter, "session", newRow("session", user.id));
      });
    await world.unchanged(() => expect(attempt()).rejects.toMatchObject(NOT_IN_TENANT));
  });

  it("R8: a user of the scope gets sessions and accounts, known before or not", async () => {
    const rows = await populate();
    for (const place of PLACES) {
      const { id } = rows[place].user;
      const where = byId({ id });
      for (const model of ["session", "account"] as const) {
        for (const look of [undefined, { where }, { where, select: ["id"] }]) {
          const made = await inside(place, async (adapter) => {
            if (look) expect(await adapter.findMany({ model: "user", ...look })).toHaveLength(1);
            return create(adapter, model, newRow(model, id));
          });
          expect(made).toMatchObject({ userId: id, tenantId: world.ids[place] });
          expect(idsOf(await world.rowsIn(place, model))).toContain(made.id);
        }
      }
    }
  });

  it("the platform reads null, never the empty string that is stored", async () => {
    const rows = (await populate()).platform;
    const call = { model: "user", where: byId(rows.user) };
    const seen = await inside("platform", async (adapter) => [
      await adapter.findOne<Row>(call),
      await adapter.findOne<Row>({ ...call, select: ["tenantId"] }),
      ...(await adapter.findMany<Row>(call)),
      await adapter.update<Row>({ ...call, update: { name: "n" } }),
      await adapter.incrementOne<Row>({ ...call, increment: { credits: 1 } }),
      await create(adapter, "session", newRow("session", rows.user.id)),
      await adapter.consumeOne<Row>({ model: "account", where: byId(rows.account) }),
    ]);
    expect(seen.map((row) => row?.tenantId)).toEqual(Array(7).fill(null));
    const column = world.database.quote("tenantId");
    expect(await world.rows("user", `${column} = ''`)).toBeGreaterThanOrEqual(2);
    expect(await world.rows("user", `${column} is null`)).toBe(0);
  });

  it.runIf(door === "the adapter")(
    "a transaction that fails takes back what it wrote",
    async () => {
      const rows = await populate();
      const attempt = () =>
        inside("acme", () =>
          bench.adapter().transaction(async (adapter) => {
            const where = byId(rows.acme.verification);
            expect(await adapter.deleteMany({ model: "verification", where })).toBe(1);
            await create(adapter, "session", newRow("session", rows.globex.user.id));
          }),
        );
      await world.unchanged(() => expect(attempt()).rejects.toMatchObject(NOT_IN_TENANT));
    },
  );

  it.runIf(door === "the adapter")("scopes side by side in one process stay apart", async () => {
    const { email } = await populate();
    const call = { model: "user", where: [{ field: "email", value: email }] };
    const asked = Array.from({ length: 30 }, (_, n) => PLACES[n % 3] as Place);
    const found = await Promise.all(
      asked.map((place) => inside(place, (here) => here.findOne<Row>(call))),
    );
    expect(found.map((row) => row?.tenantId)).toEqual(asked.map((place) => world.ids[place]));
  });
});
