import { inWords, nameOf } from "../data/words";
import type { Leak, Repeatable } from "../findings";
import { tokensOf } from "../sides/own-endpoints";
import { tellsOf } from "../sides/people";
import { SIDES, type SideName } from "../sides/places";
import type { World } from "../sides/world";
import { titleOf } from "./attempts";
import { HOST } from "./carriers";
import { idsIn, otherId, withOtherIds } from "./other-ids";
import { leaksIn, NOBODY, type Sent, send, sendAgain, sideOf, type Try, works } from "./requests";

export interface Verdict {
  leaks: Leak[];
  /** Set where the instance failed, which proves nothing. */
  failure?: string;
}

/** What a request did or told outside of the side that it runs on, and whether it failed. */
export async function judge(world: World, attempt: Try, everywhere = false): Promise<Verdict> {
  const { watch } = world;
  const { endpoint } = attempt;
  const here = sideOf(world, attempt);
  const outside = SIDES.filter((side) => side !== here);
  const sent = await send(world, attempt);
  // The application's endpoints may write past the adapter.
  const isThorough = everywhere || endpoint.isOwn;
  const found = [
    ...(await watch.changesOf(outside, isThorough, sent.known)),
    ...(await watch.changesOfOwn(here, sent.known, endpoint.isOwn)),
  ];
  for (const side of outside) {
    const told = leaksIn(sent, watch.secrets[side]);
    if (told.length) found.push(`tells of ${side}: ${told.slice(0, 5).join(", ")}`);
  }
  if (attempt.oneTime?.isForeign && works(sent))
    found.push("it is good: it was made for another side");
  if (isElsewhere(world, attempt)) found.push(...(await otherThanNobody(world, attempt, sent)));
  if (!found.length) found.push(...(await otherThanMissing(world, attempt, sent, outside)));
  const leaks = found.map((what) => leakOf(world, attempt, what, sent));
  // An endpoint that names its failure has not failed: it is better-auth's way to refuse some.
  const isNamed = sent.code !== undefined && sent.code !== "INTERNAL_SERVER_ERROR";
  if (sent.status < 500 || isNamed) return { leaks };
  return { leaks, failure: `${titleOf(attempt)}: ${sent.status} ${sent.body.slice(0, 300)}` };
}

function leakOf(world: World, attempt: Try, found: string, { request }: Sent): Leak {
  const endpoint = `${attempt.endpoint.method} ${attempt.endpoint.path}`;
  const summary = `${whoSends(attempt)}, ${endpoint} ${inWords(world.watch, found)}`;
  return { attempt: titleOf(attempt), endpoint, found, summary, request };
}

/** Who sent a request, in words: "signed in at tenant A". */
function whoSends({ carrier, oneTime, home, place, naming }: Try): string {
  const who = carrier.side
    ? `signed in at ${nameOf(carrier.side)}`
    : carrier === NOBODY
      ? "not signed in"
      : `with ${carrier.name} of ${nameOf(home.name)}`;
  const what = oneTime ? ` with a ${oneTime.name} of ${nameOf(home.name)}` : "";
  const where = naming === "nothing" ? "" : ` in a request to ${nameOf(place.name)}`;
  return who + what + where;
}

/**
 * Whether a session, or the token of a directory, is sent to where it is none (R5): the response has
 * to be as it is for nobody.
 */
const isElsewhere = (world: World, attempt: Try) =>
  (attempt.oneTime ? attempt.oneTime.namesNothing : attempt.carrier.side === attempt.home.name) &&
  sideOf(world, attempt) !== attempt.home.name;

/** A cached session brings along all that its response could tell: what counts is that it does. */
const outcome = ({ status, body }: Sent, { home }: Try) =>
  `${status}${tellsOf(home.main.userId, body) ? ` with ${home.main.userId}` : ""}`;

async function otherThanNobody(world: World, attempt: Try, sent: Sent): Promise<string[]> {
  const nobody = { ...attempt, carrier: NOBODY, oneTime: undefined };
  // Hardly ever does the response depend on how the tenant is named, so most have been asked for.
  const key = titleOf({ ...nobody, naming: "nothing" });
  const is = outcome(sent, attempt);
  if (is === world.outcomes.get(key)) return [];
  const should = outcome(await send(world, nobody), nobody);
  await world.watch.changesOf([]);
  await world.watch.changesOfOwn(sideOf(world, nobody));
  world.outcomes.set(key, should);
  const what = attempt.oneTime ? "credential" : "session";
  return is === should ? [] : [`the ${what} counts: ${is}, but for nobody ${should}`];
}

/**
 * The application's endpoints must respond to the id of something in another tenant as they do to an
 * id that does not exist.
 */
async function otherThanMissing(
  world: World,
  attempt: Try,
  sent: Sent,
  outside: SideName[],
): Promise<string[]> {
  const { endpoint, carrier, oneTime } = attempt;
  if (!endpoint.isOwn || !(carrier.name === HOST || carrier === NOBODY) || oneTime) return [];
  const { watch, sides } = world;
  const ofOthers = outside.flatMap((side) => [...watch.secrets[side], ...tokensOf(sides[side])]);
  const ids = [...new Set(idsIn(sent.request, ofOthers))];
  if (!ids.length) return [];
  const again = async (request: Repeatable) => {
    const answer = await sendAgain(world, request);
    await world.watch.changesOf([], true);
    await world.watch.changesOfOwn(sideOf(world, attempt));
    return answer;
  };
  const blurred = ({ status, body }: Sent) => {
    const texts = [...ids, ...ids.map(otherId)];
    return `${status} ${texts.reduce((text, id) => text.replaceAll(id, "…"), body)}`;
  };
  const is = blurred(await again(sent.request));
  // A response that is another one each time, with an id or a time in it, says nothing.
  if (is !== blurred(sent)) return [];
  const should = blurred(await again(withOtherIds(sent.request, ids)));
  return is === should ? [] : [`says whether it exists: ${is}, but for an unknown id ${should}`];
}
