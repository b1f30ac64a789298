import { type Endpoint, type Input, inputFor } from "./inputs";
import { type FullInstance, RESOLVED_HEADER } from "./instance";
import type { OneTime, Side, SideName } from "./sides";

/** How a request proves who it comes from. */
export interface Carrier {
  name: string;
  /** Whose session it is. */
  side: SideName | undefined;
  cookies?: Iterable<[string, string]>;
  headers?: Record<string, string>;
}

const SESSION_TOKEN = "better-auth.session_token";
const SESSION_DATA = "better-auth.session_data";

/** Everything that stands for somebody who is signed in at home. */
export function carriersOf({ name, credentials }: Side): Carrier[] {
  const { cookies, everyCookie, token, apiKey } = credentials;
  // What is too long for one cookie is in several: "name.0", "name.1".
  const only = (...names: string[]) =>
    [...cookies].filter(([cookie]) => names.includes(cookie.replace(/\.\d+$/, "")));
  const cached = only(SESSION_DATA).length
    ? [
        { name: "cached session cookie", side: name, cookies: only(SESSION_TOKEN, SESSION_DATA) },
        // Without its token better-auth does not look at the cache; nobody must start to.
        { name: "cached session alone", side: undefined, cookies: only(SESSION_DATA) },
      ]
    : [];
  return [
    { name: "session cookie", side: name, cookies: only(SESSION_TOKEN) },
    ...cached,
    { name: "every cookie", side: name, cookies: everyCookie },
    { name: "bearer token", side: name, headers: { authorization: `Bearer ${token}` } },
    // A key is no session: it is good where its tenant is named.
    { name: "API key", side: undefined, headers: { "x-api-key": apiKey } },
  ];
}

export const NOBODY: Carrier = { name: "nobody", side: undefined };

/** Somebody who is signed in where the request goes. */
export function hostCarrier({ name, credentials }: Side): Carrier {
  const cookies = [...credentials.cookies].filter(([cookie]) => cookie === SESSION_TOKEN);
  return { name: "somebody of the other side", side: name, cookies };
}

/** Sign-in and sign-up under a tenant, and what a sign-in page asks before. */
const isOwnSignIn = (path: string) => /^\/tenant\/sign-(in|up)\b/.test(path);
const isManagement = (path: string) => path.startsWith("/tenant/") && !isOwnSignIn(path);

/** Where a request itself can name a tenant. */
type Claim = "body" | "query" | "header";
/** A host decides, also against what the request claims. */
type ByHost = "host" | `host over ${Claim}`;
export type Naming = "nothing" | "resolver" | Claim | ByHost;

/** The ways to name the side that a request goes to. Without a host, the platform has no name. */
export function namingsFor(home: Side, place: Side, { path, method }: Endpoint): Naming[] {
  const claims: Claim[] =
    isOwnSignIn(path) && method === "POST" ? ["body", "query", "header"] : ["query", "header"];
  if (place.address.host === undefined)
    return place.tenantId === null ? ["nothing"] : ["resolver", ...claims];
  const against = claims.map((claim): ByHost => `host over ${claim}`);
  return home.tenantId === null ? ["host"] : ["host", ...against];
}

/** How a side is named by its own people. */
export function namingAtHome({ tenantId, address }: Side): Naming {
  if (address.host !== undefined) return "host";
  return tenantId === null ? "nothing" : "header";
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
export function sideOf({
  endpoint: { path },
  home,
  place,
  naming,
  carrier,
  oneTime,
}: Try): SideName {
  if (path === "/callback/:id") return "platform";
  // The tenants' callback goes by its state.
  if (path === "/tenant/callback/:id") return oneTime?.values.state ? home.name : "platform";
  if (isManagement(path)) return carrier.side ?? "platform";
  if (naming !== "nothing" && place.tenantId !== null) return place.name;
  if (oneTime?.sealed && leadsTo(oneTime, path)) return home.name;
  // At the platform's own host a session of a tenant is none.
  return naming === "nothing" ? (carrier.side ?? "platform") : "platform";
}

/** A sealed token leads into its tenant where it belongs, or above or below, and nowhere else. */
const leadsTo = ({ home }: OneTime, path: string) =>
  path === home || path.startsWith(`${home}/`) || home.startsWith(`${path}/`);

export interface Sent {
  /** All that the request says, and all that the answer says, also in what they encode. */
  known: string;
  told: string;
  status: number;
  code: string | undefined;
  location: string | null;
  body: string;
}

export async function send(instance: FullInstance, attempt: Try): Promise<Sent> {
  const { endpoint, place, carrier, oneTime } = attempt;
  const { origin, host } = place.address;
  const input = inputFor(
    endpoint,
    { ...victimOf(attempt).things, ...oneTime?.values },
    attempt.bare,
  );
  const headers = new Headers({ origin, ...(host && { host }), ...carrier.headers });
  nameTenant(input, headers, attempt);
  const cookies = new Map([...(oneTime?.cookies ?? []), ...(carrier.cookies ?? [])]);
  if (cookies.size) headers.set("cookie", [...cookies].map((pair) => pair.join("=")).join("; "));
  const url = new URL(`${origin}/api/auth${input.path}`);
  for (const [name, value] of Object.entries(input.query)) url.searchParams.set(name, value);
  const body = input.body && JSON.stringify(input.body);
  if (body) headers.set("content-type", "application/json");
  const request = new Request(url, { method: endpoint.method, headers, ...(body && { body }) });
  const response = await instance.auth.handler(request);
  const text = await response.text();
  const said = [decodeURIComponent(url.href), spoken(headers), body].join("\n");
  const answer = `${spoken(response.headers)}\n${text}`;
  return {
    // Who sends a cached session knows what is in it, and may get it back.
    known: `${said}\n${decoded(said)}`,
    told: `${answer}\n${decoded(answer)}`,
    status: response.status,
    code: /"code":"(\w+)"/.exec(text)?.[1],
    location: response.headers.get("location"),
    body: text,
  };
}

/** Whose people and things a request is about: not those of the side that it runs on. */
function victimOf(attempt: Try): Side {
  const { home, place } = attempt;
  if (place === home) return home;
  return sideOf(attempt) === home.name ? place : home;
}

function nameTenant(input: Input, headers: Headers, { endpoint, naming, home, place }: Try) {
  // On this plugin's sign-in the body's own tenant would win over the query and the header.
  if (isOwnSignIn(endpoint.path)) {
    delete input.body?.tenantId;
    delete input.query.tenantId;
  }
  // What the host overrules is the way home.
  const { tenantId } = naming.startsWith("host over") ? home : place;
  if (tenantId === null) return;
  const where = naming.replace("host over ", "");
  if (where === "resolver") headers.set(RESOLVED_HEADER, tenantId);
  if (where === "header") headers.set("x-tenant-id", tenantId);
  if (where === "query") input.query.tenantId = tenantId;
  if (where === "body" && input.body) input.body.tenantId = tenantId;
}

const spoken = (headers: Headers) =>
  [...headers].map(([name, value]) => `${name}: ${safeDecode(value)}`).join("\n");

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The secrets in an answer that the request did not bring along itself. */
export function leaksIn({ known, told }: Sent, secrets: string[]): string[] {
  return secrets.filter((secret) => told.includes(secret) && !known.includes(secret));
}

/** What is inside tokens and cookies that are only encoded, not encrypted. */
function decoded(text: string): string {
  const encoded = text.match(/[\w-]{24,}/g) ?? [];
  return encoded.map((part) => Buffer.from(part, "base64url").toString("utf8")).join("\n");
}
