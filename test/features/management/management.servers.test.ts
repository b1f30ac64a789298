import { beforeEach, describe, expect, it } from "vitest";
import {
  getTenantId,
  type TenantAuthOptions,
  type TenantManagementRequest,
} from "../../../src/index";
import type { Browser, RequestOptions } from "../../support/browser";
import { databases } from "../../support/database";
import { fakeNetwork, interceptFetch } from "../../support/providers";
import {
  createWorld,
  outcome,
  type Person,
  shareWorld,
  type World,
  type WorldOptions,
} from "../../support/world";

// A check of a config asks the provider.
beforeEach(() => void interceptFetch({}));

type Action = TenantManagementRequest["action"];

const GOOGLE = { providerId: "google" };
const SECRETS = { clientId: "new-id", clientSecret: "new-secret" };

/** The ten management endpoints, with what works for whoever may. Those without a body are read. */
const BODIES: [action: Action, body?: object][] = [
  ["tenant:create", { name: "Brand new" }],
  ["tenant:get"],
  ["tenant:list"],
  ["tenant:update", { name: "New" }],
  ["tenant:delete", {}],
  ["oauth-config:register", { providerId: "github", ...SECRETS }],
  ["oauth-config:list"],
  ["oauth-config:update", { ...GOOGLE, enabled: false }],
  ["oauth-config:check", GOOGLE],
  ["oauth-config:delete", GOOGLE],
];
const CALLS = BODIES.map(([action, body]) => ({
  action,
  body,
  path: `/tenant/${action.replace(/^tenant:/, "").replace(":", "/")}`,
  target: action === "tenant:get" ? "id" : "tenantId",
  hasTarget: action !== "tenant:create" && action !== "tenant:list",
  /** Whether the target may be named by the header instead. */
  header: action.startsWith("oauth-config"),
}));
type Call = (typeof CALLS)[number];
/** For what one piece of code decides: one that reads, and one that writes. */
const FEW = CALLS.filter(({ action }) => /get|register/.test(action));
const WITH_TARGET = CALLS.filter(({ hasTarget }) => hasTarget);

type Rest = Pick<RequestOptions, "headers" | "query">;

function manage(
  browser: Browser,
  call: Call,
  tenantId?: string,
  { headers = {}, query }: Rest = {},
) {
  const { action, path, body, target, hasTarget } = call;
  const named = hasTarget && tenantId !== undefined ? { [target]: tenantId } : {};
  if (!body) return browser.get(path, { query: { ...named, ...query }, headers });
  const slug = action === "tenant:create" && { slug: crypto.randomUUID() };
  return browser.post(path, { ...body, ...slug, ...named }, { headers, ...(query && { query }) });
}

/** A tenant with a google config: every management call about it can succeed. */
async function createManaged({ api, createTenant }: World) {
  const { id: tenantId } = await createTenant();
  const body = { tenantId, ...GOOGLE, clientId: `client-${tenantId}`, clientSecret: "secret" };
  await api.registerTenantOAuthConfig({ body });
  return tenantId;
}

const UNAUTHORIZED = [401, "UNAUTHORIZED"] as const;
const FORBIDDEN = [403, "TENANT_MANAGEMENT_NOT_ALLOWED"] as const;
type Refusal = readonly [number, string];

/** Some calls, or all ten, are refused in this way, and nothing has changed. */
async function expectRefused(
  world: World,
  browser: Browser,
  target: string,
  refusal: Refusal,
  calls: Call[] = FEW,
) {
  const sent = fakeNetwork();
  await world.unchanged(async () => {
    for (const call of calls) {
      const answer = await manage(browser, call, target);
      expect([call.action, ...outcome(answer)]).toEqual([call.action, ...refusal]);
      expect(Object.keys(answer.data).sort()).toEqual(["code", "message"]);
    }
  });
  expect(sent).toEqual([]);
}

async function expectAllowed(world: World, browser: Browser, calls: Call[] = FEW) {
  for (const call of calls) {
    const { status } = await manage(browser, call, await createManaged(world));
    expect([call.action, status]).toEqual([call.action, 200]);
  }
}

const chosen = ["somebody-else"];
const world = shareWorld({ tenant: { adminUserIds: chosen } });

const somebody = (where: string | null) =>
  world.signUp(where, `${crypto.randomUUID()}@example.com`);

it.each(["shared", "per-tenant"] as const)(
  "with %s cookies, malformed ids are managed by no caller",
  async (sessionCookies) => {
    const one = await createWorld({ tenant: { sessionCookies } });
    for (const target of ["nobody", "\0", "\ud800"]) {
      await expectRefused(one, one.at("platform"), target, UNAUTHORIZED, WITH_TARGET);
    }
  },
);

describe("closed by default", () => {
  const forged = async () => {
    const forger = world.at(null, await world.operator());
    for (const [name, value] of forger.cookies) {
      forger.cookies.set(name, value.replace(/\..*$/, `.${"A".repeat(43)}%3D`));
    }
    return forger;
  };
  const chosenAdmin = async () => {
    const admin = await world.join("acme", "admin");
    chosen.push(admin.id);
    return admin;
  };

  it.each<[string, () => Browser | Promise<Browser>, Refusal, Call[]?]>([
    ["nobody without a session", () => world.at(null), UNAUTHORIZED, CALLS],
    ["nobody who names a tenant", () => world.at("acme"), UNAUTHORIZED],
    ["a forged session cookie", forged, UNAUTHORIZED],
    ["a user of the platform", () => somebody(null), FORBIDDEN],
    ["a tenant's user", () => somebody("acme"), FORBIDDEN, CALLS],
    ["its admin, not even at home", () => world.join("acme", "admin"), FORBIDDEN, CALLS],
    ["its admin who is in adminUserIds", chosenAdmin, FORBIDDEN],
  ])("threat: %s", async (_, create, refusal, calls) => {
    const caller = await create();
    await expectRefused(world, caller, world.ids.acme, refusal, calls);
    const elsewhere = caller.fork(world.naming("globex"));
    for (const browser of [caller.fork({}), elsewhere]) {
      await expectRefused(world, browser, world.ids.acme, refusal);
    }
    // Nothing is told about tenants, not even which exist.
    await expectRefused(world, caller, "no-such-tenant", refusal, calls);
    for (const query of ["slug=acme", "slug=nobody", ""]) {
      expect(outcome(await caller.get(`/tenant/get?${query}`))).toEqual(refusal);
    }
    const taken = await caller.post("/tenant/create", { name: "Name", slug: "acme" });
    expect(outcome(taken)).toEqual(refusal);
  });
});

describe("who may", () => {
  it("a platform user with the admin role, or in adminUserIds, and no other caller", async () => {
    const operator = await world.operator();
    await expectAllowed(world, operator, CALLS);
    const user = await somebody(null);
    await expectRefused(world, user, world.ids.acme, FORBIDDEN);
    chosen.push(user.id);
    await expectAllowed(world, user);
    // A header does not move the caller, and gets in the way of nothing that has a target.
    await expectAllowed(world, operator.fork(world.naming("acme")));
    await expectAllowed(world, operator.fork({ "x-tenant-id": "no-such-tenant" }));
    expect(await world.whoIs(operator)).toMatchObject({ id: operator.id, tenantId: null });
    expect((await operator.get("/admin/list-users")).status).toBe(200);
  });

  it.each<[roles: string[] | undefined, yes: string[], no: string[]]>([
    [undefined, ["admin", "user, admin"], ["user", "administrator", "Admin", "not-admin", "", ","]],
    [
      ["owner", "ops"],
      ["owner", "user,ops,editor"],
      ["admin", "owner ops"],
    ],
    [[], [], ["admin", ""]],
  ])("adminRoles: %j: %j may, %j not", async (adminRoles, yes, no) => {
    const own = await createWorld({ tenant: adminRoles ? { adminRoles } : {} });
    const person = await own.as("jane", null);
    for (const role of [...yes, ...no]) {
      await own.setRole(person.id, role);
      const expected = yes.includes(role) ? [200, undefined] : FORBIDDEN;
      const answer = await person.get("/tenant/list");
      expect([role, ...outcome(answer)]).toEqual([role, ...expected]);
    }
  });

  it.each<[string, Refusal, (world: World, operator: Person) => Promise<unknown>]>([
    ["signed out", UNAUTHORIZED, (_, operator) => operator.post("/sign-out")],
    ["an operator's who is none any more", FORBIDDEN, (own, { id }) => own.setRole(id, "user")],
  ])("not with a session in a cookie cache that is %s", async (_, refusal, end) => {
    const session = { cookieCache: { enabled: true, maxAge: 300 } };
    const own = await createWorld({ auth: { session } });
    const operator = await own.operator();
    // Fills the cache.
    await operator.get("/get-session");
    expect((await operator.get("/tenant/list")).status).toBe(200);
    const thief = own.at(null, operator);
    await end(own, operator);
    await expectRefused(own, thief, own.ids.acme, refusal);
  });
});

it("R7: the target is named by the header for the OAuth configs only", async () => {
  const operator = await world.operator();
  const codes: Record<string, string> = {
    "tenant:get": "TENANT_ID_OR_SLUG_REQUIRED",
    // A tenant's own administrator need not name it.
    "tenant:update": "TENANT_ID_REQUIRED",
  };
  for (const call of WITH_TARGET) {
    const id = await createManaged(world);
    const answer = await manage(operator, call, undefined, { headers: { "x-tenant-id": id } });
    const refused = [400, codes[call.action] ?? "VALIDATION_ERROR"];
    expect([call.action, ...outcome(answer)]).toEqual([
      call.action,
      ...(call.header ? [200, undefined] : refused),
    ]);
    const { name } = await world.api.getTenant({ query: { id } });
    expect(name).toMatch(/^TENANT-/);
  }
});

type CanManage = NonNullable<TenantAuthOptions["canManageTenants"]>;
type Asked = TenantManagementRequest & { scope: string | null };

/** A world whose option notes what it is asked, and where. */
async function createAsking(
  answer: (request: TenantManagementRequest) => unknown,
  more: WorldOptions = {},
) {
  const asked: Asked[] = [];
  const canManageTenants: CanManage = async (_, request) => {
    asked.push({ ...request, scope: getTenantId() });
    // Some tests give answers that the types rule out, as JavaScript can.
    return answer(request) as boolean;
  };
  const own = await createWorld({ ...more, tenant: { canManageTenants, ...more.tenant } });
  return Object.assign(own, { asked });
}

describe("canManageTenants", () => {
  it("hears the action, the target and the session, in the caller's scope; true lets in", async () => {
    const own = await createAsking(() => true);
    const callers: [Browser, Call[]][] = [
      [await own.as("jane", "acme"), CALLS],
      [await own.as("jane", "platform"), FEW],
      [own.at(null), FEW],
    ];
    for (const [browser, calls] of callers) {
      for (const call of calls) {
        const target = await createManaged(own);
        const { status } = await manage(browser, call, target);
        expect([call.action, status]).toEqual([call.action, 200]);
        const [request, ...more] = own.asked.splice(0);
        expect(more).toEqual([]);
        const place = browser === callers[0]?.[0] ? own.ids.acme : null;
        expect(request).toMatchObject({
          action: call.action,
          tenantId: call.hasTarget ? target : undefined,
          scope: place,
          session: "id" in browser ? { user: { id: browser.id, tenantId: place } } : null,
        });
      }
    }
    await own.at(null).get("/tenant/get", { query: { slug: "acme" } });
    await own.at(null).get("/tenant/get", { query: { slug: "nobody" } });
    expect(own.asked.map(({ tenantId }) => tenantId)).toEqual([own.ids.acme, undefined]);
  });

  it("keeps everybody out by any other answer, and where it throws", async () => {
    let answer: unknown;
    const adminUserIds: string[] = [];
    const own = await createAsking(
      () => {
        if (answer instanceof Error) throw answer;
        return answer;
      },
      { tenant: { adminUserIds } },
    );
    const operator = await own.operator();
    adminUserIds.push(operator.id);
    await expectRefused(own, operator, own.ids.acme, FORBIDDEN, CALLS);
    for (answer of [false, null, 0, 1, "true", { allowed: true }, []]) {
      expect(outcome(await operator.get("/tenant/list"))).toEqual(FORBIDDEN);
    }
    expect(outcome(await own.at(null).get("/tenant/list"))).toEqual(FORBIDDEN);
    answer = new Error("the policy server is down");
    const { status, data } = await operator.get("/tenant/list");
    expect([status, JSON.stringify(data).includes("policy server")]).toEqual([500, false]);
  });

  it("R7: the manager of a tenant works in its own scope, whatever the target is", async () => {
    const own = await createAsking(() => true);
    const { acme, globex } = await own.janes();
    const { status } = await acme.post("/tenant/delete", { tenantId: own.ids.globex });
    expect(status).toBe(200);
    expect(await own.rows("user", "id = ?", [globex.id])).toBe(0);
    expect(await own.whoIs(acme)).toMatchObject({ tenantId: own.ids.acme });
  });
});

it("R1: threat: checked one id, acted on another: four names, and the one that is asked about is the one acted on", async () => {
  let resolved: string | undefined;
  const resolveTenantId = () => resolved;
  const own = await createAsking(() => true, { tenant: { resolveTenantId } });
  const ids: string[] = [];
  for (let count = 0; count < 4; count++) ids.push((await own.createTenant()).id);
  const [body = "", query = "", header = "", host = ""] = ids;
  const browser = await own.as("jane", "platform");
  const names = { query: { tenantId: query }, headers: { "x-tenant-id": header } };
  const register = CALLS.find(({ action }) => action === "oauth-config:register") as Call;
  const touched: string[] = [];
  const expectActedOn = async (id: string, target: string | undefined, rest: Rest) => {
    expect((await manage(browser, register, target, rest)).status).toBe(200);
    expect(own.asked.splice(0).map(({ tenantId }) => tenantId)).toEqual([id]);
    touched.push(id);
    const configs = (await own.everything()).tenantOauthConfig as { tenantId: string }[];
    expect(configs.map(({ tenantId }) => tenantId).sort()).toEqual(touched.toSorted());
  };
  await expectActedOn(header, undefined, { headers: names.headers });
  await expectActedOn(query, undefined, names);
  await expectActedOn(body, body, names);
  resolved = host;
  await expectActedOn(host, undefined, { headers: names.headers });
  // R7: the resolver names one tenant, the body or the query another.
  await own.unchanged(async () => {
    // So are calls that are about more than one tenant.
    const above = ["tenant:create", "tenant:list"];
    for (const call of CALLS.filter(({ header, action }) => header || above.includes(action))) {
      const target = call.header ? body : undefined;
      const refused = await manage(browser, call, target, { headers: names.headers });
      expect(outcome(refused)).toEqual([409, "TENANT_SCOPE_CONFLICT"]);
    }
  });
});

// MariaDB compares text without regard to case and to spaces at the end.
it.each(databases)(
  "an id in the other case, with a space or an accent is another; on %s",
  async (database) => {
    // A rule that names one tenant: a disguise of its id must not get around it.
    const own = await createAsking(({ tenantId }) => tenantId !== own.ids.acme, { database });
    const { acme } = own.ids;
    const other = (letter: string) =>
      letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
    const accented = acme.replace(/[a-z]/i, (letter) => `${letter}\u0301`);
    for (const disguised of [acme.replace(/[a-z]/i, other), `${acme} `, accented]) {
      expect(disguised).not.toBe(acme);
      await own.unchanged(async () => {
        for (const call of WITH_TARGET) {
          const { status } = await manage(own.at(null), call, disguised);
          expect([call.action, [403, 404].includes(status)]).toEqual([call.action, true]);
        }
      });
    }
  },
);

function serverCalls({ api }: World, tenantId: string, headers?: Headers) {
  const google = { tenantId, ...GOOGLE };
  return [
    () => api.listTenants({ headers }),
    () => api.getTenant({ query: { id: tenantId }, headers }),
    () => api.createTenant({ body: { name: "New", slug: "brand-new" }, headers }),
    () => api.updateTenant({ body: { tenantId, name: "Changed" }, headers }),
    () => api.registerTenantOAuthConfig({ body: { ...google, ...SECRETS }, headers }),
    () => api.listTenantOAuthConfigs({ query: { tenantId }, headers }),
    () => api.updateTenantOAuthConfig({ body: { ...google, enabled: false }, headers }),
    () => api.checkTenantOAuthConfig({ body: google, headers }),
    () => api.deleteTenantOAuthConfig({ body: google, headers }),
    () => api.deleteTenant({ body: { tenantId }, headers }),
  ];
}

it("calls of the server API are trusted without request and headers, and not asked about; with either, the caller is", async () => {
  const own = await createAsking(() => false);
  for (const call of serverCalls(own, own.ids.acme)) await call();
  expect(own.asked).toEqual([]);
  for (const call of serverCalls(own, own.ids.globex, new Headers())) {
    await expect(call()).rejects.toMatchObject({ statusCode: 403 });
  }
  const request = new Request("http://localhost:3000/api/auth/tenant/create", { method: "POST" });
  const body = { name: "New", slug: "not-made" };
  const answer = await own.api.createTenant({ body, request, asResponse: true });
  expect(answer.status).toBe(403);
  const actions = CALLS.map(({ action }) => action);
  expect(new Set(own.asked.map(({ action }) => action))).toEqual(new Set(actions));
  const other = await createWorld();
  const headers = new Headers({ cookie: (await other.operator()).cookieHeader() });
  for (const call of serverCalls(other, other.ids.acme, headers)) await call();
  for (const { api } of [own, other]) {
    const slugs = (await api.listTenants()).map(({ slug }) => slug);
    expect(slugs).toEqual(["globex", "brand-new"]);
  }
});
