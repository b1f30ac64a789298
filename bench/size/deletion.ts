import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Pool } from "pg";
import { type Handler, request, send } from "../instance";
import { quantile } from "../measure";
import { createAuth } from "./auth";
import { signInRequest } from "./flows";
import { acrossTenants, type Instance } from "./place";
import { HOT, tenantId } from "./population";

/** Milliseconds that sign-ins in other tenants took. */
export interface SignIns {
  count: number;
  median: number;
  p95: number;
  max: number;
}

interface Effort {
  seconds: number;
  /** MB that the process had at most, over what it had before. */
  memory: number;
}

export interface Deletion extends Effort {
  users: number;
  before: SignIns;
  during: SignIns;
}

/** How many sign in at a time. */
const PEOPLE = 2;
const PAUSE = 2;
const MB = 1024 * 1024;

/** Deletes the hot tenant while others sign in. */
export async function measureDeletion(instance: Instance): Promise<Deletion> {
  await signInsDuring(instance, () => sleep(2000));
  const before = await signInsDuring(instance, () => sleep(10_000));
  const { host, port, user, database } = instance.pool.options;
  const where = JSON.stringify({ host, port, user, database });
  let effort: Effort = { seconds: 0, memory: 0 };
  const during = await signInsDuring(instance, async () => {
    effort = await inFreshProcess(["--delete", where]);
  });
  return { users: instance.size.hotUsers, ...effort, before, during };
}

async function signInsDuring(instance: Instance, run: () => Promise<void>): Promise<SignIns> {
  const { handler, person } = acrossTenants(instance);
  const taken: number[] = [];
  let next = 0;
  let running = true;
  const people = Array.from({ length: PEOPLE }, async () => {
    while (running) {
      const call = signInRequest(person(next++));
      const start = performance.now();
      await (await send(handler, call)).arrayBuffer();
      taken.push(performance.now() - start);
      await sleep(PAUSE);
    }
  });
  await run();
  running = false;
  await Promise.all(people);
  return {
    count: taken.length,
    median: quantile(taken, 0.5),
    p95: quantile(taken, 0.95),
    max: Math.max(...taken),
  };
}

/** What a process has taken once it never gives back, so a figure needs a process of its own. */
async function inFreshProcess(args: string[]): Promise<Effort> {
  const program = process.argv[1] ?? fileURLToPath(import.meta.url);
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args]);
  return JSON.parse(stdout);
}

/** What such a process does. */
export async function deleteHotTenant(where: string): Promise<Effort> {
  const pool = new Pool(JSON.parse(where));
  const { api, handler } = await createAuth(pool);
  const remove = (id: string) =>
    send(handler as Handler, request("/tenant/delete", { body: { tenantId: id } }));
  // The first deletion loads what it needs.
  const { id } = await api.createTenant({ body: { name: "Other", slug: "other" } });
  await remove(id);
  const memory = process.memoryUsage().rss;
  const start = performance.now();
  await remove(tenantId(HOT));
  const seconds = (performance.now() - start) / 1000;
  await pool.end();
  return { seconds, memory: process.resourceUsage().maxRSS / 1024 - memory / MB };
}
