import { createAuthEndpoint, createAuthMiddleware, requestPasswordReset } from "better-auth/api";
import { bearer, customSession } from "better-auth/plugins";
import { beforeAll, describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { BASE_URL, type InstanceOptions, PASSWORD } from "../support/instance";
import { combine } from "../support/matrix";
import { createStorage, SORTS, type Store } from "../support/stores";
import {
  createWorld,
  EMAIL,
  type Person,
  type Place,
  type SessionAnswer,
  shareWorld,
  type World,
} from "../support/world";

/** No request here needs a fraction of this. Whoever asks themselves goes on for ever. */
const BOUND = 30;

/** Asks who is there, or for the sessions of whoever it is. */
type Ask = (headers: Headers | undefined, path?: string, list?: true) => Promise<void>;

const hook = (ask: Ask) => createAuthMiddleware(async ({ headers, path }) => ask(headers, path));

/** The places an application asks from who is there. */
const ASKING: Record<string, (ask: Ask) => Pick<InstanceOptions, "auth" | "tenant" | "plugins">> = {
  "hooks.before": (ask) => ({ auth: { hooks: { before: hook(ask) } } }),
  "hooks.after": (ask) => ({ auth: { hooks: { after: hook(ask) } } }),
  "a plugin's onRequest": (ask) => ({
    plugins: [{ id: "asks", onRequest: async ({ headers }) => void (await ask(headers)) }],
  }),
  resolveTenantId: (ask) => ({
    tenant: {
      // Without a path it is about a host in an address, and not about the request.
      resolveTenantId: async ({ headers, request, path }) =>
        path === undefined ? undefined : ask(headers ?? request?.headers).then(() => undefined),
    },
  }),
  canManageTenants: (ask) => ({
    tenant: { canManageTenants: async ({ headers }) => ask(headers).then(() => true) },
  }),
  trustedOrigins: (ask) => ({
    auth: { trustedOrigins: async (request) => ask(request?.headers).then(() => []) },
  }),
  "a database hook": (ask) => {
    const before = async (_: unknown, ctx: { headers?: Headers | undefined } | null) =>
      ask(ctx?.headers);
    return {
      auth: { databaseHooks: { user: { update: { before } }, session: { create: { before } } } },
    };
  },
  "a mail sender": (ask) => {
    const sendResetPassword = async (_: unknown, request?: Request) => ask(request?.headers);
    return { auth: { emailAndPassword: { enabled: true, sendResetPassword } } };
  },
  // It is what answers who is there, so it asks for something else.
  customSession: (ask) => ({
    plugins: [
      customSession(async (session, { headers, path }) =>
        ask(headers, path, true).then(() => session),
      ),
    ],
  }),
};

const REQUESTS: [path: string, body?: object][] = [
  ["/get-session"],
  ["/update-user", { name: "Changed" }],
  ["/list-sessions"],
  ["/sign-in/email", { email: EMAIL, password: PASSWORD }],
  ["/request-password-reset", { email: EMAIL }],
];

/** A world that asks from somewhere who is there, and is kept from asking for ever. */
function shareAsking(create: (typeof ASKING)[string], store: Store) {
  // Bounded only once everybody is there.
  const counts = { reads: Number.NEGATIVE_INFINITY, depth: Number.NEGATIVE_INFINITY };
  const asked: (string | null)[] = [];
  const ask: Ask = async (headers, path, list) => {
    // The application knows better than to ask in a hook of the question itself.
    if (counts.reads < 0 || !headers || (path === "/get-session" && !list)) return;
    if (++counts.depth > BOUND) throw new Error("asks itself for ever");
    const session = list
      ? (await world.api.listSessions({ headers }))[0]
      : (await world.api.getSession({ headers }))?.session;
    asked.push(session?.userId ?? null);
  };
  const inner = createStorage();
  const get = async (key: string) => {
    if (++counts.reads > BOUND) throw new Error("reads from the storage for ever");
    return inner.get(key);
  };
  const { auth, tenant = {}, plugins = [] } = create(ask);
  const world = shareWorld({
    store: { ...store, ...(store.storage && { storage: () => ({ ...inner, get }) }) },
    tenant,
    plugins: [bearer(), ...plugins],
    ...(auth && { auth }),
  });
  beforeAll(async () => {
    await world.janes();
    const { statements } = world.database;
    statements.push = (...added) => {
      if (statements.length > BOUND) throw new Error("queries for ever");
      return Array.prototype.push.apply(statements, added);
    };
  });

  return {
    world,
    asked,
    /** Runs a request: it has to answer, with a bounded number of queries. */
    async send(browser: Browser, path: string, body?: object) {
      const { statements } = world.database;
      [statements.length, counts.reads, counts.depth, asked.length] = [0, 0, 0, 0];
      try {
        const answer = await (body ? browser.post(path, body) : browser.get(path));
        expect(statements.length + counts.reads).toBeLessThanOrEqual(BOUND);
        return answer;
      } finally {
        [statements.length, counts.reads] = [0, Number.NEGATIVE_INFINITY];
      }
    },
  };
}

const CASES = combine(Object.entries(ASKING), SORTS.slice(0, 3)).map(
  ([[from, create], store]) => [from, store.name, create, store] as const,
);

describe.each(CASES)("asking from %s who is there, sessions in %s", (from, _, create, store) => {
  const { world, asked, send } = shareAsking(create, store);

  it.each(["acme", "platform"] as const)(
    "R4: requests that name no tenant are answered, to somebody of %s",
    async (place: Place) => {
      const jane = await world.as("jane", place);
      const paths =
        from === "canManageTenants" ? [...REQUESTS, ["/tenant/list"] as const] : REQUESTS;
      let questions = 0;
      for (const [path, body] of paths) {
        const answer = await send(world.at("platform", jane), path, body);
        expect(answer.status, `${path}: ${JSON.stringify(answer.data)}`).toBe(200);
        // Whoever asks is told the one who is there, and nobody else.
        expect(new Set([...asked, jane.id]), path).toEqual(new Set([jane.id]));
        if (path === "/tenant/list") expect(asked).toHaveLength(1);
        questions += asked.length;
      }
      expect(questions).toBeGreaterThan(0);
      // By cookie and by bearer token, the answer is the person's own.
      const byToken = world.browser({ authorization: `Bearer ${jane.token}` });
      for (const window of [world.at("platform", jane), byToken]) {
        const { data } = await send(window, "/get-session");
        expect(data.user).toMatchObject({ id: jane.id });
        expect((await send(window, "/update-user", { name: "New" })).status).toBe(200);
      }
    },
  );

  it("R5: naming Globex, somebody of Acme is nobody, to those who ask too", async () => {
    const window = world.at("globex", await world.as("jane", "acme"));
    expect((await send(window, "/update-user", {})).status).toBe(401);
    // A resolver asks before anybody has said where the request belongs.
    if (from !== "resolveTenantId") expect(asked.filter((id) => id !== null)).toEqual([]);
  });
});

const expireSessions = (world: World, { id }: Person) =>
  world.database.query(`update "session" set "expiresAt" = ? where "userId" = ?`, [
    new Date(Date.now() - 1000).toISOString(),
    id,
  ]);

describe("R4: a session takes its request into its tenant", () => {
  const world = shareWorld();

  it.each([
    ["that has expired", (person: Person) => expireSessions(world, person)],
    ["that was revoked", (person: Person) => world.at("acme", person).post("/sign-out")],
  ])("one %s takes nobody anywhere", async (_, end) => {
    const { acme, platform } = await world.strangers();
    await end(acme);
    const window = () => world.at("platform", acme);
    await window().post("/request-password-reset", { email: acme.email });
    expect(world.mails).toMatchObject([{ userId: platform.id, sentIn: null }]);
    expect((await window().get("/list-sessions")).status).toBe(401);
  });

  it("get-session cleans up an expired one, in a tenant as on the platform", async () => {
    for (const person of Object.values(await world.strangers())) {
      await expireSessions(world, person);
      const window = world.at("platform", person);
      const answer = await window.get("/get-session");
      expect([answer.status, answer.data]).toEqual([200, null]);
      expect(await world.rows("session", `"userId" = ?`, [person.id])).toBe(0);
      expect(window.cookieHeader()).toBe("");
    }
  });

  it("threat: unsigned cookie trusted: one that claims a tenant is not heard", async () => {
    const { acme, platform } = await world.strangers();
    const { email } = acme;
    const id = world.ids.acme;
    const name = "better-auth.session_token";
    const value = acme.cookies.get(name) ?? "";
    const token = decodeURIComponent(value).split(".")[0];
    expect(token).toBe(acme.token);
    const session = { session: { tenantId: id, token }, user: { tenantId: id } };
    const forged = [
      `tenantId=${id}; x-tenant-id=${id}; tenant=${id}; tenant_id=${id}`,
      `${name}=${token}`,
      `${name}=${encodeURIComponent(`${token}.${"A".repeat(43)}=`)}`,
      `${name}=${token}; better-auth.session_data=${btoa(JSON.stringify({ session }))}`,
    ];
    const reset = async (cookie: string) => {
      await world.browser({ cookie }).post("/request-password-reset", { email });
      return world.mails.splice(0);
    };
    for (const cookie of forged) {
      const window = world.browser({ cookie });
      const { status, data } = await window.get<SessionAnswer | null>("/get-session");
      expect([status, data], cookie).toEqual([200, null]);
      expect((await window.get("/list-sessions")).status, cookie).toBe(401);
      expect(await reset(cookie), cookie).toMatchObject([{ userId: platform.id, sentIn: null }]);
    }
    // The same with the signature: the test would notice if none of these were cookies at all.
    expect(await reset(`${name}=${value}`)).toMatchObject([{ userId: acme.id, sentIn: id }]);
  });

  it("an Authorization header that is no session leaves it to the cookie", async () => {
    const bearing = await createWorld({ plugins: [bearer()] });
    for (const { strangers, at, mails } of [world, bearing]) {
      const { acme } = await strangers();
      const { email, id } = acme;
      for (const authorization of ["Basic amFuZTpzZWNyZXQ=", "Bearer forged.signature"]) {
        const options = { headers: { authorization } };
        await at("platform", acme).post("/request-password-reset", { email }, options);
        expect(mails.splice(0), authorization).toMatchObject([{ userId: id }]);
      }
    }
  });
});

describe("R4: code of the application's own", () => {
  const body = { email: EMAIL };
  const relay = createAuthEndpoint("/relay", { method: "POST" }, (ctx) => {
    const headers = { cookie: ctx.headers?.get("cookie") ?? "" };
    return requestPasswordReset({ ...ctx, body, headers, asResponse: false });
  });
  const lookUp = createAuthEndpoint("/look-up", { method: "GET" }, ({ context, query }) =>
    context.internalAdapter.findSession(query?.token),
  );
  const own = { id: "own", endpoints: { relay, lookUp } };
  const world = shareWorld({ plugins: [own] });
  const reset = (input: object) => world.api.requestPasswordReset({ body, ...input });

  it.each<[string, Place, (headers: { cookie: string }) => Promise<unknown>]>([
    ["headers", "acme", (headers) => reset({ headers })],
    ["a request", "acme", (headers) => reset({ request: new Request(BASE_URL, { headers }) })],
    [
      "a cookie, from endpoint to endpoint",
      "acme",
      (headers) => world.browser(headers).post("/relay"),
    ],
    ["nothing", "platform", () => reset({})],
  ])("that hands on %s of somebody of Acme works in %s", async (_, place, call) => {
    const janes = await world.janes();
    await call({ cookie: janes.acme.cookieHeader() });
    expect(world.mails).toMatchObject([{ userId: janes[place].id, sentIn: world.ids[place] }]);
  });

  it("that looks up a session of Acme's for somebody without one finds none", async () => {
    const query = { token: (await world.as("jane", "acme")).token };
    const { status, data } = await world.browser().get("/look-up", { query });
    expect([status, data]).toEqual([200, null]);
    const api = world.api as unknown as { lookUp(input: object): Promise<unknown> };
    expect(await api.lookUp({ query })).toBe(null);
  });
});
