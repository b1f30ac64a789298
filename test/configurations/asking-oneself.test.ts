import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { bearer, customSession } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import { createPlaces, EMAIL, type SessionAnswer } from "../plugins/places";
import type { Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import { type Instance, type InstanceOptions, PASSWORD } from "../support/instance";
import { createStorage } from "./storages";

/** No request here needs a fraction of this. Whoever asks themselves goes on for ever. */
const BOUND = 30;

type Ask = (headers: Headers | undefined, path?: string) => Promise<void>;

/** The places an application asks from who is there. */
interface Asking {
  auth?: Partial<BetterAuthOptions>;
  tenant?: TenantAuthOptions;
  plugins?: BetterAuthPlugin[];
}

const hook = (ask: Ask) => createAuthMiddleware(async ({ headers, path }) => ask(headers, path));

const ASKING: [name: string, create: (ask: Ask) => Asking][] = [
  ["hooks.before", (ask) => ({ auth: { hooks: { before: hook(ask) } } })],
  ["hooks.after", (ask) => ({ auth: { hooks: { after: hook(ask) } } })],
  [
    "a plugin's before-hook",
    (ask) => ({
      plugins: [{ id: "asks", hooks: { before: [{ matcher: () => true, handler: hook(ask) }] } }],
    }),
  ],
  [
    "a plugin's onRequest",
    (ask) => ({
      plugins: [{ id: "asks", onRequest: async ({ headers }) => void (await ask(headers)) }],
    }),
  ],
  [
    "resolveTenantId",
    (ask) => ({
      tenant: {
        resolveTenantId: async ({ headers, request }) => {
          await ask(headers ?? request?.headers);
          return undefined;
        },
      },
    }),
  ],
  [
    "trustedOrigins",
    (ask) => ({
      auth: {
        trustedOrigins: async (request) => {
          await ask(request?.headers);
          return [];
        },
      },
    }),
  ],
  ["a database hook", (ask) => ({ auth: { databaseHooks: databaseHooks(ask) } })],
  [
    "a mail sender",
    (ask) => ({
      auth: {
        emailAndPassword: {
          enabled: true,
          sendResetPassword: async (_, request) => ask(request?.headers),
        },
      },
    }),
  ],
  [
    "customSession",
    (ask) => ({
      plugins: [
        customSession(async (session, { headers, path }) => {
          await ask(headers, path);
          return session;
        }),
      ],
    }),
  ],
];

function databaseHooks(ask: Ask): BetterAuthOptions["databaseHooks"] {
  const before = async (_: unknown, ctx: { headers?: Headers | undefined } | null) => {
    await ask(ctx?.headers);
  };
  return { user: { update: { before } }, session: { create: { before } } };
}

/** What has reached the storage since the last request. */
interface Reads {
  count: number;
}
type AuthOptions = (reads: Reads) => Partial<BetterAuthOptions>;

const STORES: [name: string, auth: AuthOptions][] = [
  ["the database", () => ({})],
  ["secondary storage", (reads) => ({ secondaryStorage: boundedStorage(reads) })],
  ["a cached cookie", () => ({ session: { cookieCache: { enabled: true, maxAge: 300 } } })],
];

function boundedStorage(reads: Reads) {
  const storage = createStorage({});
  return {
    ...storage,
    get: async (key: string) => {
      if (++reads.count > BOUND) throw new Error("reads from the storage for ever");
      return storage.get(key);
    },
  };
}

/** Three places on an instance that asks from somewhere who is there, and is kept from asking for ever. */
async function createAsking(create: (ask: Ask) => Asking, auth: AuthOptions) {
  // Bounded only once everybody is there.
  const reads: Reads = { count: Number.NEGATIVE_INFINITY };
  const database = await createDatabase("sqlite");
  const { statements } = database;
  const asked: (string | null)[] = [];
  let instance: Instance | undefined;
  let enabled = false;
  let depth = 0;
  const ask: Ask = async (headers, path) => {
    // The application knows better than to ask in a hook of the question itself.
    if (!enabled || !headers || path === "/get-session") return;
    if (++depth > BOUND) throw new Error("asks itself for ever");
    const session = await instance?.api.getSession({ headers });
    asked.push(session?.user.id ?? null);
  };
  const asking = create(ask);
  const options: InstanceOptions = {
    database,
    auth: {
      emailAndPassword: { enabled: true, sendResetPassword: async () => {} },
      ...auth(reads),
      ...asking.auth,
    },
    tenant: asking.tenant,
  };
  const places = await createPlaces([bearer(), ...(asking.plugins ?? [])], options);
  instance = places.instance;
  const people = {
    a: await places.signUp("a"),
    platform: await places.signUp("platform"),
  };
  statements.push = (...added) => {
    if (statements.length > BOUND) throw new Error("queries for ever");
    return Array.prototype.push.apply(statements, added);
  };
  enabled = true;
  return {
    ...places,
    people,
    /** Runs a request, and answers what was asked and how much it took. */
    async count<T>(run: () => Promise<T>) {
      Object.assign(statements, { length: 0 });
      [reads.count, depth, asked.length] = [0, 0, 0];
      const answer = await run();
      return { answer, queries: statements.length + reads.count, asked: [...asked] };
    },
  };
}

const REQUESTS: [name: string, send: (browser: Browser) => ReturnType<Browser["get"]>][] = [
  ["get-session", (browser) => browser.get("/get-session")],
  ["update-user", (browser) => browser.post("/update-user", { name: "Changed" })],
  ["list-sessions", (browser) => browser.get("/list-sessions")],
  [
    "sign-in/email",
    (browser) => browser.post("/sign-in/email", { email: EMAIL, password: PASSWORD }),
  ],
  [
    "request-password-reset",
    (browser) => browser.post("/request-password-reset", { email: EMAIL }),
  ],
];

describe.each(ASKING)("asking who is there from %s", (from, create) => {
  describe.each(STORES)("with sessions in %s", (_, auth) => {
    it.each(REQUESTS)("R4: %s answers, in requests that name no tenant", async (_, send) => {
      const asking = await createAsking(create, auth);
      const { people, ids } = asking;
      for (const place of ["a", "platform"] as const) {
        const { browser, user } = people[place];
        const { answer, queries, asked } = await asking.count(() => send(browser.fork({})));
        expect(answer.status, `${place}: ${JSON.stringify(answer.data)}`).toBe(200);
        expect(queries, place).toBeLessThanOrEqual(BOUND);
        // Whoever asks is told the one who is there, and nobody else.
        for (const id of asked) expect(id, place).toBe(user.id);
      }
      expect(await asking.rows("user", '"tenantId" = ?', [ids.a])).toBe(1);
    });

    it("R4: the answer is the person's own, by cookie and by bearer token", async () => {
      const asking = await createAsking(create, auth);
      for (const place of ["a", "platform"] as const) {
        const { browser, token, user } = asking.people[place];
        const byToken = asking.instance.browser({ authorization: `Bearer ${token}` });
        for (const window of [browser.fork({}), byToken]) {
          const run = () => window.get<SessionAnswer | null>("/get-session");
          const { answer, queries } = await asking.count(run);
          expect(answer.data?.user.id, place).toBe(user.id);
          expect(queries).toBeLessThanOrEqual(BOUND);
          const change = await asking.count(() => window.post("/update-user", { name: "New" }));
          expect(change.answer.status, place).toBe(200);
        }
      }
    });

    it("R5: naming B, the person of A is nobody, to those who ask too", async () => {
      const asking = await createAsking(create, auth);
      const window = asking.people.a.browser.fork(asking.naming("b"));
      const { answer, asked } = await asking.count(() => window.post("/update-user", {}));
      expect(answer.status).toBe(401);
      // A resolver asks before anybody has said where the request belongs.
      if (from !== "resolveTenantId") for (const id of asked) expect(id).toBe(null);
    });
  });
});

describe("asking who is there from canManageTenants", () => {
  it.each(STORES)("answers, with sessions in %s", async (_, auth) => {
    const create = (ask: Ask): Asking => ({
      tenant: {
        canManageTenants: async ({ headers }) => {
          await ask(headers);
          return true;
        },
      },
    });
    const asking = await createAsking(create, auth);
    for (const place of ["a", "platform"] as const) {
      const { browser, user } = asking.people[place];
      const { answer, asked } = await asking.count(() => browser.fork({}).get("/tenant/list"));
      expect(answer.status).toBe(200);
      expect(asked).toEqual([user.id]);
    }
  });
});
