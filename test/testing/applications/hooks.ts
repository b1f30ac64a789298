import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware, sessionMiddleware } from "better-auth/api";
import * as z from "zod";
import { runInTenant } from "../../../src/index";
import type { TestDatabase } from "../../support/database";
import { type Application, assemble, here, must, newId, PASSWORD, says, twins } from "./support";

const signedIn = [sessionMiddleware];

/** Everybody who signs up is in the phone book. */
const copyUsers = (db: TestDatabase): Partial<BetterAuthOptions> => ({
  databaseHooks: {
    user: {
      create: {
        after: async (user) => {
          await db.query("insert into phone_book (id, tenant_id, name) values (?, ?, ?)", [
            user.id,
            here(),
            user.name,
          ]);
        },
      },
    },
  },
});

const phoneBook = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "phone-book",
  endpoints: {
    phoneBook: createAuthEndpoint("/phone-book", { method: "GET", use: signedIn }, async (ctx) =>
      ctx.json(
        sound
          ? await db.query("select name from phone_book where tenant_id = ?", [here()])
          : await db.query("select name from phone_book"),
      ),
    ),
  },
});

const copiedUsers = twins({
  name: "a hook copies users into a phone book for all",
  sound: "a hook copies users into a phone book of their tenant",
  hole: "The phone book that a database hook fills is shown whole to everybody.",
  endpoint: "/phone-book",
  async build(sound) {
    const { auth, attack } = await assemble({
      auth: copyUsers,
      plugins: (db) => [phoneBook(db, sound)],
      sql: ["create table phone_book (id text primary key, tenant_id text, name text)"],
    });
    return {
      auth,
      options: { tables: ["phone_book"] },
      exploit: attack(async ({ a, b }) => says(await a.browser.get("/phone-book"), b.name)),
    };
  },
});

/** Notes who signs in, from which program. */
const audit = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "audit",
  hooks: {
    after: [
      {
        matcher: ({ path }) => path === "/sign-in/email",
        handler: createAuthMiddleware(async (ctx) => {
          const session = ctx.context.newSession;
          if (!session) return;
          await db.query("insert into audit_log (tenant_id, what, program) values (?, ?, ?)", [
            here(),
            `${session.user.name} signed in`,
            ctx.headers?.get("user-agent") ?? "",
          ]);
        }),
      },
    ],
  },
  endpoints: {
    recent: createAuthEndpoint("/audit/recent", { method: "GET", use: signedIn }, async (ctx) => {
      const where = sound ? "where tenant_id = ?" : "";
      const entries = await db.query(
        `select what, program from audit_log ${where} order by id desc limit 20`,
        sound ? [here()] : [],
      );
      return ctx.json({ entries });
    }),
  },
});

const auditLog = twins({
  name: "an after hook writes a log that everybody reads",
  sound: "an after hook writes a log for each tenant",
  hole: "The last twenty sign-ins are those of all tenants.",
  endpoint: "/audit/recent",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [audit(db, sound)],
      sql: [
        "create table audit_log (id integer primary key autoincrement, tenant_id text, what text, program text)",
      ],
    });
    return {
      auth,
      options: { tables: ["audit_log"] },
      exploit: attack(async ({ a, b }) => {
        const credentials = { email: b.email, password: PASSWORD };
        await must(b.browser.post("/sign-in/email", credentials));
        return says(await must(a.browser.get("/audit/recent")), b.name);
      }),
    };
  },
});

interface Job {
  tenantId: string;
  userId: string;
}

/** A report takes long. It is ordered, and made before the next request is answered. */
function reports(sound: boolean): BetterAuthPlugin {
  const queue: Job[] = [];
  const done = new Map<string, string[]>();
  return {
    id: "reports",
    hooks: {
      before: [
        {
          matcher: () => queue.length > 0,
          handler: createAuthMiddleware(async ({ context: { adapter } }) => {
            for (const { tenantId, userId } of queue.splice(0)) {
              const make = async () => {
                const users = await adapter.findMany<{ name: string }>({ model: "user" });
                done.set(
                  userId,
                  users.map(({ name }) => name),
                );
              };
              if (sound && tenantId) await runInTenant(tenantId, make);
              else if (!sound || !here()) await make();
            }
          }),
        },
      ],
    },
    endpoints: {
      order: createAuthEndpoint(
        "/reports/order",
        { method: "POST", use: signedIn },
        async (ctx) => {
          queue.push({ tenantId: here(), userId: ctx.context.session.user.id });
          return ctx.json({ ordered: true });
        },
      ),
      mine: createAuthEndpoint("/reports/mine", { method: "GET", use: signedIn }, async (ctx) => {
        const people = done.get(ctx.context.session.user.id);
        return ctx.json(people ? { ready: true, people } : { ready: false });
      }),
    },
  };
}

const queued = twins({
  name: "a job runs in the tenant of the next request",
  sound: "a job runs in the tenant that has ordered it",
  hole: "The report is made of the users of whichever tenant sends the next request.",
  endpoint: "/reports/",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: () => [reports(sound)] });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        await must(a.browser.post("/reports/order"));
        await must(b.browser.get("/get-session"));
        return says(await must(a.browser.get("/reports/mine")), b.name);
      }),
    };
  },
});

/** Whoever changes the name is announced to those who watch; a shared model holds the news. */
const news: BetterAuthPlugin = {
  id: "news",
  schema: { news: { fields: { text: { type: "string", required: true } } } },
  init: () => ({
    options: {
      databaseHooks: {
        user: {
          update: {
            after: async (user, ctx) => {
              const data = { text: `${user.name} has a new profile` };
              await ctx?.context.adapter.create({ model: "news", data });
            },
          },
        },
      },
    },
  }),
  endpoints: {
    latest: createAuthEndpoint(
      "/news/latest",
      {
        method: "GET",
        query: z.object({ limit: z.coerce.number().max(50).optional() }).optional(),
      },
      async (ctx) =>
        ctx.json(
          await ctx.context.adapter.findMany({ model: "news", limit: ctx.query?.limit ?? 20 }),
        ),
    ),
  },
};

const newsForAll = twins({
  name: "a hook writes names into a shared model",
  sound: "a hook writes names into a scoped model",
  hole: "The news are in `sharedModels`, and each of them has the name of a user.",
  endpoint: "/news/latest",
  async build(sound) {
    const tenant = sound ? { scopedModels: ["news"] } : { sharedModels: ["news"] };
    const { auth, attack } = await assemble({ plugins: () => [news], tenant });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.post("/update-user", { name: `Renamed at Globex ${newId()}` }));
        return says(await must(a.browser.get("/news/latest")), "Renamed at Globex");
      }),
    };
  },
});

export const hooks: Application[] = [...copiedUsers, ...auditLog, ...queued, ...newsForAll];
