import type { AuthContext, BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware, sessionMiddleware } from "better-auth/api";
import type { DBAdapter } from "better-auth/types";
import * as z from "zod";
import { borderOf } from "../../src/border/border";
import type { TestDatabase } from "../support/database";

const rawOf = ({ adapter }: AuthContext) => borderOf(adapter)?.raw as DBAdapter;

/** A plugin with notes, whose author has not thought of tenants in one way or another. */
export function notes(endpoints: BetterAuthPlugin["endpoints"]): BetterAuthPlugin {
  return {
    id: "notes",
    schema: {
      note: {
        fields: {
          slug: { type: "string", required: true },
          text: { type: "string", required: true },
          userId: { type: "string", required: true, references: { model: "user", field: "id" } },
        },
      },
    },
    endpoints: { createNote, ...endpoints },
  };
}

let newest: Record<string, unknown> | null = null;

const createNote = createAuthEndpoint(
  "/notes/create",
  { method: "POST", body: z.object({ text: z.string() }), use: [sessionMiddleware] },
  async (ctx) => {
    const { user } = ctx.context.session;
    const data = { slug: `note-${user.id}`, text: `note of ${user.name}`, userId: user.id };
    newest = await ctx.context.adapter.create({ model: "note", data });
    return ctx.json(newest);
  },
);

const everyUser = (database: TestDatabase) =>
  database.query(`select * from ${database.quote("user")}`);

const bodyWithUser = { method: "POST", body: z.object({ userId: z.string() }) } as const;

/** Endpoints with a hole, made with a connection of their own or below the border. */
export const HOLES = {
  "reads users with a connection of its own": (database: TestDatabase) => ({
    people: createAuthEndpoint("/notes/people", { method: "GET" }, async (ctx) =>
      ctx.json(await everyUser(database)),
    ),
  }),

  "looks a row up by its slug, below the border": () => ({
    bySlug: createAuthEndpoint(
      "/notes/by-slug",
      { method: "GET", query: z.object({ slug: z.string() }) },
      async (ctx) => {
        const where = [{ field: "slug", value: ctx.query.slug }];
        return ctx.json(await rawOf(ctx.context).findOne<object>({ model: "note", where }));
      },
    ),
  }),

  "keeps the newest row in a variable": () => ({
    newest: createAuthEndpoint("/notes/newest", { method: "GET" }, async (ctx) => ctx.json(newest)),
  }),

  "changes a row with a connection of its own": (database: TestDatabase) => ({
    rename: createAuthEndpoint("/notes/rename", bodyWithUser, async (ctx) => {
      const { userId } = ctx.body;
      const table = database.quote("user");
      await database.query(`update ${table} set name = 'x' where id = ?`, [userId]);
      return ctx.json({ done: true });
    }),
  }),

  "deletes rows below the border": () => ({
    sweep: createAuthEndpoint("/notes/sweep", bodyWithUser, async (ctx) => {
      const where = [{ field: "userId", value: ctx.body.userId }];
      await rawOf(ctx.context).deleteMany({ model: "note", where });
      return ctx.json({ done: true });
    }),
  }),

  "makes a session for whoever is named": () => ({
    become: createAuthEndpoint("/notes/become", bodyWithUser, async (ctx) => {
      const { userId } = ctx.body;
      const raw = rawOf(ctx.context);
      const user = await raw.findOne<{ tenantId: string | null }>({
        model: "user",
        where: [{ field: "id", value: userId }],
      });
      const now = new Date();
      const token = `made-${Math.random()}`;
      const stamps = { createdAt: now, updatedAt: now, expiresAt: new Date(+now + 60_000) };
      const data = { userId, token, ...stamps, tenantId: user?.tenantId ?? "" };
      await raw.create({ model: "session", data });
      return ctx.json({ done: true });
    }),
  }),

  "changes a table of the application's own": (database: TestDatabase) => ({
    done: createAuthEndpoint("/notes/done", bodyWithUser, async (ctx) => {
      await database.query("update todo set done = done + 1 where owner = ?", [ctx.body.userId]);
      return ctx.json({ done: true });
    }),
  }),

  "takes an e-mail for a person": () => ({
    find: createAuthEndpoint(
      "/notes/find",
      { method: "GET", query: z.object({ email: z.string() }) },
      async (ctx) => {
        const where = [{ field: "email", value: ctx.query.email }];
        return ctx.json(await rawOf(ctx.context).findMany({ model: "user", where }));
      },
    ),
  }),
} satisfies Record<string, (database: TestDatabase) => BetterAuthPlugin["endpoints"]>;

/** A hook of the application that is too helpful: it tells everybody who there is. */
export const tellingHook = (database: TestDatabase): BetterAuthOptions["hooks"] => ({
  after: createAuthMiddleware(async (ctx) => {
    if (ctx.path !== "/ok") return;
    const users = await everyUser(database);
    ctx.setHeader("x-people", users.map(({ name }) => String(name)).join(", "));
  }),
});

/** Takes models out of the border again: what it was before there was one. */
export function unconfine(ctx: AuthContext, ...models: string[]): void {
  const raw = rawOf(ctx);
  const adapter = ctx.adapter as unknown as Record<string, (call: { model: string }) => unknown>;
  for (const name of [
    "findOne",
    "findMany",
    "update",
    "updateMany",
    "delete",
    "deleteMany",
    "consumeOne",
  ]) {
    const confined = adapter[name];
    adapter[name] = (call) =>
      models.includes(call.model)
        ? (raw as unknown as typeof adapter)[name]?.(call)
        : confined?.(call);
  }
}

/** The same for all that is done to a model: its rows belong to nobody any more. */
export function takeOutOfBorder({ adapter }: AuthContext, model: string): void {
  const border = borderOf(adapter);
  if (!border) throw new Error("there is no border");
  const { confinedModel } = border;
  border.confinedModel = (name) => (name === model ? undefined : confinedModel(name));
}
