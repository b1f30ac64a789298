import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** Somebody with an account at the identity provider, as GitLab describes its users. */
export interface Person {
  id: number;
  /** The same as OpenID Connect has it. */
  sub: string;
  email: string;
  email_verified: boolean;
  name: string;
  username: string;
  state: string;
}

/** A request that reached the identity provider: its query or its form. */
interface RecordedRequest {
  path: string;
  params: Record<string, string>;
}

interface Grant {
  person: Person;
  request: Record<string, string>;
}

/**
 * An OAuth identity provider on a real port, with GitLab's paths: better-auth's own `gitlab`
 * provider talks to it when its `issuer` points here. It is as strict as a good one: it knows its
 * clients, a code is good once, and only with the redirect URI and the verifier it belongs to.
 */
export async function startIdentityProvider() {
  const clients = new Map<string, string>();
  const people = new Map<string, Person>();
  const grants = new Map<string, Grant>();
  const tokens = new Map<string, Person>();
  const refreshTokens = new Map<string, Grant>();
  const requests: RecordedRequest[] = [];
  const rules = {
    codesAreGoodOnce: true,
    /** Whether tokens come with a refresh token, and for how many seconds they are good. */
    refreshTokens: false,
    expiresIn: 7200,
    /** What it says about itself, if it does. */
    discovery: undefined as Record<string, string | string[]> | undefined,
  };

  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const form = new URLSearchParams(await readBody(request));
    const params = Object.fromEntries([...url.searchParams, ...form]);
    requests.push({ path: url.pathname, params });
    const route = `${request.method} ${url.pathname}`;
    if (route === "GET /oauth/authorize") return authorize(request, response, params);
    if (route === "POST /oauth/token") return exchange(response, params);
    if (route === "GET /api/v4/user") return userInfo(request, response);
    if (route === "GET /.well-known/openid-configuration" && rules.discovery) {
      return answer(response, 200, rules.discovery);
    }
    return answer(response, 404, { error: "not_found" });
  });

  /** The person is known by a cookie, as at a real provider. */
  function authorize(
    request: IncomingMessage,
    response: ServerResponse,
    params: Record<string, string>,
  ) {
    const username = /person=([\w-]+)/.exec(request.headers.cookie ?? "")?.[1] ?? "";
    const person = people.get(username);
    const { client_id = "", redirect_uri = "", state = "" } = params;
    if (!person || !clients.has(client_id)) return answer(response, 400, { error: "bad_request" });
    const code = randomBytes(12).toString("hex");
    grants.set(code, { person, request: params });
    const back = new URL(redirect_uri);
    back.searchParams.set("code", code);
    back.searchParams.set("state", state);
    response.writeHead(302, { location: back.href }).end();
  }

  function exchange(response: ServerResponse, params: Record<string, string>) {
    const { client_id = "", client_secret, code = "", redirect_uri, code_verifier = "" } = params;
    if (!clients.has(client_id) || clients.get(client_id) !== client_secret) {
      return answer(response, 401, { error: "invalid_client" });
    }
    if (params.grant_type === "refresh_token") return refresh(response, params);
    const grant = grants.get(code);
    if (rules.codesAreGoodOnce) grants.delete(code);
    const challenge = createHash("sha256").update(code_verifier).digest("base64url");
    if (
      grant?.request.client_id !== client_id ||
      grant.request.redirect_uri !== redirect_uri ||
      grant.request.code_challenge !== challenge
    ) {
      return answer(response, 400, { error: "invalid_grant" });
    }
    issue(response, grant);
  }

  /** A refresh token is good once, and for the client that it was issued to. */
  function refresh(response: ServerResponse, params: Record<string, string>) {
    const grant = refreshTokens.get(params.refresh_token ?? "");
    if (!grant || grant.request.client_id !== params.client_id) {
      return answer(response, 400, { error: "invalid_grant" });
    }
    refreshTokens.delete(params.refresh_token ?? "");
    issue(response, grant);
  }

  function issue(response: ServerResponse, grant: Grant) {
    const token = randomBytes(12).toString("hex");
    tokens.set(token, grant.person);
    const scope = grant.request.scope ?? "";
    const refreshToken = randomBytes(12).toString("hex");
    if (rules.refreshTokens) refreshTokens.set(refreshToken, grant);
    answer(response, 200, {
      access_token: token,
      token_type: "Bearer",
      expires_in: rules.expiresIn,
      scope,
      ...(rules.refreshTokens && { refresh_token: refreshToken }),
    });
  }

  function userInfo(request: IncomingMessage, response: ServerResponse) {
    const person = tokens.get(request.headers.authorization?.replace("Bearer ", "") ?? "");
    if (!person) return answer(response, 401, { error: "invalid_token" });
    answer(response, 200, person);
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    onTestFinished(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
  } catch {
    // Shared by the tests of a file: it keeps no process alive.
    server.unref();
  }

  return {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Every request so far, in order. */
    requests,
    rules,

    /** The requests that tried to turn a code into a token. */
    exchanges: () => requests.filter(({ path }) => path === "/oauth/token"),

    registerClient(clientId: string, clientSecret: string) {
      clients.set(clientId, clientSecret);
    },

    /** Adds somebody, or changes who they are. */
    addPerson(username: string, profile: Partial<Person> = {}): Person {
      const person = {
        id: people.size + 1,
        sub: `${people.size + 1}`,
        email: `${username}@example.com`,
        email_verified: true,
        name: username,
        username,
        state: "active",
        ...people.get(username),
        ...profile,
      };
      people.set(username, person);
      return person;
    },

    /** The person agrees at the authorization URL; returns the URL that leads back. */
    async authorize(authorizationURL: string, username: string): Promise<string> {
      const response = await fetch(authorizationURL, {
        redirect: "manual",
        headers: { cookie: `person=${username}` },
      });
      const location = response.headers.get("location");
      if (!location) throw new Error(`Not authorized: ${await response.text()}`);
      return location;
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += chunk;
  return body;
}

function answer(response: ServerResponse, status: number, body: unknown) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
