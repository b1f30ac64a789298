import { setTimeout as sleep } from "node:timers/promises";
import type { Fleet, Member } from "./fleet";
import type { Ledger } from "./ledger";
import type { Random } from "./random";
import type { Mail } from "./worker";

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
