import { apiKey } from "@better-auth/api-key";
import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import { passkey } from "@better-auth/passkey";
import { scim } from "@better-auth/scim";
import { sso } from "@better-auth/sso";
import {
  type BetterAuthOptions,
  type BetterAuthPlugin,
  betterAuth,
  type HookEndpointContext,
} from "better-auth";
import { APIError, createAuthEndpoint, createAuthMiddleware, signInEmail } from "better-auth/api";
import { parseCookies } from "better-auth/cookies";
import { makeSignature } from "better-auth/crypto";
import { type DBFieldAttribute, getAuthTables } from "better-auth/db";
import { getMigrations } from "better-auth/db/migration";
import type { OAuthProvider } from "better-auth/oauth2";
import {
  admin,
  anonymous,
  bearer,
  deviceAuthorization,
  genericOAuth,
  jwt,
  multiSession,
  oauthPopup,
  oneTimeToken,
  organization,
  phoneNumber,
  siwe,
  twoFactor,
  username,
} from "better-auth/plugins";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import { expect, it, onTestFinished, vi } from "vitest";
import { ADMIN_ENDPOINTS } from "../src/core/admin-endpoints";
import { ADAPTER_METHODS, type AdapterCall, type AdapterMethod } from "../src/core/database";
import { SIGN_IN_METHODS } from "../src/core/sign-in-endpoints";
import { DEFAULT_SECRET } from "../src/features/oauth/config-store";
import { build } from "../src/features/oauth/provider";
import { BY_ID_TOKEN } from "../src/features/oauth/tokens";
import { createSamlProvider } from "../src/testing/makers/saml";
import { oidc, samlRegistration } from "./features/enterprise/world";
import type { Browser } from "./support/browser";
import { createDatabase, databases } from "./support/database";
import { ZOOM_SHOWS_OPTIONS } from "./support/differences";
import { startIdentityProvider } from "./support/identity-provider";
import {
  BASE_URL,
  createInstance,
  createPlainInstance,
  newcomer,
  PASSWORD,
} from "./support/instance";
import { fakeNetwork, signToken } from "./support/providers";
import { createMemory, mapStorage } from "./support/stores";

/*
 * What the plugin leans on and better-auth promises nowhere. When one of these tests fails after an
 * update of better-auth, isolation may have a hole, even if every other test still passes.
 */

/** better-auth without our plugin. */
async function plain(options: Partial<BetterAuthOptions> = {}) {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  const { auth, browser } = await createPlainInstance(database, options, options.plugins ?? []);
  return { auth, database, browser: browser() };
}

const somebody = (email = "somebody@example.com") => ({ name: "S", email, password: PASSWORD });
const google = { clientId: "id", clientSecret: "secret" };

type Handler = Parameters<typeof createAuthMiddleware>[0];
const hookOn = (path: string, handler: Handler) => ({
  matcher: (ctx: HookEndpointContext) => ctx.path === path,
  handler: createAuthMiddleware(handler),
});

/** A hook that never runs: its matcher sees the context. */
const looking = (look: (ctx: HookEndpointContext) => void) => ({
  matcher: (ctx: HookEndpointContext) => {
    look(ctx);
    return false;
  },
  handler: createAuthMiddleware(async () => {}),
});

interface SomeEndpoint {
  path: string;
  options: { method?: string | string[] };
}

/** The endpoints of an instance that have a path. */
const endpointsOf = ({ api }: { api: object }): SomeEndpoint[] =>
  Object.values(api).filter(({ path }: Partial<SomeEndpoint>) => path);

type Note = (method: AdapterMethod, call: AdapterCall & { select?: string[] }) => void;

/** A plugin that sees every call of the adapter about sessions, inside transactions too. */
function watchSessions(note: Note): BetterAuthPlugin {
  const watch = (adapter: DBTransactionAdapter) => {
    for (const method of ADAPTER_METHODS) {
      const run = adapter[method] as (call: AdapterCall) => unknown;
      const noted = (call: AdapterCall) => {
        if (call.model === "session") note(method, call);
        return run.call(adapter, call);
      };
      Object.assign(adapter, { [method]: noted });
    }
  };
  return {
    id: "watch-sessions",
    init({ adapter }) {
      watch(adapter);
      const { transaction } = adapter;
      adapter.transaction = (run) =>
        transaction.call(adapter, (inner: DBTransactionAdapter) => {
          const watched = { ...inner };
          watch(watched);
          return run(watched as never);
        }) as never;
    },
  };
}

it("the adapter that was changed in place still has better-auth's check of the tables", async () => {
  const instance = await createInstance({ migrate: false });
  const mismatch = /Database schema mismatch[\s\S]*Missing tables[\s\S]*tenantOauthConfig/;
  await expect(instance.browser().get("/get-session")).rejects.toThrow(mismatch);
  await (await getMigrations(instance.auth.options)).runMigrations();
  expect((await instance.browser().get("/get-session")).status).toBe(200);
});

it("better-auth assigns what all plugins have brought, after all of them", async () => {
  const seen: unknown[] = [];
  const brings = (id: string): BetterAuthPlugin => ({
    id,
    init: (ctx) => {
      // What plugins before it have brought is in none of the options that a plugin sees.
      seen.push([id, Object.keys(ctx.options).filter((key) => key.startsWith("mark"))]);
      return { context: { ...ctx }, options: { [`mark-${id}`]: true } };
    },
  });
  const watch: BetterAuthPlugin = {
    id: "watch",
    init: (ctx) => {
      let { options } = ctx;
      const set = (value: object) => {
        options = value;
        seen.push(["assigned", Object.keys(value).filter((key) => key.startsWith("mark"))]);
      };
      Object.defineProperty(ctx, "options", { get: () => options, set, enumerable: true });
    },
  };
  const { auth } = await plain({ plugins: [brings("a"), watch, brings("b")] });
  await auth.$context;
  expect(seen.slice(0, 3)).toEqual([
    ["a", []],
    ["b", []],
    ["assigned", []],
  ]);
  const [name, marks] = seen[3] as [string, string[]];
  expect([name, marks.sort(), seen.length]).toEqual(["assigned", ["mark-a", "mark-b"], 4]);
});

it("a hook may be a plain function: one that answers nothing lets the request pass", async () => {
  const seen: unknown[] = [];
  const handler = async ({ path, headers }: HookEndpointContext) => {
    seen.push([path, headers?.get("x-refuse")]);
    if (headers?.has("x-refuse")) throw new APIError("FORBIDDEN", { code: "REFUSED" });
  };
  const before = [{ matcher: () => true, handler: handler as never }];
  const { browser } = await plain({ plugins: [{ id: "hook", hooks: { before } }] });
  const refused = await browser.get("/get-session", { headers: { "x-refuse": "yes" } });
  expect([refused.status, refused.code]).toEqual([403, "REFUSED"]);
  expect((await browser.post("/sign-up/email", somebody())).status).toBe(200);
  expect((await browser.get("/get-session")).data).toMatchObject({ user: { name: "S" } });
  expect(seen).toEqual([
    ["/get-session", "yes"],
    ["/sign-up/email", null],
    ["/get-session", null],
  ]);
});

it("what better-auth did not expect is an empty 500 without headers", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => void vi.restoreAllMocks());
  const fail = createAuthEndpoint("/fail", { method: "GET" }, async () => {
    throw new Error("unexpected");
  });
  const { auth } = await plain({ plugins: [{ id: "failing", endpoints: { fail } }] });
  const answer = await auth.handler(new Request(`${BASE_URL}/fail`));
  expect([answer.status, answer.statusText, answer.body, ...answer.headers]).toEqual([
    500,
    "Internal Server Error",
    null,
  ]);
});

it("a dispatch keeps what a hook has written on the context, even if other hooks replace the context", async () => {
  const MARK = Symbol("mark");
  const seen: unknown[] = [];
  const hooks = {
    before: [
      hookOn("/sign-up/email", async (ctx) => void Object.assign(ctx.context, { [MARK]: true })),
      // As @better-auth/api-key does it.
      hookOn("/sign-up/email", async (ctx) => ({ context: ctx })),
    ],
    after: [
      looking(({ path, context }) => path === "/sign-up/email" && seen.push(MARK in context)),
    ],
  };
  const { browser } = await plain({ plugins: [{ id: "mark", hooks }] });
  await browser.post("/sign-up/email", somebody());
  expect(seen).toEqual([true]);
});

it("what is written on the current endpoint is what later hooks and the endpoint see", async () => {
  type Call = Pick<HookEndpointContext, "query" | "body" | "params" | "headers" | "request">;
  const look = ({ query, body, params, request }: Call) => [
    query?.token,
    body?.token,
    params?.token,
    request?.headers.get("x-token"),
  ];
  const seen: unknown[] = [];
  const change = async () => {
    const endpoint = tryGetCurrentAuthEndpointContext() as Call;
    for (const place of ["query", "body", "params"] as const) {
      endpoint[place] = { ...endpoint[place], token: `${place}, changed` };
    }
    const headers = new Headers({ "x-token": "header, changed" });
    endpoint.request = new Request(BASE_URL, { headers });
  };
  const before = [
    { matcher: () => true, handler: createAuthMiddleware(change) },
    {
      matcher: () => true,
      handler: createAuthMiddleware(async (ctx) => {
        seen.push(look(ctx as Call));
        // As @better-auth/api-key does it.
        return { context: ctx };
      }),
    },
  ];
  const call = createAuthEndpoint("/call/:token", { method: "POST" }, async (ctx) => {
    seen.push(look(ctx as Call));
  });
  const plugin = { id: "changes", endpoints: { call }, hooks: { before } };
  const { browser } = await plain({ plugins: [plugin] });
  expect((await browser.post("/call/param?token=query", { token: "body" })).status).toBe(200);
  const changed = ["query, changed", "body, changed", "params, changed", "header, changed"];
  expect(seen).toEqual([changed, changed]);
});

it("all hooks of a call and its endpoint get one context, or its copy after a hook returned the call", async () => {
  let seen: object[] = [];
  const see = ({ context }: { context: object }) => void seen.push(context);
  const seeing = createAuthMiddleware(async (ctx) => see(ctx));
  const hooks = [looking(see), { matcher: () => true, handler: seeing }];
  const watch = (id: string): BetterAuthPlugin => ({ id, hooks: { before: hooks, after: hooks } });
  const call = createAuthEndpoint("/call", { method: "GET", use: [seeing] }, async (ctx) => {
    see(ctx);
    see(tryGetCurrentAuthEndpointContext() as HookEndpointContext);
  });
  const returning = {
    matcher: ({ headers }: HookEndpointContext) => headers?.has("x-return") ?? false,
    // As @better-auth/api-key does it.
    handler: createAuthMiddleware(async (ctx) => ({ context: ctx })),
  };
  const middle = { id: "middle", endpoints: { call }, hooks: { before: [returning] } };
  const plugins = [watch("first"), middle, watch("last")];
  for (const options of [{}, { baseURL: { allowedHosts: ["localhost:3000"] } }]) {
    const { auth, browser } = await plain({ ...options, plugins });
    const api = auth.api as unknown as { call: (input: object) => Promise<unknown> };
    const ofOthers = new Set<object>([await auth.$context]);
    const contextsOf = async (more: Record<string, string>, isRequest: boolean) => {
      const headers = { host: "localhost:3000", ...more };
      seen = [];
      await (isRequest ? browser.get("/call", { headers }) : api.call({ headers }));
      // Two of each plugin before the endpoint, three at the endpoint, two of each after it.
      expect(seen).toHaveLength(4 + 3 + 4);
      const contexts = [...new Set(seen)];
      expect(contexts.filter((context) => ofOthers.has(context))).toEqual([]);
      for (const context of contexts) ofOthers.add(context);
      return contexts.map((context) => seen.filter((other) => other === context).length);
    };
    for (const isRequest of [true, true, false, false]) {
      expect(await contextsOf({}, isRequest)).toEqual([11]);
      expect(await contextsOf({ "x-return": "yes" }, isRequest)).toEqual([4, 7]);
    }
  }
});

it("better-auth checks addresses in the body before any hook, when there is no endpoint yet", async () => {
  let seen: string[] = [];
  const listening: BetterAuthPlugin = {
    id: "listening",
    init(ctx) {
      const { isTrustedOrigin } = ctx;
      ctx.isTrustedOrigin = function (address, settings) {
        const path = tryGetCurrentAuthEndpointContext()?.path ?? "nowhere";
        seen.push(`${new URL(address).pathname} at ${path}`);
        return isTrustedOrigin.call(this, address, settings);
      };
    },
    hooks: { before: [looking(({ path }) => void seen.push(`hooks of ${path}`))] },
  };
  const { browser } = await plain({
    plugins: [listening],
    socialProviders: { google },
    trustedOrigins: ["https://app.example"],
    emailAndPassword: { enabled: true, sendResetPassword: async () => {} },
  });
  const at = (page: string) => `https://app.example/${page}`;
  const of = async (run: () => Promise<{ status: number }>) => {
    seen = [];
    expect((await run()).status).toBeLessThan(400);
    return seen;
  };
  const person = newcomer();
  const { email, password } = person;
  const signUp = { ...person, callbackURL: at("welcome") };
  expect(await of(() => browser.post("/sign-up/email", signUp))).toEqual([
    "/welcome at nowhere",
    "hooks of /sign-up/email",
  ]);
  const signIn = { email, password, callbackURL: at("home") };
  expect(await of(() => browser.post("/sign-in/email", signIn))).toEqual([
    "/home at nowhere",
    "hooks of /sign-in/email",
  ]);
  const reset = { email, redirectTo: at("reset") };
  expect(await of(() => browser.post("/request-password-reset", reset))).toEqual([
    "/reset at nowhere",
    "hooks of /request-password-reset",
    "/reset at /request-password-reset",
  ]);
  const social = { callbackURL: at("page"), errorCallbackURL: at("error") };
  const start = { provider: "google", ...social, newUserCallbackURL: at("new") };
  expect(await of(() => browser.post("/sign-in/social", start))).toEqual([
    ...["page", "error", "new"].map((page) => `/${page} at nowhere`),
    "hooks of /sign-in/social",
  ]);
  const query = { callbackURL: at("link") };
  const signInWithQuery = () => browser.post("/sign-in/email", { email, password }, { query });
  expect(await of(signInWithQuery)).toEqual(["/link at nowhere", "hooks of /sign-in/email"]);
  // Addresses in the query of a link, by the endpoint itself.
  expect(await of(() => browser.get("/reset-password/token", { query }))).toEqual([
    "hooks of /reset-password/:token",
    "/link at /reset-password/:token",
  ]);
});

it.each(["memory", ...databases] as const)(
  "an adapter has no other methods that read or write rows: %s",
  async (kind) => {
    // The compiler wants a line here for every member that better-auth adds to its adapters.
    const others: Record<Exclude<keyof DBAdapter, AdapterMethod>, string> = {
      id: "string",
      options: "object",
      createSchema: "function",
      transaction: "function",
    };
    const known = Object.fromEntries(ADAPTER_METHODS.map((name) => [name, "function"]));
    const members = (adapter: object) => {
      const found: Record<string, string> = {};
      for (let at = adapter; at !== Object.prototype; at = Object.getPrototypeOf(at)) {
        for (const name of Object.getOwnPropertyNames(at))
          found[name] ??= typeof Reflect.get(adapter, name);
      }
      return found;
    };
    const database = kind === "memory" ? createMemory().database : await createDatabase(kind);
    onTestFinished(() => database.close());
    const { adapter } = await betterAuth({
      ...{ baseURL: BASE_URL, database: database.option },
      advanced: { database: { validateSchema: false } },
    }).$context;
    const inside = await adapter.transaction(async (inner) => members(inner));
    for (const found of [members(adapter), inside]) {
      expect({ ...found, createSchema: "function" }).toEqual({ ...known, ...others });
    }
  },
);

it("an endpoint may be a plain function with a path and options", async () => {
  const run = async (ctx: { body: unknown }) => ({
    response: { got: ctx.body },
    headers: new Headers({ "x-own": "yes" }),
    status: 201,
  });
  const endpoint = Object.assign(run, { path: "/bare", options: { method: "POST" } });
  const { browser } = await plain({
    plugins: [{ id: "bare", endpoints: { bare: endpoint as never } }],
  });
  const { status, data, headers } = await browser.post("/bare", { a: 1 });
  expect([status, data, headers.get("x-own")]).toEqual([201, { got: { a: 1 } }, "yes"]);
});

it("what onRequest writes on its context reaches the endpoint of that request alone", async () => {
  const MARK = Symbol("mark");
  const seen: boolean[] = [];
  const mark: BetterAuthPlugin = {
    id: "mark",
    onRequest: async (request, ctx) => {
      if (request.headers.has("x-mark")) Object.assign(ctx, { [MARK]: true });
    },
    hooks: { before: [looking(({ context }) => seen.push(MARK in context))] },
  };
  for (const options of [{}, { baseURL: { allowedHosts: ["localhost:3000"] } }]) {
    seen.length = 0;
    const { browser, auth } = await plain({ ...options, plugins: [mark] });
    await browser.get("/ok", { headers: { "x-mark": "yes" } });
    await browser.get("/ok");
    await auth.api.ok({ headers: new Headers({ host: "localhost:3000" }) } as never);
    expect(seen).toEqual([true, false, false]);
  }
});

/** What every endpoint of the admin plugin accepts. */
const ADMIN_INPUT = {
  ...{ userId: "x", role: "user", sessionToken: "x", newPassword: PASSWORD },
  ...{ email: "x@example.com", name: "X", data: {}, permissions: { user: ["ban"] } },
};

it("the admin plugin has the endpoints that are written down, and checks the caller at every one", async () => {
  const paths = Object.values(admin().endpoints).map(({ path }) => path);
  expect(paths.toSorted()).toEqual(Object.keys(ADMIN_ENDPOINTS).toSorted());
  const { browser } = await plain({ plugins: [admin()] });
  await browser.post("/sign-up/email", somebody());
  for (const path of paths) {
    const { status, data } = /list-users|get-user/.test(path)
      ? await browser.get(path, { query: { id: "x" } })
      : await browser.post(path, ADMIN_INPUT);
    // has-permission tells, and stop-impersonating is for those who are impersonating somebody.
    if (path === "/admin/has-permission") expect(data.success).toBe(false);
    else expect(status, path).toBe(path === "/admin/stop-impersonating" ? 400 : 403);
  }
});

it("better-auth looks up the session of a request by its token alone, without a selection", async () => {
  let found: unknown[] = [];
  const watch = watchSessions((method, { where = [], select }) => {
    if (method !== "findOne") return;
    const conditions = where.map(({ field, operator = "eq", value }) => [field, operator, value]);
    found.push({ conditions, select });
  });
  const alone = (token: unknown) => ({ conditions: [["token", "eq", token]], select: undefined });
  const plugins = [
    ...[watch, admin(), apiKey(), bearer(), jwt(), multiSession(), oneTimeToken()],
    ...[organization(), passkey(), twoFactor(), username()],
  ];
  const { auth, browser } = await plain({ plugins, user: { deleteUser: { enabled: true } } });
  const input = { ...ADMIN_INPUT, password: PASSWORD, currentPassword: PASSWORD, slug: "x" };
  const asking = new Set<string>();
  for (const { path, options } of endpointsOf(auth)) {
    for (const credential of ["cookie", "bearer"]) {
      browser.cookies.clear();
      const { data } = await browser.post("/sign-up/email", newcomer());
      const cookie = browser.cookieHeader();
      browser.cookies.clear();
      const headers: Record<string, string> =
        credential === "cookie" ? { cookie } : { authorization: `Bearer ${data.token}` };
      found = [];
      if ([options.method].flat().includes("GET")) {
        await browser.get(path, { headers, query: { id: "x" } });
      } else await browser.post(path, input, { headers });
      expect(found, path).toEqual(found.map(() => alone(data.token)));
      if (found.length) asking.add(`${path} by ${credential}`);
    }
  }
  const some = ["/get-session", "/list-sessions", "/change-password", "/multi-session/revoke"];
  const both = some.flatMap((path) => [`${path} by cookie`, `${path} by bearer`]);
  expect([...asking]).toEqual(expect.arrayContaining(both));
  // Nearly all endpoints of these plugins take no input, or the one above.
  expect(asking.size).toBeGreaterThan(80);

  browser.cookies.clear();
  const jane = await browser.post("/sign-up/email", newcomer());
  found = [];
  await browser.post("/sign-up/email", newcomer());
  expect(found).toEqual([alone(jane.data.token)]);
  found = [];
  const set = await browser.post("/multi-session/set-active", { sessionToken: jane.data.token });
  expect([set.status, found]).toEqual([200, [alone(jane.data.token)]]);
  const { data } = await browser.get("/one-time-token/generate");
  found = [];
  const verified = await browser.post("/one-time-token/verify", data);
  expect([verified.status, found]).toEqual([200, [alone(jane.data.token)]]);
});

it("better-auth reads sessions without their users only to delete or list them", async () => {
  let calls: string[] = [];
  const watch = watchSessions((method, { where = [], select, join }) => {
    if (!/many|delete/i.test(method)) return;
    const columns = where.map(({ field }) => field).join(" and ");
    // The next call deletes what was read.
    const deletes = `to delete by ${columns}`;
    if (method === "findMany") {
      const users = join?.user ? " with users" : "";
      calls.push(`by ${columns}${users}${select ? `: ${select}` : ""}`);
    } else if (method.startsWith("delete") && calls.at(-1) === `by ${columns}`) {
      calls.splice(-1, 1, deletes);
    } else calls.push(`${method} by ${columns}`);
  });
  const plugins = [watch, admin({ defaultRole: "admin" }), multiSession()];
  const { browser } = await plain({ plugins, user: { deleteUser: { enabled: true } } });
  type Person = { token: string; user: { id: string } };
  const signUp = async () => (await browser.post<Person>("/sign-up/email", newcomer())).data;
  /** What an endpoint reads, called by the second of two people who signed up in a browser. */
  const readsOf = async (path: string, input?: (first: Person, second: Person) => object) => {
    browser.cookies.clear();
    const [first, second] = [await signUp(), await signUp()];
    calls = [];
    const { status } = input
      ? await browser.post(path, input(first, second))
      : await browser.get(path);
    expect([path, status]).toEqual([path, 200]);
    return calls;
  };
  const user = ({ user }: Person) => ({ userId: user.id });
  const session = ({ token }: Person) => ({ sessionToken: token });
  const ofUser = "to delete by userId";

  // By tokens of cookies, to answer with them or to sign in with one.
  expect(await readsOf("/multi-session/list-device-sessions")).toEqual([
    "by token and expiresAt with users",
  ]);
  expect(await readsOf("/multi-session/revoke", (_, second) => session(second))).toEqual([
    "to delete by token",
    "by token with users",
  ]);
  // To list them.
  expect(await readsOf("/list-sessions")).toEqual(["by userId and expiresAt"]);
  expect(await readsOf("/revoke-other-sessions", () => ({}))).toEqual(["by userId"]);
  expect(await readsOf("/admin/list-user-sessions", user)).toEqual(["by userId"]);
  // To delete them.
  expect(await readsOf("/sign-out", () => ({}))).toEqual([
    "to delete by token",
    "to delete by token",
  ]);
  const password = { currentPassword: PASSWORD, newPassword: `${PASSWORD}!` };
  const change = () => ({ ...password, revokeOtherSessions: true });
  expect(await readsOf("/change-password", change)).toEqual([ofUser]);
  expect(await readsOf("/revoke-sessions", () => ({}))).toEqual([ofUser]);
  expect(await readsOf("/admin/revoke-user-session", session)).toEqual(["to delete by token"]);
  expect(await readsOf("/admin/revoke-user-sessions", user)).toEqual([ofUser]);
  expect(await readsOf("/admin/ban-user", user)).toEqual([ofUser]);
  expect(new Set(await readsOf("/admin/remove-user", user))).toEqual(new Set([ofUser]));
  const reads = await readsOf("/delete-user", () => ({ password: PASSWORD }));
  expect(new Set(reads)).toEqual(new Set([ofUser]));
});

it("when an admin endpoint looks up a session, the token of bearer() is in the cookie", async () => {
  const read: unknown[] = [];
  const watch = watchSessions((method, { where = [] }) => {
    const [clause] = where;
    if (method !== "findOne" || clause?.field !== "token") return;
    const { headers, context } = tryGetCurrentAuthEndpointContext() as HookEndpointContext;
    const name = context?.authCookies.sessionToken.name ?? "";
    const cookie = parseCookies(headers?.get("cookie") ?? "").get(name) ?? "";
    read.push([clause.value, decodeURIComponent(cookie).split(".")[0]]);
  });
  const { auth, browser } = await plain({ plugins: [watch, admin(), bearer()] });
  const { data, headers } = await browser.post("/sign-up/email", newcomer());
  const signed = headers.get("set-auth-token") ?? "";
  expect(signed).toMatch(`${data.token}.`);
  browser.cookies.clear();
  await browser.post("/sign-up/email", newcomer());
  const [others, token] = [browser.cookieHeader(), String(data.token)];
  browser.cookies.clear();
  const endpoints = Object.values(auth.api) as unknown as (SomeEndpoint &
    ((input: object) => Promise<unknown>))[];
  for (const endpoint of endpoints.filter(({ path }) => path?.startsWith("/admin/"))) {
    const { path, options } = endpoint;
    const isRead = options.method === "GET";
    const [query, body] = isRead ? [{ id: "x" }, undefined] : [{}, ADMIN_INPUT];
    for (const sent of [token, signed]) {
      // Alone, and beside the cookie of somebody else.
      for (const cookie of [undefined, others]) {
        const authorization = `Bearer ${sent}`;
        const headers = { authorization, ...(cookie && { cookie }) };
        read.length = 0;
        await (isRead
          ? browser.get(path, { query, headers })
          : browser.post(path, body, { headers }));
        await endpoint({ query, body, headers: new Headers(headers) }).catch(() => undefined);
        const inCookie = [token, token];
        expect(read, path).toEqual([inCookie, inCookie]);
      }
    }
  }
});

it("a social provider may be a function, which is called when it is wanted", async () => {
  let calls = 0;
  const swap = hookOn("/sign-in/social", async ({ context }) => {
    const [provider] = context.socialProviders;
    const late = () => {
      calls++;
      return provider;
    };
    context.socialProviders = [Object.assign(late, { id: "google" }) as never];
  });
  const plugins = [{ id: "swap", hooks: { before: [swap] } }];
  const { browser } = await plain({ socialProviders: { google }, plugins });
  expect((await browser.get("/get-session")).status).toBe(200);
  expect(calls).toBe(0);
  const { data } = await browser.post("/sign-in/social", { provider: "google" });
  expect(data.url).toMatch(/^https:\/\/accounts\.google\.com/);
  expect(calls).toBeGreaterThan(0);
});

it("genericOAuth() reads its redirect URI whenever it needs it, from the config", async () => {
  const config = {
    ...{ providerId: "corp", clientId: "id", clientSecret: "secret" },
    ...{ authorizationUrl: "https://corp.example", tokenUrl: "https://corp.example/token" },
    redirectURI: "https://app.example/first",
  };
  const { auth } = await plain({ plugins: [genericOAuth({ config: [config] })] });
  const [provider] = (await auth.$context).socialProviders;
  const redirectURI = "https://app.example/given";
  const flow = { state: "s", codeVerifier: "v".repeat(43), redirectURI };
  const sent = fakeNetwork();
  for (const own of ["https://app.example/second", undefined]) {
    Object.assign(config, { redirectURI: own });
    const url = await provider?.createAuthorizationURL(flow);
    expect(url?.searchParams.get("redirect_uri")).toBe(own ?? redirectURI);
    await provider?.validateAuthorizationCode({ ...flow, code: "c" }).catch(() => undefined);
    const params = new URLSearchParams(sent.at(-1)?.body);
    expect(params.get("redirect_uri")).toBe(own ?? redirectURI);
  }
});

it.each(socialProviderList)(
  "%s reads its redirect URI whenever it needs it, from its options",
  async (id) => {
    const pool = { domain: "x.example", region: "eu", userPoolId: "pool" };
    const client = { clientId: "id", clientKey: "id", clientSecret: "secret" };
    const options = { ...client, ...pool, redirectURI: "https://app.example/first" };
    const make = Reflect.get(socialProviders, id) as (given: object) => OAuthProvider | undefined;
    const provider = make(options);
    // Zoom copies its options: it is built anew for tenants.
    if (id === "zoom") return expect(Boolean(provider?.options)).toBe(ZOOM_SHOWS_OPTIONS);
    expect(provider?.options).toBe(options);
    const redirectURI = "https://app.example/given";
    const flow = { state: "s", codeVerifier: "v".repeat(43), redirectURI };
    const sent = fakeNetwork(() => Response.json({}));
    for (const own of ["https://app.example/second", undefined]) {
      Object.assign(options, { redirectURI: own });
      const url = await provider?.createAuthorizationURL(flow);
      expect(url?.searchParams.get("redirect_uri")).toBe(own ?? redirectURI);
      sent.length = 0;
      await provider?.validateAuthorizationCode({ ...flow, code: "c" }).catch(() => undefined);
      // WeChat does not send it along with the code.
      const body = new URLSearchParams(sent[0]?.body);
      const given = body.get("redirect_uri");
      if (given !== null || id !== "wechat") expect(given).toBe(own ?? redirectURI);
    }
  },
);

it("secondary storage holds sessions, lists of sessions and one-time tokens in the known form", async () => {
  const { entries, storage } = mapStorage();
  const { browser } = await plain({
    secondaryStorage: storage,
    emailAndPassword: { enabled: true, sendResetPassword: async () => {} },
  });
  const { data } = await browser.post<{ token: string; user: { id: string } }>(
    "/sign-up/email",
    somebody(),
  );
  await browser.post("/request-password-reset", { email: "somebody@example.com" });
  expect(entries.get(data.token)).toMatch(/^\{"session":\{/);
  const index = `active-sessions-${data.user.id}`;
  const list = JSON.parse(entries.get(index) ?? "");
  expect(list).toEqual([{ token: data.token, expiresAt: expect.any(Number) }]);
  const others = [...entries.keys()].filter((key) => ![data.token, index].includes(key));
  expect(others).toEqual([expect.stringMatching(/^verification:reset-password:/)]);
});

it("a client cannot put anything into the part of the state that the server trusts", async () => {
  const additionalData = { serverContext: { tenantAuth: "forged" }, note: "passes" };
  const popup = {
    provider: "google",
    popupOrigin: "http://localhost:3000",
    additionalData: JSON.stringify(additionalData),
  };
  for (const start of [
    (browser: Browser) => browser.post("/sign-in/social", { provider: "google", additionalData }),
    (browser: Browser) => browser.get("/oauth-popup/start", { query: popup }),
  ]) {
    const { browser, database } = await plain({
      socialProviders: { google },
      plugins: [oauthPopup()],
    });
    expect((await start(browser)).status).toBeLessThan(400);
    const [row] = await database.query(`select value from "verification"`);
    const state = JSON.parse(String(row?.value)) as Record<string, unknown>;
    expect([state.note, state.serverContext]).toEqual(["passes", undefined]);
  }
});

it("better-auth signs the cookie of a state with the secret alone", async () => {
  const { auth, browser } = await plain({ socialProviders: { google } });
  const { data } = await browser.post<{ url: string }>("/sign-in/social", { provider: "google" });
  const { secret, createAuthCookie } = await auth.$context;
  const state = new URL(data.url).searchParams.get("state") ?? "";
  const cookie = browser.cookies.get(createAuthCookie("state").name) ?? "";
  const signature = await makeSignature(state, secret);
  expect(decodeURIComponent(cookie)).toBe(`${state}.${signature}`);
});

it("sso() asks about endpoints of providers without settings, and about pages with them", async () => {
  const provider = await startIdentityProvider();
  const PAGE = "https://pages.example/page";
  const [about, pages] = [new Set<string>(), new Set<string>()];
  const listening: BetterAuthPlugin = {
    id: "listening",
    init(ctx) {
      const { isTrustedOrigin } = ctx;
      ctx.isTrustedOrigin = function (address, settings) {
        const path = tryGetCurrentAuthEndpointContext()?.path ?? "before all endpoints";
        if (settings) pages.add(`${path} ${address}`);
        else about.add(`${path} ${new URL(address).origin}`);
        return isTrustedOrigin.call(this, address, settings);
      };
    },
  };
  const { browser } = await plain({
    plugins: [sso(), listening],
    trustedOrigins: [provider.issuer, new URL(PAGE).origin],
  });
  provider.addPerson("ada");
  await browser.post("/sign-up/email", somebody());
  await browser.post("/sso/register", oidc(provider, "okta"));
  const { oidcConfig } = oidc(provider, "okta");
  await browser.post("/sso/update-provider", { providerId: "okta", oidcConfig });
  const body = { providerId: "okta", callbackURL: PAGE };
  const { data } = await browser.post<{ url: string }>("/sign-in/sso", body);
  const back = await browser.get(await provider.authorize(data.url, "ada"));
  expect(back.location).toBe(PAGE);
  const idp = await createSamlProvider("https://idp.example");
  await browser.post("/sso/register", samlRegistration("saml", idp));
  await browser.get("/sso/saml2/sp/acs/saml", { query: { RelayState: PAGE } });
  const asking = ["sso/register", "sso/update-provider", "sign-in/sso", "sso/callback/:providerId"];
  expect([...about]).toEqual(asking.map((path) => `/${path} ${provider.issuer}`));
  expect([...pages]).toEqual([
    `before all endpoints ${PAGE}`,
    `/sso/saml2/sp/acs/:providerId ${PAGE}`,
  ]);
});

it("sso() follows no redirects when it calls a provider", async () => {
  const provider = await startIdentityProvider();
  const { issuer } = provider;
  const { browser } = await plain({ plugins: [sso()], trustedOrigins: [issuer] });
  provider.addPerson("ada");
  await browser.post("/sign-up/email", somebody());
  await browser.post("/sso/register", oidc(provider, "okta"));
  const body = { providerId: "okta", callbackURL: "/" };
  const { data } = await browser.post<{ url: string }>("/sign-in/sso", body);
  const back = await provider.authorize(data.url, "ada");

  const fetch = vi.spyOn(globalThis, "fetch");
  onTestFinished(() => fetch.mockRestore());
  const { oidcConfig, ...others } = oidc(provider, "discovered");
  const given = { ...others, oidcConfig: { ...oidcConfig, skipDiscovery: false } };
  await browser.post("/sso/register", given);
  expect((await browser.get(back)).location).toBe("/");
  const paths = ["/.well-known/openid-configuration", "/oauth/token", "/api/v4/user"];
  const calls = fetch.mock.calls.map(([input, init]) => `${input} ${init?.redirect}`);
  expect(calls).toEqual(paths.map((path) => `${issuer}${path} manual`));
});

it("better-auth makes its sign-in without knowing anything of the instance", () => {
  expect(signInEmail).toHaveLength(0);
  const { body: _, ...options } = signInEmail().options;
  const { body: __, ...again } = signInEmail().options;
  expect(options).toEqual(again);
});

it("official plugins say whose id is in a column, except for these", () => {
  const teams = { teams: { enabled: true }, dynamicAccessControl: { enabled: true } } as const;
  const ethereum = { domain: "x", getNonce: async () => "", verifyMessage: async () => true };
  // Those whose models may be shared.
  const plugins: BetterAuthPlugin[] = [
    organization(teams),
    deviceAuthorization(),
    siwe(ethereum),
    passkey(),
    apiKey(),
    twoFactor(),
    jwt(),
  ];
  const silent = plugins.flatMap(({ schema = {} }) =>
    Object.entries(schema).flatMap(([model, { fields }]) =>
      Object.keys(fields)
        .filter((field) => /(user|session|reference|owner|organization)Id$|By$/i.test(field))
        .filter((field) => !fields[field]?.references && !["user", "session"].includes(model))
        .map((field) => `${model}.${field}`),
    ),
  );
  expect(silent.sort()).toEqual(["apikey.referenceId", "deviceCode.userId"]);
});

it("the adapter transforms a value with the function that the schema has", async () => {
  const plugin = username();
  const additionalFields = {
    code: { type: "string", required: false, transform: { input: () => "before" } },
  } satisfies Record<string, DBFieldAttribute>;
  const { auth } = await plain({ plugins: [plugin], user: { additionalFields } });
  const { tables, adapter } = await auth.$context;
  const fields = [plugin.schema.user.fields.username, additionalFields.code];
  expect([tables.user?.fields.username, tables.user?.fields.code]).toEqual(fields);
  for (const { transform } of fields as DBFieldAttribute[]) {
    Object.assign(transform as object, {
      input: (value: unknown) => `${Object(value).text} after`,
    });
  }
  const data = { ...somebody(), username: { text: "a" }, code: { text: "b" } };
  const create = (on: Pick<typeof adapter, "create">, email: string) =>
    on.create({ model: "user", data: { ...data, email } });
  const expected = { username: "a after", code: "b after" };
  expect(await adapter.transaction((inner) => create(inner, "a@b.c"))).toMatchObject(expected);
});

it("these texts of official plugins are unique, and it is decided whether in their tenant", () => {
  const ethereum = { domain: "x", getNonce: async () => "", verifyMessage: async () => true };
  const teams = { teams: { enabled: true }, dynamicAccessControl: { enabled: true } } as const;
  const plugins: BetterAuthPlugin[] = [
    organization(teams),
    deviceAuthorization(),
    siwe(ethereum),
    passkey(),
    apiKey(),
    twoFactor(),
    username(),
    phoneNumber(),
    admin(),
    anonymous(),
    sso(),
    scim({ connections: [], managedConnections: { credentialHashSecret: "x".repeat(32) } }),
  ];
  const tables = getAuthTables({ plugins });
  const unique = Object.entries(tables).flatMap(([model, { fields, indexes = [] }]) => {
    const single = indexes.filter((index) => index.unique && index.fields.length === 1);
    const names = single.flatMap((index) => [...index.fields]);
    return Object.entries(fields)
      .filter(([name, { unique }]) => unique || names.includes(name))
      .filter(([, { type, references }]) => type === "string" && !references)
      .map(([name]) => `${model}.${name}`);
  });
  expect(unique.filter((path) => !path.startsWith("scim")).sort()).toEqual([
    "deviceCode.deviceCode",
    "deviceCode.userCode",
    "organization.slug",
    "session.token",
    "ssoProvider.providerId",
    "teamMember.membershipKey",
    "user.email",
    "user.phoneNumber",
    "user.username",
  ]);
  // Keys that better-auth derives, with the id of a connection in them, or random.
  const keys = unique.filter((path) => path.startsWith("scim"));
  expect(keys.filter((path) => !/(Key|Id)$/.test(path))).toEqual([]);
});

it("a second factor is asked for after a password or a phone number", () => {
  const [hook] = twoFactor().hooks.after;
  const asks = Object.keys(SIGN_IN_METHODS).filter((path) => hook?.matcher({ path } as never));
  expect(asks.map((path) => SIGN_IN_METHODS[path])).toEqual(["password", "password", "phone"]);
});

it.each(BY_ID_TOKEN)("who somebody is, %s reads from an id token alone", async (id) => {
  // Whatever the access token says that is sent along.
  fakeNetwork(() => Response.json({ sub: "alice", oid: "alice", email: "alice@example.com" }));
  const region = { domain: "https://x.example", region: "eu", userPoolId: "pool" };
  const provider = build(id, { clientId: "id", clientSecret: "secret", ...region } as never);
  const idToken = signToken({ sub: "mallory", oid: "mallory", email: "mallory@example.com" });
  const found = await provider.getUserInfo({ idToken, accessToken: "of-alice" });
  expect(found?.user.email).toBe("mallory@example.com");
  expect(JSON.stringify(found?.data)).not.toContain("alice");
});

it("better-auth's secret of last resort is the one that we know", async () => {
  const { auth } = await plain({ secret: "" });
  expect((await auth.$context).secret).toBe(DEFAULT_SECRET);
});

it("the plugin can be imported where nothing random may be made yet, as at the top of a Cloudflare Worker", async () => {
  vi.resetModules();
  const refuse = () => {
    throw new Error("Disallowed operation called within global scope");
  };
  const spies = [
    vi.spyOn(crypto, "randomUUID").mockImplementation(refuse),
    vi.spyOn(crypto, "getRandomValues").mockImplementation(refuse),
  ];
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore();
    // Files after this one share its modules, and have no use for half of them.
    vi.resetModules();
  });
  expect(await import("../src/index")).toHaveProperty("tenantAuth");
});
