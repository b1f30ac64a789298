// What the database itself undoes is done once more where that is safe, and else the caller is told
// to try again. Never is it an error without a reason, or half of what was asked for.
import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { createDatabase, type DatabaseKind, databases, servers } from "../support/database";
import { newcomer, PASSWORD } from "../support/instance";
import { createMemory } from "../support/stores";
import { createWorld, EMAIL } from "../support/world";
import { interceptStatements } from "./faults";

/** A world in which the next statements of a kind are refused, as those of a deadlock's loser. */
async function createRefusing(kind: DatabaseKind) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  const rule = { among: /(?:)/, left: 0 };
  interceptStatements(database, async (sql, { send, refuse }) => {
    if (rule.left === 0 || !rule.among.test(sql)) return send();
    rule.left--;
    return refuse();
  });
  const world = await createWorld({ database });
  await world.as("jane", "acme");
  return {
    ...world,
    refuse: (among: RegExp, left: number) => void Object.assign(rule, { among, left }),
    signIn: () => world.at("acme").post("/sign-in/email", { email: EMAIL, password: PASSWORD }),
    left: () => rule.left,
  };
}

const TRY_AGAIN = { status: 503, code: "TRY_AGAIN", retryAfter: "1", cookies: [] };
const outcome = ({ status, code, headers }: Awaited<ReturnType<World["signIn"]>>) => ({
  status,
  code,
  retryAfter: headers.get("retry-after"),
  cookies: headers.getSetCookie(),
});
type World = Awaited<ReturnType<typeof createRefusing>>;

const SESSION = /^insert into .session/i;
const USER = /^insert into .user/i;

describe.each(databases)("what %s has rolled back", (kind) => {
  it("is done again where it stands alone, three times at most", async () => {
    const world = await createRefusing(kind);
    for (const times of [0, 1, 3]) {
      const before = await world.rows("session");
      world.refuse(SESSION, times);
      const answer = await world.signIn();
      expect([times, answer.status, world.left()]).toEqual([times, 200, 0]);
      expect(await world.rows("session")).toBe(before + 1);
    }
    const before = await world.rows("session");
    world.refuse(SESSION, 4);
    expect(outcome(await world.signIn())).toEqual(TRY_AGAIN);
    expect(await world.rows("session")).toBe(before);
    expect((await world.signIn()).status).toBe(200);
  });

  it.each([
    ["the user", USER],
    ["the session", SESSION],
    ["the commit", /^commit/i],
  ])(
    "is to be tried again inside a transaction of better-auth: %s of a sign-up",
    async (_, among) => {
      const world = await createRefusing(kind);
      const body = newcomer();
      const signUp = () => world.at("acme").post("/sign-up/email", body);
      world.refuse(among, 1);
      const refused = await world.unchanged(signUp);
      expect(outcome(refused)).toEqual(TRY_AGAIN);
      expect(world.left()).toBe(0);
      expect((await signUp()).status).toBe(200);
      expect((await signUp()).code).toBe("USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
    },
  );

  it("is not repeated where it is no conflict", async () => {
    const world = await createRefusing(kind);
    const taken = await world.at("acme").post("/sign-up/email", newcomer(EMAIL));
    expect(taken.code).toBe("USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
  });
});

/** What a plugin does with an error inside its transaction. */
const HANDLINGS = ["passes on", "ignores", "replaces"] as const;

/** Writes two users in the order that the caller wants, when both callers have written the first. */
function crossing() {
  let waiting: (() => void)[] = [];
  const meet = () =>
    new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length < 2) return;
      for (const goOn of waiting) goOn();
      waiting = [];
    });
  return {
    id: "crossing",
    endpoints: {
      cross: createAuthEndpoint(
        "/cross",
        {
          method: "POST",
          body: z.object({ ids: z.array(z.string()), handling: z.enum(HANDLINGS) }),
        },
        async (ctx) => {
          const { adapter } = ctx.context;
          const { ids, handling } = ctx.body;
          await runWithTransaction(adapter, async () => {
            const inner = await getCurrentAdapter(adapter);
            const write = (id: string | undefined) => {
              const where = [{ field: "id", value: id ?? "" }];
              return inner.update({ model: "user", where, update: { name: ids.join() } });
            };
            await write(ids[0]);
            await meet();
            const second = write(ids[1]);
            if (handling === "passes on") return void (await second);
            const failed = await second.then(
              () => false,
              () => true,
            );
            if (failed && handling === "replaces") throw new Error("the plugin's own error");
            await write(ids[0]).catch(() => undefined);
          });
          return ctx.json({ done: true });
        },
      ),
    },
  } satisfies BetterAuthPlugin;
}

describe.runIf(servers.asked).each(servers.kinds)("a real deadlock on %s", (kind) => {
  it.each(HANDLINGS)(
    "lets one of two requests through, and asks the other to try again, if a plugin %s errors",
    { timeout: 60_000 },
    async (handling) => {
      const world = await createWorld({ database: kind, plugins: [crossing()] });
      const ids = [(await world.as("jane", "acme")).id, (await world.as("joe", "acme")).id];
      const cross = (order: string[]) => world.at("acme").post("/cross", { ids: order, handling });
      const answers = await Promise.all([cross(ids), cross(ids.toReversed())]);
      const statuses = answers.map(({ status }) => status).sort();
      expect(statuses).toEqual([200, 503]);
      const [loser] = answers.filter(({ status }) => status === 503);
      expect(loser && outcome(loser)).toEqual(TRY_AGAIN);
      const order = answers[0]?.status === 200 ? ids : ids.toReversed();
      const users = await world.rowsIn("acme", "user");
      expect(users.map(({ name }) => name)).toEqual([order.join(), order.join()]);
    },
  );
});

describe("an adapter that throws what drivers throw", () => {
  const thrown = (error: object) => Object.assign(new Error("refused"), error);

  it.each<[string, object, number]>([
    ["MySQL", { code: "ER_LOCK_DEADLOCK", errno: 1213 }, 4],
    ["PostgreSQL, a deadlock", { code: "40P01" }, 4],
    ["PostgreSQL, a serialization failure", { code: "40001" }, 4],
    ["Prisma", { code: "P2034" }, 4],
    ["SQLite", { code: "SQLITE_BUSY" }, 4],
    ["node:sqlite", { code: "ERR_SQLITE_ERROR", errcode: 517 }, 4],
    ["Drizzle", { cause: thrown({ code: "40P01" }) }, 4],
    ["MySQL, a lock that is held too long", { code: "ER_LOCK_WAIT_TIMEOUT", errno: 1205 }, 1],
    ["Galera, a node that is not ready", { message: "WSREP has not yet prepared node" }, 1],
  ])("of %s", async (_, error, calls) => {
    let left = 0;
    let made = 0;
    const { database } = createMemory((adapter) => {
      const create = adapter.create.bind(adapter);
      const refusing = (input: Parameters<typeof create>[0]) => {
        if (input.model !== "session") return create(input);
        made++;
        return left-- > 0 ? Promise.reject(thrown(error)) : create(input);
      };
      return Object.assign(adapter, { create: refusing });
    });
    const world = await createWorld({ database, migrate: false });
    await world.signUp("acme");
    const signIn = () =>
      world.at("acme").post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    left = 100;
    made = 0;
    expect(outcome(await signIn())).toEqual(TRY_AGAIN);
    expect(made).toBe(calls);
    left = calls - 1;
    expect((await signIn()).status).toBe(200);
  });
});
