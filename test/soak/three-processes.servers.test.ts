import { type ChildProcess, fork, type StdioOptions } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase, servers, type TestDatabase } from "../support/database";
import { createRandom } from "../support/matrix";
import { buildForProcesses } from "../support/processes";
import type { Order } from "./worker";

/*
 * Three processes on one PostgreSQL, with sessions there or in Redis: users and tenants come and go,
 * and processes are killed. SOAK_SECONDS=60 makes it longer, SOAK_SEED=… repeats its choices.
 */
const SECONDS = Number(process.env.SOAK_SECONDS ?? 20);
const SEED = Number(process.env.SOAK_SEED ?? randomBytes(4).readUInt32BE());
/** How long another process may accept sessions of a deleted tenant, on a busy machine. */
const GRACE_MS = 10_500;

const QUIET = ["ignore", "ignore", "ignore", "ipc"] as StdioOptions;

interface Member {
  child: ChildProcess;
  port: number;
  isKilled?: boolean;
}

/** A tenant; null is the platform. `goneAt` is set when its deletion begins, and again at its end. */
interface Place {
  id: string | null;
  goneAt?: number;
}

interface Session {
  place: Place;
  token: string;
  cookie: string;
  userId: string;
}

interface Call {
  body?: object;
  at?: Place;
  session?: Session;
  by?: "cookie" | "bearer";
  on?: Member;
}

function createWorld(script: string, given: Omit<Order, "migrate">) {
  const random = createRandom(SEED);
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T;
  const members: Member[] = [];
  const places: Place[] = [{ id: null }];
  const sessions: Session[] = [];
  const findings: string[] = [];
  const counts = { requests: 0, deleted: 0, killed: 0, checked: 0 };
  /** Which tenant the ids of users and the tokens of sessions belong to. */
  const owners = new Map<string, Place>();

  async function launch(index: number) {
    const order: Order = { ...given, migrate: members.length === 0 };
    // Without the variables of the test: better-auth behaves differently under test runners.
    const env = { PATH: process.env.PATH, NODE_ENV: "production" };
    const child = fork(script, [JSON.stringify(order)], { env, execArgv: [], stdio: QUIET });
    const [port] = await once(child, "message");
    members[index] = { child, port };
  }

  async function kill(member: Member) {
    member.isKilled = true;
    member.child.kill("SIGKILL");
    await once(member.child, "exit");
  }

  const running = () => members.filter(({ isKilled }) => !isKilled);
  const isLeaving = (place?: Place) => place?.goneAt !== undefined;

  /** Undefined if the process was killed meanwhile. */
  async function ask(path: string, { body, at, session, by = "cookie", on }: Call = {}) {
    counts.requests++;
    const member = on ?? pick(running());
    const headers = new Headers({ origin: "http://localhost:3000" });
    if (body) headers.set("content-type", "application/json");
    if (at?.id) headers.set("x-tenant-id", at.id);
    if (session && by === "cookie") headers.set("cookie", session.cookie);
    if (session && by === "bearer") headers.set("authorization", `Bearer ${session.token}`);
    const init = { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) };
    const line = `${path} ${JSON.stringify({ body, at: at?.id, of: session?.place.id, by })}`;
    try {
      const response = await fetch(`http://127.0.0.1:${member.port}/api/auth${path}`, init);
      const text = await response.text();
      const { status } = response;
      const isOvertaken = isLeaving(at) || isLeaving(session?.place);
      if (status >= 500 && !isOvertaken) findings.push(`${line}: ${status} ${text}`);
      for (const id of at ? (text.match(/\b[A-Za-z0-9]{32}\b/g) ?? []) : []) {
        if ((owners.get(id) ?? at) !== at) findings.push(`${line} shows ${id}: ${text}`);
      }
      const data = /^[{[]/.test(text) ? JSON.parse(text) : null;
      return { status, data, headers: response.headers, line: `${line}: ${status} ${text}` };
    } catch (error) {
      if (!member.isKilled) findings.push(`${line}: ${error}`);
      return undefined;
    }
  }

  /** Signs up or in, by better-auth's endpoint or by the tenant route. */
  async function enter(place: Place, path: string, person: object): Promise<Session | undefined> {
    const isRoute = place.id !== null && random() < 0.5;
    const body = isRoute ? { ...person, tenantId: place.id } : person;
    const answer = await ask(`${isRoute ? "/tenant" : ""}${path}`, { body, at: place });
    if (answer?.status !== 200) {
      if (answer && !isLeaving(place)) findings.push(`refused: ${answer.line}`);
      return undefined;
    }
    const { token, user } = answer.data;
    if ((user.tenantId ?? null) !== place.id) findings.push(`elsewhere: ${answer.line}`);
    const [cookie = ""] = answer.headers.getSetCookie()[0]?.split(";") ?? [];
    const session = { place, token, cookie, userId: user.id };
    owners.set(user.id, place).set(token.split("~").at(-1), place);
    sessions.push(session);
    return session;
  }

  /** Signs up in a tenant, uses the session there, and tries it everywhere else. */
  async function live(name: string, goesOn: () => boolean) {
    for (let count = 0; goesOn(); count++) {
      const place = pick(places.filter((one) => !isLeaving(one)));
      const person = { name, email: `${name}-${count}@example.com`, password: `password ${count}` };
      if (!(await enter(place, "/sign-up/email", person))) continue;
      const session = await enter(place, "/sign-in/email", person);
      if (!session) continue;
      const by = pick(["cookie", "bearer"] as const);
      const call = { session, by, ...(random() < 0.5 && { at: place }) };
      const own = await ask("/get-session", call);
      if (own && own.data?.user?.id !== session.userId && !isLeaving(place)) {
        findings.push(`lost: ${own.line}`);
      }
      const other = pick(places.filter((one) => one.id !== null && one !== place));
      if (!other) continue;
      for (const [path, attempt] of [
        ["/get-session", { session, by }],
        ["/list-sessions", { session, by }],
        ["/update-user", { session, by, body: { name: "of elsewhere" } }],
        ["/sign-in/email", { body: person }],
      ] as const) {
        const tried = await ask(path, { ...attempt, at: other });
        if (tried && tried.status < 400 && tried.data) findings.push(`crossing: ${tried.line}`);
      }
      await sleep(random() * 120);
    }
  }

  async function create(operator: Session) {
    const slug = `tenant-${counts.requests}-${places.length}`;
    const answer = await ask("/tenant/create", { body: { name: slug, slug }, session: operator });
    if (answer?.status === 200) places.push({ id: answer.data.id });
  }

  /** Asks until the tenant is gone: a process may be killed while it deletes. */
  async function remove(operator: Session, place: Place) {
    place.goneAt = Number.POSITIVE_INFINITY;
    for (;;) {
      const body = { tenantId: place.id };
      const answer = await ask("/tenant/delete", { body, session: operator });
      if (answer?.status === 200 || answer?.status === 404) break;
    }
    place.goneAt = Date.now();
    counts.deleted++;
  }

  async function manage(operator: Session, goesOn: () => boolean) {
    const present = () => places.filter((one) => one.id !== null && !isLeaving(one));
    while (goesOn()) {
      if (present().length < 6) await create(operator);
      else await remove(operator, pick(present()));
      await sleep(random() * 300);
    }
    for (const { id } of (await ask("/tenant/list", { session: operator }))?.data ?? []) {
      await remove(operator, places.find((one) => one.id === id) ?? { id });
    }
  }

  async function killNowAndThen(goesOn: () => boolean) {
    for (await sleep(3_000); goesOn(); await sleep(2_500 + random() * 3_000)) {
      const index = Math.floor(random() * 3);
      await kill(members[index] as Member);
      counts.killed++;
      await launch(index);
    }
  }

  /** R10: no process accepts a session of a tenant that is gone. */
  async function checkSessions() {
    const latest = Math.max(...places.map(({ goneAt = 0 }) => goneAt));
    await sleep(Math.max(0, latest + GRACE_MS - Date.now()));
    for (const session of sessions.filter(({ place }) => place.id !== null)) {
      counts.checked++;
      const by = counts.checked % 2 ? ("cookie" as const) : ("bearer" as const);
      for (const on of members) {
        const answer = await ask("/get-session", { session, by, on });
        if (answer?.data) findings.push(`late session: ${answer.line}`);
      }
    }
  }

  return {
    findings,
    counts,
    members,
    launch,
    kill,
    running,
    enter,
    live,
    manage,
    killNowAndThen,
    checkSessions,
  };
}

/** Rows of tenants that are gone, after a purge. */
async function rowsLeft({ query }: TestDatabase) {
  const tables = await query(
    "select table_name as name from information_schema.columns where table_schema = 'public' and column_name = 'tenantId'",
  );
  const found = tables.map(({ name }) => query(`select * from "${name}" where "tenantId" <> ''`));
  return [...(await Promise.all(found)).flat(), ...(await query("select * from tenant"))];
}

describe.runIf(servers.asked)("three processes, users and tenants that come and go", () => {
  it.each(["PostgreSQL", "Redis"] as const)(
    "R3, R5, R10: with sessions in %s, nothing crosses, and nothing is left behind",
    async (sessionsIn) => {
      const worker = await buildForProcesses(join(import.meta.dirname, "worker.ts"));
      onTestFinished(worker.remove);
      const database = await createDatabase("postgres");
      onTestFinished(() => database.close());
      const redisPrefix = `soak-${randomBytes(8).toString("hex")}:`;
      const redis = new Redis({ host: "127.0.0.1", port: 6379 });
      onTestFinished(async () => {
        const keys = await redis.keys(`${redisPrefix}*`);
        if (keys.length) await redis.del(keys);
        await redis.quit();
      });
      const [row] = await database.query("select current_database() as name");
      const world = createWorld(worker.path, {
        database: String(row?.name),
        secret: randomBytes(32).toString("hex"),
        ...(sessionsIn === "Redis" && { redisPrefix }),
      });
      onTestFinished(async () => void (await Promise.all(world.running().map(world.kill))));
      for (const index of [0, 1, 2]) await world.launch(index);

      const person = { name: "O", email: "operator@example.com", password: "of the operator" };
      const operator = await world.enter({ id: null }, "/sign-up/email", person);
      if (!operator) throw new Error(world.findings.join("\n"));
      const end = Date.now() + SECONDS * 1000;
      const isOpen = () => Date.now() < end;
      await Promise.all([
        world.manage(operator, isOpen),
        world.killNowAndThen(isOpen),
        ...Array.from({ length: 24 }, (_, index) => world.live(`user-${index}`, isOpen)),
      ]);
      await world.checkSessions();
      const [member] = world.members;
      member?.child.send("purge");
      if (member) await once(member.child, "message");

      console.log(`Sessions in ${sessionsIn}, ${SECONDS} s, SOAK_SEED=${SEED}`, world.counts);
      expect(world.findings).toEqual([]);
      expect(await rowsLeft(database)).toEqual([]);
      // That nothing went wrong says something only if a lot was done.
      const { killed, deleted, checked } = world.counts;
      expect([killed > 0, deleted > 4, checked > 40]).toEqual([true, true, true]);
    },
    SECONDS * 3_000 + 120_000,
  );
});
