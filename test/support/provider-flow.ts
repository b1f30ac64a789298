import { createHash } from "node:crypto";
import { expect } from "vitest";
import type { Browser } from "./browser";
import {
  accountIdOf,
  authorizationQuery,
  codeRequests,
  createPerson,
  isTenants,
  playProvider,
  tokensOf,
  type Visit,
} from "./fake-providers";
import { BASE_URL } from "./instance";
import type { ProviderClient } from "./provider-answers";
import type { ProviderInstance, ProviderRow } from "./provider-instance";

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
  const { answers, person, network, scopes } = trip;
  const redirectURI = trip.redirectURI ?? callbackOf(trip);
  const url = new URL(authorizationURL);
  const { state = "", code_challenge, ...query } = Object.fromEntries(url.searchParams);
  expect(`${url.origin}${url.pathname}`).toBe(answers.authorization.address);
  expect(query).toEqual(authorizationQuery(trip, { redirectURI, ...(scopes && { scopes }) }));
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
  expect(network.requests).toEqual(
    codeRequests(trip, { code, redirectURI, ...(answers.pkce && { verifier }) }),
  );
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
  for (const { clientId, clientSecret } of strangers) {
    expect(everything).not.toContain(clientId);
    expect(everything).not.toContain(clientSecret);
  }
}

/** The whole way through one provider into one tenant, looking at every step. */
export async function signIn(
  app: ProviderInstance,
  { provider, answers }: ProviderRow,
  tenantId: string,
  {
    client,
    person = createPerson(),
    strangers,
    ...asked
  }: {
    client: ProviderClient;
    person?: Visit["person"];
    /** Whose credentials must stay where they are. */
    strangers: ProviderClient[];
    scopes?: string[];
    redirectURI?: string;
  },
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
  await expectSignedIn(app, browser, provider, tenantId, visit);
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

/** The person is in the tenant, in the database as well, and nowhere else. */
async function expectSignedIn(
  app: ProviderInstance,
  browser: Browser,
  provider: string,
  tenantId: string,
  visit: Visit,
) {
  const { answers, person } = visit;
  const { accountId: _, ...profile } = answers.user(person);
  const accountId = accountIdOf(visit);
  const [user, ...otherUsers] = await app.rowsOf("user", tenantId);
  expect(user).toMatchObject({ ...profile, emailVerified: Number(profile.emailVerified) });
  expect(otherUsers).toEqual([]);
  const { accessToken, refreshToken } = tokensOf(person);
  expect(await app.rowsOf("account", tenantId)).toMatchObject([
    { userId: user?.id, providerId: provider, accountId, accessToken, refreshToken },
  ]);
  expect(await app.rowsOf("session", tenantId)).toMatchObject([{ userId: user?.id }]);
  expect(await app.rowsOf("verification", tenantId)).toEqual([]);

  const session = await browser.get("/get-session", { headers: { "x-tenant-id": tenantId } });
  expect(session.data).toMatchObject({
    session: { tenantId, userId: user?.id },
    user: { id: user?.id, tenantId, ...profile },
  });
  const elsewhere = await browser.get("/get-session", {
    headers: { "x-tenant-id": app.neighbour.id },
  });
  expect(elsewhere.data).toBeNull();
  expect(await app.context.internalAdapter.findUserByEmail(profile.email)).toBeNull();
  for (const table of ["user", "account", "session", "verification"]) {
    expect(await app.rowsOf(table, "")).toEqual([]);
  }
}
