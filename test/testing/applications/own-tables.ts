import { APIError } from "better-auth/api";
import * as z from "zod";
import {
  type Application,
  endpoint,
  find,
  here,
  insert,
  must,
  newId,
  openEndpoint,
  says,
  twins,
} from "./support";

const byId = z.object({ id: z.string() });

const notesById = twins({
  name: "notes by id, without the tenant",
  sound: "notes by id and tenant",
  hole: "Whoever knows the id of a note reads it, in whichever tenant it was written.",
  endpoint: "/notes/get",
  define: (sound) => ({
    sql: [
      `create table note (id text primary key, "tenantId" text not null, author text, text text)`,
    ],
    endpoints: (db) => [
      endpoint(
        "POST /notes/create",
        z.object({ text: z.string().min(1) }),
        async ({ input, user }) => {
          const note = { id: newId(), text: input.text };
          await insert(db, "note", note.id, here(), user.id, note.text);
          return note;
        },
      ),
      endpoint("GET /notes/get", byId, ({ input }) => find(db, sound, ["note", "id"], input.id)),
    ],
    options: {
      tables: ["note"],
      endpoints: {
        "/notes/create": { body: { text: "a note" } },
        "/notes/get": ({ rows }) => ({ query: { id: String(rows("note")[0]?.id) } }),
      },
    },
    exploit: async ({ a, b }) => {
      const { data } = await must(b.browser.post("/notes/create", { text: "plans of Globex" }));
      const got = await a.browser.get("/notes/get", { query: { id: String(data.id) } });
      return says(got, "plans of Globex");
    },
  }),
});

/** A model in better-auth's schema. Nobody has thought much about the list that it has to be in. */
const deleting = twins({
  name: "a shared model is deleted by id",
  sound: "a scoped model is deleted by id",
  hole: "The model is in `sharedModels`, so the id of any tenant's document deletes it.",
  endpoint: "/documents/delete",
  define: (sound) => ({
    tenant: { [sound ? "scopedModels" : "sharedModels"]: ["document"] },
    schema: {
      document: {
        fields: {
          title: { type: "string", required: true },
          ownerId: { type: "string", required: true },
        },
      },
    },
    endpoints: () => [
      endpoint(
        "POST /documents/create",
        z.object({ title: z.string() }),
        ({ input, user, adapter }) =>
          adapter.create({ model: "document", data: { title: input.title, ownerId: user.id } }),
      ),
      endpoint("GET /documents/mine", null, ({ user, adapter }) => {
        const where = [{ field: "ownerId", value: user.id }];
        return adapter.findMany({ model: "document", where });
      }),
      endpoint("POST /documents/delete", byId, async ({ input, adapter }) => {
        await adapter.delete({ model: "document", where: [{ field: "id", value: input.id }] });
        return { deleted: true };
      }),
    ],
    options: {
      endpoints: {
        "/documents/delete": ({ rows }) => ({ body: { id: rows("document")[0]?.id } }),
      },
    },
    exploit: async ({ a, b }) => {
      const { data } = await must(b.browser.post("/documents/create", { title: "Contract" }));
      await a.browser.post("/documents/delete", { id: data.id });
      return !says(await must(b.browser.get("/documents/mine")), "Contract");
    },
  }),
});

const invoiceByPath = twins({
  name: "an invoice by the id in the path",
  sound: "an invoice by the id in the path, of this tenant",
  hole: "The id in the path finds the invoice of any tenant.",
  endpoint: "/invoices/:invoiceId",
  define: (sound) => ({
    sql: ["create table invoice (id text primary key, tenant_id text, customer text, amount real)"],
    endpoints: (db) => {
      const invoice = z.object({ customer: z.string(), amount: z.number().positive() });
      return [
        endpoint("POST /invoices", invoice, async ({ input: { customer, amount } }) => {
          const id = newId();
          await insert(db, "invoice", id, here(), customer, amount);
          return { id };
        }),
        endpoint("GET /invoices/:invoiceId", null, async ({ ctx }) => {
          const id = ctx.params?.invoiceId;
          const { customer, amount } = await find(db, sound, ["invoice", "id"], id);
          return { customer, amount };
        }),
      ];
    },
    options: {
      tables: ["invoice"],
      endpoints: {
        "/invoices": ({ mark }) => ({ body: { customer: `customer ${mark}`, amount: 100 } }),
        "/invoices/:invoiceId": ({ rows }) => ({
          params: { invoiceId: String(rows("invoice")[0]?.id) },
        }),
      },
    },
    exploit: async ({ a, b }) => {
      const body = { customer: "Hidden Ltd", amount: 5 };
      const { data } = await must(b.browser.post("/invoices", body));
      return says(await a.browser.get(`/invoices/${data.id}`), "Hidden Ltd");
    },
  }),
});

const nestedOwner = twins({
  name: "preferences are saved for the owner in a nested object",
  sound: "preferences are saved for the caller only",
  hole: "The owner is taken from the body, and nobody asks whether it is the caller.",
  endpoint: "/preferences/save",
  define: (sound) => ({
    sql: ["create table preference (user_id text primary key, theme text not null)"],
    endpoints: (db) => {
      const owner = z.object({ userId: z.string() });
      const preferences = z.object({ owner, theme: z.enum(["light", "dark"]) });
      return [
        endpoint("POST /preferences/save", z.object({ preferences }), async ({ input, user }) => {
          const { owner, theme } = input.preferences;
          if (sound && owner.userId !== user.id) throw new APIError("FORBIDDEN");
          await db.query(
            `insert into preference (user_id, theme) values (?, ?)
             on conflict (user_id) do update set theme = excluded.theme`,
            [owner.userId, theme],
          );
          return { saved: true };
        }),
        endpoint("GET /preferences/mine", null, async ({ user }) => {
          const query = "select theme from preference where user_id = ?";
          const [mine] = await db.query(query, [user.id]);
          return { theme: mine?.theme ?? "light" };
        }),
      ];
    },
    options: {
      tables: ["preference"],
      endpoints: {
        "/preferences/save": ({ userId }) => ({
          body: { preferences: { owner: { userId }, theme: "dark" } },
        }),
      },
    },
    exploit: async ({ a, b }) => {
      const preferences = { owner: { userId: b.userId }, theme: "dark" };
      await a.browser.post("/preferences/save", { preferences });
      return says(await must(b.browser.get("/preferences/mine")), "dark");
    },
  }),
});

/** The model is scoped, and the list does not go through the adapter. */
const rawList = twins({
  name: "raw SQL over a scoped model",
  sound: "a scoped model through the adapter",
  hole: "The list is read with raw SQL that does not name the tenant.",
  endpoint: "/tasks/list",
  define: (sound) => ({
    tenant: { scopedModels: ["task"] },
    schema: { task: { fields: { title: { type: "string", required: true } } } },
    endpoints: (db) => [
      endpoint("POST /tasks/add", z.object({ title: z.string() }), async ({ input, adapter }) => {
        await adapter.create({ model: "task", data: { title: input.title } });
        return { added: true };
      }),
      endpoint("GET /tasks/list", null, ({ adapter }) =>
        sound
          ? adapter.findMany({ model: "task" })
          : db.query("select id, title from task order by title"),
      ),
    ],
    options: {
      endpoints: { "/tasks/add": ({ mark }) => ({ body: { title: `task ${mark}` } }) },
    },
    exploit: async ({ a, b }) => {
      await must(b.browser.post("/tasks/add", { title: "buy Acme" }));
      return says(await a.browser.get("/tasks/list"), "buy Acme");
    },
  }),
});

const foreignPost = twins({
  name: "a comment on a post of any tenant",
  sound: "a comment on a post of this tenant",
  hole: "A comment is stored under the post of another tenant, where its people read it.",
  endpoint: "/posts/comment",
  define: (sound) => ({
    sql: [
      "create table post (id text primary key, tenant_id text not null, title text)",
      "create table comment (id text primary key, post_id text references post (id), text text)",
    ],
    endpoints: (db) => [
      endpoint("POST /posts/create", z.object({ title: z.string() }), async ({ input }) => {
        const id = newId();
        await insert(db, "post", id, here(), input.title);
        return { id };
      }),
      endpoint(
        "POST /posts/comment",
        z.object({ postId: z.string(), text: z.string() }),
        async ({ input }) => {
          await find(db, sound, ["post", "id"], input.postId);
          await insert(db, "comment", newId(), input.postId, input.text);
          return { commented: true };
        },
      ),
      endpoint("GET /posts/comments", null, () =>
        db.query(
          "select c.* from comment c join post p on p.id = c.post_id where p.tenant_id = ?",
          [here()],
        ),
      ),
    ],
    options: {
      tables: ["post", "comment"],
      endpoints: {
        "/posts/create": { body: { title: "Hello" } },
        "/posts/comment": ({ rows }) => ({
          body: { postId: rows("post")[0]?.id, text: "first!" },
        }),
      },
    },
    exploit: async ({ a, b }) => {
      const { data } = await must(b.browser.post("/posts/create", { title: "Hello" }));
      await a.browser.post("/posts/comment", { postId: data.id, text: "spam of Acme" });
      return says(await must(b.browser.get("/posts/comments")), "spam of Acme");
    },
  }),
});

const samePage = twins({
  name: "a page is overwritten by its name",
  sound: "a page is overwritten by its name and tenant",
  hole: "The name of a page is unique in all tenants, and who saves it again overwrites it.",
  endpoint: "/pages/save",
  define: (sound) => {
    const unique = sound ? "tenant_id, name" : "name";
    return {
      sql: [`create table page (tenant_id text, name text, html text, unique (${unique}))`],
      endpoints: (db) => [
        endpoint(
          "POST /pages/save",
          z.object({ name: z.string(), html: z.string() }),
          async ({ input }) => {
            await db.query(
              `insert into page (tenant_id, name, html) values (?, ?, ?)
             on conflict (${unique}) do update set html = excluded.html`,
              [here(), input.name, input.html],
            );
            return { saved: true };
          },
        ),
        openEndpoint("GET /pages/read", z.object({ name: z.string() }), async ({ input }) => {
          const query = "select html from page where name = ? and tenant_id = ?";
          const [page] = await db.query(query, [input.name, here()]);
          return { html: page?.html ?? null };
        }),
      ],
      options: {
        tables: ["page"],
        endpoints: {
          "/pages/save": ({ mark }) => ({ body: { name: "imprint", html: `<p>${mark}</p>` } }),
          "/pages/read": { query: { name: "imprint" } },
        },
      },
      exploit: async ({ a, b }) => {
        await must(b.browser.post("/pages/save", { name: "start", html: "Globex" }));
        await a.browser.post("/pages/save", { name: "start", html: "defaced" });
        return says(await b.browser.get("/pages/read", { query: { name: "start" } }), "defaced");
      },
    };
  },
});

export const ownTables: Application[] = [
  ...notesById,
  ...deleting,
  ...invoiceByPath,
  ...nestedOwner,
  ...rawList,
  ...foreignPost,
  ...samePage,
];
