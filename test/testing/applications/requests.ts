import type { BetterAuthPlugin } from "better-auth";
import { APIError, createAuthEndpoint, sessionMiddleware } from "better-auth/api";
import * as z from "zod";
import type { TestDatabase } from "../../support/database";
import { type Application, assemble, here, must, newId, says, twins } from "./support";

const signedIn = [sessionMiddleware];

/** A gateway in front of the application checks who it is, and says so in a header. */
const gateway = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "gateway",
  endpoints: {
    summary: createAuthEndpoint(
      "/gateway/summary",
      { method: "GET", requireHeaders: true, use: sound ? signedIn : [] },
      async (ctx) => {
        const userId = ctx.headers.get("x-user-id");
        if (!userId) throw new APIError("UNAUTHORIZED", { message: "x-user-id is missing" });
        const session = ctx.context.session;
        if (sound && session?.user.id !== userId) throw new APIError("FORBIDDEN");
        const [user] = await db.query(`select name, "createdAt" from "user" where id = ?`, [
          userId,
        ]);
        return ctx.json(user ?? null);
      },
    ),
  },
});

const trustedHeader = twins({
  name: "a header that says who the user is",
  sound: "a header that has to agree with the session",
  hole: "Whoever sends `x-user-id` is that user, also of another tenant.",
  endpoint: "/gateway/summary",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: (db) => [gateway(db, sound)] });
    return {
      auth,
      options: {
        endpoints: { "/gateway/summary": ({ userId }) => ({ headers: { "x-user-id": userId } }) },
      },
      exploit: attack(async ({ a, b }) => {
        await must(a.browser.get("/gateway/summary", { headers: { "x-user-id": a.userId } }));
        const headers = { "x-user-id": b.userId };
        return says(await a.browser.get("/gateway/summary", { headers }), b.name);
      }),
    };
  },
});

/** Devices say their number with every request. */
const devices = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "devices",
  endpoints: {
    register: createAuthEndpoint(
      "/devices/register",
      { method: "POST", body: z.object({ label: z.string() }), use: signedIn },
      async (ctx) => {
        const id = newId();
        await db.query("insert into device values (?, ?, ?)", [id, here(), ctx.body.label]);
        return ctx.json({ id });
      },
    ),
    state: createAuthEndpoint(
      "/devices/state",
      { method: "GET", requireHeaders: true, use: signedIn },
      async (ctx) => {
        const id = ctx.headers.get("x-device-id");
        if (!id) throw new APIError("BAD_REQUEST", { message: "x-device-id is required" });
        const [device] = await db.query("select * from device where id = ?", [id]);
        if (!device || (sound && device.tenant_id !== here())) throw new APIError("NOT_FOUND");
        return ctx.json({ label: device.label, on: true });
      },
    ),
  },
});

const requiredHeader = twins({
  name: "a device by the number in a required header",
  sound: "a device of this tenant by the number in a required header",
  hole: "The number of another tenant's device is answered with its label.",
  endpoint: "/devices/state",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [devices(db, sound)],
      sql: ["create table device (id text primary key, tenant_id text, label text)"],
    });
    return {
      auth,
      options: {
        tables: ["device"],
        endpoints: {
          "/devices/register": ({ mark }) => ({ body: { label: `Door ${mark}` } }),
          "/devices/state": ({ rows }) => ({
            headers: { "x-device-id": String(rows("device")[0]?.id) },
          }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/devices/register", { label: "Vault" }));
        const headers = { "x-device-id": String(data.id) };
        return says(await a.browser.get("/devices/state", { headers }), "Vault");
      }),
    };
  },
});

/** The link at the end of every mail. */
const newsletter = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "newsletter",
  schema: {
    user: { fields: { newsletter: { type: "boolean", defaultValue: true, input: false } } },
  },
  endpoints: {
    unsubscribe: createAuthEndpoint(
      "/newsletter/unsubscribe",
      { method: "POST", body: z.object({ email: z.email() }) },
      async (ctx) => {
        const own = sound ? `and "tenantId" = ?` : "";
        await db.query(
          `update "user" set newsletter = false where email = ? ${own}`,
          sound ? [ctx.body.email, here()] : [ctx.body.email],
        );
        return ctx.json({ unsubscribed: true });
      },
    ),
  },
});

const updateByEmail = twins({
  name: "an update of users by their email",
  sound: "an update of users by their email and tenant",
  hole: "Who unsubscribes at one tenant unsubscribes the same address at all others.",
  endpoint: "/newsletter/unsubscribe",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: (db) => [newsletter(db, sound)] });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        await must(a.browser.post("/newsletter/unsubscribe", { email: a.email }));
        const { data } = await must(
          b.browser.get<{ user: { newsletter: boolean } }>("/get-session"),
        );
        return data.user.newsletter === false;
      }),
    };
  },
});

/** "Sign me out everywhere": a user has one address, so it is the address that is looked for. */
const signOut = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "sign-out-everywhere",
  endpoints: {
    everywhere: createAuthEndpoint(
      "/sign-out-everywhere",
      { method: "POST", use: signedIn },
      async (ctx) => {
        const { id, email } = ctx.context.session.user;
        if (sound) await db.query(`delete from session where "userId" = ?`, [id]);
        else {
          await db.query(
            `delete from session where "userId" in (select id from "user" where email = ?)`,
            [email],
          );
        }
        return ctx.json({ signedOut: true });
      },
    ),
  },
});

const sessionsByEmail = twins({
  name: "all my sessions are deleted by my email",
  sound: "all my sessions are deleted by my id",
  hole: "The sessions of whoever has the same email at another tenant are deleted, too.",
  endpoint: "/sign-out-everywhere",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: (db) => [signOut(db, sound)] });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        await must(a.browser.post("/sign-out-everywhere"));
        return !says(await must(b.browser.get("/get-session")), b.userId);
      }),
    };
  },
});

/** A bucket with a folder for each tenant. */
function files(sound: boolean): BetterAuthPlugin {
  const bucket = new Map<string, string>();
  const slugOfMine = async (adapter: Finder) => {
    const where = [{ field: "id", value: here() }];
    return (
      (await adapter.findOne<{ slug: string }>({ model: "tenant", where }))?.slug ?? "platform"
    );
  };
  return {
    id: "files",
    endpoints: {
      upload: createAuthEndpoint(
        "/files/upload",
        {
          method: "POST",
          body: z.object({ file: z.string().regex(/^[\w.-]+$/), content: z.string() }),
          use: signedIn,
        },
        async (ctx) => {
          const path = `${await slugOfMine(ctx.context.adapter)}/${ctx.body.file}`;
          bucket.set(path, ctx.body.content);
          return ctx.json({ path });
        },
      ),
      read: createAuthEndpoint(
        "/files/:folder/:file",
        { method: "GET", use: signedIn },
        async (ctx) => {
          const { folder, file } = ctx.params;
          const isMine = !sound || folder === (await slugOfMine(ctx.context.adapter));
          const content = isMine ? bucket.get(`${folder}/${file}`) : undefined;
          if (content === undefined) throw new APIError("NOT_FOUND");
          return new Response(content, { headers: { "content-type": "text/plain" } });
        },
      ),
    },
  };
}

interface Finder {
  findOne<T>(call: { model: string; where: { field: string; value: string }[] }): Promise<T | null>;
}

const fileBySlug = twins({
  name: "a file by the slug in its path",
  sound: "a file by the slug in its path, of this tenant",
  hole: "The folder in the path is that of any tenant, and nobody compares it with the session.",
  endpoint: "/files/:folder/:file",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: () => [files(sound)] });
    return {
      auth,
      options: {
        endpoints: {
          "/files/upload": ({ mark }) => ({ body: { file: "a.txt", content: `text of ${mark}` } }),
          "/files/:folder/:file": ({ slug }) => ({
            params: { folder: slug ?? "platform", file: "a.txt" },
          }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const body = { file: "plan.txt", content: "world domination" };
        await must(b.browser.post("/files/upload", body));
        return says(await a.browser.get(`/files/${b.slug}/plan.txt`), "domination");
      }),
    };
  },
});

/** Where events go to, and what they are signed with. */
const webhooks = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "webhooks",
  endpoints: {
    save: createAuthEndpoint(
      "/webhooks/save",
      { method: "POST", body: z.object({ url: z.url() }), use: signedIn },
      async (ctx) => {
        await db.query(
          `insert into webhook values (?, ?, ?) on conflict (workspace_id)
           do update set url = excluded.url, secret = excluded.secret`,
          [here(), ctx.body.url, `whsec_${newId()}`],
        );
        return ctx.json({ saved: true });
      },
    ),
    settings: createAuthEndpoint(
      "/webhooks/settings",
      { method: "GET", query: z.object({ workspaceId: z.string() }), use: signedIn },
      async (ctx) => {
        const { workspaceId } = ctx.query;
        if (sound && workspaceId !== here()) throw new APIError("FORBIDDEN");
        const [webhook] = await db.query("select url, secret from webhook where workspace_id = ?", [
          workspaceId,
        ]);
        return ctx.json(webhook ?? null);
      },
    ),
  },
});

const webhookSettings = twins({
  name: "webhook settings by the id of a workspace",
  sound: "webhook settings by the id of the own workspace",
  hole: "The workspace in the query is a claim, and its secret is shown to whoever makes it.",
  endpoint: "/webhooks/settings",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [webhooks(db, sound)],
      sql: ["create table webhook (workspace_id text primary key, url text, secret text)"],
    });
    return {
      auth,
      options: {
        tables: ["webhook"],
        endpoints: {
          "/webhooks/settings": ({ tenantId }) => ({ query: { workspaceId: tenantId ?? "" } }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.post("/webhooks/save", { url: "https://globex.example/hook" }));
        const query = { workspaceId: b.tenantId };
        return says(await a.browser.get("/webhooks/settings", { query }), "whsec_");
      }),
    };
  },
});

export const requests: Application[] = [
  ...trustedHeader,
  ...requiredHeader,
  ...updateByEmail,
  ...sessionsByEmail,
  ...fileBySlug,
  ...webhookSettings,
];
