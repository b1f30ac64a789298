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

/** Somebody's account at a place. The same e-mail elsewhere is another account. */
interface Account {
  place: Place;
  email: string;
  password: string;
  userId: string;
  sessions: Session[];
}

/** One of the people: always does one thing after the other, now here, now there. */
export class Person {
  private accounts: Account[] = [];
  private serial = 0;

  constructor(
    private readonly world: World,
    private readonly random: Random,
    private readonly name: string,
  ) {}

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
    const { length } = this.accounts;
    if (length < 3 || (length < 8 && random.oneIn(10))) return this.signUp();
    const account = random.pick(this.accounts);
    if (account.sessions.length === 0) return this.signIn(account);
    const others = world.places.filter((one) => one !== account.place && one.id !== null);
    if (random.oneIn(3) && others.length) return this.tryElsewhere(account, random.pick(others));
    const signInManyTimes = async () =>
      void (await Promise.all([1, 2, 3, 4].map(() => this.signIn(account))));
    const askWhoIAm = () => this.askWhoIAm(account);
    const rename = () => this.rename(account);
    const signOut = () => this.signOut(account);
    return random.pick([signInManyTimes, askWhoIAm, askWhoIAm, rename, signOut])();
  }

  /** Tries, with what is somebody's own, what must not work at another tenant. */
  private async tryElsewhere({ email, password, sessions }: Account, other: Place): Promise<void> {
    const { random, world } = this;
    const named = random.oneIn(2) ? { at: other } : { query: { tenantId: other.id ?? "" } };
    const by = random.pick(["cookie", "bearer"] as const);
    const call = { session: random.pick(sessions), by, ...named };
    const attempts: Call[] = [
      { path: "/get-session", ...call },
      { path: "/list-sessions", ...call },
      { path: "/update-user", body: { name: "somebody of elsewhere" }, ...call },
      // The same e-mail is somebody else there, or nobody.
      { path: "/tenant/sign-in/email", body: { email, password, tenantId: other.id } },
    ];
    const attempt = random.pick(attempts);
    const answer = await world.ask({ home: other, ...attempt }, random);
    if (!answer) return;
    world.count(`tried elsewhere: ${attempt.path}`);
    const isNobody = attempt.path === "/get-session" && answer.data === null;
    if (answer.status < 400 && !isNobody) world.fail("crossing", `worked: ${answer.text}`);
  }

  /** A request that has to be answered with 200 while the place is there. */
  private async ordinary(place: Place, call: Call): Promise<Answer | undefined> {
    const answer = await this.world.ask({ home: place, ...call }, this.random);
    if (answer?.status === 200) {
      this.world.count(`done: ${call.path}`);
      return answer;
    }
    if (answer && place.state === "there") this.world.fail("refused", answer.text);
    return undefined;
  }

  /** By this plugin's endpoint or by better-auth's own, which does the same inside a tenant. */
  private entrance(place: Place, path: string, body: Record<string, unknown>): Call {
    return place.id !== null && this.random.oneIn(2)
      ? { path: `/tenant${path}`, body: { ...body, tenantId: place.id } }
      : { path, body, at: place };
  }

  /** With an address that is somebody's elsewhere already, if there is one. */
  private async signUp(): Promise<void> {
    const { random, world, name } = this;
    const place = random.pick(world.places);
    const taken = this.accounts.filter((one) => one.place === place).map(({ email }) => email);
    const free = this.accounts.map(({ email }) => email).filter((one) => !taken.includes(one));
    const email = free[0] ?? `${name}-${++this.serial}@example.com`;
    const password = `password ${name} ${++this.serial}`;
    const account: Account = { place, email, password, userId: "", sessions: [] };
    const call = this.entrance(place, "/sign-up/email", { name, email, password });
    const answer = await this.ordinary(place, call);
    if (answer && this.keep(account, answer)) this.accounts.push(account);
    // Nobody knows what became of a request that was cut off: this address is left alone from now on.
    else this.accounts = this.accounts.filter((one) => one.email !== email);
  }

  private async signIn(account: Account): Promise<void> {
    const { place, email, password } = account;
    const call = this.entrance(place, "/sign-in/email", { email, password });
    const answer = await this.ordinary(place, call);
    if (answer) this.keep(account, answer);
  }

  /** Whether there is a session in the answer; it has to be that of the right person. */
  private keep(account: Account, answer: Answer): boolean {
    const session = this.world.remember(answer, account.place);
    if (!session) {
      this.world.fail("refused", `no session: ${answer.text}`);
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
    this.world.fail("crossing", `not ${email} at ${place.id}: ${answer.text}`);
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
    const answer = await this.ordinary(place, call);
    if (answer?.data) return this.expectPerson(account, answer);
    if (answer && place.state === "there") {
      this.world.fail("refused", `a session got lost: ${answer.text}`);
    }
  }

  private async rename(account: Account): Promise<void> {
    const body = { name: `${this.name} ${++this.serial}` };
    await this.ordinary(account.place, {
      path: "/update-user",
      body,
      ...this.withSession(account),
    });
  }

  private async signOut(account: Account): Promise<void> {
    const session = this.random.pick(account.sessions);
    account.sessions = account.sessions.filter((one) => one !== session);
    const call = { path: "/sign-out", body: {}, session, at: account.place };
    await this.ordinary(account.place, call);
  }
}

/** Half a second more than is allowed, for a busy machine. */
const GRACE_MS = ALLOWED_MS + 500;
export const CHECKED = "sessions checked after the deletion";

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
    const lanes = Array.from({ length: 8 }, async () => {
      for (let next = due.shift(); next; next = due.shift()) await this.check(next);
    });
    await Promise.all(lanes);
  }

  /** Each process is asked for each session, in turn by a cookie with a name, and by a bare token. */
  private async check(session: Session): Promise<void> {
    session.checked = true;
    const isNamed = this.world.count(CHECKED) % 2 === 0;
    const call: Call = isNamed
      ? { path: "/get-session", session, at: session.place }
      : { path: "/get-session", session, by: "bearer" };
    for (const answer of await Promise.all([0, 1, 2].map((index) => this.askOne(index, call)))) {
      if (answer.status === 200 && answer.data) this.world.fail("late session", answer.text);
    }
  }

  /** Until it answers: the process may be killed once more. */
  private async askOne(index: number, call: Call): Promise<Answer> {
    for (;;) {
      const on = this.world.fleet.members[index];
      const answer = on && !on.killedAt && (await this.world.ask({ ...call, on }, this.random));
      if (answer) return answer;
      await sleep(20);
    }
  }
}

/** Whoever runs the platform: creates and deletes tenants all the while. */
export class Operator {
  private serial = 0;
  private session: Session | undefined;

  constructor(
    private readonly world: World,
    private readonly random: Random,
  ) {}

  async arrive(): Promise<void> {
    const person = { name: "Operator", email: "operator@example.com", password: "of the operator" };
    const answer = await this.ask({ path: "/sign-up/email", body: person });
    this.session = answer && this.world.remember(answer, this.world.platform);
    for (let tenants = 0; tenants < 4; tenants++) await this.createTenant();
  }

  async work(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      const there = this.world.tenants.filter(({ state }) => state === "there");
      const creates = there.length < 4 || (there.length < 8 && this.random.oneIn(2));
      if (creates) await this.createTenant();
      else await this.deleteTenant(this.random.pick(there));
      await sleep(100 + this.random.below(400));
    }
  }

  private async createTenant(): Promise<void> {
    const slug = `tenant-${++this.serial}-${this.random.below(2 ** 31)}`;
    // Where the process is killed meanwhile, nobody is told of the tenant until the last round.
    const answer = await this.manage("/tenant/create", { name: slug, slug });
    if (answer?.status !== 200) return;
    const { id: tenantId } = this.world.addTenant(String(answer.data?.id));
    const config = { providerId: "google", clientId: "client", clientSecret: "secret" };
    await this.manage("/tenant/oauth-config/register", { tenantId, ...config });
  }

  /** Asks again, as an operator would, until the tenant is gone for sure. */
  private async deleteTenant(place: Place): Promise<void> {
    place.state = "leaving";
    for (let tries = 0; tries < 50; tries++) {
      const on = this.random.pick(this.world.fleet.running);
      const answer = await this.manage("/tenant/delete", { tenantId: place.id }, on);
      // Where it is gone already, one that was killed meanwhile has deleted it.
      if (answer?.status === 200 || answer?.status === 404) {
        Object.assign(place, { state: "gone", goneAt: Date.now() });
        this.world.count("tenants deleted");
        return;
      }
    }
    this.world.fail("left behind", `tenant ${place.id} cannot be deleted`);
  }

  /** The last round: every tenant that the servers know of. */
  async deleteAll(): Promise<void> {
    const answer = await this.ask({ path: "/tenant/list" });
    if (!answer) return this.deleteAll();
    for (const { id } of answer.data as unknown as { id: string }[]) {
      const known = this.world.tenants.find((place) => place.id === id);
      await this.deleteTenant(known ?? this.world.addTenant(id));
    }
  }

  private async manage(path: string, body: Record<string, unknown>, on?: Member) {
    const answer = await this.ask({ path, body, ...(on && { on }) });
    const isRefused = answer && answer.status >= 400 && answer.status < 500;
    if (isRefused && answer.status !== 404) this.world.fail("refused", answer.text);
    return answer;
  }

  private ask(call: Call): Promise<Answer | undefined> {
    return this.world.ask({ ...call, ...(this.session && { session: this.session }) }, this.random);
  }
}

/** Every table with a tenant in it: a purge leaves nothing of a tenant that is gone. */
export async function findRows(world: World, database: TestDatabase): Promise<void> {
  await world.fleet.purge();
  for (const { table, row } of await leftIn(database)) {
    world.fail("left behind", `${table}: ${JSON.stringify(row)}`);
  }
}

async function leftIn({ query }: TestDatabase) {
  const having = async (column: string) => {
    const tables = await query(
      "select table_name as name from information_schema.columns where table_schema = 'public' and column_name = ?",
      [column],
    );
    return tables.map(({ name }) => String(name));
  };
  const rows = async (table: string, where: string) =>
    (await query(`select * from "${table}" where ${where}`)).map((row) => ({ table, row }));
  const found = [
    ...(await having("tenantId")).map((table) => rows(table, `coalesce("tenantId", '') <> ''`)),
    ...(await having("userId")).map((table) =>
      rows(table, `"userId" not in (select id from "user")`),
    ),
    rows("tenant", "true"),
  ];
  return (await Promise.all(found)).flat();
}
