import { setTimeout as sleep } from "node:timers/promises";
import { tryElsewhere } from "./attempts";
import type { Random } from "./random";
import type { Answer, Call, Credential, Place, Session, World } from "./world";

/** Somebody's account at a place. The same e-mail elsewhere is another account. */
export interface Account {
  place: Place;
  email: string;
  password: string;
  userId: string;
  sessions: Session[];
  hasTwoFactor: boolean;
}

const EMAILS = 2;
const FEW = 3;
const MANY = 8;

/** One of the people: always does one thing after the other, now here, now there. */
export class Person {
  private readonly emails: string[] = [];
  private accounts: Account[] = [];
  private serial = 0;

  constructor(
    readonly world: World,
    readonly random: Random,
    private readonly name: string,
  ) {
    while (this.emails.length < EMAILS) this.emails.push(this.newEmail());
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
    if (random.oneIn(3)) return tryElsewhere(this, account);
    const steps = [
      this.signIn,
      this.signInManyTimes,
      this.signInWithCode,
      this.askWhoIAm,
      this.askWhoIAm,
      this.rename,
      this.changePassword,
      this.resetPassword,
      this.enableTwoFactor,
      this.lookAround,
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

  /** A place other than this one; and the account of the same e-mail there, if there is one. */
  elsewhere({ place, email }: Account): { other: Place; twin: Account | undefined } | undefined {
    const others = this.world.places.filter((one) => one !== place && one.id !== null);
    if (others.length === 0) return undefined;
    const other = this.random.pick(others);
    return { other, twin: this.accountAt(other, email) };
  }

  /** A request that has to be answered with 200 while the place is there. */
  async ordinary(what: string, place: Place, call: Call): Promise<Answer | undefined> {
    const answer = await this.world.ask({ home: place, ...call }, this.random);
    if (!answer) return undefined;
    if (answer.status === 200) {
      this.world.ledger.count(`done: ${what}`);
      return answer;
    }
    if (place.state === "there") this.world.ledger.fail("refused", `${what}: ${answer.text}`);
    return undefined;
  }

  /** The mail that leads to a new password. */
  askForReset({ place, email }: Account): Promise<string | undefined> {
    const call = { path: "/request-password-reset", at: place, body: { email } };
    return this.world.mailAfter("reset", place, email, () =>
      this.ordinary("ask for a reset", place, call),
    );
  }

  /** The mail with a code to sign in with. */
  askForCode({ place, email }: Account): Promise<string | undefined> {
    const body = { email, type: "sign-in" };
    const call = { path: "/email-otp/send-verification-otp", at: place, body };
    return this.world.mailAfter("code", place, email, () =>
      this.ordinary("ask for a code", place, call),
    );
  }

  /** Nobody knows what became of a request that was cut off: this e-mail is left alone from now on. */
  giveUp({ place, email }: Account): void {
    if (place.state === "gone") return;
    this.accounts = this.accounts.filter((account) => account.email !== email);
    const index = this.emails.indexOf(email);
    if (index >= 0) this.emails[index] = this.newEmail();
  }

  newPassword(): string {
    return `password ${this.name} ${++this.serial}`;
  }

  private accountAt(place: Place, email: string): Account | undefined {
    return this.accounts.find((account) => account.place === place && account.email === email);
  }

  private newEmail(): string {
    const role = this.random.oneIn(4) ? "boss" : "user";
    return `${role}-${this.name}-${++this.serial}@example.com`;
  }

  /** By this plugin's endpoint or by better-auth's own, which does the same inside a tenant. */
  private entrance(place: Place, path: string, body: Record<string, unknown>): Call {
    return place.id !== null && this.random.oneIn(2)
      ? { path: `/tenant${path}`, body: { ...body, tenantId: place.id } }
      : { path, body, at: place };
  }

  /** A name that says where it belongs: wherever else it shows, something has crossed. */
  private nameAt({ id }: Place): string {
    return `${this.name} of ${id ?? "the platform"} ${++this.serial}`;
  }

  private async signUp(place: Place, email: string): Promise<void> {
    if (this.accountAt(place, email)) return;
    const password = this.newPassword();
    const body = { name: this.nameAt(place), email, password };
    const answer = await this.ordinary(
      "sign up",
      place,
      this.entrance(place, "/sign-up/email", body),
    );
    const account: Account = {
      place,
      email,
      password,
      userId: "",
      sessions: [],
      hasTwoFactor: false,
    };
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

  private async signInWithCode(account: Account): Promise<void> {
    const otp = await this.askForCode(account);
    if (!otp) return;
    const { place, email } = account;
    const call = { path: "/sign-in/email-otp", at: place, body: { email, otp } };
    const answer = await this.ordinary("sign in with a code", place, call);
    if (answer) this.keep(account, answer, "sign-in with a code");
  }

  /** Whether there is a session in the answer; it has to be that of the right person. */
  private keep(account: Account, answer: Answer, origin: string): boolean {
    const { place, email } = account;
    const session = this.world.remember(answer, place, email, origin);
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
  private withSession({ place, sessions }: Account): {
    session: Session;
    by: Credential;
    at?: Place;
  } {
    const { random } = this;
    const by = random.pick(["cookie", "bearer"] as const);
    const named = random.oneIn(2) ? { at: place } : {};
    return { session: random.pick(sessions), by, ...named };
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
    const { place } = account;
    const body = { name: this.nameAt(place) };
    const call = { path: "/update-user", body, ...this.withSession(account) };
    await this.ordinary("change the name", place, call);
  }

  private async changePassword(account: Account): Promise<void> {
    const { place, password: currentPassword } = account;
    const newPassword = this.newPassword();
    const body = { currentPassword, newPassword };
    const call = { path: "/change-password", body, ...this.withSession(account) };
    if (!(await this.ordinary("change the password", place, call))) return this.giveUp(account);
    account.password = newPassword;
  }

  private async resetPassword(account: Account): Promise<void> {
    const token = await this.askForReset(account);
    if (token) await this.finishReset(account, token);
  }

  async finishReset(account: Account, token: string): Promise<void> {
    const newPassword = this.newPassword();
    const { place } = account;
    const call = { path: "/reset-password", at: place, body: { token, newPassword } };
    if (!(await this.ordinary("reset the password", place, call))) return this.giveUp(account);
    account.password = newPassword;
  }

  /** Nobody but this person has changed the password. */
  confirmPassword(account: Account): Promise<void> {
    return this.signIn(account);
  }

  private async enableTwoFactor(account: Account): Promise<void> {
    if (account.hasTwoFactor) return this.askWhoIAm(account);
    account.hasTwoFactor = true;
    const { place, password } = account;
    const call = { path: "/two-factor/enable", body: { password }, ...this.withSession(account) };
    await this.ordinary("enable two factors", place, call);
  }

  /** Lists that must show nobody of elsewhere. */
  private async lookAround(account: Account): Promise<void> {
    const { place, email } = account;
    const paths = ["/list-sessions", "/list-accounts"];
    // On the platform an admin is an operator, who sees everybody.
    const isBoss = email.startsWith("boss-") && place.id !== null;
    const path = isBoss ? "/admin/list-users" : this.random.pick(paths);
    const query = isBoss ? { query: { limit: "100" } } : {};
    await this.ordinary(`look at ${path}`, place, { path, ...query, ...this.withSession(account) });
  }

  private async signOut(account: Account): Promise<void> {
    const session = this.random.pick(account.sessions);
    account.sessions = account.sessions.filter((one) => one !== session);
    const call = { path: "/sign-out", body: {}, session, at: account.place };
    await this.ordinary("sign out", account.place, call);
  }
}
