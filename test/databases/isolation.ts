import type { Where } from "better-auth/types";
import { expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { because, createWorld, type Ground } from "./store";

const EMAIL = "same@example.com";

/** Nothing of one side can be read, changed or deleted from another, whatever the adapter. */
export function keepsSidesApart(ground: Ground) {
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
