import { createLeak, nameOf } from "../data/words";
import type { Repeatable } from "../findings";
import { tokensOf } from "../sides/own-endpoints";
import { tellsOf } from "../sides/people";
import { SIDES, type SideName } from "../sides/places";
import type { World } from "../sides/world";
import { titleOf } from "./attempts";
import { HOST, SIGNED_OUT } from "./carriers";
import { type Sent, send, sendAgain, sideOf, type Try, toldOf, works } from "./requests";

/** What a request did or told outside of the side that it runs on, and whether it failed. */
export async function judge(world: World, attempt: Try, everywhere = false) {
  const { watch } = world;
  const { isOwn, name } = attempt.endpoint;
  const here = sideOf(world, attempt);
  const outside = SIDES.filter((side) => side !== here);
  const sent = await send(world, attempt);
  const found = [
    // The application's endpoints may write past the adapter.
    ...(await watch.changesOf(outside, everywhere || isOwn, sent.known)),
    ...(await watch.changesOfOwn(here, sent.known, isOwn)),
    ...toldOf(world, sent, outside),
  ];
  if (attempt.oneTime?.isForeign && works(sent))
    found.push("it is valid, although it was made for another side");
  if (isElsewhere(world, attempt)) found.push(...(await otherThanSignedOut(world, attempt, sent)));
  if (!found.length) found.push(...(await otherThanMissing(world, attempt, sent, outside)));
  const title = titleOf(attempt);
  const rest = { attempt: title, who: whoSends(attempt), endpoint: name, request: sent.request };
  const leaks = found.map((what) => createLeak(watch, { ...rest, found: what }));
  // A failure with a code of its own is better-auth's way to refuse some requests.
  const isNamed = sent.code !== undefined && sent.code !== "INTERNAL_SERVER_ERROR";
  if (sent.status < 500 || isNamed) return { leaks };
  return { leaks, failure: `${title}: ${sent.status} ${sent.text.slice(0, 300)}` };
}

/** The sender of a request, in words: "signed in at tenant A". */
function whoSends({ carrier, oneTime, home, place, naming }: Try): string {
  const who = carrier.side
    ? `signed in at ${nameOf(carrier.side)}`
    : carrier === SIGNED_OUT
      ? "not signed in"
      : `with ${carrier.name} of ${nameOf(home.name)}`;
  const what = oneTime ? ` with a ${oneTime.name} of ${nameOf(home.name)}` : "";
  const where = naming === "nothing" ? "" : ` in a request to ${nameOf(place.name)}`;
  return who + what + where;
}

/** Whether a credential is sent where it is not valid (R5): it must not change the response. */
const isElsewhere = (world: World, attempt: Try) =>
  (attempt.oneTime ? attempt.oneTime.namesNothing : attempt.carrier.side === attempt.home.name) &&
  sideOf(world, attempt) !== attempt.home.name;

/** A cached session contains all that its response could tell: what counts is that it does. */
const outcome = ({ status, text }: Sent, { home }: Try) =>
  `${status}${tellsOf(home.main.userId, text) ? ` with ${home.main.userId}` : ""}`;

async function otherThanSignedOut(world: World, attempt: Try, sent: Sent): Promise<string[]> {
  const signedOut = { ...attempt, carrier: SIGNED_OUT, oneTime: undefined };
  // The response hardly ever depends on how the tenant is named, so most are known.
  const key = titleOf({ ...signedOut, naming: "nothing" });
  const is = outcome(sent, attempt);
  if (is === world.outcomes.get(key)) return [];
  const should = outcome(await send(world, signedOut), signedOut);
  await world.watch.ignoreChanges(sideOf(world, signedOut), false);
  world.outcomes.set(key, should);
  const what = attempt.oneTime ? "credential" : "session";
  return is === should ? [] : [`the ${what} counts: ${is}, but for nobody ${should}`];
}

/** An id of another tenant must get the same response as an id that does not exist. */
async function otherThanMissing(
  world: World,
  attempt: Try,
  sent: Sent,
  outside: SideName[],
): Promise<string[]> {
  const { endpoint, carrier, oneTime } = attempt;
  if (!endpoint.isOwn || !(carrier.name === HOST || carrier === SIGNED_OUT) || oneTime) return [];
  const { watch, sides } = world;
  const ofOthers = outside.flatMap((side) => [...watch.secrets[side], ...tokensOf(sides[side])]);
  const ids = [...new Set(idsIn(sent.request, ofOthers))];
  if (!ids.length) return [];
  const again = async (request: Repeatable) => {
    const answer = await sendAgain(world, request);
    await watch.ignoreChanges(sideOf(world, attempt));
    return answer;
  };
  const blurred = ({ status, text }: Sent) => {
    const hidden = [...ids, ...ids.map(otherId)];
    return `${status} ${hidden.reduce((rest, id) => rest.replaceAll(id, "…"), text)}`;
  };
  const is = blurred(await again(sent.request));
  // A response that is another one each time, with an id or a time in it, says nothing.
  if (is !== blurred(sent)) return [];
  const should = blurred(await again(withOtherIds(sent.request, ids)));
  return is === should ? [] : [`says whether it exists: ${is}, but for an unknown id ${should}`];
}

/** A text of the same form that stands for nothing: letters and digits one further. */
function otherId(id: string): string {
  // The beginning of a UUID says which kind it is.
  const kept = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-/i.exec(id)?.[0] ?? "";
  const rest = id.slice(kept.length);
  return kept + rest.replaceAll(/[a-zA-Z0-9]/g, next);
}

// In a UUID, letters stay below "g".
const CIRCLES = "0123456789 abcdef ghijklmnopqrstuvwxyz ABCDEF GHIJKLMNOPQRSTUVWXYZ".split(" ");

function next(character: string): string {
  const circle = CIRCLES.find((characters) => characters.includes(character)) ?? character;
  return circle[(circle.indexOf(character) + 1) % circle.length] ?? character;
}

/** The ids that a request says, of those given: texts without spaces, and no emails. */
const idsIn = ({ url, body = "" }: Repeatable, texts: string[]) => {
  const said = `${decodeURIComponent(url)} ${body}`;
  return texts.filter((text) => /^[\w.-]+$/.test(text) && said.includes(text));
};

function withOtherIds({ url, body, ...rest }: Repeatable, ids: string[]): Repeatable {
  const replace = (text: string) =>
    ids.reduce((changed, id) => changed.replaceAll(id, otherId(id)), text);
  return { ...rest, url: replace(url), ...(body !== undefined && { body: replace(body) }) };
}
