import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import {
  type Adapter,
  CHANGES,
  CONFINED,
  CROSSINGS,
  createWorld,
  DOORS,
  everythingBut,
  later,
  type Model,
  PLACES,
  type Row,
} from "./world";

type Data = Record<string, unknown>;

describe.each(databases)("writes at the border, on %s", (database) => {
  describe.each(DOORS)("through %s", (door) => {
    it("R3: a new row belongs to the scope, whatever tenantId its data carries", async () => {
      const world = await createWorld({ database }, door);
      for (const [here, there] of CROSSINGS) {
        const others = await everythingBut(world, here);
        for (const tenantId of [world.ids[there], "", null, undefined, "no-such-tenant"]) {
          for (const model of CONFINED) {
            const data = { ...newRow(model, world.rows[here].user.id), tenantId };
            const created = await world.inside(here, (adapter) => create(adapter, model, data));
            expect(created.tenantId, `${model} in ${here} as ${tenantId}`).toBe(world.ids[here]);
          }
        }
        expect(await everythingBut(world, here)).toEqual(others);
      }
    });

    it("R3: a tenantId in an update never moves a row", async () => {
      const world = await createWorld({ database }, door);
      for (const [here, there] of CROSSINGS) {
        const others = await everythingBut(world, here);
        const tenantId = world.ids[there] ?? "";
        for (const model of CONFINED) {
          const { id } = world.rows[here][model];
          const call = { model, where: [{ field: "id", value: id }] };
          const update = { ...CHANGES[model], tenantId };
          await world.inside(here, async (adapter) => {
            const moved = [
              await adapter.update<Row>({ ...call, update }),
              await adapter.update<Row>({ ...call, update: { tenantId } }),
              await adapter.incrementOne<Row>({ ...call, increment: {}, set: update }),
            ];
            for (const row of moved) {
              expect(row, `${model} from ${here} to ${there}`).toMatchObject({
                ...CHANGES[model],
                id,
                tenantId: world.ids[here],
              });
            }
            expect(await adapter.updateMany({ ...call, update })).toBe(1);
            expect(await adapter.findOne<Row>(call)).toMatchObject({ id });
          });
        }
        expect(await everythingBut(world, here)).toEqual(others);
      }
    });

    it("R8: no session and no account for a user of another side, or for nobody", async () => {
      const world = await createWorld({ database }, door);
      const before = await world.dump();
      for (const [here, there] of CROSSINGS) {
        for (const model of ["session", "account"] as const) {
          for (const userId of [world.rows[there].user.id, "nobody"]) {
            const attempt = world.inside(here, (adapter) =>
              create(adapter, model, newRow(model, userId)),
            );
            await expect(attempt, `${model} in ${here} for ${there}`).rejects.toMatchObject(
              NOT_IN_TENANT,
            );
          }
        }
      }
      expect(await world.dump()).toEqual(before);
    });

    it("R8: a foreign user's name or tenantId beside the id changes nothing", async () => {
      const world = await createWorld({ database }, door);
      const before = await world.dump();
      const data = {
        ...newRow("session", world.rows.b.user.id),
        tenantId: world.ids.b,
        user: world.rows.b.user,
      };
      const attempt = world.inside("a", (adapter) => create(adapter, "session", data));
      await expect(attempt).rejects.toMatchObject(NOT_IN_TENANT);
      expect(await world.dump()).toEqual(before);
    });

    it("R8: a session or an account is not handed to a user of another side later on", async () => {
      const world = await createWorld({ database }, door);
      const before = await world.dump();
      for (const [here, there] of CROSSINGS) {
        const set = { userId: world.rows[there].user.id };
        for (const model of ["session", "account"] as const) {
          const call = { model, where: [{ field: "id", value: world.rows[here][model].id }] };
          const attempts: ((adapter: Adapter) => Promise<unknown>)[] = [
            (adapter) => adapter.update({ ...call, update: set }),
            (adapter) => adapter.updateMany({ ...call, update: set }),
            (adapter) => adapter.incrementOne({ ...call, increment: {}, set }),
          ];
          for (const attempt of attempts) {
            await expect(world.inside(here, attempt)).rejects.toMatchObject(NOT_IN_TENANT);
          }
        }
      }
      expect(await world.dump()).toEqual(before);
    });

    it("R8: a look at a foreign user that finds nothing does not vouch for it", async () => {
      const world = await createWorld({ database }, door);
      const before = await world.dump();
      const { id } = world.rows.b.user;
      const attempt = world.inside("a", async (adapter) => {
        const call = { model: "user", where: [{ field: "id", value: id }] };
        expect(await adapter.findOne(call)).toBeNull();
        expect(await adapter.findMany(call)).toEqual([]);
        expect(await adapter.update({ ...call, update: { name: "x" } })).toBeNull();
        return create(adapter, "session", newRow("session", id));
      });
      await expect(attempt).rejects.toMatchObject(NOT_IN_TENANT);
      expect(await world.dump()).toEqual(before);
    });

    it("R8: a user of the scope gets sessions and accounts, known before or not", async () => {
      const world = await createWorld({ database }, door);
      for (const place of PLACES) {
        const { id } = world.rows[place].user;
        const tenantId = world.ids[place];
        for (const model of ["session", "account"] as const) {
          const expected = { userId: id, tenantId };
          const unseen = await world.inside(place, (adapter) =>
            create(adapter, model, newRow(model, id)),
          );
          expect(unseen).toMatchObject(expected);
          const seen = await world.inside(place, async (adapter) => {
            await adapter.findOne({ model: "user", where: [{ field: "id", value: id }] });
            return create(adapter, model, newRow(model, id));
          });
          expect(seen).toMatchObject(expected);
        }
      }
    });

    it("the platform reads null, never the empty string that is stored", async () => {
      const world = await createWorld({ database }, door);
      const seen = await world.inside("platform", async (adapter) => {
        const { id } = world.rows.platform.user;
        const call = { model: "user", where: [{ field: "id", value: id }] };
        const rows: Data = {
          findOne: await adapter.findOne<Row>(call),
          select: await adapter.findOne<Row>({ ...call, select: ["tenantId"] }),
          findMany: (await adapter.findMany<Row>(call))[0],
          update: await adapter.update<Row>({ ...call, update: { name: "n" } }),
          incrementOne: await adapter.incrementOne<Row>({ ...call, increment: { credits: 1 } }),
        };
        for (const model of CONFINED) {
          rows[`create ${model}`] = await create(adapter, model, newRow(model, id));
        }
        for (const model of ["verification", "account", "session"] as const) {
          const where = [{ field: "id", value: world.rows.platform[model].id }];
          rows[`consumeOne ${model}`] = await adapter.consumeOne<Row>({ model, where });
        }
        return rows;
      });
      for (const [method, row] of Object.entries(seen)) {
        expect(row, method).toMatchObject({ tenantId: null });
      }
      const column = world.instance.database.quote("tenantId");
      // The two that were there and the one made above.
      expect(await world.instance.rows("user", `${column} = ''`)).toBe(3);
      expect(await world.instance.rows("user", `${column} is null`)).toBe(0);
    });
  });

  it("a transaction that fails takes back what it wrote inside the border", async () => {
    const world = await createWorld({ database });
    const before = await world.dump();
    const attempt = world.inside("a", () =>
      world.adapter.transaction(async (adapter) => {
        const where = [{ field: "id", value: world.rows.a.verification.id }];
        await adapter.deleteMany({ model: "verification", where });
        await create(adapter, "session", newRow("session", world.rows.b.user.id));
      }),
    );
    await expect(attempt).rejects.toMatchObject(NOT_IN_TENANT);
    expect(await world.dump()).toEqual(before);
  });
});

const NOT_IN_TENANT = { statusCode: 403, body: { code: "USER_NOT_IN_TENANT" } };

function create(adapter: Adapter, model: Model, data: Data): Promise<Row> {
  return adapter.create<Data, Row>({ model, data });
}

let count = 0;

/** The data of a row that does not exist yet. */
function newRow(model: Model, userId: string): Data {
  const unique = `new-${++count}`;
  const now = new Date();
  const times = { createdAt: now, updatedAt: now };
  if (model === "user") {
    return { name: unique, email: `${unique}@example.com`, emailVerified: false, ...times };
  }
  if (model === "session") return { userId, token: unique, expiresAt: later(), ...times };
  if (model === "account") {
    return { userId, providerId: "credential", accountId: unique, ...times };
  }
  return { identifier: unique, value: unique, expiresAt: later(), ...times };
}
