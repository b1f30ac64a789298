import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { APIError, createAuthMiddleware } from "better-auth/api";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { GLOBAL } from "../support/social";
import {
  createWorld,
  EMAIL,
  expectRefused,
  outcome,
  shareWorld,
  type World,
  type WorldOptions,
} from "../support/world";

/** better-auth's endpoints and those that stand for them in a tenant. */
const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const SOCIAL = "/tenant/sign-in/social";
const PAIRS = [SIGN_UP, SIGN_IN, SOCIAL].map(
  (ours) => [ours, ours.replace("/tenant", "")] as const,
);
const CALLBACKS = ["/callback/google", "/tenant/callback/google"];
const BACK = { query: { state: "x", code: "y" } };

let people = 0;
const newcomer = () => ({ name: "New", email: `new-${++people}@example.com`, password: PASSWORD });
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
  it.each(PAIRS)("%s is closed with %s, and no other", async (ours, theirs) => {
    const { world, post } = await createGuarded({ disabledPaths: [theirs] });
    await world.unchanged(async () => {
      for (const path of [ours, `${ours}/`, `${ours}?tenantId=${world.ids.acme}`]) {
        const { status, headers } = await post(path);
        expect([status, headers.getSetCookie()], path).toEqual([404, []]);
      }
      expect((await post(theirs, world.at("acme"))).status).toBe(404);
    });
    for (const [other] of PAIRS.filter(([path]) => path !== ours)) {
      expect((await post(other)).status, other).toBe(200);
    }
  });

  it("/tenant/callback/google is closed with /callback/google, and no other", async () => {
    const { world } = await createGuarded({ disabledPaths: ["/callback/google"] });
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    for (const options of [{}, { method: "POST", body: "code=1&state=2", headers }]) {
      const come = (id: string) =>
        world.browser().send(`/tenant/callback/${id}?code=1&state=2`, options);
      expect([(await come("google")).status, (await come("github")).status]).toEqual([404, 302]);
    }
  });

  it("with another base path, even one that looks like ours", async () => {
    const { post } = await createGuarded({
      basePath: "/tenant",
      disabledPaths: ["/sign-in/email"],
    });
    expect((await post(`http://localhost:3000/tenant${SIGN_IN}`)).status).toBe(404);
    expect((await post(`http://localhost:3000/tenant${SIGN_UP}`)).status).toBe(200);
  });

  it("control: what is said about the tenant's endpoint counts for that one alone", async () => {
    const { world, post } = await createGuarded({ disabledPaths: [SIGN_IN] });
    expect((await post(SIGN_IN)).status).toBe(404);
    expect((await post("/sign-in/email", world.at("acme"))).status).toBe(200);
  });

  it("control: code of the server's own is not closed out, as in better-auth", async () => {
    const { world } = await createGuarded({ disabledPaths: PAIRS.map(([, theirs]) => theirs) });
    const { api, ids } = world;
    const tenantId = ids.acme;
    const signedIn = await api.signInEmailTenant({ body: { ...jane, tenantId } });
    expect(signedIn.user.email).toBe(EMAIL);
    const signedUp = await api.signUpEmailTenant({ body: { ...newcomer(), tenantId } });
    expect(signedUp.user.tenantId).toBe(tenantId);
    const social = await api.signInSocialTenant({ body: { provider: "google", tenantId } });
    expect(social.url).toContain("accounts.google.com");
  });
});

// better-auth counts in memory by address and path, for all instances of a process together.
let addresses = 0;
const fromNewAddress = () => ({ "x-forwarded-for": `198.51.100.${++addresses}` });

describe("R12: rate limits that the application sets", () => {
  const ONE = { window: 60, max: 1 };
  type Rules = NonNullable<NonNullable<BetterAuthOptions["rateLimit"]>["customRules"]>;
  const limited = (customRules?: Rules, plugins?: BetterAuthPlugin[]) =>
    createGuarded({ rateLimit: { enabled: true, ...(customRules && { customRules }) } }, plugins);

  /** How many requests from a new address are let through before the first that is limited. */
  async function letThrough(path: string, { world, post }: Awaited<ReturnType<typeof limited>>) {
    const name: Record<string, string> = path.startsWith("/tenant/") ? {} : world.naming("acme");
    const browser = world.browser({ ...name, ...fromNewAddress() });
    for (let count = 0; count < 8; count++) {
      const ask = CALLBACKS.includes(path) ? browser.get(path, BACK) : post(path, browser);
      const { status } = await ask;
      if (status === 429) return count;
      expect(status).toBeLessThan(500);
    }
    return 8;
  }

  it.each<[string, Rules, number]>([
    ["a rule", { "/sign-up/email": ONE, "/sign-in/email": ONE, "/sign-in/social": ONE }, 1],
    ["a wildcard", { "/sign-in/*": ONE, "/sign-up/*": ONE, "/callback/*": ONE }, 1],
    ["two wildcards", { "/sign-*/*": ONE }, 1],
    ["a function", { "/sign-in/*": async () => ONE, "/sign-up/*": () => ONE }, 1],
    ["a function of what there is", { "/sign-*/*": (_, { max }) => ({ ...ONE, max: max - 2 }) }, 1],
    ["no limit", { "/sign-up/email": false, "/sign-in/email": false, "/sign-in/social": false }, 8],
  ])("%s counts for the endpoint that stands for another", async (_, rules, count) => {
    const guarded = await limited(rules);
    for (const path of [...PAIRS.flat(), ...("/callback/*" in rules ? CALLBACKS : [])]) {
      expect([path, await letThrough(path, guarded)]).toEqual([path, count]);
    }
  });

  it("a rule of another plugin counts as well", async () => {
    const pathMatcher = (path: string) =>
      path === "/sign-in/email" || path.startsWith("/callback/");
    const guarded = await limited({}, [{ id: "limits", rateLimit: [{ pathMatcher, ...ONE }] }]);
    for (const path of ["/sign-in/email", SIGN_IN, ...CALLBACKS]) {
      expect(await letThrough(path, guarded), path).toBe(1);
    }
  });

  it("control: a rule for the tenant's own path counts for it", async () => {
    const guarded = await limited({ [SIGN_IN]: { window: 60, max: 5 } });
    expect(await letThrough(SIGN_IN, guarded)).toBe(5);
    expect(await letThrough("/sign-in/email", guarded)).toBe(3);
  });
});

describe.each(["memory", "database"] as const)(
  "better-auth's own rate limits, in the %s",
  (storage) => {
    const rateLimit = { enabled: true, storage };
    const advanced = { disableOriginCheck: false, skipTrailingSlashes: true };
    const world = shareWorld({ auth: { rateLimit, advanced, socialProviders } });
    afterEach(() => void vi.useRealTimers());

    type Attempt = { path?: string; body?: object; headers?: Record<string, string> };
    type Rotate = (index: number, tenantId: string, path: string) => Attempt;

    /** Five requests from one new address that are wrong in some way: three are let through. */
    async function expectThree(endpoint: string, rotate: Rotate) {
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

    it.each(PAIRS)("%s has that of %s", async (ours, theirs) => {
      for (const path of [ours, theirs]) {
        await expectThree(path, (_, tenantId) => ({ body: { provider: "google", tenantId } }));
      }
    });

    const inTurn = (path: string) => [path, `${path}/`, `/x/..${path}`];
    it.each<[string, Rotate]>([
      ["tenants in the header", (_, id) => ({ headers: { "x-tenant-id": id } })],
      ["tenants in the body", (_, tenantId) => ({ body: { tenantId } })],
      ["tenants in the query", (_, id, path) => ({ path: `${path}?tenantId=${id}` })],
      ["tenants that are not there", (index) => ({ body: { tenantId: `no-${index}` } })],
      ["e-mails", (index) => ({ body: { email: `ann-${index}@example.com` } })],
      ["ways to write the path", (index, _, path) => ({ path: inTurn(path)[index % 3] ?? "" })],
      ["cookies", (index) => ({ headers: { cookie: `better-auth.session_token=${index}` } })],
      ["hosts", (index) => ({ headers: { "x-forwarded-host": `h${index}.example` } })],
    ])("threat: rate limit reset by rotation: rotating %s changes nothing", async (_, rotate) => {
      for (const path of [SIGN_IN, SIGN_UP, "/sign-in/email", "/request-password-reset"]) {
        await expectThree(path, rotate);
      }
    });

    it("even the right password waits, and gets in when the time is over", async () => {
      await world.as("jane", "acme");
      const browser = world.browser(fromNewAddress());
      vi.useFakeTimers({ toFake: ["Date"] });
      const signIn = (password: string) =>
        browser.post(SIGN_IN, { ...jane, password, tenantId: world.ids.acme });
      for (let n = 0; n < 3; n++) expect((await signIn("a wrong password")).status).toBe(401);
      const sessions = await world.rows("session");
      const limited = await signIn(PASSWORD);
      expectRefused(limited, 429);
      expect(limited.headers.get("x-retry-after")).toBe("10");
      expect(await world.rows("session")).toBe(sessions);
      vi.setSystemTime(Date.now() + 10_000);
      expect((await signIn(PASSWORD)).status).toBe(200);
    });
  },
);

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
  const PATTERNS = [
    ...PAIRS.flat(),
    ...["/sign-up/**", "/sign-in/**", "/callback/**", "/tenant/sign-up/*"],
  ];
  const guardian = { id: "guardian", middlewares: PATTERNS.map(guarding) };
  const world = shareWorld({
    auth: { socialProviders },
    plugins: [guardian as unknown as BetterAuthPlugin],
  });
  afterEach(() => deeds.clear());

  const cases = PAIRS.flatMap(([ours, theirs]) =>
    [theirs, theirs.replace(/[^/]+$/, "**"), ours].map(
      (pattern) => [ours, pattern, theirs] as const,
    ),
  );
  it.each([...cases, [SIGN_UP, "/tenant/sign-up/*", "/sign-up/email"] as const])(
    "%s is guarded by one on %s, that refuses or answers itself",
    async (ours, pattern, theirs) => {
      await world.as("jane", "acme");
      for (const deed of [refuse, answer]) {
        deeds.set(pattern, deed);
        const guarded = await world.unchanged(() =>
          world.browser().post(ours, bodyFor(ours, world)),
        );
        expect([...outcome(guarded), guarded.headers.getSetCookie()]).toEqual([403, "GUARDED", []]);
        const own = await world.at("acme").post(theirs, bodyFor(theirs, world));
        expect(outcome(own)).toEqual(
          pattern.startsWith("/tenant") ? [200, undefined] : [403, "GUARDED"],
        );
      }
    },
  );

  it("the callback is guarded by one on better-auth's", async () => {
    deeds.set("/callback/**", refuse);
    for (const path of CALLBACKS) {
      expect(outcome(await world.browser().get(path, BACK)), path).toEqual([403, "GUARDED"]);
    }
  });

  it.each(PAIRS)("%s: those that have nothing against it run once", async (ours, theirs) => {
    await world.as("jane", "acme");
    seen.length = 0;
    expect((await world.browser().post(ours, bodyFor(ours, world))).status).toBe(200);
    const matching = [theirs, theirs.replace(/[^/]+$/, "**"), ours];
    if (ours === SIGN_UP) matching.push("/tenant/sign-up/*");
    expect(seen.toSorted()).toEqual(matching.toSorted());
    // Control: they are about requests, so code of the server's own never meets them.
    await world.api.signInEmailTenant({ body: { ...jane, tenantId: world.ids.acme } });
    expect(seen).toHaveLength(matching.length);
  });
});

type Gate = { response: Response } | { request: Request } | undefined;

/** What plugins and the application see of requests, and what they do with them. */
function createWatch() {
  const watch = {
    requests: [] as string[],
    bodies: [] as string[],
    headers: {} as Record<string, string[]>,
    heard: [] as string[],
    gate: (_: Request): Gate => undefined,
    nested: undefined as (() => Promise<void>) | undefined,
  };
  const see = (who: string, headers: Headers | undefined) => {
    watch.headers[who] = [...(watch.headers[who] ?? []), ...(headers?.keys() ?? [])];
  };
  const note = (who: string) =>
    createAuthMiddleware(async ({ path, headers }) => {
      see(who, headers);
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
      watch.bodies.push(await request.clone().text());
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
  const lists = () => ({ requests: [], bodies: [], heard: [], headers: {} });
  const reset = () => Object.assign(watch, lists(), { gate: () => undefined });
  return { watch, plugin, auth, reset };
}

const ORDERS: [string, NonNullable<WorldOptions["arrange"]>][] = [
  ["first", (ours, others) => [ours, ...others]],
  ["last", (ours, others) => [...others, ours]],
];

describe.each(ORDERS)("R12: what other plugins see, with tenantAuth() %s", (_, arrange) => {
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
  });

  it("the callback: runs once, and sees better-auth's", async () => {
    await world.browser().get("/tenant/callback/google", BACK);
    expect(watch.requests).toEqual(["GET /api/auth/callback/google"]);
  });

  it("control: everything else is seen once, under its own path", async () => {
    const named = world.at("acme");
    await named.post("/sign-up/email", newcomer());
    await named.get("/get-session");
    await named.post("/tenant/create", { name: "x", slug: "xx" });
    await named.get("/tenant/sign-in-methods");
    expect(watch.requests).toEqual([
      "POST /api/auth/sign-up/email",
      "GET /api/auth/get-session",
      "POST /api/auth/tenant/create",
      "GET /api/auth/tenant/sign-in-methods",
    ]);
  });

  it("one that answers by better-auth's path answers for the tenant's", async () => {
    watch.gate = ({ url }) =>
      new URL(url).pathname === "/api/auth/sign-up/email"
        ? { response: Response.json({ code: "GATE" }, { status: 418 }) }
        : undefined;
    expect(outcome(await world.unchanged(() => post(SIGN_UP)))).toEqual([418, "GATE"]);
  });

  it("a request that one has changed counts, in a tenant too, and its body is still there", async () => {
    watch.gate = (request) => {
      const changed = new Request(request);
      changed.headers.set("x-gate", "passed");
      return { request: changed };
    };
    const body = bodyFor(SIGN_UP, world);
    expect((await world.browser().post(SIGN_UP, body)).status).toBe(200);
    expect(watch.headers.before).toContain("x-gate");
    expect(watch.bodies.map((text) => JSON.parse(text))).toMatchObject([body]);
  });

  it("a request is in its tenant when one lets known headers through only", async () => {
    await world.janes();
    const known = ["content-type", "origin", "cookie", "host", "x-tenant-id"];
    watch.gate = (request) => {
      const headers = [...request.headers].filter(([name]) => known.includes(name));
      return { request: new Request(request, { headers }) };
    };
    const answer = await post(SIGN_IN);
    expect(answer).toMatchObject({ status: 200, data: { user: { tenantId: world.ids.acme } } });
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

  it.each(["query", "body"])(
    "R7: inside a request of another tenant than its %s names it is a conflict",
    async (place) => {
      await world.janes();
      const { acme, globex } = world.ids;
      const path = place === "query" ? `${SIGN_IN}?tenantId=${globex}` : SIGN_IN;
      const inner: unknown[] = [];
      watch.nested = async () => {
        const body = { ...jane, ...(place === "body" && { tenantId: globex }) };
        const { status, data } = await world.browser().post(path, body);
        inner.push([status, JSON.stringify(data)]);
      };
      await world.browser().post(SIGN_IN, { ...jane, tenantId: acme });
      expect(inner).toEqual([[409, expect.not.stringContaining(acme)]]);
    },
  );

  it("with a base path that looks like ours", async () => {
    const moved = { ...auth, basePath: "/tenant" };
    const own = await createWorld({ auth: moved, plugins: [plugin], arrange });
    const url = `http://localhost:3000/tenant${SIGN_UP}`;
    expect((await own.browser().post(url, bodyFor(SIGN_UP, own))).status).toBe(200);
    expect(watch.requests).toEqual(["POST /tenant/sign-up/email"]);
  });
});
