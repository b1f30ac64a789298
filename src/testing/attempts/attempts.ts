import type { Endpoint } from "../instance/endpoints";
import type { Extent } from "../options";
import { type Naming, namingsFor } from "../sides/places";
import type { OneTime, Side } from "../sides/side";
import type { Direction, World } from "../sides/world";
import { carriersOf, HOST, renamedCarrier, SESSION, SIGNED_OUT, sessionOf } from "./carriers";
import { inputFor } from "./inputs";
import { givenFor, sideOf, type Try } from "./requests";

type TakeTurns = (namings: Naming[]) => Naming[];

export function* attemptsIn(world: World, extent: Extent): Generator<[Endpoint, Try[]]> {
  const { oneOf = 1, offset = 0, everyNaming } = extent;
  let nextNaming = 0;
  const takeTurns: TakeTurns = (namings) =>
    everyNaming ? namings : [namings[nextNaming++ % namings.length] ?? "nothing"];
  for (const [position, endpoint] of world.endpoints.entries()) {
    const all = world.directions.flatMap((direction) => [
      ...attemptsAt(world, endpoint, direction, takeTurns),
    ]);
    yield [endpoint, all.filter((_, turn) => (turn + position + offset) % oneOf === 0)];
  }
}

/** Every credential in one direction. One-time ones also go with a session of either side. */
function* attemptsAt(
  world: World,
  endpoint: Endpoint,
  [home, place, keysHere]: Direction,
  takeTurns: TakeTurns,
): Generator<Try> {
  const namings = namingsFor(home.place, place.place, endpoint);
  const oneTimes = [...home.oneTimes, ...keysHere].filter((one) => takes(endpoint, one));
  const host = sessionOf(place, HOST);
  const carriers = [SIGNED_OUT, host, ...carriersOf(world, home), ...renamedCarrier(home, place)];
  for (const carrier of carriers) {
    const attempt = { endpoint, home, place, carrier };
    const signedIn = carrier === host || carrier.name === SESSION;
    for (const naming of signedIn ? namings : takeTurns(namings)) yield { ...attempt, naming };
    if (!signedIn && carrier !== SIGNED_OUT) continue;
    if (signedIn && hasOptional(world, endpoint, home)) {
      for (const naming of takeTurns(namings)) yield { ...attempt, naming, bare: true };
    }
    for (const oneTime of oneTimes) {
      const alsoUnnamed: Naming[] = oneTime.namesNothing ? ["nothing"] : [];
      for (const naming of new Set([...takeTurns(namings), ...alsoUnnamed])) {
        const tried = { ...attempt, naming, oneTime };
        // Where it leads home it may do what it is for.
        if (oneTime.namesNothing || sideOf(world, tried) !== home.name) yield tried;
      }
    }
  }
}

const COMMON_FIELDS = ["id", "type", "provider", "client_id", "email"];

const NEW_PEOPLE = ["email", "provider", "idToken"];

export function takes(endpoint: Endpoint, oneTime: OneTime): boolean {
  const { path, fields } = endpoint;
  const { values, headers, method = endpoint.method, namesNothing, sealedFor } = oneTime;
  if (method !== endpoint.method) return false;
  if (namesNothing) return path.startsWith(`${sealedFor}/`);
  if (headers) return NEW_PEOPLE.some((name) => fields.has(name));
  return Object.keys(values).some((name) => fields.has(name) && !COMMON_FIELDS.includes(name));
}

function hasOptional(world: World, endpoint: Endpoint, side: Side): boolean {
  const own = givenFor(world, endpoint, side);
  const [whole, bare] = [false, true].map((isBare) =>
    JSON.stringify(inputFor(endpoint, side.things, own, isBare)),
  );
  return whole !== bare;
}

export function titleOf({ endpoint, home, place, naming, carrier, oneTime, bare }: Try): string {
  const credential = [carrier.name, ...(oneTime ? [oneTime.name] : [])].join(" with ");
  const request = `${endpoint.name}${bare ? " (bare)" : ""}`;
  return `${request}, ${credential} of ${home.name} at ${place.name}, named by ${naming}`;
}
