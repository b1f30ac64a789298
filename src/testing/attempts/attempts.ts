import { isDeepStrictEqual } from "../data/texts";
import type { Endpoint } from "../instance/endpoints";
import type { Extent } from "../options";
import { type Naming, namingsFor } from "../sides/places";
import type { OneTime, Side } from "../sides/side";
import type { World } from "../sides/world";
import { carriersOf, hostCarrier, renamedCarrier, SESSION } from "./carriers";
import { inputFor } from "./inputs";
import { givenFor, NOBODY, sideOf, type Try } from "./requests";

type TakeTurns = (namings: Naming[]) => Naming[];

/** The attempts of an extent, endpoint by endpoint. */
export function* attemptsIn(world: World, extent: Extent): Generator<[Endpoint, Try[]]> {
  const { oneOf = 1, offset = 0, everyNaming } = extent;
  let nextNaming = 0;
  const takeTurns: TakeTurns = (namings) =>
    everyNaming ? namings : [namings[nextNaming++ % namings.length] ?? "nothing"];
  for (const [position, endpoint] of world.endpoints.entries()) {
    const all = directionsIn(world).flatMap((direction) => [
      ...attemptsAt(world, endpoint, direction, takeTurns),
    ]);
    yield [endpoint, all.filter((_, turn) => (turn + position + offset) % oneOf === 0)];
  }
}

/**
 * Every credential in one direction. One-time credentials go wherever an endpoint has a field for
 * them, sent by nobody, by somebody of the other side, and by their owner.
 */
function* attemptsAt(
  world: World,
  endpoint: Endpoint,
  [home, place, keysHere]: Direction,
  takeTurns: TakeTurns,
): Generator<Try> {
  const namings = namingsFor(home.place, place.place, endpoint);
  const oneTimes = [...home.oneTimes, ...keysHere].filter((one) => takes(endpoint, one));
  const host = hostCarrier(place);
  const carriers = [NOBODY, host, ...carriersOf(world, home), ...renamedCarrier(home, place)];
  for (const carrier of carriers) {
    const attempt = { endpoint, home, place, carrier };
    const signedIn = carrier === host || carrier.name === SESSION;
    for (const naming of signedIn ? namings : takeTurns(namings)) yield { ...attempt, naming };
    if (!signedIn && carrier !== NOBODY) continue;
    if (signedIn && hasOptional(world, endpoint, home)) {
      for (const naming of takeTurns(namings)) yield { ...attempt, naming, bare: true };
    }
    for (const oneTime of oneTimes) {
      for (const naming of new Set([...takeTurns(namings), ...namingsOf(oneTime)])) {
        const tried = { ...attempt, naming, oneTime };
        // Where it leads home it may do what it is for.
        if (oneTime.namesNothing || sideOf(world, tried) !== home.name) yield tried;
      }
    }
  }
}

const namingsOf = ({ namesNothing }: OneTime): Naming[] => (namesNothing ? ["nothing"] : []);

type Direction = [home: Side, place: Side, keysHere: OneTime[]];

const directionsIn = ({ sides, keys }: World): Direction[] => [
  [sides.a, sides.b, keys.atB],
  [sides.a, sides.platform, keys.atPlatform],
  [sides.platform, sides.a, keys.atA],
];

const COMMON_FIELDS = ["id", "type", "provider", "client_id", "email"];

/** Fields that say who somebody new is. */
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
  const whole = inputFor(endpoint, side.things, own);
  return !isDeepStrictEqual(whole, inputFor(endpoint, side.things, own, true));
}

export function titleOf({ endpoint, home, place, naming, carrier, oneTime, bare }: Try): string {
  const credential = [carrier.name, ...(oneTime ? [oneTime.name] : [])].join(" with ");
  const request = `${endpoint.method} ${endpoint.path}${bare ? " (bare)" : ""}`;
  return `${request}, ${credential} of ${home.name} at ${place.name}, named by ${naming}`;
}
