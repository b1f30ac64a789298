import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import type { DBAdapter } from "better-auth/types";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { PASSWORD } from "../support/instance";
import { createMemory, type Row } from "../support/stores";
import { createWorld, EMAIL, expectSessionsApart, PLACES } from "../support/world";

/** An adapter as an application may write it: methods on the prototype, state that is private. */
class ClassAdapter {
  readonly #inner: DBAdapter;
  readonly id: string;
  readonly options: DBAdapter["options"];
  constructor(inner: DBAdapter) {
    this.#inner = inner;
    this.id = inner.id;
    this.options = inner.options;
  }
  call(method: string, input: unknown) {
    const inner = this.#inner as unknown as Record<string, (input: unknown) => unknown>;
    return inner[method]?.(input);
  }
}
for (const method of [
  ...["create", "findOne", "findMany", "count", "update", "updateMany", "delete", "deleteMany"],
  ...["consumeOne", "incrementOne", "transaction"],
]) {
  Object.defineProperty(ClassAdapter.prototype, method, {
    writable: true,
    value(this: ClassAdapter, input: unknown) {
      return this.call(method, input);
    },
  });
}

it.each([
  ["an instance of a class", (inner: DBAdapter) => new ClassAdapter(inner) as unknown as DBAdapter],
  ["a plain object", undefined],
])("R5: an adapter that is %s is confined, in tenants and on the platform", async (_, wrap) => {
  const world = await createWorld({ database: createMemory(wrap).database, migrate: false });
  const janes = await world.janes();
  for (const place of PLACES) {
    const expected = { id: janes[place].id, email: EMAIL, tenantId: world.ids[place] };
    expect(await world.whoIs((await world.signIn(place)).person)).toEqual(expected);
  }
  await expectSessionsApart(world);
});

describe("an application's own JSON fields", () => {
  /** A plugin of the application with a model of its own. */
  function notes(field: string): BetterAuthPlugin {
    const model = "note";
    return {
      id: "notes",
      schema: { note: { fields: { [field]: { type: "json", required: false } } } },
      endpoints: {
        writeNote: createAuthEndpoint(
          "/note/write",
          { method: "POST", body: z.object({ value: z.any() }) },
          async ({ body, context, json }) =>
            json(await context.adapter.create({ model, data: { [field]: body.value } })),
        ),
        readNote: createAuthEndpoint(
          "/note/read",
          { method: "GET", query: z.object({ id: z.string() }) },
          async ({ query, context, json }) => {
            const where = [{ field: "id", value: query.id }];
            return json(await context.adapter.findOne<Row>({ model, where }));
          },
        ),
      },
    };
  }

  it("on user, called like models, are not taken for joins", async () => {
    const talks = [{ title: "Opening" }, { title: "Closing", tenantId: "somebody's" }];
    const names = ["sessions", "accounts", "verification", "verifications"];
    const field = { type: "json", required: false } as const;
    const additionalFields = Object.fromEntries(names.map((name) => [name, field]));
    const written = Object.fromEntries(names.map((name) => [name, talks]));
    const { at, ids } = await createWorld({ auth: { user: { additionalFields } } });
    for (const place of ["acme", "platform"] as const) {
      const tab = at(place);
      const body = { name: "Somebody", email: EMAIL, password: PASSWORD, ...written };
      for (const { data } of [
        await tab.post("/sign-up/email", body),
        await tab.get("/get-session"),
      ]) {
        expect(data.user, place).toMatchObject({ ...written, tenantId: ids[place] });
      }
    }
  });

  it.each(["user", "users", "session"])(
    "one on another model called %s is not taken for a join",
    async (field) => {
      const options = { plugins: [notes(field)], tenant: { scopedModels: ["note"] } };
      const { at, as } = await createWorld(options);
      await as("jane", "acme");
      const value = { name: "A word", tenantId: "somebody's" };
      const made = await at("acme").post<{ id: string }>("/note/write", { value });
      const query = { id: made.data.id };
      const { data } = await at("acme").get("/note/read", { query });
      expect(data[field]).toEqual(value);
      expect((await at("globex").get("/note/read", { query })).data).toBe(null);
    },
  );
});
