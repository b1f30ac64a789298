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
  ofTenant,
  says,
  twins,
} from "./support";

const refined = twins({
  name: "customers by number or name, with a refined schema",
  sound: "customers of this tenant by number or name, with a refined schema",
  hole: "The customers of all tenants are looked through.",
  endpoint: "/customers/find",
  define: (sound) => ({
    sql: ["create table customer (id text primary key, tenant_id text, number text, name text)"],
    endpoints: (db) => {
      const customer = z.object({ number: z.string(), name: z.string() });
      const some = customer
        .partial()
        .refine(({ number, name }) => number || name, "a number or a name is needed");
      return [
        endpoint("POST /customers/add", customer, async ({ input: { number, name } }) => {
          await insert(db, "customer", newId(), here(), number, name);
          return { added: true };
        }),
        endpoint("POST /customers/find", some, async ({ input: { number = "", name = "" } }) => {
          const query = "select * from customer where number = ? or name = ?";
          const found = ofTenant(await db.query(query, [number, name]), sound);
          return found.map(({ id, number, name }) => ({ id, number, name }));
        }),
      ];
    },
    options: {
      tables: ["customer"],
      endpoints: {
        "/customers/find": ({ rows }) => ({
          body: { number: String(rows("customer")[0]?.number) },
        }),
      },
    },
    exploit: async ({ a, b }) => {
      await must(b.browser.post("/customers/add", { number: "4711", name: "Secret Inc" }));
      return says(await a.browser.post("/customers/find", { number: "4711" }), "Secret Inc");
    },
  }),
});

/** Older code: it looks at what comes, and has no schema. */
const withoutSchema = twins({
  name: "an order is cancelled by an endpoint without a schema",
  sound: "an order of this tenant is cancelled by an endpoint without a schema",
  hole: "The order of any tenant is cancelled by its id.",
  endpoint: "/orders/cancel",
  define: (sound) => ({
    sql: ["create table purchase (id text primary key, tenant_id text, item text, status text)"],
    endpoints: (db) => [
      endpoint("POST /orders/place", null, async ({ ctx }) => {
        const { item } = ctx.body ?? {};
        if (typeof item !== "string") throw new APIError("BAD_REQUEST", { message: "no item" });
        const id = newId();
        await insert(db, "purchase", id, here(), item, "placed");
        return { id };
      }),
      endpoint("POST /orders/cancel", null, async ({ ctx }) => {
        const { id, item } = await find(db, sound, ["purchase", "id"], ctx.body?.orderId);
        await db.query("update purchase set status = 'cancelled' where id = ?", [id]);
        return { cancelled: item };
      }),
    ],
    options: {
      tables: ["purchase"],
      endpoints: {
        "/orders/place": { body: { item: "a chair" } },
        "/orders/cancel": ({ rows }) => ({ body: { orderId: rows("purchase")[0]?.id } }),
      },
    },
    exploit: async ({ a, b }) => {
      const { data } = await must(b.browser.post("/orders/place", { item: "a rocket" }));
      const cancelled = await a.browser.post("/orders/cancel", { orderId: data.id });
      return cancelled.status === 200;
    },
  }),
});

const requiredField = twins({
  name: "colleagues by a field that users must have",
  sound: "colleagues of this tenant by a field that users must have",
  hole: "Whoever says the same company when signing up is a colleague, in all tenants.",
  endpoint: "/companies/colleagues",
  define: (sound) => ({
    auth: () => ({
      user: { additionalFields: { company: { type: "string", required: true } } },
    }),
    person: { company: "Initech" },
    endpoints: (db) => [
      endpoint("GET /companies/colleagues", null, async ({ user: { company = "" } }) => {
        const query = `select name, "tenantId" from "user" where company = ?`;
        return ofTenant(await db.query(query, [company]), sound).map(({ name }) => name);
      }),
    ],
    options: { person: { company: "Initech" } },
    exploit: async ({ a, b }) => says(await must(a.browser.get("/companies/colleagues")), b.name),
  }),
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

const otherSchema = twins({
  name: "parcels by id, with a schema that is not zod's",
  sound: "parcels of this tenant by id, with a schema that is not zod's",
  hole: "The parcel of any tenant is tracked by its id.",
  endpoint: "/parcels/track",
  define: (sound) => ({
    sql: ["create table parcel (id text primary key, tenant_id text, receiver text)"],
    endpoints: (db) => [
      endpoint("POST /parcels/send", null, async ({ user }) => {
        const id = newId();
        await insert(db, "parcel", id, here(), `friend of ${user.name}`);
        return { id };
      }),
      endpoint("POST /parcels/track", parcelId, async ({ ctx }) => {
        const { receiver } = await find(db, sound, ["parcel", "id"], ctx.body.parcel);
        return { receiver, where: "on its way" };
      }),
    ],
    options: {
      tables: ["parcel"],
      endpoints: { "/parcels/track": ({ rows }) => ({ body: { parcel: rows("parcel")[0]?.id } }) },
    },
    exploit: async ({ a, b }) => {
      const { data } = await must(b.browser.post("/parcels/send"));
      return says(await a.browser.post("/parcels/track", { parcel: data.id }), b.name);
    },
  }),
});

export const inputs: Application[] = [
  ...refined,
  ...withoutSchema,
  ...otherSchema,
  ...requiredField,
];
