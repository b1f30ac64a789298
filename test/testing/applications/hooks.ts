import type { BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import * as z from "zod";
import { runInTenant } from "../../../src/index";
import {
  type Application,
  endpoint,
  here,
  insert,
  must,
  newId,
  ofTenant,
  openEndpoint,
  says,
  twins,
} from "./support";

/** Everybody who signs up is in the phone book. */
const copiedUsers = twins({
  name: "a hook copies users into a phone book for all",
  sound: "a hook copies users into a phone book of their tenant",
  hole: "The phone book that a database hook fills is shown whole to everybody.",
  endpoint: "/phone-book",
  define: (sound) => ({
    sql: ["create table phone_book (id text primary key, tenant_id text, name text)"],
    auth: (db) => {
      const after = async (user: { id: string; name: string }) =>
        void (await insert(db, "phone_book", user.id, here(), user.name));
      return { databaseHooks: { user: { create: { after } } } };
    },
    endpoints: (db) => [
      endpoint("GET /phone-book", null, async () => {
        const people = ofTenant(await db.query("select * from phone_book"), sound);
        return people.map(({ name }) => ({ name }));
      }),
    ],
    options: { tables: ["phone_book"] },
    exploit: async ({ a, b }) => says(await a.browser.get("/phone-book"), b.name),
  }),
});

/** A report takes long. It is ordered, and made before the next request is answered. */
const queued = twins({
  name: "a job runs in the tenant of the next request",
  sound: "a job runs in the tenant that has ordered it",
  hole: "The report is made of the users of whichever tenant sends the next request.",
  endpoint: "/reports/",
  define(sound) {
    const queue: { tenantId: string; userId: string }[] = [];
    const done = new Map<string, string[]>();
    return {
      hooks() {
        const handler = createAuthMiddleware(async ({ context: { adapter } }) => {
          for (const { tenantId, userId } of queue.splice(0)) {
            const make = async () => {
              const users = await adapter.findMany<{ name: string }>({ model: "user" });
              const names = users.map(({ name }) => name);
              done.set(userId, names);
            };
            if (sound && tenantId) await runInTenant(tenantId, make);
            else if (!sound || !here()) await make();
          }
        });
        return { before: [{ matcher: () => queue.length > 0, handler }] };
      },
      endpoints: () => [
        endpoint("POST /reports/order", null, ({ user }) => {
          queue.push({ tenantId: here(), userId: user.id });
          return { ordered: true };
        }),
        endpoint("GET /reports/mine", null, ({ user }) => {
          const people = done.get(user.id);
          return people ? { ready: true, people } : { ready: false };
        }),
      ],
      exploit: async ({ a, b }) => {
        await must(a.browser.post("/reports/order"));
        await must(b.browser.get("/get-session"));
        return says(await must(a.browser.get("/reports/mine")), b.name);
      },
    };
  },
});

type UserHooks = NonNullable<NonNullable<BetterAuthOptions["databaseHooks"]>["user"]>;

/** Whoever changes the name is announced to those who watch; a shared model holds the news. */
const announce: UserHooks = {
  update: {
    after: async (user, ctx) => {
      const data = { text: `${user.name} has a new profile` };
      await ctx?.context.adapter.create({ model: "news", data });
    },
  },
};

const newsForAll = twins({
  name: "a hook writes names into a shared model",
  sound: "a hook writes names into a scoped model",
  hole: "The news are in `sharedModels`, and each of them has the name of a user.",
  endpoint: "/news/latest",
  define: (sound) => ({
    tenant: { [sound ? "scopedModels" : "sharedModels"]: ["news"] },
    schema: { news: { fields: { text: { type: "string", required: true } } } },
    init: () => ({ options: { databaseHooks: { user: announce } } }),
    endpoints: () => [
      openEndpoint(
        "GET /news/latest",
        z.object({ limit: z.coerce.number().max(50).optional() }).optional(),
        ({ input, adapter }) => adapter.findMany({ model: "news", limit: input?.limit ?? 20 }),
      ),
    ],
    exploit: async ({ a, b }) => {
      await must(b.browser.post("/update-user", { name: `Renamed at Globex ${newId()}` }));
      return says(await must(a.browser.get("/news/latest")), "Renamed at Globex");
    },
  }),
});

export const hooks: Application[] = [...copiedUsers, ...queued, ...newsForAll];
