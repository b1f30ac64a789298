import type { BetterAuthPlugin } from "better-auth";
import { APIError, createAuthEndpoint, sessionMiddleware } from "better-auth/api";
import { setSessionCookie } from "better-auth/cookies";
import { signJWT, verifyJWT } from "better-auth/crypto";
import type { User } from "better-auth/types";
import * as z from "zod";
import { Browser } from "../../support/browser";
import type { TestDatabase } from "../../support/database";
import { type Application, assemble, here, must, newId, ORIGIN, says, twins } from "./support";

const signedIn = [sessionMiddleware];

/** A link to a file works for everybody of the company who has it. */
const downloads = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "downloads",
  endpoints: {
    link: createAuthEndpoint(
      "/downloads/link",
      { method: "POST", body: z.object({ content: z.string() }), use: signedIn },
      async (ctx) => {
        const token = newId();
        await db.query("insert into download_link values (?, ?, ?)", [
          token,
          here(),
          ctx.body.content,
        ]);
        return ctx.json({ token });
      },
    ),
    download: createAuthEndpoint(
      "/downloads/get",
      { method: "GET", query: z.object({ token: z.uuid() }), use: signedIn },
      async (ctx) => {
        const [link] = await db.query("select * from download_link where token = ?", [
          ctx.query.token,
        ]);
        if (!link || (sound && link.tenant_id !== here())) throw new APIError("NOT_FOUND");
        return ctx.json({ content: link.content });
      },
    ),
  },
});

const downloadLinks = twins({
  name: "a download token that is good in every tenant",
  sound: "a download token that is good in its tenant",
  hole: "The token is looked up without the tenant, so people of other tenants can use it.",
  endpoint: "/downloads/get",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [downloads(db, sound)],
      sql: ["create table download_link (token text primary key, tenant_id text, content text)"],
    });
    return {
      auth,
      options: {
        tables: ["download_link"],
        endpoints: {
          "/downloads/link": ({ mark }) => ({ body: { content: `file of ${mark}` } }),
          "/downloads/get": ({ rows }) => ({
            query: { token: String(rows("download_link")[0]?.token) },
          }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/downloads/link", { content: "payroll" }));
        const query = { token: String(data.token) };
        return says(await a.browser.get("/downloads/get", { query }), "payroll");
      }),
    };
  },
});

/** Whoever has an invitation becomes a manager. */
const managers = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "managers",
  endpoints: {
    invite: createAuthEndpoint(
      "/managers/invite",
      { method: "POST", use: signedIn },
      async (ctx) => {
        const code = newId().slice(0, 8);
        await db.query("insert into manager_invite (code, tenant_id) values (?, ?)", [
          code,
          here(),
        ]);
        return ctx.json({ code });
      },
    ),
    accept: createAuthEndpoint(
      "/managers/accept",
      { method: "POST", body: z.object({ code: z.string() }), use: signedIn },
      async (ctx) => {
        const { code } = ctx.body;
        const [invite] = await db.query("select * from manager_invite where code = ?", [code]);
        if (!invite || (sound && invite.tenant_id !== here())) throw new APIError("NOT_FOUND");
        await db.query("delete from manager_invite where code = ?", [code]);
        const data = [newId(), here(), ctx.context.session.user.id];
        await db.query("insert into manager (id, tenant_id, user_id) values (?, ?, ?)", data);
        return ctx.json({ manager: true });
      },
    ),
  },
});

const inviteCodes = twins({
  name: "an invitation code that makes managers in any tenant",
  sound: "an invitation code that makes managers in its tenant",
  hole: "A code that was made at one tenant makes somebody a manager at another, and is used up.",
  endpoint: "/managers/accept",
  async build(sound) {
    const { auth, db, attack } = await assemble({
      plugins: (db) => [managers(db, sound)],
      sql: [
        "create table manager_invite (code text primary key, tenant_id text not null)",
        "create table manager (id text primary key, tenant_id text not null, user_id text not null)",
      ],
    });
    return {
      auth,
      options: {
        tables: ["manager_invite", "manager"],
        endpoints: {
          "/managers/accept": ({ rows }) => ({
            body: { code: String(rows("manager_invite")[0]?.code) },
          }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/managers/invite"));
        await a.browser.post("/managers/accept", { code: data.code });
        const left = await db.query("select * from manager_invite where code = ?", [data.code]);
        return left.length === 0;
      }),
    };
  },
});

/** Support hands out a code with which somebody without a password gets in. */
const entryCodes = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "entry-codes",
  endpoints: {
    entryCode: createAuthEndpoint("/entry/code", { method: "POST", use: signedIn }, async (ctx) => {
      const code = newId();
      await db.query("insert into entry_code (code, email, tenant_id) values (?, ?, ?)", [
        code,
        ctx.context.session.user.email,
        here(),
      ]);
      return ctx.json({ code });
    }),
    enter: createAuthEndpoint(
      "/entry/enter",
      { method: "POST", body: z.object({ code: z.string() }) },
      async (ctx) => {
        const { adapter, internalAdapter } = ctx.context;
        const [entry] = await db.query("select * from entry_code where code = ?", [ctx.body.code]);
        if (!entry || (sound && entry.tenant_id !== here())) throw new APIError("UNAUTHORIZED");
        const where = [{ field: "email", value: String(entry.email) }];
        const user = await adapter.findOne<User>({ model: "user", where });
        if (!user) throw new APIError("UNAUTHORIZED");
        await db.query("delete from entry_code where code = ?", [ctx.body.code]);
        const session = await internalAdapter.createSession(user.id);
        await setSessionCookie(ctx, { session, user });
        return ctx.json({ name: user.name });
      },
    ),
  },
});

const entering = twins({
  name: "an entry code that knows an email, and no tenant",
  sound: "an entry code that knows its tenant",
  hole: "A code of one tenant signs in as the user with the same email at another.",
  endpoint: "/entry/enter",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [entryCodes(db, sound)],
      sql: ["create table entry_code (code text primary key, email text, tenant_id text)"],
    });
    return {
      auth,
      options: {
        tables: ["entry_code"],
        endpoints: {
          "/entry/enter": ({ rows }) => ({ body: { code: String(rows("entry_code")[0]?.code) } }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const first = await must(a.browser.post("/entry/code"));
        await must(a.browser.post("/entry/enter", { code: first.data.code }));
        const { data } = await must(a.browser.post("/entry/code"));
        const headers = { "x-tenant-id": b.tenantId };
        const stranger = new Browser(auth.handler, `${ORIGIN}/api/auth`, headers);
        await stranger.post("/entry/enter", { code: data.code });
        return says(await stranger.get("/get-session"), b.userId);
      }),
    };
  },
});

const SECRET = "the secret that the tokens of this application are signed with";

/** A token for the mobile application, which is shown instead of a session. */
const mobile = (sound: boolean): BetterAuthPlugin => ({
  id: "mobile",
  endpoints: {
    issue: createAuthEndpoint("/mobile/token", { method: "POST", use: signedIn }, async (ctx) => {
      const { email } = ctx.context.session.user;
      const claims = sound ? { email, tenantId: here() } : { email };
      return ctx.json({ token: await signJWT(claims, SECRET, 600) });
    }),
    profile: createAuthEndpoint(
      "/mobile/profile",
      { method: "GET", query: z.object({ jwt: z.string() }) },
      async (ctx) => {
        const claims = await verifyJWT<{ email: string; tenantId?: string }>(ctx.query.jwt, SECRET);
        if (!claims || (sound && claims.tenantId !== here())) throw new APIError("UNAUTHORIZED");
        const where = [{ field: "email", value: claims.email }];
        const user = await ctx.context.adapter.findOne<User>({ model: "user", where });
        return ctx.json(user && { id: user.id, name: user.name });
      },
    ),
  },
});

const jwtWithoutTenant = twins({
  name: "a JWT that says an email, and no tenant",
  sound: "a JWT that says its tenant",
  hole: "The token of one tenant reads the profile of whoever has the same email at another.",
  endpoint: "/mobile/profile",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: () => [mobile(sound)] });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(a.browser.post("/mobile/token"));
        const headers = { "x-tenant-id": b.tenantId };
        const phone = new Browser(auth.handler, `${ORIGIN}/api/auth`, headers);
        const query = { jwt: String(data.token) };
        await must(a.browser.get("/mobile/profile", { query }));
        return says(await phone.get("/mobile/profile", { query }), b.userId);
      }),
    };
  },
});

/** Something is shared with an address, as in every office suite. */
const shares = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "shares",
  endpoints: {
    share: createAuthEndpoint(
      "/shares/add",
      {
        method: "POST",
        body: z.object({ email: z.email(), link: z.url() }),
        use: signedIn,
      },
      async (ctx) => {
        const { email, link } = ctx.body;
        await db.query("insert into share values (?, ?, ?, ?)", [newId(), here(), email, link]);
        return ctx.json({ shared: true });
      },
    ),
    withMe: createAuthEndpoint("/shares/with-me", { method: "GET", use: signedIn }, async (ctx) => {
      const { email } = ctx.context.session.user;
      const found = await db.query("select * from share where email = ?", [email]);
      const mine = sound ? found.filter(({ tenant_id }) => tenant_id === here()) : found;
      return ctx.json(mine.map(({ link }) => link));
    }),
  },
});

const sharedByEmail = twins({
  name: "something is shared with an email, in all tenants",
  sound: "something is shared with an email of this tenant",
  hole: "What is shared with an address shows to whoever has it at another tenant.",
  endpoint: "/shares/with-me",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [shares(db, sound)],
      sql: ["create table share (id text primary key, tenant_id text, email text, link text)"],
    });
    return {
      auth,
      options: {
        tables: ["share"],
        endpoints: {
          "/shares/add": ({ email, mark }) => ({
            body: { email, link: `https://files.example.com/${mark}` },
          }),
        },
      },
      exploit: attack(async ({ a, b, colleague }) => {
        const boss = await colleague(b, "boss@example.com", "Boss of Globex");
        const link = "https://files.example.com/merger";
        await must(boss.browser.post("/shares/add", { email: b.email, link }));
        return says(await must(a.browser.get("/shares/with-me")), "merger");
      }),
    };
  },
});

export const tokens: Application[] = [
  ...downloadLinks,
  ...inviteCodes,
  ...entering,
  ...jwtWithoutTenant,
  ...sharedByEmail,
];
