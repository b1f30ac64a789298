import { decoded } from "../data/texts";
import type { Leak, Untried } from "../findings";
import type { About, Caller, Route } from "../options";
import { cookieHeader, read } from "../sides/browser";
import { namedAtHome } from "../sides/places";
import type { Side } from "../sides/side";
import type { World } from "../sides/world";
import { leaksIn } from "./requests";

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
