import { type ChildProcess, fork, type StdioOptions } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "tsup";
import { expect, onTestFinished } from "vitest";
import type { TestDatabase } from "../support/database";
import { createRandom } from "../support/matrix";
import type { Order } from "./worker";

/** SOAK_SECONDS=60 makes a soak longer, SOAK_SEED=… repeats its choices. */
export const SECONDS = Number(process.env.SOAK_SECONDS ?? 20);
const SEED = Number(process.env.SOAK_SEED ?? randomBytes(4).readUInt32BE());
/** How long another process may accept sessions of a deleted tenant, on a busy machine. */
const GRACE_MS = 10_500;

const OPERATOR = { name: "O", email: "operator@example.com", password: "of the operator" };

/** SOAK_LOG=… is a file that gets what the processes print. */
const OUTPUT = process.env.SOAK_LOG ? openSync(process.env.SOAK_LOG, "a") : "ignore";
const STDIO: StdioOptions = ["ignore", OUTPUT, OUTPUT, "ipc"];

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
  since: number;
  /** Whether its user has revoked it; "perhaps" if there was no answer. */
  revoked?: "yes" | "perhaps";
}

type Person = { name: string; email: string; password: string };

/** What a response must not say about the servers behind it. */
const INTERNAL =
  /127\.0\.0\.1|ECONN|\bpg\b|postgres|mysql|maria|wsrep|redis|pgbouncer|haproxy|node_modules|\bat \S+ \(/i;

interface Call {
  body?: object;
  at?: Place;
  session?: Session;
  by?: "cookie" | "bearer";
  on?: Member;
}

/** What a soak expects of its servers. */
interface Expectations {
  /**
   * Whether responses may be 503 `TRY_AGAIN` at any moment, as on a cluster. Each counts as failed.
   */
  mayRollBack?: boolean;
}

function createWorld(
  script: string,
  given: Omit<Order, "migrate">,
  { mayRollBack = false }: Expectations,
) {
  const random = createRandom(SEED);
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T;
  const members: Member[] = [];
  const platform: Place = { id: null };
  const places = [platform];
  const sessions: Session[] = [];
  const findings: string[] = [];
  const people: { place: Place; person: Person }[] = [];
  const counts = {
    requests: 0,
    failed: 0,
    deleted: 0,
    killed: 0,
    checked: 0,
    revoked: 0,
    signedUp: 0,
    /** The longest time in which no user and no session was stored. */
    withoutWritesMs: 0,
  };
  /** Responses of 500 and above, by path, status and code. */
  const failures: Record<string, number> = {};
  let lastWriteAt = Date.now();
  /** While a server is away, and a moment longer, requests may fail. */
  let outage = { since: 0, until: 0 };
  /** When sessions were made that may be lost with their storage. */
  const losses: { from: number; to: number }[] = [];
  /** Which tenant the ids of users and the tokens of sessions belong to. */
  const owners = new Map<string, Place>();

  async function launch(index: number) {
    const order: Order = { ...given, migrate: members.length === 0 };
    // Without the variables of the test: better-auth behaves differently under test runners.
    const env = { PATH: process.env.PATH, NODE_ENV: "production" };
    const child = fork(script, [JSON.stringify(order)], { env, execArgv: [], stdio: STDIO });
    const [port] = await once(child, "message");
    members[index] = { child, port };
  }

  async function kill(member: Member) {
    member.isKilled = true;
    const { child } = member;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  const running = () => members.filter(({ isKilled }) => !isKilled);
  const isLeaving = (place?: Place) => place?.goneAt !== undefined;
  const isAway = (started: number) => started < outage.until && Date.now() > outage.since;
  const mayBeLost = (session: Session) =>
    losses.some(({ from, to }) => session.since > from && session.since <= to);

  /** Undefined if the process was killed meanwhile. */
  async function ask(path: string, { body, at, session, by = "cookie", on }: Call = {}) {
    counts.requests++;
    const started = Date.now();
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
      if (status >= 500) {
        counts.failed++;
        const { code } = JSON.parse(text.startsWith("{") ? text : "{}");
        const kind = `${path} ${status} ${code ?? text}`;
        failures[kind] = (failures[kind] ?? 0) + 1;
        if (INTERNAL.test(text)) findings.push(`tells: ${line}: ${text}`);
        if (isAway(started)) return undefined;
        const isTryAgain = status === 503 && code === "TRY_AGAIN";
        if (mayRollBack && isTryAgain && response.headers.get("retry-after")) return undefined;
        if (!isOvertaken) findings.push(`${line}: ${status} ${text}`);
      }
      for (const id of at ? (text.match(/\b[A-Za-z0-9]{32}\b/g) ?? []) : []) {
        if ((owners.get(id) ?? at) !== at) findings.push(`${line} shows ${id}: ${text}`);
      }
      const data = /^[{[]/.test(text) ? JSON.parse(text) : null;
      return {
        status,
        data,
        headers: response.headers,
        line: `${line}: ${status} ${text}`,
        started,
      };
    } catch (error) {
      if (!member.isKilled) findings.push(`${line}: ${error} ${(error as Error).cause}`);
      return undefined;
    }
  }

  /** Signs up or in, by better-auth's endpoint or by the tenant route. */
  async function enter(place: Place, path: string, person: Person): Promise<Session | undefined> {
    const isRoute = place.id !== null && random() < 0.5;
    const body = isRoute ? { ...person, tenantId: place.id } : person;
    const answer = await ask(`${isRoute ? "/tenant" : ""}${path}`, { body, at: place });
    if (answer?.status !== 200) {
      const isFault = answer && isAway(answer.started);
      if (answer && !isFault && !isLeaving(place)) findings.push(`refused: ${answer.line}`);
      return undefined;
    }
    counts.withoutWritesMs = Math.max(counts.withoutWritesMs, Date.now() - lastWriteAt);
    lastWriteAt = Date.now();
    if (path === "/sign-up/email") {
      counts.signedUp++;
      people.push({ place, person });
    }
    const { token, user } = answer.data;
    if ((user.tenantId ?? null) !== place.id) findings.push(`elsewhere: ${answer.line}`);
    const [cookie = ""] = answer.headers.getSetCookie()[0]?.split(";") ?? [];
    const session = { place, token, cookie, userId: user.id, since: answer.started };
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
      const isThere = own?.data?.user?.id === session.userId;
      if (own && !isThere && !isLeaving(place) && !mayBeLost(session)) {
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
      if (random() < 0.2) await revoke(session);
      await sleep(random() * 120);
    }
  }

  async function revoke(session: Session) {
    session.revoked = "perhaps";
    const answer = await ask("/revoke-session", { session, body: { token: session.token } });
    if (answer?.status !== 200) return;
    session.revoked = "yes";
    counts.revoked++;
  }

  const operators: Session[] = [];

  /** Signs the operator up, and in again once the session is lost. */
  async function operator(): Promise<Session> {
    for (;;) {
      const last = operators.at(-1);
      if (last && !mayBeLost(last)) return last;
      const path = last ? "/sign-in/email" : "/sign-up/email";
      const session = await enter(platform, path, OPERATOR);
      if (session) operators.push(session);
      else if (!last) throw new Error(findings.join("\n"));
      if (session && mayBeLost(session)) await sleep(50);
    }
  }

  async function create() {
    const slug = `tenant-${counts.requests}-${places.length}`;
    const answer = await ask("/tenant/create", {
      body: { name: slug, slug },
      session: await operator(),
    });
    if (answer?.status === 200) places.push({ id: answer.data.id });
  }

  /** Asks until the tenant is gone: a process may be killed while it deletes. */
  async function remove(place: Place) {
    place.goneAt = Number.POSITIVE_INFINITY;
    for (;;) {
      const body = { tenantId: place.id };
      const answer = await ask("/tenant/delete", { body, session: await operator() });
      if (answer?.status === 200 || answer?.status === 404) break;
      await sleep(50);
    }
    place.goneAt = Date.now();
    counts.deleted++;
  }

  const present = () => places.filter((one) => one.id !== null && !isLeaving(one));

  async function manage(goesOn: () => boolean) {
    while (goesOn()) {
      if (present().length < 6) await create();
      else await remove(pick(present()));
      await sleep(random() * 300);
    }
  }

  async function removeAll() {
    for (const { id } of (await ask("/tenant/list", { session: await operator() }))?.data ?? []) {
      await remove(places.find((one) => one.id === id) ?? { id });
    }
  }

  /** Runs what takes a server away, and lets requests fail until every process answers again. */
  async function takeAway(run: () => Promise<void>): Promise<number> {
    outage = { since: Date.now(), until: Number.POSITIVE_INFINITY };
    await run();
    const back = Date.now();
    for (const on of members) {
      while (!(await isUp(on))) {
        if (Date.now() - back > 10_000) throw new Error("A process has not recovered");
        await sleep(50);
      }
    }
    outage.until = Date.now();
    return outage.until - back;
  }

  const isUp = async (on: Member) => (await signIn(platform, OPERATOR, on))?.status === 200;

  const signIn = (place: Place, { email, password }: Person, on?: Member) =>
    ask("/sign-in/email", { at: place, body: { email, password }, ...(on && { on }) });

  /**
   * Runs what loses the sessions that were made after a moment, of all time if it is not given. The
   * storage loses them before `run` hears of it.
   */
  async function loseSessions(run: () => Promise<void>, from = 0) {
    const loss = { from, to: Number.POSITIVE_INFINITY };
    losses.push(loss);
    await run();
    loss.to = Date.now();
  }

  /** Everyone who was told to be signed up still is. */
  async function checkPeople() {
    for (const { place, person } of people.filter((one) => !isLeaving(one.place))) {
      counts.checked++;
      const answer = await signIn(place, person);
      if (answer?.status !== 200) findings.push(`forgotten: ${answer?.line}`);
    }
    for (const session of sessions.filter((one) => !isLeaving(one.place))) {
      const answer = await ask("/get-session", { session });
      const isThere = answer?.data !== null;
      if (session.revoked === "yes" && isThere) findings.push(`came back: ${answer?.line}`);
      if (session.revoked || mayBeLost(session)) continue;
      if (!isThere) findings.push(`forgotten session: ${answer?.line}`);
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
    failures,
    members,
    launch,
    kill,
    running,
    operator,
    live,
    manage,
    removeAll,
    takeAway,
    loseSessions,
    killNowAndThen,
    checkPeople,
    checkSessions,
  };
}

/** Builds the program of the processes, inside the project, so that it finds its packages. */
async function buildWorker() {
  const outDir = mkdtempSync(join(import.meta.dirname, "../../node_modules/.process-"));
  await build({
    entry: { main: join(import.meta.dirname, "worker.ts") },
    outDir,
    format: "esm",
    target: "node20",
    skipNodeModulesBundle: true,
    config: false,
    silent: true,
  });
  return { path: join(outDir, "main.js"), remove: () => rmSync(outDir, { recursive: true }) };
}

/** Three processes, which end with the test, and an operator. */
export async function startSoak(
  given: Omit<Order, "migrate" | "secret">,
  expectations: Expectations = {},
) {
  const worker = await buildWorker();
  onTestFinished(worker.remove);
  const secret = randomBytes(32).toString("hex");
  const world = createWorld(worker.path, { ...given, secret }, expectations);
  onTestFinished(async () => void (await Promise.all(world.running().map(world.kill))));
  for (const index of [0, 1, 2]) await world.launch(index);
  await world.operator();

  return {
    ...world,

    /** People come and go, for as long as it goes on. */
    crowd: (goesOn: () => boolean) => [
      world.manage(goesOn),
      ...Array.from({ length: 24 }, (_, index) => world.live(`user-${index}`, goesOn)),
    ],

    /** Deletes all tenants and what is left of them: nothing may be. */
    async finish(database: Pick<TestDatabase, "query" | "quote">) {
      await world.removeAll();
      await world.checkSessions();
      const [member] = world.members;
      member?.child.send("purge");
      if (member) await once(member.child, "message");
      console.log(`${SECONDS} s, SOAK_SEED=${SEED}`, world.counts, world.failures);
      expect(world.findings).toEqual([]);
      expect(await rowsLeft(database)).toEqual([]);
      // That nothing went wrong says something only if a lot was done.
      const { deleted, checked } = world.counts;
      expect([deleted > 4, checked > 40]).toEqual([true, true]);
    },
  };
}

/** Rows of tenants that are gone, after a purge. */
async function rowsLeft({ query, quote }: Pick<TestDatabase, "query" | "quote">) {
  const tables = await query(
    "select table_name as name from information_schema.columns where table_schema in ('public', 'auth') and column_name = 'tenantId'",
  );
  const found = tables.map(({ name }) =>
    query(`select * from ${quote(String(name))} where ${quote("tenantId")} <> ''`),
  );
  return [...(await Promise.all(found)).flat(), ...(await query("select * from tenant"))];
}
