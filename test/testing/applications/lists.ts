import type { BetterAuthPlugin } from "better-auth";
import { APIError, createAuthEndpoint, sessionMiddleware } from "better-auth/api";
import { admin } from "better-auth/plugins";
import * as z from "zod";
import type { TestDatabase } from "../../support/database";
import { type Application, assemble, here, must, newId, says, twins } from "./support";

const signedIn = [sessionMiddleware];

const search = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "search",
  endpoints: {
    search: createAuthEndpoint(
      "/people/search",
      { method: "GET", query: z.object({ q: z.string().min(2) }), use: signedIn },
      async (ctx) => {
        const like = `%${ctx.query.q}%`;
        const own = sound ? `and "tenantId" = ?` : "";
        const found = await db.query(
          `select id, name, image from "user" where name like ? ${own} limit 50`,
          sound ? [like, here()] : [like],
        );
        return ctx.json({ found });
      },
    ),
  },
});

const searching = twins({
  name: "a search over the users of all tenants",
  sound: "a search over the users of this tenant",
  hole: "A search with `like` finds the people of other tenants.",
  endpoint: "/people/search",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: (db) => [search(db, sound)] });
    return {
      auth,
      options: { endpoints: { "/people/search": ({ mark }) => ({ query: { q: mark } }) } },
      exploit: attack(async ({ a, b }) => {
        const found = await must(a.browser.get("/people/search", { query: { q: "Globex" } }));
        return says(found, b.userId);
      }),
    };
  },
});

const team = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "team-page",
  endpoints: {
    team: createAuthEndpoint("/team-page", { method: "GET", use: signedIn }, async (ctx) => {
      const people = await db.query(`select id, name, image, "tenantId" from "user"`);
      return ctx.json(
        people
          .filter(({ tenantId }) => !sound || tenantId === here())
          .map(({ id, name, image }) => ({ id, name, image })),
      );
    }),
  },
});

const everybody = twins({
  name: "a team page with everybody there is",
  sound: "a team page with the people of this tenant",
  hole: "The list has the people of all tenants.",
  endpoint: "/team-page",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: (db) => [team(db, sound)] });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => says(await a.browser.get("/team-page"), b.userId)),
    };
  },
});

/** For a page that anybody may open, without an account. */
const publicList: Application = {
  name: "a public list of all members",
  hole: "Anybody, without an account, gets the names of the users of all tenants.",
  endpoint: "/members/public",
  async build() {
    const { auth, attack } = await assemble({
      plugins: (db) => [
        {
          id: "members",
          endpoints: {
            members: createAuthEndpoint("/members/public", { method: "GET" }, async (ctx) =>
              ctx.json({ members: await db.query(`select name from "user" order by name`) }),
            ),
          },
        },
      ],
    });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => says(await a.browser.get("/members/public"), b.name)),
    };
  },
};

const statistics = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "statistics",
  endpoints: {
    statistics: createAuthEndpoint("/statistics", { method: "GET", use: signedIn }, async (ctx) => {
      const [counted] = sound
        ? await db.query(`select count(*) as n from "user" where "tenantId" = ?`, [here()])
        : await db.query(`select count(*) as n from "user"`);
      return ctx.json({ users: Number(counted?.n) });
    }),
  },
});

const counting = twins({
  name: "statistics over the users of all tenants",
  sound: "statistics over the users of this tenant",
  hole: "The number of users is that of all tenants: one sees when others grow.",
  endpoint: "/statistics",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: (db) => [statistics(db, sound)] });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b, colleague }) => {
        const before = await must(a.browser.get("/statistics"));
        await colleague(b, "new@example.com", "New at Globex");
        const after = await must(a.browser.get("/statistics"));
        return before.data.users !== after.data.users;
      }),
    };
  },
});

const contacts = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "contacts",
  endpoints: {
    add: createAuthEndpoint(
      "/contacts/add",
      {
        method: "POST",
        body: z.object({ name: z.string(), phone: z.string().regex(/^\+?[\d ]+$/) }),
        use: signedIn,
      },
      async (ctx) => {
        const { name, phone } = ctx.body;
        await db.query("insert into contact values (?, ?, ?, ?)", [newId(), here(), name, phone]);
        return ctx.json({ added: true });
      },
    ),
    export: createAuthEndpoint("/contacts/export", { method: "GET", use: signedIn }, async () => {
      const rows = await db.query("select * from contact order by name");
      const own = sound ? rows.filter(({ tenant_id }) => tenant_id === here()) : rows;
      const lines = own.map(({ name, phone }) => `"${name}";"${phone}"`);
      return new Response(["name;phone", ...lines].join("\r\n"), {
        headers: {
          "content-type": "text/csv",
          "content-disposition": "attachment; filename=contacts.csv",
        },
      });
    }),
  },
});

const exporting = twins({
  name: "an export of all rows as CSV",
  sound: "an export of this tenant's rows as CSV",
  hole: "The file has the contacts of all tenants.",
  endpoint: "/contacts/export",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [contacts(db, sound)],
      sql: ["create table contact (id text primary key, tenant_id text, name text, phone text)"],
    });
    return {
      auth,
      options: {
        tables: ["contact"],
        endpoints: {
          "/contacts/add": ({ mark }) => ({ body: { name: `Dr. ${mark}`, phone: "+49 30 1234" } }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.post("/contacts/add", { name: "Customer of Globex", phone: "123" }));
        return says(await must(a.browser.get("/contacts/export")), "Customer of Globex");
      }),
    };
  },
});

const tickets = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "tickets",
  endpoints: {
    open: createAuthEndpoint(
      "/tickets/open",
      { method: "POST", body: z.object({ subject: z.string() }), use: signedIn },
      async (ctx) => {
        const id = newId();
        await db.query("insert into ticket values (?, ?, ?)", [id, here(), ctx.body.subject]);
        return ctx.json({ id });
      },
    ),
    get: createAuthEndpoint(
      "/tickets/get",
      { method: "GET", query: z.object({ id: z.string() }), use: signedIn },
      async (ctx) => {
        const [ticket] = await db.query("select * from ticket where id = ?", [ctx.query.id]);
        const isForeign = ticket && ticket.tenant_id !== here();
        if (!ticket || (sound && isForeign)) throw new APIError("NOT_FOUND");
        if (isForeign) throw new APIError("FORBIDDEN", { message: "not your ticket" });
        return ctx.json({ subject: ticket.subject });
      },
    ),
  },
});

const oracle = twins({
  name: "403 for a foreign ticket, 404 for none",
  sound: "404 for a foreign ticket, and for none",
  hole: "The status tells whether an id exists at another tenant.",
  endpoint: "/tickets/get",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [tickets(db, sound)],
      sql: ["create table ticket (id text primary key, tenant_id text, subject text)"],
    });
    return {
      auth,
      options: {
        tables: ["ticket"],
        endpoints: {
          "/tickets/open": { body: { subject: "help" } },
          "/tickets/get": ({ rows }) => ({ query: { id: String(rows("ticket")[0]?.id) } }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/tickets/open", { subject: "help" }));
        const foreign = await a.browser.get("/tickets/get", { query: { id: String(data.id) } });
        const none = await a.browser.get("/tickets/get", { query: { id: newId() } });
        return foreign.status !== none.status;
      }),
    };
  },
});

const addresses = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "addresses",
  endpoints: {
    emailOf: createAuthEndpoint(
      "/people/email",
      { method: "GET", query: z.object({ userId: z.string() }), use: signedIn },
      async (ctx) => {
        const { userId } = ctx.query;
        const [user] = await db.query(`select email, "tenantId" from "user" where id = ?`, [
          userId,
        ]);
        if (!user || (sound && user.tenantId !== here())) throw new APIError("NOT_FOUND");
        return ctx.json({ email: user.email });
      },
    ),
  },
});

const onlyAnEmail = twins({
  name: "an endpoint that returns the email of any user",
  sound: "an endpoint that returns the email of a user of this tenant",
  hole: "The id of a user of another tenant is answered with their email.",
  endpoint: "/people/email",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: (db) => [addresses(db, sound)] });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b, colleague }) => {
        const { userId } = await colleague(b, "only@globex.example", "Only at Globex");
        const answer = await a.browser.get("/people/email", { query: { userId } });
        return says(answer, "only@globex.example");
      }),
    };
  },
});

/** For administrators, and those are of one tenant each. */
const adminConsole = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "console",
  endpoints: {
    people: createAuthEndpoint("/console/people", { method: "GET", use: signedIn }, async (ctx) => {
      const { role } = ctx.context.session.user as { role?: string };
      if (role !== "admin") throw new APIError("FORBIDDEN");
      return ctx.json(
        sound
          ? await ctx.context.adapter.findMany({ model: "user" })
          : await db.query(`select id, name, email, "createdAt" from "user"`),
      );
    }),
  },
});

const forAdmins = twins({
  name: "a console for admins shows all tenants",
  sound: "a console for admins shows their tenant",
  hole: "An admin of one tenant sees the users of all tenants.",
  endpoint: "/console/people",
  async build(sound) {
    const { auth, db, attack } = await assemble({
      plugins: (db) => [admin(), adminConsole(db, sound)],
    });
    return {
      auth,
      options: {},
      exploit: attack(async ({ a, b }) => {
        await db.query(`update "user" set role = 'admin' where id = ?`, [a.userId]);
        return says(await must(a.browser.get("/console/people")), b.userId);
      }),
    };
  },
});

export const lists: Application[] = [
  ...searching,
  ...everybody,
  publicList,
  ...counting,
  ...exporting,
  ...oracle,
  ...onlyAnEmail,
  ...forAdmins,
];
