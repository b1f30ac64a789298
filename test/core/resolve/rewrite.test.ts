import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { APIError, createAuthMiddleware } from "better-auth/api";
import { afterEach, describe, expect, it } from "vitest";
import { runInTenant } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { BASE_URL, newcomer, PASSWORD } from "../../support/instance";
import { ORDERS } from "../../support/matrix";
import { GLOBAL } from "../../support/social";
import { createWorld, EMAIL, outcome, shareWorld, type World } from "../../support/world";

/** better-auth's endpoints and those that stand for them in a tenant. */
const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const SOCIAL = "/tenant/sign-in/social";
const PAIRS = [SIGN_UP, SIGN_IN, SOCIAL].map(
  (ours) => [ours, ours.replace("/tenant", "")] as const,
);
const CALLBACKS = ["/callback/google", "/tenant/callback/google"];
const BACK = { query: { state: "x", code: "y" } };

const jane = { email: EMAIL, password: PASSWORD };

/** What an endpoint takes, and its tenant. */
function bodyFor(path: string, { ids }: World) {
  const social = { provider: "google", callbackURL: "/welcome" };
  const body = path.endsWith("/social") ? social : path.includes("sign-up") ? newcomer() : jane;
  return { ...body, tenantId: ids.acme };
}

const socialProviders = { google: GLOBAL, github: GLOBAL };

/** A world with Jane at Acme and some guard. */
async function createGuarded(auth: Partial<BetterAuthOptions>, plugins: BetterAuthPlugin[] = []) {
  const world = await createWorld({ auth: { ...auth, socialProviders }, plugins });
  await world.api.signUpEmailTenant({ body: { ...newcomer(), ...jane, tenantId: world.ids.acme } });
  const post = (path: string, browser = world.browser()) =>
    browser.post(path, bodyFor(path, world));
  return { world, post };
}

describe("R12: disabledPaths", () => {
  it("close the tenant's endpoint with better-auth's, and no other; the server's code is not closed out", async () => {
    const disabledPaths = ["/sign-up/email", "/callback/google", SIGN_IN];
    const advanced = { disableOriginCheck: false, skipTrailingSlashes: true };
    const { world, post } = await createGuarded({ disabledPaths, advanced });
    const { acme: tenantId } = world.ids;
    await world.unchanged(async () => {
      for (const path of [SIGN_UP, `${SIGN_UP}/`, `${SIGN_UP}?tenantId=${tenantId}`, SIGN_IN]) {
        const { status, headers } = await post(path);
        expect([path, status, headers.getSetCookie()]).toEqual([path, 404, []]);
      }
    });
    expect((await post(SOCIAL)).status).toBe(200);
    // What is said about the tenant's endpoint counts for that one alone.
    expect((await post("/sign-in/email", world.at("acme"))).status).toBe(200);
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    for (const options of [{}, { method: "POST", body: "code=1&state=2", headers }]) {
      const come = (id: string) =>
        world.browser().send(`/tenant/callback/${id}?code=1&state=2`, options);
      expect([(await come("google")).status, (await come("github")).status]).toEqual([404, 302]);
    }
    const { user } = await world.api.signUpEmailTenant({ body: { ...newcomer(), tenantId } });
    expect(user.tenantId).toBe(tenantId);
  });

  it("with another base path, even one that looks like ours", async () => {
    const disabledPaths = ["/sign-in/email"];
    const { post } = await createGuarded({ basePath: "/tenant", disabledPaths });
    expect((await post(`http://localhost:3000/tenant${SIGN_IN}`)).status).toBe(404);
    expect((await post(`http://localhost:3000/tenant${SIGN_UP}`)).status).toBe(200);
  });
});

// better-auth counts in memory by address and path, for all instances of a process together.
let addresses = 0;
const fromNewAddress = () => ({ "x-forwarded-for": `198.51.100.${++addresses}` });

describe("R12: rate limits", () => {
  const upTo = (max: number) => ({ window: 60, max });
  type Rules = NonNullable<NonNullable<BetterAuthOptions["rateLimit"]>["customRules"]>;

  /** How many requests from a new address are let through before the first that is limited. */
  type Guarded = Awaited<ReturnType<typeof createGuarded>>;
  async function letThrough(path: string, { world, post }: Guarded) {
    const name: Record<string, string> = path.startsWith("/tenant/") ? {} : world.naming("acme");
    const browser = world.browser({ ...name, ...fromNewAddress() });
    for (let count = 0; count < 6; count++) {
      const ask = CALLBACKS.includes(path) ? browser.get(path, BACK) : post(path, browser);
      const { status } = await ask;
      if (status === 429) return count;
      expect(status).toBeLessThan(500);
    }
    return 6;
  }

  /** Plugins with a rule for each. */
  const limits = (...rules: [of: RegExp, max: number][]) =>
    rules.map(([of, max], index) => ({
      id: `limits-${index}`,
      rateLimit: [{ pathMatcher: (path: string) => of.test(path), window: 10, max }],
    }));
  const ALL_BUT_SIGN_IN = /^\/(?!sign-(in|up))/;
  it.each<[string, Rules, Record<string, number>, BetterAuthPlugin[]?]>([
    [
      "rules of the application count for both, the first that fits",
      { "/sign-in/email": upTo(2), "/sign-in/*": upTo(1), "/sign-up/*": async () => upTo(1) },
      { "/sign-in/email": 2, [SIGN_IN]: 2, [SOCIAL]: 1, [SIGN_UP]: 1, "/sign-up/email": 1 },
    ],
    [
      "no limit is none for both, and callbacks have theirs",
      { "/sign-in/email": false, "/callback/*": upTo(1) },
      { "/sign-in/email": 6, [SIGN_IN]: 6, "/callback/google": 1, "/tenant/callback/google": 1 },
    ],
    [
      "a rule for the tenant's own path counts for that one",
      { "/sign-in/email": upTo(1), [SIGN_IN]: upTo(4) },
      { "/sign-in/email": 1, [SIGN_IN]: 4 },
    ],
    [
      "a rule of another plugin counts as well, and better-auth's own",
      {},
      {
        ...{ "/sign-in/email": 1, [SIGN_IN]: 1, "/tenant/callback/google": 1, [SOCIAL]: 3 },
        ...{ "/sign-up/email": 3, [SIGN_UP]: 1 },
      },
      limits([/^\/(sign-in\/email$|callback\/|tenant\/sign-up\/)/, 1]),
    ],
    [
      "a looser rule for everything but better-auth's own sign-in takes no limit away",
      {},
      { [SIGN_IN]: 3, [SIGN_UP]: 3, "/tenant/callback/google": 5, "/callback/google": 5 },
      limits([ALL_BUT_SIGN_IN, 5]),
    ],
    [
      "of rules for the tenant's own path the strictest counts, wherever it stands",
      {},
      { "/sign-in/email": 5, [SIGN_IN]: 1, [SIGN_UP]: 2 },
      limits(
        [ALL_BUT_SIGN_IN, 6],
        [/^\/sign-in\//, 5],
        [/^\/tenant\/sign-in/, 1],
        [/^\/tenant\/sign-up/, 2],
      ),
    ],
  ])("%s", async (_, customRules, expected, plugins) => {
    const guarded = await createGuarded({ rateLimit: { enabled: true, customRules } }, plugins);
    for (const [path, count] of Object.entries(expected)) {
      expect([path, await letThrough(path, guarded)]).toEqual([path, count]);
    }
  });

  const advanced = { disableOriginCheck: false, skipTrailingSlashes: true };
  const world = shareWorld({ auth: { rateLimit: { enabled: true }, advanced, socialProviders } });
  type Attempt = { path?: string; body?: object; headers?: Record<string, string> };
  const inTurn = (path: string) => [path, `${path}/`, `/x/..${path}`];

  it.each<[string, (index: number, tenantId: string, path: string) => Attempt]>([
    ["tenants in the header", (_, id) => ({ headers: { "x-tenant-id": id } })],
    ["tenants in the body", (_, tenantId) => ({ body: { tenantId } })],
    ["tenants in the query", (_, id, path) => ({ path: `${path}?tenantId=${id}` })],
    ["tenants that are not there", (index) => ({ body: { tenantId: `no-${index}` } })],
    ["ways to write the path", (index, _, path) => ({ path: inTurn(path)[index % 3] ?? "" })],
  ])("threat: rate limit reset by rotation: rotating %s changes nothing", async (_, rotate) => {
    for (const endpoint of [SIGN_IN, "/sign-in/email"]) {
      const address = fromNewAddress();
      const statuses: number[] = [];
      for (let index = 0; index < 5; index++) {
        const tenantId = index % 2 ? world.ids.acme : world.ids.globex;
        const { path = endpoint, body = {}, headers = {} } = rotate(index, tenantId, endpoint);
        statuses.push((await world.browser({ ...address, ...headers }).post(path, body)).status);
      }
      const limited = statuses.map((status) => status === 429);
      expect(limited, String(statuses)).toEqual([false, false, false, true, true]);
      expect(Math.max(...statuses)).toBeLessThan(500);
    }
  });

  // docs/security.md says so: better-auth's keys are its own, and it counts before any plugin.
  it("better-auth counts each path on its own, and disabledPaths leave one", async () => {
    const rateLimit = { enabled: true };
    for (const disabledPaths of [[], [SIGN_IN]]) {
      const { world: guarded, post } = await createGuarded({ rateLimit, disabledPaths });
      const browser = guarded.browser({ ...guarded.naming("acme"), ...fromNewAddress() });
      const statuses: number[] = [];
      for (let index = 0; index < 10; index++) {
        statuses.push((await post(index % 2 ? SIGN_IN : "/sign-in/email", browser)).status);
      }
      expect(statuses.filter((status) => status === 200)).toHaveLength(
        disabledPaths.length ? 3 : 6,
      );
    }
  });
});

describe("R12: middlewares of other plugins", () => {
  const seen: string[] = [];
  const deeds = new Map<string, () => Response>();
  const refuse = () => {
    throw new APIError("FORBIDDEN", { code: "GUARDED", message: "no" });
  };
  const answer = () => Response.json({ code: "GUARDED" }, { status: 403 });
  /** A middleware that notes that it ran, and does what the test says. */
  const guarding = (path: string) => ({
    path,
    middleware: createAuthMiddleware(async () => {
      seen.push(path);
      return deeds.get(path)?.();
    }),
  });
  const MATCHING = ["/sign-up/email", "/sign-up/**", "/**", "/*/**"];
  // Middlewares see better-auth's path only.
  const OTHERS = ["/callback/**", "/sign-in/**", "/tenant/*", "/tenant/**", SIGN_UP, SIGN_IN];
  const guardian = { id: "guardian", middlewares: [...MATCHING, ...OTHERS].map(guarding) };
  const world = shareWorld({
    auth: { socialProviders },
    plugins: [guardian as unknown as BetterAuthPlugin],
  });
  const post = (path: string, browser = world.browser()) =>
    browser.post(path, bodyFor(path, world));
  afterEach(() => deeds.clear());

  it.each([
    [SIGN_UP, "/sign-up/email", refuse],
    [SIGN_UP, "/sign-up/**", answer],
    [SOCIAL, "/sign-in/**", answer],
  ])("%s is guarded by one on %s, that refuses or answers itself", async (ours, pattern, deed) => {
    await world.as("jane", "acme");
    deeds.set(pattern, deed);
    const guarded = await world.unchanged(() => post(ours));
    expect([...outcome(guarded), guarded.headers.getSetCookie()]).toEqual([403, "GUARDED", []]);
    const own = await post(ours.replace("/tenant", ""), world.at("acme"));
    expect(own.status).toBe(403);
  });

  it("the callback is guarded by one on better-auth's", async () => {
    const come = async (path: string) => outcome(await world.browser().get(path, BACK));
    for (const path of CALLBACKS) expect((await come(path))[0], path).toBe(302);
    deeds.set("/callback/**", refuse);
    for (const path of CALLBACKS) expect(await come(path), path).toEqual([403, "GUARDED"]);
  });

  it("those that have nothing against it run once, and those of other paths not at all", async () => {
    seen.length = 0;
    expect((await post(SIGN_UP)).status).toBe(200);
    expect(seen.toSorted()).toEqual(MATCHING.toSorted());
    // Control: they are about requests, so code of the server's own never meets them.
    await world.api.signUpEmailTenant({ body: bodyFor(SIGN_UP, world) as never });
    expect(seen).toHaveLength(MATCHING.length);
  });
});

type Gate = { response: Response } | { request: Request } | undefined;

/** What plugins and the application see of requests, and what they do with them. */
function createWatch() {
  const watch = {
    requests: [] as string[],
    headers: {} as Record<string, string[]>,
    heard: [] as string[],
    /** What the application's own hook sees. */
    paths: [] as string[],
    last: undefined as Request | undefined,
    gate: (_: Request): Gate => undefined,
    nested: undefined as (() => Promise<void>) | undefined,
  };
  const see = (who: string, headers: Headers | undefined) => {
    watch.headers[who] = [...(watch.headers[who] ?? []), ...(headers?.keys() ?? [])];
  };
  const note = (who: string) =>
    createAuthMiddleware(async ({ path, headers, request }) => {
      see(who, headers);
      if (who === "before") {
        watch.last = request;
        watch.paths.push(path);
      }
      if (PAIRS.some(([, theirs]) => theirs === path)) watch.heard.push(who);
      if (who !== "after") return;
      const { nested } = watch;
      watch.nested = undefined;
      await nested?.();
    });
  const matcher = () => true;
  const plugin: BetterAuthPlugin = {
    id: "watch",
    onRequest: async (request) => {
      see("onRequest", request.headers);
      watch.requests.push(`${request.method} ${new URL(request.url).pathname}`);
      return watch.gate(request);
    },
    hooks: {
      before: [{ matcher, handler: note("plugin before") }],
      after: [{ matcher, handler: note("plugin after") }],
    },
  };
  const sendVerificationEmail = async (_: unknown, request?: Request) =>
    see("sender", request?.headers);
  const auth: Partial<BetterAuthOptions> = {
    socialProviders,
    emailVerification: { sendOnSignUp: true, sendVerificationEmail },
    hooks: { before: note("before"), after: note("after") },
  };
  const lists = () => ({ requests: [], heard: [], paths: [], headers: {} });
  const reset = () => Object.assign(watch, lists(), { gate: () => undefined });
  return { watch, plugin, auth, reset };
}

describe.each(ORDERS.slice(0, 2))("R12: what others see, with tenantAuth() %s", (_, arrange) => {
  const { watch, plugin, auth, reset } = createWatch();
  const world = shareWorld({ auth, plugins: [plugin], arrange });
  const post = (path: string, browser: Browser = world.browser()) =>
    browser.post(path, bodyFor(path, world));
  afterEach(reset);

  it.each(PAIRS)("%s: request and hooks run once, and see %s", async (ours, theirs) => {
    await world.as("jane", "acme");
    reset();
    expect((await post(ours)).status).toBe(200);
    expect(watch.requests).toEqual([`POST /api/auth${theirs}`]);
    expect(watch.heard.toSorted()).toEqual(["after", "before", "plugin after", "plugin before"]);
    expect(watch.paths).toEqual([theirs]);
  });

  it("the callback is better-auth's to them, and everything else has its own path", async () => {
    await world.browser().get("/tenant/callback/google", BACK);
    await world.at("acme").get("/get-session");
    await world.at("acme").get("/tenant/sign-in-methods");
    expect(watch.requests).toEqual([
      "GET /api/auth/callback/google",
      "GET /api/auth/get-session",
      "GET /api/auth/tenant/sign-in-methods",
    ]);
  });

  it("what one answers or makes anew by better-auth's path counts in the tenant", async () => {
    watch.gate = ({ url }) =>
      url.endsWith("/api/auth/sign-up/email") ? { response: Response.json({}) } : undefined;
    expect((await world.unchanged(() => post(SIGN_UP))).data).toEqual({});
    const known = ["content-type", "origin", "cookie", "host", "x-tenant-id"];
    watch.gate = (request) => {
      const headers = [...request.headers].filter(([name]) => known.includes(name));
      return { request: new Request(request, { headers: [...headers, ["x-gate", "passed"]] }) };
    };
    const answer = await post(SIGN_UP);
    expect(answer).toMatchObject({ status: 200, data: { user: { tenantId: world.ids.acme } } });
    expect(watch.headers.before).toContain("x-gate");
  });

  it("onRequest, hooks and mail senders see the headers that were sent, and no mark of ours", async () => {
    await post(SIGN_UP);
    await world.browser().get("/tenant/callback/google", BACK);
    const seers = ["after", "before", "onRequest", "plugin after", "plugin before", "sender"];
    expect(Object.keys(watch.headers).sort()).toEqual(seers);
    for (const [who, names] of Object.entries(watch.headers)) {
      expect(new Set(names), who).toEqual(new Set(["content-type", "origin"]));
    }
  });

  it("R7: inside a request of another tenant than its query or body names it is a conflict", async () => {
    await world.janes();
    const { acme, globex: tenantId } = world.ids;
    const inner: unknown[] = [];
    for (const [query, body] of [
      [`?tenantId=${tenantId}`, {}],
      ["", { tenantId }],
    ] as const) {
      const nested = async () => {
        const answer = await world.browser().post(`${SIGN_IN}${query}`, { ...jane, ...body });
        inner.push([answer.status, JSON.stringify(answer.data)]);
      };
      watch.nested = nested;
      await world.browser().post(SIGN_IN, { ...jane, tenantId: acme });
      await runInTenant(acme, nested);
    }
    expect(inner).toEqual(Array(4).fill([409, expect.not.stringContaining(acme)]));
  });

  it("a request goes on with all that is in it, also while its body is being sent", async () => {
    await world.as("jane", "acme");
    const body = JSON.stringify(bodyFor(SIGN_IN, world));
    const client = new AbortController();
    const sent = new Request(`${BASE_URL}${SIGN_IN}?a=b`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-custom": "kept" },
      body: new Blob([body]).stream(),
      redirect: "manual",
      signal: client.signal,
      duplex: "half",
    } as RequestInit);
    expect((await world.auth.handler(sent)).status).toBe(200);
    const seen = watch.last as Request;
    expect(seen).toBeInstanceOf(Request);
    const { url, method, headers, redirect } = seen;
    expect([url, method, headers.get("x-custom"), redirect]).toEqual([
      `${BASE_URL}/sign-in/email?a=b`,
      "POST",
      "kept",
      "manual",
    ]);
    const clone = seen.clone();
    expect([await clone.text(), await seen.text()]).toEqual([body, body]);
    // That the client has gone is seen as well.
    const reasons: unknown[] = [];
    for (const { signal } of [seen, clone]) {
      expect(signal.aborted).toBe(false);
      signal.addEventListener("abort", () => reasons.push(signal.reason));
    }
    client.abort("gone");
    expect(seen.signal).toBe(sent.signal);
    expect(clone.signal.aborted).toBe(true);
    expect(reasons).toEqual(["gone", "gone"]);
  });
});
