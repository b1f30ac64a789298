import { withDecoded } from "../data/texts";
import { createLeak, nameOf } from "../data/words";
import type { Leak, Untried } from "../findings";
import type { Caller, Route } from "../options";
import { cookieHeader, read } from "../sides/browser";
import { namedAtHome } from "../sides/places";
import type { Side } from "../sides/side";
import type { World } from "../sides/world";
import { leaksIn, toldOf } from "./requests";

/** The application's own routes, searched for what belongs to others. */
export async function tryRoutes(world: World): Promise<{ leaks: Leak[]; untried: Untried[] }> {
  const leaks: Leak[] = [];
  const untried: Untried[] = [];
  const sides = Object.values(world.sides);
  for (const [index, route] of (world.options.routes ?? []).entries()) {
    const name = route.name || `routes[${index}]`;
    const reason = await unproven(world, route);
    const give = "a route that returns or changes something of the user it is called as";
    if (reason) untried.push({ what: name, reason, give });
    for (const as of sides) {
      for (const about of sides.filter((side) => side !== as)) {
        leaks.push(...(await tryRoute(world, name, route, as, about)));
      }
    }
  }
  return { leaks, untried };
}

/** Why a route proves nothing, called by a user about themselves. */
async function unproven(world: World, route: Route): Promise<string | undefined> {
  const { a } = world.sides;
  const { exchange, changes, status } = await call(world, route, a, a);
  if (status >= 400) return `it does nothing at home either: ${status}`;
  const isChanged = changes.length > 0 || world.watch.isOwnChanged;
  if (isChanged || leaksIn(exchange, world.watch.secrets.a).length) return undefined;
  return "it returned or changed nothing of the user it was called as";
}

async function call(world: World, route: Route, as: Side, about: Side) {
  const { watch, sides } = world;
  const { origin, headers: addressing } = as.place;
  const named = namedAtHome(as.place, world.subject.tenantOptions);
  const cookie = cookieHeader(as.main.browser.cookies);
  const sent = { origin, ...addressing, ...named, cookie };
  const caller: Caller = { ...as.about(), headers: sent, origin };
  const response = await route(caller, about.about());
  const { url } = response;
  const { text, headers, status } = await read(response);
  const known = `${url} ${JSON.stringify(caller)} ${JSON.stringify(about.about())}`;
  const exchange = { told: withDecoded([...headers].flat().join("\n") + text), known };
  const others = Object.values(sides).flatMap(({ name }) => (name === as.name ? [] : [name]));
  const changes = [
    ...(await watch.changesOf(as === about ? [as.name] : others, true)),
    ...(await watch.changesOfOwn(as.name, known)),
  ];
  const request = { method: "GET", url, headers: sent };
  return { exchange, changes, others, status, request };
}

async function tryRoute(world: World, endpoint: string, route: Route, as: Side, about: Side) {
  const { exchange, changes, others, request } = await call(world, route, as, about);
  return [...changes, ...toldOf(world, exchange, others)].map((found) =>
    createLeak(world.watch, {
      attempt: `${endpoint}, a user of ${as.name} about ${about.name}`,
      who: `signed in at ${nameOf(as.name)}`,
      endpoint,
      found,
      request: { ...request, url: request.url || endpoint },
    }),
  );
}
