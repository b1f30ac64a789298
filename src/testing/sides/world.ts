import { deleteTenant } from "../../features/management/delete";
import { createTenant } from "../../features/management/store";
import { openOwnTables } from "../data/own-tables";
import { messageOf } from "../data/texts";
import { Watch } from "../data/watch";
import { createLeak, nameOf } from "../data/words";
import type { Leak, NotApplicable, Untried } from "../findings";
import { calm } from "../instance/calm";
import { type Endpoint, endpointsOf } from "../instance/endpoints";
import type { Subject } from "../instance/subject";
import { makersFor } from "../makers/makers";
import { registerProvider } from "../makers/oauth";
import type { IsolationOptions } from "../options";
import { callOwnEndpoints } from "./own-endpoints";
import { findPlaces, type SideName, type Tenants } from "./places";
import { type OneTime, type Side, settle, type Workshop } from "./side";

/** Keys and responses of one side, made for what another side asks for, go along. */
export type Direction = [home: Side, place: Side, keysHere: OneTime[]];

/** Two tenants and the platform, with everything in them, and a watch over their state. */
export interface World {
  subject: Subject;
  options: IsolationOptions;
  endpoints: Endpoint[];
  sides: Record<SideName, Side>;
  directions: Direction[];
  watch: Watch;
  /** The last responses to requests without a credential. */
  outcomes: Map<string, string>;
  untried: Untried[];
  notApplicable: NotApplicable[];
  /** What endpoints of the application did to others when they were first called. */
  setupLeaks: Leak[];
  /** What could not be deleted at the end; known when the run is over. */
  left: string[];
  /** Whether some request has come to an endpoint. */
  isReached: boolean;
}

/** Makes a world for one use, and always deletes it again. */
export async function inWorld<T>(
  subject: Subject,
  options: IsolationOptions,
  use: (world: World) => Promise<T>,
): Promise<T> {
  const own = await openOwnTables(subject, options);
  const { keep = false } = options;
  const watch = new Watch(subject, own, options);
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
      // Rows of the application may refer to users, so they go first.
      if (!keep) left.push(...(await watch.removeOwn()));
      // Through the plugin, which keeps tenants in a cache; their rows may be gone already.
      for (const { id } of keep ? [] : Object.values(tenants)) {
        await deleteTenant(subject.ctx, "server", id).catch(() => undefined);
      }
      await watch.end(keep);
    } finally {
      calmed.restore();
      await own.close();
    }
  }
}

/** Not through `auth.api`, which needs a request if the base URL depends on it. */
export const newTenant = ({ ctx }: Subject, slug: string) =>
  createTenant(ctx, "server", { name: `Tenant ${slug}`, slug, metadata: null, policy: null });

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
  const noteChanges: Workshop["noteChanges"] = async ({ name: side, place }, endpoint) => {
    const { name, method, path } = endpoint;
    const request = { method, url: place.origin + subject.basePath + path, headers: {} };
    const attempt = `${name}, while test data of ${side} is created`;
    for (const found of await watch.changesOfOwn(side)) {
      const who = `signed in at ${nameOf(side)}`;
      setupLeaks.push(createLeak(watch, { attempt, who, endpoint: name, found, request }));
    }
  };
  const workshop: Workshop = { subject, watch, providers, paths, mark, takeMails, noteChanges };
  const places = await findPlaces(subject, tenants as Tenants, options.address);
  const untried: Untried[] = [];
  const notApplicable: NotApplicable[] = [];
  const settled: Side[] = [];
  // One after the other: what comes meanwhile belongs to the one.
  for (const place of places) {
    const side = await settle(workshop, place, options.person ?? {});
    await furnishSide(side, untried, notApplicable);
    await callOwnEndpoints(side, everywhere, options);
    await watch.attribute(place.name);
    settled.push(side);
  }
  const [a, b, platform] = settled as [Side, Side, Side];
  const sides = { a, b, platform };
  const between = async (home: Side, place: Side): Promise<Direction> => {
    return [home, place, await Promise.all(home.abroad.map((make) => make(place)))];
  };
  const directions = [await between(a, b), await between(a, platform), await between(platform, a)];
  await watch.guard(subject, places, { a: a.secrets, b: b.secrets, platform: platform.secrets });
  const found = { untried, notApplicable, setupLeaks, left: [], isReached: false };
  const outcomes = new Map<string, string>();
  return { subject, options, endpoints, sides, directions, watch, outcomes, ...found };
}

/** Makes what the installed plugins can make, and lists what could not be made. */
async function furnishSide(side: Side, untried: Untried[], notApplicable: NotApplicable[]) {
  await registerProvider(side);
  const { paths, subject } = side.workshop;
  for (const maker of await makersFor(paths)) {
    if (!maker.paths.every((path) => paths.has(path))) continue;
    if (maker.isOn && !maker.isOn(subject.ctx.options)) continue;
    try {
      const made = [await maker.make(side)].flat();
      const rest = { name: maker.name, home: maker.paths.at(-1) ?? "" };
      for (const one of made) if (one) side.oneTimes.push({ ...rest, ...one });
    } catch (error) {
      const what = `${maker.name} of ${side.name}`;
      const reason = `it could not be made: ${messageOf(error)}`;
      const { give = "an instance in which it can be made" } = maker;
      // There are no users of this sign-in method: they cannot provide the required fields, or
      // `platformPolicy` lets none join.
      if (/MISSING_FIELD|SIGN_UP_CLOSED/.test(reason)) notApplicable.push({ what, reason });
      else untried.push({ what, reason, give });
    }
  }
}
