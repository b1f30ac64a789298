import type { Leak } from "../findings";
import type { Endpoint } from "../instance/endpoints";
import { takesAway } from "../sides/own-endpoints";
import { createPerson } from "../sides/people";
import type { Side } from "../sides/side";
import type { World } from "../sides/world";
import { SIGNED_OUT, sessionOf } from "./carriers";
import { atHome } from "./controls";
import { ignoreInputError, leaksIn, type Sent, send, sendAgain } from "./requests";

/* Holes that one request does not show. */

/** More wrong attempts than any limit allows. */
const WRONG = 12;

const sendKept = (world: World, side: Side, endpoint: Endpoint) => {
  const carrier = endpoint.isOwn ? sessionOf(side) : SIGNED_OUT;
  return send(world, atHome(side, endpoint, carrier)).catch(ignoreInputError);
};

async function sendAndUndo(world: World, side: Side, endpoint: Endpoint) {
  const sent = await sendKept(world, side, endpoint);
  if (sent) await world.watch.ignoreChanges(side.name);
  return sent;
}

const leakOf = ({ name }: Endpoint, found: string, { request }: Sent): Leak => {
  return { attempt: `${name} at b`, endpoint: name, found, summary: `${name} ${found}`, request };
};

/** What the application's endpoints return at B must not change when A gets another user. */
export async function influence(world: World): Promise<Leak[]> {
  const { a, b } = world.sides;
  const shown = (sent: Sent | undefined) => sent && `${sent.status} ${sent.text}`;
  const before = new Map<Endpoint, string>();
  for (const endpoint of world.endpoints) {
    if (!endpoint.isOwn || endpoint.method !== "GET") continue;
    const first = shown(await sendAndUndo(world, b, endpoint));
    const second = shown(await sendAndUndo(world, b, endpoint));
    if (first && first === second) before.set(endpoint, first);
  }
  if (!before.size) return [];
  const email = `another-${a.workshop.mark}@example.com`;
  const values = world.options.person ?? {};
  await createPerson(world.subject, a.place, { email, name: `another ${a.mark}`, values });
  const leaks: Leak[] = [];
  for (const [endpoint, text] of before) {
    const after = await sendKept(world, b, endpoint);
    if (!after || shown(after) === text) continue;
    const found = `returned something else at tenant B when tenant A had one more user: ${after.text.slice(0, 200)}, before ${text.slice(0, 200)}`;
    leaks.push(leakOf(endpoint, found, after));
  }
  await world.watch.ignoreChanges("a");
  return leaks;
}

/** What is ordered at A and done during the next request, at B, must not be done inside of B. */
export async function nextRequest(world: World): Promise<Leak[]> {
  const { a, b } = world.sides;
  const own = world.endpoints.filter(({ isOwn }) => isOwn);
  const leaks: Leak[] = [];
  for (const endpoint of own.filter((one) => one.method !== "GET" && !takesAway(one))) {
    await sendAndUndo(world, a, endpoint);
    await b.main.browser.get("/get-session");
    for (const read of own.filter(({ method }) => method === "GET")) {
      const sent = await sendAndUndo(world, a, read);
      const [told] = sent ? leaksIn(sent, world.watch.secrets.b) : [];
      if (!sent || !told) continue;
      const found = `returned data of tenant B at tenant A: ${told}, after ${endpoint.name} at tenant A and another request at tenant B`;
      leaks.push(leakOf(read, found, sent));
    }
  }
  return leaks;
}

/** Wrong attempts at A, such as wrong passwords, must not lock out the user with that email at B. */
export async function lockOut(world: World): Promise<Leak[]> {
  const { subject, sides, watch } = world;
  if (subject.tenantOptions.keepEmailGloballyUnique) return [];
  const { a, b } = sides;
  const leaks: Leak[] = [];
  const tried = world.endpoints.filter(
    (endpoint) =>
      endpoint.path === "/sign-in/email" ||
      (endpoint.isOwn && endpoint.method === "POST" && endpoint.body && !takesAway(endpoint)),
  );
  for (const endpoint of tried) {
    const right = () => sendAndUndo(world, b, endpoint);
    const first = await right();
    const second = first && first.status < 400 ? await right() : undefined;
    // An input that works only once proves nothing.
    if (!second || first?.status !== second.status || watch.isOwnChanged) continue;
    const wrong = await sendAndUndo(world, a, endpoint);
    for (let turn = 0; wrong && turn < WRONG; turn++) {
      const body = withWrongTexts(wrong.request.body);
      await sendAgain(world, { ...wrong.request, body });
      await watch.ignoreChanges("a");
    }
    const after = await right();
    if (!after || after.status < 400) continue;
    const found = `with wrong values at tenant A locks out the user with the same email at tenant B: ${after.status} ${after.text.slice(0, 100)}`;
    leaks.push(leakOf(endpoint, found, after));
  }
  return leaks;
}

/** The same input with a wrong password or code. Emails stay: they name the user. */
function withWrongTexts(body = "{}"): string {
  return JSON.stringify(JSON.parse(body), (_, value) =>
    typeof value === "string" && !value.includes("@") ? "wrong, wrong, wrong" : value,
  );
}
