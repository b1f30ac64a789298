import type { BetterAuthPlugin } from "better-auth";
import { generateRandomString } from "better-auth/crypto";
import { generateCodeChallenge } from "better-auth/oauth2";
import { expect } from "vitest";
import type { Answer, Browser } from "../support/browser";
import type { DatabaseKind } from "../support/database";
import { PASSWORD } from "../support/instance";
import { queryOf } from "../support/social";
import { createPlaces } from "./places";

const REDIRECT_URI = "https://client.example/back";

interface ServerApi {
  adminCreateOAuthClient(input: {
    body: Record<string, unknown>;
    headers: Headers;
  }): Promise<{ client_id: string; client_secret: string }>;
}

/** Two tenants and the platform, which signs people in at other people's applications. */
export async function createAuthorizationServer(
  plugins: () => BetterAuthPlugin[],
  database: DatabaseKind = "sqlite",
) {
  const places = await createPlaces(plugins(), { database });
  let developer: Browser | undefined;
  const api = places.instance.auth.api as unknown as ServerApi;
  /** An application of a developer's, who is a user of the platform. */
  async function register() {
    developer ??= (await places.signUp("platform", "developer@example.com")).browser;
    return api.adminCreateOAuthClient({
      body: {
        redirect_uris: [REDIRECT_URI],
        skip_consent: true,
        scope: "openid email profile",
        token_endpoint_auth_method: "client_secret_post",
      },
      headers: new Headers({ cookie: developer.cookieHeader() }),
    });
  }

  /** Sends somebody to the authorization server, as an application does. */
  async function send(browser: Browser, clientId: string, more: Record<string, string> = {}) {
    const verifier = generateRandomString(64);
    const answer = await browser.get("/oauth2/authorize", {
      query: {
        client_id: clientId,
        response_type: "code",
        redirect_uri: REDIRECT_URI,
        scope: "openid email profile",
        state: "a-state",
        code_challenge: await generateCodeChallenge(verifier),
        code_challenge_method: "S256",
        ...more,
      },
    });
    return { answer, verifier };
  }

  /** What the application does with the code: no cookies, and no word about a tenant. */
  const redeem = (
    client: { client_id: string; client_secret: string },
    code: string,
    verifier: string,
    headers: Record<string, string> = {},
    resource?: string,
  ) =>
    places.instance.browser(headers).post<Record<string, string>>(
      "/oauth2/token",
      new URLSearchParams({
        grant_type: "authorization_code",
        code,
        code_verifier: verifier,
        redirect_uri: REDIRECT_URI,
        client_id: client.client_id,
        client_secret: client.client_secret,
        ...(resource && { resource }),
      }).toString(),
      { headers: { "content-type": "application/x-www-form-urlencoded" } },
    );

  const userInfo = (token: string | undefined, headers: Record<string, string> = {}) =>
    places.instance.browser({ authorization: `Bearer ${token}`, ...headers }).get<{
      sub: string;
      email: string;
    }>("/oauth2/userinfo");

  /** Signs in with the query that the authorization server has signed for its login page. */
  const signInFor = (browser: Browser, login: Answer, email: string) =>
    browser.post<Record<string, string>>("/sign-in/email", {
      email,
      password: PASSWORD,
      oauth_query: new URL(login.location ?? "", "http://localhost:3000").search.slice(1),
    });

  return { ...places, register, send, redeem, userInfo, signInFor };
}

/** The code that an answer leads back to the application with. */
export function codeIn(location: string | null | undefined): string | undefined {
  if (!location?.startsWith(REDIRECT_URI)) return undefined;
  const { code, state } = queryOf(location);
  expect(state).toBe("a-state");
  return code;
}
