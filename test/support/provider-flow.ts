import { createHash } from "node:crypto";
import type { BetterAuthOptions } from "better-auth";
import { expect } from "vitest";
import type { Browser } from "./browser";
import { createDatabase } from "./database";
import { BASE_URL, createInstance } from "./instance";
import {
  type Credentials,
  type ProviderAnswers,
  type ProviderClient,
  type ProviderPerson,
  type ProviderRow,
  TRUSTED_HOSTS,
} from "./provider-answers";
import { fakeNetwork, type Sent, signToken } from "./providers";

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

/** The credentials that somebody has at a provider. */
export const clientOf = (who: string, provider: string): ProviderClient => ({
  clientId: `${who}-id-at-${provider}`,
  clientSecret: `${who}-secret-at-${provider}`,
});

export type ProviderInstance = Awaited<ReturnType<typeof createProviderInstance>>;

/**
 * An instance for all tests of a file, which therefore have to close it: each has tenants and a
 * person of its own. The application has credentials for the given providers.
 */
export async function createProviderInstance(
  globals: ProviderRow[],
  auth: Partial<BetterAuthOptions> = {},
) {
  const database = await createDatabase("sqlite");
  const entries = globals.map(({ provider, answers }) => {
    const { clientId, clientSecret } = clientOf("global", provider);
    // TikTok has a client key, and no client id.
    const id = provider === "tiktok" ? { clientKey: clientId } : { clientId };
    return [provider, { ...id, clientSecret, ...answers.options }];
  });
  const instance = await createInstance({
    database,
    tenant: { trustedProviderHosts: TRUSTED_HOSTS },
    auth: { socialProviders: Object.fromEntries(entries), ...auth },
  });
  return {
    ...instance,
    /** A tenant that nobody ever signs in at. */
    neighbour: await instance.createTenant("neighbour"),

    /** Gives a tenant credentials of its own. */
    async configure(
      tenantId: string,
      { provider, answers: { options } }: ProviderRow,
      client: ProviderClient,
      config: { enabled?: boolean; scopes?: string[]; redirectURI?: string } = {},
    ) {
      const body = { tenantId, providerId: provider, ...client, options, ...config };
      await instance.api.registerTenantOAuthConfig({ body });
    },

    /** What a tenant has in a table, and with an empty id the platform. */
    rowsOf: (table: string, tenantId: string) =>
      database.query(`select * from "${table}" where "tenantId" = ?`, [tenantId]),
  };
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
const isTenants = ({ clientId }: ProviderClient) => !clientId.startsWith("global-");

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
  const isJSON = headers.get("content-type")?.includes("json");
  const body: [string, string][] = isJSON
    ? Object.entries(JSON.parse(text))
    : [...new URLSearchParams(text)];
  return {
    ...parse(`${method} ${url}`),
    authorization: headers.get("authorization"),
    // A question to a graph is not about its white space.
    body: Object.fromEntries(body.map(([key, value]) => [key, value.replace(/\s+/g, " ").trim()])),
  };
}

function answerTo({ answers, person, client }: Visit, sent: SentRequest): unknown {
  const { exchange, refresh, idTokenSignIn, profile } = answers;
  if (sent.address === exchange.address || sent.address === refresh?.address) {
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
  if (idTokenSignIn && isAsked(idTokenSignIn.request, sent)) return idTokenSignIn.answer(sent.body);
  return profile.find(({ request }) => isAsked(request, sent))?.answer(person, client);
}

function isAsked(request: string, sent: SentRequest): boolean {
  const { method, address, query } = parse(request);
  const same = Object.entries(query).every(([key, value]) => sent.query[key] === value);
  return method === sent.method && address === sent.address && same;
}

function parse(request: string) {
  const [method = "", url = ""] = request.split(" ");
  const { origin, pathname, searchParams } = new URL(url);
  const address = `${origin}${decodeURIComponent(pathname)}`;
  return { method, address, query: Object.fromEntries(searchParams) };
}

/** The query of the authorization URL, exactly, but for the state and the challenge. */
function authorizationQuery(
  { answers, client }: Visit,
  redirectURI: string,
  scopes: string[] = [],
) {
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
function codeRequests(visit: Visit, code: string, redirectURI: string, verifier: string) {
  const { pkce, exchange } = visit.answers;
  const { address, credentials, extra } = exchange;
  const grant = {
    grant_type: "authorization_code",
    code,
    // WeChat wants no redirect URI.
    ...(credentials !== "query" && { redirect_uri: redirectURI }),
    ...(pkce && { code_verifier: verifier }),
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
export function checkRequest(visit: Visit, token: string, nonce?: string): SentRequest {
  const { request = "", form } = visit.answers.idTokenSignIn ?? {};
  const body = form?.(token, visit.client, nonce) ?? {};
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
    case "basic":
      return {
        ...post,
        authorization: `Basic ${btoa(`${clientId}:${clientSecret}`)}`,
        body: grant,
      };
    case "query":
      return { ...get, query: { ...grant, appid: clientId, secret: clientSecret } };
    case "query, id alone":
      return { ...get, query: { ...grant, appid: clientId } };
  }
}

/** Starts social sign-in at a tenant. */
export function start(browser: Browser, provider: string, tenantId: string) {
  return browser.post<{ url: string }>("/tenant/sign-in/social", {
    tenantId,
    provider,
    callbackURL: "/welcome",
    errorCallbackURL: "/failed",
  });
}

interface Trip extends Visit {
  provider: string;
  tenantId: string;
  network: ReturnType<typeof playProvider>;
  redirectURI?: string;
  /** What is asked for beyond the provider's defaults. */
  scopes?: string[];
}

/**
 * The person agrees at the authorization URL and comes back. That URL and everything that the
 * server then asks the provider is compared with the table, to the letter.
 */
export async function agreeAndComeBack(browser: Browser, authorizationURL: string, trip: Trip) {
  const { answers, person, network, redirectURI = callbackOf(trip) } = trip;
  const url = new URL(authorizationURL);
  const { state = "", code_challenge, ...query } = Object.fromEntries(url.searchParams);
  expect(`${url.origin}${url.pathname}`).toBe(answers.authorization.address);
  expect(query).toEqual(authorizationQuery(trip, redirectURI, trip.scopes));
  expect(state).toMatch(/^[\w-]{32,}$/);
  expect(network.requests).toEqual([]);

  const code = `code-of-${person.id}`;
  const back = await comeBack(browser, trip, {
    ...Object.fromEntries(new URL(redirectURI).searchParams),
    code,
    state,
    ...answers.callback?.(person),
  });
  const verifier = network.requests[0]?.body.code_verifier ?? "";
  expect(network.requests).toEqual(codeRequests(trip, code, redirectURI, verifier));
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  expect(code_challenge).toBe(answers.pkce === true ? challenge : undefined);
  return back;
}

/** Where a provider leads back to, which is a tenant's own address where it brought the server. */
function callbackOf({ provider, tenantId, answers, client }: Trip) {
  const address = `${BASE_URL}/tenant/callback/${provider}`;
  // A public server goes by the provider's name where the application's own is another one.
  const isPublic = answers.server === undefined || answers.server === provider;
  return isPublic || !isTenants(client) ? address : `${address}?tenant=${tenantId}`;
}

async function comeBack(
  browser: Browser,
  { provider, answers }: Trip,
  query: Record<string, string>,
) {
  const path = `/tenant/callback/${provider}`;
  if (!answers.formPost) return browser.get(path, { query });
  // A form from another site has none of our cookies, and an id token, which goes no further.
  const stranger = browser.fork();
  stranger.cookies.clear();
  const form = new URLSearchParams({ ...query, id_token: "token-in-a-form" });
  const answer = await stranger.post(path, form.toString(), {
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      origin: answers.formPost.origin,
      "sec-fetch-site": "cross-site",
    },
  });
  expect(answer.status).toBe(302);
  expect(answer.location).toBe(`${BASE_URL}${path}?${new URLSearchParams(query)}`);
  expect(stranger.cookies.size).toBe(0);
  return browser.get(answer.location ?? "");
}

/** Nothing that left carries somebody else's credentials. */
export function expectNoneOf(strangers: ProviderClient[], sent: string[]) {
  const everything = sent.join("\n");
  for (const value of strangers.flatMap(Object.values)) expect(everything).not.toContain(value);
}

/** Who signs in, and what is special about it. */
interface Asked extends Pick<Trip, "scopes" | "redirectURI"> {
  client: ProviderClient;
  person?: ProviderPerson;
  /** Whose credentials must stay where they are. */
  strangers: ProviderClient[];
}

/** The whole way through one provider into one tenant, looking at every step. */
export async function signIn(
  app: ProviderInstance,
  { provider, answers }: Pick<ProviderRow, "provider" | "answers">,
  tenantId: string,
  { client, person = createPerson(), strangers, ...asked }: Asked,
) {
  const visit = { answers, person, client };
  const network = playProvider(visit);
  const browser = app.browser();
  const started = await start(browser, provider, tenantId);
  expect([started.status, started.code]).toEqual([200, undefined]);
  expect(started.location).toBe(started.data.url);
  const trip = { ...visit, ...asked, provider, tenantId, network };
  const back = await agreeAndComeBack(browser, started.data.url, trip);
  expect([back.status, back.location]).toEqual([302, "/welcome"]);
  expectNoneOf(strangers, [started.data.url, ...network.raw]);
  await expectSignedIn(app, browser, trip);
}

/** The person is in the tenant, in the database as well, and nowhere else. */
async function expectSignedIn(app: ProviderInstance, browser: Browser, trip: Trip) {
  const { answers, person, provider, tenantId } = trip;
  const { accountId: _, ...profile } = answers.user(person);
  const accountId = accountIdOf(trip);
  const [user, ...otherUsers] = await app.rowsOf("user", tenantId);
  expect(user).toMatchObject({ ...profile, emailVerified: Number(profile.emailVerified) });
  expect(otherUsers).toEqual([]);
  expect(await app.rowsOf("account", tenantId)).toMatchObject([
    { userId: user?.id, providerId: provider, accountId, ...tokensOf(person) },
  ]);
  expect(await app.rowsOf("session", tenantId)).toMatchObject([{ userId: user?.id }]);
  expect(await app.rowsOf("verification", tenantId)).toEqual([]);

  const sessionAt = async (id: string) =>
    (await browser.get("/get-session", { headers: { "x-tenant-id": id } })).data;
  expect(await sessionAt(tenantId)).toMatchObject({
    session: { tenantId, userId: user?.id },
    user: { id: user?.id, tenantId, ...profile },
  });
  expect(await sessionAt(app.neighbour.id)).toBeNull();
  expect(await app.context.internalAdapter.findUserByEmail(profile.email)).toBeNull();
  for (const table of ["user", "account", "session", "verification"]) {
    expect(await app.rowsOf(table, "")).toEqual([]);
  }
}
