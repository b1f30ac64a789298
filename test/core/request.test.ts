import { getRequestStateAsyncLocalStorage } from "@better-auth/core/context";
import type { BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { describe, expect, it, vi } from "vitest";
import { getTenantId, runInTenant } from "../../src/index";
import { newcomer as person } from "../support/instance";
import { createWorld, EMAIL, PLACES, type Place, shareWorld, type World } from "../support/world";

/** Options with a hook in every place, each of which writes down where it runs. */
function createWitness() {
  const seen: [where: string, tenantId: string | null][] = [];
  const note = (where: string) => async () => void seen.push([where, getTenantId()]);
  const atPath = (side: string) =>
    createAuthMiddleware(async ({ path }) => note(`${side} ${path}`)());
  const rows = (model: string) => ({
    create: { before: note(`before ${model}`), after: note(`after ${model}`) },
    update: { before: note(`before update of ${model}`), after: note(`after update of ${model}`) },
  });
  const models = ["user", "session", "account", "verification"];
  const auth: Partial<BetterAuthOptions> = {
    hooks: { before: atPath("before"), after: atPath("after") },
    databaseHooks: Object.fromEntries(models.map((model) => [model, rows(model)])),
  };
  return { seen, auth };
}

describe("getTenantId() in hooks and senders", () => {
  const { seen, auth } = createWitness();
  const world = shareWorld({ auth });
  const SIGN_UP = ["before", "after"]
    .flatMap((side) =>
      ["/sign-up/email", "user", "account", "session"].map((it) => `${side} ${it}`),
    )
    .sort();

  it.each([
    ["acme", "/sign-up/email"],
    ["platform", "/sign-up/email"],
    ["acme", "/tenant/sign-up/email"],
  ] as const)("knows where it is in all hooks, on %s at %s", async (place, path) => {
    seen.length = 0;
    expect((await world.at(place).post(path, person())).status).toBe(200);
    expect(new Set(seen.map(([, tenant]) => tenant))).toEqual(new Set([world.ids[place]]));
    // Behind an endpoint of ours, those of better-auth's, once.
    expect(seen.map(([where]) => where).sort()).toEqual(SIGN_UP);
  });

  it("R4: knows the tenant of the session from the first hook on", async () => {
    const jane = await world.as("jane", "acme");
    seen.length = 0;
    await world.at("platform", jane).post("/update-user", { name: "Changed" });
    expect(seen).toEqual([
      ["before /update-user", world.ids.acme],
      ["before update of user", world.ids.acme],
      ["after update of user", world.ids.acme],
      ["after /update-user", world.ids.acme],
    ]);
  });

  it("is null outside of requests, and is null again after one", async () => {
    const { api, ids } = world;
    const users = (await world.rowsIn("acme", "user")).length;
    expect(getTenantId()).toBeNull();
    await api.signUpEmailTenant({ body: { ...person(), tenantId: ids.acme } });
    const call = { body: person(), headers: new Headers({ "x-tenant-id": ids.acme }) };
    await api.signUpEmail(call);
    expect(getTenantId()).toBeNull();
    // Our own runs in a request of its own, wherever it is called.
    await runInTenant(ids.globex, () => api.signUpEmailTenant({ ...call, body: person() }));
    expect(await world.rowsIn("acme", "user")).toHaveLength(users + 3);
  });
});

describe.each(["before", "after"] as const)("auth.api.* inside hooks.%s", (side) => {
  type Nested = (world: World) => Promise<unknown>;

  /** A world whose hook runs a function around the sign-up of `outer@example.com`, and a change of a name. */
  async function createNesting(run: Nested) {
    const errors: unknown[] = [];
    const hook = createAuthMiddleware(async ({ path, body }) => {
      const isOuter = path === "/sign-up/email" && body?.email === "outer@example.com";
      if (!isOuter && path !== "/update-user") return;
      await run(world).catch((error: unknown) => void errors.push(error));
    });
    const world: World = await createWorld({ auth: { hooks: { [side]: hook } } });
    return {
      world,
      errors,
      signUpOuter: async (place: Place) => {
        const { data } = await world.at(place).post("/sign-up/email", person("outer@example.com"));
        expect(data.user).toMatchObject({ tenantId: world.ids[place] });
      },
      emailsIn: async (place: Place) =>
        (await world.rowsIn(place, "user")).map(({ email }) => email).sort(),
    };
  }

  const inner = { body: person("inner@example.com") };
  const naming = (id: string) => ({ headers: new Headers({ "x-tenant-id": id }) });
  const BOTH = ["inner@example.com", "outer@example.com"];
  const OUTER = ["outer@example.com"];

  it("inherits the tenant of its request", async () => {
    const { errors, signUpOuter, emailsIn } = await createNesting(({ api }) =>
      api.signUpEmail(inner),
    );
    for (const place of PLACES) {
      await signUpOuter(place);
      expect(await emailsIn(place)).toEqual(BOTH);
    }
    expect(errors).toEqual([]);
  });

  it("R4: inherits the tenant of the session that its request goes by", async () => {
    const { world, errors, emailsIn } = await createNesting(async ({ api, ids }) => {
      // It may say so.
      await api.getSession(naming(ids.acme));
      await api.signUpEmail(inner);
    });
    const jane = await world.as("jane", "acme");
    await world.at("platform", jane).post("/update-user", { name: "New" });
    expect(errors).toEqual([]);
    expect(await emailsIn("acme")).toEqual(["inner@example.com", EMAIL]);
    expect(await emailsIn("platform")).toEqual([]);
  });

  it.each<[string, Nested]>([
    ["signUpEmail", ({ api, ids }) => api.signUpEmail({ ...inner, ...naming(ids.globex) })],
    ["listSessions", ({ api }) => api.listSessions(naming("no-such-tenant"))],
  ])("is refused when it names another tenant: %s", async (_, run) => {
    const { world, errors, signUpOuter, emailsIn } = await createNesting(run);
    await signUpOuter("acme");
    expect([await emailsIn("acme"), await emailsIn("globex")]).toEqual([OUTER, []]);
    // Also where only the session says which tenant it is.
    const jane = world.at("platform", await world.as("jane", "acme"));
    expect((await jane.post("/update-user", { name: "New" })).status).toBe(200);
    const conflict = { statusCode: 409, body: { code: "TENANT_SCOPE_CONFLICT" } };
    expect(errors).toMatchObject([conflict, conflict]);
  });

  it.each<[string, Place, Nested]>([
    ["a getSession", "platform", ({ api, ids }) => api.getSession(naming(ids.acme))],
    [
      "a /tenant/* call",
      "globex",
      ({ api, ids }) => api.signUpEmailTenant({ body: { ...inner.body, tenantId: ids.acme } }),
    ],
    [
      "a /tenant/* call with a header",
      "globex",
      ({ api, ids }) => api.signUpEmailTenant({ ...inner, ...naming(ids.acme) }),
    ],
  ])("%s that names Acme does not move a request of %s", async (_, place, run) => {
    const { signUpOuter, emailsIn } = await createNesting(run);
    await signUpOuter(place);
    expect(await emailsIn(place)).toEqual(OUTER);
    expect(await emailsIn("acme")).toEqual(place === "globex" ? ["inner@example.com"] : []);
  });
});

// Calls of the server's own code side by side: test/flows/server-code.test.ts.
it("20 requests for each of two tenants and the platform run at once, and stay apart", async () => {
  const TIMES = 20;
  const { seen, auth } = createWitness();
  const world = await createWorld({ auth });
  const all = Array.from({ length: TIMES }, (_, n) =>
    PLACES.map((place) =>
      world.at(place).post("/sign-up/email", person(`${place}-${n}@example.com`)),
    ),
  );
  for (const { status } of await Promise.all(all.flat())) expect(status).toBe(200);
  for (const place of PLACES) {
    const users = await world.rowsIn(place, "user");
    const own = users.filter(({ email }) => String(email).startsWith(`${place}-`));
    const here = seen.filter(([at, id]) => at === "after user" && id === world.ids[place]);
    expect([users.length, own.length, here.length]).toEqual([TIMES, TIMES, TIMES]);
  }
  for (const table of ["session", "account"]) {
    const wrong = `"tenantId" <> (select u."tenantId" from "user" u where u.id = "userId")`;
    expect([await world.rows(table, wrong), await world.rows(table)]).toEqual([0, 3 * TIMES]);
  }
});

it("a second version of the package in the process does not start: they would not share a tenant", async () => {
  const shared = Reflect.get(globalThis, Symbol.for("better-auth-tenant"));
  const { version } = shared;
  shared.version = version + 1;
  const starting = expect(createWorld()).rejects.toThrow("two versions of better-auth-tenant");
  await starting.finally(() => Object.assign(shared, { version }));
});

it("where a request could see the tenant of another it does not start", async () => {
  const storage = await getRequestStateAsyncLocalStorage();
  let latest: ReturnType<typeof storage.getStore>;
  const spies = [
    vi.spyOn(storage, "getStore").mockImplementation(() => latest),
    vi.spyOn(storage, "run").mockImplementation((store, run) => {
      latest = store;
      return run();
    }),
  ];
  const starting = expect(createWorld()).rejects.toThrow("requires AsyncLocalStorage");
  await starting.finally(() => spies.map((spy) => spy.mockRestore()));
});
