import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Mail, Message, Order } from "./worker";

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
