// Our endpoints share one route of better-auth's router. Nobody should be able to tell.
import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware } from "better-auth/api";
import { openAPI } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { SHARED_ROUTE } from "../src/constants";
import { tenantAuth } from "../src/index";
import { endpointsOf } from "../src/testing/endpoints";
import { openSubject } from "../src/testing/subject";
import { createInstance } from "./support/instance";
import { createWorld, shareWorld } from "./support/world";

type Routed = { path?: string; options: { metadata?: { SERVER_ONLY?: boolean } } };

/** The paths under `/tenant/` that better-auth's router takes in for every request. */
const routesOf = ({ plugins = [] }: BetterAuthOptions) =>
  plugins
    .flatMap(({ endpoints = {} }) => Object.values(endpoints) as Routed[])
    .filter(({ path, options }) => path?.startsWith("/tenant/") && !options.metadata?.SERVER_ONLY)
    .map(({ path }) => path);

const OWN_ROUTES = ["/tenant/callback/:id", SHARED_ROUTE];

/** A plugin of the application, with an endpoint that says where it is and what it was called with. */
const application = (path: string): BetterAuthPlugin => ({
  id: `application${path}`,
  endpoints: {
    own: createAuthEndpoint(path, { method: "GET" }, async (ctx) => ctx.json(ctx.params ?? {})),
  },
});

describe("the shared route", () => {
  const seen: string[] = [];
  const note = (by: string) =>
    createAuthMiddleware(async ({ path }) => {
      seen.push(`${by} ${path}`);
    });
  const guards: BetterAuthPlugin = {
    id: "guards",
    hooks: {
      before: [{ matcher: () => true, handler: note("before") }],
      after: [{ matcher: () => true, handler: note("after") }],
    },
    middlewares: [{ path: "/tenant/**", middleware: note("middleware") }],
    onRequest: async () => void seen.push("onRequest"),
    onResponse: async () => void seen.push("onResponse"),
  };
  const hooks = { before: note("application before"), after: note("application after") };
  const world = shareWorld({ plugins: [guards, openAPI()], auth: { hooks } });

  it("is all that the router takes in, besides the callback", () => {
    expect(routesOf(world.auth.options).sort()).toEqual(OWN_ROUTES.sort());
  });

  it("leads to each endpoint by its own path and method alone, and its hooks run once", async () => {
    const operator = await world.operator();
    seen.length = 0;
    const { status } = await operator.get("/tenant/list");
    expect(status).toBe(200);
    const ran = ["application before", "before", "application after", "after"];
    const inside = ran.map((by) => `${by} /tenant/list`);
    expect(seen).toEqual(["onRequest", "middleware /tenant/list", ...inside, "onResponse"]);
  });

  it.each([
    ["GET", "/tenant/create"],
    ["POST", "/tenant/list"],
    ["PUT", "/tenant/create"],
    ["GET", "/tenant/list/"],
    ["GET", "/tenant/list/more"],
    ["GET", "/tenant/%6Cist"],
    ["GET", "/tenant/"],
    ["GET", "/tenant"],
    ["GET", `${SHARED_ROUTE}`],
    ["POST", "/tenant/purge"],
    ["POST", "/tenant/constructor"],
  ])("%s %s is nowhere", async (method, path) => {
    seen.length = 0;
    const { status } = await world.at("platform").send(path, { method });
    expect(status).toBe(404);
    expect(seen.filter((one) => one.includes("before"))).toEqual([]);
  });

  it("is not what openAPI describes", async () => {
    const { data } = await world.at("platform").get<{ paths: object }>("/open-api/generate-schema");
    const paths = Object.keys(data.paths).filter((path) => path.startsWith("/tenant/"));
    expect(paths).toContain("/tenant/create");
    expect(paths.filter((path) => path.includes("*"))).toEqual([]);
  });
});

it("with skipTrailingSlashes, a slash at the end is none", async () => {
  const world = await createWorld({ auth: { advanced: { skipTrailingSlashes: true } } });
  expect((await (await world.operator()).get("/tenant/list/")).status).toBe(200);
});

describe("an application's own endpoint", () => {
  it.each([
    ["/tenant/create", "/tenant/create", {}],
    ["/tenant/info", "/tenant/info", {}],
    ["/tenant/:name", "/tenant/info", { name: "info" }],
    ["/tenant/invoice/:number", "/tenant/invoice/7", { number: "7" }],
    ["/tenant/**:rest", "/tenant/some/thing", { rest: "some/thing" }],
    ["/:anything/info", "/tenant/info", { anything: "tenant" }],
    ["/**:rest", "/tenant/some/thing", { rest: "tenant/some/thing" }],
  ])("at %s is found, and so are ours", async (path, asked, params) => {
    const world = await createWorld({ plugins: [application(path)] });
    const operator = await world.operator();
    expect(await operator.get(asked)).toMatchObject({ status: 200, data: params });
    expect((await operator.get("/tenant/list")).status).toBe(200);
    const name = { name: "Initech", slug: "initech" };
    expect((await operator.post("/tenant/create", name)).status).toBe(200);
  });
});

describe("instances that share the plugin", () => {
  const share = async (ours: BetterAuthPlugin, ...others: BetterAuthPlugin[]) =>
    createInstance({ arrange: (_, rest) => [ours, ...rest, ...others] });

  it("have all endpoints each, by HTTP, in auth.api, and for the isolation kit", async () => {
    const ours = tenantAuth();
    const [first, second] = [await share(ours), await share(ours)];
    for (const { api, auth, createTenant } of [first, second]) {
      await createTenant("acme");
      expect(await api.listTenants()).toHaveLength(1);
      const paths = endpointsOf(await openSubject(auth, "test")).map(({ path }) => path);
      expect(paths).toContain("/tenant/oauth-config/register");
      expect(paths).not.toContain(SHARED_ROUTE);
    }
    for (const instance of [first, second]) {
      const { browser } = await instance.operator();
      expect((await browser.get("/tenant/list")).status).toBe(200);
    }
  });

  it("keep a route for each where one of them needs it, whichever starts last", async () => {
    const ours = tenantAuth();
    const before = await share(ours);
    const crossed = await share(ours, application("/tenant/:name"));
    const after = await share(ours);
    const { data } = await crossed.browser().get("/tenant/info");
    expect(data).toEqual({ name: "info" });
    for (const instance of [before, crossed, after]) {
      const { browser } = await instance.operator();
      expect((await browser.get("/tenant/list")).status).toBe(200);
    }
    expect(routesOf(after.auth.options)).not.toContain(SHARED_ROUTE);
  });
});

it.each([
  ["frozen", Object.freeze],
  ["closed", Object.preventExtensions],
])("a list of endpoints that is %s stays as it is", async (_, close) => {
  const ours = tenantAuth();
  close(ours.endpoints);
  const instance = await createInstance({ arrange: (_, rest) => [ours, ...rest] });
  const { browser } = await instance.operator();
  expect((await browser.get("/tenant/list")).status).toBe(200);
});
