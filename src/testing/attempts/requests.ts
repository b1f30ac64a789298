import { decoded, safeDecode } from "../data/texts";
import type { Repeatable } from "../findings";
import type { Endpoint } from "../instance/endpoints";
import type { GivenInput } from "../options";
import { ALWAYS_SENT, cookieHeader, read } from "../sides/browser";
import { valuesFor } from "../sides/own-endpoints";
import { isManagement, isOwnSignIn, type Naming, type Place, type SideName } from "../sides/places";
import type { OneTime, Side } from "../sides/side";
import type { World } from "../sides/world";
import { type Input, inputFor } from "./inputs";

/** How a request proves who it comes from. */
export interface Carrier {
  name: string;
  /** Whose session it is. */
  side: SideName | undefined;
  /** The side that it leads to where no tenant is named, though it is not a session. */
  leads?: SideName | undefined;
  /** Who it is, if it is not the main person. */
  userId?: string;
  /** Good without the name of its tenant, also where each tenant has cookies of its own. */
  namesTenant?: boolean;
  cookies?: Iterable<[string, string]>;
  headers?: Record<string, string>;
}

export const NOBODY: Carrier = { name: "nobody", side: undefined };

/** One request that is about to be tried. */
export interface Try {
  endpoint: Endpoint;
  /** The side that the credential belongs to, and the one that it is tried on. */
  home: Side;
  place: Side;
  naming: Naming;
  carrier: Carrier;
  oneTime?: OneTime | undefined;
  bare?: boolean;
}

/** Where a request runs by the rules: the one side that it may read and change. */
export function sideOf(world: World, attempt: Try): SideName {
  const { endpoint, home, place, naming, carrier, oneTime } = attempt;
  const { path } = endpoint;
  if (path === "/callback/:id") return "platform";
  // The tenants' callback goes by its state.
  if (path === "/tenant/callback/:id") return oneTime?.values.state ? home.name : "platform";
  // What a management call names is its target: the caller stays at home.
  const own = carrier.side ?? carrier.leads ?? "platform";
  if (isManagement(path)) return own;
  if (naming !== "nothing" && place.place.tenantId !== null) return place.name;
  if (oneTime?.sealed && leadsTo(oneTime, path)) return home.name;
  if (naming === "nothing" && isNamedByProvider(path)) return place.name;
  // At the platform's own address a session of a tenant is none.
  // With a cookie for each tenant, a request that names none has the cookies of none.
  const counts = naming === "nothing" && (!world.perTenantCookies || carrier.namesTenant);
  return counts ? own : "platform";
}

/** Where identity providers send people: the provider in the address says where it runs. */
const isNamedByProvider = (path: string) => /^\/sso\/(callback\/|saml2\/sp\/)/.test(path);

/** A sealed token leads into its tenant where it belongs, or above or below, and nowhere else. */
const leadsTo = ({ home, sealedFor = home }: OneTime, path: string) =>
  path === sealedFor || path.startsWith(`${sealedFor}/`) || sealedFor.startsWith(`${path}/`);

export interface Sent {
  request: Repeatable;
  /** All that the request says, and all that the answer says, also in what they encode. */
  known: string;
  told: string;
  status: number;
  code: string | undefined;
  location: string | null;
  body: string;
  data: unknown;
  /** Required values of the request that nobody gave. */
  invented: string[];
}

/** Whether a request did what it is for; who follows a link is told of an error in the address. */
export const works = ({ status, location }: Sent) => status < 400 && !location?.includes("error=");

export const isJSON = (headers: Headers) => headers.get("content-type")?.includes("json") === true;

export async function send(world: World, attempt: Try): Promise<Sent> {
  await attempt.oneTime?.refresh?.();
  const { request, invented } = requestFor(world, attempt);
  return { ...(await sendAgain(world, request)), invented };
}

export async function sendAgain(world: World, request: Repeatable): Promise<Sent> {
  const { url, ...init } = request;
  const answer = await read(await world.subject.handler(new Request(url, init)));
  const said = [safeDecode(url), spoken(new Headers(request.headers)), request.body].join("\n");
  const told = `${spoken(answer.headers)}\n${answer.text}`;
  const code = /"code":"(\w+)"/.exec(answer.text)?.[1];
  world.isReached ||= answer.status < 300 && isJSON(answer.headers);
  return {
    request,
    // Who sends a cached session knows what is in it, and may get it back.
    known: `${said}\n${decoded(said)}`,
    told: `${told}\n${decoded(told)}`,
    status: answer.status,
    code,
    location: answer.location,
    body: answer.text,
    data: answer.data,
    invented: [],
  };
}

function requestFor(world: World, attempt: Try): { request: Repeatable; invented: string[] } {
  const { endpoint, carrier, oneTime } = attempt;
  const { origin, headers: addressing } = addressOf(world, attempt);
  const victim = victimOf(world, attempt);
  const here = sideOf(world, attempt);
  const own = givenFor(world, endpoint, victim, here);
  const freeText = world.sides[here].mark;
  const values = { ...valuesFor(endpoint, victim), freeText, ...oneTime?.values };
  const input = inputFor(endpoint, values, own, attempt.bare);
  const headers = new Headers({
    origin,
    ...ALWAYS_SENT,
    ...addressing,
    ...input.headers,
    ...carrier.headers,
    ...oneTime?.headers,
  });
  nameTenant(world, input, headers, attempt);
  const cookies = new Map([...(oneTime?.cookies ?? []), ...(carrier.cookies ?? [])]);
  if (cookies.size) headers.set("cookie", cookieHeader(cookies));
  const url = new URL(origin + world.subject.basePath + input.path);
  for (const [name, value] of Object.entries(input.query)) url.searchParams.set(name, value);
  const body = input.body && JSON.stringify(input.body);
  if (body) headers.set("content-type", "application/json");
  const request = { method: endpoint.method, url: url.href, headers: Object.fromEntries(headers) };
  const { invented } = input;
  return { request: body === undefined ? request : { ...request, body }, invented };
}

/** A side that is named by what the request says is reached at the platform's address. */
function addressOf({ sides }: World, { place, naming }: Try): Place {
  return naming.startsWith("address") ? place.place : sides.platform.place;
}

/** A function in `endpoints` has failed. */
export class InputError extends Error {}

/** What the application gave for an endpoint: as it is, or for the things of a side. */
export function givenFor(
  world: World,
  { path, method }: Endpoint,
  side: Side,
  here: SideName = side.name,
): GivenInput | undefined {
  const given = world.options.endpoints?.[path];
  if (typeof given !== "function") return given;
  try {
    // Who writes a text writes one of their own: it may be shown to them again.
    const { mark } = method === "GET" ? side : world.sides[here];
    return given({ ...side.about(), mark });
  } catch (error) {
    throw new InputError(`its input could not be made for ${side.name}: ${error}`);
  }
}

/** Whose people and things a request is about: not those of the side that it runs on. */
function victimOf(world: World, attempt: Try): Side {
  const { home, place } = attempt;
  if (place === home) return home;
  if (attempt.naming === "nothing" && isNamedByProvider(attempt.endpoint.path)) return place;
  return sideOf(world, attempt) === home.name ? place : home;
}

function nameTenant(
  { subject }: World,
  input: Input,
  headers: Headers,
  { endpoint, naming, home, place }: Try,
) {
  // On this plugin's sign-in the body's own tenant would win over the query and the header.
  if (isOwnSignIn(endpoint.path)) {
    delete input.body?.tenantId;
    delete input.query.tenantId;
  }
  // What the address overrules is the way home.
  const { tenantId, slug = {} } = (naming.startsWith("address over") ? home : place).place;
  if (tenantId === null) return;
  const where = naming.replace("address over ", "");
  if (where === "header") headers.set(subject.tenantOptions.tenantHeader, tenantId);
  if (where === "slug") for (const name in slug) headers.set(name, slug[name] ?? "");
  if (where === "query") input.query.tenantId = tenantId;
  if (where === "body" && input.body) input.body.tenantId = tenantId;
}

const spoken = (headers: Headers) =>
  [...headers].map(([name, value]) => `${name}: ${safeDecode(value)}`).join("\n");

/** The secrets in an answer that the request did not bring along itself. */
export function leaksIn(
  { known, told }: Pick<Sent, "known" | "told">,
  secrets: string[],
): string[] {
  return secrets.filter((secret) => told.includes(secret) && !known.includes(secret));
}
