import type { Leak } from "../findings";
import { tellsOf } from "../sides/people";
import { SIDES } from "../sides/places";
import type { World } from "../sides/world";
import { titleOf } from "./attempts";
import { leaksIn, NOBODY, type Sent, send, sideOf, type Try, works } from "./requests";

export interface Verdict {
  leaks: Leak[];
  /** Set where the instance broke down, which proves nothing. */
  failure?: string;
}

/** What a request did or told outside of the side that it runs on, and whether it broke down. */
export async function judge(world: World, attempt: Try, everywhere = false): Promise<Verdict> {
  const outside = SIDES.filter((side) => side !== sideOf(world, attempt));
  const sent = await send(world, attempt);
  const found = await world.watch.changesOf(outside, everywhere);
  if (everywhere) found.push(...(await world.watch.changesOfOwn(outside)));
  for (const side of outside) {
    const told = leaksIn(sent, world.watch.secrets[side]);
    if (told.length) found.push(`tells of ${side}: ${told.slice(0, 5).join(", ")}`);
  }
  if (attempt.oneTime?.isForeign && works(sent))
    found.push("it is good: it was made for another side");
  if (isElsewhere(world, attempt)) found.push(...(await otherThanNobody(world, attempt, sent)));
  const { method, path } = attempt.endpoint;
  const common = { attempt: titleOf(attempt), endpoint: `${method} ${path}` };
  const leaks = found.map((what) => ({ ...common, found: what, request: sent.request }));
  // An endpoint that names its failure has not broken down: it is better-auth's way to refuse some.
  const isNamed = sent.code !== undefined && sent.code !== "INTERNAL_SERVER_ERROR";
  if (sent.status < 500 || isNamed) return { leaks };
  return { leaks, failure: `${titleOf(attempt)}: ${sent.status} ${sent.body.slice(0, 300)}` };
}

/**
 * Whether a session, or the token of a directory, is sent to where it is none (R5): the answer has
 * to be as it is for nobody.
 */
const isElsewhere = (world: World, attempt: Try) =>
  (attempt.oneTime ? attempt.oneTime.namesNothing : attempt.carrier.side === attempt.home.name) &&
  sideOf(world, attempt) !== attempt.home.name;

/** A cached session brings along all that its answer could tell: what counts is that it does. */
const outcome = ({ status, body }: Sent, { home }: Try) =>
  `${status}${tellsOf(home.main.userId, body) ? ` with ${home.main.userId}` : ""}`;

async function otherThanNobody(world: World, attempt: Try, sent: Sent): Promise<string[]> {
  const nobody = { ...attempt, carrier: NOBODY, oneTime: undefined };
  // Hardly ever does the answer depend on how the tenant is named, so most have been asked for.
  const key = titleOf({ ...nobody, naming: "nothing" });
  const is = outcome(sent, attempt);
  if (is === world.outcomes.get(key)) return [];
  const should = outcome(await send(world, nobody), nobody);
  await world.watch.changesOf([]);
  world.outcomes.set(key, should);
  const what = attempt.oneTime ? "credential" : "session";
  return is === should ? [] : [`the ${what} counts: ${is}, but for nobody ${should}`];
}
