import { isDeepStrictEqual } from "node:util";
import { type Endpoint, endpointsOf, inputFor } from "./inputs";
import {
  type Carrier,
  carriersOf,
  hostCarrier,
  leaksIn,
  type Naming,
  NOBODY,
  namingsFor,
  send,
  sideOf,
  type Try,
} from "./requests";
import { type OneTime, SIDES, type Side } from "./sides";
import type { MatrixWorld } from "./world";

/** Every way to name the tenant with everything takes minutes; without it they take turns. */
const EVERY_NAMING = process.env.MATRIX === "full";

/**
 * Every endpoint with every credential in every direction. One-time credentials go wherever an
 * endpoint has a field for them, sent by nobody, by somebody of the other side, and by their owner.
 */
export function* attemptsIn(
  world: MatrixWorld,
  carriers: (carrier: Carrier) => boolean,
): Generator<Try> {
  const { sides, keys } = world;
  const directions: [Side, Side, OneTime[]][] = [
    [sides.a, sides.b, keys["a at b"]],
    [sides.a, sides.platform, keys["a at platform"]],
    [sides.platform, sides.a, keys["platform at a"]],
  ];
  let turn = 0;
  const takeTurns = (namings: Naming[]) =>
    EVERY_NAMING ? namings : [namings[turn++ % namings.length] ?? "nothing"];

  for (const endpoint of endpointsOf(world.instance.auth.api)) {
    for (const [home, place, keysHere] of directions) {
      const namings = namingsFor(place, endpoint);
      const oneTimes = [...home.oneTime, ...keysHere].filter((one) => takes(endpoint, one));
      const host = hostCarrier(place);
      for (const carrier of [NOBODY, host, ...carriersOf(home)].filter(carriers)) {
        const attempt = { endpoint, home, place, carrier };
        const signedIn = carrier === host || carrier.name === "session cookie";
        for (const naming of signedIn ? namings : takeTurns(namings)) yield { ...attempt, naming };
        if (!signedIn && carrier !== NOBODY) continue;
        if (signedIn && hasOptional(endpoint, home)) {
          for (const naming of takeTurns(namings)) yield { ...attempt, naming, bare: true };
        }
        for (const oneTime of oneTimes) {
          for (const naming of takeTurns(namings)) {
            const tried = { ...attempt, naming, oneTime };
            // Where it leads home it may do what it is for.
            if (sideOf(tried) !== home.name) yield tried;
          }
        }
      }
    }
  }
}

const COMMON_FIELDS = ["id", "type", "provider", "client_id"];

function takes({ fields }: Endpoint, { values }: OneTime): boolean {
  return Object.keys(values).some((name) => fields.has(name) && !COMMON_FIELDS.includes(name));
}

const hasOptional = (endpoint: Endpoint, { things }: Side) =>
  !isDeepStrictEqual(inputFor(endpoint, things), inputFor(endpoint, things, true));

/** What a request did or told outside of the side that it runs on, and whether it broke down. */
export async function problemsOf(
  { instance, watch }: MatrixWorld,
  attempt: Try,
): Promise<string[]> {
  const outside = SIDES.filter((side) => side !== sideOf(attempt));
  const sent = await send(instance, attempt);
  const problems = await watch.changesOf(outside);
  for (const side of outside) {
    const leaks = leaksIn(sent, watch.secrets[side]);
    if (leaks.length) problems.push(`tells of ${side}: ${leaks.join(", ")}`);
  }
  if (sent.status >= 500) problems.push(`${sent.status} ${sent.body}`);
  return problems.map((problem) => `${titleOf(attempt)}: ${problem}`);
}

function titleOf({ endpoint, home, place, naming, carrier, oneTime, bare }: Try): string {
  const credential = [carrier.name, ...(oneTime ? [oneTime.name] : [])].join(" with ");
  const request = `${endpoint.method} ${endpoint.path}${bare ? " (bare)" : ""}`;
  return `${request}, ${credential} of ${home.name} at ${place.name}, named by ${naming}`;
}
