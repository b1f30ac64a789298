import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Message, Order } from "./worker";

/** Chance that comes out the same for the same seed. */
export type Random = ReturnType<typeof createRandom>;

/** Mulberry32: small, and good enough to choose steps by. */
export function createRandom(seed: number) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    /** True once in so many times. */
    oneIn: (times: number) => below(times) === 0,
    pick: <T>(items: readonly T[]): T => {
      if (items.length === 0) throw new Error("nothing to choose from");
      return items[below(items.length)] as T;
    },
  };
}

/**
 * What must not happen. "server error": a 5xx, or no answer from a process that nobody killed.
 * "refused": something ordinary in a tenant that was there all the time.
 */
type Finding = "crossing" | "late session" | "left behind" | "server error" | "refused";

/** Counts what happens in a run, and lists what must not happen. */
export class Ledger {
  readonly findings: `${Finding}: ${string}`[] = [];
  private readonly counts = new Map<string, number>();

  count(what: string): void {
    this.counts.set(what, this.counted(what) + 1);
  }

  counted(what: string): number {
    return this.counts.get(what) ?? 0;
  }

  fail(kind: Finding, text: string): void {
    this.findings.push(`${kind}: ${text.slice(0, 450)}`);
  }

  report(title: string): string {
    const figures = [...this.counts].sort().map(([what, times]) => `  ${what}: ${times}`);
    return [title, ...figures].join("\n");
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

interface FleetOptions {
  script: string;
  order: Omit<Order, "migrate">;
  /** A process that ended without being killed. */
  onDeath(member: Member): void;
}

const SIZE = 3;
const START_MS = 60_000;

/** The processes, each of which may be gone for a moment. */
export class Fleet {
  readonly members: Member[] = [];

  private constructor(private readonly options: FleetOptions) {}

  static async start(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options);
    // The first one makes the tables for the others.
    for (let number = 1; number <= SIZE; number++) {
      fleet.members.push(await fleet.launch(number, number === 1));
    }
    return fleet;
  }

  get running(): Member[] {
    return this.members.filter(({ killedAt }) => !killedAt);
  }

  /** The process with this number, once it is there. */
  async member(number: number): Promise<Member> {
    for (const end = Date.now() + START_MS; Date.now() < end; await sleep(20)) {
      const member = this.running.find((one) => one.number === number);
      if (member) return member;
    }
    throw new Error(`process ${number} is not there`);
  }

  /** Ends a process without a warning, and starts it again. */
  async killAndRestart(member: Member): Promise<void> {
    await this.kill(member);
    this.members[member.number - 1] = await this.launch(member.number, false);
  }

  async close(): Promise<void> {
    await Promise.all(this.running.map((member) => this.kill(member)));
  }

  private async kill(member: Member): Promise<void> {
    member.killedAt = Date.now();
    const exit = once(member.child, "exit");
    member.child.kill("SIGKILL");
    await exit;
  }

  private async launch(number: number, migrate: boolean): Promise<Member> {
    const { script, order, onDeath } = this.options;
    const child = fork(script, [JSON.stringify({ ...order, migrate } satisfies Order)], {
      // As on a server: better-auth is another one where it sees a test.
      env: { PATH: process.env.PATH, NODE_ENV: "production" },
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    const member: Member = { number, port: 0, child, log: [] };
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk) => member.log.push(...String(chunk).split("\n").filter(Boolean)));
    }
    member.port = await this.listenTo(member);
    child.once("exit", () => {
      if (!member.killedAt) onDeath(member);
      member.killedAt ??= Date.now();
    });
    return member;
  }

  /** Answers the port, once the process says it. */
  private listenTo({ child, log }: Member): Promise<number> {
    return new Promise((resolve, reject) => {
      child.once("exit", () => reject(new Error(`no start: ${log.join("\n")}`)));
      child.once("message", ({ port }: Message) => resolve(port));
    });
  }
}

/** A tenant, or the platform, where the id is null. */
export interface Place {
  id: string | null;
  /** "leaving" from the moment at which somebody asks for its deletion. */
  state: "there" | "leaving" | "gone";
  /** When the deletion was answered. */
  goneAt: number;
  /** The processes that were asked to delete it. */
  deleters: Member[];
}

const place = (id: string | null): Place => ({ id, state: "there", goneAt: 0, deleters: [] });

/** A session that somebody was given, and keeps for later. */
export interface Session {
  token: string;
  cookie: string;
  place: Place;
  userId: string;
  /** Which step it came from, for the report. */
  origin: string;
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

const ORIGIN = "http://localhost:3000";
const PATIENCE_MS = 30_000;
/** How long a process may take to notice that another one has deleted a tenant. */
export const ALLOWED_MS = 10_000;

/** The tenants and sessions of a run as the test knows them, and the one way to ask a server. */
export class World {
  readonly platform = place(null);
  readonly tenants: Place[] = [];
  readonly sessions: Session[] = [];
  /** When processes were killed. */
  readonly kills: number[] = [];
  /** Ids of tenants and users and tokens of sessions, and where they belong. */
  private readonly owners = new Map<string, Place>();
  fleet!: Fleet;

  constructor(readonly ledger: Ledger) {}

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
  remember(answer: Answer, at: Place, origin: string): Session | undefined {
    const token = answer.data?.token ?? answer.headers.get("set-auth-token")?.split(".")[0];
    const user = answer.data?.user as { id: string } | undefined;
    const cookie = answer.headers.getSetCookie().find((line) => /session_token=[^;]/.test(line));
    if (typeof token !== "string" || !user || !cookie) return undefined;
    const session: Session = {
      token,
      cookie: cookie.split(";")[0] ?? "",
      place: at,
      userId: user.id,
      origin,
      checked: at.id === null,
    };
    this.owners.set(token, at).set(user.id, at);
    this.sessions.push(session);
    return session;
  }

  /** Nothing is answered where the process was killed meanwhile. */
  async ask(call: Call, random: Random): Promise<Answer | undefined> {
    const { fleet, ledger } = this;
    const member = call.on ?? random.pick(fleet.running);
    const line = `${describe(call)} on process ${member.number}`;
    ledger.count("requests");
    try {
      const response = await fetch(addressOf(call, member), initOf(call));
      const body = await response.text();
      const { status, headers } = response;
      const text = `${line}: ${status} ${body}`;
      // In a tenant that is being deleted a request has no future anyway.
      if (status >= 500 && !isOvertaken(call)) ledger.fail("server error", text);
      this.findCrossing(call, `${body} ${[...headers].join(" ")}`, text);
      return { status, headers, text, data: parse(body) };
    } catch (error) {
      if (member.killedAt) ledger.count("requests cut off by a kill");
      else ledger.fail("server error", `${line}: ${(error as Error).cause ?? error}`);
      return undefined;
    }
  }

  /** Whatever is asked for, an answer shows nothing that belongs elsewhere. */
  private findCrossing({ home }: Call, answered: string, text: string): void {
    if (!home) return;
    // What looks like an id or a token: better-auth makes them all alike.
    const ids = answered.match(/\b[A-Za-z0-9]{32}\b/g) ?? [];
    const foreign = ids.find((id) => (this.owners.get(id) ?? home) !== home);
    if (!foreign) return;
    const owner = this.owners.get(foreign)?.id ?? "the platform";
    this.ledger.fail("crossing", `${foreign} belongs to ${owner}, seen in ${text}`);
  }
}

/** Whether the request is about a tenant that is on its way out, or has just left. */
function isOvertaken({ at, home, session }: Call): boolean {
  const justLeft = ({ goneAt }: Place) => goneAt > Date.now() - ALLOWED_MS;
  return [at, home, session?.place].some(
    (one) => one?.state === "leaving" || (one && justLeft(one)),
  );
}

function addressOf({ path, query }: Call, { port }: Member): string {
  const search = query ? `?${new URLSearchParams(query)}` : "";
  return `http://127.0.0.1:${port}/api/auth${path}${search}`;
}

function initOf({ at, session, by = "cookie", body }: Call): RequestInit {
  const headers: Record<string, string> = { origin: ORIGIN };
  if (at?.id) headers["x-tenant-id"] = at.id;
  if (session && by === "cookie") headers.cookie = session.cookie;
  if (session && by === "bearer") headers.authorization = `Bearer ${session.token}`;
  if (body) headers["content-type"] = "application/json";
  return {
    method: body ? "POST" : "GET",
    headers,
    redirect: "manual",
    signal: AbortSignal.timeout(PATIENCE_MS),
    ...(body ? { body: JSON.stringify(body) } : {}),
  };
}

const describe = ({ path, query, body, at, session, by }: Call): string =>
  JSON.stringify({ path, query, body, at: at?.id, sessionOf: session?.place.id, by });

function parse(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
