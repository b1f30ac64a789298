import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import { runInScope, settled } from "../../src/scope/scope";
import { createInstance, type InstanceOptions } from "../support/instance";

export const CONFINED = ["user", "session", "account", "verification"] as const;
export type Model = (typeof CONFINED)[number];

/** The three sides of the border: two tenants, and the platform. */
export const PLACES = ["a", "b", "platform"] as const;
export type Place = (typeof PLACES)[number];

/** Every way across a border: who looks, and whose rows are looked for. */
export const CROSSINGS = PLACES.flatMap((from) =>
  PLACES.filter((to) => to !== from).map((to) => [from, to] as const),
);

export type Row = Record<string, unknown> & { id: string; tenantId: string | null };
export type Adapter = DBTransactionAdapter;
type Inhabitant = Record<Model, Row>;

/** The ways to an adapter: the one in the context, and the one a transaction hands out. */
export const DOORS = ["the adapter", "the adapter of a transaction"] as const;
export type Door = (typeof DOORS)[number];

export const SHARED_EMAIL = "everywhere@example.com";

/**
 * Two tenants and the platform. In each of them lives one person with an e-mail of their own, with
 * a session, an account and a verification, and one person with the same e-mail everywhere.
 */
export async function createWorld(options: InstanceOptions = {}, door: Door = "the adapter") {
  const instance = await createInstance({
    ...options,
    auth: {
      user: { additionalFields: { credits: { type: "number", defaultValue: 10, input: false } } },
      ...options.auth,
    },
  });
  // The type in the context says which options it was made with, and fits no other adapter.
  const adapter = instance.context.adapter as unknown as DBAdapter;
  const { database } = instance;
  const ids: Record<Place, string | null> = {
    a: (await instance.createTenant("aa")).id,
    b: (await instance.createTenant("bb")).id,
    platform: null,
  };

  /** Runs a function inside a tenant or on the platform, with the adapter of the chosen door. */
  const inside = <T>(place: Place, run: (adapter: Adapter) => Promise<T>): Promise<T> =>
    runInScope(settled(ids[place]), () => through(run));

  const through = <T>(run: (adapter: Adapter) => Promise<T>): Promise<T> =>
    door === "the adapter" ? run(adapter) : adapter.transaction(run);

  const populate = (place: Place) =>
    inside(place, async (here): Promise<Inhabitant> => {
      const create = (model: Model, data: Record<string, unknown>) =>
        here.create<Record<string, unknown>, Row>({ model, data: { ...data, ...times() } });
      await create("user", { name: "Shared", email: SHARED_EMAIL, emailVerified: false });
      const email = `only-${place}@example.com`;
      const user = await create("user", { name: place, email, emailVerified: false });
      const userId = user.id;
      return {
        user,
        session: await create("session", { userId, token: `token-${place}`, expiresAt: later() }),
        account: await create("account", {
          userId,
          providerId: "credential",
          accountId: `account-${place}`,
        }),
        verification: await create("verification", {
          identifier: `identifier-${place}`,
          value: `value-${place}`,
          expiresAt: later(),
        }),
      };
    });

  const rows: Record<Place, Inhabitant> = {
    a: await populate("a"),
    b: await populate("b"),
    platform: await populate("platform"),
  };

  return {
    instance,
    adapter,
    ids,
    rows,
    inside,
    through,

    /** Everything in the confined tables, read past the border; of one tenant, or of all. */
    async dump(place?: Place) {
      const content: Record<string, Record<string, unknown>[]> = {};
      for (const model of CONFINED) {
        const table = database.quote(instance.context.tables[model]?.modelName ?? model);
        const all = await database.query(`select * from ${table} order by ${database.quote("id")}`);
        const column = instance.context.tables[model]?.fields.tenantId?.fieldName ?? "tenantId";
        content[model] = all.filter((row) => !place || row[column] === (ids[place] ?? ""));
      }
      return content;
    },

    /** Breaks the rules on purpose, past the border. */
    async corrupt(model: Model, id: string, change: Record<string, string>) {
      const set = Object.keys(change).map((column) => `${database.quote(column)} = ?`);
      await database.query(
        `update ${database.quote(model)} set ${set.join(", ")} where ${database.quote("id")} = ?`,
        [...Object.values(change), id],
      );
    },
  };
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/** What a row can be looked up by. Every value is one of a kind in the world above. */
export const LOOKUPS: [Model, string][] = [
  ["user", "id"],
  ["user", "email"],
  ["session", "id"],
  ["session", "token"],
  ["session", "userId"],
  ["account", "id"],
  ["account", "accountId"],
  ["account", "userId"],
  ["verification", "id"],
  ["verification", "identifier"],
  ["verification", "value"],
];

/** A harmless change to a row of each model. */
export const CHANGES: Record<Model, Record<string, unknown>> = {
  user: { name: "changed" },
  session: { userAgent: "changed" },
  account: { scope: "changed" },
  verification: { value: "changed" },
};

export const later = () => new Date(Date.now() + 3_600_000);

function times() {
  const now = new Date();
  return { createdAt: now, updatedAt: now };
}

/** Everything that belongs to the other two: what a write on this side must leave as it is. */
export async function everythingBut(world: World, place: Place) {
  const others = PLACES.filter((other) => other !== place);
  return Promise.all(others.map((other) => world.dump(other)));
}

export const idOf = (row: { id?: unknown }) => row.id;
