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

type Params = Record<string, string>;

interface Grant {
  person: Person;
  request: Params;
}

/** What it answers: a status with a body, or where it sends the browser to. */
type Reply = [status: number, body: unknown] | URL;
const refused = (status: number, error: string): Reply => [status, { error }];
const random = () => randomBytes(12).toString("hex");

/** What a provider says about itself, with the endpoints that the server calls at another host. */
export const makeDiscovery = (issuer: string, elsewhere = issuer) => ({
  issuer,
  authorization_endpoint: `${issuer}/oauth/authorize`,
  token_endpoint: `${elsewhere}/oauth/token`,
  token_endpoint_auth_methods_supported: ["client_secret_post"],
  userinfo_endpoint: `${elsewhere}/api/v4/user`,
  jwks_uri: `${elsewhere}/jwks`,
});

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
  /** Every request so far, in order: its query or its form. */
  const requests: { path: string; params: Params }[] = [];
  const rules = {
    codesAreGoodOnce: true,
    /** Whether tokens come with a refresh token, and for how many seconds they are good. */
    refreshTokens: false,
    expiresIn: 7200,
    /** What it says about itself, if it does. */
    discovery: undefined as Record<string, string | string[]> | undefined,
    /** Answers in another way than with JSON at once, if it returns true. */
    send: undefined as
      | ((path: string, body: unknown, response: ServerResponse) => boolean)
      | undefined,
  };

  function reply(request: IncomingMessage, path: string, params: Params): Reply {
    const route = `${request.method} ${path}`;
    if (route === "GET /oauth/authorize") return authorize(request.headers.cookie, params);
    if (route === "POST /oauth/token") return exchange(params);
    if (route === "GET /api/v4/user") {
      const person = tokens.get(request.headers.authorization?.replace("Bearer ", "") ?? "");
      return person ? [200, person] : refused(401, "invalid_token");
    }
    if (route === "GET /.well-known/openid-configuration" && rules.discovery) {
      return [200, rules.discovery];
    }
    return refused(404, "not_found");
  }

  /** The person is known by a cookie, as at a real provider. */
  function authorize(cookie: string | undefined, params: Params): Reply {
    const person = people.get(/person=([\w-]+)/.exec(cookie ?? "")?.[1] ?? "");
    const { client_id = "", redirect_uri = "", state = "" } = params;
    if (!person || !clients.has(client_id)) return refused(400, "bad_request");
    const code = random();
    grants.set(code, { person, request: params });
    const back = new URL(redirect_uri);
    back.searchParams.set("code", code);
    back.searchParams.set("state", state);
    return back;
  }

  function exchange(params: Params): Reply {
    const { client_id = "", client_secret, code = "", redirect_uri, code_verifier = "" } = params;
    if (!clients.has(client_id) || clients.get(client_id) !== client_secret) {
      return refused(401, "invalid_client");
    }
    if (params.grant_type === "refresh_token") return refresh(params);
    const grant = grants.get(code);
    if (rules.codesAreGoodOnce) grants.delete(code);
    const isGood =
      grant?.request.client_id === client_id &&
      grant.request.redirect_uri === redirect_uri &&
      grant.request.code_challenge ===
        createHash("sha256").update(code_verifier).digest("base64url");
    return isGood ? issue(grant) : refused(400, "invalid_grant");
  }

  /** A refresh token is good once, and for the client that it was issued to. */
  function refresh({ refresh_token = "", client_id }: Params): Reply {
    const grant = refreshTokens.get(refresh_token);
    if (!grant || grant.request.client_id !== client_id) return refused(400, "invalid_grant");
    refreshTokens.delete(refresh_token);
    return issue(grant);
  }

  function issue(grant: Grant): Reply {
    const [access_token, refresh_token] = [random(), random()];
    tokens.set(access_token, grant.person);
    if (rules.refreshTokens) refreshTokens.set(refresh_token, grant);
    const { scope = "" } = grant.request;
    const token = { access_token, token_type: "Bearer", expires_in: rules.expiresIn, scope };
    return [200, { ...token, ...(rules.refreshTokens && { refresh_token }) }];
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    let form = "";
    for await (const chunk of request) form += chunk;
    const params = Object.fromEntries([...url.searchParams, ...new URLSearchParams(form)]);
    requests.push({ path: url.pathname, params });
    const replied = reply(request, url.pathname, params);
    if (replied instanceof URL) return response.writeHead(302, { location: replied.href }).end();
    const [status, body] = replied;
    if (rules.send?.(url.pathname, body, response)) return;
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });

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
