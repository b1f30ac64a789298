import type { BetterAuthPlugin } from "better-auth";
import { APIError, createAuthEndpoint, sessionMiddleware } from "better-auth/api";
import * as z from "zod";
import type { TestDatabase } from "../../support/database";
import { type Application, assemble, here, must, newId, says, twins } from "./support";

const signedIn = [sessionMiddleware];
const byId = z.object({ id: z.string() });

const notes = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "notes",
  endpoints: {
    createNote: createAuthEndpoint(
      "/notes/create",
      { method: "POST", body: z.object({ text: z.string().min(1) }), use: signedIn },
      async (ctx) => {
        const note = { id: newId(), text: ctx.body.text };
        const author = ctx.context.session.user.id;
        await db.query(`insert into note (id, "tenantId", author, text) values (?, ?, ?, ?)`, [
          note.id,
          here(),
          author,
          note.text,
        ]);
        return ctx.json(note);
      },
    ),
    getNote: createAuthEndpoint(
      "/notes/get",
      { method: "GET", query: byId, use: signedIn },
      async (ctx) => {
        const [note] = sound
          ? await db.query(`select * from note where id = ? and "tenantId" = ?`, [
              ctx.query.id,
              here(),
            ])
          : await db.query("select * from note where id = ?", [ctx.query.id]);
        if (!note) throw new APIError("NOT_FOUND");
        return ctx.json(note);
      },
    ),
  },
});

const NOTE = `create table note (id text primary key, "tenantId" text not null, author text, text text)`;

const notesById = twins({
  name: "notes by id, without the tenant",
  sound: "notes by id and tenant",
  hole: "Whoever knows the id of a note reads it, in whichever tenant it was written.",
  endpoint: "/notes/get",
  async build(sound) {
    const { auth, attack } = await assemble({ plugins: (db) => [notes(db, sound)], sql: [NOTE] });
    return {
      auth,
      options: {
        tables: ["note"],
        endpoints: {
          "/notes/create": { body: { text: "a note" } },
          "/notes/get": ({ rows }) => ({ query: { id: String(rows("note")[0]?.id) } }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/notes/create", { text: "plans of Globex" }));
        const got = await a.browser.get("/notes/get", { query: { id: String(data.id) } });
        return says(got, "plans of Globex");
      }),
    };
  },
});

const projects = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "projects",
  endpoints: {
    createProject: createAuthEndpoint(
      "/projects/create",
      { method: "POST", body: z.object({ name: z.string() }), use: signedIn },
      async (ctx) => {
        const id = newId();
        await db.query("insert into project values (?, ?, ?, 'active')", [
          id,
          here(),
          ctx.body.name,
        ]);
        return ctx.json({ id });
      },
    ),
    listProjects: createAuthEndpoint("/projects", { method: "GET", use: signedIn }, async (ctx) =>
      ctx.json(await db.query(`select * from project where "tenantId" = ?`, [here()])),
    ),
    archiveProject: createAuthEndpoint(
      "/projects/archive",
      { method: "POST", body: z.object({ projectId: z.string() }), use: signedIn },
      async (ctx) => {
        const own = sound ? ` and "tenantId" = ?` : "";
        await db.query(
          `update project set status = 'archived' where id = ?${own}`,
          sound ? [ctx.body.projectId, here()] : [ctx.body.projectId],
        );
        return ctx.json({ success: true });
      },
    ),
  },
});

const archiving = twins({
  name: "a project is archived by its id alone",
  sound: "a project is archived by its id and tenant",
  hole: "An update with a fixed value takes the id of any tenant's project.",
  endpoint: "/projects/archive",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [projects(db, sound)],
      sql: [
        `create table project (id text primary key, "tenantId" text not null, name text, status text)`,
      ],
    });
    return {
      auth,
      options: {
        tables: ["project"],
        endpoints: {
          "/projects/archive": ({ rows }) => ({ body: { projectId: rows("project")[0]?.id } }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/projects/create", { name: "Rocket" }));
        await a.browser.post("/projects/archive", { projectId: data.id });
        return says(await must(b.browser.get("/projects")), "archived");
      }),
    };
  },
});

/** A model in better-auth's schema. Nobody has thought much about the list that it has to be in. */
const documents: BetterAuthPlugin = {
  id: "documents",
  schema: {
    document: {
      fields: {
        title: { type: "string", required: true },
        ownerId: { type: "string", required: true },
      },
    },
  },
  endpoints: {
    createDocument: createAuthEndpoint(
      "/documents/create",
      { method: "POST", body: z.object({ title: z.string() }), use: signedIn },
      async (ctx) => {
        const data = { title: ctx.body.title, ownerId: ctx.context.session.user.id };
        return ctx.json(
          await ctx.context.adapter.create<typeof data, typeof data & { id: string }>({
            model: "document",
            data,
          }),
        );
      },
    ),
    myDocuments: createAuthEndpoint(
      "/documents/mine",
      { method: "GET", use: signedIn },
      async (ctx) => {
        const where = [{ field: "ownerId", value: ctx.context.session.user.id }];
        return ctx.json(await ctx.context.adapter.findMany({ model: "document", where }));
      },
    ),
    deleteDocument: createAuthEndpoint(
      "/documents/delete",
      { method: "POST", body: byId, use: signedIn },
      async (ctx) => {
        const where = [{ field: "id", value: ctx.body.id }];
        await ctx.context.adapter.delete({ model: "document", where });
        return ctx.json({ deleted: true });
      },
    ),
  },
};

const deleting = twins({
  name: "a shared model is deleted by id",
  sound: "a scoped model is deleted by id",
  hole: "The model is in `sharedModels`, so the id of any tenant's document deletes it.",
  endpoint: "/documents/delete",
  async build(sound) {
    const tenant = sound ? { scopedModels: ["document"] } : { sharedModels: ["document"] };
    const { auth, attack } = await assemble({ plugins: () => [documents], tenant });
    return {
      auth,
      options: {
        endpoints: {
          "/documents/delete": ({ rows }) => ({ body: { id: rows("document")[0]?.id } }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/documents/create", { title: "Contract" }));
        await a.browser.post("/documents/delete", { id: data.id });
        return !says(await must(b.browser.get("/documents/mine")), "Contract");
      }),
    };
  },
});

const invoices = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "invoices",
  endpoints: {
    createInvoice: createAuthEndpoint(
      "/invoices",
      {
        method: "POST",
        body: z.object({ customer: z.string(), amount: z.number().positive() }),
        use: signedIn,
      },
      async (ctx) => {
        const id = newId();
        const { customer, amount } = ctx.body;
        await db.query("insert into invoice values (?, ?, ?, ?)", [id, here(), customer, amount]);
        return ctx.json({ id });
      },
    ),
    getInvoice: createAuthEndpoint(
      "/invoices/:invoiceId",
      { method: "GET", use: signedIn },
      async (ctx) => {
        const found = await db.query("select * from invoice where id = ?", [ctx.params.invoiceId]);
        const [invoice] = sound ? found.filter(({ tenant_id }) => tenant_id === here()) : found;
        if (!invoice) throw ctx.error("NOT_FOUND", { message: "no such invoice" });
        return ctx.json({ customer: invoice.customer, amount: invoice.amount });
      },
    ),
  },
});

const invoiceByPath = twins({
  name: "an invoice by the id in the path",
  sound: "an invoice by the id in the path, of this tenant",
  hole: "The id in the path finds the invoice of any tenant.",
  endpoint: "/invoices/:invoiceId",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [invoices(db, sound)],
      sql: [
        "create table invoice (id text primary key, tenant_id text, customer text, amount real)",
      ],
    });
    return {
      auth,
      options: {
        tables: ["invoice"],
        endpoints: {
          "/invoices": ({ mark }) => ({ body: { customer: `customer ${mark}`, amount: 100 } }),
          "/invoices/:invoiceId": ({ rows }) => ({
            params: { invoiceId: String(rows("invoice")[0]?.id) },
          }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const body = { customer: "Hidden Ltd", amount: 5 };
        const { data } = await must(b.browser.post("/invoices", body));
        return says(await a.browser.get(`/invoices/${data.id}`), "Hidden Ltd");
      }),
    };
  },
});

const preferences = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "preferences",
  endpoints: {
    savePreferences: createAuthEndpoint(
      "/preferences/save",
      {
        method: "POST",
        body: z.object({
          preferences: z.object({
            owner: z.object({ userId: z.string() }),
            theme: z.enum(["light", "dark"]),
          }),
        }),
        use: signedIn,
      },
      async (ctx) => {
        const { owner, theme } = ctx.body.preferences;
        const mayWrite = !sound || owner.userId === ctx.context.session.user.id;
        if (!mayWrite) throw new APIError("FORBIDDEN");
        await db.query(
          `insert into preference (user_id, theme) values (?, ?)
           on conflict (user_id) do update set theme = excluded.theme`,
          [owner.userId, theme],
        );
        return ctx.json({ saved: true });
      },
    ),
    myPreferences: createAuthEndpoint(
      "/preferences/mine",
      { method: "GET", use: signedIn },
      async (ctx) => {
        const { id } = ctx.context.session.user;
        const [mine] = await db.query("select theme from preference where user_id = ?", [id]);
        return ctx.json({ theme: mine?.theme ?? "light" });
      },
    ),
  },
});

const nestedOwner = twins({
  name: "preferences are saved for the owner in a nested object",
  sound: "preferences are saved for the caller only",
  hole: "The owner is taken from the body, and nobody asks whether it is the caller.",
  endpoint: "/preferences/save",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [preferences(db, sound)],
      sql: ["create table preference (user_id text primary key, theme text not null)"],
    });
    return {
      auth,
      options: {
        tables: ["preference"],
        endpoints: {
          "/preferences/save": ({ userId }) => ({
            body: { preferences: { owner: { userId }, theme: "dark" } },
          }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const preferences = { owner: { userId: b.userId }, theme: "dark" };
        await a.browser.post("/preferences/save", { preferences });
        return says(await must(b.browser.get("/preferences/mine")), "dark");
      }),
    };
  },
});

/** The model is scoped, and the list does not go through the adapter. */
const tasks = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "tasks",
  schema: { task: { fields: { title: { type: "string", required: true } } } },
  endpoints: {
    addTask: createAuthEndpoint(
      "/tasks/add",
      { method: "POST", body: z.object({ title: z.string() }), use: signedIn },
      async (ctx) => {
        const data = { title: ctx.body.title };
        await ctx.context.adapter.create({ model: "task", data });
        return ctx.json({ added: true });
      },
    ),
    listTasks: createAuthEndpoint("/tasks/list", { method: "GET", use: signedIn }, async (ctx) =>
      ctx.json(
        sound
          ? await ctx.context.adapter.findMany({ model: "task" })
          : await db.query("select id, title from task order by title"),
      ),
    ),
  },
});

const rawList = twins({
  name: "raw SQL over a scoped model",
  sound: "a scoped model through the adapter",
  hole: "The list is read with raw SQL that does not name the tenant.",
  endpoint: "/tasks/list",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [tasks(db, sound)],
      tenant: { scopedModels: ["task"] },
    });
    return {
      auth,
      options: {
        endpoints: { "/tasks/add": ({ mark }) => ({ body: { title: `task ${mark}` } }) },
      },
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.post("/tasks/add", { title: "buy Acme" }));
        return says(await a.browser.get("/tasks/list"), "buy Acme");
      }),
    };
  },
});

const comments = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "comments",
  endpoints: {
    createPost: createAuthEndpoint(
      "/posts/create",
      { method: "POST", body: z.object({ title: z.string() }), use: signedIn },
      async (ctx) => {
        const id = newId();
        await db.query("insert into post values (?, ?, ?)", [id, here(), ctx.body.title]);
        return ctx.json({ id });
      },
    ),
    comment: createAuthEndpoint(
      "/posts/comment",
      {
        method: "POST",
        body: z.object({ postId: z.string(), text: z.string() }),
        use: signedIn,
      },
      async (ctx) => {
        const { postId, text } = ctx.body;
        const [post] = await db.query("select * from post where id = ?", [postId]);
        if (!post || (sound && post.tenant_id !== here())) throw new APIError("NOT_FOUND");
        await db.query("insert into comment values (?, ?, ?)", [newId(), postId, text]);
        return ctx.json({ commented: true });
      },
    ),
    listComments: createAuthEndpoint(
      "/posts/comments",
      { method: "GET", use: signedIn },
      async (ctx) =>
        ctx.json(
          await db.query(
            "select c.* from comment c join post p on p.id = c.post_id where p.tenant_id = ?",
            [here()],
          ),
        ),
    ),
  },
});

const foreignPost = twins({
  name: "a comment on a post of any tenant",
  sound: "a comment on a post of this tenant",
  hole: "A comment is stored under the post of another tenant, where its people read it.",
  endpoint: "/posts/comment",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [comments(db, sound)],
      sql: [
        "create table post (id text primary key, tenant_id text not null, title text)",
        "create table comment (id text primary key, post_id text references post (id), text text)",
      ],
    });
    return {
      auth,
      options: {
        tables: ["post", "comment"],
        endpoints: {
          "/posts/create": { body: { title: "Hello" } },
          "/posts/comment": ({ rows }) => ({
            body: { postId: rows("post")[0]?.id, text: "first!" },
          }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/posts/create", { title: "Hello" }));
        await a.browser.post("/posts/comment", { postId: data.id, text: "spam of Acme" });
        return says(await must(b.browser.get("/posts/comments")), "spam of Acme");
      }),
    };
  },
});

const pages = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "pages",
  endpoints: {
    savePage: createAuthEndpoint(
      "/pages/save",
      {
        method: "POST",
        body: z.object({ name: z.string(), html: z.string() }),
        use: signedIn,
      },
      async (ctx) => {
        const { name, html } = ctx.body;
        await db.query(
          `insert into page (tenant_id, name, html) values (?, ?, ?)
           on conflict (${sound ? "tenant_id, name" : "name"}) do update set html = excluded.html`,
          [here(), name, html],
        );
        return ctx.json({ saved: true });
      },
    ),
    readPage: createAuthEndpoint(
      "/pages/read",
      { method: "GET", query: z.object({ name: z.string() }) },
      async (ctx) => {
        const [page] = await db.query("select html from page where name = ? and tenant_id = ?", [
          ctx.query.name,
          here(),
        ]);
        return ctx.json({ html: page?.html ?? null });
      },
    ),
  },
});

const samePage = twins({
  name: "a page is overwritten by its name",
  sound: "a page is overwritten by its name and tenant",
  hole: "The name of a page is unique in all tenants, and who saves it again overwrites it.",
  endpoint: "/pages/save",
  async build(sound) {
    const unique = sound ? "tenant_id, name" : "name";
    const { auth, attack } = await assemble({
      plugins: (db) => [pages(db, sound)],
      sql: [`create table page (tenant_id text, name text, html text, unique (${unique}))`],
    });
    return {
      auth,
      options: {
        tables: ["page"],
        endpoints: {
          "/pages/save": ({ mark }) => ({ body: { name: "imprint", html: `<p>${mark}</p>` } }),
          "/pages/read": { query: { name: "imprint" } },
        },
      },
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.post("/pages/save", { name: "start", html: "Globex" }));
        await a.browser.post("/pages/save", { name: "start", html: "defaced" });
        return says(await b.browser.get("/pages/read", { query: { name: "start" } }), "defaced");
      }),
    };
  },
});

export const ownTables: Application[] = [
  ...notesById,
  ...archiving,
  ...deleting,
  ...invoiceByPath,
  ...nestedOwner,
  ...rawList,
  ...foreignPost,
  ...samePage,
];
