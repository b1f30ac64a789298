import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import { createWorld, later, PLACES, type Row } from "./world";

describe.each(databases)("selected fields at the border, on %s", (database) => {
  it("say nothing about the tenant unless it is asked for", async () => {
    const world = await createWorld({ database });
    for (const place of PLACES) {
      await world.inside(place, async (adapter) => {
        const few = await adapter.findMany<Row>({ model: "user", select: ["id"] });
        expect(few.map(({ tenantId }) => tenantId)).toEqual(few.map(() => undefined));
        const more = await adapter.findMany<Row>({ model: "user", select: ["id", "tenantId"] });
        expect(more.map(({ tenantId }) => tenantId)).toEqual(more.map(() => world.ids[place]));
      });
    }
  });

  it("R8: a session for somebody whose id alone was read is in the right tenant", async () => {
    const world = await createWorld({ database });
    const created = await world.inside("a", async (adapter) => {
      const [user] = await adapter.findMany<Row>({ model: "user", select: ["id"] });
      return adapter.create<Record<string, unknown>, Row>({
        model: "session",
        data: {
          userId: user?.id,
          token: "token-new",
          expiresAt: later(),
          createdAt: new Date(),
          updatedAt: new Date(),
        },
      });
    });
    expect(created.tenantId).toBe(world.ids.a);
    const column = world.instance.database.quote("tenantId");
    const where = `token = 'token-new' and ${column} = ?`;
    expect(await world.instance.rows("session", where, [world.ids.a])).toBe(1);
  });
});
