import { APIError } from "better-auth/api";
import { admin } from "better-auth/plugins";
import * as z from "zod";
import {
  type Application,
  build,
  endpoint,
  find,
  here,
  insert,
  must,
  newId,
  ofTenant,
  openEndpoint,
  says,
  twins,
} from "./support";

const searching = twins({
  name: "a search over the users of all tenants",
  sound: "a search over the users of this tenant",
  hole: "A search with `like` finds the people of other tenants.",
  endpoint: "/people/search",
  define: (sound) => ({
    endpoints: (db) => [
      endpoint("GET /people/search", z.object({ q: z.string().min(2) }), async ({ input }) => {
        const like = `%${input.q}%`;
        const own = sound ? `and "tenantId" = ?` : "";
        const query = `select id, name, image from "user" where name like ? ${own} limit 50`;
        return { found: await db.query(query, sound ? [like, here()] : [like]) };
      }),
    ],
    options: { endpoints: { "/people/search": ({ mark }) => ({ query: { q: mark } }) } },
    exploit: async ({ a, b }) => {
      const found = await must(a.browser.get("/people/search", { query: { q: "Globex" } }));
      return says(found, b.userId);
    },
  }),
});

/** For a page that anybody may open, without an account. */
const publicList: Application = {
  name: "a public list of all members",
  hole: "Anybody, without an account, gets the names of the users of all tenants.",
  endpoint: "/members/public",
  build: () =>
    build({
      endpoints: (db) => [
        openEndpoint("GET /members/public", null, async () => ({
          members: await db.query(`select name from "user" order by name`),
        })),
      ],
      exploit: async ({ a, b }) => says(await a.browser.get("/members/public"), b.name),
    }),
};

const counting = twins({
  name: "statistics over the users of all tenants",
  sound: "statistics over the users of this tenant",
  hole: "The number of users is that of all tenants: one sees when others grow.",
  endpoint: "/statistics",
  define: (sound) => ({
    endpoints: (db) => [
      endpoint("GET /statistics", null, async () => {
        const query = `select count(*) as n from "user"`;
        const [counted] = sound
          ? await db.query(`${query} where "tenantId" = ?`, [here()])
          : await db.query(query);
        return { users: Number(counted?.n) };
      }),
    ],
    exploit: async ({ a, b, colleague }) => {
      const before = await must(a.browser.get("/statistics"));
      await colleague(b, "new@example.com", "New at Globex");
      const after = await must(a.browser.get("/statistics"));
      return before.data.users !== after.data.users;
    },
  }),
});

const exporting = twins({
  name: "an export of all rows as CSV",
  sound: "an export of this tenant's rows as CSV",
  hole: "The file has the contacts of all tenants.",
  endpoint: "/contacts/export",
  define: (sound) => ({
    sql: ["create table contact (id text primary key, tenant_id text, name text, phone text)"],
    endpoints: (db) => {
      const contact = z.object({ name: z.string(), phone: z.string().regex(/^\+?[\d ]+$/) });
      return [
        endpoint("POST /contacts/add", contact, async ({ input }) => {
          await insert(db, "contact", newId(), here(), input.name, input.phone);
          return { added: true };
        }),
        endpoint("GET /contacts/export", null, async () => {
          const rows = ofTenant(await db.query("select * from contact order by name"), sound);
          const lines = rows.map(({ name, phone }) => `"${name}";"${phone}"`);
          const headers = {
            "content-type": "text/csv",
            "content-disposition": "attachment; filename=contacts.csv",
          };
          return new Response(["name;phone", ...lines].join("\r\n"), { headers });
        }),
      ];
    },
    options: {
      tables: ["contact"],
      endpoints: {
        "/contacts/add": ({ mark }) => ({ body: { name: `Dr. ${mark}`, phone: "+49 30 1234" } }),
      },
    },
    exploit: async ({ a, b }) => {
      await must(b.browser.post("/contacts/add", { name: "Customer of Globex", phone: "123" }));
      return says(await must(a.browser.get("/contacts/export")), "Customer of Globex");
    },
  }),
});

const oracle = twins({
  name: "403 for a foreign ticket, 404 for none",
  sound: "404 for a foreign ticket, and for none",
  hole: "The status tells whether an id exists at another tenant.",
  endpoint: "/tickets/get",
  define: (sound) => ({
    sql: ["create table ticket (id text primary key, tenant_id text, subject text)"],
    endpoints: (db) => [
      endpoint("POST /tickets/open", z.object({ subject: z.string() }), async ({ input }) => {
        const id = newId();
        await insert(db, "ticket", id, here(), input.subject);
        return { id };
      }),
      endpoint("GET /tickets/get", z.object({ id: z.string() }), async ({ input }) => {
        const ticket = await find(db, sound, ["ticket", "id"], input.id);
        const isForeign = ticket.tenant_id !== here();
        if (isForeign) throw new APIError("FORBIDDEN", { message: "not your ticket" });
        return { subject: ticket.subject };
      }),
    ],
    options: {
      tables: ["ticket"],
      endpoints: {
        "/tickets/open": { body: { subject: "help" } },
        "/tickets/get": ({ rows }) => ({ query: { id: String(rows("ticket")[0]?.id) } }),
      },
    },
    exploit: async ({ a, b }) => {
      const { data } = await must(b.browser.post("/tickets/open", { subject: "help" }));
      const foreign = await a.browser.get("/tickets/get", { query: { id: String(data.id) } });
      const none = await a.browser.get("/tickets/get", { query: { id: newId() } });
      return foreign.status !== none.status;
    },
  }),
});

const onlyAnEmail = twins({
  name: "an endpoint that returns the email of any user",
  sound: "an endpoint that returns the email of a user of this tenant",
  hole: "The id of a user of another tenant is answered with their email.",
  endpoint: "/people/email",
  define: (sound) => ({
    endpoints: (db) => [
      endpoint("GET /people/email", z.object({ userId: z.string() }), async ({ input }) => {
        const { email } = await find(db, sound, [`"user"`, "id"], input.userId);
        return { email };
      }),
    ],
    exploit: async ({ a, b, colleague }) => {
      const { userId } = await colleague(b, "only@globex.example", "Only at Globex");
      const answer = await a.browser.get("/people/email", { query: { userId } });
      return says(answer, "only@globex.example");
    },
  }),
});

/** For administrators, and those are of one tenant each. */
const forAdmins = twins({
  name: "a console for admins shows all tenants",
  sound: "a console for admins shows their tenant",
  hole: "An admin of one tenant sees the users of all tenants.",
  endpoint: "/console/people",
  define: (sound) => ({
    plugins: () => [admin()],
    endpoints: (db) => [
      endpoint("GET /console/people", null, ({ user, adapter }) => {
        if (user.role !== "admin") throw new APIError("FORBIDDEN");
        return sound
          ? adapter.findMany({ model: "user" })
          : db.query(`select id, name, email, "createdAt" from "user"`);
      }),
    ],
    exploit: async ({ a, b, db }) => {
      await db.query(`update "user" set role = 'admin' where id = ?`, [a.userId]);
      return says(await must(a.browser.get("/console/people")), b.userId);
    },
  }),
});

export const lists: Application[] = [
  ...searching,
  publicList,
  ...counting,
  ...exporting,
  ...oracle,
  ...onlyAnEmail,
  ...forAdmins,
];
