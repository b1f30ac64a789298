import { createAuthMiddleware } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { nameTenant, type TenantNames } from "../../src/naming/request";
import type { RequestOptions } from "../support/browser";
import { PASSWORD } from "../support/instance";
import {
  createWorld,
  EMAIL,
  outcome,
  type Place,
  type SessionAnswer,
  shareWorld,
} from "../support/world";

const UNKNOWN = "no-such-tenant";
const NOT_FOUND = [404, "TENANT_NOT_FOUND"];
const VALIDATION_ERROR = expect.objectContaining({ code: "VALIDATION_ERROR" });

let count = 0;
const newcomer = () => ({ name: "New", email: `new-${++count}@example.com`, password: PASSWORD });
const SIGN_IN = { email: EMAIL, password: PASSWORD };

/** Paths of which the resolver was asked, and what ran of the application. */
const asked: unknown[] = [];
const ran: string[] = [];

const world = shareWorld({
  tenant: {
    resolveTenantId: async ({ headers, path }) => {
      asked.push(path);
      const answer = headers?.get("x-resolve");
      if (answer === "fails") throw new Error("resolver is down");
      return answer === "undefined" ? undefined : answer;
    },
  },
  auth: { hooks: { before: createAuthMiddleware(async (ctx) => void ran.push(ctx.path)) } },
});

/** The names that a request carries, by place or as they are. */
type Names = Partial<Record<"resolver" | "body" | "query" | "header", string>>;

function naming({ resolver, body, query, header }: Names) {
  const id = (name: string) => world.idOf(name) ?? "";
  return {
    body: body === undefined ? {} : { tenantId: id(body) },
    options: {
      query: query === undefined ? {} : { tenantId: id(query) },
      headers: {
        ...(resolver !== undefined && { "x-resolve": id(resolver) }),
        ...(header !== undefined && { "X-Tenant-ID": id(header) }),
      },
    } as RequestOptions,
  };
}

describe("R1: who names the tenant", () => {
  const OWN = "/sign-up/email";
  const OURS = "/tenant/sign-up/email";

  it.each<[path: string, names: Names, lands: Place]>([
    [OWN, {}, "platform"],
    [OWN, { header: "acme" }, "acme"],
    [OWN, { query: "acme" }, "acme"],
    [OWN, { query: "acme", header: "globex" }, "acme"],
    [OWN, { resolver: "acme", query: "globex", header: "globex" }, "acme"],
    [OURS, { body: "acme" }, "acme"],
    [OURS, { body: "acme", header: "globex" }, "acme"],
    [OURS, { body: "acme", query: "globex", header: "globex" }, "acme"],
    [OURS, { query: "acme", header: "globex" }, "acme"],
    [OURS, { header: "acme" }, "acme"],
    [OURS, { resolver: "acme", body: "globex", query: "globex", header: "globex" }, "acme"],
    // What is empty is no answer, and the next place is asked.
    [OWN, { header: "" }, "platform"],
    [OWN, { query: "" }, "platform"],
    [OWN, { query: "", header: "acme" }, "acme"],
    [OWN, { resolver: "", header: "acme" }, "acme"],
    [OWN, { resolver: "undefined", header: "acme" }, "acme"],
    [OWN, { resolver: "undefined" }, "platform"],
    [OURS, { body: "", query: "acme" }, "acme"],
    [OURS, { resolver: "", body: "acme", header: "globex" }, "acme"],
  ])("R1: %s with %j lands at %s", async (path, names, lands) => {
    const person = newcomer();
    const { body, options } = naming(names);
    asked.length = 0;
    const answer = await world.browser().post(path, { ...person, ...body }, options);
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
    expect(answer.data.user).toMatchObject({ tenantId: world.ids[lands] });
    const emails = (await world.rowsIn(lands, "user")).map(({ email }) => email);
    expect(emails).toContain(person.email);
    expect(await world.rows("user", "email = ?", [person.email])).toBe(1);
    // Once for each request.
    expect(asked).toEqual([path]);
  });

  it("R1: a name that is there twice is refused", async () => {
    const path = `${OWN}?tenantId=${world.ids.acme}&tenantId=${world.ids.globex}`;
    const answer = await world.browser().post(path, newcomer());
    expect(outcome(answer)).toEqual([400, "VALIDATION_ERROR"]);
  });

  it("R1, R3: a body names it on /tenant/* only, and moves nobody", async () => {
    const jane = await world.as("jane", "globex");
    const tenantId = world.ids.acme;
    const before = await world.everythingIn("acme");
    for (const window of [world.at("platform"), world.at("globex")]) {
      // To better-auth it is a field that nobody may set. It overlooks or refuses such fields.
      const answer = await window.post(OWN, { ...newcomer(), tenantId });
      expect([200, 400]).toContain(answer.status);
      if (answer.status === 400) expect(answer.code).toBe("FIELD_NOT_ALLOWED");
    }
    await jane.post("/update-user", { name: "Moved", tenantId });
    expect(await world.everythingIn("acme")).toEqual(before);
    expect(await world.whoIs(jane)).toMatchObject({ tenantId: world.ids.globex });
  });

  it("R1: a resolver that fails fails the request, and nothing is written", async () => {
    await world.unchanged(async () => {
      for (const path of [OWN, OURS]) {
        const { options } = naming({ resolver: "fails", header: "acme" });
        expect((await world.browser().post(path, newcomer(), options)).status).toBe(500);
      }
    });
  });

  it("R1: tenantHeader is the one header that is read", async () => {
    const { browser, ids } = await createWorld({ tenant: { tenantHeader: "X-Workspace" } });
    const both = { "x-workspace": ids.acme, "x-tenant-id": ids.globex };
    for (const path of [OWN, OURS]) {
      const { data } = await browser(both).post(path, newcomer());
      expect(data.user).toMatchObject({ tenantId: ids.acme });
    }
    const { data } = await browser({ "x-tenant-id": ids.globex }).post(OWN, newcomer());
    expect(data.user).toMatchObject({ tenantId: null });
  });
});

describe("R2: the tenant has to exist", () => {
  it.each<[path: string, body?: object]>([
    ["/sign-up/email", newcomer()],
    ["/sign-in/email", SIGN_IN],
    ["/request-password-reset", { email: EMAIL }],
    ["/reset-password", { token: "t", newPassword: PASSWORD }],
    ["/send-verification-email", { email: EMAIL }],
    ["/update-user", { name: "Changed" }],
    ["/sign-out", {}],
    ["/list-sessions"],
    ["/list-accounts"],
    ["/admin/list-users"],
    ["/tenant/sign-up/email", newcomer()],
    ["/tenant/sign-in/email", SIGN_IN],
    ["/tenant/sign-in/social", { provider: "google" }],
  ])("R2: %s in an unknown tenant is a 404", async (path, body) => {
    const jane = await world.as("jane", "platform");
    const { statements } = world.database;
    for (const names of [{ header: UNKNOWN }, { resolver: UNKNOWN }, { query: UNKNOWN }]) {
      const window = world.at("platform", jane);
      [ran.length, statements.length, world.mails.length] = [0, 0, 0];
      const method = body ? "POST" : "GET";
      const answer = await window.send(path, { method, body, ...naming(names).options });
      expect(outcome(answer)).toEqual(NOT_FOUND);
      // The look for the tenant, and whether it is a slug, are all that reached the database.
      expect(statements).toHaveLength(2);
      for (const sql of statements) expect(sql).toMatch(/^select .* from "tenant" /);
      // The application's hook of better-auth's own endpoint has not run either.
      expect(ran.filter((entry) => !entry.startsWith("/tenant/"))).toEqual([]);
      expect(world.mails).toEqual([]);
      expect(answer.headers.getSetCookie()).toEqual([]);
      expect(window.cookieHeader()).toBe(jane.cookieHeader());
    }
  });

  it("R2: get-session in an unknown tenant is null, and the cookie stays", async () => {
    for (const place of ["platform", "acme"] as const) {
      const jane = await world.as("jane", place);
      for (const names of [{ header: UNKNOWN }, { query: UNKNOWN }]) {
        const window = world.at("platform", jane);
        const answer = await window.get("/get-session", naming(names).options);
        expect([answer.status, answer.data]).toEqual([200, null]);
        expect(window.cookieHeader()).toBe(jane.cookieHeader());
      }
      expect(await world.whoIs(jane)).toMatchObject({ id: jane.id });
    }
  });

  it("R2: a tenant that was deleted is an unknown one", async () => {
    const { id } = await world.createTenant();
    const person = await world.signUp(id);
    await world.api.deleteTenant({ body: { tenantId: id } });
    await world.unchanged(async () => {
      expect(outcome(await person.post("/sign-up/email", newcomer()))).toEqual(NOT_FOUND);
    });
    expect(await world.whoIs(person)).toBe(null);
  });

  it("R2: the slug, the name or another spelling of the id are not the id", async () => {
    const id = world.ids.acme;
    const swapped = id.replace(/[a-z]/i, (letter) =>
      letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
    );
    await world.unchanged(async () => {
      const wrong = ["acme", "ACME", swapped, `${id}x`, id.slice(1), "%", "*", "null", "0"];
      for (const name of wrong) {
        const window = world.browser({ "x-tenant-id": name });
        const answer = await window.post("/sign-up/email", newcomer());
        expect(outcome(answer), name).toEqual(NOT_FOUND);
      }
    });
  });

  it.each<[path: string, body?: object]>([
    ["/tenant/sign-up/email", newcomer()],
    ["/tenant/sign-in/email", SIGN_IN],
    ["/tenant/sign-in/social", { provider: "google" }],
    ["/tenant/oauth-config/register", { providerId: "google", clientId: "i", clientSecret: "s" }],
    ["/tenant/oauth-config/list"],
    ["/tenant/oauth-config/delete", { providerId: "google" }],
  ])("R2: %s without a tenant is a 400, also with a session of one", async (path, body) => {
    const operator = await world.operator();
    const jane = await world.as("jane", "acme");
    await world.unchanged(async () => {
      const windows = path.includes("sign") ? [operator, world.at("platform", jane)] : [operator];
      for (const window of windows) {
        for (const empty of [{}, { tenantId: "" }] as Record<string, string>[]) {
          const answer = body
            ? await window.post(path, { ...body, ...empty })
            : await window.get(path, { query: empty });
          expect(outcome(answer)).toEqual([400, "TENANT_ID_REQUIRED"]);
        }
      }
    });
  });
});

describe("threat: checked one id, acted on another", () => {
  /** Four tenants that a request names, and a fifth whose session it carries: Jane is in each. */
  async function createNeighbours() {
    const make = async () => {
      const { id } = await world.createTenant();
      return Object.assign(await world.signUp(id), { at: id });
    };
    return {
      resolver: await make(),
      body: await make(),
      query: await make(),
      header: await make(),
      session: await make(),
    };
  }

  const WINNERS: ("resolver" | "body" | "query")[] = ["resolver", "body", "query"];

  it.each(WINNERS)("R1: /tenant/* acts on the winner: %s", async (winner) => {
    const people = await createNeighbours();
    const said = WINNERS.slice(WINNERS.indexOf(winner));
    const names = Object.fromEntries(said.map((it) => [it, people[it].at]));
    const { body, options } = naming({ ...names, header: people.header.at });
    const window = world.at("platform", people.session);
    const sessions = await world.rows("session");
    const path = "/tenant/sign-in/email";
    const { data } = await window.post<SessionAnswer>(path, { ...SIGN_IN, ...body }, options);
    const { id, at } = people[winner];
    expect(data.user).toMatchObject({ id, tenantId: at });
    expect(data.session).toMatchObject({ userId: id, tenantId: at });
    expect(await world.rows("session")).toBe(sessions + 1);
    expect(await world.rowsIn(at, "session")).toHaveLength(2);
  });

  it.each(["resolver", "query"] as const)(
    "R1, R5: elsewhere too: %s, and the session must fit it",
    async (winner) => {
      const people = await createNeighbours();
      const { body, options } = naming({
        resolver: winner === "resolver" ? people.resolver.at : "",
        body: people.body.at,
        query: people.query.at,
        header: people.header.at,
      });
      const { id, at } = people[winner];
      const stranger = world.at("platform", people.session);
      const change = { ...body, currentPassword: PASSWORD, newPassword: "another password" };
      await world.unchanged(async () => {
        const update = await stranger.post("/update-user", { ...body, name: "Mine" }, options);
        expect(outcome(update)).toEqual([401, "UNAUTHORIZED"]);
        expect((await stranger.post("/change-password", change, options)).status).toBe(401);
      });
      world.mails.length = 0;
      await stranger.post("/request-password-reset", { ...body, email: EMAIL }, options);
      expect(world.mails).toMatchObject([{ userId: id, sentIn: at }]);
      // The same request with a session that fits acts on the winner, and on nobody else.
      const friend = world.at("platform", people[winner]);
      expect((await friend.post("/update-user", { name: at }, options)).status).toBe(200);
      const renamed = await world.database.query(`select id from "user" where name = ?`, [at]);
      expect(renamed).toEqual([{ id }]);
    },
  );

  it("R7: management acts on the winner too, and only an operator gets there", async () => {
    const people = await createNeighbours();
    const names = { body: people.body.at, query: people.query.at, header: people.header.at };
    const { body, options } = naming(names);
    const config = { providerId: "google", clientId: "i", clientSecret: "s", ...body };
    const path = "/tenant/oauth-config/register";
    const stranger = world.at("platform", people.session);
    await world.unchanged(async () => {
      const refused = await stranger.post(path, config, options);
      expect(outcome(refused)).toEqual([403, "TENANT_MANAGEMENT_NOT_ALLOWED"]);
    });
    const configs = await world.rows("tenantOauthConfig");
    const answer = await (await world.operator()).post(path, config, options);
    expect([answer.status, answer.data.tenantId]).toEqual([200, people.body.at]);
    expect(await world.rows("tenantOauthConfig")).toBe(configs + 1);
  });
});

describe("threat: forged Host sticks", () => {
  it.each(["http://localhost:3000", undefined])("with baseURL %s", async (baseURL) => {
    const { api, ids, at, mails } = await createWorld({ auth: { baseURL } });
    const tenantId = ids.acme;
    // Signed up by the server, so that the forged requests are the first ones over HTTP.
    await api.signUpEmailTenant({ body: { tenantId, name: "Somebody", ...SIGN_IN } });
    const config = { providerId: "google", clientId: "i", clientSecret: "s" };
    await api.registerTenantOAuthConfig({ body: { tenantId, ...config } });
    const social = ["/tenant/sign-in/social", { provider: "google" }] as const;
    const browser = at("acme");
    for (const headers of [
      { host: "evil.example" },
      { "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" },
    ] as Record<string, string>[]) {
      const evil = { headers: { ...headers, origin: "http://evil.example" } };
      const base = "http://evil.example/api/auth";
      await browser.post(`${base}/request-password-reset`, { email: EMAIL }, evil);
      await browser.post(`${base}${social[0]}`, social[1], evil);
      mails.length = 0;
      await browser.post("/request-password-reset", { email: EMAIL });
      expect(mails.map(({ url }) => new URL(url).origin)).toEqual(["http://localhost:3000"]);
      const { data } = await browser.post<{ url: string }>(...social);
      const callback = new URL(data.url).searchParams.get("redirect_uri");
      expect(callback).toBe("http://localhost:3000/api/auth/tenant/callback/google");
    }
  });
});

/** Values that answer nothing, wherever they stand; the first two also where a name is expected. */
const NO_ANSWERS: unknown[] = [
  undefined,
  "",
  null,
  42,
  0,
  true,
  ["in-an-array"],
  [],
  { id: "in-an-object" },
  { toString: () => "printed" },
  // A boxed string is an object, and no request parser makes one.
  Object("boxed"),
];

/** What can stand in a place, and what it answers by rule R1. */
type Candidate = [input: unknown, answer?: string];

/** What the resolver answers, or what the header holds: the value itself. */
const bare = (id: string): Candidate[] => [
  ...NO_ANSWERS.map((input): Candidate => [input]),
  [id, id],
];

/** A body or a query: the value stands in its own `tenantId`, and nowhere else. */
const enclosed = (id: string): Candidate[] => [
  ...[undefined, null, id, 7, [id], [{ tenantId: id }]].map((input): Candidate => [input]),
  [{ tenant: id, tenantID: id, id }],
  [{ data: { tenantId: id } }],
  [Object.create({ tenantId: id })],
  ...NO_ANSWERS.slice(0, 2).map((tenantId): Candidate => [{ tenantId }]),
  [{ tenantId: id, other: "x" }, id],
  [Object.assign(Object.create(null), { tenantId: id }), id],
];

describe("nameTenant", () => {
  const name = (resolved: unknown, body: unknown, query: unknown, header: unknown) =>
    nameTenant({ resolved, body, query, header } as TenantNames);

  it("R1: the first place that answers wins, in every combination", () => {
    const wrong: unknown[] = [];
    const [bodies, queries] = [enclosed("id-of-body"), enclosed("id-of-query")];
    for (const resolved of bare("id-of-resolver")) {
      for (const body of bodies) {
        for (const query of queries) {
          for (const header of bare("id-of-header")) {
            const inOrder = [resolved, body, query, header];
            const answer = name(resolved[0], body[0], query[0], header[0]);
            const winner = inOrder.find(([, own]) => own !== undefined);
            if (answer !== winner?.[1]) wrong.push([inOrder, answer]);
          }
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  // What is no name at all is refused, and no other place speaks for it.
  it.each(NO_ANSWERS.slice(2).map((tenantId) => ({ tenantId })))(
    "R1: %j is a mistake",
    (mistake) => {
      for (const [other] of enclosed("id-of-another")) {
        for (const [spoken] of bare("id-of-resolver")) {
          for (const [body, query] of [
            [mistake, other],
            [other, mistake],
          ]) {
            const attempt = () => name(spoken, body, query, spoken);
            expect(attempt).toThrow(expect.objectContaining({ body: VALIDATION_ERROR }));
          }
        }
      }
    },
  );

  it("R1: hands an id on as it is, and says nothing when no place is there at all", () => {
    expect(nameTenant({ header: " A b " })).toBe(" A b ");
    expect(nameTenant({})).toBeUndefined();
  });

  it("R1: nobody who pollutes Object.prototype names a tenant", () => {
    const value = "polluted";
    Object.defineProperty(Object.prototype, "tenantId", { value, configurable: true });
    try {
      expect(nameTenant({ body: {}, query: {} })).toBeUndefined();
    } finally {
      Reflect.deleteProperty(Object.prototype, "tenantId");
    }
  });
});
