import { isPublicRoutableHost } from "@better-auth/core/utils/host";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { currentEndpoint } from "../../core/endpoint";
import { createAsyncStorage } from "../../core/request";
import { within } from "../../core/utils";
import { connectToPublicAddresses } from "./public-addresses";
import { oauthRequest } from "./request";

/*
 * A tenant's administrator chooses the identity provider. A malicious one may answer with 200 MB of
 * compressed zeros, or with one byte per second. So the answers of providers from OAuth configs,
 * and of stored providers of `sso()`, have limits. The application's own providers have none.
 *
 * better-auth, its packages and jose call the global `fetch`. So the plugin wraps that function,
 * here and nowhere else. The wrapper changes only calls inside `limitCalls`, and calls of `sso()`
 * to a stored provider.
 *
 * Guarded by "what a tenant's provider answers is limited: OAuth" and "what a tenant's provider
 * answers is limited: sso()".
 */

const MAX_MS = 10_000;
const MAX_BYTES = 1024 * 1024;

let made: ReturnType<typeof createAsyncStorage<boolean>> | undefined;

/**
 * Returns the storage that says whether the running code's calls are limited. It holds true inside
 * `limitCalls`. It holds false inside a limited call, which must not be limited twice, and inside
 * `mapProfileToUser`.
 */
const isLimited = () => {
  made ??= createAsyncStorage<boolean>();
  return made;
};

/** Runs a function and limits the answers to all of its calls. */
function limitCalls<T>(run: () => T): T {
  wrapFetch();
  return isLimited().run(true, run);
}

/**
 * Limits the answers from an address for the rest of the request. If its host is not trusted,
 * allows connections to public addresses only.
 */
export function limitCallsTo(address: string, isTrusted: boolean): void {
  wrapFetch();
  const request = oauthRequest.get();
  request.providerAddresses ??= new Map();
  request.providerAddresses.set(new URL(address).href, { isTrusted });
}

/** Returns a tenant's provider that limits the answers to its calls. */
export function withLimitedCalls(provider: OAuthProvider): OAuthProvider {
  const { idToken } = provider;
  return { ...limitMethods(provider), ...(idToken && { idToken: limitMethods(idToken) }) };
}

/**
 * Returns options whose `mapProfileToUser` is not limited: the application wrote it, and chooses
 * which services it calls.
 */
export function withFreeMapping<T extends ProviderOptions>(options: T): T {
  const { mapProfileToUser } = options;
  if (!mapProfileToUser) return options;
  const mapFreely: typeof mapProfileToUser = (profile) =>
    isLimited().run(false, () => mapProfileToUser(profile));
  return { ...options, mapProfileToUser: mapFreely };
}

/**
 * Returns a copy whose methods limit their calls. `this` stays the original, because some methods
 * read other properties from it.
 */
function limitMethods<T extends object>(target: T): T {
  const entries = Object.entries(target).map(([name, value]) => [
    name,
    typeof value === "function"
      ? (...given: unknown[]) => limitCalls(() => value.apply(target, given))
      : value,
  ]);
  return Object.fromEntries(entries);
}

type Fetch = typeof globalThis.fetch;
type Given = Parameters<Fetch>;

const wrapped = new WeakSet<Fetch>();

/** Wraps the global `fetch`. Repeated for each use, because frameworks and tests may replace it. */
function wrapFetch(): void {
  const original = globalThis.fetch;
  if (wrapped.has(original)) return;
  // A `Proxy`, because frameworks and runtimes keep properties on their `fetch`, and read them.
  const fetch = new Proxy(original, {
    apply(target, self, args: Given) {
      const call = (init = args[1]) => Reflect.apply(target, self, [args[0], init]);
      const limits = findLimits(args);
      return limits ? answerWithin(call, args, limits).catch(asStatus(args)) : call();
    },
  });
  wrapped.add(fetch);
  globalThis.fetch = fetch;
}

/** Returns the limits for a call, or undefined if it has none. */
function findLimits(given: Given): { isTrusted: boolean } | undefined {
  const isInside = isLimited().getStore();
  if (isInside !== undefined) return isInside ? { isTrusted: true } : undefined;
  const known = oauthRequest.get().providerAddresses;
  if (!known) return undefined;
  const address = known.get(parseAddress(given)?.href ?? "");
  return address ?? (followsRedirects(given) ? undefined : { isTrusted: false });
}

function parseAddress([input]: Given): URL | undefined {
  const url = input instanceof Request ? input.url : String(input);
  return URL.canParse(url) ? new URL(url) : undefined;
}

/**
 * Returns whether a call follows redirects. `sso()` never does, and the application usually does.
 * So if a call to an unknown address follows no redirects, `sso()` makes it: better-fetch has
 * changed the address after `sso()` checked it. Such a call may reach public hosts only.
 *
 * Guarded by "sso() follows no redirects when it calls a provider".
 */
function followsRedirects([input, init]: Given): boolean {
  const given = init?.redirect ?? (input instanceof Request ? input.redirect : "follow");
  return given !== "manual";
}

/** Calls an address of a tenant's provider. Rejects if the answer is too long or too late. */
export const callProvider: Fetch = (input, init) =>
  answerWithin((limited) => fetch(input, limited), [input, init], { isTrusted: true });

/**
 * Turns an error into a 502 response, because all callers handle a status. Some of better-auth's
 * callers would answer a rejection with a 500.
 */
const asStatus =
  (given: Given) =>
  (error: Error): Response => {
    if (findSignal(given)?.aborted) throw error;
    const reason = (error.cause as Error | undefined)?.message ?? error.message;
    currentEndpoint()?.context.logger.error(`An identity provider did not answer: ${reason}`);
    return new Response(null, { status: 502, statusText: "No usable answer" });
  };

const findSignal = ([input, init]: Given) =>
  init?.signal ?? (input instanceof Request ? input.signal : undefined);

async function answerWithin(
  call: (init: RequestInit) => Promise<Response>,
  given: Given,
  { isTrusted }: { isTrusted: boolean },
): Promise<Response> {
  const [, init] = given;
  // A connection to an IP address skips the lookup that `connectToPublicAddresses` checks. So the
  // host is checked here.
  const host = parseAddress(given)?.hostname;
  if (!isTrusted && !(host && isPublicRoutableHost(host))) throw new Error(`${host} is not public`);
  const stop = new AbortController();
  const signal = AbortSignal.any([findSignal(given) ?? stop.signal, stop.signal]);
  const pinned = isTrusted ? {} : connectToPublicAddresses();
  try {
    return await isLimited().run(false, () =>
      within(MAX_MS, call({ ...init, ...pinned, signal }).then(readAnswer)),
    );
  } finally {
    // Ends the connection if the answer was not read to its end.
    stop.abort();
  }
}

/** Reads an answer to its end. Throws if it is too long. */
async function readAnswer(response: Response): Promise<Response> {
  if (!response.body) return response;
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
    if (length > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
  }
  const { status, statusText, headers, url } = response;
  const answer = new Response(new Blob(parts), { status, statusText, headers });
  return Object.defineProperty(answer, "url", { value: url });
}
