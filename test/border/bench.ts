import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import { expect } from "vitest";
import { runInScope, settled } from "../../src/scope/scope";
import type { DatabaseKind } from "../support/database";
import { PLACES, type Place, shareWorld, type WorldOptions } from "../support/world";

export const CONFINED = ["user", "session", "account", "verification"] as const;
export type Model = (typeof CONFINED)[number];

/** Every way across a border: who looks, and whose rows are looked for. */
export const CROSSINGS = PLACES.flatMap((from) =>
  PLACES.filter((to) => to !== from).map((to) => [from, to] as const),
);

type Data = Record<string, unknown>;
export type Row = Data & { id: string; tenantId: string | null };
export type Adapter = DBTransactionAdapter;

/** The ways to an adapter: the one in the context, and the one a transaction hands out. */
export const DOORS = ["the adapter", "the adapter of a transaction"] as const;

export const NOT_IN_TENANT = { statusCode: 403, body: { code: "USER_NOT_IN_TENANT" } };

/** A harmless change to a row of each model. */
export const CHANGES: Record<Model, Data> = {
  user: { name: "changed" },
  session: { userAgent: "changed" },
  account: { scope: "changed" },
  verification: { value: "changed" },
};

export const byId = ({ id }: { id: string }) => [{ field: "id", value: id }];

let count = 0;

/** The data of a row that does not exist yet. Every value is one of a kind. */
export function newRow(model: Model, userId: string): Data {
  const unique = `new-${++count}`;
  const times = { createdAt: new Date(), updatedAt: new Date() };
  const expiresAt = new Date(Date.now() + 3_600_000);
  switch (model) {
    case "user":
      return { name: unique, email: `${unique}@example.com`, emailVerified: false, ...times };
    case "session":
      return { userId, token: unique, expiresAt, ...times };
    case "account":
      return { userId, providerId: "credential", accountId: unique, ...times };
    case "verification":
      return { identifier: unique, value: unique, expiresAt, ...times };
  }
}

export const create = (adapter: Adapter, model: Model, data: Data): Promise<Row> =>
  adapter.create<Data, Row>({ model, data });

/** The adapter of a world that the tests of a suite share, each with rows of its own. */
export function shareBench(
  { auth, ...options }: WorldOptions = {},
  kind: DatabaseKind = "sqlite",
  door: (typeof DOORS)[number] = "the adapter",
) {
  const credits = { type: "number", defaultValue: 10, input: false } as const;
  const user = { ...auth?.user, additionalFields: { credits } };
  const world = shareWorld({ ...options, auth: { ...auth, user } }, kind);

  /** The type in the context says which options it was made with, and fits no other adapter. */
  const adapter = () => world.context.adapter as unknown as DBAdapter;

  const through = <T>(run: (adapter: Adapter) => Promise<T>): Promise<T> =>
    door === "the adapter" ? run(adapter()) : adapter().transaction(run);

  /** Runs a function inside a tenant or on the platform, with the adapter of the door. */
  const inside = <T>(place: Place, run: (adapter: Adapter) => Promise<T>): Promise<T> =>
    runInScope(settled(world.ids[place]), () => through(run));

  const settle = (place: Place, email: string) =>
    inside(place, async (here): Promise<Record<Model, Row>> => {
      await create(here, "user", { ...newRow("user", ""), email });
      const user = await create(here, "user", newRow("user", ""));
      const more = (model: Model) => create(here, model, newRow(model, user.id));
      return {
        user,
        session: await more("session"),
        account: await more("account"),
        verification: await more("verification"),
      };
    });

  return {
    world,
    adapter,
    through,
    inside,

    /** Somebody at each place with a row in every table, and somebody with one e-mail everywhere. */
    async populate() {
      const email = `everywhere-${++count}@example.com`;
      const [acme, globex, platform] = [
        await settle("acme", email),
        await settle("globex", email),
        await settle("platform", email),
      ];
      return { email, acme, globex, platform };
    },

    /** Breaks the rules on purpose, past the border: gives a row to another user. */
    async handTo({ id: userId }: Row, model: Model, { id }: Row) {
      const { query, quote } = world.database;
      const table = quote(world.context.tables[model]?.modelName ?? model);
      const set = `${quote("userId")} = ? where ${quote("id")} = ?`;
      await query(`update ${table} set ${set}`, [userId, id]);
    },
  };
}

/** What is looked for is not there: nothing is found, changed or deleted, by any method. */
export async function expectNothing(
  adapter: Adapter,
  call: { model: string; where: { field: string; value: string }[] },
  update: Data,
  label: string,
) {
  await adapter.delete(call);
  const answers = [
    await adapter.findOne(call),
    await adapter.findMany(call),
    await adapter.count(call),
    await adapter.update({ ...call, update }),
    await adapter.updateMany({ ...call, update }),
    await adapter.incrementOne({ ...call, increment: {}, set: update }),
    await adapter.deleteMany(call),
    await adapter.consumeOne(call),
  ];
  expect(answers, label).toEqual([null, [], 0, null, 0, null, 0, null]);
}
