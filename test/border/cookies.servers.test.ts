// Cookies of one place in a browser that is at another, and their names.
import type { BetterAuthPlugin } from "better-auth";
import {
  APIError,
  createAuthEndpoint,
  createAuthMiddleware,
  dispatchAuthEndpoint,
  getAccessToken,
  getSessionFromCtx,
  signInEmail,
} from "better-auth/api";
import { deleteSessionCookie } from "better-auth/cookies";
import { anonymous, bearer, multiSession } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { TenantManagementRequest } from "../../src/index";
import { Browser } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { BASE_URL, createStateless, PASSWORD } from "../support/instance";
import { combine } from "../support/matrix";
import { createSocialWorld, GLOBAL } from "../support/social";
import { SORTS } from "../support/stores";
import {
  createWorld,
  EMAIL,
  inCookieName,
  PLACES,
  type Place,
  type SessionAnswer,
  shareWorld,
  type World,
} from "../support/world";

const COOKIES = ["shared", "per-tenant"] as const;

/** As better-auth teaches to change a call. */
const handBack = createAuthMiddleware(async (ctx) => ({ context: { ...ctx, body: ctx.body } }));

it("R5: a dead bearer token at Globex does not take the cookie of Acme along", async () => {
  const world = await createWorld({ plugins: [bearer()] });
  const { acme, globex } = await world.janes();
  await globex.post("/sign-out");
  const tab = world.at("globex", acme);
  expect((await tab.get("/list-sessions")).headers.getSetCookie()).toEqual([]);
  const headers = { authorization: `Bearer ${globex.token}` };
  const answer = await tab.get("/list-sessions", { headers });
  expect([answer.status, answer.headers.getSetCookie()]).toEqual([401, []]);
  // A server action has the headers only, and hands the cookies that are set to the browser.
  const cookie = [...tab.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const called = await world.api.getSession({
    headers: new Headers({ ...headers, ...world.naming("globex"), cookie }),
    returnHeaders: true,
  });
  expect([called.response, called.headers.getSetCookie()]).toEqual([null, []]);
  expect(await world.whoIs(tab, "acme")).toMatchObject({ id: acme.id });
});

it("R5, threat: cached cookie accepted too early: one that an admin endpoint has renewed is none there", async () => {
  const { as, at, whoIs } = await createWorld({
    auth: { session: { cookieCache: { enabled: true } } },
  });
  const tab = at("acme", await as("jane", "platform"));
  // An ordinary user of the platform is turned away, after its session was looked up.
  expect((await tab.get("/admin/list-users")).status).toBe(401);
  for (const place of ["acme", "globex"]) {
    expect(await whoIs(tab, place)).toBe(null);
    expect((await at(place, tab).post("/update-user", { name: "Changed" })).status).toBe(401);
  }
});

/** Asks after every request who is there, which is where a stranger's session is looked at. */
const asks: BetterAuthPlugin = {
  id: "asks",
  hooks: {
    after: [
      {
        matcher: () => true,
        handler: createAuthMiddleware(async (ctx) => void (await getSessionFromCtx(ctx))),
      },
    ],
  },
};

const ASKING: [string, () => BetterAuthPlugin[]][] = [
  ["anonymous()", () => [anonymous()]],
  ["an after hook that asks who is there", () => [asks]],
  ["anonymous() behind multiSession()", () => [multiSession(), anonymous()]],
];

describe("R5: signing in at Globex in a browser of elsewhere", () => {
  const withStores = combine(ASKING, SORTS.slice(0, 3)).map(
    ([[name, plugins], store]) => [name, store.name, plugins, store] as const,
  );
  it.each(withStores)("with %s, sessions in %s: one is there", async (_, __, plugins, store) => {
    const world = await createWorld({ plugins: plugins(), store });
    const janes = await world.janes();
    for (const home of ["acme", "platform"] as const) {
      const tab = world.at("globex", janes[home]);
      const body = { email: EMAIL, password: PASSWORD };
      expect((await tab.post("/sign-in/email", body)).status).toBe(200);
      expect(await world.whoIs(tab)).toMatchObject({ id: janes.globex.id });
    }
  });

  it("by a provider: one is there", async () => {
    const world = await createSocialWorld({ plugins: [asks] });
    await world.configure("globex");
    const tab = world.at(null, await world.as("jane", "acme"));
    expect((await world.signInAtProvider(tab, "globex")).location).toBe("/welcome");
    expect(await world.whoIs(tab, "globex")).toMatchObject({ tenantId: world.ids.globex });
  });
});

type HookContext = Parameters<Parameters<typeof createAuthMiddleware>[0]>[0];

/** How a hook takes back what a sign-in has given. */
const TAKING: [string, (ctx: HookContext) => void][] = [
  ["drops the cookies", (ctx) => deleteSessionCookie(ctx)],
  ["deletes the header", (ctx) => ctx.context.responseHeaders?.delete("set-cookie")],
  [
    "drops the cookies and refuses",
    (ctx) => {
      deleteSessionCookie(ctx);
      throw new APIError("FORBIDDEN");
    },
  ],
];

it.each(
  combine(combine(TAKING, [true, false]), combine(SORTS.slice(0, 3), COOKIES)).map(
    ([[[name, take], isAsking], [store, cookies]]) =>
      [name, isAsking, store.name, cookies, take, store] as const,
  ),
)(
  "R5: threat: a session of elsewhere brings back nothing that a hook takes back: it %s, asking %s, sessions in %s, cookies %s",
  async (_, isAsking, __, sessionCookies, take, store) => {
    let isTaking = false;
    const after = createAuthMiddleware(async (ctx) => {
      if (!isTaking || ctx.path !== "/sign-in/email") return;
      if (isAsking) await getSessionFromCtx(ctx);
      take(ctx);
    });
    const plugins = [anonymous()];
    const world = await createWorld({
      plugins,
      store,
      tenant: { sessionCookies },
      auth: { hooks: { after } },
    });
    const { platform } = await world.janes();
    const tab = world.at("acme", platform);
    const [name, value = ""] = [...platform.cookies].find(([key]) => key.endsWith("_token")) ?? [];
    tab.cookies.set(
      sessionCookies === "shared" ? `${name}` : `${name}_${inCookieName(world.ids.acme)}`,
      value,
    );
    isTaking = true;
    await tab.post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    expect(await world.whoIs(tab)).toBe(null);
    // Where nobody has looked, it is not known whose the dropped cookie was.
    if (isAsking) expect(await world.whoIs(tab, "platform")).toMatchObject({ id: platform.id });
  },
);

it.each(combine(SORTS, COOKIES).map(([store, cookies]) => [store.name, cookies, store] as const))(
  "signing out with multiSession() ends the session in %s, cookies %s",
  async (_, sessionCookies, store) => {
    const world = await createWorld({
      plugins: [multiSession()],
      tenant: { sessionCookies },
      store,
    });
    for (const place of ["acme", "platform"]) {
      // With Globex open as well.
      const both = await world.signUp(place, "both@example.com");
      for (const [name, value] of (await world.as("jane", "globex")).cookies) {
        if (!both.cookies.has(name)) both.cookies.set(name, value);
      }
      const alone = await world.signUp(place, "alone@example.com");
      for (const person of [both, alone]) {
        expect((await person.post("/sign-out")).status).toBe(200);
        expect(await world.whoIs(person)).toBe(null);
      }
      // better-auth deletes its cookie by a name in lower case, and an id in a name may not be.
      if (sessionCookies === "per-tenant" && place === "acme") continue;
      expect([...alone.cookies.keys()]).toEqual([]);
    }
  },
);

/** Jane signs in at a place, in a browser that may be signed in elsewhere. */
async function signInAt(world: World, browser: Browser, place: Place): Promise<string> {
  const body = { email: EMAIL, password: PASSWORD };
  const headers = world.naming(place);
  const { data } = await browser.post<{ token: string }>("/sign-in/email", body, { headers });
  return data.token;
}

it.each(SORTS.slice(0, 2))(
  "R5: signing out at Acme with multiSession() keeps what is elsewhere, in $name",
  async (store) => {
    const world = await createWorld({ plugins: [multiSession()], store });
    await world.janes();
    const browser = world.at("platform");
    const tokens = new Map<Place, string>();
    // The platform first: a sign-in that names no tenant goes by the session in its browser.
    for (const place of [...PLACES].reverse()) {
      tokens.set(place, await signInAt(world, browser, place));
    }
    await browser.post("/sign-out", {}, { headers: world.naming("acme") });
    for (const [place, sessionToken] of tokens) {
      const back = await world
        .at(place, browser)
        .post("/multi-session/set-active", { sessionToken });
      expect(back.status, place).toBe(place === "acme" ? 401 : 200);
    }
  },
);

it.each(SORTS.slice(0, 2))(
  "R5: multiSession() at Acme ends no session of elsewhere, and drops no cookie of one, in $name",
  async (store) => {
    const world = await createWorld({ plugins: [multiSession()], store });
    await world.janes();
    const browser = world.at("platform");
    const elsewhere = await signInAt(world, browser, "globex");
    const here = await signInAt(world, browser, "acme");
    const acme = world.at("acme", browser);
    const answer = await acme.post("/multi-session/revoke", { sessionToken: elsewhere });
    expect(answer.headers.getSetCookie().join()).not.toContain(elsewhere.toLowerCase());
    const globex = world.at("globex", browser);
    expect(
      (await globex.post("/multi-session/set-active", { sessionToken: elsewhere })).status,
    ).toBe(200);
    // Control: its own.
    await acme.post("/multi-session/set-active", { sessionToken: here });
    const own = await acme.post("/multi-session/revoke", { sessionToken: here });
    expect(own.headers.getSetCookie().join().toLowerCase()).toContain(here.toLowerCase());
  },
);

it.each(COOKIES)(
  "R10: an account cookie of Acme opens nothing at Globex, whose client never refreshes it, by any name: cookies %s",
  async (sessionCookies) => {
    const idp = await startIdentityProvider();
    idp.addPerson("alice");
    Object.assign(idp.rules, { refreshTokens: true, expiresIn: 1 });
    // Without a database better-auth keeps the account in a cookie, tied to no user.
    const account = { storeAccountCookie: true };
    const socialProviders = { gitlab: { ...GLOBAL, issuer: idp.issuer } };
    let handBack = (_: { headers?: Headers; request?: Request }): object | undefined => undefined;
    const hooks = { before: createAuthMiddleware(async (ctx) => handBack(ctx as never)) };
    const auth = createStateless({ sessionCookies }, { socialProviders, account, hooks });
    const ids: string[] = [];
    for (const slug of ["acme", "globex"]) {
      const { id } = await auth.api.createTenant({ body: { name: slug, slug } });
      const config = { clientId: `client-${slug}`, clientSecret: `secret-${slug}` };
      idp.registerClient(config.clientId, config.clientSecret);
      const body = { tenantId: id, providerId: "gitlab", ...config };
      await auth.api.registerTenantOAuthConfig({ body });
      ids.push(id);
    }
    // Alice signs in at Acme by Acme's own client, and her browser then signs up at Globex.
    const browser = new Browser(auth.handler, BASE_URL);
    const body = { provider: "gitlab", tenantId: ids[0], callbackURL: "/welcome" };
    const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", body);
    await browser.get(await idp.authorize(data.url, "alice"));
    const [atAcme, atGlobex] = ids.map((id) => browser.fork({ "x-tenant-id": id }));
    const person = { name: "B", email: "b@example.com", password: PASSWORD };
    expect((await atGlobex?.post("/sign-up/email", person))?.status).toBe(200);
    const take = { useAccountCookie: true };
    const taken = await atGlobex?.post("/get-access-token", take);
    expect([taken?.status, taken?.data.accessToken]).toEqual([400, undefined]);
    const own = await atAcme?.post("/get-access-token", take);
    expect(own?.data.accessToken).toEqual(expect.any(String));
    const refreshes = idp.exchanges().filter(({ params }) => params.grant_type === "refresh_token");
    expect(refreshes.map(({ params }) => params.client_id)).toEqual(["client-acme"]);
    // Under the name that the cookie has there, or on the platform, it opens nothing either.
    const ownName = `account_data_${inCookieName(`${ids[0]}`)}`;
    const onPlatform = new Browser(auth.handler, BASE_URL);
    const { headers } = await onPlatform.post("/sign-up/email", person);
    // bearer() hands back the headers that were sent.
    const authorization = `Bearer ${headers.get("set-auth-token")}`;
    const bearing = onPlatform.fork({ authorization });
    for (const [visitor, name] of [
      [atGlobex, `account_data_${inCookieName(`${ids[1]}`)}`],
      [onPlatform, "account_data"],
      [bearing, "account_data"],
    ] as const) {
      const cookies = [...(atAcme?.cookies ?? [])].filter(([sent]) => sent.includes(ownName));
      expect(cookies).not.toEqual([]);
      for (const [sent, value] of cookies) {
        visitor?.cookies.set(sent.replace(ownName, name), value);
      }
      for (const path of ["/get-access-token", "/refresh-token"]) {
        const answer = await visitor?.post(path, take);
        expect([path, answer?.status, answer?.code]).toEqual([path, 400, "ACCOUNT_NOT_FOUND"]);
      }
    }
    // Sent twice, which better-auth's readers of cookies take for one or for the other.
    const name = "better-auth.account_data";
    const value = bearing.cookies.get(name);
    const others = [...onPlatform.cookies].filter(([sent]) => !sent.includes("account_data"));
    const session = others.map((cookie) => cookie.join("=")).join("; ");
    for (const twice of [
      `${name}=x; ${name}=${value}`,
      `${name}=; ${name}=${value}`,
      `${name}=\u00e9; ${name}.0=${value}`,
      `\u00a0${name}=x; ${name}=${value}`,
      // In pieces, the first of which one reader drops.
      `${name}.0=\\; ${name}.1=${value}`,
      `${name}.0=\u00e9; ${name}.1=${value}`,
      `\u00a0${name}.0=x; ${name}.1=${value}`,
    ]) {
      const headers = { cookie: `${twice}; ${session}` };
      for (const visitor of [bearing, onPlatform]) {
        const answer = await visitor.post("/get-access-token", take, { headers });
        expect([twice, answer.status, answer.code]).toEqual([twice, 400, "ACCOUNT_NOT_FOUND"]);
      }
    }
    // What a hook writes into the headers, or hands back, is judged like what was sent.
    for (const [how, hook] of Object.entries<typeof handBack>({
      "in place": ({ headers, request }) =>
        void headers?.set("cookie", `${request?.headers.get("cookie")}; more=1`),
      "handed back": ({ request }) => ({ context: { headers: new Headers(request?.headers) } }),
      "beside it": () => ({ context: { headers: new Headers({ "x-more": "1" }) } }),
      fixed: () => ({ context: { headers: Response.redirect("http://localhost/").headers } }),
    })) {
      handBack = hook;
      const answer = await onPlatform.post("/get-access-token", take);
      expect([how, answer.status, answer.code]).toEqual([how, 400, "ACCOUNT_NOT_FOUND"]);
      const { data } = await onPlatform.get<{ user: { email: string } } | null>("/get-session");
      expect([how, data?.user.email]).toEqual([how, person.email]);
    }
    // Cookies that a hook brings from elsewhere, into a request that has none.
    handBack = ({ headers }) => void headers?.set("cookie", headers.get("x-cookie") ?? "");
    const brought = { "x-cookie": onPlatform.cookieHeader() };
    const answer = await new Browser(auth.handler, BASE_URL, brought).post(
      "/get-access-token",
      take,
    );
    expect([answer.status, answer.code]).toEqual([400, "ACCOUNT_NOT_FOUND"]);
  },
);

it("R10: of two accounts in one request, none is another tenant's, whatever bearer() makes of them", async () => {
  const idp = await startIdentityProvider();
  const account = { storeAccountCookie: true };
  const socialProviders = { gitlab: { ...GLOBAL, issuer: idp.issuer } };
  const auth = createStateless({}, { socialProviders, account });
  const people = [];
  for (const slug of ["acme", "globex"]) {
    const { id: tenantId } = await auth.api.createTenant({ body: { name: slug, slug } });
    idp.addPerson(slug);
    idp.registerClient(GLOBAL.clientId, GLOBAL.clientSecret);
    const browser = new Browser(auth.handler, BASE_URL, { "x-tenant-id": tenantId });
    const body = { provider: "gitlab", tenantId, callbackURL: "/welcome" };
    const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", body);
    const { headers } = await browser.get(await idp.authorize(data.url, slug));
    const authorization = `Bearer ${headers.get("set-auth-token")}`;
    const name = `better-auth.account_data_${inCookieName(tenantId)}`;
    people.push({ browser, authorization, name, value: browser.cookies.get(name) });
    browser.cookies.delete(name);
  }
  const [acme, globex] = people;
  const tokenWith = async (more: string) => {
    const cookie = `${globex?.name}=${globex?.value}${more}; ${globex?.browser.cookieHeader()}`;
    const headers = { cookie, authorization: `${globex?.authorization}` };
    const input = { useAccountCookie: true };
    return (await globex?.browser.post("/get-access-token", input, { headers }))?.data.accessToken;
  };
  const own = await tokenWith("");
  expect(own).toEqual(expect.any(String));
  expect(await tokenWith(`; ${globex?.name}=${acme?.value}`)).toBeUndefined();
});

it.each<[string, Partial<Parameters<typeof createStateless>[1] & object>]>([
  ["a hook that hands the whole call back", { hooks: { before: handBack } }],
  ["an option that is nearly true", { account: { storeAccountCookie: "true" as never } }],
])(
  "R10: an account of the platform in the browser of somebody at Acme is not theirs: %s",
  async (_, more) => {
    const idp = await startIdentityProvider();
    idp.registerClient(GLOBAL.clientId, GLOBAL.clientSecret);
    const socialProviders = { gitlab: { ...GLOBAL, issuer: idp.issuer } };
    const auth = createStateless({}, { socialProviders, ...more });
    const { id: tenantId } = await auth.api.createTenant({ body: { name: "Acme", slug: "acme" } });
    const browser = new Browser(auth.handler, BASE_URL);
    const take = async (visitor = browser) => {
      const input = { useAccountCookie: true };
      const { status, data } = await visitor.post("/get-access-token", input);
      return [status, data.accessToken];
    };
    const signIn = async (person: string, path: string) => {
      idp.addPerson(person);
      const body = { provider: "gitlab", callbackURL: "/welcome", tenantId };
      const { data } = await browser.post<{ url: string }>(path, body);
      await browser.get(await idp.authorize(data.url, person));
      return take();
    };
    const alices = await signIn("alice", "/sign-in/social");
    const onPlatform = browser.fork();
    const bobs = await signIn("bob", "/tenant/sign-in/social");
    expect([alices[0], bobs[0], bobs[1] === alices[1]]).toEqual([200, 200, false]);
    // Nor is Bob's good on the platform, under the name that it would have there.
    const [, value = ""] =
      [...browser.cookies].find(([sent]) => sent.includes("account_data_")) ?? [];
    onPlatform.cookies.set("better-auth.account_data", value);
    expect(await take(onPlatform)).toEqual([400, undefined]);
  },
);

it("an account in cookies may have a name that others begin with", async () => {
  const cookies = {
    account_data: { name: "app" },
    session_token: { name: "app_session" },
    session_data: { name: "app_data" },
  };
  const auth = { account: { storeAccountCookie: true }, advanced: { cookies } };
  const world = await createWorld({ auth, plugins: [bearer()] });
  const jane = await world.as("jane", "acme");
  for (const theme of ["", "; app_theme=dark", "; app_theme=dark; app_theme=light"]) {
    const cookie = `${jane.cookieHeader()}${theme}`;
    const { data } = await world
      .at("acme")
      .get<{ user: { email: string } } | null>("/get-session", { headers: { cookie } });
    expect([theme, data?.user.email]).toEqual([theme, jane.email]);
  }
});

it("R5: a session cookie that is sent twice goes with its own sign-out, by a bearer token as well", async () => {
  const world = await createWorld({ plugins: [bearer()] });
  const name = "better-auth.session_token";
  for (const write of [
    (own: string) => `${name}=stale; ${name}=${own}`,
    (own: string) => `${name}=${own}; ${name}=${own}`,
  ]) {
    const jane = await world.as("jane", "acme");
    const value = decodeURIComponent(jane.cookies.get(name) ?? "");
    const headers = {
      cookie: write(jane.cookies.get(name) ?? ""),
      authorization: `Bearer ${value}`,
    };
    const answer = await world.at("acme").post("/sign-out", {}, { headers });
    expect(answer.headers.getSetCookie().join()).toMatch(`${name}=; Max-Age=0`);
  }
});

it.each(["/get-session", "/sign-out"])(
  "R5: a session cookie that is sent twice stays where it is: %s",
  async (path) => {
    const name = "better-auth.session_token";
    const world = await createWorld();
    const jane = await world.as("jane", "acme");
    const cookie = `${name}=${jane.cookies.get(name)}; ${name}=x`;
    const method = path === "/sign-out" ? "POST" : "GET";
    const body = method === "POST" ? {} : undefined;
    const answer = await world.at("globex").send(path, { method, body, headers: { cookie } });
    expect(answer.headers.getSetCookie().filter((line) => line.startsWith(name))).toEqual([]);
  },
);

it("of accounts in cookies twenty are read, and no more than a browser has", async () => {
  const auth = createStateless({}, { account: { storeAccountCookie: true } });
  const names = Array.from({ length: 2000 }, (_, n) => `better-auth.account_data_${n}=x`);
  const start = performance.now();
  const answer = await new Browser(auth.handler, BASE_URL, { cookie: names.join(";") }).get("/ok");
  // It took eleven seconds.
  expect([answer.status, performance.now() - start < 3000]).toEqual([200, true]);
});

/** Runs better-auth's sign-in with a context of its own, as plugins do that stand in for it. */
const cloning: BetterAuthPlugin = {
  id: "clones-the-context",
  endpoints: {
    signInByClone: createAuthEndpoint("/sign-in/clone", { method: "POST" }, async (ctx) => {
      const authCookies = structuredClone(ctx.context.authCookies);
      const context = { ...ctx.context, authCookies };
      const run = signInEmail() as unknown as Parameters<typeof dispatchAuthEndpoint>[0];
      const input = { ...ctx, context, asResponse: false, returnHeaders: true };
      const { headers } = (await dispatchAuthEndpoint(run, input)) as { headers: Headers };
      for (const line of headers.getSetCookie()) ctx.setHeader("set-cookie", line);
      return ctx.json({ status: true });
    }),
    tokenByClone: createAuthEndpoint("/token/clone", { method: "POST" }, async (ctx) => {
      const authCookies = structuredClone(ctx.context.authCookies);
      const context = { ...ctx.context, authCookies };
      const input = { ...ctx, context, body: { useAccountCookie: true }, asResponse: false };
      return ctx.json((await dispatchAuthEndpoint(getAccessToken as never, input)) as object);
    }),
  },
};

it("an account in a cookie is found where a plugin clones the cookies", async () => {
  const idp = await startIdentityProvider();
  idp.registerClient(GLOBAL.clientId, GLOBAL.clientSecret);
  idp.addPerson("alice");
  const socialProviders = { gitlab: { ...GLOBAL, issuer: idp.issuer } };
  const auth = { socialProviders, account: { storeAccountCookie: true } };
  const { at } = await createWorld({ auth, plugins: [cloning] });
  const browser = at("acme");
  const body = { provider: "gitlab", callbackURL: "/welcome" };
  const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
  await browser.get(await idp.authorize(data.url, "alice"));
  expect((await browser.post("/token/clone")).status).toBe(200);
});

describe.each(COOKIES)("%s session cookies", (sessionCookies) => {
  const asked: (string | undefined)[] = [];
  const canManageTenants = (_: unknown, { session }: TenantManagementRequest) => {
    asked.push(session?.user.id);
    return true;
  };
  const world = shareWorld({ plugins: [cloning], tenant: { sessionCookies, canManageTenants } });
  const own = sessionCookies === "per-tenant";

  it("R7: management sees the session of a tenant's admin, and without a name the platform's", async () => {
    const admin = await world.as("admin", "acme");
    const tenantId = world.ids.acme;
    asked.length = 0;
    const answers = [
      await admin.get("/tenant/get", { query: { id: tenantId } }),
      await admin.post("/tenant/update", { tenantId, name: "Renamed" }),
      await world.at("platform", admin).get("/tenant/list"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    // A cookie that all tenants share is the tenant's session there too.
    expect(asked).toEqual([admin.id, admin.id, own ? undefined : admin.id]);
  });

  it("an operator visits Acme with the platform's cookie", async () => {
    const { id } = await world.as("jane", "acme");
    const window = world.at("acme", await world.operator());
    const { data } = await window.get<{ users: { id: string }[] }>("/admin/list-users");
    expect(data.users.map((user) => user.id)).toContain(id);
  });

  it("cookies keep their name where a plugin clones the context", async () => {
    const { id } = await world.as("jane", "acme");
    const tab = world.at("acme");
    const answer = await tab.post("/sign-in/clone", { email: EMAIL, password: PASSWORD });
    expect(answer.status).toBe(200);
    const name = "better-auth.session_token";
    expect([...tab.cookies.keys()]).toEqual([
      own ? `${name}_${inCookieName(world.ids.acme)}` : name,
    ]);
    expect(await world.whoIs(tab)).toMatchObject({ id });
  });
});

describe("per-tenant session cookies and the admin plugin", () => {
  const world = shareWorld({
    tenant: { sessionCookies: "per-tenant" },
    auth: { session: { cookieCache: { enabled: true } } },
  });
  const ofAcme = (base: string) => `better-auth.${base}_${inCookieName(world.ids.acme)}`;
  const namesIn = ({ headers }: { headers: Headers }) =>
    new Set(headers.getSetCookie().map((line) => line.split("=")[0]));

  it("Acme's admin acts as a user of Acme: all have its name, and the session keeps its limit", async () => {
    const { id: userId } = await world.as("jane", "acme");
    const admin = await world.as("admin", "acme");
    const browser = world.at("acme", admin);
    const acting = await browser.post<SessionAnswer>("/admin/impersonate-user", { userId });
    const bases = ["session_token", "session_data", "dont_remember"];
    // The admin plugin's own, which leads back.
    const back = "better-auth.admin_session";
    expect(namesIn(acting)).toEqual(new Set([...bases.map(ofAcme), back]));
    expect([...browser.cookies.keys()]).toContain(ofAcme("dont_remember"));
    const query = { disableCookieCache: "true" };
    const { data } = await browser.get<SessionAnswer>("/get-session", { query });
    const { expiresAt } = acting.data.session;
    expect(data.session).toMatchObject({ userId, expiresAt });
    expect((await browser.post("/admin/stop-impersonating")).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ id: admin.id });
  });

  it("an operator acts as a user of Acme where no tenant is named, and is nobody at Acme", async () => {
    const { id: userId } = await world.as("jane", "acme");
    const browser = world.at("acme", await world.operator());
    expect((await browser.post("/admin/impersonate-user", { userId })).status).toBe(200);
    expect(await world.whoIs(browser)).toBe(null);
    expect(await world.whoIs(browser, "platform")).toMatchObject({ id: userId });
  });

  it("a cached session of Acme's admin that is made anew has its name", async () => {
    const browser = world.at("acme", await world.as("admin", "acme"));
    expect(browser.cookies.delete(ofAcme("session_data"))).toBe(true);
    const answer = await browser.get("/admin/list-users");
    expect([answer.status, namesIn(answer)]).toEqual([200, new Set([ofAcme("session_data")])]);
  });
});
