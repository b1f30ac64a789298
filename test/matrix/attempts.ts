import { isDeepStrictEqual } from "node:util";
import { type Endpoint, inputFor } from "./inputs";
import {
  type Carrier,
  carriersOf,
  hostCarrier,
  leaksIn,
  type Naming,
  NOBODY,
  namingsFor,
  type Sent,
  send,
  sideOf,
  type Try,
} from "./requests";
import { type OneTime, SIDES, type Side } from "./sides";
import type { MatrixWorld } from "./world";

/** How much of the matrix is tried. */
export interface Extent {
  carriers?: (carrier: Carrier) => boolean;
  /** Every way to name the tenant with everything; without it they take turns. */
  everyNaming?: boolean;
  /** Only one attempt out of so many, and which: the endpoints take turns in what they leave out. */
  oneOf?: number;
  offset?: number;
}

type TakeTurns = (namings: Naming[]) => Naming[];

/** The attempts of an extent. */
export function* attemptsIn(world: MatrixWorld, extent: Extent): Generator<Try> {
  const { oneOf = 1, offset = 0, everyNaming } = extent;
  let nextNaming = 0;
  const takeTurns: TakeTurns = (namings) =>
    everyNaming ? namings : [namings[nextNaming++ % namings.length] ?? "nothing"];
  for (const [position, endpoint] of world.endpoints.entries()) {
    let turn = position + offset;
    for (const attempt of attemptsAt(world, endpoint, takeTurns, extent.carriers)) {
      if (turn++ % oneOf === 0) yield attempt;
    }
  }
}

/**
 * Every credential in every direction. One-time credentials go wherever an endpoint has a field
 * for them, sent by nobody, by somebody of the other side, and by their owner.
 */
function* attemptsAt(
  world: MatrixWorld,
  endpoint: Endpoint,
  takeTurns: TakeTurns,
  carriers: Extent["carriers"] = () => true,
): Generator<Try> {
  for (const [home, place, keysHere] of directionsIn(world)) {
    const namings = namingsFor(home, place, endpoint);
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

const directionsIn = ({ sides, keys }: MatrixWorld): [Side, Side, OneTime[]][] => [
  [sides.a, sides.b, keys["a at b"]],
  [sides.a, sides.platform, keys["a at platform"]],
  [sides.platform, sides.a, keys["platform at a"]],
];

const COMMON_FIELDS = ["id", "type", "provider", "client_id"];

function takes({ fields }: Endpoint, { values }: OneTime): boolean {
  return Object.keys(values).some((name) => fields.has(name) && !COMMON_FIELDS.includes(name));
}

const hasOptional = (endpoint: Endpoint, { things }: Side) =>
  !isDeepStrictEqual(inputFor(endpoint, things), inputFor(endpoint, things, true));

/** What a request did or told outside of the side that it runs on, and whether it broke down. */
export async function problemsOf(world: MatrixWorld, attempt: Try): Promise<string[]> {
  const { instance, watch } = world;
  const outside = SIDES.filter((side) => side !== sideOf(attempt));
  const sent = await send(instance, attempt);
  const problems = await watch.changesOf(outside);
  for (const side of outside) {
    const leaks = leaksIn(sent, watch.secrets[side]);
    if (leaks.length) problems.push(`tells of ${side}: ${leaks.join(", ")}`);
  }
  if (sent.status >= 500) problems.push(`${sent.status} ${sent.body}`);
  if (isElsewhere(attempt)) problems.push(...(await otherThanNobody(world, attempt, sent)));
  return problems.map((problem) => `${titleOf(attempt)}: ${problem}`);
}

/** Whether a session is sent to where it is none (R5): the answer has to be as it is for nobody. */
const isElsewhere = (attempt: Try) =>
  attempt.carrier.side === attempt.home.name &&
  sideOf(attempt) !== attempt.home.name &&
  !attempt.oneTime;

/** A cached session brings along all that its answer could tell: what counts is that it does. */
const outcome = ({ status, body }: Sent, { home }: Try) =>
  `${status}${body.includes(home.userId) ? ` with ${home.userId}` : ""}`;

async function otherThanNobody(world: MatrixWorld, attempt: Try, sent: Sent): Promise<string[]> {
  const nobody = { ...attempt, carrier: NOBODY };
  // Hardly ever does the answer depend on how the tenant is named, so most have been asked for.
  const key = titleOf({ ...nobody, naming: "nothing" });
  const is = outcome(sent, attempt);
  if (is === world.outcomes.get(key)) return [];
  const should = outcome(await send(world.instance, nobody), nobody);
  await world.watch.changesOf([]);
  world.outcomes.set(key, should);
  return is === should ? [] : [`${is}, but for nobody ${should}`];
}

function titleOf({ endpoint, home, place, naming, carrier, oneTime, bare }: Try): string {
  const credential = [carrier.name, ...(oneTime ? [oneTime.name] : [])].join(" with ");
  const request = `${endpoint.method} ${endpoint.path}${bare ? " (bare)" : ""}`;
  return `${request}, ${credential} of ${home.name} at ${place.name}, named by ${naming}`;
}
