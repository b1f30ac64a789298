import type { BetterAuthPlugin } from "better-auth";
import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import { CROSSINGS, createWorld, DOORS, PLACES, type Place, type Row, type World } from "./world";

type Joined = Row & { user?: Row | null; account?: Row[]; session?: Row[] };

/** better-auth joins in the database when it is told to, and by further queries otherwise. */
const MODES = [
  { mode: "joins in the database", joins: true },
  { mode: "joins by further queries", joins: false },
];

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

describe.each(databases)("joins at the border, on %s", (database) => {
  describe.each(MODES)("with $mode", ({ joins }) => {
    const createJoiningWorld = (door?: (typeof DOORS)[number]) =>
      createWorld(
        {
          database,
          auth: { advanced: { database: { joins } } },
          plugins: [notes],
          tenant: { sharedModels: ["note"] },
        },
        door,
      );

    describe.each(DOORS)("through %s", (door) => {
      it("R3: rows of the scope come with what is joined to them", async () => {
        const world = await createJoiningWorld(door);
        for (const place of PLACES) {
          const { user, session, account } = world.rows[place];
          const tenantId = world.ids[place];
          await world.inside(place, async (adapter) => {
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
        const world = await createJoiningWorld(door);
        for (const [here, there] of CROSSINGS) {
          const { session } = world.rows[here];
          await world.corrupt("session", session.id, { userId: world.rows[there].user.id });
          await world.inside(here, async (adapter) => {
            for (const found of await findBothWays(adapter, sessionWithUser(session))) {
              expect(found).toMatchObject({ id: session.id, tenantId: world.ids[here] });
              expect(found.user, `from ${here} to ${there}`).toBeNull();
            }
          });
        }
      });

      it("R3: accounts and sessions of another side are not joined to a user", async () => {
        const world = await createJoiningWorld(door);
        for (const [here, there] of CROSSINGS) {
          const { user, account, session } = world.rows[here];
          await world.corrupt("account", world.rows[there].account.id, { userId: user.id });
          await world.corrupt("session", world.rows[there].session.id, { userId: user.id });
          await world.inside(here, async (adapter) => {
            for (const found of await findBothWays(adapter, userWithRest(user))) {
              const label = `from ${here} to ${there}`;
              expect(
                found.account?.map(({ id }) => id),
                label,
              ).toEqual([account.id]);
              expect(
                found.session?.map(({ id }) => id),
                label,
              ).toEqual([session.id]);
            }
          });
          for (const place of [here, there]) await mend(world, place);
        }
      });

      it("R3: a join out of a table without tenants brings no user of another side", async () => {
        const world = await createJoiningWorld(door);
        for (const place of PLACES) {
          const data = { text: place, userId: world.rows[place].user.id };
          await world.adapter.create({ model: "note", data });
        }
        for (const here of PLACES) {
          const seen = await world.inside(here, (adapter) =>
            adapter.findMany<Joined & { text: Place }>({ model: "note", join: { user: true } }),
          );
          const users = Object.fromEntries(seen.map(({ text, user }) => [text, user?.id ?? null]));
          const only = (place: Place) => (place === here ? world.rows[here].user.id : null);
          expect(users).toEqual({ a: only("a"), b: only("b"), platform: only("platform") });
        }
      });
    });

    it("R8: a user who came in by a join of another side is not vouched for", async () => {
      const world = await createJoiningWorld();
      const { session } = world.rows.a;
      const userId = world.rows.b.user.id;
      await world.corrupt("session", session.id, { userId });
      const before = await world.dump();
      const attempt = world.inside("a", async (adapter) => {
        await adapter.findOne(sessionWithUser(session));
        const data = { userId, providerId: "credential", accountId: "x" };
        return adapter.create({ model: "account", data });
      });
      await expect(attempt).rejects.toMatchObject({ body: { code: "USER_NOT_IN_TENANT" } });
      expect(await world.dump()).toEqual(before);
    });

    it("R3: over HTTP, a session that points at a user of another side is no session", async () => {
      const world = await createJoiningWorld();
      const { instance } = world;
      const victim = await instance.signUp(world.ids.b);
      const { browser, user } = await instance.signUp(world.ids.a);
      const quote = instance.database.quote;
      await instance.database.query(
        `update ${quote("session")} set ${quote("userId")} = ? where ${quote("userId")} = ?`,
        [victim.user.id, user.id],
      );
      const named = { "x-tenant-id": String(world.ids.a) };
      for (const window of [browser.fork(), browser.fork(named)]) {
        const protectedAnswer = await window.fork().get("/list-accounts");
        expect(protectedAnswer.status).toBe(401);
        const answer = await window.get("/get-session");
        expect([answer.status, answer.data]).toEqual([200, null]);
      }
    });
  });
});

function sessionWithUser({ id }: Row) {
  return { model: "session", where: [{ field: "id", value: id }], join: { user: true } };
}

function userWithRest({ id }: Row) {
  return {
    model: "user",
    where: [{ field: "id", value: id }],
    join: { account: true, session: true },
  };
}

/** The same row by findOne and by findMany. */
async function findBothWays(
  adapter: Pick<World["adapter"], "findOne" | "findMany">,
  call: ReturnType<typeof sessionWithUser> | ReturnType<typeof userWithRest>,
): Promise<Joined[]> {
  const one = await adapter.findOne<Joined>(call);
  const many = await adapter.findMany<Joined>(call);
  expect(many).toHaveLength(1);
  return [one, ...many].map((row) => row ?? expect.fail("found nothing"));
}

/** Gives everything back to whom it belonged. */
async function mend(world: World, place: Place) {
  const { user, session, account } = world.rows[place];
  await world.corrupt("session", session.id, { userId: user.id });
  await world.corrupt("account", account.id, { userId: user.id });
}
