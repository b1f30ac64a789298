import { deleteTenant } from "../../tenants/delete";
import { createTenant } from "../../tenants/store";
import { openOwnTables } from "../data/own-tables";
import { Watch } from "../data/watch";
import { inWords, nameOf } from "../data/words";
import type { Leak, NotApplicable, Untried } from "../findings";
import { calm } from "../instance/calm";
import { type Endpoint, endpointsOf } from "../instance/endpoints";
import type { Subject } from "../instance/subject";
import { makersFor } from "../makers/makers";
import { registerProvider } from "../makers/oauth";
import type { IsolationOptions } from "../options";
import { callOwnEndpoints } from "./own-endpoints";
import { findPlaces, type Place, type SideName, type Tenants } from "./places";
import { type OneTime, type Side, settle, type Workshop } from "./side";

/** Two tenants and the platform, with everything in them, and somebody who watches their state. */
export interface World {
  subject: Subject;
  options: IsolationOptions;
  endpoints: Endpoint[];
  sides: Record<SideName, Side>;
  /** Keys and responses of one side, for what another side asks for. */
  keys: { atB: OneTime[]; atPlatform: OneTime[]; atA: OneTime[] };
  watch: Watch;
  /** What nobody was answered when it was last asked. */
  outcomes: Map<string, string>;
  untried: Untried[];
  notApplicable: NotApplicable[];
  /** What endpoints of the application did to others when they were first called. */
  setupLeaks: Leak[];
  /** What could not be deleted at the end; known when the run is over. */
  left: string[];
  /** Whether some request has come to an endpoint. */
  isReached: boolean;
  perTenantCookies: boolean;
  /** Whether a plugin is installed. */
  has(pluginId: string): boolean;
}

/** Makes a world for one use, and takes it away again, whatever happens. */
export async function inWorld<T>(
  subject: Subject,
  options: IsolationOptions,
  use: (world: World) => Promise<T>,
): Promise<T> {
  const own = await openOwnTables(subject, options);
  const { sharedTables = [], allowExistingTenants: isShared = false, keep = false } = options;
  const watch = new Watch(subject, { own, sharedTables, isAlone: !isShared });
  const calmed = await calm(subject);
  const tenants: Partial<Tenants> = {};
  const left: string[] = [];
  try {
    await watch.begin();
    const world = await furnish(subject, options, watch, calmed, tenants);
    world.untried.push(...own.untried);
    return await use({ ...world, left });
  } finally {
    try {
      // Rows of the application may refer to people, so they go first.
      if (!keep) left.push(...(await watch.removeOwn()));
      if (!keep) await removeTenants(subject, tenants);
      await watch.end(keep);
    } finally {
      calmed.restore();
      await own.close();
    }
  }
}

/** Through the plugin, which forgets what it remembers of them; their rows may be gone already. */
async function removeTenants(subject: Subject, tenants: Partial<Tenants>): Promise<void> {
  const { ctx } = subject;
  for (const tenant of Object.values(tenants)) {
    await deleteTenant(ctx, "server", tenant.id).catch(() => undefined);
  }
}

/** Not through `auth.api`: where the base URL goes by the request, that takes one. */
export const newTenant = ({ ctx }: Subject, slug: string) =>
  createTenant(ctx, "server", {
    name: `Tenant ${slug}`,
    slug,
    metadata: null,
    policy: null,
  });

async function furnish(
  subject: Subject,
  options: IsolationOptions,
  watch: Watch,
  { mails, providers }: Awaited<ReturnType<typeof calm>>,
  tenants: Partial<Tenants>,
): Promise<World> {
  const everywhere = endpointsOf(subject);
  const { paths: only = [""] } = options.extent ?? {};
  const endpoints = everywhere.filter(({ path }) => only.some((start) => path.startsWith(start)));
  const mark = `kit${Math.random().toString(36).slice(2, 10).padEnd(8, "0")}`;
  for (const name of ["a", "b"] as const) {
    tenants[name] = await newTenant(subject, `${mark}-${name}`);
    await watch.attribute(name);
  }
  const takeMails = async () => [...mails.take(), ...((await options.outbox?.()) ?? [])];
  const paths = new Set(everywhere.map(({ path }) => path));
  const setupLeaks: Leak[] = [];
  const noteChanges: Workshop["noteChanges"] = async (side, { method, path }) => {
    for (const found of await watch.changesOfOwn(side.name)) {
      const endpoint = `${method} ${path}`;
      const summary = `signed in at ${nameOf(side.name)}, ${endpoint} ${inWords(watch, found)}`;
      const attempt = `${endpoint}, while test data of ${side.name} is created`;
      const request = { method, url: side.place.origin + subject.basePath + path, headers: {} };
      setupLeaks.push({ attempt, endpoint, found, summary, request });
    }
  };
  const workshop: Workshop = { subject, watch, providers, paths, mark, takeMails, noteChanges };
  const places = await findPlaces(subject, tenants as Tenants, options.address);
  const { sides, untried, notApplicable } = await settleSides(
    workshop,
    places,
    everywhere,
    options,
  );
  const [a, b, platform] = sides as [Side, Side, Side];
  const abroad = (of: Side, at: Side) => Promise.all(of.abroad.map((make) => make(at)));
  const keys = {
    atB: await abroad(a, b),
    atPlatform: await abroad(a, platform),
    atA: await abroad(platform, a),
  };
  await watch.guard(subject, places, { a: a.secrets, b: b.secrets, platform: platform.secrets });
  return {
    subject,
    options,
    endpoints,
    sides: { a, b, platform },
    keys,
    watch,
    outcomes: new Map(),
    untried,
    notApplicable,
    setupLeaks,
    left: [],
    isReached: false,
    perTenantCookies: subject.tenantOptions.sessionCookies === "per-tenant",
    has: (pluginId) => subject.plugins.some(({ id }) => id === pluginId),
  };
}

/** The three sides, one after the other: what comes meanwhile belongs to the one. */
async function settleSides(
  workshop: Workshop,
  places: Place[],
  endpoints: Endpoint[],
  options: IsolationOptions,
) {
  const untried: Untried[] = [];
  const notApplicable: NotApplicable[] = [];
  const sides: Side[] = [];
  for (const place of places) {
    const side = await settle(workshop, place, options.person ?? {});
    await furnishSide(side, untried, notApplicable);
    await callOwnEndpoints(side, endpoints, options);
    await workshop.watch.attribute(place.name);
    sides.push(side);
  }
  return { sides, untried, notApplicable };
}

/** What the installed plugins can make; what they cannot is said. */
async function furnishSide(side: Side, untried: Untried[], notApplicable: NotApplicable[]) {
  await registerProvider(side);
  const { paths, subject } = side.workshop;
  for (const maker of await makersFor(paths)) {
    if (!maker.paths.every((path) => paths.has(path))) continue;
    if (maker.isOn && !maker.isOn(subject.ctx.options)) continue;
    try {
      await maker.make(side);
    } catch (error) {
      const what = `${maker.name} of ${side.name}`;
      const reason = `it could not be made: ${error instanceof Error ? error.message : error}`;
      // People who come this way cannot say what users have to say: nobody comes.
      if (reason.includes("MISSING_FIELD")) notApplicable.push({ what, reason });
      else
        untried.push({ what, reason, give: maker.give ?? "an instance in which it can be made" });
    }
  }
}
