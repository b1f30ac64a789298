import { cookieHeader, read } from "./browser";
import type { About } from "./isolation";
import type { Leak } from "./judge";
import { namedAtHome } from "./places";
import type { Untried } from "./report";
import { leaksIn } from "./requests";
import type { Side } from "./side";
import { decoded } from "./texts";
import type { World } from "./world";

/** Somebody who is signed in: send these headers. */
export interface Caller extends About {
  headers: Record<string, string>;
  origin: string;
}

/** Calls a route of the application as one person, about the things of another. */
export type Route = (as: Caller, about: About) => Promise<Response>;

/** The application's own routes, looked at for what belongs to another. */
export async function tryRoutes(world: World): Promise<{ leaks: Leak[]; untried: Untried[] }> {
  const leaks: Leak[] = [];
  const untried: Untried[] = [];
  for (const [index, route] of (world.options.routes ?? []).entries()) {
    const name = route.name || `routes[${index}]`;
    const control = await read(
      await route(callerOf(world, world.sides.a), aboutOf(world, world.sides.a)),
    );
    if (control.status >= 400) {
      const reason = `it does nothing at home either: ${control.status}`;
      untried.push({ what: name, reason, give: "a route that answers the person it is called as" });
    }
    for (const [as, about] of pairs(Object.values(world.sides))) {
      leaks.push(...(await tryRoute(world, name, route, as, about)));
    }
  }
  return { leaks, untried };
}

const pairs = (sides: Side[]) =>
  sides.flatMap((one) =>
    sides.filter((other) => other !== one).map((other) => [one, other] as const),
  );

async function tryRoute(world: World, name: string, route: Route, as: Side, about: Side) {
  const caller = callerOf(world, as);
  const response = await route(caller, aboutOf(world, about));
  const { url } = response;
  const { text, headers } = await read(response);
  const told = [...headers].flat().join("\n") + text;
  const known = `${url} ${JSON.stringify(caller)} ${JSON.stringify(aboutOf(world, about))}`;
  const sent = { told: `${told}\n${decoded(told)}`, known };
  const others = Object.values(world.sides).filter((side) => side !== as);
  return others.flatMap((side): Leak[] => {
    const secrets = leaksIn(sent, world.watch.secrets[side.name]);
    if (!secrets.length) return [];
    return [
      {
        attempt: `${name}, somebody of ${as.name} about ${about.name}`,
        endpoint: name,
        found: `tells of ${side.name}: ${secrets.slice(0, 5).join(", ")}`,
        request: { method: "GET", url: url || name, headers: caller.headers },
      },
    ];
  });
}

function aboutOf({ watch }: World, { name, place, main }: Side): About {
  const { userId, email } = main;
  return { tenantId: place.tenantId, userId, email, rows: (table) => watch.rowsOf(name, table) };
}

function callerOf(world: World, side: Side): Caller {
  const { place, main } = side;
  const named = namedAtHome(place, world.subject.tenantOptions);
  const cookie = cookieHeader(main.browser.cookies);
  const headers = { origin: place.origin, ...place.headers, ...named, cookie };
  return { ...aboutOf(world, side), headers, origin: place.origin };
}
