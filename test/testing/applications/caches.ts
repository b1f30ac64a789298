import type { BetterAuthPlugin } from "better-auth";
import {
  APIError,
  createAuthEndpoint,
  createAuthMiddleware,
  sessionMiddleware,
} from "better-auth/api";
import * as z from "zod";
import type { TestDatabase } from "../../support/database";
import { type Application, assemble, here, must, PASSWORD, says, twins } from "./support";

const signedIn = [sessionMiddleware];

/** The card of the user is expensive to make, so it is made once. */
function cards(sound: boolean): BetterAuthPlugin {
  const cache = new Map<string, object>();
  return {
    id: "cards",
    endpoints: {
      myCard: createAuthEndpoint("/cards/mine", { method: "GET", use: signedIn }, async (ctx) => {
        const { id, name, email } = ctx.context.session.user;
        const key = sound ? id : email;
        const card = cache.get(key) ?? { id, name, initials: name.slice(0, 2), made: Date.now() };
        cache.set(key, card);
        return ctx.json(card);
      }),
    },
  };
}

const cardByEmail = twins({
  name: "a cache with the email as its key",
  sound: "a cache with the user's id as its key",
  hole: "Two people with the same email at two tenants share one entry of the cache.",
  endpoint: "/cards/mine",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: () => [cards(sound)] });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.get("/cards/mine"));
        return says(await a.browser.get("/cards/mine"), b.userId);
      }),
    };
  },
});

/** Drafts are kept under a name that the user chooses. */
function drafts(sound: boolean): BetterAuthPlugin {
  const store = new Map<string, string>();
  const keyOf = (name: string, userId: string) => (sound ? `${here()}:${userId}:${name}` : name);
  return {
    id: "drafts",
    endpoints: {
      save: createAuthEndpoint(
        "/drafts/save",
        {
          method: "POST",
          body: z.object({ key: z.string().max(40), text: z.string() }),
          use: signedIn,
        },
        async (ctx) => {
          store.set(keyOf(ctx.body.key, ctx.context.session.user.id), ctx.body.text);
          return ctx.json({ saved: true });
        },
      ),
      load: createAuthEndpoint(
        "/drafts/load",
        { method: "GET", query: z.object({ key: z.string().max(40) }), use: signedIn },
        async (ctx) => {
          const text = store.get(keyOf(ctx.query.key, ctx.context.session.user.id));
          return ctx.json({ text: text ?? null });
        },
      ),
    },
  };
}

const draftByKey = twins({
  name: "drafts under a key that the user chooses",
  sound: "drafts under a key of the user's own",
  hole: "The key is used as it is, so the same key loads the draft of another tenant.",
  endpoint: "/drafts/load",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: () => [drafts(sound)] });
    return {
      auth,
      options: {
        endpoints: {
          "/drafts/save": ({ mark, slug }) => ({
            body: { key: `letter-${slug}`, text: `Dear ${mark}` },
          }),
          "/drafts/load": ({ slug }) => ({ query: { key: `letter-${slug}` } }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.post("/drafts/save", { key: "letter", text: "Dear Globex" }));
        return says(await a.browser.get("/drafts/load", { query: { key: "letter" } }), "Globex");
      }),
    };
  },
});

/** The list of colleagues is remembered for a minute. */
function colleagues(sound: boolean): BetterAuthPlugin {
  const remembered = new Map<string, { people: unknown[]; until: number }>();
  return {
    id: "colleagues",
    endpoints: {
      colleagues: createAuthEndpoint(
        "/colleagues",
        { method: "GET", use: signedIn },
        async (ctx) => {
          const key = sound ? here() : "colleagues";
          const known = remembered.get(key);
          if (known && known.until > Date.now()) return ctx.json(known.people);
          const users = await ctx.context.adapter.findMany<{ id: string; name: string }>({
            model: "user",
          });
          const people = users.map(({ id, name }) => ({ id, name }));
          remembered.set(key, { people, until: Date.now() + 60_000 });
          return ctx.json(people);
        },
      ),
    },
  };
}

const oneList = twins({
  name: "one remembered list of colleagues for everybody",
  sound: "a remembered list of colleagues for each tenant",
  hole: "Who asks within a minute gets the list that was made for another tenant.",
  endpoint: "/colleagues",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: () => [colleagues(sound)] });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.get("/colleagues"));
        return says(await a.browser.get("/colleagues"), b.name);
      }),
    };
  },
});

/** Three wrong passwords, and the address is locked for a while. */
function lockout(db: TestDatabase, sound: boolean): BetterAuthPlugin {
  const isSignIn = ({ path }: { path?: string }) => path === "/sign-in/email";
  const keyOf = (body: { email?: unknown } | undefined) => {
    const email = String(body?.email).toLowerCase();
    return sound ? `${here()}/${email}` : email;
  };
  const refuse = createAuthMiddleware(async (ctx) => {
    const [row] = await db.query("select failed from failed_login where address = ?", [
      keyOf(ctx.body),
    ]);
    if (Number(row?.failed ?? 0) >= 3) throw new APIError("TOO_MANY_REQUESTS");
  });
  const count = createAuthMiddleware(async (ctx) => {
    if (!(ctx.context.returned instanceof APIError)) return;
    await db.query(
      `insert into failed_login (address, failed) values (?, 1)
       on conflict (address) do update set failed = failed_login.failed + 1`,
      [keyOf(ctx.body)],
    );
  });
  return {
    id: "lockout",
    hooks: {
      before: [{ matcher: isSignIn, handler: refuse }],
      after: [{ matcher: isSignIn, handler: count }],
    },
  };
}

const lockedOut = twins({
  name: "failed sign-ins are counted by email",
  sound: "failed sign-ins are counted by tenant and email",
  hole: "Wrong passwords at one tenant lock the same address out at another.",
  endpoint: "/sign-in/email",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [lockout(db, sound)],
      sql: ["create table failed_login (address text primary key, failed integer not null)"],
    });
    return {
      auth,
      options: { tables: ["failed_login"] },
      exploit: attack(async ({ a, b }) => {
        const credentials = { email: b.email, password: PASSWORD };
        await must(b.browser.post("/sign-in/email", credentials));
        for (let tries = 0; tries < 3; tries++) {
          await a.browser.post("/sign-in/email", { ...credentials, password: "a wrong one" });
        }
        return (await b.browser.post("/sign-in/email", credentials)).status === 429;
      }),
    };
  },
});

/** The same, kept in the process: nothing that anybody could look at. */
function codes(sound: boolean): BetterAuthPlugin {
  const wrong = new Map<string, number>();
  return {
    id: "codes",
    endpoints: {
      redeem: createAuthEndpoint(
        "/vouchers/redeem",
        { method: "POST", body: z.object({ code: z.string() }), use: signedIn },
        async (ctx) => {
          const { id, email } = ctx.context.session.user;
          const key = sound ? id : email;
          const tries = wrong.get(key) ?? 0;
          if (tries >= 5) throw new APIError("TOO_MANY_REQUESTS", { message: "try tomorrow" });
          if (ctx.body.code === "SUMMER") return ctx.json({ percent: 10 });
          wrong.set(key, tries + 1);
          throw new APIError("BAD_REQUEST", { message: "no such voucher" });
        },
      ),
    },
  };
}

const triedOut = twins({
  name: "wrong vouchers are counted by email, in memory",
  sound: "wrong vouchers are counted by user, in memory",
  hole: "Wrong vouchers at one tenant keep the same address from redeeming any at another.",
  endpoint: "/vouchers/redeem",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: () => [codes(sound)] });
    return {
      auth,
      options: { endpoints: { "/vouchers/redeem": { body: { code: "SUMMER" } } } },
      exploit: attack(async ({ a, b }) => {
        for (let tries = 0; tries < 5; tries++) {
          await a.browser.post("/vouchers/redeem", { code: "guess" });
        }
        return (await b.browser.post("/vouchers/redeem", { code: "SUMMER" })).status === 429;
      }),
    };
  },
});

export const caches: Application[] = [
  ...cardByEmail,
  ...draftByKey,
  ...oneList,
  ...lockedOut,
  ...triedOut,
];
