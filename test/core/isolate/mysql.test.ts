// What better-auth's adapters do on MySQL, without one: it answers a write with no row.
import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import { expect, it } from "vitest";
import { runInTenant } from "../../../src/index";
import { combine } from "../../support/matrix";
import { createMemory, type Row } from "../../support/stores";
import { createWorld, EMAIL, type WorldOptions } from "../../support/world";

type Last = (made: Row) => Row | null;
const itself: Last = (made) => made;

/** The row of an update is read again by its first condition, that of an insert as told. */
function start(last = itself, hasTransactions = true, options: WorldOptions = {}) {
  const { database } = createMemory((inner) => {
    const answering = <A extends DBTransactionAdapter>(adapter: A): A => ({
      ...adapter,
      async update(call: Parameters<A["update"]>[0]) {
        await adapter.update(call);
        return adapter.findOne({ model: call.model, where: call.where.slice(0, 1) });
      },
      async create(call: Parameters<A["create"]>[0]) {
        const made: Row = await adapter.create(call);
        return last(made);
      },
    });
    // Adapters have two words for it.
    const told = { ...inner.options, [hasTransactions ? "type" : "provider"]: "mysql" };
    const adapter: DBAdapter = { ...answering(inner), id: "mysql", options: told } as never;
    adapter.transaction = (run) =>
      hasTransactions ? inner.transaction((tx) => run(answering(tx))) : run(adapter);
    return adapter;
  });
  const auth = { advanced: { database: { generateId: "serial" as const } } };
  return createWorld({ database, migrate: false, auth, ...options });
}

it("R3: a change by e-mail answers with the row of the scope, and changes nothing without one", async () => {
  const { as, ids, context } = await start();
  await as("jane", "platform");
  await as("only", "globex");
  const { id } = await as("jane", "acme");
  const rename = (email: string) =>
    runInTenant(ids.acme, () => context.internalAdapter.updateUserByEmail(email, { name: "New" }));
  expect(await rename(EMAIL)).toMatchObject({ id, name: "New", tenantId: ids.acme });
  expect(await rename("only@example.com")).toBe(null);
});

const KEYS = [
  ["session", "tenantId"],
  ["session", "userId"],
  ["session", "token"],
  ["user", "email"],
  ["verification", "identifier"],
  ["account", "accountId"],
  ["account", "providerId"],
  ["tenant", "slug"],
] as const;

it.each(combine(KEYS, [true, false]).map(([[model, key], has]) => [model, key, has] as const))(
  "a new %s that comes back with another %s belongs to another user, and is not returned",
  async (model, key, hasTransactions) => {
    let answer = itself;
    const { as, ids, context } = await start((made) => answer(made), hasTransactions);
    const { id: userId } = await as("jane", "acme");
    const text = { name: "n", email: "n@example.com", token: "t", slug: "s", status: "active" };
    const secret = { identifier: "i", value: "v", accountId: "a", providerId: "p" };
    const [now, expiresAt] = [new Date(), new Date(Date.now() + 60_000)];
    const times = { createdAt: now, updatedAt: now, expiresAt };
    const data = { userId, emailVerified: false, ...text, ...secret, ...times };
    const make = () => runInTenant(ids.acme, () => context.adapter.create({ model, data }));
    for (const last of [itself, ({ id }: Row) => ({ id }), () => null]) {
      answer = last;
      await expect(make()).resolves.toBeDefined();
    }
    answer = (made) => ({ ...made, [key]: "x" });
    await expect(make()).rejects.toThrow("a different row");
  },
);

it("a new row whose unique text has a transform is handed out", async () => {
  const slug = { type: "string", unique: true, required: true } as const;
  const transform = { input: (value: unknown) => String(value).toLowerCase() };
  const { context, ids } = await start(itself, true, {
    plugins: [{ id: "own", schema: { project: { fields: { slug: { ...slug, transform } } } } }],
    tenant: { scopedModels: ["project"] },
  });
  const data = { slug: "ABC" } as never;
  const create = () => context.adapter.create({ model: "project", data });
  expect(await runInTenant(ids.acme, create)).toMatchObject({ slug: "abc" });
});
