import { attemptsIn } from "./attempts/attempts";
import { idleCredentials, idleEndpoints } from "./attempts/controls";
import { judge } from "./attempts/judge";
import { createProgress } from "./attempts/progress";
import { isJSON, type Try } from "./attempts/requests";
import { tryRoutes } from "./attempts/routes";
import type { Leak } from "./findings";
import { type AuthInstance, openSubject, type Subject } from "./instance/subject";
import type { IsolationOptions } from "./options";
import { createReport, type IsolationReport } from "./report";
import { inWorld, type World } from "./sides/world";

/**
 * Tries every endpoint of an instance with every credential from the wrong side of the border. It
 * creates two tenants, and people in them and on the platform, and takes them away again: run it
 * on a test database that nobody else uses meanwhile.
 */
export async function checkIsolation(
  auth: AuthInstance,
  options: IsolationOptions = {},
): Promise<IsolationReport> {
  const start = Date.now();
  const subject = await openSubject(auth, "checkIsolation()");
  if (!options.allowExistingTenants) await assertNoTenants(subject);
  return inWorld(subject, options, async (world) => {
    const found = await tryAll(world);
    // Only now: no credential has expired meanwhile, or was used up.
    const idle = [
      ...(await idleEndpoints(world)),
      ...(await idleCredentials(world, world.sides.a)),
      ...(await idleCredentials(world, world.sides.platform)),
    ];
    if (found.counts.attempts > 0) await assertReached(world);
    const routes = await tryRoutes(world);
    return createReport({
      ...found,
      leaks: [...found.leaks, ...routes.leaks],
      untried: [...world.untried, ...idle, ...routes.untried],
      milliseconds: Date.now() - start,
    });
  });
}

async function assertNoTenants({ raw }: Subject): Promise<void> {
  if ((await raw.count({ model: "tenant" })) === 0) return;
  throw new Error(
    "checkIsolation(): this database has tenants. Use a test database, or set `allowExistingTenants: true` if nobody else uses this one",
  );
}

/** Where nothing answers, nothing leaks, and nothing is proved. */
async function assertReached({ isReached, subject }: World): Promise<void> {
  if (isReached) return;
  const { origin, basePath, handler } = subject;
  // Who tries few endpoints may have tried none that answers without a redirect.
  for (const path of ["/ok", "/get-session"]) {
    const { ok, headers } = await handler(new Request(`${origin}${basePath}${path}`));
    if (ok && isJSON(headers)) return;
  }
  throw new Error(
    `checkIsolation(): no request was answered by an endpoint. Is this where the instance answers: ${origin}${basePath}? See \`baseURL\` and \`basePath\` in its options`,
  );
}

async function tryAll(world: World) {
  const progress = createProgress(world.options.progress ?? true, world.endpoints.length);
  const leaks: Leak[] = [];
  const failures: string[] = [];
  const credentials = new Set<string>();
  let attempts = 0;
  for (const [endpoint, tries] of attemptsIn(world, world.options.extent ?? {})) {
    progress.step(`${endpoint.method} ${endpoint.path}`);
    for (const attempt of tries) {
      credentials.add(attempt.oneTime?.name ?? attempt.carrier.name);
      const verdict = await judge(world, attempt);
      leaks.push(...verdict.leaks);
      if (verdict.failure) failures.push(verdict.failure);
    }
    leaks.push(...(await pastTheAdapter(world, tries)));
    attempts += tries.length;
  }
  progress.end();
  const { endpoints, sides } = world;
  const controls = endpoints.length + sides.a.oneTimes.length + sides.platform.oneTimes.length;
  const counts = { endpoints: endpoints.length, credentials: credentials.size, attempts, controls };
  return { leaks, failures, counts };
}

/**
 * What was written past the adapter shows when everything is read, which takes too long for each
 * request: then they are tried once more, one by one.
 */
async function pastTheAdapter(world: World, tries: Try[]): Promise<Leak[]> {
  const everybody = ["a", "b", "platform"] as const;
  const changes = await world.watch.changesOf([...everybody], true);
  const own = await world.watch.changesOfOwn([...everybody]);
  if (!changes.length && !own.length) return [];
  const leaks: Leak[] = [];
  for (const attempt of tries) leaks.push(...(await judge(world, attempt, true)).leaks);
  return leaks;
}
