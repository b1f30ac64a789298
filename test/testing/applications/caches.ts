import { APIError, createAuthMiddleware } from "better-auth/api";
import * as z from "zod";
import { type Application, endpoint, here, must, PASSWORD, says, twins } from "./support";

/** The card of the user is expensive to make, so it is made once. */
const cardByEmail = twins({
  name: "a cache with the email as its key",
  sound: "a cache with the user's id as its key",
  hole: "Two people with the same email at two tenants share one entry of the cache.",
  endpoint: "/cards/mine",
  define(sound) {
    const cache = new Map<string, object>();
    return {
      endpoints: () => [
        endpoint("GET /cards/mine", null, ({ user: { id, name, email } }) => {
          const key = sound ? id : email;
          const card = cache.get(key) ?? { id, name, initials: name.slice(0, 2), made: Date.now() };
          cache.set(key, card);
          return card;
        }),
      ],
      exploit: async ({ a, b }) => {
        await must(b.browser.get("/cards/mine"));
        return says(await a.browser.get("/cards/mine"), b.userId);
      },
    };
  },
});

/** Drafts are kept under a name that the user chooses. */
const draftByKey = twins({
  name: "drafts under a key that the user chooses",
  sound: "drafts under a key of the user's own",
  hole: "The key is used as it is, so the same key loads the draft of another tenant.",
  endpoint: "/drafts/load",
  define(sound) {
    const store = new Map<string, string>();
    const keyOf = (name: string, { id }: { id: string }) =>
      sound ? `${here()}:${id}:${name}` : name;
    const key = z.string().max(40);
    return {
      endpoints: () => [
        endpoint("POST /drafts/save", z.object({ key, text: z.string() }), ({ input, user }) => {
          store.set(keyOf(input.key, user), input.text);
          return { saved: true };
        }),
        endpoint("GET /drafts/load", z.object({ key }), ({ input, user }) => ({
          text: store.get(keyOf(input.key, user)) ?? null,
        })),
      ],
      options: {
        endpoints: {
          "/drafts/save": ({ mark, slug }) => ({
            body: { key: `letter-${slug}`, text: `Dear ${mark}` },
          }),
          "/drafts/load": ({ slug }) => ({ query: { key: `letter-${slug}` } }),
        },
      },
      exploit: async ({ a, b }) => {
        await must(b.browser.post("/drafts/save", { key: "letter", text: "Dear Globex" }));
        return says(await a.browser.get("/drafts/load", { query: { key: "letter" } }), "Globex");
      },
    };
  },
});

/** The list of colleagues is remembered for a minute. */
const oneList = twins({
  name: "one remembered list of colleagues for everybody",
  sound: "a remembered list of colleagues for each tenant",
  hole: "Who asks within a minute gets the list that was made for another tenant.",
  endpoint: "/colleagues",
  define(sound) {
    const remembered = new Map<string, { people: unknown[]; until: number }>();
    return {
      endpoints: () => [
        endpoint("GET /colleagues", null, async ({ adapter }) => {
          const key = sound ? here() : "colleagues";
          const known = remembered.get(key);
          if (known && known.until > Date.now()) return known.people;
          const users = await adapter.findMany<{ id: string; name: string }>({ model: "user" });
          const people = users.map(({ id, name }) => ({ id, name }));
          remembered.set(key, { people, until: Date.now() + 60_000 });
          return people;
        }),
      ],
      exploit: async ({ a, b }) => {
        await must(b.browser.get("/colleagues"));
        return says(await a.browser.get("/colleagues"), b.name);
      },
    };
  },
});

/** Three wrong passwords, and the address is locked for a while. */
const lockedOut = twins({
  name: "failed sign-ins are counted by email",
  sound: "failed sign-ins are counted by tenant and email",
  hole: "Wrong passwords at one tenant lock the same address out at another.",
  endpoint: "/sign-in/email",
  define: (sound) => ({
    sql: ["create table failed_login (address text primary key, failed integer not null)"],
    hooks(db) {
      const matcher = ({ path }: { path?: string }) => path === "/sign-in/email";
      const keyOf = (body: { email?: unknown } | undefined) => {
        const email = String(body?.email).toLowerCase();
        return sound ? `${here()}/${email}` : email;
      };
      const refuse = createAuthMiddleware(async ({ body }) => {
        const query = "select failed from failed_login where address = ?";
        const [row] = await db.query(query, [keyOf(body)]);
        if (Number(row?.failed ?? 0) >= 3) throw new APIError("TOO_MANY_REQUESTS");
      });
      const count = createAuthMiddleware(async ({ context, body }) => {
        if (!(context.returned instanceof APIError)) return;
        await db.query(
          `insert into failed_login (address, failed) values (?, 1)
           on conflict (address) do update set failed = failed_login.failed + 1`,
          [keyOf(body)],
        );
      });
      return { before: [{ matcher, handler: refuse }], after: [{ matcher, handler: count }] };
    },
    options: { tables: ["failed_login"] },
    exploit: async ({ a, b }) => {
      const credentials = { email: b.email, password: PASSWORD };
      await must(b.browser.post("/sign-in/email", credentials));
      for (let tries = 0; tries < 3; tries++) {
        await a.browser.post("/sign-in/email", { ...credentials, password: "a wrong one" });
      }
      return (await b.browser.post("/sign-in/email", credentials)).status === 429;
    },
  }),
});

/** The same, kept in the process: nothing that anybody could look at. */
const triedOut = twins({
  name: "wrong vouchers are counted by email, in memory",
  sound: "wrong vouchers are counted by user, in memory",
  hole: "Wrong vouchers at one tenant keep the same address from redeeming any at another.",
  endpoint: "/vouchers/redeem",
  define(sound) {
    const wrong = new Map<string, number>();
    return {
      endpoints: () => [
        endpoint("POST /vouchers/redeem", z.object({ code: z.string() }), ({ input, user }) => {
          const key = sound ? user.id : user.email;
          const tries = wrong.get(key) ?? 0;
          if (tries >= 5) throw new APIError("TOO_MANY_REQUESTS", { message: "try tomorrow" });
          if (input.code === "SUMMER") return { percent: 10 };
          wrong.set(key, tries + 1);
          throw new APIError("BAD_REQUEST", { message: "no such voucher" });
        }),
      ],
      options: { endpoints: { "/vouchers/redeem": { body: { code: "SUMMER" } } } },
      exploit: async ({ a, b }) => {
        for (let tries = 0; tries < 5; tries++) {
          await a.browser.post("/vouchers/redeem", { code: "guess" });
        }
        return (await b.browser.post("/vouchers/redeem", { code: "SUMMER" })).status === 429;
      },
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
