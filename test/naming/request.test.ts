import { APIError } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { byDomain, type ResolvedTenant, runInTenant } from "../../src/index";
import type { Answer, Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { fakeNetwork } from "../support/providers";
import {
  BY_HEADER,
  BY_URL,
  createWorld,
  DOMAINS,
  expectRefused,
  type Hosts,
  outcome,
  type Place,
  SUBDOMAINS,
  shareWorld,
  type World,
  type WorldOptions,
} from "../support/world";

let count = 0;
const newcomer = () => ({ name: "New", email: `new-${++count}@example.com`, password: PASSWORD });
type SignedUp = { user?: { tenantId: string | null } };
const signUp = (browser: Browser, path = "/sign-up/email") =>
  browser.post<SignedUp>(path, newcomer());

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

/** Requests that would be good at Globex, if what the resolver says did not count. */
const REQUESTS: [string, (world: World, operator: Browser) => Promise<Answer<object | null>>][] = [
  ["sign-up", ({ at }) => signUp(at("globex"))],
  [
    "sign-up by the query",
    ({ at, ids }) => signUp(at(null), `/sign-up/email?tenantId=${ids.globex}`),
  ],
  ["sign-up that names nothing", ({ at }) => signUp(at(null))],
  [
    "the tenant's sign-up",
    ({ at, ids }) =>
      at(null).post("/tenant/sign-up/email", { ...newcomer(), tenantId: ids.globex }),
  ],
  [
    "sign-in methods",
    ({ at, ids }) => at(null).get(`/tenant/sign-in-methods?tenantId=${ids.globex}`),
  ],
  [
    "management",
    ({ ids }, operator) => operator.get(`/tenant/oauth-config/list?tenantId=${ids.globex}`),
  ],
  ["a look at one's session", (_, operator) => operator.get("/get-session")],
  ["an operator's list of users", (_, operator) => operator.get("/admin/list-users")],
];

describe("a resolver that answers what nobody can understand", () => {
  const { world, answering } = shareResolver();

  it.each<[string, (ids: World["ids"]) => unknown, said: RegExp]>([
    ["a number", () => 42, /42|number/],
    ["zero", () => 0, /\b0\b|number/],
    ["NaN", () => Number.NaN, /NaN|number/],
    ["true", () => true, /true|boolean/],
    ["an array of an id", ({ globex }) => [globex], /array|object|\[/i],
    ["an empty array", () => [], /array|object|\[/i],
    ["an object without a slug", () => ({}), /object|\{/i],
    ["an object with an id", ({ globex }) => ({ id: globex }), /object|\{/i],
    ["an empty slug", () => ({ slug: "" }), /object|slug|\{/i],
    ["a slug that is a number", () => ({ slug: 7 }), /object|slug|\{/i],
    ["a slug that is an array", () => ({ slug: ["globex"] }), /object|slug|\{/i],
    ["a function", () => () => "globex", /function/i],
    ["a date", () => new Date(0), /date|object|1970/i],
    ["a big number", () => 1n, /bigint|1/],
    ["a symbol", () => Symbol("globex"), /symbol/i],
    ["a boxed string", ({ globex }) => Object(globex), /object|string/i],
    ["a map", () => new Map([["slug", "globex"]]), /map|object/i],
    [
      "an error",
      () => {
        throw new Error("the table of hosts is away");
      },
      /the table of hosts is away/,
    ],
  ])("%s: is a 500, nothing falls through, and the log says why", async (_, answer, said) => {
    const operator = await world.operator();
    for (const [name, request] of REQUESTS) {
      world.logs.length = 0;
      const { status, data } = await answering(answer, () =>
        world.unchanged(() => request(world, operator)),
      );
      expect(status, `${name}: ${JSON.stringify(data)}`).toBe(500);
      expect(JSON.stringify(data)).not.toMatch(/@example\.com|tenantId/);
      const lines = world.logs.filter((line) => /resolveTenantId|table of hosts/.test(line));
      expect(lines.join("\n"), name).toMatch(said);
    }
  });

  it("control: an error of the resolver's own choice reaches the caller as it is", async () => {
    const refuse = () => {
      throw new APIError("FORBIDDEN", { code: "NO_SUCH_HOST", message: "No such host" });
    };
    expectRefused(await answering(refuse, () => signUp(world.at(null))), 403, "NO_SUCH_HOST");
  });

  it.each<[string, (ids: World["ids"]) => unknown, Place]>([
    ["an id", ({ acme }) => acme, "acme"],
    ["a slug", () => ({ slug: "acme" }), "acme"],
    ["a promise of an id", ({ acme }) => Promise.resolve(acme), "acme"],
    ["undefined", () => undefined, "globex"],
    ["null", () => null, "globex"],
    ["an empty string", () => "", "globex"],
    ["false", () => false, "platform"],
  ])("control: %s is understood", async (_, answer, place) => {
    const { status, data } = await answering(answer, () => signUp(world.at("globex")));
    expect([status, data.user?.tenantId]).toEqual([200, world.ids[place]]);
  });
});

it.each([[42], [0], [Number.NaN], [true], [[]], [{}]])(
  "a function behind byDomain() that answers %j is an error, not the platform",
  async (answer) => {
    const world = await createWorld({
      tenant: { resolveTenantId: byDomain(() => answer as never) },
    });
    expect((await signUp(world.at(null))).status).toBe(500);
    expect(await world.rows("user")).toBe(0);
  },
);

describe("numbers, where ids are numbers", () => {
  const { world, answering } = shareResolver({
    auth: { advanced: { disableOriginCheck: false, database: { generateId: "serial" } } },
  });

  it.each([Number, String])("the number of a tenant is its id, as %o", async (write) => {
    const named = ({ acme }: World["ids"]) => write(acme);
    const { status, data } = await answering(named, () => signUp(world.at("globex")));
    expect([status, String(data.user?.tenantId)]).toEqual([200, world.ids.acme]);
  });

  it.each([[Number.NaN], [Number.POSITIVE_INFINITY], [1.5], [-1], [4711], [true], [[1]]])(
    "%j is nobody's, and nothing falls through",
    async (answer) => {
      const { status } = await answering(
        () => answer,
        () => world.unchanged(() => signUp(world.at("globex"))),
      );
      expect(status).toBeGreaterThanOrEqual(400);
    },
  );
});

describe("names in the request", () => {
  const world = shareWorld();

  it.each([[""], [undefined], [null], [42], [true], [["acme"]], [{ slug: "acme" }]])(
    "runInTenant() refuses %j, and runs nothing",
    async (tenantId) => {
      let ran = false;
      const run = async () =>
        runInTenant(tenantId as string, async () => {
          ran = true;
        });
      await expect(run()).rejects.toThrow();
      expect(ran).toBe(false);
    },
  );

  it("control: runInTenant() takes an id", async () => {
    const body = newcomer();
    await runInTenant(world.ids.acme, () => world.api.signUpEmail({ body }));
    expect(await world.rowsIn("acme", "user")).toMatchObject([{ email: body.email }]);
  });

  /** Twice in the query, beside a header and without. */
  const doubled = (): [query: string, headers: Record<string, string>][] => {
    const { acme, globex } = world.ids;
    const queries = [acme, globex, ""].map((second) => `tenantId=${acme}&tenantId=${second}`);
    return queries.flatMap((query) => [
      [query, {}],
      [query, { "x-tenant-id": acme }],
    ]);
  };

  it.each([
    ["POST", "/sign-up/email"],
    ["POST", "/sign-in/email"],
    ["POST", "/request-password-reset"],
    ["POST", "/sign-out"],
    ["POST", "/tenant/sign-up/email"],
    ["POST", "/tenant/sign-in/email"],
    ["POST", "/tenant/oauth-config/delete"],
    ["POST", "/tenant/oauth-config/check"],
    ["GET", "/get-session"],
    ["GET", "/list-sessions"],
    ["GET", "/admin/list-users"],
    ["GET", "/tenant/sign-in-methods"],
    ["GET", "/tenant/oauth-config/list"],
  ])("a tenant that is named twice in the query is refused at %s %s", async (method, path) => {
    const operator = await world.operator();
    const body = { ...newcomer(), providerId: "google" };
    await world.unchanged(async () => {
      for (const [query, headers] of doubled()) {
        const caller = path.includes("sign-") ? world.at(null) : operator;
        const options = { method, headers, ...(method === "POST" && { body }) };
        const answer = await caller.send(`${path}?${query}`, options);
        expect(outcome(answer), query).toEqual([400, "VALIDATION_ERROR"]);
      }
    });
  });

  it("control: once is fine, and so is another parameter twice", async () => {
    const { acme } = world.ids;
    const path = `/sign-up/email?tenantId=${acme}&x=1&x=2`;
    expect((await signUp(world.at(null), path)).data.user?.tenantId).toBe(acme);
  });

  it("a header that was sent twice names nobody that exists", async () => {
    const { acme, globex } = world.ids;
    const browser = world.browser({ "x-tenant-id": `${acme}, ${globex}` });
    expectRefused(await world.unchanged(() => signUp(browser)), 404, "TENANT_NOT_FOUND");
  });

  it.each<[string, (id: string) => unknown]>([
    ["an array", (id) => [id]],
    ["a number", () => 42],
    ["an object", (id) => ({ id })],
    ["true", () => true],
  ])("a body of ours whose tenantId is %s is refused, whatever else is said", async (_, make) => {
    const body = { ...newcomer(), tenantId: make(world.ids.acme) };
    await world.unchanged(async () => {
      for (const place of [null, "globex"]) {
        expect((await world.at(place).post("/tenant/sign-up/email", body)).status).toBe(400);
      }
    });
  });

  it("R1: the body overrules the query, and the query the header", async () => {
    const operator = await world.operator();
    const { acme, globex } = world.ids;
    const headers = { "x-tenant-id": globex };
    const body = { providerId: "google", clientId: "id", clientSecret: "a-secret", tenantId: acme };
    for (const query of ["", `?tenantId=${globex}`]) {
      const path = `/tenant/oauth-config/register${query}`;
      const { data } = await operator.post(path, body, { headers });
      expect(data.tenantId).toBe(acme);
    }
    const change = { tenantId: acme, name: "New" };
    expect((await operator.post("/tenant/update", change, { headers })).data.id).toBe(acme);
    const query = { tenantId: acme };
    const list = await operator.get("/tenant/oauth-config/list", { query, headers });
    expect(list.data).toMatchObject([{ tenantId: acme }]);
  });
});

/** What is managed, and what the target is called in the body, or in the query of a GET. */
const CALLS: [method: "GET" | "POST", path: string, body: object, field: "tenantId" | "id"][] = [
  ["GET", "/tenant/get", {}, "id"],
  ["GET", "/tenant/oauth-config/list", {}, "tenantId"],
  [
    "POST",
    "/tenant/oauth-config/register",
    { providerId: "github", clientId: "new-id", clientSecret: "new-secret" },
    "tenantId",
  ],
  ["POST", "/tenant/oauth-config/update", { providerId: "google", enabled: false }, "tenantId"],
  ["POST", "/tenant/oauth-config/check", { providerId: "google" }, "tenantId"],
  ["POST", "/tenant/oauth-config/delete", { providerId: "google" }, "tenantId"],
  ["POST", "/tenant/update", { name: "Changed" }, "tenantId"],
  ["POST", "/tenant/delete", {}, "tenantId"],
];

/** Sends a call with a target in its proper place, and perhaps another one in the query. */
function call(
  browser: Browser,
  [method, path, body, field]: (typeof CALLS)[number],
  target?: string,
  query = {},
) {
  const named = target === undefined ? {} : { [field]: target };
  return method === "GET"
    ? browser.get(path, { query: { ...named, ...query } })
    : browser.post(path, { ...body, ...named }, { query });
}

const NAMINGS: [string, Hosts][] = [
  ["bySubdomain", SUBDOMAINS],
  ["byDomain", DOMAINS],
  ["a function that looks at the host header", BY_HEADER],
  ["a function that looks at the URL", BY_URL],
];

describe.each(NAMINGS)("R7: management at a tenant's host, with %s", (_, hosts) => {
  // Everybody may manage, so that only the target is in question.
  const world = shareWorld({ hosts, tenant: { canManageTenants: () => true } });

  const configure = (tenantId: string) =>
    world.api.registerTenantOAuthConfig({
      body: { tenantId, providerId: "google", clientId: "client-id", clientSecret: "secret-of-it" },
    });

  it("about another tenant is a conflict, and does nothing", async () => {
    fakeNetwork();
    const { acme, globex } = world.ids;
    await configure(acme);
    await configure(globex);
    await world.unchanged(async () => {
      for (const row of CALLS) {
        const [method, path] = row;
        const answers = [await call(world.at("acme"), row, globex)];
        if (method === "POST") {
          answers.push(await call(world.at("acme"), row, acme, { tenantId: globex }));
        }
        if (method === "POST" && path.includes("oauth")) {
          answers.push(await call(world.at("acme"), row, undefined, { tenantId: globex }));
        }
        for (const { status, data } of answers) {
          expect([path, status]).toEqual([path, 409]);
          expect(JSON.stringify(data)).not.toMatch(/client-|GLOBEX/);
        }
      }
      const bySlug = await world.at("acme").get("/tenant/get?slug=globex");
      expect([bySlug.status, bySlug.data.name]).toEqual([409, undefined]);
    });
  });

  it("a header of another tenant is overruled by the host, as everywhere", async () => {
    const headers = { "x-tenant-id": world.ids.globex };
    await configure(world.ids.acme);
    const { data } = await world.at("acme").get("/tenant/oauth-config/list", { headers });
    expect(data).toMatchObject([{ tenantId: world.ids.acme }]);
  });

  it("control: is about the host's own tenant, and on the platform's host about whom it names", async () => {
    fakeNetwork();
    const { acme, globex } = world.ids;
    expect((await world.at("acme").get("/tenant/get?slug=acme")).data.slug).toBe("acme");
    for (const [place, id, target] of [
      ["acme", acme, undefined],
      ["acme", acme, acme],
      ["platform", globex, globex],
    ] as const) {
      await configure(id);
      await world.touchesOnly(id === acme ? "acme" : "globex", async () => {
        for (const row of CALLS.filter(([, path]) => target || path.includes("oauth"))) {
          const { status, data } = await call(world.at(place), row, target);
          expect([row[1], status], JSON.stringify(data)).toEqual([row[1], 200]);
        }
      });
    }
  });
});
