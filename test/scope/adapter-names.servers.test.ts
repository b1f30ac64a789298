import { describe, expect, it } from "vitest";
import type { InstanceOptions } from "../support/instance";
import { databases } from "../support/servers";
import { CHANGES, CONFINED, CROSSINGS, createWorld, type Model, type Row } from "./world";

const TABLES: Record<Model, string> = {
  user: "people",
  session: "visits",
  account: "keys_of_people",
  verification: "proofs",
};

const modelNames = {
  user: {
    modelName: TABLES.user,
    additionalFields: { credits: { type: "number", defaultValue: 10, input: false } },
  },
  session: { modelName: TABLES.session },
  account: { modelName: TABLES.account },
  verification: { modelName: TABLES.verification },
} satisfies InstanceOptions["auth"];

const fields = { tenantId: "tenant_id" };

const RENAMINGS: { what: string; options: InstanceOptions }[] = [
  { what: "tables", options: { auth: modelNames } },
  {
    what: "tables and tenant columns",
    options: {
      auth: modelNames,
      tenant: {
        schema: {
          user: { fields },
          session: { fields },
          account: { fields },
          verification: { fields },
        },
      },
    },
  },
];

describe.each(databases)("other names at the border, on %s", (database) => {
  describe.each(RENAMINGS)("for $what", ({ options }) => {
    it("R3: rows are confined by the model's name and by the table's", async () => {
      const world = await createWorld({ database, ...options });
      const before = await world.dump();
      expect(before.user).toHaveLength(6);
      for (const [here, there] of CROSSINGS) {
        for (const key of CONFINED) {
          for (const model of [key, TABLES[key]]) {
            const own = { model, where: [{ field: "id", value: world.rows[here][key].id }] };
            const foreign = { model, where: [{ field: "id", value: world.rows[there][key].id }] };
            await world.inside(here, async (adapter) => {
              const label = `${model} from ${here} to ${there}`;
              expect(await adapter.findOne<Row>(own), label).toMatchObject({
                tenantId: world.ids[here],
              });
              expect(await adapter.findOne(foreign), label).toBeNull();
              expect(await adapter.findMany(foreign), label).toEqual([]);
              expect(await adapter.count(foreign), label).toBe(0);
              expect(await adapter.count({ model }), label).toBe(key === "user" ? 2 : 1);
              const update = CHANGES[key];
              expect(await adapter.update({ ...foreign, update }), label).toBeNull();
              expect(await adapter.updateMany({ ...foreign, update }), label).toBe(0);
              expect(await adapter.deleteMany(foreign), label).toBe(0);
              expect(await adapter.consumeOne(foreign), label).toBeNull();
            });
          }
        }
      }
      expect(await world.dump()).toEqual(before);
    });

    it("R8: no session for a foreign user under the table's name either", async () => {
      const world = await createWorld({ database, ...options });
      const before = await world.dump();
      const data = {
        userId: world.rows.b.user.id,
        token: "t",
        expiresAt: new Date(Date.now() + 1000),
        createdAt: new Date(),
        updatedAt: new Date(),
      };
      for (const model of ["session", TABLES.session]) {
        const attempt = world.inside("a", (adapter) => adapter.create({ model, data }));
        await expect(attempt).rejects.toMatchObject({ body: { code: "USER_NOT_IN_TENANT" } });
      }
      expect(await world.dump()).toEqual(before);
    });

    it.each([true, false])(
      "R3: joined rows are confined by both names (joins: %s)",
      async (joins) => {
        const world = await createWorld({
          database,
          ...options,
          auth: { ...options.auth, advanced: { database: { joins } } },
        });
        const { session, user } = world.rows.a;
        const find = (model: string, join: string) =>
          world.inside("a", (adapter) =>
            adapter.findOne<Record<string, unknown>>({
              model,
              where: [{ field: "id", value: session.id }],
              join: { [join]: true },
            }),
          );
        const names = [
          ["session", "user"],
          [TABLES.session, "user"],
          ["session", TABLES.user],
          [TABLES.session, TABLES.user],
        ] as const;
        for (const [model, join] of names) {
          // better-auth itself joins in the database by the model's name only.
          if (joins && join !== "user") continue;
          const joined = (await find(model, join))?.[join];
          expect(joined, `${model}, ${join}`).toMatchObject({ id: user.id });
        }
        const quote = world.instance.database.quote;
        await world.instance.database.query(
          `update ${quote(TABLES.session)} set ${quote("userId")} = ? where ${quote("id")} = ?`,
          [world.rows.b.user.id, session.id],
        );
        for (const [model, join] of names) {
          expect((await find(model, join))?.[join], `${model}, ${join}`).toBeNull();
        }
      },
    );

    it("R3: over HTTP, people of two tenants and of the platform stay apart", async () => {
      const { instance, ids } = await createWorld({ database, ...options });
      const email = "same@example.com";
      const people = [
        await instance.signUp(ids.a, email),
        await instance.signUp(ids.b, email),
        await instance.signUp(null, email),
      ];
      expect(people.map(({ user }) => user.tenantId)).toEqual([ids.a, ids.b, null]);
      for (const { browser, user } of people) {
        const { data } = await browser.get<{ user: { id: string; email: string } }>("/get-session");
        expect(data.user).toMatchObject({ id: user.id, email });
      }
      expect(await instance.rows(TABLES.user)).toBe(9);
    });
  });
});
