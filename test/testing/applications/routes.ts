import { Hono } from "hono";
import { bySlug } from "../../../src/index";
import type { Caller, Route } from "../../../src/testing/index";
import { type Application, assemble, newId, says, twins } from "./support";

type Assembled = Awaited<ReturnType<typeof assemble>>;

/** The user and the tenant of a request, as the documentation has it. */
async function requireMember({ api }: Pick<Assembled, "api">, headers: Headers) {
  const session = await api.getSession({ headers }).catch(() => null);
  if (!session) return undefined;
  const { tenantId } = session.session as { tenantId?: string | null };
  return { tenantId: tenantId ?? "", user: session.user };
}

/** A server with better-auth and routes of its own. */
function serverOf({ auth }: Pick<Assembled, "auth">) {
  const app = new Hono();
  app.on(["GET", "POST"], "/api/auth/*", (c) => auth.handler(c.req.raw));
  return app;
}

const call = async (app: Hono, path: string, { headers }: Pick<Caller, "headers">) =>
  app.request(`http://localhost:3000${path}`, { headers });

const bodyOf = async (response: Response) => ({ data: await response.text() });

const person = twins({
  name: "a route that shows any person by id",
  sound: "a route that shows a person of this tenant by id",
  hole: "The route asks whether somebody is signed in, and not at which tenant.",
  endpoint: "person",
  async build(sound) {
    const assembled = await assemble({});
    const { auth, db, attack } = assembled;
    const app = serverOf(assembled);
    app.get("/api/people/:id", async (c) => {
      const member = await requireMember(assembled, c.req.raw.headers);
      if (!member) return c.json({ error: "sign in first" }, 401);
      const [user] = await db.query(`select name, image, "tenantId" from "user" where id = ?`, [
        c.req.param("id"),
      ]);
      if (!user || (sound && user.tenantId !== member.tenantId)) return c.notFound();
      return c.json({ name: user.name, image: user.image });
    });
    const person: Route = (as, about) => call(app, `/api/people/${about.userId}`, as);
    return {
      auth,
      options: { routes: [person] },
      exploit: attack(async ({ a, b }) => {
        const answer = await call(app, `/api/people/${b.userId}`, { headers: a.headers() });
        return says(await bodyOf(answer), b.name);
      }),
    };
  },
});

const todos = twins({
  name: "a route that goes by the tenant in a header",
  sound: "a route that goes by the tenant of the session",
  hole: "The list is that of the tenant in `x-tenant-id`, which anybody can send.",
  endpoint: "todos",
  async build(sound) {
    const assembled = await assemble({
      sql: ["create table todo (id text primary key, tenant_id text, title text)"],
      auth: (db) => ({
        databaseHooks: {
          user: {
            create: {
              after: async (user) => {
                const { id, name, tenantId } = user as typeof user & { tenantId?: string };
                const title = `say hello to ${name} (${id})`;
                await db.query("insert into todo values (?, ?, ?)", [
                  newId(),
                  tenantId ?? "",
                  title,
                ]);
              },
            },
          },
        },
      }),
    });
    const { auth, db, attack } = assembled;
    const app = serverOf(assembled);
    app.get("/api/todos", async (c) => {
      const claimed = c.req.header("x-tenant-id") ?? "";
      const tenantId = sound
        ? (await requireMember(assembled, c.req.raw.headers))?.tenantId
        : claimed;
      if (tenantId === undefined) return c.json([], 401);
      return c.json(await db.query("select title from todo where tenant_id = ?", [tenantId]));
    });
    const todos: Route = (as, about) =>
      call(app, "/api/todos", {
        headers: { ...as.headers, "x-tenant-id": about.tenantId ?? "" },
      });
    return {
      auth,
      options: { tables: ["todo"], routes: [todos] },
      exploit: attack(async ({ a, b }) => {
        const headers = { ...a.headers(), "x-tenant-id": b.tenantId };
        return says(await bodyOf(await call(app, "/api/todos", { headers })), b.name);
      }),
    };
  },
});

/** A route that writes. */
const avatar = twins({
  name: "a route that sets the picture of any user",
  sound: "a route that sets the picture of a user of this tenant",
  hole: "The picture of a user of another tenant can be replaced.",
  endpoint: "avatar",
  async build(sound) {
    const assembled = await assemble({});
    const { auth, db, attack } = assembled;
    const app = serverOf(assembled);
    app.put("/api/people/:id/avatar", async (c) => {
      const member = await requireMember(assembled, c.req.raw.headers);
      if (!member) return c.json({ error: "sign in first" }, 401);
      const own = sound ? `and "tenantId" = ?` : "";
      await db.query(
        `update "user" set image = 'https://cdn.example.com/default.png' where id = ? ${own}`,
        sound ? [c.req.param("id"), member.tenantId] : [c.req.param("id")],
      );
      return c.body(null, 204);
    });
    const put = async (id: string, headers: Record<string, string>) =>
      app.request(`http://localhost:3000/api/people/${id}/avatar`, { method: "PUT", headers });
    const avatar: Route = (as, about) => put(about.userId, as.headers);
    return {
      auth,
      options: { routes: [avatar] },
      exploit: attack(async ({ a, b }) => {
        await put(b.userId, a.headers());
        return says(await b.browser.get("/get-session"), "default.png");
      }),
    };
  },
});

/** As in the documentation: slugs in a header, cookies for each tenant, and the session decides. */
const soundServer: Application = {
  name: "a Hono server with routes that ask the session",
  async build() {
    const assembled = await assemble({
      tenant: { resolveTenantId: bySlug(), sessionCookies: "per-tenant" },
    });
    const { auth, db, attack } = assembled;
    const app = serverOf(assembled);
    app.get("/api/me", async (c) => {
      const member = await requireMember(assembled, c.req.raw.headers);
      return c.json({ email: member?.user.email ?? null, name: member?.user.name ?? null });
    });
    app.get("/api/colleagues", async (c) => {
      const member = await requireMember(assembled, c.req.raw.headers);
      if (!member) return c.json({ error: "sign in first" }, 401);
      return c.json(
        await db.query(`select id, name from "user" where "tenantId" = ?`, [member.tenantId]),
      );
    });
    const me: Route = (as) => call(app, "/api/me", as);
    const colleagues: Route = (as) => call(app, "/api/colleagues", as);
    return {
      auth,
      options: { routes: [me, colleagues] },
      exploit: attack(async ({ a, b }) => {
        const headers = a.headers();
        const own = await bodyOf(await call(app, "/api/colleagues", { headers }));
        if (!says(own, a.name)) throw new Error("the route does not work at home");
        const there = { ...headers, "x-tenant-id": b.tenantId };
        const answers = await Promise.all(
          ["/api/me", "/api/colleagues"].map(async (path) =>
            bodyOf(await call(app, path, { headers: there })),
          ),
        );
        return [own, ...answers].some((answer) => says(answer, b.name));
      }),
    };
  },
};

export const routes: Application[] = [...person, ...todos, ...avatar, soundServer];
