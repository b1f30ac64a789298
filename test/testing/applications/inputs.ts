import type { BetterAuthPlugin } from "better-auth";
import { APIError, createAuthEndpoint, sessionMiddleware } from "better-auth/api";
import * as z from "zod";
import type { TestDatabase } from "../../support/database";
import { type Application, assemble, here, must, newId, says, twins } from "./support";

const signedIn = [sessionMiddleware];

const customers = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "customers",
  endpoints: {
    add: createAuthEndpoint(
      "/customers/add",
      { method: "POST", body: z.object({ number: z.string(), name: z.string() }), use: signedIn },
      async (ctx) => {
        const { number, name } = ctx.body;
        await db.query("insert into customer values (?, ?, ?, ?)", [newId(), here(), number, name]);
        return ctx.json({ added: true });
      },
    ),
    find: createAuthEndpoint(
      "/customers/find",
      {
        method: "POST",
        body: z
          .object({ number: z.string().optional(), name: z.string().optional() })
          .refine(({ number, name }) => number || name, "a number or a name is needed"),
        use: signedIn,
      },
      async (ctx) => {
        const { number = "", name = "" } = ctx.body;
        const found = await db.query("select * from customer where number = ? or name = ?", [
          number,
          name,
        ]);
        const own = sound ? found.filter(({ tenant_id }) => tenant_id === here()) : found;
        return ctx.json(own.map(({ id, number, name }) => ({ id, number, name })));
      },
    ),
  },
});

const refined = twins({
  name: "customers by number or name, with a refined schema",
  sound: "customers of this tenant by number or name, with a refined schema",
  hole: "The customers of all tenants are looked through.",
  endpoint: "/customers/find",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [customers(db, sound)],
      sql: ["create table customer (id text primary key, tenant_id text, number text, name text)"],
    });
    return {
      auth,
      options: {
        tables: ["customer"],
        endpoints: {
          "/customers/find": ({ rows }) => ({
            body: { number: String(rows("customer")[0]?.number) },
          }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        await must(b.browser.post("/customers/add", { number: "4711", name: "Secret Inc" }));
        return says(await a.browser.post("/customers/find", { number: "4711" }), "Secret Inc");
      }),
    };
  },
});

/** Older code: it looks at what comes, and has no schema. */
const orders = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "orders",
  endpoints: {
    place: createAuthEndpoint("/orders/place", { method: "POST", use: signedIn }, async (ctx) => {
      const { item } = (ctx.body ?? {}) as { item?: unknown };
      if (typeof item !== "string") throw new APIError("BAD_REQUEST", { message: "no item" });
      const id = newId();
      await db.query("insert into purchase values (?, ?, ?, 'placed')", [id, here(), item]);
      return ctx.json({ id });
    }),
    cancel: createAuthEndpoint("/orders/cancel", { method: "POST", use: signedIn }, async (ctx) => {
      const { orderId } = (ctx.body ?? {}) as { orderId?: unknown };
      const [order] = await db.query("select * from purchase where id = ?", [orderId ?? null]);
      if (!order || (sound && order.tenant_id !== here())) throw new APIError("NOT_FOUND");
      await db.query("update purchase set status = 'cancelled' where id = ?", [order.id]);
      return ctx.json({ cancelled: order.item });
    }),
  },
});

const withoutSchema = twins({
  name: "an order is cancelled by an endpoint without a schema",
  sound: "an order of this tenant is cancelled by an endpoint without a schema",
  hole: "The order of any tenant is cancelled by its id.",
  endpoint: "/orders/cancel",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [orders(db, sound)],
      sql: ["create table purchase (id text primary key, tenant_id text, item text, status text)"],
    });
    return {
      auth,
      options: {
        tables: ["purchase"],
        endpoints: {
          "/orders/place": { body: { item: "a chair" } },
          "/orders/cancel": ({ rows }) => ({ body: { orderId: rows("purchase")[0]?.id } }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/orders/place", { item: "a rocket" }));
        const cancelled = await a.browser.post("/orders/cancel", { orderId: data.id });
        return cancelled.status === 200;
      }),
    };
  },
});

const companies = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "companies",
  endpoints: {
    colleagues: createAuthEndpoint(
      "/companies/colleagues",
      { method: "GET", use: signedIn },
      async (ctx) => {
        const { company } = ctx.context.session.user as { company?: string };
        const found = await db.query(`select name, "tenantId" from "user" where company = ?`, [
          company ?? "",
        ]);
        const own = sound ? found.filter(({ tenantId }) => tenantId === here()) : found;
        return ctx.json(own.map(({ name }) => name));
      },
    ),
  },
});

const requiredField = twins({
  name: "colleagues by a field that users must have",
  sound: "colleagues of this tenant by a field that users must have",
  hole: "Whoever says the same company when signing up is a colleague, in all tenants.",
  endpoint: "/companies/colleagues",
  async build(sound) {
    const { auth, attack } = await assemble({
      auth: () => ({
        user: { additionalFields: { company: { type: "string", required: true } } },
      }),
      plugins: (db) => [companies(db, sound)],
      person: { company: "Initech" },
    });
    return {
      auth,
      options: { person: { company: "Initech" } },
      exploit: attack(async ({ a, b }) =>
        says(await must(a.browser.get("/companies/colleagues")), b.name),
      ),
    };
  },
});

/** A schema of another library than zod. */
const parcelId = {
  "~standard": {
    version: 1 as const,
    vendor: "parcels",
    validate: (value: unknown) => {
      const { parcel } = (value ?? {}) as { parcel?: unknown };
      return typeof parcel === "string"
        ? { value: { parcel } }
        : { issues: [{ message: "a parcel is needed", path: ["parcel"] }] };
    },
  },
};

const parcels = (db: TestDatabase, sound: boolean): BetterAuthPlugin => ({
  id: "parcels",
  endpoints: {
    send: createAuthEndpoint("/parcels/send", { method: "POST", use: signedIn }, async (ctx) => {
      const id = newId();
      const receiver = `friend of ${ctx.context.session.user.name}`;
      await db.query("insert into parcel values (?, ?, ?)", [id, here(), receiver]);
      return ctx.json({ id });
    }),
    track: createAuthEndpoint(
      "/parcels/track",
      { method: "POST", body: parcelId, use: signedIn },
      async (ctx) => {
        const { parcel } = ctx.body as { parcel: string };
        const [found] = await db.query("select * from parcel where id = ?", [parcel]);
        if (!found || (sound && found.tenant_id !== here())) throw new APIError("NOT_FOUND");
        return ctx.json({ receiver: found.receiver, where: "on its way" });
      },
    ),
  },
});

const otherSchema = twins({
  name: "parcels by id, with a schema that is not zod's",
  sound: "parcels of this tenant by id, with a schema that is not zod's",
  hole: "The parcel of any tenant is tracked by its id.",
  endpoint: "/parcels/track",
  async build(sound) {
    const { auth, attack } = await assemble({
      plugins: (db) => [parcels(db, sound)],
      sql: ["create table parcel (id text primary key, tenant_id text, receiver text)"],
    });
    return {
      auth,
      options: {
        tables: ["parcel"],
        endpoints: {
          "/parcels/track": ({ rows }) => ({ body: { parcel: rows("parcel")[0]?.id } }),
        },
      },
      exploit: attack(async ({ a, b }) => {
        const { data } = await must(b.browser.post("/parcels/send"));
        return says(await a.browser.post("/parcels/track", { parcel: data.id }), b.name);
      }),
    };
  },
});

export const inputs: Application[] = [
  ...refined,
  ...withoutSchema,
  ...otherSchema,
  ...requiredField,
];
