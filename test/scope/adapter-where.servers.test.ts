import type { Where } from "better-auth/types";
import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import {
  CHANGES,
  CONFINED,
  createWorld,
  DOORS,
  everythingBut,
  idOf,
  PLACES,
  type Row,
} from "./world";

describe.each(databases)("where clauses at the border, on %s", (database) => {
  describe.each(DOORS)("through %s", (door) => {
    it("R3: OR connectors in every position reach no row of another side", async () => {
      const world = await createWorld({ database }, door);
      const others = await everythingBut(world, "a");
      const own = world.rows.a.user.id;
      const clauses = PLACES.map((place) => ({ field: "id", value: world.rows[place].user.id }));
      for (const connectors of eachOf3<"AND" | "OR">("AND", "OR")) {
        for (const order of [[0, 1, 2] as const, [1, 2, 0] as const, [2, 0, 1] as const]) {
          const where = order.map((index, position) => ({
            ...(clauses[index] as Where),
            connector: connectors[position],
          }));
          const label = where.map(({ connector, value }) => `${connector} ${value}`).join(" ");
          await world.inside("a", async (adapter) => {
            const call = { model: "user", where };
            const found = (await adapter.findMany<Row>(call)).map(idOf);
            const allOr = connectors.every((connector) => connector === "OR");
            expect(found, label).toEqual(allOr ? [own] : found.filter((id) => id === own));
            expect(await adapter.count(call), label).toBe(found.length);
            expect([null, own], label).toContain((await adapter.findOne<Row>(call))?.id ?? null);
            const update = { name: "changed" };
            expect(await adapter.updateMany({ ...call, update }), label).toBe(found.length);
            const updated = await adapter.update<Row>({ ...call, update: { name: "again" } });
            expect([null, own], label).toContain(updated?.id ?? null);
            await adapter.incrementOne({ ...call, increment: { credits: 1 } });
          });
        }
      }
      expect(await everythingBut(world, "a")).toEqual(others);
      const anyone = clauses.map((clause) => ({ ...clause, connector: "OR" as const }));
      await world.inside("a", async (adapter) => {
        // The account and the session refer to the user, and go first.
        const theirs = anyone.map((clause) => ({ ...clause, field: "userId" }));
        expect(await adapter.deleteMany({ model: "session", where: theirs })).toBe(1);
        expect(await adapter.consumeOne<Row>({ model: "account", where: theirs })).toMatchObject({
          id: world.rows.a.account.id,
        });
        await adapter.delete({ model: "user", where: anyone });
        expect(await adapter.count({ model: "user", where: anyone })).toBe(0);
      });
      expect(await everythingBut(world, "a")).toEqual(others);
    });

    it("R3: a tenantId in the caller's where clause does not widen the scope", async () => {
      const world = await createWorld({ database }, door);
      const a = String(world.ids.a);
      const b = String(world.ids.b);
      const others = await everythingBut(world, "a");
      const attempts: Where[][] = [
        [{ field: "tenantId", value: b }],
        [{ field: "tenantId", value: "" }],
        [{ field: "tenantId", value: a, operator: "ne" }],
        [{ field: "tenantId", value: [b, ""], operator: "in" }],
        [{ field: "tenantId", value: [a, b, ""], operator: "in" }],
        [{ field: "tenantId", value: "", operator: "contains" }],
        [{ field: "tenantId", value: b, connector: "OR" }],
        [
          { field: "tenantId", value: a, connector: "OR" },
          { field: "tenantId", value: b, connector: "OR" },
          { field: "tenantId", value: "", connector: "OR" },
        ],
      ];
      for (const where of attempts) {
        for (const model of CONFINED) {
          await world.inside("a", async (adapter) => {
            const found = await adapter.findMany<Row>({ model, where });
            const label = `${model} ${JSON.stringify(where)}`;
            expect(found.map(({ tenantId }) => tenantId).filter((id) => id !== a)).toEqual([]);
            expect(await adapter.count({ model, where }), label).toBe(found.length);
            const update = CHANGES[model];
            expect(await adapter.updateMany({ model, where, update }), label).toBe(found.length);
          });
        }
      }
      for (const where of attempts) {
        await world.inside("a", (adapter) => adapter.deleteMany({ model: "verification", where }));
        await world.inside("a", (adapter) => adapter.delete({ model: "session", where }));
      }
      expect(await everythingBut(world, "a")).toEqual(others);
    });
  });
});

function eachOf3<T>(...values: T[]): [T, T, T][] {
  return values.flatMap((x) => values.flatMap((y) => values.map((z): [T, T, T] => [x, y, z])));
}
