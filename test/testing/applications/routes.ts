import { bySlug } from "../../../src/index";
import { type Application, application, insert, newId, says, twins } from "./support";

interface Api {
  getSession(call: { headers: Headers }): Promise<{ session: object; user: object } | null>;
}

/** The user and the tenant of a request, as the documentation has it. */
async function requireMember(api: Api, { raw: { headers } }: { raw: Request }) {
  const found = await api.getSession({ headers }).catch(() => null);
  if (!found) return undefined;
  const { tenantId } = found.session as { tenantId?: string | null };
  return { tenantId: tenantId ?? "", user: found.user as { email: string; name: string } };
}

const bodyOf = async (response: Response) => ({ data: await response.text() });

const person = twins({
  name: "a route that shows any person by id",
  sound: "a route that shows a person of this tenant by id",
  hole: "The route asks whether somebody is signed in, and not at which tenant.",
  endpoint: "person",
  define: (sound) => ({
    server: (app, { api, db }) =>
      app.get("/api/people/:id", async (c) => {
        const member = await requireMember(api, c.req);
        if (!member) return c.json({ error: "sign in first" }, 401);
        const query = `select name, image, "tenantId" from "user" where id = ?`;
        const [user] = await db.query(query, [c.req.param("id")]);
        if (!user || (sound && user.tenantId !== member.tenantId)) return c.notFound();
        return c.json({ name: user.name, image: user.image });
      }),
    routes: (request) => ({
      person: (as, about) => request(`/api/people/${about.userId}`, as.headers),
    }),
    exploit: async ({ a, b, request }) =>
      says(await bodyOf(await request(`/api/people/${b.userId}`, a.headers())), b.name),
  }),
});

const todos = twins({
  name: "a route that goes by the tenant in a header",
  sound: "a route that goes by the tenant of the session",
  hole: "The list is that of the tenant in `x-tenant-id`, which anybody can send.",
  endpoint: "todos",
  define: (sound) => ({
    sql: ["create table todo (id text primary key, tenant_id text, title text)"],
    auth: (db) => {
      const after = async (user: { id: string; name: string; tenantId?: string }) => {
        const title = `say hello to ${user.name} (${user.id})`;
        await insert(db, "todo", newId(), user.tenantId ?? "", title);
      };
      return { databaseHooks: { user: { create: { after } } } };
    },
    server: (app, { api, db }) =>
      app.get("/api/todos", async (c) => {
        const claimed = c.req.header("x-tenant-id") ?? "";
        const tenantId = sound ? (await requireMember(api, c.req))?.tenantId : claimed;
        if (tenantId === undefined) return c.json([], 401);
        return c.json(await db.query("select title from todo where tenant_id = ?", [tenantId]));
      }),
    options: { tables: ["todo"] },
    routes: (request) => ({
      todos: (as, about) =>
        request("/api/todos", { ...as.headers, "x-tenant-id": about.tenantId ?? "" }),
    }),
    exploit: async ({ a, b, request }) => {
      const headers = { ...a.headers(), "x-tenant-id": b.tenantId };
      return says(await bodyOf(await request("/api/todos", headers)), b.name);
    },
  }),
});

/** A route that writes. */
const avatar = twins({
  name: "a route that sets the picture of any user",
  sound: "a route that sets the picture of a user of this tenant",
  hole: "The picture of a user of another tenant can be replaced.",
  endpoint: "avatar",
  define: (sound) => ({
    server: (app, { api, db }) =>
      app.put("/api/people/:id/avatar", async (c) => {
        const member = await requireMember(api, c.req);
        if (!member) return c.json({ error: "sign in first" }, 401);
        const own = sound ? `and "tenantId" = ?` : "";
        const id = c.req.param("id");
        await db.query(
          `update "user" set image = 'https://cdn.example.com/default.png' where id = ? ${own}`,
          sound ? [id, member.tenantId] : [id],
        );
        return c.body(null, 204);
      }),
    routes: (request) => ({
      avatar: (as, about) => request(`/api/people/${about.userId}/avatar`, as.headers, "PUT"),
    }),
    exploit: async ({ a, b, request }) => {
      await request(`/api/people/${b.userId}/avatar`, a.headers(), "PUT");
      return says(await b.browser.get("/get-session"), "default.png");
    },
  }),
});

/** As in the documentation: slugs in a header, cookies for each tenant, and the session decides. */
const soundServer = application("a Hono server with routes that ask the session", () => ({
  tenant: { resolveTenantId: bySlug(), sessionCookies: "per-tenant" },
  server(app, { api, db }) {
    app.get("/api/me", async (c) => {
      const member = await requireMember(api, c.req);
      return c.json({ email: member?.user.email ?? null, name: member?.user.name ?? null });
    });
    app.get("/api/colleagues", async (c) => {
      const member = await requireMember(api, c.req);
      if (!member) return c.json({ error: "sign in first" }, 401);
      const query = `select id, name from "user" where "tenantId" = ?`;
      return c.json(await db.query(query, [member.tenantId]));
    });
  },
  routes: (request) => ({
    me: (as) => request("/api/me", as.headers),
    colleagues: (as) => request("/api/colleagues", as.headers),
  }),
  exploit: async ({ a, b, request }) => {
    const own = await bodyOf(await request("/api/colleagues", a.headers()));
    if (!says(own, a.name)) throw new Error("the route does not work at home");
    const there = { ...a.headers(), "x-tenant-id": b.tenantId };
    const paths = ["/api/me", "/api/colleagues"];
    const answers = paths.map(async (path) => bodyOf(await request(path, there)));
    return [own, ...(await Promise.all(answers))].some((answer) => says(answer, b.name));
  },
}));

export const routes: Application[] = [...person, ...todos, ...avatar, soundServer];
