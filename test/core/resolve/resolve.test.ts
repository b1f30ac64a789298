import { APIError, createAuthEndpoint, createAuthMiddleware } from "better-auth/api";
import { describe, expect, it, vi } from "vitest";
import { isTenantRoute } from "../../../src/core/constants";
import { findManagementPaths } from "../../../src/core/management-calls";
import { tenantDomains } from "../../../src/features/domains/index";
import { tenantInvitations } from "../../../src/features/invitations/index";
import { getTenantId, type ResolvedTenant, runInTenant, tenantAuth } from "../../../src/index";
import type { Browser, RequestOptions } from "../../support/browser";
import { newcomer, PASSWORD } from "../../support/instance";
import { createMemory, mapStorage } from "../../support/stores";
import {
  createWorld,
  EMAIL,
  expectRefused,
  type Hosts,
  outcome,
  type Person,
  PLACES,
  type Place,
  queryOf,
  SUBDOMAINS,
  shareWorld,
  type World,
  type WorldOptions,
} from "../../support/world";

const UNKNOWN = "no-such-tenant";
const NOT_FOUND = [404, "TENANT_NOT_FOUND"];
const OWN = "/sign-up/email";
const OURS = "/tenant/sign-up/email";

const SIGN_IN = { email: EMAIL, password: PASSWORD };
const GOOGLE = { providerId: "google", clientId: "client-id", clientSecret: "a-secret" };
const signUp = (browser: Browser, path = OWN) =>
  browser.post<{ user?: { tenantId: string | null } }>(path, newcomer());

/** Paths of which the resolver was asked, and what ran of the application. */
const asked: unknown[] = [];
const ran: string[] = [];

const world = shareWorld({
  tenant: {
    resolveTenantId: async ({ headers, path }) => {
      // Without a path it is about a host in an address, and not about the request.
      if (path !== undefined) asked.push(path);
      const answer = headers?.get("x-resolve");
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
  it.each<[path: string, names: Names, lands: Place]>([
    [OWN, {}, "platform"],
    [OWN, { query: "acme", header: "globex" }, "acme"],
    [OWN, { resolver: "acme", query: "globex", header: "globex" }, "acme"],
    [OURS, { body: "acme", query: "globex", header: "globex" }, "acme"],
    [OURS, { resolver: "acme", body: "globex", query: "globex", header: "globex" }, "acme"],
    // What is empty is no answer, and the next place is asked.
    [OWN, { query: "" }, "platform"],
    [OWN, { resolver: "undefined", query: "", header: "acme" }, "acme"],
    [OURS, { resolver: "", body: "", query: "acme" }, "acme"],
  ])("%s with %j lands at %s", async (path, names, lands) => {
    const person = newcomer();
    const { body, options } = naming(names);
    asked.length = 0;
    const answer = await world.browser().post(path, { ...person, ...body }, options);
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
    expect(answer.data.user).toMatchObject({ tenantId: world.ids[lands] });
    expect(await world.rows("user", "email = ?", [person.email])).toBe(1);
    // Once for each request.
    expect(asked).toEqual([path]);
  });

  it("a body names it on /tenant/* only, and moves no user (R3)", async () => {
    const jane = await world.as("jane", "globex");
    const tenantId = world.ids.acme;
    const before = await world.everythingIn("acme");
    for (const window of [world.at("platform"), world.at("globex")]) {
      // To better-auth it is a field that nobody may set. It overlooks or refuses such fields.
      const answer = await window.post(OWN, { ...newcomer(), tenantId });
      expect([undefined, "FIELD_NOT_ALLOWED"]).toContain(answer.code);
    }
    await jane.post("/update-user", { name: "Moved", tenantId });
    expect(await world.everythingIn("acme")).toEqual(before);
    expect(await world.whoIs(jane)).toMatchObject({ tenantId: world.ids.globex });
  });

  it("tenantHeader is the one header that is read", async () => {
    const { browser, ids } = await createWorld({ tenant: { tenantHeader: "X-Workspace" } });
    const both = { "x-workspace": ids.acme, "x-tenant-id": ids.globex };
    for (const path of [OWN, OURS]) {
      expect((await signUp(browser(both), path)).data.user).toMatchObject({ tenantId: ids.acme });
    }
    const { data } = await signUp(browser({ "x-tenant-id": ids.globex }));
    expect(data.user).toMatchObject({ tenantId: null });
  });

  it("a tenant that is named twice in the query is refused everywhere", async () => {
    const { acme, globex } = world.ids;
    const operator = await world.operator();
    await world.unchanged(async () => {
      for (const second of [globex, ""]) {
        const twice = `?tenantId=${acme}&tenantId=${second}`;
        const answers = [
          await signUp(world.at(second ? null : "acme"), `${OWN}${twice}`),
          await signUp(world.at(second ? null : "acme"), `${OURS}${twice}`),
          await operator.get(`/get-session${twice}`),
          await operator.get(`/tenant/oauth-config/list${twice}`),
        ];
        const invalid = [400, "VALIDATION_ERROR"];
        expect(answers.map(outcome)).toEqual(answers.map(() => invalid));
      }
    });
    // Control: another parameter twice is fine.
    const once = `${OWN}?tenantId=${acme}&x=1&x=2`;
    expect((await signUp(world.at(null), once)).data.user?.tenantId).toBe(acme);
  });

  it("a tenantId in the body that is not a string is refused, whatever else names a tenant", async () => {
    const { options } = naming({ resolver: "acme", query: "acme", header: "acme" });
    for (const tenantId of [null, 42, 0, true, ["id"], [], { id: "id" }]) {
      const answer = await world.browser().post(OURS, { ...newcomer(), tenantId }, options);
      expect(outcome(answer), JSON.stringify(tenantId)).toEqual([400, "VALIDATION_ERROR"]);
    }
  });

  it("runInTenant() refuses what is no id, and runs nothing", async () => {
    const run = vi.fn(async () => {});
    for (const tenantId of ["", undefined, null, 42, ["acme"], { slug: "acme" }]) {
      await expect(async () => runInTenant(tenantId as string, run)).rejects.toThrow();
    }
    expect(run).not.toHaveBeenCalled();
  });
});

describe("R2: the tenant has to be named, and to exist", () => {
  it.each<[path: string, body?: object]>([
    [OWN, newcomer()],
    ["/reset-password", { token: "t", newPassword: PASSWORD }],
    ["/list-sessions"],
    ["/tenant/sign-in/email", SIGN_IN],
    ["/tenant/sign-in/social", { provider: "google" }],
  ])("%s in an unknown tenant is a 404", async (path, body) => {
    const jane = await world.as("jane", "platform");
    const { statements } = world.database;
    for (const names of [{ header: UNKNOWN }, { resolver: UNKNOWN }, { query: UNKNOWN }]) {
      const window = world.at("platform", jane);
      [ran.length, statements.length] = [0, 0];
      const method = body ? "POST" : "GET";
      const answer = await window.send(path, { method, body, ...naming(names).options });
      expect(outcome(answer)).toEqual(NOT_FOUND);
      // Only the tenant is looked up.
      expect(statements).toHaveLength(1);
      for (const sql of statements) expect(sql).toMatch(/^select .* from "tenant" /);
      // The application's hook of better-auth's own endpoint has not run either.
      expect(ran.filter((entry) => !entry.startsWith("/tenant/"))).toEqual([]);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
  });

  it("get-session in an unknown tenant is null, and the cookie stays", async () => {
    const jane = await world.as("jane", "acme");
    for (const names of [{ header: UNKNOWN }, { query: UNKNOWN }]) {
      const window = world.at("platform", jane);
      const answer = await window.get("/get-session", naming(names).options);
      expect([answer.status, answer.data]).toEqual([200, null]);
      expect(window.cookieHeader()).toBe(jane.cookieHeader());
    }
  });

  it("the slug, the name, two ids or another spelling of the id are not the id", async () => {
    const { acme: id, globex } = world.ids;
    const swapped = id.replace(/[a-z]/i, (letter) =>
      letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
    );
    await world.unchanged(async () => {
      const wrong = ["acme", "ACME", swapped, `${id}x`, id.slice(1), "%", "0", `${id}, ${globex}`];
      for (const name of wrong) {
        const answer = await signUp(world.browser({ "x-tenant-id": name }));
        expect(outcome(answer), name).toEqual(NOT_FOUND);
      }
    });
  });

  it("on /tenant/* no tenant is a 400, also with a session of one", async () => {
    const operator = await world.operator();
    const jane = world.at("platform", await world.as("jane", "acme"));
    const answers = await world.unchanged(async () => [
      await jane.post(OURS, newcomer()),
      await operator.post(OURS, { ...newcomer(), tenantId: "" }),
      await operator.post("/tenant/oauth-config/register", GOOGLE),
      await operator.get("/tenant/oauth-config/list", { query: { tenantId: "" } }),
    ]);
    const required = [400, "TENANT_ID_REQUIRED"];
    expect(answers.map(outcome)).toEqual(answers.map(() => required));
  });
});

it.each(["http://localhost:3000", undefined])(
  "threat: forged Host sticks, with baseURL %s",
  async (baseURL) => {
    const { api, ids, at, mails } = await createWorld({ auth: { baseURL } });
    const tenantId = ids.acme;
    // Signed up by the server, so that the forged requests are the first ones over HTTP.
    await api.signUpEmailTenant({ body: { tenantId, name: "Somebody", ...SIGN_IN } });
    await api.registerTenantOAuthConfig({ body: { tenantId, ...GOOGLE } });
    const ask = async (base = "", headers = {}) => {
      await at("acme").post(`${base}/request-password-reset`, { email: EMAIL }, { headers });
      const social = { provider: "google" };
      return at("acme").post<{ url: string }>(`${base}/tenant/sign-in/social`, social, { headers });
    };
    const forwarded = { "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" };
    for (const headers of [{ host: "evil.example" }, forwarded]) {
      await ask("http://evil.example/api/auth", { ...headers, origin: "http://evil.example" });
      mails.length = 0;
      const { redirect_uri } = queryOf((await ask()).data.url);
      expect(mails.map(({ url }) => new URL(url).origin)).toEqual(["http://localhost:3000"]);
      expect(redirect_uri).toBe("http://localhost:3000/api/auth/tenant/callback/google");
    }
  },
);

/** A world whose resolver answers whatever a test wants, for as long as it wants. */
function shareResolver(options: WorldOptions = {}) {
  let answer: (ids: World["ids"]) => unknown = () => undefined;
  const resolveTenantId = () => answer(world.ids) as ResolvedTenant;
  const world = shareWorld({ ...options, tenant: { resolveTenantId } });

  async function answering<T>(what: typeof answer, run: () => Promise<T>): Promise<T> {
    answer = what;
    return run().finally(() => {
      answer = () => undefined;
    });
  }
  return { world, answering };
}

const resolverAsking = shareResolver();

it("each question of a resolver runs in the tenant of the session that it is about", async () => {
  const { world, answering } = resolverAsking;
  const people = [await world.as("jane", "acme"), await world.as("jane", "globex")];
  const ask = (person: Person) =>
    world.api.getSession({ headers: new Headers({ cookie: person.cookieHeader() }) });
  let answers: unknown[] = [];
  const askAll = async () => {
    const inTurn = [];
    for (const person of people) inTurn.push(await ask(person));
    answers = [...inTurn, ...(await Promise.all(people.toReversed().map(ask)))];
    return undefined;
  };
  const [jane, other] = people as [Person, Person];
  const { data } = await answering(askAll, () => world.at("platform", jane).get("/get-session"));
  expect(data).toMatchObject({ user: { id: jane.id } });
  expect(answers).toMatchObject([jane, other, other, jane].map(({ id }) => ({ user: { id } })));
});

it("R2: half a character that a resolver answers is in no key of the storage and no cookie: 404", async () => {
  const { at } = await createWorld({
    tenant: { sessionCookies: "per-tenant", resolveTenantId: () => "\ud800" },
    auth: { secondaryStorage: mapStorage().storage },
  });
  expect(outcome(await at("platform").get("/get-session"))).toEqual(NOT_FOUND);
});

describe("threat: a resolver's answer is dropped. A resolver that answers with an unknown value", () => {
  const { world, answering } = shareResolver();

  it.each<[string, (ids: World["ids"]) => unknown, said: RegExp]>([
    ["a number", () => 42, /number/],
    ["NaN", () => Number.NaN, /number/],
    ["true", () => true, /boolean/],
    ["an array of an id", ({ globex }) => [globex], /object/],
    ["an object without a slug", ({ globex }) => ({ id: globex }), /object/],
    ["an empty slug", () => ({ slug: "" }), /object/],
    ["a slug that is a number", () => ({ slug: 7 }), /object/],
    ["a function", () => () => "globex", /function/i],
    [
      "an error",
      () => {
        throw new Error("the table of hosts is away");
      },
      /the table of hosts is away/,
    ],
  ])("%s: is a 500, nothing falls through, and the log says why", async (_, answer, said) => {
    const users = await world.rows("user");
    world.logs.length = 0;
    const { status, data } = await answering(answer, () => signUp(world.at("globex")));
    expect(status).toBe(500);
    expect(JSON.stringify(data)).not.toMatch(/@example\.com|tenantId/);
    expect(await world.rows("user")).toBe(users);
    const lines = world.logs.filter((line) => /resolveTenantId|table of hosts/.test(line));
    expect(lines.join("\n")).toMatch(said);
  });

  it("whatever is asked", async () => {
    const operator = await world.operator();
    const { globex: tenantId } = world.ids;
    const ask = async () => [
      await signUp(world.at(null)),
      await world.at(null).post(OURS, { ...newcomer(), tenantId }),
      await operator.get("/tenant/oauth-config/list", { query: { tenantId } }),
      await operator.get("/get-session"),
    ];
    const answers = await answering(
      () => 42,
      () => world.unchanged(ask),
    );
    expect(answers.map(({ status }) => status)).toEqual([500, 500, 500, 500]);
  });

  it("control: an error of the resolver's own choice reaches the caller as it is", async () => {
    const refuse = () => {
      throw new APIError("FORBIDDEN", { code: "NO_SUCH_HOST", message: "No such host" });
    };
    expectRefused(await answering(refuse, () => signUp(world.at(null))), 403, "NO_SUCH_HOST");
  });

  it.each<[string, (ids: World["ids"]) => unknown, Place]>([
    ["a slug", () => ({ slug: "acme" }), "acme"],
    ["a promise of an id", ({ acme }) => Promise.resolve(acme), "acme"],
    ["null", () => null, "globex"],
    ["an empty string", () => "", "globex"],
    ["false", () => false, "platform"],
  ])("control: %s is understood", async (_, answer, place) => {
    const { status, data } = await answering(answer, () => signUp(world.at("globex")));
    expect([status, data.user?.tenantId]).toEqual([200, world.ids[place]]);
  });
});

describe("numbers, where ids are numbers", () => {
  const { database } = createMemory((adapter) => ({ ...adapter, id: "gives no number twice" }));
  const { world, answering } = shareResolver({
    auth: {
      database: database.option,
      advanced: { disableOriginCheck: false, database: { generateId: "serial" } },
    },
    migrate: false,
  });

  it.each([Number, String])("the number of a tenant is its id, as %o", async (write) => {
    const named = ({ acme }: World["ids"]) => write(acme);
    const { status, data } = await answering(named, () => signUp(world.at("globex")));
    expect([status, String(data.user?.tenantId)]).toEqual([200, world.ids.acme]);
  });

  it("any other number, and text that is no number, is no tenant's", async () => {
    for (const answer of [Number.NaN, 1.5, -1, 4711, true, [1]]) {
      const ask = () => signUp(world.at("globex"));
      expect((await answering(() => answer, ask)).status).toBeGreaterThanOrEqual(400);
    }
    expect(world.logs.join()).toContain("resolveTenantId returned a value of type number");
  });
});

// Under `/tenant/` there may be endpoints of the application's own.
describe.each<[by: string, hosts: Hosts | undefined]>([
  ["the header", undefined],
  ["the host", SUBDOMAINS],
])("R2: an application's endpoint under /tenant/, by %s", (_, hosts) => {
  const world = shareWorld({
    ...(hosts && { hosts }),
    plugins: [
      {
        id: "notes",
        endpoints: {
          notes: createAuthEndpoint("/tenant/notes", { method: "GET" }, async ({ context }) => {
            const users = await context.adapter.findMany<{ tenantId: unknown }>({ model: "user" });
            return { here: getTenantId(), of: [...new Set(users.map(({ tenantId }) => tenantId))] };
          }),
        },
      },
    ],
  });

  it.each(PLACES)("runs at %s, also in a browser that is signed in elsewhere", async (place) => {
    await world.janes();
    const id = world.ids[place];
    const elsewhere = await world.as("jane", place === "acme" ? "globex" : "acme");
    const visitors = [
      world.at(place),
      ...(place === "platform" ? [] : [world.at(place, elsewhere)]),
    ];
    for (const visitor of visitors) {
      expect((await visitor.get("/tenant/notes")).data).toEqual({ here: id, of: [id] });
    }
  });
});

it("R7: every endpoint of ours under /tenant runs in no tenant, or is a tenant route", () => {
  const plugins = [
    tenantAuth(),
    tenantInvitations({ sendInvitationEmail: () => {} }),
    tenantDomains(),
  ];
  const endpoints: { path?: string }[] = plugins.flatMap((plugin) =>
    Object.values(plugin.endpoints),
  );
  const management = findManagementPaths(plugins);
  const paths = endpoints.flatMap(({ path }) => path ?? []);
  expect(paths.length).toBeGreaterThan(25);
  const isKnown = (path: string) => management.has(path) || isTenantRoute(path);
  expect(paths.filter((path) => !isKnown(path))).toEqual([]);
  expect(paths.filter((path) => management.has(path) && isTenantRoute(path))).toEqual([]);
});

describe("R7: management at a tenant's host", () => {
  // Everybody may manage, so that only the target is in question.
  const world = shareWorld({ hosts: SUBDOMAINS, tenant: { canManageTenants: () => true } });
  const REGISTER = "/tenant/oauth-config/register";
  const LIST = "/tenant/oauth-config/list";

  it("about another tenant is a conflict, and does nothing", async () => {
    const { acme, globex: tenantId } = world.ids;
    const at = world.at("acme");
    const target = { query: { tenantId } };
    const answers = await world.unchanged(async () => [
      await at.get("/tenant/get", { query: { id: tenantId } }),
      await at.get("/tenant/get", { query: { slug: "globex" } }),
      await at.get(LIST, target),
      await at.post(REGISTER, { ...GOOGLE, tenantId }),
      await at.post(REGISTER, { ...GOOGLE, tenantId: acme }, target),
      await at.post(REGISTER, GOOGLE, target),
      await at.post("/tenant/update", { tenantId, name: "Changed" }),
      await at.post("/tenant/delete", { tenantId }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 409));
    expect(JSON.stringify(answers.map(({ data }) => data))).not.toMatch(/client-|GLOBEX/);
  });

  it("is about the host's own tenant, and on the platform's host about the tenant that it names", async () => {
    const { acme, globex } = world.ids;
    // A header of another tenant is overruled by the host, as everywhere.
    const headers = { "x-tenant-id": globex };
    for (const [place, tenantId, named] of [
      ["acme", acme, {}],
      ["acme", acme, { tenantId: acme }],
      ["platform", globex, { tenantId: globex }],
    ] as const) {
      const made = await world.at(place).post(REGISTER, { ...GOOGLE, ...named }, { headers });
      expect(made.data).toMatchObject({ tenantId });
      const listed = await world.at(place).get(LIST, { query: named, headers });
      expect(listed.data).toMatchObject([{ tenantId }]);
    }
  });
});
