// What better-auth's adapters do on MySQL, without one: it answers a write with no row.
import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import { expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { combine } from "../support/matrix";
import { createMemory, type Row } from "../support/stores";
import { createWorld, EMAIL } from "../support/world";

type Last = (made: Row) => Row | null;
const itself: Last = (made) => made;

/** The row of an update is read again by its first condition, that of a new session as told. */
function start(last = itself, hasTransactions = true) {
  const { database } = createMemory((inner) => {
    const answering = <A extends DBTransactionAdapter>(adapter: A): A => ({
      ...adapter,
      async update(call: Parameters<A["update"]>[0]) {
        await adapter.update(call);
        return adapter.findOne({ model: call.model, where: call.where.slice(0, 1) });
      },
      async create(call: Parameters<A["create"]>[0]) {
        const made: Row = await adapter.create(call);
        return call.model === "session" ? last(made) : made;
      },
    });
    const options = { ...inner.options, type: "mysql" };
    const adapter: DBAdapter = { ...answering(inner), options } as never;
    adapter.transaction = (run) =>
      hasTransactions ? inner.transaction((tx) => run(answering(tx))) : run(adapter);
    return adapter;
  });
  const auth = { advanced: { database: { generateId: "serial" as const } } };
  return createWorld({ database, migrate: false, auth });
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

const ANSWERS: [what: string, signsIn: boolean, last: Last][] = [
  ["the row itself", true, itself],
  ["less of it", true, ({ tenantId: _, ...rest }) => rest],
  ...["tenantId", "userId", "token"].map((name): (typeof ANSWERS)[number] => [
    `another ${name}`,
    false,
    (made) => ({ ...made, [name]: "x" }),
  ]),
];

it.each(combine(ANSWERS, [true, false]).map(([answer, has]) => [...answer, has] as const))(
  "where a new session is answered with %s, that it signs in is %s",
  async (_, signsIn, last, hasTransactions) => {
    let answer = itself;
    const { as, signIn } = await start((made) => answer(made), hasTransactions);
    await as("jane", "acme");
    answer = last;
    const { status, headers } = await signIn("acme");
    expect(status === 200).toBe(signsIn);
    expect(/session_token=[^;]/.test(headers.getSetCookie().join())).toBe(signsIn);
  },
);
