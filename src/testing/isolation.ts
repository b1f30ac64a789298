import { attemptsIn } from "./attempts/attempts";
import { idleCredentials, idleEndpoints } from "./attempts/controls";
import { judge } from "./attempts/judge";
import { influence, lockOut, nextRequest } from "./attempts/probes";
import { ignoreInputError, isJSON, type Try } from "./attempts/requests";
import { tryRoutes } from "./attempts/routes";
import { assertClean } from "./clean-up";
import type { Leak, Untried } from "./findings";
import { type AuthInstance, openSubject } from "./instance/subject";
import type { IsolationOptions } from "./options";
import { createReport, type IsolationReport } from "./report";
import { callOwnEndpoints } from "./sides/own-endpoints";
import { isPlatformReached, SIDES } from "./sides/places";
import { inWorld, type World } from "./sides/world";

/**
 * Calls every endpoint of an instance with every credential of the wrong tenant. It creates two
 * tenants, with users in them and on the platform, and deletes them again. Use a test database with
 * all tables, and nothing else running on it.
 */
export async function checkIsolation(
  auth: AuthInstance,
  options: IsolationOptions = {},
): Promise<IsolationReport> {
  const start = Date.now();
  const subject = await openSubject(auth, "checkIsolation()");
  await assertClean(subject, options.allowExistingTenants ?? false);
  return inWorld(subject, options, async (world) => {
    const { leaks, ...found } = await tryAll(world);
    const routes = await tryRoutes(world);
    leaks.push(...routes.leaks, ...(await nextRequest(world)), ...(await influence(world)));
    // Only now, because these use credentials up.
    const idle = await idleEndpoints(world);
    const { a, platform } = world.sides;
    const credentials: Untried[] = [];
    for (const side of isPlatformReached(subject) ? [a, platform] : [a]) {
      credentials.push(...(await idleCredentials(world, side)));
    }
    if (found.counts.attempts > 0) await assertReached(world);
    leaks.push(...(await lockOut(world)));
    const all = {
      ...found,
      leaks: [...world.setupLeaks, ...leaks],
      untried: [...world.untried, ...idle.untried, ...credentials, ...routes.untried],
      notApplicable: [...world.notApplicable, ...idle.notApplicable],
      left: world.left,
      milliseconds: Date.now() - start,
    };
    return createReport(all, options.allow ?? {});
  });
}

/** If nothing answers, nothing leaks, and nothing is proved. */
async function assertReached({ isReached, subject }: World): Promise<void> {
  if (isReached) return;
  const { origin, basePath, handler } = subject;
  // The endpoints that were tried may all respond with redirects.
  for (const path of ["/ok", "/get-session"]) {
    const { ok, headers } = await handler(new Request(`${origin}${basePath}${path}`));
    if (ok && isJSON(headers)) return;
  }
  throw new Error(
    `checkIsolation(): no request was answered by an endpoint. Is this where the instance answers: ${origin}${basePath}? See \`baseURL\` and \`basePath\` in its options`,
  );
}

async function tryAll(world: World) {
  const { endpoints, sides, options, watch } = world;
  const stream = options.progress === false ? undefined : globalThis.process?.stderr;
  const show = (text: string) => stream?.isTTY && stream.write(`\r\u001b[K${text}`);
  let done = 0;
  const leaks: Leak[] = [];
  const failures: string[] = [];
  const credentials = new Set<string>();
  let attempts = 0;
  for (const [endpoint, tries] of attemptsIn(world, options.extent ?? {})) {
    show(`checkIsolation: ${++done} of ${endpoints.length} endpoints, ${endpoint.name}`);
    await watch.undoEffects(endpoint.name);
    const found = await tryEndpoint(world, tries, failures);
    for (const { oneTime, carrier } of tries) credentials.add(oneTime?.name ?? carrier.name);
    leaks.push(...found);
    attempts += tries.length;
    if (endpoint.isOwn && (found.length || endpoint.method !== "GET")) await restock(world);
  }
  show("");
  const controls = endpoints.length + sides.a.oneTimes.length + sides.platform.oneTimes.length;
  const counts = { endpoints: endpoints.length, credentials: credentials.size, attempts, controls };
  return { leaks, failures, counts };
}

async function tryEndpoint(world: World, tries: Try[], failures: string[]): Promise<Leak[]> {
  const leaks: Leak[] = [];
  try {
    for (const attempt of tries) {
      const verdict = await judge(world, attempt);
      leaks.push(...verdict.leaks);
      if (verdict.failure) failures.push(verdict.failure);
    }
    // What was written past the adapter shows when everything is read, which takes too long for each
    // request: it is put back, and they are tried once more, one by one.
    if ((await world.watch.changesOf([...SIDES], true)).length) {
      for (const attempt of tries) leaks.push(...(await judge(world, attempt, true)).leaks);
    }
  } catch (error) {
    // Its control says so.
    ignoreInputError(error);
  }
  return leaks;
}

/** Creates again what was undone, or deleted from the application's own tables. */
async function restock({ sides, endpoints, options, watch }: World): Promise<void> {
  for (const side of Object.values(sides)) {
    await callOwnEndpoints(side, endpoints, options);
    await watch.attribute(side.name);
  }
  await watch.guardAgain();
}
