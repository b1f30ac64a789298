import type { Untried } from "../findings";
import type { Endpoint } from "../instance/endpoints";
import { hasNoCallback, isSwitchedOff } from "../instance/switched-off";
import { tellsOf } from "../sides/people";
import { isManagement, namingAtHome } from "../sides/places";
import type { OneTime, Side } from "../sides/side";
import { newTenant, type World } from "../sides/world";
import { takes } from "./attempts";
import { carriersOf, SESSION } from "./carriers";
import { inputFor } from "./inputs";
import { type Carrier, NOBODY, type Sent, send, type Try, works } from "./requests";

function atHome(home: Side, endpoint: Endpoint, carrier: Carrier, rest: Partial<Try> = {}): Try {
  return { endpoint, home, place: home, naming: namingAtHome(home.place), carrier, ...rest };
}

const session = (world: World, home: Side): Carrier =>
  carriersOf(world, home).find(({ name }) => name === SESSION) ?? NOBODY;

/**
 * The endpoints that do nothing when they are called rightly, with all that the kit has: what was
 * refused from the other side would have been refused anyway.
 */
export async function idleEndpoints(world: World): Promise<Untried[]> {
  const idle: Untried[] = [];
  const { oneOf = 1, offset = 0 } = world.options.extent ?? {};
  for (const [position, endpoint] of world.endpoints.entries()) {
    if ((position + offset) % oneOf !== 0) continue;
    const { method, path } = endpoint;
    const { ctx } = world.subject;
    if (isSwitchedOff(path, ctx.options, method) || hasNoCallback(path, ctx)) continue;
    const refusal =
      isManagement(path) && !path.includes("/callback/")
        ? await refusedManagement(world, endpoint)
        : await refusalOf(world, endpoint, homeOf(world, path));
    if (refusal === undefined || isPlatformOnly(refusal)) continue;
    idle.push({
      what: `${method} ${path}`,
      reason: `it does nothing at home either: ${refusal}`,
      give: `endpoints: { "${path}": { … } } with an input that it accepts`,
    });
  }
  return idle;
}

/** Refused in every tenant: there is nothing of a tenant's that such an endpoint tells or changes. */
const isPlatformOnly = (refusal: string) => refusal.endsWith(" PLATFORM_ONLY");

/** better-auth's own callback is the platform's. */
const homeOf = ({ sides }: World, path: string) =>
  path === "/callback/:id" ? sides.platform : sides.a;

/** Management is for operators, whoever they are: calls of the server's own code are trusted. */
async function refusedManagement(world: World, endpoint: Endpoint): Promise<string | undefined> {
  const { api } = world.subject;
  const call = Object.values(api).find((entry) => "path" in entry && entry.path === endpoint.path);
  const things = { ...world.sides.a.things };
  if (endpoint.path === "/tenant/delete") things.tenantId = await tenantToDelete(world);
  const { body, query } = inputFor(endpoint, things);
  try {
    await call?.(endpoint.method === "GET" ? { query } : { body });
    return undefined;
  } catch (error) {
    const { status, body } = error as { status?: string; body?: { code?: string } };
    return `${status ?? error} ${body?.code ?? ""}`;
  } finally {
    await world.watch.changesOf([]);
  }
}

/** The plugin remembers for a while that a tenant is gone, so it is not one of the two. */
async function tenantToDelete({ subject, sides }: World): Promise<string> {
  return (await newTenant(subject, `${sides.a.workshop.mark}-c`)).id;
}

async function refusalOf(
  world: World,
  endpoint: Endpoint,
  home: Side,
): Promise<string | undefined> {
  let refusal: string | undefined;
  for (const attempt of rightCalls(world, endpoint, home)) {
    const sent = await send(world, attempt);
    await world.watch.changesOf([]);
    // An application may send people from better-auth's error page to its own, with the error.
    if (works(sent) || (endpoint.path === "/error" && sent.status < 400)) return undefined;
    refusal ??= `${sent.status} ${sent.code ?? sent.location ?? sent.body.slice(0, 100)}`;
  }
  return refusal;
}

function* rightCalls(world: World, endpoint: Endpoint, home: Side): Generator<Try> {
  const signedIn = session(world, home);
  yield atHome(home, endpoint, signedIn);
  yield atHome(home, endpoint, NOBODY);
  for (const oneTime of home.oneTimes.filter((one) => takes(endpoint, one))) {
    yield atHome(home, endpoint, oneTime.homeNeedsSession ? signedIn : NOBODY, { oneTime });
  }
  yield atHome(home, endpoint, signedIn, { bare: true });
  for (const carrier of carriersOf(world, home)) yield atHome(home, endpoint, carrier);
  const second: Carrier = {
    name: "the second person",
    side: home.name,
    cookies: home.second.browser.cookies,
  };
  yield atHome(home, endpoint, second);
}

/** The credentials that do not work at home, where every one of them should. */
export async function idleCredentials(world: World, home: Side): Promise<Untried[]> {
  const refused = [
    ...(await refusedSessions(world, home)),
    ...(await refusedCaches(world, home)),
    ...(await refusedOneTimes(world, home)),
  ];
  return refused.map(([credential, reason]) => ({
    what: `${credential} of ${home.name}`,
    reason: `it is no good at home either: ${reason}`,
    give: "an instance in which it works, or nothing: the other credentials are tried",
  }));
}

type Refused = [credential: string, reason: string];

async function refusedSessions(world: World, home: Side): Promise<Refused[]> {
  const endpoint = endpointAt(world, "/get-session");
  const refused: Refused[] = [];
  for (const carrier of endpoint ? carriersOf(world, home) : []) {
    const sent = await send(world, atHome(home, endpoint as Endpoint, carrier));
    await world.watch.changesOf([]);
    const isGood = tellsOf(carrier.userId ?? home.main.userId, sent.body);
    // The cache is nothing without the token.
    const isRight = isGood !== (carrier.name === "cached session alone");
    if (!isRight) refused.push([carrier.name, `${sent.status} ${sent.body.slice(0, 100)}`]);
  }
  return refused;
}

/** A cached session speaks for itself: it is good without the one that it was made from. */
async function refusedCaches(world: World, home: Side): Promise<Refused[]> {
  const endpoint = endpointAt(world, "/get-session");
  const carrier = carriersOf(world, home).find(({ name }) => name === "cached session cookie");
  if (!endpoint || !carrier) return [];
  await world.watch.forgetSessions([home.main.token]);
  const sent = await send(world, atHome(home, endpoint, carrier));
  await world.watch.changesOf([]);
  if (tellsOf(home.main.userId, sent.body)) return [];
  return [[carrier.name, "the cache is not looked at"]];
}

async function refusedOneTimes(world: World, home: Side): Promise<Refused[]> {
  const refused: Refused[] = [];
  for (const oneTime of home.oneTimes) {
    const endpoint = endpointAt(world, oneTime.home, oneTime.method);
    if (!endpoint) continue;
    const sent = await send(world, homeCall(world, home, endpoint, oneTime));
    await world.watch.changesOf([]);
    const isGood = works(sent) && !isNoSession(oneTime, sent);
    if (isGood !== Boolean(oneTime.needsSeal)) continue;
    refused.push([oneTime.name, `${sent.status} ${sent.location ?? sent.body.slice(0, 100)}`]);
  }
  return refused;
}

function homeCall(world: World, home: Side, endpoint: Endpoint, oneTime: OneTime): Try {
  const carrier = oneTime.homeNeedsSession ? session(world, home) : NOBODY;
  return atHome(home, endpoint, carrier, { oneTime });
}

/** An id token has to sign somebody in, not just to start another flow. */
const isNoSession = ({ values }: OneTime, { body }: Sent) =>
  "idToken" in values && !body.includes('"token"');

const endpointAt = ({ endpoints }: World, path: string, method?: string) =>
  endpoints.find(
    (endpoint) => endpoint.path === path && (method === undefined || endpoint.method === method),
  );
