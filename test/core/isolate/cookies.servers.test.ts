// Cookies of one place in a browser that is at another, and their names.
import type { BetterAuthPlugin } from "better-auth";
import {
  APIError,
  createAuthEndpoint,
  createAuthMiddleware,
  dispatchAuthEndpoint,
  getSessionFromCtx,
  signInEmail,
} from "better-auth/api";
import { deleteSessionCookie } from "better-auth/cookies";
import { anonymous, bearer, multiSession } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { TenantManagementRequest } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { PASSWORD } from "../../support/instance";
import { combine } from "../../support/matrix";
import { createSocialWorld } from "../../support/social";
import { SORTS, type Store } from "../../support/stores";
import {
  createWorld,
  EMAIL,
  inCookieName,
  PLACES,
  type Place,
  type SessionAnswer,
  shareWorld,
  type World,
} from "../../support/world";

const COOKIES = ["shared", "per-tenant"] as const;

it.each(["globex", "acme"] as const)(
  "R5: a dead bearer token at %s does not take the cookie of Acme along",
  async (place) => {
    const world = await createWorld({ plugins: [bearer()] });
    const { acme } = await world.janes();
    const { person: dead } = await world.signIn(place, acme.email);
    await dead.post("/sign-out");
    const tab = world.at(place, acme);
    expect((await tab.get("/list-sessions")).headers.getSetCookie()).toEqual([]);
    const headers = { authorization: `Bearer ${dead.token}` };
    const answer = await tab.get("/list-sessions", { headers });
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([401, []]);
    // A server action has the headers only, and hands the cookies that are set to the browser.
    const cookie = [...tab.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const called = await world.api.getSession({
      headers: new Headers({ ...headers, ...world.naming(place), cookie }),
      returnHeaders: true,
    });
    expect([called.response, called.headers.getSetCookie()]).toEqual([null, []]);
    expect(await world.whoIs(tab, "acme")).toMatchObject({ id: acme.id });
  },
);

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

/** Jane signs in at a place, in a browser that may be signed in elsewhere. */
async function signInAt(world: World, browser: Browser, place: Place): Promise<string> {
  const body = { email: EMAIL, password: PASSWORD };
  const headers = world.naming(place);
  const { data } = await browser.post<{ token: string }>("/sign-in/email", body, { headers });
  return data.token;
}

/** Jane with multiSession(), signed in at all places in one browser. */
async function signInEverywhere(store: Store) {
  const world = await createWorld({ plugins: [multiSession()], store });
  await world.janes();
  const browser = world.at("platform");
  const tokens = {} as Record<Place, string>;
  // The platform first: a sign-in that names no tenant goes by the session in its browser.
  for (const place of [...PLACES].reverse()) tokens[place] = await signInAt(world, browser, place);
  const setActive = (place: Place) =>
    world.at(place, browser).post("/multi-session/set-active", { sessionToken: tokens[place] });
  return { world, browser, tokens, setActive };
}

it.each(SORTS.slice(0, 2))(
  "R5: signing out at Acme with multiSession() keeps what is elsewhere, in $name",
  async (store) => {
    const { world, browser, setActive } = await signInEverywhere(store);
    await browser.post("/sign-out", {}, { headers: world.naming("acme") });
    for (const place of PLACES) {
      expect((await setActive(place)).status, place).toBe(place === "acme" ? 401 : 200);
    }
  },
);

it.each(SORTS.slice(0, 2))(
  "R5: multiSession() at Acme ends no session of elsewhere, and drops no cookie of one, in $name",
  async (store) => {
    const { world, browser, tokens, setActive } = await signInEverywhere(store);
    const acme = world.at("acme", browser);
    const revoke = async (sessionToken: string) => {
      const { headers } = await acme.post("/multi-session/revoke", { sessionToken });
      return headers.getSetCookie().join().toLowerCase();
    };
    expect(await revoke(tokens.globex)).not.toContain(tokens.globex.toLowerCase());
    expect((await setActive("globex")).status).toBe(200);
    // Control: its own.
    await acme.post("/multi-session/set-active", { sessionToken: tokens.acme });
    expect(await revoke(tokens.acme)).toContain(tokens.acme.toLowerCase());
  },
);

it("R5: a session cookie that is sent twice goes with its own sign-out", async () => {
  const world = await createWorld();
  const name = "better-auth.session_token";
  for (const write of [
    (own: string) => `${name}=stale; ${name}=${own}`,
    (own: string) => `${name}=${own}; ${name}=${own}`,
  ]) {
    const jane = await world.as("jane", "acme");
    const headers = { cookie: write(jane.cookies.get(name) ?? "") };
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
  },
};

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
    const bases = ["session_token", "session_data", "dont_remember", "admin_session"];
    expect(namesIn(acting)).toEqual(new Set(bases.map(ofAcme)));
    expect([...browser.cookies.keys()]).toContain(ofAcme("dont_remember"));
    const query = { disableCookieCache: "true" };
    const { data } = await browser.get<SessionAnswer>("/get-session", { query });
    const { expiresAt } = acting.data.session;
    expect(data.session).toMatchObject({ userId, expiresAt });
    expect((await browser.post("/admin/stop-impersonating")).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ id: admin.id });
  });

  it("an admin who acts as users of two tenants in one browser stops both", async () => {
    const browser = world.browser();
    const places = ["acme", "globex"] as const;
    const at = (place: Place) => ({ headers: world.naming(place) });
    for (const place of places) {
      const { id: userId } = await world.as("jane", place);
      const { cookies } = await world.as("admin", place);
      for (const [name, value] of cookies) browser.cookies.set(name, value);
      const acting = await browser.post("/admin/impersonate-user", { userId }, at(place));
      expect(acting.status).toBe(200);
    }
    for (const place of places) {
      const { id } = await world.as("admin", place);
      expect((await browser.post("/admin/stop-impersonating", {}, at(place))).status).toBe(200);
      expect(await world.whoIs(browser, place)).toMatchObject({ id });
    }
  });

  it("an operator impersonates a user of Acme where no tenant is named, and is signed out at Acme", async () => {
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
