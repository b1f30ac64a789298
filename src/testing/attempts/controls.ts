import type { NotApplicable, Untried } from "../findings";
import { type Endpoint, fieldsOf } from "../instance/endpoints";
import { hasNoCallback, isSwitchedOff } from "../instance/switched-off";
import { takesAway } from "../sides/own-endpoints";
import { tellsOf } from "../sides/people";
import { isManagement, namingAtHome } from "../sides/places";
import type { OneTime, Side } from "../sides/side";
import { newTenant, type World } from "../sides/world";
import { takes } from "./attempts";
import { API_KEY, carriersOf, SESSION } from "./carriers";
import { inputFor } from "./inputs";
import {
  type Carrier,
  InputError,
  leaksIn,
  NOBODY,
  type Sent,
  send,
  type Try,
  works,
} from "./requests";

function atHome(home: Side, endpoint: Endpoint, carrier: Carrier, rest: Partial<Try> = {}): Try {
  return { endpoint, home, place: home, naming: namingAtHome(home.place), carrier, ...rest };
}

const session = (world: World, home: Side): Carrier =>
  carriersOf(world, home).find(({ name }) => name === SESSION) ?? NOBODY;

/**
 * The endpoints that do nothing when they are called correctly, with all that the kit has: what was
 * refused from the other side would have been refused anyway.
 */
export async function idleEndpoints(world: World) {
  const untried: Untried[] = [];
  const notApplicable: NotApplicable[] = [];
  const { oneOf = 1, offset = 0 } = world.options.extent ?? {};
  const taken = world.endpoints.filter((_, position) => (position + offset) % oneOf === 0);
  for (const endpoint of inOrder(taken)) {
    const { method, path } = endpoint;
    const what = `${method} ${path}`;
    const { ctx } = world.subject;
    if (isSwitchedOff(path, ctx.options, method) || hasNoCallback(path, ctx)) {
      notApplicable.push({ what, reason: "the application has not switched it on" });
      continue;
    }
    const idle = await idleAt(world, endpoint);
    if (!idle) continue;
    const reason = NOT_APPLICABLE.find(([code]) => idle.reason.includes(code))?.[1];
    if (reason) notApplicable.push({ what, reason });
    else untried.push({ what, ...idle });
  }
  return { untried, notApplicable };
}

/** What writes comes last, because what it wrote as test data is undone before. */
const inOrder = (endpoints: Endpoint[]) => {
  const rank = (one: Endpoint) => (!one.isOwn || one.method === "GET" ? 0 : takesAway(one) ? 1 : 2);
  return endpoints.toSorted((one, other) => rank(one) - rank(other));
};

const NO_BASE_URL = "no base URL";

/** Refusals that say that there is nothing of a tenant's to see, with what the kit has set up. */
const NOT_APPLICABLE: [code: string, reason: string][] = [
  [" PLATFORM_ONLY", "it works on the platform only"],
  ["has a callback of its own", "with tenants, each identity provider has its own"],
  ["MISSING_FIELD", "who comes this way cannot say what users have to say"],
  [NO_BASE_URL, "the server's own code cannot call it without `fallback` in `baseURL`"],
];

async function idleAt(world: World, endpoint: Endpoint): Promise<Idle | undefined> {
  const { path, isOwn } = endpoint;
  try {
    if (isOwn) return await unprovenOwn(world, endpoint);
    const refusal =
      isManagement(path) && !path.includes("/callback/")
        ? await refusedManagement(world, endpoint)
        : await refusalOf(world, endpoint, homeOf(world, path));
    if (refusal === undefined) return undefined;
    return {
      reason: `it does nothing at home either: ${refusal}`,
      give: `endpoints: { "${path}": { … } } with an input that it accepts`,
    };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { reason: error.message, give: `a function for "${path}" that returns an input` };
  }
}

type Idle = Omit<Untried, "what">;

/**
 * An endpoint of the application proves something if it returns or changes what belongs to the person
 * who calls it. A response that says nothing, to a made-up id, proves nothing.
 */
async function unprovenOwn(world: World, endpoint: Endpoint): Promise<Idle | undefined> {
  const home = world.sides.a;
  await world.watch.undoEffects(`${endpoint.method} ${endpoint.path}`);
  let idle: Idle | undefined;
  for (const attempt of rightCalls(world, endpoint, home)) {
    const sent = await send(world, attempt);
    const changes = await world.watch.changesOf(["a"], true);
    await world.watch.changesOfOwn("a");
    const isProven =
      changes.length > 0 ||
      world.watch.isOwnChanged ||
      leaksIn(sent, world.watch.secrets.a).length > 0;
    if (!works(sent)) {
      const refusal = `${sent.status} ${sent.code ?? sent.location ?? sent.body.slice(0, 100)}`;
      idle ??= {
        reason: `it does nothing at home either: ${refusal}`,
        give: inputTo(endpoint, sent),
      };
    } else if (isProven) {
      return undefined;
    } else if (sent.invented.length) {
      idle = {
        reason: `it was called with made-up values (${sent.invented.join(", ")}), and returned or changed nothing of the person who called it`,
        give: inputTo(endpoint, sent),
      };
    } else if (tellsNothing(endpoint, sent)) {
      idle = {
        reason: `it returned nothing: ${sent.body.slice(0, 100)}`,
        give: `${inputTo(endpoint, sent)}, or an input for the endpoint that creates what it returns`,
      };
    } else return undefined;
  }
  return idle;
}

/** The line to add. */
function inputTo({ path, method, query }: Endpoint, { invented }: Sent): string {
  const where = (name: string) =>
    path.includes(`:${name}`) ? "params" : query && name in fieldsOf(query) ? "query" : "body";
  const [first] = invented;
  const place = first ? where(first) : method === "GET" ? "query" : "body";
  const names = invented.filter((name) => where(name) === place);
  const values = names.map((name) => `${name}: …`).join(", ") || "…";
  return `endpoints: { "${path}": ({ rows, mark }) => ({ ${place}: { ${values} } }) }`;
}

/** Who reads or deletes expects something. Who writes a text of their own may be told nothing. */
const tellsNothing = (endpoint: Endpoint, { data, body, location }: Sent) =>
  (endpoint.method === "GET" || takesAway(endpoint)) && isEmpty(data ?? body) && !location;

/** Whether a response says nothing: no text, and no number but zero. */
function isEmpty(data: unknown): boolean {
  if (typeof data === "object" && data !== null) return Object.values(data).every(isEmpty);
  return typeof data === "boolean" || !data;
}

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
    if (world.sides.a.serverCall().headers) return NO_BASE_URL;
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
    const told = `${sent.status} ${sent.code ?? sent.location ?? sent.body.slice(0, 100)}`;
    if (refusal === undefined || told.includes("MISSING_FIELD")) refusal = told;
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
  const told = refused.filter(([, reason]) => !reason.includes("MISSING_FIELD"));
  return told.map(([credential, reason]) => ({
    what: `${credential} of ${home.name}`,
    reason: `it is no good at home either: ${reason}`,
    give: "an instance in which it works, or nothing: the other credentials are tried",
  }));
}

type Refused = [credential: string, reason: string];

async function refusedSessions(world: World, home: Side): Promise<Refused[]> {
  const endpoint = endpointAt(world, "/get-session");
  const refused: Refused[] = [];
  const isSession = ({ name }: Carrier) => name !== API_KEY || keysAreSessions(world);
  for (const carrier of endpoint ? carriersOf(world, home).filter(isSession) : []) {
    const sent = await send(world, atHome(home, endpoint as Endpoint, carrier));
    await world.watch.changesOf([]);
    const isGood = tellsOf(carrier.userId ?? home.main.userId, sent.body);
    // The cache is nothing without the token.
    const isRight = isGood !== (carrier.name === "cached session alone");
    if (!isRight) refused.push([carrier.name, `${sent.status} ${sent.body.slice(0, 100)}`]);
  }
  return refused;
}

/** By default, an API key is for the server's own code alone: the plugin's hook leaves it alone. */
function keysAreSessions({ subject, sides }: World): boolean {
  const { hooks } = subject.plugins.find(({ id }) => id === "api-key") ?? {};
  const headers = new Headers({ "x-api-key": sides.a.apiKey ?? "" });
  const ctx = { headers, path: "/get-session", context: subject.ctx };
  return hooks?.before?.some(({ matcher }) => matcher(ctx as never)) ?? false;
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
