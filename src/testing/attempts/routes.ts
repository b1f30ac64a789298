import { decoded } from "../data/texts";
import { inWords, nameOf } from "../data/words";
import type { Leak, Untried } from "../findings";
import type { Caller, Route } from "../options";
import { cookieHeader, read } from "../sides/browser";
import { namedAtHome } from "../sides/places";
import type { Side } from "../sides/side";
import type { World } from "../sides/world";
import { leaksIn } from "./requests";

/** The application's own routes, searched for what belongs to others. */
export async function tryRoutes(world: World): Promise<{ leaks: Leak[]; untried: Untried[] }> {
  const leaks: Leak[] = [];
  const untried: Untried[] = [];
  for (const [index, route] of (world.options.routes ?? []).entries()) {
    const name = route.name || `routes[${index}]`;
    const reason = await unproven(world, route);
    const give = "a route that returns or changes something of the person it is called as";
    if (reason) untried.push({ what: name, reason, give });
    for (const [as, about] of pairs(Object.values(world.sides))) {
      leaks.push(...(await tryRoute(world, name, route, as, about)));
    }
  }
  return { leaks, untried };
}

/** Why a route proves nothing, called by somebody about themselves. */
async function unproven(world: World, route: Route): Promise<string | undefined> {
  const { a } = world.sides;
  const { sent, changes, status } = await call(world, route, a, a);
  if (status >= 400) return `it does nothing at home either: ${status}`;
  const isChanged = changes.length > 0 || world.watch.isOwnChanged;
  if (isChanged || leaksIn(sent, world.watch.secrets.a).length) return undefined;
  return "it returned or changed nothing of the person it was called as";
}

const pairs = (sides: Side[]) =>
  sides.flatMap((one) =>
    sides.filter((other) => other !== one).map((other) => [one, other] as const),
  );

async function call(world: World, route: Route, as: Side, about: Side) {
  const { watch } = world;
  const caller = callerOf(world, as);
  const response = await route(caller, about.about());
  const { url } = response;
  const { text, headers, status } = await read(response);
  const told = [...headers].flat().join("\n") + text;
  const known = `${url} ${JSON.stringify(caller)} ${JSON.stringify(about.about())}`;
  const others = Object.values(world.sides).filter((side) => side !== as);
  const watched = as === about ? [as.name] : others.map(({ name }) => name);
  const changes = [
    ...(await watch.changesOf(watched, true)),
    ...(await watch.changesOfOwn(as.name, known)),
  ];
  const sent = { told: `${told}\n${decoded(told)}`, known };
  return {
    sent,
    changes,
    others,
    status,
    request: { method: "GET", url, headers: caller.headers },
  };
}

async function tryRoute(world: World, name: string, route: Route, as: Side, about: Side) {
  const { sent, changes, others, request } = await call(world, route, as, about);
  const told = others.flatMap((side) => {
    const secrets = leaksIn(sent, world.watch.secrets[side.name]);
    return secrets.length ? [`tells of ${side.name}: ${secrets.slice(0, 5).join(", ")}`] : [];
  });
  return [...changes, ...told].map(
    (found): Leak => ({
      attempt: `${name}, somebody of ${as.name} about ${about.name}`,
      endpoint: name,
      found,
      summary: `signed in at ${nameOf(as.name)}, ${name} ${inWords(world.watch, found)}`,
      request: { ...request, url: request.url || name },
    }),
  );
}

function callerOf(world: World, side: Side): Caller {
  const { place, main } = side;
  const named = namedAtHome(place, world.subject.tenantOptions);
  const cookie = cookieHeader(main.browser.cookies);
  const headers = { origin: place.origin, ...place.headers, ...named, cookie };
  return { ...side.about(), headers, origin: place.origin };
}
