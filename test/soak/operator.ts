import { setTimeout as sleep } from "node:timers/promises";
import type { Member } from "./fleet";
import type { Random } from "./random";
import type { Answer, Call, Place, Session, World } from "./world";

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
    const email = "boss-operator@example.com";
    const body = { name: "Operator", email, password: "password of the operator" };
    const answer = await world.ask({ path: "/sign-up/email", body }, random);
    const session = answer && world.remember(answer, world.platform, email, "sign-up");
    if (!session) throw new Error(`no operator: ${answer?.text}`);
    return new Operator(world, random, session);
  }

  async work(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      const there = this.there();
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
    const place = this.world.addTenant(String(answer.data?.id));
    this.world.ledger.count("tenants created");
    await this.manage("/tenant/oauth-config/register", {
      tenantId: place.id,
      providerId: "google",
      clientId: `client of ${place.id}`,
      clientSecret: `secret of ${place.id}`,
    });
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

  async listTenants(): Promise<string[]> {
    const answer = await this.ask({ path: "/tenant/list" });
    if (!answer) return this.listTenants();
    return (answer.data as unknown as { id: string }[]).map(({ id }) => id);
  }

  private there(): Place[] {
    return this.world.tenants.filter(({ state }) => state === "there");
  }

  private async manage(path: string, body: Record<string, unknown>, on?: Member) {
    const answer = await this.ask({ path, body, ...(on && { on }) });
    const isExpected = answer && (answer.status < 400 || answer.status === 404);
    if (answer && !isExpected && answer.status < 500) {
      this.world.ledger.fail("refused", answer.text);
    }
    return answer;
  }

  private ask(call: Call): Promise<Answer | undefined> {
    return this.world.ask({ ...call, session: this.session }, this.random);
  }
}
