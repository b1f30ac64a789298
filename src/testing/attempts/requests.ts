import { decodeComponent } from "../../core/utils";
import { withDecoded } from "../data/texts";
import type { Repeatable } from "../findings";
import type { Endpoint } from "../instance/endpoints";
import type { GivenInput } from "../options";
import { type Answer, buildRequest, read } from "../sides/browser";
import { valuesFor } from "../sides/own-endpoints";
import { isManagement, isOwnSignIn, type Naming, type SideName } from "../sides/places";
import type { OneTime, Side } from "../sides/side";
import type { World } from "../sides/world";
import { type Input, inputFor } from "./inputs";

/** How a request proves who it comes from. */
export interface Carrier {
  name: string;
  /** The side that its session is of. */
  side: SideName | undefined;
  /** The side that it leads to where no tenant is named, though it is not a session. */
  leads?: SideName | undefined;
  /** The user, if it is not the main one. */
  userId?: string;
  /** Valid without the name of its tenant, also if each tenant has its own cookies. */
  namesTenant?: boolean;
  cookies?: Iterable<[string, string]>;
  headers?: Record<string, string>;
}

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
export function sideOf({ subject }: World, attempt: Try): SideName {
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
  // At the platform's own address a session of a tenant is not valid.
  // With cookies per tenant, a request that names no tenant has no cookies of tenants.
  const isPerTenant = subject.tenantOptions.sessionCookies === "per-tenant";
  return naming === "nothing" && (!isPerTenant || carrier.namesTenant) ? own : "platform";
}

/** Where identity providers send users: the provider in the address says where it runs. */
const isNamedByProvider = (path: string) => /^\/sso\/(callback\/|saml2\/sp\/)/.test(path);

/** A sealed token leads into its tenant where it belongs, or above or below, and nowhere else. */
const leadsTo = ({ home, sealedFor = home }: OneTime, path: string) =>
  path === sealedFor || path.startsWith(`${sealedFor}/`) || sealedFor.startsWith(`${path}/`);

export interface Sent extends Answer {
  request: Repeatable;
  /** All that the request says, and all that the response says, also in what they encode. */
  known: string;
  told: string;
  code: string | undefined;
  invented: string[];
}

/** Whether a request did what it is for; links report an error in the address. */
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
  const said = [decodeComponent(url), spoken(new Headers(request.headers)), request.body];
  const code = /"code":"(\w+)"/.exec(answer.text)?.[1];
  world.isReached ||= answer.status < 300 && isJSON(answer.headers);
  // The sender of a cached session knows what is in it, and may get it back.
  const known = withDecoded(said.join("\n"));
  const told = withDecoded(`${spoken(answer.headers)}\n${answer.text}`);
  return { ...answer, request, known, told, code, invented: [] };
}

function requestFor(world: World, attempt: Try): { request: Repeatable; invented: string[] } {
  const { endpoint, carrier, oneTime, naming, place } = attempt;
  // A side that is named by what the request says is reached at the platform's address.
  const address = naming.startsWith("address") ? place.place : world.sides.platform.place;
  const victim = victimOf(world, attempt);
  const here = sideOf(world, attempt);
  const own = givenFor(world, endpoint, victim, here);
  const freeText = world.sides[here].mark;
  const values = { ...valuesFor(endpoint, victim), freeText, ...oneTime?.values };
  const input = inputFor(endpoint, values, own, attempt.bare);
  const named = nameTenant(world, input, attempt);
  const ofCaller = { ...carrier.headers, ...oneTime?.headers };
  const headers = { ...address.headers, ...input.headers, ...ofCaller, ...named };
  const cookies = new Map([...(oneTime?.cookies ?? []), ...(carrier.cookies ?? [])]);
  const url = new URL(address.origin + world.subject.basePath + input.path);
  const request = buildRequest(url, endpoint.method, { ...input, headers }, cookies);
  return { request, invented: input.invented };
}

export class InputError extends Error {}

export function ignoreInputError(error: unknown): undefined {
  if (!(error instanceof InputError)) throw error;
}

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
    // Callers write texts of their own: these may be shown to them again.
    const { mark } = method === "GET" ? side : world.sides[here];
    return given({ ...side.about(), mark });
  } catch (error) {
    throw new InputError(`its input could not be made for ${side.name}: ${error}`);
  }
}

/** The side whose users and things a request is about: not the one that it runs on. */
function victimOf(world: World, attempt: Try): Side {
  const { home, place, naming, endpoint } = attempt;
  if (naming === "nothing" && isNamedByProvider(endpoint.path)) return place;
  return sideOf(world, attempt) === home.name ? place : home;
}

/** Names the tenant in the input, or in the headers that are returned. */
function nameTenant({ subject }: World, input: Input, attempt: Try): Record<string, string> {
  const { endpoint, naming, home, place } = attempt;
  // On this plugin's sign-in the body's own tenant would win over the query and the header.
  if (isOwnSignIn(endpoint.path)) {
    delete input.body?.tenantId;
    delete input.query.tenantId;
  }
  // What the address overrules is the way home.
  const { tenantId, slug = {} } = (naming.startsWith("address over") ? home : place).place;
  if (tenantId === null) return {};
  const where = naming.replace("address over ", "");
  if (where === "query") input.query.tenantId = tenantId;
  if (where === "body" && input.body) input.body.tenantId = tenantId;
  if (where === "slug") return slug;
  return where === "header" ? { [subject.tenantOptions.tenantHeader]: tenantId } : {};
}

const spoken = (headers: Headers) =>
  [...headers].map(([name, value]) => `${name}: ${decodeComponent(value)}`).join("\n");

type Exchange = Pick<Sent, "known" | "told">;

/** The secrets in a response that the request did not contain itself. */
export const leaksIn = ({ known, told }: Exchange, secrets: string[]): string[] =>
  secrets.filter((secret) => told.includes(secret) && !known.includes(secret));

export const toldOf = ({ watch }: World, exchange: Exchange, sides: SideName[]): string[] =>
  sides.flatMap((side) => {
    const told = leaksIn(exchange, watch.secrets[side]);
    return told.length ? [`tells of ${side}: ${told.slice(0, 5).join(", ")}`] : [];
  });
