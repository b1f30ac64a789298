import { generateKeyPairSync, sign } from "node:crypto";
import { onTestFinished } from "vitest";

/** A request as it left this process. */
export interface Sent {
  method: string;
  url: string;
  headers: Headers;
  body: string;
  redirect: RequestRedirect;
}

/** Answers a request, or passes it on to where it was meant to go. */
type Answering = (sent: Sent, passOn: () => Promise<Response>) => Response | Promise<Response>;

/** The answer of a machine that is not there. */
export const unreachable = (): never => {
  throw new TypeError("fetch failed");
};

/** Stands in for the whole network until the test is over, and keeps what is sent to it. */
export function fakeNetwork(answer: Answering = unreachable): Sent[] {
  const sent: Sent[] = [];
  const original = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const { method, url, headers, redirect } = request;
    const body = await request.clone().text();
    const entry = { method, url, headers, body, redirect };
    sent.push(entry);
    return answer(entry, () => original(request));
  };
  onTestFinished(() => {
    globalThis.fetch = original;
  });
  return sent;
}

const KEY_ID = "test-key";
const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });

/** What an identity provider publishes, so that others can check its tokens. */
export const publishedKeys = {
  keys: [{ ...publicKey.export({ format: "jwk" }), kid: KEY_ID, alg: "RS256", use: "sig" }],
};

/** A token with these claims, just issued and good for ten minutes, signed with the key above. */
export function signToken(claims: Record<string, unknown>): string {
  const now = Math.floor(Date.now() / 1000);
  const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString("base64url");
  const header = { alg: "RS256", typ: "JWT", kid: KEY_ID };
  const content = `${encode(header)}.${encode({ iat: now, exp: now + 600, ...claims })}`;
  return `${content}.${sign("RSA-SHA256", Buffer.from(content), privateKey).toString("base64url")}`;
}

/**
 * Answers requests of this process to other machines from a table, until the test is over. What
 * is not in the table fails, so no test ever reaches the network. Loopback is left alone.
 */
export function interceptFetch(routes: Record<string, (params: URLSearchParams) => unknown>) {
  const seen: { url: string; params: URLSearchParams }[] = [];
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

const ALICE = { email: "alice@example.com", name: "Alice" };

/** An id token as Google signs it, for the client `aud`. */
export const googleIdToken = (claims: { aud: string } & Record<string, unknown>): string =>
  signToken({
    iss: "https://accounts.google.com",
    sub: "google-alice",
    email_verified: true,
    ...ALICE,
    ...claims,
  });

/**
 * Google and GitHub behind an intercepted `fetch`: any code is good, and belongs to Alice. The
 * requests they get are kept, because which credentials go out is what tests are about.
 */
export function fakeGoogleAndGitHub() {
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
    "https://api.github.com/user": () => ({ id: 4711, login: "alice", ...ALICE }),
    "https://api.github.com/user/emails": () => [{ ...ALICE, primary: true, verified: true }],
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
