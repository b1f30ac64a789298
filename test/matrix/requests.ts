import { BASE_URL } from "../support/instance";
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
  const only = (...names: string[]) => [...cookies].filter(([cookie]) => names.includes(cookie));
  const cached = cookies.has(SESSION_DATA)
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

export type Naming = "resolver" | "body" | "query" | "header" | "nothing";

/** The ways to name the side that a request goes to. The platform has no name. */
export function namingsFor(place: Side, { path, method }: Endpoint): Naming[] {
  if (place.tenantId === null) return ["nothing"];
  return isOwnSignIn(path) && method === "POST"
    ? ["resolver", "body", "query", "header"]
    : ["resolver", "query", "header"];
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
  endpoint: { path, fields },
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
  if (naming !== "nothing") return place.name;
  if (oneTime?.sealed && fields.has("token") && !path.startsWith("/tenant/")) return home.name;
  return carrier.side ?? "platform";
}

export interface Sent {
  /** All that the request says, and all that the answer says. */
  request: string;
  answer: string;
  status: number;
  code: string | undefined;
  location: string | null;
  body: string;
}

export async function send(instance: FullInstance, attempt: Try): Promise<Sent> {
  const { endpoint, place, naming, carrier, oneTime } = attempt;
  const input = inputFor(
    endpoint,
    { ...victimOf(attempt).things, ...oneTime?.values },
    attempt.bare,
  );
  const headers = new Headers({ origin: "http://localhost:3000", ...carrier.headers });
  nameTenant(input, headers, naming, place, endpoint);
  const cookies = new Map([...(oneTime?.cookies ?? []), ...(carrier.cookies ?? [])]);
  if (cookies.size) headers.set("cookie", [...cookies].map((pair) => pair.join("=")).join("; "));
  const url = new URL(`${BASE_URL}${input.path}`);
  for (const [name, value] of Object.entries(input.query)) url.searchParams.set(name, value);
  const body = input.body && JSON.stringify(input.body);
  if (body) headers.set("content-type", "application/json");
  const request = new Request(url, { method: endpoint.method, headers, ...(body && { body }) });
  const response = await instance.auth.handler(request);
  const text = await response.text();
  return {
    request: [decodeURIComponent(url.href), spoken(headers), body].join("\n"),
    answer: `${spoken(response.headers)}\n${text}`,
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

function nameTenant(
  input: Input,
  headers: Headers,
  naming: Naming,
  place: Side,
  { path }: Endpoint,
) {
  // On this plugin's sign-in the body's own tenant would win over the query and the header.
  if (isOwnSignIn(path)) {
    delete input.body?.tenantId;
    delete input.query.tenantId;
  }
  const { tenantId } = place;
  if (tenantId === null) return;
  if (naming === "resolver") headers.set(RESOLVED_HEADER, tenantId);
  if (naming === "header") headers.set("x-tenant-id", tenantId);
  if (naming === "query") input.query.tenantId = tenantId;
  if (naming === "body" && input.body) input.body.tenantId = tenantId;
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
export function leaksIn({ request, answer }: Sent, secrets: string[]): string[] {
  // Who sends a cached session knows what is in it, and may get it back.
  const told = `${answer}\n${decoded(answer)}`;
  const known = `${request}\n${decoded(request)}`;
  return secrets.filter((secret) => told.includes(secret) && !known.includes(secret));
}

/** What is inside tokens and cookies that are only encoded, not encrypted. */
function decoded(text: string): string {
  const encoded = text.match(/[\w-]{24,}/g) ?? [];
  return encoded.map((part) => Buffer.from(part, "base64url").toString("utf8")).join("\n");
}
