import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { APIError, createAuthMiddleware } from "better-auth/api";
import { captcha } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { createInstance, PASSWORD } from "../support/instance";
import { interceptFetch } from "../support/providers";
import { createOrdered, ORDERS } from "./ordered";

const ANN = { name: "Ann", email: "ann@example.com", password: PASSWORD };
const GOOGLE = { provider: "google", callbackURL: "/welcome" };

/** better-auth's endpoints and those that stand for them in a tenant. */
const PAIRS: [ours: string, theirs: string, body: Record<string, unknown>][] = [
  ["/tenant/sign-up/email", "/sign-up/email", ANN],
  ["/tenant/sign-in/email", "/sign-in/email", ANN],
  ["/tenant/sign-in/social", "/sign-in/social", GOOGLE],
];

/** A tenant with Ann in it, on an instance with some guard. */
async function createGuarded(auth: Partial<BetterAuthOptions>, plugins: BetterAuthPlugin[] = []) {
  const google = { clientId: "global-client", clientSecret: "global-secret" };
  const instance = await createInstance({
    auth: { ...auth, socialProviders: { google, github: google } },
    plugins,
  });
  const { id: tenantId } = await instance.createTenant();
  await instance.api.signUpEmailTenant({ body: { ...ANN, tenantId } });
  const at = (headers: Record<string, string> = {}) => instance.browser(headers);
  return { instance, tenantId, at };
}

const bodyFor = (path: string, body: Record<string, unknown>, tenantId: string) => ({
  ...body,
  ...(path.endsWith("/sign-up/email") && { email: "new@example.com" }),
  tenantId,
});

describe("R12: disabledPaths", () => {
  it.each(PAIRS)("%s is closed with %s", async (ours, theirs, body) => {
    const { instance, tenantId, at } = await createGuarded({ disabledPaths: [theirs] });
    const before = [await instance.rows("user"), await instance.rows("verification")];
    const sent = bodyFor(ours, body, tenantId);
    for (const path of [ours, `${ours}/`, `${ours}?tenantId=${tenantId}`]) {
      const answer = await at().post(path, sent);
      expect(answer.status, path).toBe(404);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
    // Control: it is closed in the tenant by its own name as well, and everything else is open.
    expect((await at({ "x-tenant-id": tenantId }).post(theirs, sent)).status).toBe(404);
    expect([await instance.rows("user"), await instance.rows("verification")]).toEqual(before);
    for (const [other, , otherBody] of PAIRS.filter(([path]) => path !== ours)) {
      const answer = await at().post(other, bodyFor(other, otherBody, tenantId));
      expect(answer.status, other).toBe(200);
    }
  });

  it.each([
    "//tenant/sign-up/email",
    "/tenant//sign-up/email",
    "/tenant/sign-up//email",
    "/tenant%2Fsign-up/email",
    "/tenant/sign-up%2Femail",
    "/tenant/./sign-up/email",
    "/x/../tenant/sign-up/email",
    "/TENANT/sign-up/email",
    "/tenant/sign-up/email;x",
  ])("%s is no way around it", async (path) => {
    const { instance, tenantId, at } = await createGuarded({
      disabledPaths: ["/sign-up/email"],
      advanced: { skipTrailingSlashes: true },
    });
    const body = bodyFor("/sign-up/email", ANN, tenantId);
    expect((await at().post(path, body)).status).toBeGreaterThanOrEqual(400);
    expect(await instance.rows("user")).toBe(1);
  });

  it("/tenant/callback/google is closed with /callback/google, and no other", async () => {
    const { at } = await createGuarded({ disabledPaths: ["/callback/google"] });
    for (const method of ["GET", "POST"]) {
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      const body = method === "POST" ? { body: "code=1&state=2", headers } : {};
      const closed = await at().send("/tenant/callback/google?code=1&state=2", { method, ...body });
      expect(closed.status, method).toBe(404);
      const open = await at().send("/tenant/callback/github?code=1&state=2", { method, ...body });
      expect(open.status, method).toBe(302);
    }
  });

  it("with another base path, even one that looks like ours", async () => {
    const { tenantId, at } = await createGuarded({
      basePath: "/tenant",
      disabledPaths: ["/sign-in/email"],
    });
    const url = (path: string) => `http://localhost:3000/tenant${path}`;
    const body = bodyFor("/sign-in/email", ANN, tenantId);
    expect((await at().post(url("/tenant/sign-in/email"), body)).status).toBe(404);
    const up = bodyFor("/sign-up/email", ANN, tenantId);
    expect((await at().post(url("/tenant/sign-up/email"), up)).status).toBe(200);
  });

  it("control: what is said about the tenant's endpoint counts for that one alone", async () => {
    const { tenantId, at } = await createGuarded({ disabledPaths: ["/tenant/sign-in/email"] });
    const { email, password } = ANN;
    const closed = await at().post("/tenant/sign-in/email", { email, password, tenantId });
    expect(closed.status).toBe(404);
    const named = at({ "x-tenant-id": tenantId });
    expect((await named.post("/sign-in/email", { email, password })).status).toBe(200);
  });

  it("control: code of the server's own is not closed out, as in better-auth", async () => {
    const { instance, tenantId } = await createGuarded({
      disabledPaths: PAIRS.map(([, theirs]) => theirs),
    });
    const { api } = instance;
    const { email, password } = ANN;
    const signedIn = await api.signInEmailTenant({ body: { email, password, tenantId } });
    expect(signedIn.user.email).toBe(email);
    const body = { ...ANN, email: "new@example.com", tenantId };
    expect((await api.signUpEmailTenant({ body })).user.tenantId).toBe(tenantId);
    const social = await api.signInSocialTenant({ body: { ...GOOGLE, tenantId } });
    expect(social.url).toContain("accounts.google.com");
  });
});

// better-auth counts in memory by address and path, for all instances of a process together.
let addresses = 0;
const newAddress = () => ({ "x-forwarded-for": `198.51.100.${++addresses}` });

/** How many of some requests are let through before the first that is limited. */
async function letThrough(browser: Browser, path: string, body: unknown, tries = 8) {
  for (let n = 0; n < tries; n++) {
    const { status } = await browser.post(path, body);
    if (status === 429) return n;
    expect(status).toBeLessThan(500);
  }
  return tries;
}

type Rules = NonNullable<NonNullable<BetterAuthOptions["rateLimit"]>["customRules"]>;

describe("R12: rate limits that the application sets", () => {
  const ONE = { window: 60, max: 1 };
  const RULES: [name: string, rules: Rules][] = [
    ["a rule", { "/sign-up/email": ONE, "/sign-in/email": ONE, "/sign-in/social": ONE }],
    ["a wildcard", { "/sign-in/*": ONE, "/sign-up/*": ONE }],
    ["two wildcards", { "/sign-*/*": ONE }],
    ["a function", { "/sign-in/*": async () => ONE, "/sign-up/*": () => ONE }],
    [
      "a function that goes by what it is given",
      { "/sign-*/*": (_: Request, given) => ({ ...given, max: given.max - 2 }) },
    ],
  ];
  const cases = RULES.flatMap(([name, rules]) =>
    PAIRS.map(([ours, theirs, body]) => [name, ours, rules, theirs, body] as const),
  );

  it.each(cases)("%s counts for %s", async (_, ours, customRules, theirs, body) => {
    const { tenantId, at } = await createGuarded({ rateLimit: { enabled: true, customRules } });
    const sent = bodyFor(ours, body, tenantId);
    const control = at({ ...newAddress(), "x-tenant-id": tenantId });
    expect(await letThrough(control, theirs, sent)).toBe(1);
    expect(await letThrough(at(newAddress()), ours, sent)).toBe(1);
  });

  it.each(PAIRS)("%s has no limit where %s has none", async (ours, theirs, body) => {
    const customRules = { [theirs]: false as const };
    const { tenantId, at } = await createGuarded({ rateLimit: { enabled: true, customRules } });
    const sent = bodyFor(ours, body, tenantId);
    const control = at({ ...newAddress(), "x-tenant-id": tenantId });
    expect(await letThrough(control, theirs, sent)).toBe(8);
    expect(await letThrough(at(newAddress()), ours, sent)).toBe(8);
  });

  it("the callback has the limit of better-auth's", async () => {
    const customRules = { "/callback/*": ONE };
    const { at } = await createGuarded({ rateLimit: { enabled: true, customRules } });
    for (const path of ["/callback/google", "/tenant/callback/google"]) {
      const browser = at(newAddress());
      expect((await browser.get(path, { query: { state: "x", code: "y" } })).status).toBe(302);
      const limited = await browser.get(path, { query: { state: "x", code: "y" } });
      expect(limited.status, path).toBe(429);
    }
  });

  it("a rule of another plugin counts as well", async () => {
    const limits: BetterAuthPlugin = {
      id: "limits",
      rateLimit: [{ pathMatcher: (path) => path === "/sign-in/email", ...ONE }],
    };
    const { tenantId, at } = await createGuarded({ rateLimit: { enabled: true } }, [limits]);
    const sent = bodyFor("/sign-in/email", ANN, tenantId);
    const control = at({ ...newAddress(), "x-tenant-id": tenantId });
    expect(await letThrough(control, "/sign-in/email", sent)).toBe(1);
    expect(await letThrough(at(newAddress()), "/tenant/sign-in/email", sent)).toBe(1);
  });

  it("control: a rule for the tenant's own path counts for it", async () => {
    const customRules = { "/tenant/sign-in/email": { window: 60, max: 5 } };
    const { tenantId, at } = await createGuarded({ rateLimit: { enabled: true, customRules } });
    const sent = bodyFor("/sign-in/email", ANN, tenantId);
    expect(await letThrough(at(newAddress()), "/tenant/sign-in/email", sent)).toBe(5);
    const control = at({ ...newAddress(), "x-tenant-id": tenantId });
    expect(await letThrough(control, "/sign-in/email", sent)).toBe(3);
  });
});

/** A plugin that guards a path by a middleware, and notes who came. */
function guardian(path: string, refuses: boolean) {
  const seen: string[] = [];
  const plugin: BetterAuthPlugin = {
    id: "guardian",
    middlewares: [
      {
        path,
        middleware: createAuthMiddleware(async (ctx) => {
          seen.push(new URL(ctx.request?.url ?? "").pathname);
          if (refuses) throw new APIError("FORBIDDEN", { code: "GUARDED", message: "no" });
        }),
      },
    ],
  };
  return { plugin, seen };
}

describe("R12: middlewares of other plugins", () => {
  const cases = PAIRS.flatMap(([ours, theirs, body]) => [
    [ours, theirs, theirs, body] as const,
    [ours, theirs.replace(/[^/]+$/, "**"), theirs, body] as const,
  ]);

  it.each(cases)("%s is guarded by one on %s", async (ours, pattern, theirs, body) => {
    const { plugin } = guardian(pattern, true);
    const { instance, tenantId, at } = await createGuarded({}, [plugin]);
    const sent = bodyFor(ours, body, tenantId);
    const control = await at({ "x-tenant-id": tenantId }).post(theirs, sent);
    expect([control.status, control.code]).toEqual([403, "GUARDED"]);
    const answer = await at().post(ours, sent);
    expect([answer.status, answer.code]).toEqual([403, "GUARDED"]);
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(await instance.rows("user")).toBe(1);
  });

  it("the callback is guarded by one on better-auth's", async () => {
    const { plugin } = guardian("/callback/**", true);
    const { at } = await createGuarded({}, [plugin]);
    for (const path of ["/callback/google", "/tenant/callback/google"]) {
      const answer = await at().get(path, { query: { state: "x", code: "y" } });
      expect([answer.status, answer.code], path).toEqual([403, "GUARDED"]);
    }
  });

  it.each(PAIRS)("%s: one that has nothing against it runs once", async (ours, theirs, body) => {
    const { plugin, seen } = guardian(theirs, false);
    const { instance, tenantId, at } = await createGuarded({}, [plugin]);
    const sent = bodyFor(ours, body, tenantId);
    expect((await at().post(ours, sent)).status).toBe(200);
    expect(seen).toHaveLength(1);
    // Control: it is about requests, so code of the server's own never meets it.
    const { email, password } = ANN;
    await instance.api.signInEmailTenant({ body: { email, password, tenantId } });
    expect(seen).toHaveLength(1);
  });

  it("control: one on the tenant's own path still guards it", async () => {
    const { plugin } = guardian("/tenant/sign-in/email", true);
    const { tenantId, at } = await createGuarded({}, [plugin]);
    const sent = bodyFor("/sign-in/email", ANN, tenantId);
    expect((await at().post("/tenant/sign-in/email", sent)).code).toBe("GUARDED");
    expect((await at({ "x-tenant-id": tenantId }).post("/sign-in/email", sent)).status).toBe(200);
  });
});

/** A plugin that looks at requests, and may answer or change them. */
function gatekeeper(
  onRequest: (request: Request) => ReturnType<typeof answering> = () => undefined,
) {
  const seen: string[] = [];
  const plugin: BetterAuthPlugin = {
    id: "gatekeeper",
    onRequest: async (request) => {
      seen.push(`${request.method} ${new URL(request.url).pathname}`);
      return onRequest(request);
    },
  };
  return { plugin, seen };
}

function answering(_: Request): { response: Response } | { request: Request } | undefined {
  return { response: Response.json({ code: "GATE" }, { status: 418 }) };
}

describe.each(ORDERS)("R12: onRequest of other plugins, with tenantAuth() %s", (order) => {
  async function setUp(plugin: BetterAuthPlugin, options: Partial<BetterAuthOptions> = {}) {
    const google = { clientId: "global-client", clientSecret: "global-secret" };
    const instance = await createOrdered(order, [plugin], {
      socialProviders: { google },
      ...options,
    });
    const { id: tenantId } = await instance.createTenant("acme");
    return { ...instance, tenantId };
  }

  it.each(PAIRS)("%s: runs once, and sees %s", async (ours, theirs, body) => {
    const { plugin, seen } = gatekeeper();
    const { browser, tenantId } = await setUp(plugin);
    await browser().post("/tenant/sign-up/email", { ...ANN, tenantId });
    seen.length = 0;
    const answer = await browser().post(ours, bodyFor(ours, body, tenantId));
    expect(answer.status).toBe(200);
    expect(seen).toEqual([`POST /api/auth${theirs}`]);
  });

  it("the callback: runs once, and sees better-auth's", async () => {
    const { plugin, seen } = gatekeeper();
    const { browser } = await setUp(plugin);
    await browser().get("/tenant/callback/google", { query: { state: "x", code: "y" } });
    expect(seen).toEqual(["GET /api/auth/callback/google"]);
  });

  it("control: everything else is seen once, under its own path", async () => {
    const { plugin, seen } = gatekeeper();
    const { browser, tenantId } = await setUp(plugin);
    const named = browser({ "x-tenant-id": tenantId });
    await named.post("/sign-up/email", ANN);
    await named.get("/get-session");
    await named.post("/tenant/create", { name: "x", slug: "xx" });
    await named.get("/tenant/sign-in-methods");
    expect(seen).toEqual([
      "POST /api/auth/sign-up/email",
      "GET /api/auth/get-session",
      "POST /api/auth/tenant/create",
      "GET /api/auth/tenant/sign-in-methods",
    ]);
  });

  it("one that answers by better-auth's path answers for the tenant's", async () => {
    const { plugin } = gatekeeper((request) =>
      new URL(request.url).pathname === "/api/auth/sign-up/email" ? answering(request) : undefined,
    );
    const { browser, tenantId, rows } = await setUp(plugin);
    const answer = await browser().post("/tenant/sign-up/email", { ...ANN, tenantId });
    expect([answer.status, answer.code]).toEqual([418, "GATE"]);
    expect(await rows("user")).toBe(0);
  });

  it("a request that one has changed is the one that counts, in a tenant too", async () => {
    const { plugin } = gatekeeper((request) => {
      const changed = new Request(request);
      changed.headers.set("x-gate", "passed");
      return { request: changed };
    });
    const heard: (string | null | undefined)[] = [];
    const before = createAuthMiddleware(async ({ path, headers }) => {
      if (path === "/sign-up/email") heard.push(headers?.get("x-gate"));
    });
    const { browser, tenantId } = await setUp(plugin, { hooks: { before } });
    const body = { ...ANN, tenantId };
    expect((await browser().post("/tenant/sign-up/email", body)).status).toBe(200);
    expect(heard).toEqual(["passed"]);
  });

  it("a body that one has read is still there", async () => {
    const bodies: unknown[] = [];
    const plugin: BetterAuthPlugin = {
      id: "reader",
      onRequest: async (request) => {
        bodies.push(await request.clone().json());
        return undefined;
      },
    };
    const { browser, tenantId } = await setUp(plugin);
    const body = { ...ANN, tenantId };
    expect((await browser().post("/tenant/sign-up/email", body)).status).toBe(200);
    expect(bodies).toEqual([expect.objectContaining({ email: ANN.email, password: PASSWORD })]);
  });

  it("with a base path that looks like ours", async () => {
    const { plugin, seen } = gatekeeper();
    const { browser, tenantId } = await setUp(plugin, { basePath: "/tenant" });
    const url = "http://localhost:3000/tenant/tenant/sign-up/email";
    expect((await browser().post(url, { ...ANN, tenantId })).status).toBe(200);
    expect(seen).toEqual(["POST /tenant/sign-up/email"]);
  });

  it("captcha guards the tenant's sign-in, and asks its provider once", async () => {
    const verify = "https://challenges.cloudflare.com/turnstile/v0/siteverify";
    const asked = interceptFetch({ [verify]: () => ({ success: true }) });
    const plugin = captcha({ provider: "cloudflare-turnstile", secretKey: "key" });
    const { browser, tenantId, rows } = await setUp(plugin);
    const body = { ...ANN, tenantId };
    const refused = await browser().post("/tenant/sign-up/email", body);
    expect([refused.status, refused.code]).toEqual([400, "MISSING_RESPONSE"]);
    expect(await rows("user")).toBe(0);
    const headers = { "x-captcha-response": "human" };
    expect((await browser(headers).post("/tenant/sign-up/email", body)).status).toBe(200);
    expect(asked).toHaveLength(1);
  });
});

describe.each(ORDERS)("R12: hooks of better-auth's paths, with tenantAuth() %s", (order) => {
  const cases = PAIRS.map(([ours, theirs, body]) => [ours, theirs, body] as const);

  it.each(cases)("%s: those for %s run once", async (ours, theirs, body) => {
    const heard: string[] = [];
    const note = (who: string) =>
      createAuthMiddleware(async ({ path }) => void (path === theirs && heard.push(who)));
    const plugin: BetterAuthPlugin = {
      id: "listener",
      hooks: {
        before: [{ matcher: ({ path }) => path === theirs, handler: note("plugin before") }],
        after: [{ matcher: ({ path }) => path === theirs, handler: note("plugin after") }],
      },
    };
    const google = { clientId: "global-client", clientSecret: "global-secret" };
    const instance = await createOrdered(order, [plugin], {
      socialProviders: { google },
      hooks: { before: note("before"), after: note("after") },
    });
    const { id: tenantId } = await instance.createTenant("acme");
    await instance.browser().post("/tenant/sign-up/email", { ...ANN, tenantId });
    heard.length = 0;
    const answer = await instance.browser().post(ours, bodyFor(ours, body, tenantId));
    expect(answer.status).toBe(200);
    expect(heard.toSorted()).toEqual(["after", "before", "plugin after", "plugin before"]);
  });
});
