import { setTimeout as sleep } from "node:timers/promises";
import type { TestDatabase } from "../support/database";
import {
  ALLOWED_MS,
  type Answer,
  type Call,
  type Member,
  type Place,
  type Random,
  type Session,
  type World,
} from "./world";

type Attempt = (person: Person, account: Account, other: Place) => Promise<void>;

/** A request that must not be granted; `World` sees to it that nothing of another place shows. */
async function refused(
  { world, random }: Person,
  what: string,
  other: Place,
  call: Call,
  isRefused = ({ status }: Answer) => status >= 400,
): Promise<void> {
  const answer = await world.ask({ home: other, ...call }, random);
  if (!answer) return;
  world.ledger.count(`tried: ${what}`);
  if (!isRefused(answer)) world.ledger.fail("crossing", `${what} worked: ${answer.text}`);
}

/** The session of one tenant at another, which is named by header or query. */
const sessionElsewhere: Attempt = async (person, { sessions }, other) => {
  const { random } = person;
  const named = random.oneIn(2) ? { at: other } : { query: { tenantId: other.id ?? "" } };
  const by = random.pick(["cookie", "bearer"] as const);
  const call = { session: random.pick(sessions), by, ...named };
  const isNobody = ({ status, data }: Answer) => status >= 400 || data === null;
  await refused(person, "a session elsewhere", other, { path: "/get-session", ...call }, isNobody);
  const request: Call = random.oneIn(2)
    ? { path: "/list-sessions", ...call }
    : { path: "/update-user", body: { name: "somebody of elsewhere" }, ...call };
  await refused(person, `${request.path} elsewhere`, other, request);
};

/** The same e-mail is somebody else there, or nobody. */
const passwordElsewhere: Attempt = async (person, { email, password }, other) => {
  const body = { email, password, tenantId: other.id };
  await refused(person, "a password elsewhere", other, { path: "/tenant/sign-in/email", body });
};

const ATTEMPTS = [sessionElsewhere, passwordElsewhere];

/** Somebody's account at a place. The same e-mail elsewhere is another account. */
interface Account {
  place: Place;
  email: string;
  password: string;
  userId: string;
  sessions: Session[];
}

const FEW = 3;
const MANY = 8;

/** One of the people: always does one thing after the other, now here, now there. */
export class Person {
  private readonly emails: string[];
  private accounts: Account[] = [];
  private serial = 0;

  constructor(
    readonly world: World,
    readonly random: Random,
    private readonly name: string,
  ) {
    this.emails = [this.newEmail(), this.newEmail()];
  }

  async live(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      await this.step();
      // People think, and three servers have to do with two cores.
      await sleep(20 + this.random.below(120));
    }
  }

  private async step(): Promise<void> {
    const { random, world } = this;
    this.accounts = this.accounts.filter(({ place }) => place.state !== "gone");
    const account = this.choose();
    if (!account) return this.signUp(random.pick(world.places), random.pick(this.emails));
    if (account.sessions.length === 0) return this.signIn(account);
    if (random.oneIn(3)) return this.tryElsewhere(account);
    const steps = [
      this.signIn,
      this.signInManyTimes,
      this.askWhoIAm,
      this.askWhoIAm,
      this.rename,
      this.signOut,
    ];
    return random.pick(steps).call(this, account);
  }

  /** One of the accounts; none where it is time for another one. */
  private choose(): Account | undefined {
    const { accounts, random } = this;
    if (accounts.length < FEW || (accounts.length < MANY && random.oneIn(10))) return undefined;
    return random.pick(accounts);
  }

  /** Tries, with what is somebody's own, what must not work elsewhere. */
  private async tryElsewhere(account: Account): Promise<void> {
    const { world, random } = this;
    const others = world.places.filter((one) => one !== account.place && one.id !== null);
    if (others.length === 0) return;
    await random.pick(ATTEMPTS)(this, account, random.pick(others));
  }

  /** A request that has to be answered with 200 while the place is there. */
  private async ordinary(what: string, place: Place, call: Call): Promise<Answer | undefined> {
    const answer = await this.world.ask({ home: place, ...call }, this.random);
    if (!answer) return undefined;
    if (answer.status === 200) {
      this.world.ledger.count(`done: ${what}`);
      return answer;
    }
    if (place.state === "there") this.world.ledger.fail("refused", `${what}: ${answer.text}`);
    return undefined;
  }

  /** Nobody knows what became of a request that was cut off: this e-mail is left alone from now on. */
  private giveUp({ place, email }: Account): void {
    if (place.state === "gone") return;
    this.accounts = this.accounts.filter((account) => account.email !== email);
    const index = this.emails.indexOf(email);
    if (index >= 0) this.emails[index] = this.newEmail();
  }

  private accountAt(place: Place, email: string): Account | undefined {
    return this.accounts.find((account) => account.place === place && account.email === email);
  }

  private newEmail(): string {
    return `${this.name}-${++this.serial}@example.com`;
  }

  /** By this plugin's endpoint or by better-auth's own, which does the same inside a tenant. */
  private entrance(place: Place, path: string, body: Record<string, unknown>): Call {
    return place.id !== null && this.random.oneIn(2)
      ? { path: `/tenant${path}`, body: { ...body, tenantId: place.id } }
      : { path, body, at: place };
  }

  private async signUp(place: Place, email: string): Promise<void> {
    if (this.accountAt(place, email)) return;
    const password = `password ${this.name} ${++this.serial}`;
    const call = this.entrance(place, "/sign-up/email", { name: this.name, email, password });
    const answer = await this.ordinary("sign up", place, call);
    const account: Account = { place, email, password, userId: "", sessions: [] };
    if (!answer || !this.keep(account, answer, "sign-up")) return this.giveUp(account);
    this.accounts.push(account);
  }

  private async signIn(account: Account, origin = "sign-in"): Promise<void> {
    const { place, email, password } = account;
    const call = this.entrance(place, "/sign-in/email", { email, password });
    const answer = await this.ordinary("sign in", place, call);
    if (answer) this.keep(account, answer, origin);
  }

  /** Several devices at the same moment, at whichever process. */
  private async signInManyTimes(account: Account): Promise<void> {
    const devices = Array.from({ length: 4 }, () => this.signIn(account, "4 sign-ins at once"));
    await Promise.all(devices);
  }

  /** Whether there is a session in the answer; it has to be that of the right person. */
  private keep(account: Account, answer: Answer, origin: string): boolean {
    const session = this.world.remember(answer, account.place, origin);
    if (!session) {
      this.world.ledger.fail("refused", `no session: ${answer.text}`);
      return false;
    }
    account.userId ||= session.userId;
    this.expectPerson(account, answer);
    account.sessions.push(session);
    return true;
  }

  private expectPerson({ place, email, userId }: Account, answer: Answer): void {
    const { user } = answer.data as { user: Record<string, unknown> };
    const { id, tenantId = null } = user;
    if (id === userId && tenantId === place.id && user.email === email) return;
    this.world.ledger.fail("crossing", `not ${email} at ${place.id}: ${answer.text}`);
  }

  /** A request with one of the sessions, by cookie or token; the session names the tenant as well. */
  private withSession({ place, sessions }: Account): Pick<Call, "session" | "by" | "at"> {
    const { random } = this;
    const by = random.pick(["cookie", "bearer"] as const);
    return { session: random.pick(sessions), by, ...(random.oneIn(2) && { at: place }) };
  }

  private async askWhoIAm(account: Account): Promise<void> {
    const { place } = account;
    const call = { path: "/get-session", ...this.withSession(account) };
    const answer = await this.ordinary("get the session", place, call);
    if (answer?.data) return this.expectPerson(account, answer);
    if (answer && place.state === "there") {
      this.world.ledger.fail("refused", `a session got lost: ${answer.text}`);
    }
  }

  private async rename(account: Account): Promise<void> {
    const body = { name: `${this.name} ${++this.serial}` };
    const call = { path: "/update-user", body, ...this.withSession(account) };
    await this.ordinary("change the name", account.place, call);
  }

  private async signOut(account: Account): Promise<void> {
    const session = this.random.pick(account.sessions);
    account.sessions = account.sessions.filter((one) => one !== session);
    const call = { path: "/sign-out", body: {}, session, at: account.place };
    await this.ordinary("sign out", account.place, call);
  }
}

/** Half a second more than is allowed, for a busy machine. */
const GRACE_MS = ALLOWED_MS + 500;
const CHECKED = "sessions checked after the deletion";
const AT_ONCE = 8;

/** Comes back with the sessions of tenants that are gone. None of them may answer anywhere. */
export class LateComers {
  constructor(
    private readonly world: World,
    private readonly random: Random,
  ) {}

  async comeBack(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      await this.checkDue();
      await sleep(200);
    }
  }

  /** Every session, the newest of them when they are due. */
  async checkAll(): Promise<void> {
    const latest = Math.max(0, ...this.world.tenants.map(({ goneAt }) => goneAt));
    await sleep(Math.max(0, latest + GRACE_MS + 1 - Date.now()));
    await this.checkDue();
  }

  private async checkDue(): Promise<void> {
    const due = this.world.sessions.filter(({ checked, place }) => {
      return !checked && place.state === "gone" && Date.now() > place.goneAt + GRACE_MS;
    });
    const lanes = Array.from({ length: AT_ONCE }, async () => {
      for (let next = due.shift(); next; next = due.shift()) await this.check(next);
    });
    await Promise.all(lanes);
  }

  /** Each process is asked for each session, in turn by a cookie with a name, and by a bare token. */
  private async check(session: Session): Promise<void> {
    session.checked = true;
    const { ledger, fleet } = this.world;
    const isNamed = ledger.counted(CHECKED) % 2 === 0;
    ledger.count(CHECKED);
    const way = isNamed
      ? ({ by: "cookie", at: session.place } as const)
      : { by: "bearer" as const };
    const call: Call = { path: "/get-session", session, ...way };
    const asked = fleet.members.map(({ number }) => this.askOne(number, call));
    const alive = (await Promise.all(asked)).filter(
      ({ status, data }) => status === 200 && data !== null,
    );
    if (alive.length) ledger.fail("late session", `from ${session.origin}: ${alive[0]?.text}`);
  }

  /** Until it answers: the process may be killed once more. */
  private async askOne(number: number, call: Call): Promise<Answer> {
    for (;;) {
      const on = await this.world.fleet.member(number);
      const answer = await this.world.ask({ ...call, on }, this.random);
      if (answer) return answer;
    }
  }
}

const MOST = 8;
const FEWEST = 4;
const TRIES = 50;

/** Whoever runs the platform: creates and deletes tenants all the while. */
export class Operator {
  private serial = 0;

  private constructor(
    private readonly world: World,
    private readonly random: Random,
    private readonly session: Session,
  ) {}

  static async arrive(world: World, random: Random): Promise<Operator> {
    const email = "operator@example.com";
    const body = { name: "Operator", email, password: "password of the operator" };
    const answer = await world.ask({ path: "/sign-up/email", body }, random);
    const session = answer && world.remember(answer, world.platform, "sign-up");
    if (!session) throw new Error(`no operator: ${answer?.text}`);
    return new Operator(world, random, session);
  }

  async work(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      const there = this.world.tenants.filter(({ state }) => state === "there");
      const creates = there.length < FEWEST || (there.length < MOST && this.random.oneIn(2));
      if (creates) await this.createTenant();
      else await this.deleteTenant(this.random.pick(there));
      await sleep(100 + this.random.below(400));
    }
  }

  async createTenant(): Promise<void> {
    const slug = `tenant-${++this.serial}-${this.random.below(2 ** 31)}`;
    // Where the process is killed meanwhile, nobody is told of the tenant until the last round.
    const answer = await this.manage("/tenant/create", { name: slug, slug });
    if (answer?.status !== 200) return;
    const { id: tenantId } = this.world.addTenant(String(answer.data?.id));
    const config = { providerId: "google", clientId: "client", clientSecret: "secret" };
    await this.manage("/tenant/oauth-config/register", { tenantId, ...config });
  }

  /** Asks again, as an operator would, until the tenant is gone for sure. */
  async deleteTenant(place: Place): Promise<void> {
    place.state = "leaving";
    for (let tries = 0; tries < TRIES; tries++) {
      const on = this.random.pick(this.world.fleet.running);
      const answer = await this.manage("/tenant/delete", { tenantId: place.id }, on);
      // Where it is gone already, one that was killed meanwhile has deleted it.
      if (answer?.status !== 404) place.deleters.push(on);
      if (answer?.status === 200 || answer?.status === 404) {
        Object.assign(place, { state: "gone", goneAt: Date.now() });
        this.world.ledger.count("tenants deleted");
        return;
      }
    }
    this.world.ledger.fail("left behind", `tenant ${place.id} cannot be deleted`);
  }

  /** The last round: every tenant that the servers know of. */
  async deleteAll(): Promise<void> {
    for (const id of await this.listTenants()) {
      const known = this.world.tenants.find((place) => place.id === id);
      await this.deleteTenant(known ?? this.world.addTenant(id));
    }
  }

  private async listTenants(): Promise<string[]> {
    const answer = await this.ask({ path: "/tenant/list" });
    if (!answer) return this.listTenants();
    return (answer.data as unknown as { id: string }[]).map(({ id }) => id);
  }

  private async manage(path: string, body: Record<string, unknown>, on?: Member) {
    const answer = await this.ask({ path, body, ...(on && { on }) });
    const isRefused = answer && answer.status >= 400 && answer.status < 500;
    if (isRefused && answer.status !== 404) this.world.ledger.fail("refused", answer.text);
    return answer;
  }

  private ask(call: Call): Promise<Answer | undefined> {
    return this.world.ask({ ...call, session: this.session }, this.random);
  }
}

type Row = Record<string, unknown>;

/** How long after a deletion the process that did it sweeps for the last time, and a little more. */
const SWEPT_MS = 12_000;

/** Every table with a tenant in it: what belongs to one has to be gone with it. */
export async function findRows(world: World, database: TestDatabase): Promise<void> {
  if ((await leftIn(database)).length > 0) await sleep(SWEPT_MS);
  for (const { table, row } of await leftIn(database)) {
    // A sign-up that was cut off halfway is for the one that deleted the tenant to undo, and that
    // one was killed as well. Nobody can use such rows, and checkDeployment() finds them.
    if (nobodyWasLeft(world, row)) world.ledger.count("rows that nobody was left to take away");
    else world.ledger.fail("left behind", `${table}: ${JSON.stringify(row)}`);
  }
}

async function leftIn(database: TestDatabase) {
  const columns = await database.query(
    "select table_name as name, column_name as column from information_schema.columns where table_schema = 'public'",
  );
  const withColumn = (column: string) =>
    columns.filter((one) => one.column === column).map(({ name }) => String(name));
  const rows = async (table: string, where: string) =>
    (await database.query(`select * from "${table}" where ${where}`)).map((row) => ({
      table,
      row,
    }));
  const found = [
    ...withColumn("tenantId").map((table) => rows(table, `coalesce("tenantId", '') <> ''`)),
    ...withColumn("userId").map((table) => rows(table, `"userId" not in (select id from "user")`)),
    rows("tenant", "true"),
  ];
  return (await Promise.all(found)).flat();
}

function nobodyWasLeft({ tenants, kills }: World, row: Row): boolean {
  const { deleters = [], goneAt = 0 } = tenants.find(({ id }) => id === row.tenantId) ?? {};
  const madeAt = row.createdAt instanceof Date ? row.createdAt.getTime() : Number.NaN;
  const isCutOff = kills.some((time) => time >= madeAt && time < madeAt + SWEPT_MS);
  return isCutOff && deleters.every(({ killedAt = Infinity }) => killedAt < goneAt + SWEPT_MS);
}
