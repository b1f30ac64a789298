import { apiKey } from "@better-auth/api-key";
import { runWithTransaction } from "@better-auth/core/context";
import { passkey } from "@better-auth/passkey";
import { sso } from "@better-auth/sso";
import type { DBFieldAttribute } from "better-auth/db";
import { deviceAuthorization, organization, phoneNumber, username } from "better-auth/plugins";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { describe, expect, it } from "vitest";
import { type Isolation, isolationOf, unscopedAdapter } from "../../../src/core/isolation";
import { tenantDomains } from "../../../src/features/domains/index";
import { tenantInvitations } from "../../../src/features/invitations/index";
import { servers } from "../../support/database";
import { createWorld, shareMade, type World } from "../../support/world";
import { COLLATIONS, collate, findAlike, lookAlikesOf } from "./collations";

/*
 * Every text column of every table, and every method of the adapter: a look-alike finds, counts,
 * changes and deletes nothing. What requests make of it: `look-alike*.servers.test.ts`.
 */

type Row = Record<string, unknown> & { id: string };

const TEXT = "basse1😀";

/** A row with a value in each required column, and the rows that it refers to. */
async function makeRow(world: World, adapter: DBTransactionAdapter, model: string): Promise<Row> {
  const data: Record<string, unknown> = {};
  for (const [name, attributes] of Object.entries(world.context.tables[model]?.fields ?? {})) {
    if (name === "tenantId") data[name] = world.ids.acme;
    else data[name] = await makeValue(world, adapter, attributes);
  }
  return adapter.create<Record<string, unknown>, Row>({ model, data });
}

async function makeValue(world: World, adapter: DBTransactionAdapter, field: DBFieldAttribute) {
  const { type, required, references } = field;
  if (references) {
    if (required === false) return undefined;
    const tables = Object.entries(world.context.tables);
    const [model = ""] = tables.find(([, one]) => one.modelName === references.model) ?? [];
    return (await makeRow(world, adapter, model))[references.field];
  }
  if (type === "date") return new Date();
  if (type === "number") return 1;
  if (type === "boolean") return true;
  return type === "string" ? crypto.randomUUID() : undefined;
}

/** The calls of each method, with what they return if they have found nothing. */
const METHODS: [name: string, nothing: unknown, call: Call][] = [
  ["findOne", null, (adapter, query) => adapter.findOne(query)],
  ["findMany", [], (adapter, query) => adapter.findMany(query)],
  ["findMany with a limit", [], (adapter, query) => adapter.findMany({ ...query, limit: 1 })],
  ["findOne of the id", null, (adapter, query) => adapter.findOne({ ...query, select: ["id"] })],
  ["count", 0, (adapter, query) => adapter.count(query)],
  ["update", null, (adapter, query, update) => adapter.update({ ...query, update })],
  ["updateMany", 0, (adapter, query, update) => adapter.updateMany({ ...query, update })],
  [
    "incrementOne",
    null,
    (adapter, query, set) => adapter.incrementOne({ ...query, increment: {}, set }),
  ],
  ["delete", undefined, (adapter, query) => adapter.delete(query)],
  ["deleteMany", 0, (adapter, query) => adapter.deleteMany(query)],
  ["consumeOne", null, (adapter, query) => adapter.consumeOne(query)],
];
type Call = (
  adapter: DBTransactionAdapter,
  query: { model: string; where: Where[] },
  update: Record<string, string>,
) => Promise<unknown>;

describe.skipIf(!servers.asked).each(COLLATIONS)("on MariaDB with %s", (collation) => {
  const world = shareMade(async (database) => {
    await collate(database, collation);
    return createWorld({
      database,
      plugins: [
        username(),
        phoneNumber({ sendOTP: () => {} }),
        organization(),
        passkey(),
        apiKey(),
        deviceAuthorization(),
        sso(),
        tenantInvitations({ sendInvitationEmail: () => {} }),
        tenantDomains(),
      ],
      tenant: {
        scopedModels: [
          ...["organization", "member", "invitation", "deviceCode"],
          ...["ssoProvider", "passkey", "apikey"],
        ],
      },
    });
  }, "mysql");

  /** Every column that holds a text, by its model. */
  const findColumns = () =>
    Object.entries(world.context.tables).flatMap(([model, { fields }]) =>
      Object.entries(fields)
        .filter(
          ([name, { type, references, transform }]) =>
            type === "string" && !references && name !== "tenantId" && !transform?.output,
        )
        .map(([name]) => ({ model, name })),
    );

  async function expectExact(adapter: DBTransactionAdapter, model: string, name: string) {
    const row = await makeRow(world, adapter, model);
    const text = name === "id" ? row.id : TEXT + crypto.randomUUID().slice(0, 8);
    const scope = "tenantId" in row ? [{ field: "tenantId", value: world.ids.acme }] : [];
    const byId: Where[] = [{ field: "id", value: row.id }, ...scope];
    await adapter.updateMany({ model, where: byId, update: { [name]: text } });
    const stored = await adapter.findOne<Row>({ model, where: byId });
    const queryFor = (value: string): { model: string; where: Where[] } => ({
      model,
      where: [{ field: name, value }, ...scope],
    });
    const others = await findAlike(world.database, collation, text, lookAlikesOf(text));
    expect(others.length).toBeGreaterThan(3);
    for (const other of [others[0], others.at(-1)] as string[]) {
      const found: unknown[] = [];
      for (const [, , call] of METHODS) {
        found.push(await call(adapter, queryFor(other), { [name]: "changed" }));
      }
      expect([model, name, other, found]).toEqual([
        model,
        name,
        other,
        METHODS.map(([, nothing]) => nothing),
      ]);
      expect(await adapter.findOne<Row>({ model, where: byId })).toEqual(stored);
    }
    // The control: every method finds the row by the text itself.
    for (const [method, nothing, call] of METHODS) {
      const left = await adapter.findOne<Row>({ model, where: byId });
      if (!left) await adapter.create({ model, data: { ...stored }, forceAllowId: true });
      const answer = await call(adapter, queryFor(text), { [name]: text });
      if (method === "delete") expect(await adapter.count({ model, where: byId })).toBe(0);
      else expect([model, name, method, answer]).not.toEqual([model, name, method, nothing]);
    }
  }

  it("each method finds the exact row of each text column alone", async () => {
    const isolation = isolationOf(world.context) as Isolation;
    // With the other collations, the columns that decide who signs in.
    const columns = collation === COLLATIONS[0] ? findColumns() : DECISIVE;
    for (const { model, name } of columns) await expectExact(isolation.unscoped, model, name);
    expect(findColumns().length).toBeGreaterThan(40);
  });

  it("and inside a transaction", async () => {
    const isolation = isolationOf(world.context) as Isolation;
    for (const { model, name } of DECISIVE) {
      await runWithTransaction(world.context.adapter, async () =>
        expectExact(await unscopedAdapter(isolation), model, name),
      );
    }
  });
});

describe.skipIf(!servers.asked)("on MariaDB, rows that look alike or are several", () => {
  const world = shareMade(async (database) => createWorld({ database }), "mysql");
  const model = "verification";
  const start = (identifiers: string[]) => {
    const { unscoped: raw } = isolationOf(world.context) as Isolation;
    const expiresAt = new Date(Date.now() + 60_000);
    const create = (identifier: string, index: number) =>
      raw.create<Record<string, unknown>, Row>({
        model,
        data: { identifier, value: String(index), expiresAt, tenantId: world.ids.acme },
      });
    return {
      raw,
      create: async () => {
        const rows: Row[] = [];
        for (const [index, identifier] of identifiers.entries())
          rows.push(await create(identifier, index));
        return rows;
      },
    };
  };

  it("an update or delete of several exact rows takes all of them, and no look-alike", async () => {
    const { raw, create } = start(["basse", "BASSE", "basse", "básse"]);
    await create();
    const where = [{ field: "identifier", value: "basse" }];
    expect(await raw.update({ model, where, update: { value: "new" } })).toMatchObject({
      value: "new",
    });
    expect(await raw.count({ model, where: [{ field: "value", value: "new" }] })).toBe(2);
    await raw.delete({ model, where });
    expect(await raw.count({ model, where })).toBe(0);
    for (const value of ["BASSE", "básse"]) {
      expect(await raw.count({ model, where: [{ field: "identifier", value }] })).toBe(1);
    }
  });

  it("pages skip look-alikes, and no exact row", async () => {
    const { raw, create } = start(["PAGE", "page", "page", "Page", "page", "page"]);
    await create();
    const where = [{ field: "identifier", value: "page" }];
    const sortBy = { field: "value", direction: "asc" } as const;
    const pages = [];
    for (const offset of [0, 2, 4]) {
      const rows = await raw.findMany<Row>({ model, where, sortBy, limit: 2, offset });
      pages.push(rows.map(({ value }) => value));
    }
    expect(pages).toEqual([["1", "2"], ["4", "5"], []]);
  });

  it("a number finds no text: every word would be 0", async () => {
    const { raw, create } = start(["word", "0"]);
    const [word, zero] = await create();
    const where = [{ field: "identifier", value: 0 }];
    expect(await raw.findMany<Row>({ model, where })).toMatchObject([{ id: zero?.id }]);
    expect(await raw.deleteMany({ model, where: [{ field: "id", value: 0 }] })).toBe(0);
    await raw.delete({ model, where });
    expect(
      await raw.findOne<Row>({ model, where: [{ field: "id", value: word?.id ?? "" }] }),
    ).toBeTruthy();
  });
});

const DECISIVE = [
  { model: "user", name: "email" },
  { model: "user", name: "username" },
  { model: "account", name: "accountId" },
  { model: "session", name: "token" },
  { model: "verification", name: "identifier" },
];
