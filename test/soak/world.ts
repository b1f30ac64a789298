import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Mail, Message, Order } from "./worker";

/** Chance that comes out the same for the same seed. */
export interface Random {
  below(limit: number): number;
  /** True once in so many times. */
  oneIn(times: number): boolean;
  pick<T>(items: readonly T[]): T;
}

/** Mulberry32: small, and good enough to choose steps by. */
export function createRandom(seed: number): Random {
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
    oneIn: (times) => below(times) === 0,
    pick: (items) => {
      if (items.length === 0) throw new Error("nothing to choose from");
      return items[below(items.length)] as (typeof items)[number];
    },
  };
}

/** What must not happen, or at least is worth a line. */
export type Finding =
  | "crossing"
  | "late session"
  | "left behind"
  /** A 5xx, or no answer at all from a process that nobody killed. */
  | "server error"
  /** Something ordinary that was refused in a tenant that was there all the time. */
  | "refused"
  /** A 5xx in a tenant that was being deleted: listed, but the request had no future anyway. */
  | "overtaken";

const SHOWN = 8;
const LINE = 450;

/** Counts what happens in a run, and lists what must not happen. */
export class Ledger {
  private readonly findings: { kind: Finding; text: string }[] = [];
  private readonly counts = new Map<string, number>();

  count(what: string, times = 1): void {
    this.counts.set(what, this.counted(what) + times);
  }

  counted(what: string): number {
    return this.counts.get(what) ?? 0;
  }

  fail(kind: Finding, text: string): void {
    this.findings.push({ kind, text });
  }

  /** How often each kind of failure was seen. */
  failures(): Partial<Record<Finding, number>> {
    const { overtaken: _, ...failures } = this.byKind();
    return failures;
  }

  report(title: string): string {
    const figures = [...this.counts].sort().map(([what, times]) => `  ${what}: ${times}`);
    const kinds = Object.entries(this.byKind()) as [Finding, number][];
    const findings = kinds.flatMap(([kind, times]) => [
      `  ${kind}: ${times}`,
      ...this.findings
        .filter((finding) => finding.kind === kind)
        .slice(0, SHOWN)
        .map(({ text }) => `    ${text.slice(0, LINE)}`),
      ...(times > SHOWN ? [`    and ${times - SHOWN} more`] : []),
    ]);
    return [title, ...figures, kinds.length ? "Found" : "Found nothing", ...findings].join("\n");
  }

  private byKind(): Partial<Record<Finding, number>> {
    const kinds: Partial<Record<Finding, number>> = {};
    for (const { kind } of this.findings) kinds[kind] = (kinds[kind] ?? 0) + 1;
    return kinds;
  }
}

/** One life of a process; who is killed and started again is another member in the same place. */
export interface Member {
  number: number;
  port: number;
  child: ChildProcess;
  killed: boolean;
  killedAt?: number;
  /** What it complained about. */
  log: string[];
}

interface FleetOptions {
  script: string;
  order: Omit<Order, "migrate">;
  onMail(mail: Mail): void;
  /** A process that ended without being killed. */
  onDeath(member: Member): void;
}

const SIZE = 3;
const START_MS = 60_000;

/** The processes, each of which may be gone for a moment. */
export class Fleet {
  readonly members: Member[] = [];
  private readonly logs: string[][] = [];

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
    return this.members.filter(({ killed }) => !killed);
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

  /** What the processes had to say, each thing once. */
  complaints(): string[] {
    const lines = this.logs.flat().map((line) => line.replace(/^\S+Z /, ""));
    return [...new Set(lines)].filter((line) => !/^\s/.test(line)).slice(0, 30);
  }

  async close(): Promise<void> {
    await Promise.all(this.running.map((member) => this.kill(member)));
  }

  private async kill(member: Member): Promise<void> {
    Object.assign(member, { killed: true, killedAt: Date.now() });
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
    const member: Member = { number, port: 0, child, killed: false, log: [] };
    this.logs.push(member.log);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk) => member.log.push(...String(chunk).split("\n").filter(Boolean)));
    }
    member.port = await this.listenTo(member);
    child.once("exit", () => {
      if (!member.killed) onDeath(member);
      member.killed = true;
    });
    return member;
  }

  /** Answers the port, once the process says it; mails may come from then on. */
  private listenTo(member: Member): Promise<number> {
    return new Promise((resolve, reject) => {
      const { child, log } = member;
      child.once("exit", () => reject(new Error(`no start: ${log.join("\n")}`)));
      child.on("message", (message: Message) => {
        if ("port" in message) resolve(message.port);
        else this.options.onMail(message.mail);
      });
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

/** A session that somebody was given, and keeps for later. */
export interface Session {
  token: string;
  cookie: string;
  place: Place;
  userId: string;
  email: string;
  /** Which step it came from, for the report. */
  origin: string;
  since: number;
  checked: boolean;
}

export interface Call {
  path: string;
  /** With a body it is a POST. */
  body?: Record<string, unknown>;
  query?: Record<string, string>;
  /** Named by the header. */
  at?: Place;
  session?: Pick<Session, "token" | "cookie" | "place" | "email">;
  /** How the session is shown. */
  by?: Credential;
  /** Whose things may be in the answer; anybody's where this is left out. */
  home?: Place;
  on?: Member;
}

export type Credential = "cookie" | "bearer";

export interface Answer {
  status: number;
  data: Record<string, unknown> | null;
  headers: Headers;
  /** The request and the answer in a line. */
  text: string;
  /** Whether something of elsewhere was seen in it. */
  crossed: boolean;
}

const ORIGIN = "http://localhost:3000";
const PATIENCE_MS = 30_000;
const MAIL_MS = 3_000;
/** How long a process may take to notice that another one has deleted a tenant. */
export const ALLOWED_MS = 10_000;

/** The tenants and sessions of a run as the test knows them, and the one way to ask a server. */
export class World {
  readonly platform: Place = { id: null, state: "there", goneAt: 0, deleters: [] };
  readonly tenants: Place[] = [];
  readonly sessions: Session[] = [];
  /** When processes were killed. */
  readonly kills: number[] = [];
  /** Ids of tenants and users and tokens of sessions, and where they belong. */
  private readonly owners = new Map<string, Place>();
  private readonly mails = new Map<string, string>();
  private readonly asked = new Set<string>();
  fleet!: Fleet;

  constructor(readonly ledger: Ledger) {}

  /** Where somebody may go now. */
  get places(): Place[] {
    return [this.platform, ...this.tenants.filter(({ state }) => state !== "gone")];
  }

  addTenant(id: string): Place {
    const place: Place = { id, state: "there", goneAt: 0, deleters: [] };
    this.tenants.push(place);
    this.owners.set(id, place);
    return place;
  }

  /** Whether there is something of a tenant in a text, as far as anybody knows. */
  mentionsTenant(text: string): boolean {
    return idsIn(text).some((id) => (this.owners.get(id)?.id ?? null) !== null);
  }

  /** Keeps the session of an answer, if it has one. */
  remember(answer: Answer, place: Place, email: string, origin: string): Session | undefined {
    const token = answer.data?.token ?? answer.headers.get("set-auth-token")?.split(".")[0];
    const user = answer.data?.user as { id: string } | undefined;
    const cookie = answer.headers.getSetCookie().find((line) => /session_token=[^;]/.test(line));
    if (typeof token !== "string" || !user || !cookie) return undefined;
    const session: Session = {
      token,
      cookie: cookie.split(";")[0] ?? "",
      place,
      userId: user.id,
      email,
      origin,
      since: Date.now(),
      checked: place.id === null,
    };
    this.owners.set(token, place).set(user.id, place);
    this.sessions.push(session);
    this.ledger.count("sessions made");
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
      if (status >= 500) ledger.fail(isOvertaken(call) ? "overtaken" : "server error", text);
      const crossed = this.findCrossing(call, `${body} ${[...headers].join(" ")}`, text);
      return { status, headers, text, crossed, data: parse(body) };
    } catch (error) {
      if (member.killed) ledger.count("requests cut off by a kill");
      else ledger.fail("server error", `${line}: ${causeOf(error)}`);
      return undefined;
    }
  }

  /** Whatever is asked for, an answer shows nothing that belongs elsewhere. */
  private findCrossing({ home }: Call, answered: string, text: string): boolean {
    if (!home) return false;
    const isForeign = (id: string) => (this.owners.get(id) ?? home) !== home;
    const foreign = idsIn(answered).find(isForeign);
    if (!foreign) return false;
    const owner = this.owners.get(foreign)?.id ?? "the platform";
    this.ledger.fail("crossing", `${foreign} belongs to ${owner}, seen in ${text}`);
    return true;
  }

  /** Called for every mail that a process sends. */
  deliver({ kind, email, tenantId, secret }: Mail): void {
    const key = mailKey(kind, tenantId, email);
    this.mails.set(key, secret);
    if (!this.asked.has(key)) this.ledger.fail("crossing", `a mail that nobody wanted: ${key}`);
  }

  /** What is in the mail that a request causes. */
  async mailAfter(
    kind: Mail["kind"],
    { id }: Place,
    email: string,
    request: () => Promise<unknown>,
  ): Promise<string | undefined> {
    const key = mailKey(kind, id, email);
    this.mails.delete(key);
    this.asked.add(key);
    if (!(await request())) return undefined;
    for (const end = Date.now() + MAIL_MS; Date.now() < end; await sleep(10)) {
      const secret = this.mails.get(key);
      if (secret) return secret;
    }
    this.ledger.count("mails that never came");
    return undefined;
  }
}

/** What looks like an id or a token: better-auth makes them all alike. */
export const idsIn = (text: string): string[] => text.match(/\b[A-Za-z0-9]{32}\b/g) ?? [];

const mailKey = (kind: string, tenantId: string | null, email: string) =>
  `${kind} for ${email} at ${tenantId ?? "the platform"}`;

/** Whether the request is about a tenant that is on its way out, or has just left. */
function isOvertaken({ at, home, session }: Call): boolean {
  const justLeft = (place: Place) => place.goneAt > Date.now() - ALLOWED_MS;
  return [at, home, session?.place].some(
    (place) => place && (place.state === "leaving" || justLeft(place)),
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

function describe({ path, query, body, at, session, by = "cookie" }: Call): string {
  const whose = session?.place.id ?? "the platform";
  return [
    `${body ? "POST" : "GET"} ${path}`,
    ...(query ? [`query ${JSON.stringify(query)}`] : []),
    ...(body ? [`body ${JSON.stringify(body)}`] : []),
    ...(at?.id ? [`at ${at.id}`] : []),
    ...(session ? [`with the ${by} of ${session.email} of ${whose}`] : []),
  ].join(", ");
}

function parse(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function causeOf(error: unknown): string {
  const { cause } = error as { cause?: unknown };
  return String(cause ?? error);
}
