import type { Leak } from "../findings";
import type { Endpoint } from "../instance/endpoints";
import { takesAway } from "../sides/own-endpoints";
import { createPerson } from "../sides/people";
import { namingAtHome } from "../sides/places";
import type { Side } from "../sides/side";
import type { World } from "../sides/world";
import { carriersOf, SESSION } from "./carriers";
import { InputError, leaksIn, NOBODY, type Sent, send, sendAgain, type Try } from "./requests";

/*
 * What takes more than one request: what tenant B is told depends on what tenant A has, what tenant A
 * orders is done inside of tenant B, or what is wrong at tenant A locks somebody out at tenant B.
 */

/** More wrong attempts than any limit lets pass. */
const WRONG = 12;

function ownCall(world: World, side: Side, endpoint: Endpoint): Try {
  const session = carriersOf(world, side).find(({ name }) => name === SESSION);
  const carrier = endpoint.isOwn ? (session ?? NOBODY) : NOBODY;
  return { endpoint, home: side, place: side, naming: namingAtHome(side.place), carrier };
}

async function quietly(world: World, side: Side, call: () => Promise<Sent>): Promise<Sent> {
  const sent = await call();
  await world.watch.changesOf([], true);
  await world.watch.changesOfOwn(side.name);
  return sent;
}

const leakOf = (endpoint: Endpoint, found: string, { request }: Sent): Leak => {
  const name = `${endpoint.method} ${endpoint.path}`;
  return { attempt: `${name} at b`, endpoint: name, found, summary: `${name} ${found}`, request };
};

/** What the application's endpoints return at B must not change when A gets another user. */
export async function influence(world: World): Promise<Leak[]> {
  const { a, b } = world.sides;
  const reads = world.endpoints.filter(({ isOwn, method }) => isOwn && method === "GET");
  const read = async (endpoint: Endpoint) => {
    const sent = await trySend(world, b, endpoint);
    return sent && { sent, text: `${sent.status} ${sent.body}` };
  };
  const before = new Map<Endpoint, string>();
  for (const endpoint of reads) {
    const [first, second] = [await read(endpoint), await read(endpoint)];
    if (first && first.text === second?.text) before.set(endpoint, first.text);
  }
  if (!before.size) return [];
  const { workshop, place } = a;
  const email = `another-${workshop.mark}@example.com`;
  const values = world.options.person ?? {};
  await createPerson(world.subject, place, { email, name: `another ${a.mark}`, values });
  const leaks: Leak[] = [];
  for (const [endpoint, text] of before) {
    const after = await sendKept(world, b, endpoint);
    if (!after || `${after.status} ${after.body}` === text) continue;
    const found = `returned something else at tenant B when tenant A had one more user: ${after.body.slice(0, 200)}, before ${text.slice(0, 200)}`;
    leaks.push(leakOf(endpoint, found, after));
  }
  await world.watch.changesOf([], true);
  await world.watch.changesOfOwn("a");
  return leaks;
}

const trySend = (world: World, side: Side, endpoint: Endpoint) =>
  quietly(world, side, () => send(world, ownCall(world, side, endpoint))).catch(ignoreInput);

/** Without putting anything back. */
const sendKept = (world: World, side: Side, endpoint: Endpoint) =>
  send(world, ownCall(world, side, endpoint)).catch(ignoreInput);

function ignoreInput(error: unknown): undefined {
  if (!(error instanceof InputError)) throw error;
}

/** What is ordered at A and done during the next request, at B, must not be done inside of B. */
export async function nextRequest(world: World): Promise<Leak[]> {
  const { a, b } = world.sides;
  const own = world.endpoints.filter(({ isOwn }) => isOwn);
  const leaks: Leak[] = [];
  for (const endpoint of own.filter((one) => one.method !== "GET" && !takesAway(one))) {
    await trySend(world, a, endpoint);
    await b.main.browser.get("/get-session");
    for (const read of own.filter(({ method }) => method === "GET")) {
      const sent = await trySend(world, a, read);
      const [told] = sent ? leaksIn(sent, world.watch.secrets.b) : [];
      if (!sent || !told) continue;
      const found = `returned data of tenant B at tenant A: ${told}, after ${endpoint.method} ${endpoint.path} at tenant A and another request at tenant B`;
      leaks.push(leakOf(read, found, sent));
    }
  }
  return leaks;
}

/** Wrong attempts at A, such as wrong passwords, must not lock out the user with that email at B. */
export async function lockOut(world: World): Promise<Leak[]> {
  if (world.subject.tenantOptions.keepEmailGloballyUnique) return [];
  const { a, b } = world.sides;
  const leaks: Leak[] = [];
  const tried = world.endpoints.filter(
    (endpoint) =>
      endpoint.path === "/sign-in/email" ||
      (endpoint.isOwn && endpoint.method === "POST" && endpoint.body && !takesAway(endpoint)),
  );
  for (const endpoint of tried) {
    const right = () => trySend(world, b, endpoint);
    const first = await right();
    const second = first && first.status < 400 ? await right() : undefined;
    // What is used up by being used is no proof.
    if (!second || first?.status !== second.status || world.watch.isOwnChanged) continue;
    const wrong = await trySend(world, a, endpoint);
    for (let turn = 0; wrong && turn < WRONG; turn++) {
      const body = withWrongTexts(wrong.request.body);
      await quietly(world, a, () => sendAgain(world, { ...wrong.request, body }));
    }
    const after = await right();
    if (!after || after.status < 400) continue;
    const found = `with wrong values at tenant A locks out the user with the same email at tenant B: ${after.status} ${after.body.slice(0, 100)}`;
    leaks.push(leakOf(endpoint, found, after));
  }
  return leaks;
}

/** The same input with a wrong password or code. Emails stay: they say whom it is about. */
function withWrongTexts(body = "{}"): string {
  const fields = Object.entries(JSON.parse(body) as Record<string, unknown>);
  const wrong = fields.map(([name, value]) => [
    name,
    typeof value === "string" && !value.includes("@") ? "wrong, wrong, wrong" : value,
  ]);
  return JSON.stringify(Object.fromEntries(wrong));
}
