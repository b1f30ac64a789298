// What the database has undone, or never got, is done once more where that is safe, and else the
// caller is told to try again. Never is it an error without a reason, or half of what was asked for.
import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { createDatabase, type DatabaseKind, databases, servers } from "../support/database";
import { newcomer, PASSWORD } from "../support/instance";
import { createMemory } from "../support/stores";
import { createWorld, EMAIL } from "../support/world";
import { injectFaults, interceptStatements } from "./faults";

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
  const welcomed: string[] = [];
  const after = async ({ email }: { email: string }) => void welcomed.push(email);
  const world = await createWorld({
    database,
    auth: { databaseHooks: { user: { create: { after } } } },
  });
  await world.as("jane", "acme");
  return {
    ...world,
    /** Whom the application has welcomed, which it does after the commit. */
    welcomed,
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
    "is done again with all of its transaction, three times at most: %s of a sign-up",
    async (_, among) => {
      const world = await createRefusing(kind);
      const body = newcomer();
      const signUp = () => world.at("acme").post("/sign-up/email", body);
      world.refuse(among, 4);
      expect(outcome(await world.unchanged(signUp))).toEqual(TRY_AGAIN);
      expect([world.left(), world.welcomed.includes(body.email)]).toEqual([0, false]);

      const before = await world.rows("session");
      world.refuse(among, 3);
      const { status, data, headers } = await signUp();
      expect([status, world.left(), await world.rows("session")]).toEqual([200, 0, before + 1]);
      // The cookies, and what comes after the commit, are of the attempt that was stored alone.
      const cookies = headers.getSetCookie().filter((one) => one.includes("session_token"));
      expect(cookies).toEqual([expect.stringContaining(encodeURIComponent(String(data.token)))]);
      expect(world.welcomed.filter((email) => email === body.email)).toHaveLength(1);
      expect((await signUp()).code).toBe("USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
    },
  );

  it("is not repeated where it is no conflict", async () => {
    const world = await createRefusing(kind);
    const taken = await world.at("acme").post("/sign-up/email", newcomer(EMAIL));
    expect(taken.code).toBe("USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
  });
});

describe.runIf(servers.asked).each(servers.kinds)("a connection to %s that breaks", (kind) => {
  it.each([
    ["before the user of a sign-up is written", "not sent", USER, 200],
    ["after the user of a sign-up was written", "answer lost", USER, 200],
    ["before a session is written, which may be repeated nowhere", "not sent", SESSION, 503],
    ["after the commit", "answer lost", /^commit/i, 503],
  ] as const)("%s", async (_, fault, among, status) => {
    const database = await createDatabase(kind);
    onTestFinished(() => database.close());
    const { during } = injectFaults(database);
    const world = await createWorld({ database });
    const body = newcomer();
    const isSignIn = among === SESSION;
    if (isSignIn) await world.at("acme").post("/sign-up/email", body);
    const path = isSignIn ? "/sign-in/email" : "/sign-up/email";
    const { result, statement } = await during(
      fault,
      1,
      () => world.at("acme").post(path, body),
      among,
    );
    expect([statement !== undefined, result.status]).toEqual([true, status]);
    if (status === 503) expect(outcome(result)).toEqual(TRY_AGAIN);
    const users = await world.rowsIn("acme", "user");
    expect(users.filter(({ email }) => email === body.email)).toHaveLength(1);
    expect((await world.at("acme").post("/sign-in/email", body)).status).toBe(200);
  });

  it.each(["not sent", "answer lost"] as const)(
    "while a session is revoked (%s) is no reason to answer 500",
    async (fault) => {
      const database = await createDatabase(kind);
      onTestFinished(() => database.close());
      const { during } = injectFaults(database);
      const world = await createWorld({ database });
      const jane = await world.as("jane", "acme");
      const revoke = () => jane.post("/revoke-session", { token: jane.token });
      const { result, statement } = await during(fault, 1, revoke, /^delete/i);
      expect([statement !== undefined, result.status]).toEqual([true, 200]);
      expect(await world.whoIs(jane)).toBeFalsy();
    },
  );
});

/** What a plugin does with an error inside its transaction. */
const HANDLINGS = ["passes on", "ignores", "replaces"] as const;

/** Writes two users in the order that the caller wants, when both callers have written the first. */
function crossing() {
  let waiting: (() => void)[] = [];
  let hasMet = false;
  const meet = () =>
    new Promise<void>((resolve) => {
      waiting.push(resolve);
      // The loser comes again, alone.
      if (waiting.length < 2 && !hasMet) return;
      hasMet = true;
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
    "lets one of two requests through, and then the other, if a plugin %s errors",
    { timeout: 60_000 },
    async (handling) => {
      const world = await createWorld({ database: kind, plugins: [crossing()] });
      const ids = [(await world.as("jane", "acme")).id, (await world.as("joe", "acme")).id];
      const cross = (order: string[]) => world.at("acme").post("/cross", { ids: order, handling });
      const answers = await Promise.all([cross(ids), cross(ids.toReversed())]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      // The name is the order of its writer, and both users have one writer.
      const names = (await world.rowsIn("acme", "user")).map(({ name }) => name);
      expect([ids.join(), ids.toReversed().join()]).toContain(names[0]);
      expect(names[1]).toBe(names[0]);
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
    ["Galera, a node that is not ready", { message: "WSREP has not yet prepared node" }, 4],
    ["PostgreSQL, a server that has become a replica", { code: "25006" }, 4],
    ["a socket that was never open", { code: "ECONNREFUSED" }, 4],
    ["a connection that broke", { code: "PROTOCOL_CONNECTION_LOST" }, 1],
    ["PostgreSQL, a server that stops", { code: "57P01" }, 1],
    ["pg, a connection that broke", { message: "Connection terminated unexpectedly" }, 1],
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
