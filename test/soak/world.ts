import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createRandom } from "../support/matrix";
import type { Order } from "./worker";

/** Chance that comes out the same for the same seed. */
export class Random {
  private readonly next: () => number;

  constructor(seed: number) {
    this.next = createRandom(seed);
  }

  below = (limit: number) => Math.floor(this.next() * limit);

  /** True once in so many times. */
  oneIn = (times: number) => this.below(times) === 0;

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error("nothing to choose from");
    return items[this.below(items.length)] as T;
  }
}

/** One life of a process; who is killed and started again is another member in the same place. */
export interface Member {
  number: number;
  port: number;
  child: ChildProcess;
  killedAt?: number;
  /** What it complained about. */
  log: string[];
}

/** The processes, each of which may be gone for a moment. */
export class Fleet {
  readonly members: Member[] = [];

  constructor(
    private readonly script: string,
    private readonly order: Omit<Order, "migrate">,
    /** A process that ended without being killed. */
    private readonly onDeath: (member: Member) => void,
  ) {}

  /** The first one makes the tables for the others. */
  async start(): Promise<void> {
    for (const number of [1, 2, 3]) this.members.push(await this.launch(number));
  }

  get running(): Member[] {
    return this.members.filter(({ killedAt }) => !killedAt);
  }

  /** Ends a process without a warning, and starts it again. */
  async killAndRestart(member: Member): Promise<void> {
    await this.kill(member);
    this.members[member.number - 1] = await this.launch(member.number);
  }

  async close(): Promise<void> {
    await Promise.all(this.running.map((member) => this.kill(member)));
  }

  /** Lets one of them run `purgeTenants()`. */
  async purge(): Promise<void> {
    const [member] = this.running;
    if (!member) throw new Error("no process is left");
    const done = once(member.child, "message");
    member.child.send("purge");
    await done;
  }

  private async kill(member: Member): Promise<void> {
    member.killedAt = Date.now();
    const exit = once(member.child, "exit");
    member.child.kill("SIGKILL");
    await exit;
  }

  private async launch(number: number): Promise<Member> {
    const order: Order = { ...this.order, migrate: this.members.length === 0 };
    const child = fork(this.script, [JSON.stringify(order)], {
      // As on a server: better-auth is another one where it sees a test.
      env: { PATH: process.env.PATH, NODE_ENV: "production" },
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    const member: Member = { number, port: 0, child, log: [] };
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk) => member.log.push(...String(chunk).split("\n").filter(Boolean)));
    }
    const ended = once(child, "exit").then(() => {
      throw new Error(`no start: ${member.log.join("\n")}`);
    });
    [member.port] = (await Promise.race([once(child, "message"), ended])) as [number];
    ended.catch(() => {
      if (!member.killedAt) this.onDeath(member);
      member.killedAt ??= Date.now();
    });
    return member;
  }
}

/** A tenant, or the platform, where the id is null. */
export interface Place {
  id: string | null;
  /** "leaving" from the moment at which somebody asks for its deletion. */
  state: "there" | "leaving" | "gone";
  /** When the deletion was answered. */
  goneAt: number;
}

const place = (id: string | null): Place => ({ id, state: "there", goneAt: 0 });

/** A session that somebody was given, and keeps for later. */
export interface Session {
  token: string;
  cookie: string;
  place: Place;
  userId: string;
  checked: boolean;
}

export interface Call {
  path: string;
  /** With a body it is a POST. */
  body?: Record<string, unknown>;
  query?: Record<string, string>;
  /** Named by the header. */
  at?: Place;
  session?: Session;
  /** How the session is shown: by its cookie unless told. */
  by?: "cookie" | "bearer";
  /** Whose things may be in the answer; anybody's where this is left out. */
  home?: Place;
  on?: Member;
}

export interface Answer {
  status: number;
  data: Record<string, unknown> | null;
  headers: Headers;
  /** The request and the answer in a line. */
  text: string;
}

/**
 * What must not happen. "server error": a 5xx, or no answer from a process that nobody killed.
 * "refused": something ordinary in a tenant that was there all the time.
 */
type Finding = "crossing" | "late session" | "left behind" | "server error" | "refused";

/** How long a process may take to notice that another one has deleted a tenant. */
export const ALLOWED_MS = 10_000;

/** The tenants and sessions of a run as the test knows them, and the one way to ask a server. */
export class World {
  readonly platform = place(null);
  readonly tenants: Place[] = [];
  readonly sessions: Session[] = [];
  /** When processes were killed. */
  readonly kills: number[] = [];
  /** How often things were done. */
  readonly counts: Record<string, number> = {};
  readonly findings: `${Finding}: ${string}`[] = [];
  /** Ids of tenants and users and tokens of sessions, and where they belong. */
  private readonly owners = new Map<string, Place>();
  readonly fleet: Fleet;

  constructor(script: string, order: Omit<Order, "migrate">) {
    this.fleet = new Fleet(script, order, ({ number, log }) =>
      this.fail("server error", `process ${number} died: ${log.slice(-5).join(" ")}`),
    );
  }

  count(what: string): number {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
    return this.counts[what];
  }

  fail(kind: Finding, text: string): void {
    this.findings.push(`${kind}: ${text.slice(0, 450)}`);
  }

  /** Where somebody may go now. */
  get places(): Place[] {
    return [this.platform, ...this.tenants.filter(({ state }) => state !== "gone")];
  }

  addTenant(id: string): Place {
    const added = place(id);
    this.tenants.push(added);
    this.owners.set(id, added);
    return added;
  }

  /** Keeps the session of an answer, if it has one. */
  remember({ data, headers }: Answer, at: Place): Session | undefined {
    const user = data?.user as { id: string } | undefined;
    const line = headers.getSetCookie().find((one) => /session_token=[^;]/.test(one));
    if (typeof data?.token !== "string" || !user || !line) return undefined;
    const { token } = data as { token: string };
    const [cookie = ""] = line.split(";");
    const session = { token, cookie, place: at, userId: user.id, checked: at.id === null };
    this.owners.set(token, at).set(user.id, at);
    this.sessions.push(session);
    return session;
  }

  /** Nothing is answered where the process was killed meanwhile. */
  async ask(call: Call, random: Random): Promise<Answer | undefined> {
    const member = call.on ?? random.pick(this.fleet.running);
    const { path, query, body, at, session, by } = call;
    const told = { path, query, body, at: at?.id, sessionOf: session?.place.id, by };
    const line = `${JSON.stringify(told)} on process ${member.number}`;
    const address = `http://127.0.0.1:${member.port}/api/auth${path}?${new URLSearchParams(query)}`;
    this.count("requests");
    try {
      const response = await fetch(address, initOf(call));
      const { status, headers } = response;
      const said = await response.text();
      const text = `${line}: ${status} ${said}`;
      // In a tenant that is being deleted a request has no future anyway.
      if (status >= 500 && !isOvertaken(call)) this.fail("server error", text);
      this.findCrossing(call, `${said} ${[...headers].join(" ")}`, text);
      return { status, headers, text, data: /^[{[]/.test(said) ? JSON.parse(said) : null };
    } catch (error) {
      if (member.killedAt) this.count("requests cut off by a kill");
      else this.fail("server error", `${line}: ${(error as Error).cause ?? error}`);
      return undefined;
    }
  }

  /** Whatever is asked for, an answer shows nothing that belongs elsewhere. */
  private findCrossing({ home }: Call, answered: string, text: string): void {
    // What looks like an id or a token: better-auth makes them all alike.
    for (const id of answered.match(/\b[A-Za-z0-9]{32}\b/g) ?? []) {
      const owner = this.owners.get(id) ?? home;
      if (home && owner !== home) {
        this.fail("crossing", `${id} of ${owner?.id ?? "the platform"}, seen in ${text}`);
      }
    }
  }
}

/** Whether the request is about a tenant that is on its way out, or has just left. */
const isOvertaken = ({ at, home, session }: Call): boolean =>
  [at, home, session?.place].some(
    (one) => one && (one.state === "leaving" || one.goneAt > Date.now() - ALLOWED_MS),
  );

function initOf({ at, session, by = "cookie", body }: Call): RequestInit {
  const headers: Record<string, string> = { origin: "http://localhost:3000" };
  if (at?.id) headers["x-tenant-id"] = at.id;
  if (session && by === "cookie") headers.cookie = session.cookie;
  if (session && by === "bearer") headers.authorization = `Bearer ${session.token}`;
  const signal = AbortSignal.timeout(30_000);
  if (!body) return { headers, signal };
  headers["content-type"] = "application/json";
  return { headers, signal, method: "POST", body: JSON.stringify(body) };
}
