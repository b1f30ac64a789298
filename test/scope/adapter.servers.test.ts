import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import {
  CHANGES,
  CONFINED,
  CROSSINGS,
  createWorld,
  DOORS,
  everythingBut,
  idOf,
  LOOKUPS,
  PLACES,
  type Place,
  type Row,
  SHARED_EMAIL,
} from "./world";

describe.each(databases)("the confined adapter on %s", (database) => {
  describe.each(DOORS)("through %s", (door) => {
    it("R3: looks up what is on its own side", async () => {
      const world = await createWorld({ database }, door);
      for (const place of PLACES) {
        for (const [model, field] of LOOKUPS) {
          const own = world.rows[place][model];
          const call = { model, where: [{ field, value: String(own[field]) }] };
          await world.inside(place, async (adapter) => {
            const label = `${model} by ${field} on ${place}`;
            expect(await adapter.findOne<Row>(call), label).toMatchObject({ id: own.id });
            expect((await adapter.findMany<Row>(call)).map(idOf), label).toEqual([own.id]);
            expect(await adapter.count(call), label).toBe(1);
          });
        }
      }
    });

    it("R3, R4: neither finds nor changes nor deletes anything of another side, by any key", async () => {
      const world = await createWorld({ database }, door);
      const before = await world.dump();
      for (const [from, to] of CROSSINGS) {
        for (const [model, field] of LOOKUPS) {
          const foreign = world.rows[to][model];
          const call = { model, where: [{ field, value: String(foreign[field]) }] };
          const update = CHANGES[model];
          await world.inside(from, async (adapter) => {
            const label = `${model} by ${field} from ${from} to ${to}`;
            expect(await adapter.findOne(call), label).toBeNull();
            expect(await adapter.findMany(call), label).toEqual([]);
            expect(await adapter.count(call), label).toBe(0);
            expect(await adapter.update({ ...call, update }), label).toBeNull();
            expect(await adapter.updateMany({ ...call, update }), label).toBe(0);
            await adapter.delete(call);
            expect(await adapter.deleteMany(call), label).toBe(0);
            expect(await adapter.consumeOne(call), label).toBeNull();
            expect(
              await adapter.incrementOne({ ...call, increment: {}, set: update }),
              label,
            ).toBeNull();
          });
        }
      }
      expect(await world.dump()).toEqual(before);
    });

    it("R3: lists and counts its own side only when nothing is asked for in particular", async () => {
      const world = await createWorld({ database }, door);
      for (const place of PLACES) {
        const stored = await world.dump(place);
        for (const model of CONFINED) {
          await world.inside(place, async (adapter) => {
            const ids = stored[model]?.map(idOf).sort();
            expect((await adapter.findMany<Row>({ model })).map(idOf).sort()).toEqual(ids);
            const nothing = { model, where: [] };
            expect((await adapter.findMany<Row>(nothing)).map(idOf).sort()).toEqual(ids);
            expect(await adapter.count({ model })).toBe(ids?.length);
            expect(await adapter.count(nothing)).toBe(ids?.length);
          });
        }
      }
    });

    it("R3: the same e-mail is another person in each place", async () => {
      const world = await createWorld({ database }, door);
      const where = [{ field: "email", value: SHARED_EMAIL }];
      for (const place of PLACES) {
        const others = await everythingBut(world, place);
        const tenantId = world.ids[place];
        await world.inside(place, async (adapter) => {
          const call = { model: "user", where };
          const own = await adapter.findOne<Row>(call);
          expect(own).toMatchObject({ email: SHARED_EMAIL, tenantId });
          // The row that comes back from a write is the row that was written, too.
          const updated = await adapter.update<Row>({ ...call, update: { name: place } });
          expect(updated).toMatchObject({ id: own?.id, name: place, tenantId });
          expect(await adapter.updateMany({ ...call, update: { image: "i" } })).toBe(1);
          const more = await adapter.incrementOne<Row>({ ...call, increment: { credits: 5 } });
          expect(more).toMatchObject({ id: own?.id, credits: 15, tenantId });
          const consumed = await adapter.consumeOne<Row>(call);
          expect(consumed).toMatchObject({ id: own?.id, name: place, image: "i", tenantId });
        });
        expect(await everythingBut(world, place)).toEqual(others);
      }
    });

    it("R3: unbounded writes stop at the border", async () => {
      const world = await createWorld({ database }, door);
      const others = await everythingBut(world, "a");
      await world.inside("a", async (adapter) => {
        const user = { model: "user", where: [] };
        expect(await adapter.updateMany({ ...user, update: { name: "all" } })).toBe(2);
        expect(await adapter.consumeOne<Row>({ model: "account", where: [] })).toMatchObject({
          id: world.rows.a.account.id,
        });
        expect(await adapter.deleteMany({ model: "verification", where: [] })).toBe(1);
        await adapter.delete({ model: "session", where: [] });
        expect(await adapter.deleteMany(user)).toBe(2);
      });
      expect(await world.dump("a")).toEqual({
        user: [],
        session: [],
        account: [],
        verification: [],
      });
      expect(await everythingBut(world, "a")).toEqual(others);
    });

    it("an update of no row in particular stays an update of no row", async () => {
      const world = await createWorld({ database }, door);
      const before = await world.dump();
      // This is better-auth's contract of `update`. The clause of the border must not break it.
      const call = { model: "user", where: [], update: { name: "all" } };
      expect(await world.inside("a", (adapter) => adapter.update(call))).toBeNull();
      expect(await world.dump()).toEqual(before);
    });

    it("R4: without any scope, outside of a request, it is the platform", async () => {
      const world = await createWorld({ database }, door);
      const others = await everythingBut(world, "platform");
      await world.through(async (adapter) => {
        for (const [model, field] of LOOKUPS) {
          const own = world.rows.platform[model];
          const whereOwn = [{ field, value: String(own[field]) }];
          expect(await adapter.findOne<Row>({ model, where: whereOwn })).toMatchObject({
            id: own.id,
            tenantId: null,
          });
          const value = String(world.rows.a[model][field]);
          const foreign = { model, where: [{ field, value }] };
          expect(await adapter.findMany(foreign)).toEqual([]);
          expect(await adapter.count(foreign)).toBe(0);
          expect(await adapter.update({ ...foreign, update: CHANGES[model] })).toBeNull();
          expect(await adapter.deleteMany(foreign)).toBe(0);
          expect(await adapter.consumeOne(foreign)).toBeNull();
        }
        const all = await adapter.findMany<Row>({ model: "user" });
        expect(all.map(({ tenantId }) => tenantId)).toEqual([null, null]);
        const data = { name: "n", email: "new@example.com", emailVerified: false };
        const created = await adapter.create<Record<string, unknown>, Row>({ model: "user", data });
        expect(created.tenantId).toBeNull();
      });
      expect(await everythingBut(world, "platform")).toEqual(others);
    });

    it("leaves tables alone that belong to nobody's tenant", async () => {
      const world = await createWorld({ database }, door);
      const slugs = await world.inside("a", (adapter) =>
        adapter.findMany<{ slug: string }>({ model: "tenant" }),
      );
      expect(slugs.map(({ slug }) => slug).sort()).toEqual(["aa", "bb"]);
    });
  });

  it("scopes side by side in one process stay apart", async () => {
    const world = await createWorld({ database });
    const model = "user";
    const where = [{ field: "email", value: SHARED_EMAIL }];
    const asked = Array.from({ length: 30 }, (_, n) => PLACES[n % 3] as Place);
    const found = await Promise.all(
      asked.map((place) => world.inside(place, (here) => here.findOne<Row>({ model, where }))),
    );
    expect(found.map((row) => row?.tenantId)).toEqual(asked.map((place) => world.ids[place]));
  });
});
