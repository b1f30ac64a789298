import { signToken } from "./jwt";
import { fakeNetwork, type Sent } from "./network";
import type {
  Credentials,
  ProviderAnswers,
  ProviderClient,
  ProviderPerson,
} from "./provider-answers";

/** A request as it left: what it says to whom, and with whose credentials. */
export interface SentRequest {
  method: string;
  /** Without the query. */
  address: string;
  query: Record<string, string>;
  authorization: string | null;
  /** A form or a JSON object. */
  body: Record<string, string>;
}

/** One person at one provider, coming through one application. */
export interface Visit {
  answers: ProviderAnswers;
  person: ProviderPerson;
  client: ProviderClient;
}

let count = 0;

/** Somebody new, whom no other test has seen. */
export function createPerson(): ProviderPerson {
  const number = 700_000_000 + ++count;
  const [firstName, lastName] = ["Alice", `Number${number}`];
  return {
    number,
    id: String(number),
    email: `alice-${number}@example.com`,
    firstName,
    lastName,
    name: `${firstName} ${lastName}`,
    picture: `https://pictures.example/${number}.png`,
  };
}

/** The tokens that a person's first code is good for, and those that their refresh token is. */
export const tokensOf = ({ id }: ProviderPerson, refreshed = false) => ({
  accessToken: `${refreshed ? "new-" : ""}access-token-of-${id}`,
  refreshToken: `${refreshed ? "new-" : ""}refresh-token-of-${id}`,
});

/** Whether it is a tenant's own client, and not the application's. */
export const isTenants = ({ clientId }: ProviderClient) => !clientId.startsWith("global-");

/** The id of the account in the database: with the server where a tenant's client lives elsewhere. */
export function accountIdOf({ answers, person, client }: Visit): string {
  const { accountId } = answers.user(person);
  return isTenants(client) && answers.server ? `${answers.server}#${accountId}` : accountId;
}

/**
 * Stands in for the whole network until the test is over: one provider that knows one person, and
 * nothing else. What is not in its table throws; all that is sent is kept.
 */
export function playProvider(visit: Visit) {
  const requests: SentRequest[] = [];
  /** Each request with all its headers, to look for what must not be in it. */
  const raw: string[] = [];
  fakeNetwork((sent) => {
    raw.push([sent.url, ...[...sent.headers].map(String), sent.body].join("\n"));
    const request = read(sent);
    requests.push(request);
    const answer = answerTo(visit, request);
    if (answer === undefined) throw new Error(`Nobody is there: ${sent.method} ${sent.url}`);
    return answer instanceof Response ? answer : Response.json(answer);
  });
  return { requests, raw };
}

function read({ method, url, headers, body: text }: Sent): SentRequest {
  const { origin, pathname, searchParams } = new URL(url);
  const isJSON = headers.get("content-type")?.includes("json");
  const body: [string, string][] = isJSON
    ? Object.entries(JSON.parse(text))
    : [...new URLSearchParams(text)];
  return {
    method,
    address: `${origin}${decodeURIComponent(pathname)}`,
    query: Object.fromEntries(searchParams),
    authorization: headers.get("authorization"),
    // A question to a graph is not about its white space.
    body: Object.fromEntries(body.map(([key, value]) => [key, value.replace(/\s+/g, " ").trim()])),
  };
}

function answerTo(visit: Visit, sent: SentRequest): unknown {
  const { answers, person, client } = visit;
  if (sent.address === answers.exchange.address || sent.address === answers.refresh?.address) {
    const { grant_type } = { ...sent.query, ...sent.body };
    const tokens = tokensOf(person, grant_type === "refresh_token");
    const idToken = answers.idToken?.(person);
    return {
      token_type: "Bearer",
      access_token: tokens.accessToken,
      refresh_token: tokens.refreshToken,
      expires_in: 7200,
      ...(idToken && { id_token: signToken({ aud: client.clientId, ...idToken }) }),
      ...answers.tokens?.(person),
    };
  }
  const { idTokenSignIn } = answers;
  if (idTokenSignIn && isAsked(idTokenSignIn.request, sent)) return idTokenSignIn.answer(sent.body);
  return answers.profile.find(({ request }) => isAsked(request, sent))?.answer(person, client);
}

function isAsked(request: string, sent: SentRequest): boolean {
  const { method, address, query } = parse(request);
  const same = Object.entries(query).every(([key, value]) => sent.query[key] === value);
  return method === sent.method && address === sent.address && same;
}

function parse(request: string) {
  const [method = "", url = ""] = request.split(" ");
  const { origin, pathname, searchParams } = new URL(url);
  return {
    method,
    address: `${origin}${decodeURIComponent(pathname)}`,
    query: Object.fromEntries(searchParams),
  };
}

/** The query of the authorization URL, exactly, but for the state and the challenge. */
export function authorizationQuery(
  { answers, client }: Pick<Visit, "answers" | "client">,
  { redirectURI, scopes = [] }: { redirectURI: string; scopes?: string[] },
): Record<string, string> {
  const { clientId = "client_id", scopeSeparator = " ", query } = answers.authorization;
  const all = [...answers.authorization.scopes, ...scopes];
  return {
    response_type: "code",
    [clientId]: client.clientId,
    redirect_uri: redirectURI,
    ...(scopeSeparator !== null && all.length > 0 && { scope: all.join(scopeSeparator) }),
    ...(answers.pkce === true && { code_challenge_method: "S256" }),
    ...query,
  };
}

/** The requests that turn a code into a profile, in order, to the letter. */
export function codeRequests(
  visit: Visit,
  { code, redirectURI, verifier }: { code: string; redirectURI: string; verifier?: string },
): SentRequest[] {
  const { address, credentials, extra } = visit.answers.exchange;
  const grant = {
    grant_type: "authorization_code",
    code,
    // WeChat wants no redirect URI.
    ...(credentials !== "query" && { redirect_uri: redirectURI }),
    ...(verifier && { code_verifier: verifier }),
    ...extra,
  };
  return [tokenRequest(address, credentials, visit.client, grant), ...profileRequests(visit)];
}

/** The requests that an access token is good for, in order. */
export function profileRequests({ answers, person, client }: Visit): SentRequest[] {
  const { accessToken } = tokensOf(person);
  return answers.profile.map(({ request, params, bearer = true }) => {
    const { method, address, query } = parse(request);
    const more = params?.({ ...client, accessToken, person });
    return {
      method,
      address,
      query: method === "GET" ? { ...query, ...more } : query,
      authorization: bearer ? `Bearer ${accessToken}` : null,
      body: method === "GET" ? {} : { ...more },
    };
  });
}

/** The request that checks an id token. */
export function checkRequest(
  { answers, client }: Visit,
  token: string,
  nonce?: string,
): SentRequest {
  const { request = "", form } = answers.idTokenSignIn ?? {};
  const body = form?.(token, client, nonce) ?? {};
  return { ...parse(request), authorization: null, body };
}

/** The request that turns a refresh token into new tokens. */
export function refreshRequest({ answers, client }: Visit, refreshToken: string): SentRequest {
  if (!answers.refresh) throw new Error("better-auth does not refresh the tokens of this provider");
  const { address, credentials, extra } = answers.refresh;
  const grant = { grant_type: "refresh_token", refresh_token: refreshToken, ...extra };
  return tokenRequest(address, credentials, client, grant);
}

function tokenRequest(
  address: string,
  credentials: Credentials,
  { clientId, clientSecret }: ProviderClient,
  grant: Record<string, string>,
): SentRequest {
  const post = { method: "POST", address, query: {}, authorization: null };
  const get = { method: "GET", address, authorization: null, body: {} };
  switch (credentials) {
    case "form":
      return { ...post, body: { ...grant, client_id: clientId, client_secret: clientSecret } };
    case "form, as client_key":
      return { ...post, body: { ...grant, client_key: clientId, client_secret: clientSecret } };
    case "basic": {
      const basic = Buffer.from(`${clientId}:${clientSecret}`).toString("base64");
      return { ...post, authorization: `Basic ${basic}`, body: grant };
    }
    case "query":
      return { ...get, query: { ...grant, appid: clientId, secret: clientSecret } };
    case "query, id alone":
      return { ...get, query: { ...grant, appid: clientId } };
  }
}
