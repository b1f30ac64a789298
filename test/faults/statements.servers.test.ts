import { inspect } from "node:util";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { tenantInvitations } from "../../src/invitations/index";
import type { Answer } from "../support/browser";
import { createDatabase, type DatabaseKind } from "../support/database";
import { databases, servers } from "../support/servers";
import { createSocialInstance, queryOf } from "../support/social";
import { CORE_TABLES, contentsOf, difference, inShort, leftOf, TABLES } from "./contents";
import { injectFaults, interceptStatements } from "./faults";
import { BY_INVITATION, CLIENT, createPlainFlows, FLOWS } from "./flows";

async function open(kind: DatabaseKind) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  return { database, faults: injectFaults(database) };
}
type Opened = Awaited<ReturnType<typeof open>>;

type Attempt = { run(): Promise<Answer>; succeeded(answer: Answer): boolean };
type SecretConfig = Parameters<typeof difference>[0];

/** What a flow changes when nothing fails. */
async function whatIsDone<A extends Attempt>(
  { database }: Opened,
  secretConfig: SecretConfig,
  prepare: () => Promise<A>,
  tables = TABLES,
) {
  const { run, succeeded } = await prepare();
  const before = await contentsOf(database, tables);
  expect(succeeded(await run())).toBe(true);
  const done = await difference(secretConfig, before, await contentsOf(database, tables));
  expect(done).not.toEqual([]);
  return done;
}

/** Runs a flow again and again, each time with another statement that fails, until none does. */
async function* everyFault<A extends Attempt>(
  { database, faults }: Opened,
  secretConfig: SecretConfig,
  prepare: () => Promise<A>,
  tables = TABLES,
) {
  for (const fault of faults.kinds) {
    for (let n = 1; ; n++) {
      const attempt = await prepare();
      const before = await contentsOf(database, tables);
      const { result: answer, statement } = await faults.during(fault, n, attempt.run);
      if (!statement) {
        expect([n > 1, attempt.succeeded(answer)]).toEqual([true, true]);
        break;
      }
      const contents = await contentsOf(database, tables);
      const changes = await difference(secretConfig, before, contents);
      const where = `${fault}, ${statement.replace(/["`]/g, "").slice(0, 80)}`;
      yield { where, attempt, answer, changes, contents };
    }
  }
}

/** An invitation is accepted where the user is made, and nowhere else. */
const acceptedWithUser = (left: Set<string>) =>
  new Set([...left].map((one) => one.replace("user created", "tenantInvitation changed, $&")));

const ALL_TABLES = [...TABLES, "tenantInvitation"];

/** A state is good once, also when nothing comes of it. */
const withoutState = (changes: string[]) =>
  changes.filter((change) => !/^verification: .* -> nothing$/.test(change));

/** Words that no answer may have in it: of databases, of drivers, and of where they are. */
const NOT_FOR_OUTSIDE =
  /deadlock|terminated|locked|I\/O|queryable|connection|closed state|(select|insert|update|delete) |\bat .*:\d+|node_modules|127\.0\.0\.1|postgres|mysql|sqlite/i;

/** What is wrong with the answer to something that failed. */
function whatIsWrongWith({ status, location, code, data, headers }: Answer): string[] {
  const wrong: string[] = [];
  const said = [JSON.stringify(data), ...headers].join("\n");
  if (NOT_FOR_OUTSIDE.test(said)) wrong.push(`says ${said}`);
  if (/session_token=[^;]/.test(headers.getSetCookie().join())) wrong.push("signs somebody in");
  if (location !== null) {
    const { error = "" } = queryOf(location);
    const led = /^(\/failed|http:\/\/localhost:3000\/api\/auth\/error)\?/.test(location);
    if (status !== 302 || !led || !/^\w+$/.test(error)) wrong.push(`leads to ${location}`);
  } else if (status < 400 || !/^[A-Z_]+$/.test(code ?? "") || !data?.message) {
    wrong.push(`answers ${status} ${JSON.stringify(data)}`);
  }
  return wrong;
}

/** What better-call prints by itself. */
function listenToConsole() {
  const spy = vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => spy.mockRestore());
  return () => {
    const printed = spy.mock.calls.flat().map((part) => inspect(part, { depth: 5 }));
    spy.mockClear();
    return printed.join("\n");
  };
}

describe.each(databases)("a statement that fails on %s", (kind) => {
  it.each(Object.entries(FLOWS))(
    "in %s",
    async (name, flow) => {
      const opened = await open(kind);
      const invitations = tenantInvitations({ sendInvitationEmail: () => {} });
      const app = await createSocialInstance({
        database: opened.database,
        plugins: [invitations],
      });
      const { browser: operator } = await app.operator();
      const prepare = flow(app, operator);
      const { secretConfig } = app.context;
      const printed = listenToConsole();
      const noteworthy = name.includes("callback") ? withoutState : (all: string[]) => all;
      const done = noteworthy(await whatIsDone(opened, secretConfig, prepare, ALL_TABLES));
      const byCore = await whatCoreLeaves(BY_INVITATION[name] ?? name);
      const halfway = BY_INVITATION[name] ? acceptedWithUser(byCore) : byCore;
      halfway.delete(inShort(done));

      const problems: string[] = [];
      for await (const trouble of everyFault(opened, secretConfig, prepare, ALL_TABLES)) {
        const { where, attempt, answer, contents } = trouble;
        const problem = (text: string) => problems.push(`${where}: ${text}`);
        const changes = noteworthy(trouble.changes);
        const isDone = JSON.stringify(changes) === JSON.stringify(done);
        const succeeded = attempt.succeeded(answer);
        if (!isDone && changes.length > 0 && !halfway.has(inShort(changes))) {
          problem(`leaves ${inShort(changes)}`);
        }
        if (succeeded && !isDone) problem("is not done, and the answer says it is");
        if (!succeeded) whatIsWrongWith(answer).forEach(problem);
        const logged = `${app.logs.splice(0).join("\n")}\n${printed()}`;
        for (const secret of secretsIn(kind, [...contents.values()])) {
          if (logged.includes(secret)) problem(`logs ${secret}`);
        }
        const later = await attempt.again();
        if (later) problem(`the next try: ${later}`);
      }
      expect(problems).toEqual([]);
    },
    60_000,
  );
});

describe.runIf(servers.asked).each(servers.kinds)("a deletion on %s", (kind) => {
  it("that loses a deadlock is done all the same", async () => {
    const opened = await open(kind);
    const app = await createSocialInstance({ database: opened.database });
    const { browser: operator } = await app.operator();
    const prepare = FLOWS["the deletion of a tenant"](app, operator);
    listenToConsole();
    const answers: Record<string, number> = {};
    for (let n = 1; ; n++) {
      const { run } = await prepare();
      const { result, statement } = await opened.faults.during("refused", n, run);
      if (!statement) break;
      // Whatever comes before the deletion is not tried again.
      if (/^delete/i.test(statement)) answers[`${n}, ${statement}`] = result.status;
    }
    expect(Object.keys(answers).length).toBeGreaterThanOrEqual(TABLES.length);
    expect([...new Set(Object.values(answers))]).toEqual([200]);
  }, 60_000);

  it("that loses one deadlock after the other says so, and leaves everything", async () => {
    const { database } = await open(kind);
    let armed = false;
    interceptStatements(database, async (sql, { send, refuse }) =>
      armed && /^delete from .user/i.test(sql) ? refuse() : send(),
    );
    const app = await createSocialInstance({ database });
    const { id: tenantId } = await app.createTenant();
    await app.signUp(tenantId);
    const remove = () => app.api.deleteTenant({ body: { tenantId } });
    armed = true;
    await expect(remove()).rejects.toThrow(/deadlock/i);
    expect(await leftOf(app, tenantId)).toEqual(["tenant", "user", "session", "account"]);
    armed = false;
    expect(await remove()).toEqual({ success: true });
    expect(await leftOf(app, tenantId)).toEqual([]);
  });
});

function secretsIn(kind: DatabaseKind, rows: Record<string, unknown>[]): string[] {
  // mysql2 writes a refused statement with its values into the error, and better-auth logs errors
  // of its own statements as they are, with and without this plugin.
  const ofCore = kind === "mysql" ? [] : ["token", "password", "accessToken"];
  const columns = ["clientId", "clientSecret", ...ofCore];
  const stored = rows.flatMap((row) => columns.map((column) => row[column]));
  return [...stored, CLIENT.clientSecret].filter((value) => typeof value === "string");
}

/** What better-auth itself leaves behind halfway through the same flow, without this plugin. */
async function whatCoreLeaves(name: string): Promise<Set<string>> {
  const opened = await open("sqlite");
  const { flows, secretConfig } = await createPlainFlows(opened.database);
  const left = new Set<string>();
  const prepare = (flows as Record<string, () => Promise<Attempt>>)[name];
  if (!prepare) return left;
  for await (const { changes } of everyFault(opened, secretConfig, prepare, CORE_TABLES)) {
    left.add(inShort(withoutState(changes)));
  }
  return left;
}
