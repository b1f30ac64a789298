import type { NotApplicable, Untried } from "../findings";
import { type Endpoint, fieldsOf } from "../instance/endpoints";
import { hasNoCallback, isSwitchedOff } from "../instance/switched-off";
import { takesAway } from "../sides/own-endpoints";
import { tellsOf } from "../sides/people";
import { isManagement, namingAtHome } from "../sides/places";
import type { OneTime, Side } from "../sides/side";
import { newTenant, type World } from "../sides/world";
import { takes } from "./attempts";
import { API_KEY, CACHE_ALONE, CACHED, carriersOf, SIGNED_OUT, sessionOf } from "./carriers";
import { inputFor } from "./inputs";
import { type Carrier, InputError, leaksIn, type Sent, send, type Try, works } from "./requests";

export function atHome(home: Side, endpoint: Endpoint, carrier: Carrier, oneTime?: OneTime): Try {
  return { endpoint, home, place: home, naming: namingAtHome(home.place), carrier, oneTime };
}

const oneTimeAtHome = (home: Side, endpoint: Endpoint, oneTime: OneTime) =>
  atHome(home, endpoint, oneTime.homeNeedsSession ? sessionOf(home) : SIGNED_OUT, oneTime);

async function sendAndUndo(world: World, attempt: Try): Promise<Sent> {
  const sent = await send(world, attempt);
  await world.watch.changesOf([]);
  return sent;
}

const refusalIn = ({ status, code, location, text }: Sent) =>
  `${status} ${code ?? location ?? text.slice(0, 100)}`;

/** Endpoints that do nothing if called correctly: their refusals elsewhere prove nothing. */
export async function idleEndpoints(world: World) {
  const untried: Untried[] = [];
  const notApplicable: NotApplicable[] = [];
  const { ctx } = world.subject;
  const { oneOf = 1, offset = 0 } = world.options.extent ?? {};
  const taken = world.endpoints.filter((_, position) => (position + offset) % oneOf === 0);
  for (const endpoint of combineBeforeHooks(taken)) {
    const { name: what, method, path } = endpoint;
    const isOff = isSwitchedOff(path, ctx.options, method) || hasNoCallback(path, ctx);
    const idle = isOff ? undefined : await idleAt(world, endpoint);
    const reason = isOff
      ? "the application has not switched it on"
      : NOT_APPLICABLE.find(([code]) => idle?.reason.includes(code))?.[1];
    if (reason) notApplicable.push({ what, reason });
    else if (idle) untried.push({ what, ...idle });
  }
  return { untried, notApplicable };
}

/** Endpoints that write come last, because what they wrote as test data is undone before. */
const combineBeforeHooks = (endpoints: Endpoint[]) => {
  const rank = (one: Endpoint) => (!one.isOwn || one.method === "GET" ? 0 : takesAway(one) ? 1 : 2);
  return endpoints.toSorted((one, other) => rank(one) - rank(other));
};

const NO_BASE_URL = "no base URL";

/** Refusals that say that there is nothing of a tenant's to see, with what the kit has set up. */
const NOT_APPLICABLE: [code: string, reason: string][] = [
  [" PLATFORM_ONLY", "it works on the platform only"],
  ["has a callback of its own", "with tenants, each identity provider has its own"],
  ["MISSING_FIELD", "with this sign-in method, users cannot provide the required fields"],
  [NO_BASE_URL, "the server's own code cannot call it without `fallback` in `baseURL`"],
];

type Idle = Omit<Untried, "what">;

const AT_HOME = "it does nothing at home either";

async function idleAt(world: World, endpoint: Endpoint): Promise<Idle | undefined> {
  const { path, isOwn } = endpoint;
  const { a, platform } = world.sides;
  try {
    if (isOwn) return await unprovenOwn(world, endpoint);
    // better-auth's own callback is the platform's.
    const refusal =
      isManagement(path) && !path.includes("/callback/")
        ? await refusedManagement(world, endpoint)
        : await refusalOf(world, endpoint, path === "/callback/:id" ? platform : a);
    const give = `endpoints: { "${path}": { … } } with an input that it accepts`;
    return refusal === undefined ? undefined : { reason: `${AT_HOME}: ${refusal}`, give };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { reason: error.message, give: `a function for "${path}" that returns an input` };
  }
}

/** Why an endpoint proves nothing: it has to return or change something of its caller. */
async function unprovenOwn(world: World, endpoint: Endpoint): Promise<Idle | undefined> {
  const { watch, sides } = world;
  await watch.undoEffects(endpoint.name);
  let idle: Idle | undefined;
  for (const attempt of rightCalls(world, endpoint, sides.a)) {
    const sent = await send(world, attempt);
    const changes = await watch.changesOf(["a"], true);
    await watch.changesOfOwn("a");
    const isProven = changes.length || watch.isOwnChanged || leaksIn(sent, watch.secrets.a).length;
    const { invented, text } = sent;
    const give = inputTo(endpoint, sent);
    if (!works(sent)) {
      idle ??= { reason: `${AT_HOME}: ${refusalIn(sent)}`, give };
    } else if (isProven || !(invented.length || tellsNothing(endpoint, sent))) {
      return undefined;
    } else {
      const reason = invented.length
        ? `it was called with made-up values (${invented.join(", ")}), and returned or changed nothing of the user who called it`
        : `it returned nothing: ${text.slice(0, 100)}`;
      const orElse = ", or an input for the endpoint that creates what it returns";
      idle = { reason, give: invented.length ? give : give + orElse };
    }
  }
  return idle;
}

function inputTo({ path, method, query }: Endpoint, { invented }: Sent): string {
  const where = (name: string) =>
    path.includes(`:${name}`) ? "params" : query && name in fieldsOf(query) ? "query" : "body";
  const [first] = invented;
  const place = first ? where(first) : method === "GET" ? "query" : "body";
  const names = invented.filter((name) => where(name) === place);
  const values = names.map((name) => `${name}: …`).join(", ") || "…";
  return `endpoints: { "${path}": ({ rows, mark }) => ({ ${place}: { ${values} } }) }`;
}

/** Reads and deletions should return something. An endpoint that stores a text may return nothing. */
const tellsNothing = (endpoint: Endpoint, { data, text, location }: Sent) =>
  (endpoint.method === "GET" || takesAway(endpoint)) && isEmpty(data ?? text) && !location;

/** Whether a response says nothing: no text, and no number but zero. */
function isEmpty(data: unknown): boolean {
  if (typeof data === "object" && data !== null) return Object.values(data).every(isEmpty);
  return typeof data === "boolean" || !data;
}

/** Management is for operators, but calls of the server's own code are trusted. */
async function refusedManagement(world: World, endpoint: Endpoint): Promise<string | undefined> {
  const { subject, sides, watch } = world;
  const call = Object.values(subject.api).find(
    (one) => "path" in one && one.path === endpoint.path,
  );
  const things = { ...sides.a.things };
  if (endpoint.path === "/tenant/delete") {
    // The plugin remembers for a while that a tenant is gone, so it is not one of the two.
    things.tenantId = (await newTenant(subject, `${sides.a.workshop.mark}-c`)).id;
  }
  const { body, query } = inputFor(endpoint, things);
  try {
    await call?.(endpoint.method === "GET" ? { query } : { body });
    return undefined;
  } catch (error) {
    const { status, body } = error as { status?: string; body?: { code?: string } };
    if (sides.a.serverCall().headers) return NO_BASE_URL;
    return `${status ?? error} ${body?.code ?? ""}`;
  } finally {
    await watch.changesOf([]);
  }
}

async function refusalOf(world: World, endpoint: Endpoint, home: Side) {
  let refusal: string | undefined;
  for (const attempt of rightCalls(world, endpoint, home)) {
    const sent = await sendAndUndo(world, attempt);
    // An application may redirect from better-auth's error page to its own, with the error.
    if (works(sent) || (endpoint.path === "/error" && sent.status < 400)) return undefined;
    const told = refusalIn(sent);
    if (refusal === undefined || told.includes("MISSING_FIELD")) refusal = told;
  }
  return refusal;
}

function* rightCalls(world: World, endpoint: Endpoint, home: Side): Generator<Try> {
  const signedIn = atHome(home, endpoint, sessionOf(home));
  yield signedIn;
  yield atHome(home, endpoint, SIGNED_OUT);
  for (const oneTime of home.oneTimes.filter((one) => takes(endpoint, one))) {
    yield oneTimeAtHome(home, endpoint, oneTime);
  }
  yield { ...signedIn, bare: true };
  for (const carrier of carriersOf(world, home)) yield atHome(home, endpoint, carrier);
  const { cookies } = home.second.browser;
  yield atHome(home, endpoint, { name: "the second user", side: home.name, cookies });
}

/** The credentials that do not work at home, where every one of them should. */
export async function idleCredentials(world: World, home: Side): Promise<Untried[]> {
  const refused = [
    ...(await refusedSessions(world, home)),
    ...(await refusedOneTimes(world, home)),
  ];
  return refused
    .filter(([, reason]) => !/MISSING_FIELD|SIGN_UP_CLOSED/.test(reason))
    .map(([credential, reason]) => ({
      what: `${credential} of ${home.name}`,
      reason: `it is not valid at home either: ${reason}`,
      give: "an instance in which it works, or nothing: the other credentials are tried",
    }));
}

type Refused = [credential: string, reason: string];

async function refusedSessions(world: World, home: Side): Promise<Refused[]> {
  const endpoint = world.endpoints.find(({ path }) => path === "/get-session");
  if (!endpoint) return [];
  const refused: Refused[] = [];
  const ask = (carrier: Carrier) => sendAndUndo(world, atHome(home, endpoint, carrier));
  const carriers = carriersOf(world, home);
  for (const carrier of carriers) {
    if (carrier.name === API_KEY && !keysAreSessions(world)) continue;
    const sent = await ask(carrier);
    const isValid = tellsOf(carrier.userId ?? home.main.userId, sent.text);
    // The cache is not valid without the token.
    const isRight = isValid !== (carrier.name === CACHE_ALONE);
    if (!isRight) refused.push([carrier.name, refusalIn(sent)]);
  }
  const cached = carriers.find(({ name }) => name === CACHED);
  if (!cached) return refused;
  // A cached session is valid without the one that it was made from.
  await world.watch.forgetSessions(home.main.token);
  const isValid = tellsOf(home.main.userId, (await ask(cached)).text);
  return isValid ? refused : [...refused, [CACHED, "the cache is not looked at"]];
}

/** By default, an API key is for the server's own code alone: the plugin's hook ignores it. */
function keysAreSessions({ subject, sides }: World): boolean {
  const { hooks } = subject.plugins.find(({ id }) => id === "api-key") ?? {};
  const headers = new Headers({ "x-api-key": sides.a.apiKey ?? "" });
  const ctx = { headers, path: "/get-session", context: subject.ctx };
  return hooks?.before?.some(({ matcher }) => matcher(ctx as never)) ?? false;
}

async function refusedOneTimes(world: World, home: Side): Promise<Refused[]> {
  const refused: Refused[] = [];
  for (const oneTime of home.oneTimes) {
    const { name, values, needsSeal = false } = oneTime;
    const endpoint = world.endpoints.find(
      ({ path, method }) => path === oneTime.home && method === (oneTime.method ?? method),
    );
    if (!endpoint) continue;
    const sent = await sendAndUndo(world, oneTimeAtHome(home, endpoint, oneTime));
    // An id token has to sign the user in, not just to start another flow.
    const isValid = works(sent) && (!("idToken" in values) || sent.text.includes('"token"'));
    if (isValid === needsSeal) refused.push([name, refusalIn(sent)]);
  }
  return refused;
}
