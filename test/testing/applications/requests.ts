import { APIError } from "better-auth/api";
import * as z from "zod";
import {
  type Application,
  endpoint,
  here,
  must,
  newId,
  openEndpoint,
  says,
  twins,
} from "./support";

/** A gateway in front of the application checks who it is, and says so in a header. */
const trustedHeader = twins({
  name: "a header that says who the user is",
  sound: "a header that has to agree with the session",
  hole: "Whoever sends `x-user-id` is that user, also of another tenant.",
  endpoint: "/gateway/summary",
  define: (sound) => ({
    endpoints: (db) => [
      (sound ? endpoint : openEndpoint)("GET /gateway/summary", null, async ({ user, ctx }) => {
        const userId = ctx.headers?.get("x-user-id");
        if (!userId) throw new APIError("UNAUTHORIZED", { message: "x-user-id is missing" });
        if (sound && user.id !== userId) throw new APIError("FORBIDDEN");
        const query = `select name, "createdAt" from "user" where id = ?`;
        return (await db.query(query, [userId]))[0] ?? null;
      }),
    ],
    options: {
      endpoints: { "/gateway/summary": ({ userId }) => ({ headers: { "x-user-id": userId } }) },
    },
    exploit: async ({ a, b }) => {
      await must(a.browser.get("/gateway/summary", { headers: { "x-user-id": a.userId } }));
      const headers = { "x-user-id": b.userId };
      return says(await a.browser.get("/gateway/summary", { headers }), b.name);
    },
  }),
});

/** The link at the end of every mail. */
const updateByEmail = twins({
  name: "an update of users by their email",
  sound: "an update of users by their email and tenant",
  hole: "Who unsubscribes at one tenant unsubscribes the same address at all others.",
  endpoint: "/newsletter/unsubscribe",
  define: (sound) => ({
    schema: {
      user: { fields: { newsletter: { type: "boolean", defaultValue: true, input: false } } },
    },
    endpoints: (db) => [
      openEndpoint(
        "POST /newsletter/unsubscribe",
        z.object({ email: z.email() }),
        async ({ input: { email } }) => {
          const own = sound ? `and "tenantId" = ?` : "";
          const query = `update "user" set newsletter = false where email = ? ${own}`;
          await db.query(query, sound ? [email, here()] : [email]);
          return { unsubscribed: true };
        },
      ),
    ],
    exploit: async ({ a, b }) => {
      await must(a.browser.post("/newsletter/unsubscribe", { email: a.email }));
      const { data } = await must(b.browser.get<{ user: { newsletter: boolean } }>("/get-session"));
      return data.user.newsletter === false;
    },
  }),
});

/** "Sign me out everywhere": a user has one address, so it is the address that is looked for. */
const sessionsByEmail = twins({
  name: "all my sessions are deleted by my email",
  sound: "all my sessions are deleted by my id",
  hole: "The sessions of whoever has the same email at another tenant are deleted, too.",
  endpoint: "/sign-out-everywhere",
  define: (sound) => ({
    endpoints: (db) => [
      endpoint("POST /sign-out-everywhere", null, async ({ user }) => {
        const mine = sound ? "id = ?" : "email = ?";
        await db.query(
          `delete from session where "userId" in (select id from "user" where ${mine})`,
          [sound ? user.id : user.email],
        );
        return { signedOut: true };
      }),
    ],
    exploit: async ({ a, b }) => {
      await must(a.browser.post("/sign-out-everywhere"));
      return !says(await must(b.browser.get("/get-session")), b.userId);
    },
  }),
});

/** Where events go to, and what they are signed with. */
const webhookSettings = twins({
  name: "webhook settings by the id of a workspace",
  sound: "webhook settings by the id of the own workspace",
  hole: "The workspace in the query is a claim, and its secret is shown to whoever makes it.",
  endpoint: "/webhooks/settings",
  define: (sound) => ({
    sql: ["create table webhook (workspace_id text primary key, url text, secret text)"],
    endpoints: (db) => [
      endpoint("POST /webhooks/save", z.object({ url: z.url() }), async ({ input }) => {
        await db.query(
          `insert into webhook values (?, ?, ?) on conflict (workspace_id)
           do update set url = excluded.url, secret = excluded.secret`,
          [here(), input.url, `whsec_${newId()}`],
        );
        return { saved: true };
      }),
      endpoint(
        "GET /webhooks/settings",
        z.object({ workspaceId: z.string() }),
        async ({ input: { workspaceId } }) => {
          if (sound && workspaceId !== here()) throw new APIError("FORBIDDEN");
          const query = "select url, secret from webhook where workspace_id = ?";
          return (await db.query(query, [workspaceId]))[0] ?? null;
        },
      ),
    ],
    options: {
      tables: ["webhook"],
      endpoints: {
        "/webhooks/settings": ({ tenantId }) => ({ query: { workspaceId: tenantId ?? "" } }),
      },
    },
    exploit: async ({ a, b }) => {
      await must(b.browser.post("/webhooks/save", { url: "https://globex.example/hook" }));
      const query = { workspaceId: b.tenantId };
      return says(await a.browser.get("/webhooks/settings", { query }), "whsec_");
    },
  }),
});

export const requests: Application[] = [
  ...trustedHeader,
  ...updateByEmail,
  ...sessionsByEmail,
  ...webhookSettings,
];
