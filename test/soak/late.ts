import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./random";
import { ALLOWED_MS, type Answer, type Call, type Session, type World } from "./world";

/** Half a second more than is allowed, for a busy machine. */
const GRACE_MS = ALLOWED_MS + 500;
const AT_ONCE = 8;
const CHECKED = "sessions checked after the deletion";
const WAYS = [
  { by: "cookie", named: true },
  { by: "bearer", named: false },
  { by: "cookie", named: false },
  { by: "bearer", named: true },
] as const;

/** Comes back with the sessions of tenants that are gone. None of them may answer anywhere. */
export class LateComers {
  /** Tokens that answered and should not. */
  private readonly alive = new Set<string>();

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

  /** What was found lying around: good for nothing, or at least for nobody's session in a tenant. */
  async checkTokens(tokens: string[]): Promise<void> {
    const { platform } = this.world;
    await sideBySide(tokens, async (token) => {
      if (this.alive.has(token)) return;
      this.world.ledger.count("tokens found in Redis and tried");
      const session = { token, cookie: "", place: platform, email: "whoever reads Redis" };
      const answers = await this.askEverywhere({ path: "/get-session", session, by: "bearer" });
      const found = answers.find(
        ({ data }) => data && this.world.mentionsTenant(JSON.stringify(data)),
      );
      if (found) this.world.ledger.fail("late session", `found in Redis: ${found.text}`);
    });
  }

  private async checkDue(): Promise<void> {
    const due = this.world.sessions.filter(({ checked, place }) => {
      return !checked && place.state === "gone" && Date.now() > place.goneAt + GRACE_MS;
    });
    await sideBySide(due, (session) => this.check(session));
  }

  private async check(session: Session): Promise<void> {
    session.checked = true;
    const { ledger } = this.world;
    const number = ledger.counted(CHECKED);
    ledger.count(CHECKED);
    const { place, origin, token, since } = session;
    // Each process is asked for each session, in another way each time; now and then in all ways.
    const ways = number % 4 === 0 ? WAYS : [WAYS[(number >> 2) % WAYS.length] ?? WAYS[0]];
    const asked = ways.map(({ by, named }) =>
      this.askEverywhere({ path: "/get-session", session, by, ...(named ? { at: place } : {}) }),
    );
    const answers = (await Promise.all(asked)).flat();
    const alive = answers.filter(({ status, data }) => status === 200 && data !== null);
    if (alive.length === 0) return;
    this.alive.add(token);
    const seconds = (time: number) => `${((time - place.goneAt) / 1000).toFixed(1)} s`;
    const story = `from ${origin} at ${seconds(since)}, asked ${seconds(Date.now())} after the deletion`;
    const share = `good for ${alive.length} of ${answers.length} requests`;
    ledger.count(`late sessions from ${origin}`);
    ledger.fail("late session", `${story}, ${share}: ${alive[0]?.text}`);
  }

  private askEverywhere(call: Call): Promise<Answer[]> {
    const { members } = this.world.fleet;
    return Promise.all(members.map(({ number }) => this.askOne(number, call)));
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

/** A few at a time. */
async function sideBySide<T>(items: T[], run: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  const lanes = Array.from({ length: AT_ONCE }, async () => {
    for (let next = rest.shift(); next !== undefined; next = rest.shift()) await run(next);
  });
  await Promise.all(lanes);
}
