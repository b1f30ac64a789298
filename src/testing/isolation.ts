import { attemptsIn, type Extent } from "./attempts";
import { idleCredentials, idleEndpoints } from "./controls";
import type { GivenInput, Values } from "./inputs";
import { judge, type Leak } from "./judge";
import type { Outbox } from "./outbox";
import type { Address } from "./places";
import { createProgress } from "./progress";
import { createReport, type IsolationReport } from "./report";
import { isJSON, type Try } from "./requests";
import { type Route, tryRoutes } from "./routes";
import type { Row } from "./rows";
import { type AuthInstance, openSubject, type Subject } from "./subject";
import type { ReadTables } from "./watch";
import { inWorld, type World } from "./world";

/** Whose things a request is about. */
export interface About {
  tenantId: string | null;
  userId: string;
  email: string;
  /** Rows of theirs in a table of a plugin, or in one of `tables`. */
  rows(table: string): Row[];
}

/** What `checkIsolation` can be told about an application. */
export interface IsolationOptions {
  /**
   * Inputs for endpoints of your own, by path. A function gets whose things the request is about:
   * `({ rows }) => ({ body: { id: rows("note")[0]?.id } })`.
   */
  endpoints?: Record<string, GivenInput | ((about: About) => GivenInput)>;
  /**
   * Tables that better-auth does not know: their names, where they are in its database, or a
   * function that reads them. They are looked at for changes, and for rows that show on the wrong
   * side. What is in better-auth's schema is looked at anyway.
   */
  tables?: string[] | ReadTables;
  /** HTTP routes of your own, called as one person about the things of another. */
  routes?: Route[];
  /**
   * Where people of a tenant go, if a resolver of your own goes by more than a subdomain: an
   * address, perhaps with headers. With null it is asked for the platform's.
   */
  address?: Address;
  /** Values for fields that your users must have. */
  person?: Values;
  /** Mails that senders of your own have kept, where the kit cannot stand in for them. */
  outbox?: Outbox;
  /** How much is tried. */
  extent?: Extent;
  /**
   * Runs on a database that has tenants already.
   * @default false
   */
  allowExistingTenants?: boolean;
  /**
   * Leaves tenants and people in place, to repeat requests by hand.
   * @default false
   */
  keep?: boolean;
  /**
   * A line on a terminal that says how far it is.
   * @default true
   */
  progress?: boolean;
}

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
