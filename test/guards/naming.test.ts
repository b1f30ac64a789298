import { APIError } from "better-auth/api";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { byDomain, type ResolvedTenant, runInTenant } from "../../src/index";
import { createDatabase } from "../support/database";
import { createInstance, type Instance, type InstanceOptions, PASSWORD } from "../support/instance";

let count = 0;
const newcomer = () => ({
  name: "New",
  email: `new-${++count}@example.com`,
  password: PASSWORD,
});

/** An instance whose resolver answers whatever a test wants, and two tenants. */
async function createWorld(options: InstanceOptions = {}) {
  const resolver: { answer: () => unknown } = { answer: () => undefined };
  const database = await createDatabase("sqlite");
  const instance = await createInstance({
    ...options,
    database,
    tenant: { resolveTenantId: () => resolver.answer() as ResolvedTenant },
  });
  const a = (await instance.createTenant("aa")).id;
  const b = (await instance.createTenant("bb")).id;
  const operator = (await instance.operator()).browser;
  return { instance, resolver, a, b, operator };
}

type World = Awaited<ReturnType<typeof createWorld>>;

/** Requests that would be good at B, if what the resolver says did not count. */
const REQUESTS: Record<string, (world: World) => Promise<{ status: number; data: unknown }>> = {
  "better-auth's sign-up": ({ instance, b }) =>
    instance.browser({ "x-tenant-id": b }).post("/sign-up/email", newcomer()),
  "sign-up with the tenant in the query": ({ instance, b }) =>
    instance.browser().post(`/sign-up/email?tenantId=${b}`, newcomer()),
  "sign-up that names nothing": ({ instance }) =>
    instance.browser().post("/sign-up/email", newcomer()),
  "the tenant's sign-up": ({ instance, b }) =>
    instance.browser().post("/tenant/sign-up/email", { ...newcomer(), tenantId: b }),
  "the tenant's sign-in methods": ({ instance, b }) =>
    instance.browser().get(`/tenant/sign-in-methods?tenantId=${b}`),
  "a management call": ({ operator, b }) => operator.get(`/tenant/oauth-config/list?tenantId=${b}`),
  "a look at one's session": ({ operator }) => operator.get("/get-session"),
  "an operator's list of users": ({ operator }) => operator.get("/admin/list-users"),
};

/** Answers that no resolver can mean, where ids are text. What the log has to say of each. */
const NONSENSE: [title: string, answer: (world: World) => unknown, said: RegExp][] = [
  ["a number", () => 42, /42|number/],
  ["zero", () => 0, /\b0\b|number/],
  ["NaN", () => Number.NaN, /NaN|number/],
  ["true", () => true, /true|boolean/],
  ["an array of an id", ({ b }) => [b], /array|object|\[/i],
  ["an empty array", () => [], /array|object|\[/i],
  ["an object without a slug", () => ({}), /object|\{/i],
  ["an object with an id", ({ b }) => ({ id: b }), /object|\{/i],
  ["a slug that is a number", () => ({ slug: 7 }), /object|slug|\{/i],
  ["a slug that is an array", () => ({ slug: ["bb"] }), /object|slug|\{/i],
  [
    "a function",
    ({ b }) =>
      () =>
        b,
    /function/i,
  ],
  ["a date", () => new Date(0), /date|object|1970/i],
  ["a big number", () => 1n, /bigint|1/],
  ["a symbol", () => Symbol("bb"), /symbol/i],
  ["a boxed string", ({ b }) => Object(b), /object|string/i],
  ["a map", () => new Map([["slug", "bb"]]), /map|object/i],
];

describe("a resolver that answers what nobody can understand", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(() => world.instance.database.close());

  const cases = NONSENSE.flatMap(([title, answer, said]) =>
    Object.entries(REQUESTS).map(
      ([name, request]) => [title, name, answer, said, request] as const,
    ),
  );

  it.each(cases)(
    "%s: %s is a 500, nothing falls through, and the log says why",
    async (_, __, answer, said, request) => {
      const { instance, resolver } = world;
      const users = await instance.rows("user");
      resolver.answer = () => answer(world);
      instance.logs.length = 0;
      const { status, data } = await request(world).finally(() => {
        resolver.answer = () => undefined;
      });
      expect(status, JSON.stringify(data)).toBe(500);
      expect(JSON.stringify(data)).not.toMatch(/@example\.com|tenantId/);
      expect(await instance.rows("user")).toBe(users);
      const lines = instance.logs.filter((line) => line.includes("resolveTenantId"));
      expect(lines.join("\n")).toMatch(said);
    },
  );

  it.each(Object.entries(REQUESTS))(
    "throws: %s is an error, not another tenant",
    async (_, ask) => {
      const { instance, resolver } = world;
      const users = await instance.rows("user");
      resolver.answer = () => {
        throw new Error("the table of hosts is away");
      };
      const { status } = await ask(world).finally(() => {
        resolver.answer = () => undefined;
      });
      expect(status).toBe(500);
      expect(await instance.rows("user")).toBe(users);
    },
  );

  it.each(Object.entries(REQUESTS))("a slug that is empty: %s is an error", async (_, ask) => {
    const { instance, resolver } = world;
    const users = await instance.rows("user");
    resolver.answer = () => ({ slug: "" });
    const { status } = await ask(world).finally(() => {
      resolver.answer = () => undefined;
    });
    expect([404, 500]).toContain(status);
    expect(await instance.rows("user")).toBe(users);
  });

  it("control: an error of the resolver's own choice reaches the caller as it is", async () => {
    const { resolver } = world;
    resolver.answer = () => {
      throw new APIError("FORBIDDEN", { code: "NO_SUCH_HOST", message: "No such host" });
    };
    const answer = await world.instance.browser().post("/sign-up/email", newcomer());
    resolver.answer = () => undefined;
    expect([answer.status, answer.code]).toEqual([403, "NO_SUCH_HOST"]);
  });

  it.each([
    ["an id", ({ a }: World) => a, "a"],
    ["a slug", () => ({ slug: "aa" }), "a"],
    ["a promise of an id", ({ a }: World) => Promise.resolve(a), "a"],
    ["undefined", () => undefined, "b"],
    ["null", () => null, "b"],
    ["an empty string", () => "", "b"],
    ["false", () => false, "platform"],
  ] as const)("control: %s is understood", async (_, answer, place) => {
    const { instance, resolver, a, b } = world;
    resolver.answer = () => answer(world);
    const { status, data } = await instance
      .browser({ "x-tenant-id": b })
      .post<{ user: { tenantId: string | null } }>("/sign-up/email", newcomer());
    resolver.answer = () => undefined;
    expect([status, data.user?.tenantId]).toEqual([200, { a, b, platform: null }[place]]);
  });
});

describe("a function behind byDomain() that answers what nobody can understand", () => {
  it.each([
    ["a number", 42],
    ["zero", 0],
    ["NaN", Number.NaN],
    ["true", true],
    ["an array", []],
    ["an empty object", {}],
  ])("%s is an error, not the platform", async (_, answer) => {
    const resolveTenantId = byDomain(() => answer as never);
    const instance = await createInstance({ tenant: { resolveTenantId } });
    const refused = await instance.browser().post("/sign-up/email", newcomer());
    expect(refused.status).toBe(500);
    expect(await instance.rows("user")).toBe(0);
  });
});

describe("numbers, where ids are numbers", () => {
  const serial: InstanceOptions = { auth: { advanced: { database: { generateId: "serial" } } } };

  it.each([
    ["the number of a tenant is its id", Number],
    ["control: and so is that number as text", String],
  ])("%s", async (_, write) => {
    const { instance, resolver, a, b } = await createWorld(serial);
    resolver.answer = () => write(a);
    const { status, data } = await instance
      .browser({ "x-tenant-id": b })
      .post<{ user: { tenantId: string } }>("/sign-up/email", newcomer());
    expect([status, String(data.user?.tenantId)]).toEqual([200, a]);
    await instance.database.close();
  });

  it.each([
    ["NaN", Number.NaN],
    ["infinity", Number.POSITIVE_INFINITY],
    ["half a number", 1.5],
    ["a number below zero", -1],
    ["a number that no tenant has", 4711],
    ["true", true],
    ["an array of a number", [1]],
  ])("%s is nobody's, and nothing falls through", async (_, answer) => {
    const { instance, resolver, b } = await createWorld(serial);
    const users = await instance.rows("user");
    resolver.answer = () => answer;
    const browser = instance.browser({ "x-tenant-id": b });
    const refused = await browser.post("/sign-up/email", newcomer());
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(await instance.rows("user")).toBe(users);
    await instance.database.close();
  });
});

describe("runInTenant()", () => {
  it.each([
    ["an empty string", ""],
    ["undefined", undefined],
    ["null", null],
    ["a number", 42],
    ["true", true],
    ["an array", ["aa"]],
    ["an object", { slug: "aa" }],
  ])("refuses %s, and runs nothing", async (_, tenantId) => {
    let ran = false;
    const run = async () =>
      runInTenant(tenantId as string, async () => {
        ran = true;
      });
    await expect(run()).rejects.toThrow();
    expect(ran).toBe(false);
  });

  it("control: takes an id", async () => {
    const instance = await createInstance();
    const { id } = await instance.createTenant();
    await runInTenant(id, () => instance.api.signUpEmail({ body: newcomer() }));
    expect(await instance.rows("user", '"tenantId" = ?', [id])).toBe(1);
  });
});

describe("a tenant that is named twice in the query", () => {
  let instance: Instance;
  let ids: [string, string];
  let operator: Awaited<ReturnType<Instance["operator"]>>["browser"];
  beforeAll(async () => {
    instance = await createInstance({ database: await createDatabase("sqlite") });
    ids = [(await instance.createTenant()).id, (await instance.createTenant()).id];
    operator = (await instance.operator()).browser;
  });
  afterAll(() => instance.database.close());

  const POSTS = [
    "/sign-up/email",
    "/sign-in/email",
    "/request-password-reset",
    "/sign-out",
    "/tenant/sign-up/email",
    "/tenant/sign-in/email",
  ];
  const GETS = [
    "/get-session",
    "/list-sessions",
    "/admin/list-users",
    "/tenant/sign-in-methods",
    "/tenant/oauth-config/list",
  ];
  const saying = (id: string): Record<string, string>[] => [{}, { "x-tenant-id": id }];
  const doubled = ([a, b]: [string, string]) => [
    `tenantId=${a}&tenantId=${b}`,
    `tenantId=${a}&tenantId=${a}`,
    `tenantId=${a}&tenantId=`,
  ];

  it.each(POSTS)("is refused at POST %s, whatever else is said", async (path) => {
    for (const query of doubled(ids)) {
      for (const headers of saying(ids[0])) {
        const users = await instance.rows("user");
        const answer = await instance.browser(headers).post(`${path}?${query}`, newcomer());
        expect([answer.status, answer.code], query).toEqual([400, "VALIDATION_ERROR"]);
        expect(await instance.rows("user")).toBe(users);
      }
    }
  });

  it.each(GETS)("is refused at GET %s, whatever else is said", async (path) => {
    for (const query of doubled(ids)) {
      for (const headers of saying(ids[0])) {
        const answer = await operator.get(`${path}?${query}`, { headers });
        expect([answer.status, answer.code], query).toEqual([400, "VALIDATION_ERROR"]);
      }
    }
  });

  it.each(["/tenant/oauth-config/delete", "/tenant/oauth-config/check"])(
    "is refused at POST %s",
    async (path) => {
      const body = { providerId: "google" };
      for (const query of doubled(ids)) {
        const answer = await operator.post(`${path}?${query}`, body);
        expect([answer.status, answer.code], query).toEqual([400, "VALIDATION_ERROR"]);
      }
    },
  );

  it("control: once is fine, and so is another parameter twice", async () => {
    const path = `/sign-up/email?tenantId=${ids[0]}&x=1&x=2`;
    const { data, status } = await instance
      .browser()
      .post<{ user: { tenantId: string } }>(path, newcomer());
    expect([status, data.user?.tenantId]).toEqual([200, ids[0]]);
  });

  it("a header that was sent twice names nobody that exists", async () => {
    const users = await instance.rows("user");
    const browser = instance.browser({ "x-tenant-id": ids.join(", ") });
    const answer = await browser.post("/sign-up/email", newcomer());
    expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    expect(await instance.rows("user")).toBe(users);
  });

  it.each([
    ["an array", (id: string) => [id]],
    ["a number", () => 42],
    ["an object", (id: string) => ({ id })],
    ["true", () => true],
  ])("a body of ours whose tenantId is %s is refused, whatever else is said", async (_, make) => {
    const users = await instance.rows("user");
    const body = { ...newcomer(), tenantId: make(ids[0]) };
    for (const headers of saying(ids[1])) {
      const answer = await instance.browser(headers).post("/tenant/sign-up/email", body);
      expect(answer.status).toBe(400);
    }
    expect(await instance.rows("user")).toBe(users);
  });
});
