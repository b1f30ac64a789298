import { publishedKeys, signToken } from "./jwt";
import { fakeNetwork } from "./network";

type Route = (params: URLSearchParams) => unknown;

interface SeenRequest {
  url: string;
  params: URLSearchParams;
}

/**
 * Answers requests of this process to other machines from a table, until the test is over. What
 * is not in the table fails, so no test ever reaches the network. Loopback is left alone.
 */
export function interceptFetch(routes: Record<string, Route>): SeenRequest[] {
  const seen: SeenRequest[] = [];
  fakeNetwork(({ url, body }, passOn) => {
    const { origin, pathname, hostname } = new URL(url);
    if (hostname === "127.0.0.1") return passOn();
    const params = new URLSearchParams(body);
    seen.push({ url, params });
    const route = routes[`${origin}${pathname}`];
    if (!route) throw new Error(`No network in tests: ${url}`);
    return Response.json(route(params));
  });
  return seen;
}

interface GoogleClaims {
  /** The client id that the token is for. */
  aud: string;
  sub?: string;
  email?: string;
  email_verified?: boolean;
  name?: string;
  nonce?: string;
}

/** An id token as Google signs it. */
function googleIdToken(claims: GoogleClaims): string {
  return signToken({
    iss: "https://accounts.google.com",
    sub: "google-alice",
    email: "alice@example.com",
    email_verified: true,
    name: "Alice",
    ...claims,
  });
}

/**
 * Google and GitHub behind an intercepted `fetch`: any code is good, and belongs to Alice. The
 * requests they get are kept, because which credentials go out is what tests are about.
 */
export function fakeGoogleAndGitHub() {
  const alice = { email: "alice@example.com", name: "Alice" };
  const requests = interceptFetch({
    "https://www.googleapis.com/oauth2/v3/certs": () => publishedKeys,
    "https://oauth2.googleapis.com/token": (params) => ({
      access_token: "google-token",
      token_type: "Bearer",
      id_token: googleIdToken({ aud: params.get("client_id") ?? "" }),
    }),
    "https://github.com/login/oauth/access_token": () => ({
      access_token: "github-token",
      token_type: "bearer",
      scope: "read:user,user:email",
    }),
    "https://api.github.com/user": () => ({ id: 4711, login: "alice", ...alice }),
    "https://api.github.com/user/emails": () => [{ ...alice, primary: true, verified: true }],
  });
  return {
    googleIdToken,
    /** What was sent to a token endpoint, in order. */
    exchanges: () =>
      requests
        .filter(({ url }) => /token$/.test(url))
        .map(({ params }) => Object.fromEntries(params)),
  };
}
