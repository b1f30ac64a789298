import { apiKey } from "@better-auth/api-key";
import type { BetterAuthPlugin } from "better-auth";
import {
  createAuthEndpoint,
  createAuthMiddleware,
  dispatchAuthEndpoint,
  signInEmail,
} from "better-auth/api";
import { deviceAuthorization, magicLink, multiSession } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import type { TenantManagementRequest } from "../../src/index";
import { createPlaces, EMAIL, type Place, type SessionAnswer } from "../plugins/places";
import { mapStorage } from "../sessions/stores";
import { createDatabase } from "../support/database";
import { createPlainInstance, type InstanceOptions, PASSWORD } from "../support/instance";
import { createAdmin, expectSessionsApart, expectSignUpWorks } from "./checks";
import { createMemory, type Row } from "./memory";

const STORES: [name: string, auth: () => NonNullable<InstanceOptions["auth"]>][] = [
  ["the database", () => ({})],
  ["secondary storage", () => ({ secondaryStorage: mapStorage().storage })],
];

describe("per-tenant cookies", () => {
  const perTenant = { sessionCookies: "per-tenant" } as const;

  it.each(["per-tenant", "shared"] as const)(
    "a tenant's own admin can use /admin/* in its tenant (cookies: %s)",
    async (sessionCookies) => {
      const places = await createPlaces([], { tenant: { sessionCookies } });
      const admin = await createAdmin(places, "a");
      const person = await places.signUp("a");
      const listed = await admin.browser.get<{ users: { id: string }[] }>("/admin/list-users");
      expect(listed.status).toBe(200);
      expect(listed.data.users.map(({ id }) => id).sort()).toEqual(
        [admin.user.id, person.user.id].sort(),
      );
      const banned = await admin.browser.post("/admin/ban-user", { userId: person.user.id });
      expect(banned.status).toBe(200);
    },
  );

  it("R5: the admin of A is nobody at B, with the cookies of both places", async () => {
    const places = await createPlaces([], { tenant: perTenant });
    const admin = await createAdmin(places, "a");
    const ordinary = await places.signUp("b", "ordinary@example.com");
    const both = admin.browser.fork(places.naming("b"));
    expect((await both.get("/admin/list-users")).status).toBe(401);
    for (const [name, value] of ordinary.browser.cookies) both.cookies.set(name, value);
    expect((await both.get("/admin/list-users")).status).toBe(403);
  });

  it("an operator still visits A with the platform's cookie", async () => {
    const places = await createPlaces([], { tenant: perTenant });
    const operator = await createAdmin(places, "platform");
    const person = await places.signUp("a");
    const window = operator.browser.fork(places.naming("a"));
    const { data, status } = await window.get<{ users: { id: string }[] }>("/admin/list-users");
    expect(status).toBe(200);
    expect(data.users.map(({ id }) => id)).toEqual([person.user.id]);
  });

  it.each(["per-tenant", "shared"] as const)(
    "canManageTenants sees the session of a tenant's admin (cookies: %s)",
    async (sessionCookies) => {
      const seen: TenantManagementRequest[] = [];
      const canManageTenants = (_: unknown, request: TenantManagementRequest) => {
        seen.push(request);
        return true;
      };
      const places = await createPlaces([], { tenant: { sessionCookies, canManageTenants } });
      const admin = await createAdmin(places, "a");
      const query = { id: places.ids.a ?? "" };
      expect((await admin.browser.get("/tenant/get", { query })).status).toBe(200);
      const body = { tenantId: places.ids.a, name: "Renamed" };
      expect((await admin.browser.post("/tenant/update", body)).status).toBe(200);
      expect((await admin.browser.get("/tenant/oauth-config/list")).status).toBe(200);
      expect(seen.map(({ session }) => session?.user.id)).toEqual(Array(3).fill(admin.user.id));
    },
  );

  it("R7: without a name, a management call is the platform's", async () => {
    const seen: unknown[] = [];
    const canManageTenants = (_: unknown, { session }: TenantManagementRequest) => {
      seen.push(session);
      return true;
    };
    const tenant = { ...perTenant, canManageTenants };
    const places = await createPlaces([], { tenant });
    const admin = await createAdmin(places, "a");
    expect((await admin.browser.fork({}).get("/tenant/list")).status).toBe(200);
    expect(seen).toEqual([null]);
  });

  /** Runs better-auth's sign-in with a context of its own, as plugins do that stand in for it. */
  const cloning: BetterAuthPlugin = {
    id: "clones-the-context",
    endpoints: {
      signInByClone: createAuthEndpoint(
        "/sign-in/clone",
        { method: "POST", body: z.object({ email: z.string(), password: z.string() }) },
        async (ctx) => {
          const context = {
            ...ctx.context,
            authCookies: structuredClone(ctx.context.authCookies),
          };
          const run = signInEmail() as unknown as Parameters<typeof dispatchAuthEndpoint>[0];
          const everything = { asResponse: false, returnHeaders: true };
          const { headers } = (await dispatchAuthEndpoint(run, {
            ...ctx,
            context,
            ...everything,
          })) as { headers: Headers };
          for (const line of headers.getSetCookie()) ctx.setHeader("set-cookie", line);
          return ctx.json({ status: true });
        },
      ),
    },
  };

  it("cookies keep their name where a plugin clones the context", async () => {
    const { at, signUp, ids, whoIs } = await createPlaces([cloning], { tenant: perTenant });
    const { user } = await signUp("a");
    const tab = at("a");
    const answer = await tab.post("/sign-in/clone", { email: EMAIL, password: PASSWORD });
    expect(answer.status).toBe(200);
    expect([...tab.cookies.keys()]).toEqual([`better-auth.session_token_${ids.a}`]);
    expect(await whoIs(tab, "a")).toMatchObject({ id: user.id });
  });
});

describe("sessions by API key", () => {
  it.each(STORES)("carry their tenant, with sessions in %s", async (_, auth) => {
    const seen: unknown[] = [];
    const after = createAuthMiddleware(async ({ context, path }) => {
      if (path === "/update-user") seen.push(context.session?.session.tenantId);
    });
    const { at, signUp, ids } = await createPlaces([apiKey({ enableSessionForAPIKeys: true })], {
      tenant: { scopedModels: ["apikey"] },
      auth: { ...auth(), hooks: { after } },
    });
    for (const place of ["a", "platform"] as const) {
      const { browser } = await signUp(place);
      const made = await browser.post<{ key: string }>("/api-key/create", { name: "Robot" });
      const headers = { "x-api-key": made.data.key };
      const { data } = await at(place).get<SessionAnswer>("/get-session", { headers });
      expect(data.user.tenantId, place).toBe(ids[place]);
      expect(data.session.tenantId, place).toBe(ids[place]);
      await at(place).post("/update-user", { name: "Robot" }, { headers });
      expect(seen.at(-1) ?? null, place).toBe(ids[place]);
    }
  });
});

describe("an operator", () => {
  const body = (email = EMAIL) => ({ email, name: "New", password: PASSWORD });

  it("creates a user of the platform whose e-mail exists in a tenant", async () => {
    const places = await createPlaces([]);
    await places.signUp("a");
    const { browser } = await createAdmin(places, "platform");
    const answer = await browser.post<{ user: { tenantId: string | null } }>(
      "/admin/create-user",
      body(),
    );
    expect(answer.status).toBe(200);
    expect(answer.data.user.tenantId ?? null).toBe(null);
    const signedIn = await places.at("platform").post("/sign-in/email", body());
    expect(signedIn.status).toBe(200);
  });

  it("does not create one whose e-mail exists on the platform", async () => {
    const places = await createPlaces([]);
    await places.signUp("platform");
    const { browser } = await createAdmin(places, "platform");
    expect((await browser.post("/admin/create-user", body())).status).toBe(400);
  });

  it("visiting A, creates a user there whose e-mail exists at B and on the platform", async () => {
    const places = await createPlaces([]);
    for (const place of ["b", "platform"] as const) await places.signUp(place);
    const { browser } = await createAdmin(places, "platform");
    const visiting = browser.fork(places.naming("a"));
    const answer = await visiting.post<{ user: object }>("/admin/create-user", body());
    expect(answer.data.user).toMatchObject({ tenantId: places.ids.a });
  });

  it("gives a user of the platform an e-mail that exists in a tenant", async () => {
    const places = await createPlaces([]);
    await places.signUp("a");
    const other = await places.signUp("platform", "other@example.com");
    const { browser } = await createAdmin(places, "platform");
    const change = { userId: other.user.id, data: { email: EMAIL } };
    expect((await browser.post("/admin/update-user", change)).status).toBe(200);
    const where = 'email = ? and "tenantId" = ?';
    expect(await places.rows("user", where, [EMAIL, ""])).toBe(1);
    expect(await places.rows("user", where, [EMAIL, places.ids.a])).toBe(1);
  });
});

describe("multiSession without a name", () => {
  /** One browser, signed in at one place after the other; the last session is the active one. */
  async function createOpen(auth: NonNullable<InstanceOptions["auth"]>, order: Place[]) {
    const places = await createPlaces([multiSession()], { auth });
    const browser = places.instance.browser();
    const users: Partial<Record<Place, string>> = {};
    for (const place of order) {
      users[place] = (await places.signUp(place)).user.id;
      const path = place === "platform" ? "/sign-in/email" : "/tenant/sign-in/email";
      const tenantId = places.ids[place] ?? undefined;
      const body = { email: EMAIL, password: PASSWORD, tenantId };
      expect((await browser.post(path, body)).status).toBe(200);
    }
    return { ...places, browser, users, active: order.at(-1) ?? "a" };
  }

  const ORDERS: Place[][] = [
    ["platform", "a", "b"],
    ["platform", "b", "a"],
  ];
  const CASES = STORES.flatMap(([name, auth]) =>
    ORDERS.map((order) => [name, order.join(", "), auth, order] as const),
  );

  it.each(CASES)("R4: lists by the session cookie (%s; %s)", async (_, __, auth, order) => {
    const { browser, users, active } = await createOpen(auth(), order);
    const { data } = await browser.get<SessionAnswer[]>("/multi-session/list-device-sessions");
    expect(data.map(({ user }) => user.id)).toEqual([users[active]]);
  });

  it.each(CASES)("R5: signs out of the active one alone (%s; %s)", async (_, __, auth, order) => {
    const { browser, users, active, whoIs } = await createOpen(auth(), order);
    const kept = browser.fork({});
    expect((await browser.post("/sign-out")).status).toBe(200);
    expect(await whoIs(kept, active)).toBe(null);
    const other = active === "a" ? "b" : "a";
    const [name, value] = [...kept.cookies].filter(([key]) => key.includes("_multi-")).at(-2) ?? [];
    expect(name).toBeDefined();
    kept.cookies.set("better-auth.session_token", value ?? "");
    expect(await whoIs(kept, other)).toMatchObject({ id: users[other] });
  });
});

describe("adapters that are instances of a class", () => {
  it("work, in tenants and on the platform", async () => {
    const { database } = createMemory((adapter) => new ClassAdapter(adapter));
    await expectSignUpWorks(await createPlaces([], { database, migrate: false }));
  });

  it("R5: keep sessions apart", async () => {
    const { database } = createMemory((adapter) => new ClassAdapter(adapter));
    await expectSessionsApart(await createPlaces([], { database, migrate: false }));
  });

  it("so does the adapter inside", async () => {
    const { database } = createMemory();
    await expectSessionsApart(await createPlaces([], { database, migrate: false }));
  });
});

/** An adapter as an application may write it: methods on the prototype, state that is private. */
class ClassAdapter implements DBAdapter {
  readonly #inner: DBAdapter;
  readonly id: string;
  readonly options: DBAdapter["options"];
  constructor(inner: DBAdapter) {
    this.#inner = inner;
    this.id = inner.id;
    this.options = inner.options;
  }
  create: DBAdapter["create"] = (input) => this.#inner.create(input);
  findOne<T>(input: Parameters<DBAdapter["findOne"]>[0]) {
    return this.#inner.findOne<T>(input);
  }
  findMany<T>(input: Parameters<DBAdapter["findMany"]>[0]) {
    return this.#inner.findMany<T>(input);
  }
  count(input: Parameters<DBAdapter["count"]>[0]) {
    return this.#inner.count(input);
  }
  update<T>(input: Parameters<DBAdapter["update"]>[0]) {
    return this.#inner.update<T>(input);
  }
  updateMany(input: Parameters<DBAdapter["updateMany"]>[0]) {
    return this.#inner.updateMany(input);
  }
  delete<T>(input: Parameters<DBAdapter["delete"]>[0]) {
    return this.#inner.delete<T>(input);
  }
  deleteMany(input: Parameters<DBAdapter["deleteMany"]>[0]) {
    return this.#inner.deleteMany(input);
  }
  consumeOne<T>(input: Parameters<DBAdapter["consumeOne"]>[0]) {
    return this.#inner.consumeOne<T>(input);
  }
  incrementOne<T>(input: Parameters<DBAdapter["incrementOne"]>[0]) {
    return this.#inner.incrementOne<T>(input);
  }
  transaction: DBAdapter["transaction"] = (run) => this.#inner.transaction(run);
}

describe("an application's own JSON fields", () => {
  const TALKS = [{ title: "Opening" }, { title: "Closing", tenantId: "somebody's" }];

  it.each(["sessions", "accounts", "verification", "verifications"])(
    "one on user called %s is not taken for a join",
    async (name) => {
      const auth = {
        user: { additionalFields: { [name]: { type: "json", required: false } } },
      } as const;
      const { at, ids, naming } = await createPlaces([], { auth });
      const body = { name: "Somebody", email: EMAIL, password: PASSWORD, [name]: TALKS };
      for (const place of ["a", "platform"] as const) {
        const tab = at(place);
        const made = await tab.post<{ user: Record<string, unknown> }>("/sign-up/email", body);
        expect(made.data.user[name], place).toEqual(TALKS);
        const again = tab.fork(naming(place));
        const { data } = await again.get<{ user: Record<string, unknown> }>("/get-session");
        expect(data.user[name], place).toEqual(TALKS);
        expect(data.user.tenantId).toBe(ids[place]);
      }
    },
  );

  it.each(["user", "users", "session"])(
    "one on another model called %s is not taken for a join",
    async (field) => {
      const { at, signUp } = await createPlaces([notes(field)], {
        tenant: { scopedModels: ["note"] },
      });
      await signUp("a");
      const written = { name: "A word", tenantId: "somebody's" };
      const made = await at("a").post<{ id: string }>("/note/write", { value: written });
      expect(made.status).toBe(200);
      const query = { id: made.data.id };
      const { data } = await at("a").get<Record<string, unknown>>("/note/read", { query });
      expect(data[field]).toEqual(written);
      expect((await at("b").get("/note/read", { query })).data).toBe(null);
    },
  );
});

/** A plugin of the application with a model of its own. */
function notes(field: string): BetterAuthPlugin {
  const write = createAuthEndpoint(
    "/note/write",
    { method: "POST", body: z.object({ value: z.any() }) },
    async (ctx) => {
      const data = { [field]: ctx.body.value };
      return ctx.json(await ctx.context.adapter.create({ model: "note", data }));
    },
  );
  const read = createAuthEndpoint(
    "/note/read",
    { method: "GET", query: z.object({ id: z.string() }) },
    async (ctx) => {
      const where = [{ field: "id", value: ctx.query.id }];
      return ctx.json(await ctx.context.adapter.findOne<Row>({ model: "note", where }));
    },
  );
  return {
    id: "notes",
    schema: { note: { fields: { [field]: { type: "json", required: false } } } },
    endpoints: { writeNote: write, readNote: read },
  };
}

describe("magicLink({ generateToken })", () => {
  const CALLBACK = "/after?next=/api/auth/done&token=none";

  async function sendLink(generateToken: () => string) {
    const sent: { url: string; token: string }[] = [];
    const sendMagicLink = async ({ url, token }: { url: string; token: string }) =>
      void sent.push({ url, token });
    const places = await createPlaces([magicLink({ sendMagicLink, generateToken })]);
    await places.signUp("a");
    const body = { email: EMAIL, callbackURL: CALLBACK };
    expect((await places.at("a").post("/sign-in/magic-link", body)).status).toBe(200);
    const mail = sent.at(-1) ?? { url: "", token: "" };
    return { ...places, mail, url: new URL(mail.url) };
  }

  /** Letters that stand in every link, and characters that none has as they are. */
  const TOKENS = ["plain", "a+b/c=d&e f%g#h?i", "ünïcödé 🔑", "api", "auth", "/", "token", "o"];

  it.each(TOKENS)("R6: a link with the token %j is sealed and leads home", async (token) => {
    const { at, whoIs, ids, mail, url } = await sendLink(() => token);
    expect(url.searchParams.get("token")).toBe(mail.token);
    expect(mail.token).not.toBe(token);
    const stranger = at("platform");
    await stranger.get(mail.url);
    expect(await whoIs(stranger, "platform")).toMatchObject({ tenantId: ids.a });
  });

  it.each(TOKENS)("nothing else in the link is replaced for the token %j", async (token) => {
    const { url } = await sendLink(() => token);
    expect(`${url.origin}${url.pathname}`).toBe("http://localhost:3000/api/auth/magic-link/verify");
    expect([...url.searchParams.keys()]).toEqual(["token", "callbackURL"]);
    expect(url.searchParams.get("callbackURL")).toBe(CALLBACK);
  });

  it.each(TOKENS)("R6: a link with the token %j does not lead into B", async (token) => {
    const { at, whoIs, mail } = await sendLink(() => token);
    const stranger = at("b");
    await stranger.get(mail.url);
    expect(await whoIs(stranger, "b")).toBe(null);
  });
});

describe("device codes that collide", () => {
  /** Codes in the order given, and then the last one for ever. */
  function drawing(...codes: string[]) {
    const drawn = [...codes];
    const last = codes.at(-1) ?? "";
    return deviceAuthorization({ generateUserCode: () => drawn.shift() ?? last });
  }
  const createDevices = (...codes: string[]) =>
    createPlaces([drawing(...codes)], { tenant: { scopedModels: ["deviceCode"] } });
  const ask = { client_id: "tv" };
  interface Codes {
    user_code?: string;
    error?: string;
  }

  it("better-auth itself draws again, and gives up with a 500", async () => {
    const database = await createDatabase("sqlite");
    const plugin = drawing("SAME", "SAME", "OTHER", "OTHER");
    const plain = await createPlainInstance(database, {}, [plugin]);
    const answers = [];
    for (let n = 0; n < 3; n++) {
      const { data, status } = await plain.browser().post<Codes>("/device/code", ask);
      answers.push([status, data.user_code ?? data.error]);
    }
    expect(answers).toEqual([
      [200, "SAME"],
      [200, "OTHER"],
      [500, "server_error"],
    ]);
    await database.close();
  });

  it.each(["a", "b", "platform"] as const)(
    "draw again, after a code of A, on %s",
    async (place) => {
      const { at } = await createDevices("SAME", "SAME", "OTHER");
      expect((await at("a").post<Codes>("/device/code", ask)).data.user_code).toBe("SAME");
      const { status, data } = await at(place).post<Codes>("/device/code", ask);
      expect([status, data.user_code]).toEqual([200, "OTHER"]);
    },
  );

  it.each(["a", "b", "platform"] as const)(
    "are refused as by better-auth, on %s",
    async (place) => {
      const { at } = await createDevices("SAME");
      expect((await at("a").post<Codes>("/device/code", ask)).status).toBe(200);
      const { status, data } = await at(place).post<Codes>("/device/code", ask);
      expect([status, data.error]).toEqual([500, "server_error"]);
    },
  );
});
