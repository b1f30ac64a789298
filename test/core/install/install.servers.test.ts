import { type AuthContext, type BetterAuthPlugin, betterAuth } from "better-auth";
import { createAdapterFactory } from "better-auth/adapters";
import { createAuthMiddleware } from "better-auth/api";
import { nextCookies } from "better-auth/next-js";
import {
  anonymous,
  bearer,
  emailOTP,
  genericOAuth,
  haveIBeenPwned,
  jwt,
  lastLoginMethod,
  multiSession,
  openAPI,
  phoneNumber,
  twoFactor,
  username,
} from "better-auth/plugins";
import { sveltekitCookies } from "better-auth/svelte-kit";
import { tanstackStartCookies } from "better-auth/tanstack-start";
import { tanstackStartCookies as tanstackSolidCookies } from "better-auth/tanstack-start/solid";
import { describe, expect, it } from "vitest";
import { getTenantId, runInTenant, tenantAuth } from "../../../src/index";
import { createInstance, type InstanceOptions, PASSWORD } from "../../support/instance";
import { combine, ORDERS, SHUFFLED, sample } from "../../support/matrix";
import { CACHES, mapStorage, SORTS, type Store } from "../../support/stores";
import {
  createWorld,
  EMAIL,
  expectSessionsApart,
  PLACES,
  queryOf,
  type World,
} from "../../support/world";

type Arrange = NonNullable<InstanceOptions["arrange"]>;

/** The admin plugin is part of every instance; it must not be what stands before ours. */
const BEFORE_OURS: Arrange = (ours, [admin, ...others]) => [
  ...others,
  ours,
  ...(admin ? [admin] : []),
];
const SIDES: [name: string, arrange: Arrange][] = [
  ["before ours", BEFORE_OURS],
  ["behind ours", (ours, others) => [ours, ...others]],
];

/** Better-auth's plugins that do something at start, and some that hook into everything. */
const manyPlugins = (): BetterAuthPlugin[] => [
  username(),
  phoneNumber({ sendOTP: () => {} }),
  lastLoginMethod({ storeInDatabase: true }),
  emailOTP({ sendVerificationOTP: async () => {} }),
  haveIBeenPwned({ enabled: false }),
  genericOAuth({ config: [] }),
  jwt(),
  openAPI(),
  anonymous(),
  bearer(),
  multiSession(),
  twoFactor(),
];

/** A neighbour of the official plugins that an application wrote: its `init` brings options. */
const bringing = (options: object): BetterAuthPlugin => ({
  id: "brings-options",
  init: () => ({ options }),
});

/** One address in both tenants and on the platform is three people, who sign up and in. */
async function expectSignInWorks(world: World) {
  const people = await world.janes();
  for (const place of PLACES) {
    const { status, person } = await world.signIn(place);
    expect(status, place).toBe(200);
    const expected = { id: people[place].id, email: EMAIL, tenantId: world.ids[place] };
    expect(await world.whoIs(person), place).toEqual(expected);
  }
}

/** R6: a reset link of Acme, opened where nothing names a tenant, changes the password there alone. */
async function expectResetLinksLeadHome(world: World) {
  const { email } = await world.as("reset", "acme");
  await world.at("acme").post("/request-password-reset", { email, redirectTo: "/new-password" });
  const stranger = world.at("platform");
  const { location } = await stranger.get(world.lastMail("reset").url);
  expect(location).toMatch(/\/new-password\?token=/);
  const { token } = queryOf(location);
  const reset = await stranger.post("/reset-password", { token, newPassword: "a new password" });
  expect(reset.status).toBe(200);
  expect((await world.signIn("acme", email, "a new password")).status).toBe(200);
  expect((await world.signIn("acme", email)).status).toBe(401);
}

/** R6: a verification link of Acme verifies the address at Acme alone. */
async function expectVerificationLinksLeadHome(world: World) {
  await world.janes();
  await world.at("acme").post("/send-verification-email", { email: EMAIL });
  await world.at("platform").get(world.lastMail("verification").url);
  for (const place of PLACES) {
    const verified = (await world.rowsIn(place, "user")).filter((row) => row.emailVerified);
    expect(verified.map(({ email }) => email)).toEqual(place === "acme" ? [EMAIL] : []);
  }
}

/** Notes where a hook runs. */
const noting = (seen: unknown[], side: string) =>
  createAuthMiddleware(async () => void seen.push([side, getTenantId()]));

const MIXED = combine([...ORDERS, ...SHUFFLED], SORTS).map(([[name, arrange], store]) => ({
  name,
  arrange,
  store,
}));

it.each(sample(MIXED, 5))(
  "R11: many plugins, ours $name, sessions in $store.name: sign-in, sessions and links work",
  async ({ arrange, store }) => {
    const world = await createWorld({ arrange, store, plugins: manyPlugins() });
    await expectSignInWorks(world);
    await expectSessionsApart(world);
    await expectResetLinksLeadHome(world);
    await expectVerificationLinksLeadHome(world);
  },
);

it("R5, R11: cached cookies that jwt signs stay apart, ours last", async () => {
  const plugins = [jwt({ sessionCookieCache: true })];
  const arrange: Arrange = (ours, others) => [...others, ours];
  await expectSessionsApart(await createWorld({ plugins, arrange, store: CACHES[1] as Store }));
});

function assign(ctx: AuthContext, options: AuthContext["options"]): void {
  ctx.options = options;
}

/** What an `init` may do with the options of the context that it is given. */
const HANDED_BACK: [what: string, init: (ctx: AuthContext) => unknown][] = [
  ["its context", (context) => ({ context })],
  ["a copy of its context", (ctx) => ({ context: { ...ctx, mine: 1 } })],
  ["options in a context", ({ options }) => ({ context: { options: { ...options } } })],
  ["nothing, and assigns options", (ctx) => assign(ctx, { ...ctx.options })],
  // better-auth puts the plugins in them behind those that it has.
  ["all options", ({ options }) => ({ options: { ...options, trustedOrigins: ["https://a.b"] } })],
];

describe.each(SIDES)("R11: a plugin %s whose init brings", (_, arrange) => {
  const tenant = { keepEmailGloballyUnique: true };

  it("a session.cookieCache: sessions stay apart", async () => {
    const plugins = [bringing({ session: CACHES[0]?.session ?? {} })];
    await expectSessionsApart(await createWorld({ arrange, tenant, plugins }));
  });

  it.each(HANDED_BACK)("%s: sessions stay apart", async (_, init) => {
    const plugins = ["one", "two"].map((id) => ({ id, init }) as BetterAuthPlugin);
    await expectSessionsApart(await createWorld({ arrange, plugins, store: CACHES[0] as Store }));
  });

  it("a secondaryStorage: sessions and one-time codes stay apart", async () => {
    const { storage: secondaryStorage, entries } = mapStorage();
    const plugins = [bringing({ secondaryStorage })];
    const world = await createWorld({ arrange, tenant, plugins });
    await expectSessionsApart(world);
    entries.clear();
    const { email } = await world.as("only-acme", "acme");
    await world.at("acme").post("/request-password-reset", { email });
    expect(entries.size).toBe(1);
    const body = { token: world.lastMail("reset").token, newPassword: "a new password" };
    expect((await world.at("globex").post("/reset-password", body)).status).toBe(400);
    expect((await world.at("acme").post("/reset-password", body)).status).toBe(200);
  });

  it("nothing, and holds on to the internal adapter: R8 and R14 hold for the sessions it makes", async () => {
    let kept: AuthContext["internalAdapter"] | undefined;
    const init = (ctx: AuthContext) => {
      kept = ctx.internalAdapter;
    };
    const { janes, change, ids } = await createWorld({
      arrange,
      plugins: [{ id: "holds-on", init }],
      store: { name: "", storage: () => mapStorage().storage },
    });
    const { acme, globex } = await janes();
    const make = (id: string) => runInTenant(ids.acme, async () => kept?.createSession(id));
    const refused = (code: string) => ({ body: { code } });
    await expect(make(globex.id)).rejects.toMatchObject(refused("USER_NOT_IN_TENANT"));
    expect(await make(acme.id)).toMatchObject({ tenantId: ids.acme });
    await change("acme", { policy: { methods: ["password"] } });
    await expect(make(acme.id)).rejects.toMatchObject(refused("SIGN_IN_METHOD_NOT_ALLOWED"));
  });

  it("senders, hooks and databaseHooks: links lead home, and hooks run inside the tenant", async () => {
    const seen: unknown[] = [];
    const after = async () => void seen.push(["row", getTenantId()]);
    const handler = noting(seen, "plugin");
    const world = await createWorld({
      arrange,
      auth: {
        emailAndPassword: { enabled: true, sendResetPassword: undefined },
        emailVerification: { sendVerificationEmail: undefined },
      },
      plugins: (send) => [
        bringing({
          emailAndPassword: { sendResetPassword: send("reset") },
          emailVerification: { sendVerificationEmail: send("verification") },
          user: { deleteUser: { sendDeleteAccountVerification: send("deletion") } },
          hooks: { before: noting(seen, "before"), after: noting(seen, "after") },
          databaseHooks: { user: { create: { after } }, session: { create: { after } } },
          plugins: [{ id: "late", hooks: { before: [{ matcher: () => true, handler }] } }],
        }),
      ],
    });
    await expectResetLinksLeadHome(world);
    await expectVerificationLinksLeadHome(world);
    seen.length = 0;
    const person = await world.signUp("acme", "leaving@example.com");
    const sides = ["plugin", "before", "row", "after"].map((side) => `${side},${world.ids.acme}`);
    expect(new Set(seen.map(String))).toEqual(new Set(sides));
    expect((await person.post("/delete-user")).status).toBe(200);
    const { url } = world.lastMail("deletion");
    expect(url).not.toMatch(/token=[A-Za-z0-9]{32}(&|$)/);
    // The same person, in a window that says nothing.
    await world.at("platform", person).get(url);
    expect((await world.rowsIn("acme", "user")).map(({ id }) => id)).not.toContain(person.id);
  });
});

describe("R3: a shared model whose name is the plural of better-auth's", () => {
  const fields = { name: { type: "string", required: true } } as const;
  const crm = (model: string) => ({
    id: "crm",
    schema: { [model]: { modelName: "crm_rows", fields } },
  });

  it.each(["users", "sessions", "accounts"])("is its own: %s", async (model) => {
    const tenant = { sharedModels: [model] };
    const { context, ids } = await createWorld({ plugins: [crm(model)], tenant });
    const create = () => context.adapter.create({ model, data: { name: "x" } });
    const find = () => context.adapter.findMany({ model });
    await runInTenant(ids.acme, create);
    expect(await runInTenant(ids.globex, find)).toMatchObject([{ name: "x" }]);
  });

  it("is better-auth's where its adapter reads plurals, and isolated", async () => {
    const asked: unknown[] = [];
    const findMany = async (call: unknown) => {
      asked.push(call);
      return [];
    };
    const database = createAdapterFactory({
      config: { adapterId: "plural", usePlural: true },
      adapter: () => ({ findMany }) as never,
    });
    const plugins = [tenantAuth({ sharedModels: ["users"] }), crm("users")];
    const { adapter } = await betterAuth({ database, plugins, secret: "x".repeat(32) }).$context;
    await runInTenant("acme", () => adapter.findMany({ model: "users" }));
    const where = [expect.objectContaining({ field: "tenantId", value: "acme" })];
    expect(asked).toMatchObject([{ model: "users", where }]);
  });
});

/** What keeps us from being told of the last options. */
const TAKEN_AWAY: [what: string, said: RegExp, init: (ctx: AuthContext) => unknown][] = [
  ["freezes its context", /read only/, (ctx) => void Object.freeze(ctx)],
  ["hides plugins", /not started/, (ctx) => assign(ctx, { ...ctx.options, plugins: [] })],
];

it.each(TAKEN_AWAY)(
  "R11: where a plugin %s, every request is refused",
  async (what, said, init) => {
    const [, arrange] = SIDES[what === "hides plugins" ? 0 : 1] as (typeof SIDES)[number];
    const plugins = [{ id: "other", init: init as BetterAuthPlugin["init"] } as BetterAuthPlugin];
    const start = () => createInstance({ arrange, plugins });
    const headers = new Headers();
    await expect(start().then(({ api }) => api.getSession({ headers }))).rejects.toThrow(said);
    const visit = start().then(({ browser }) => browser().get("/get-session"));
    await expect(visit).rejects.toThrow(said);
  },
);

/** The names in an answer, in their order, objects inside included. */
const keys = (value: unknown): unknown =>
  typeof value === "object" && value !== null
    ? Object.entries(value).map(([key, inner]) => [key, keys(inner)])
    : "";

const CASES = combine([...ORDERS, ...SHUFFLED], [true, false]);
it.each(sample(CASES, 2).map(([[name, arrange], unique]) => ({ name, arrange, unique })))(
  "threat: accounts can be probed by the order of keys: tenants answer alike, ours $name (e-mails globally unique: $unique)",
  async ({ arrange, unique }) => {
    const { at, ids } = await createWorld({
      arrange,
      auth: { emailAndPassword: { enabled: true, requireEmailVerification: true } },
      tenant: { keepEmailGloballyUnique: unique },
    });
    for (const [path, naming, place] of [
      ["/tenant/sign-up/email", { tenantId: ids.acme }, "platform"],
      ["/sign-up/email", {}, "globex"],
      ["/sign-up/email", {}, "platform"],
    ] as const) {
      const email = `probed-${place}${path.length}@example.com`;
      const body = { name: "Somebody", email, password: PASSWORD, ...naming };
      const first = await at(place).post(path, body);
      const second = await at(place).post(path, body);
      expect([first.status, second.status], path).toEqual([200, 200]);
      expect(keys(second.data), path).toEqual(keys(first.data));
    }
  },
);

const SESSION_COOKIE = "better-auth.session_token";

/** SvelteKit, as far as it is handed cookies: their names, deleted ones on their own. */
function createSvelteKit() {
  const handed = { set: [] as string[], deleted: [] as string[] };
  const set = (name: string, value: string, { maxAge }: { maxAge?: number }) =>
    void (value === "" || maxAge === 0 ? handed.deleted : handed.set).push(name);
  type Event = Parameters<typeof sveltekitCookies>[0];
  const plugin = sveltekitCookies((() => ({ cookies: { set } })) as unknown as Event);
  /** The cookies that were handed over meanwhile. */
  const watch = async (run: () => Promise<unknown>) => {
    Object.assign(handed, { set: [], deleted: [] });
    await run();
    return { ...handed };
  };
  return { plugin, watch };
}

it.each<BetterAuthPlugin>([
  nextCookies(),
  createSvelteKit().plugin,
  tanstackStartCookies(),
  tanstackSolidCookies(),
  { id: "anybody-cookies" },
])("R5, R11: $id stands behind our last word, wherever it was put", async (plugin) => {
  const { context, auth } = await createWorld({ plugins: [plugin], arrange: BEFORE_OURS });
  expect(context.options.plugins?.at(-1)?.id).toBe(plugin.id);
  // Migrations and the CLI read what the application wrote.
  const ids = auth.options.plugins?.map(({ id }) => id);
  expect(ids).toEqual([plugin.id, "tenant-auth", "admin"]);
});

it.each(SORTS.slice(0, 3))(
  "R5: sveltekitCookies(), sessions in $name: server actions set the cookie, and delete it at home only",
  async (store) => {
    const { plugin, watch } = createSvelteKit();
    const plugins = [multiSession(), plugin];
    const world = await createWorld({ store, plugins, arrange: BEFORE_OURS });
    const { api, ids, naming } = world;
    const jane = await world.as("jane", "acme");
    const body = { email: EMAIL, password: PASSWORD };
    const atAcme = new Headers(naming("acme"));
    const signIn = await watch(() => api.signInEmail({ body, headers: atAcme }));
    expect(signIn.set).toContain(SESSION_COOKIE);
    // At our own endpoint, too.
    const ours = { body: { ...body, tenantId: ids.acme }, headers: new Headers() };
    expect((await watch(() => api.signInEmailTenant(ours))).set).toContain(SESSION_COOKIE);

    const cookie = jane.cookieHeader();
    const there = new Headers({ cookie, ...naming("globex") });
    expect((await watch(() => api.getSession({ headers: there }))).deleted).toEqual([]);
    const headers = new Headers({ cookie, ...naming("acme") });
    await api.revokeSessions({ headers });
    const query = { disableCookieCache: true };
    const { deleted } = await watch(() => api.getSession({ headers, query }));
    expect(deleted).toContain(SESSION_COOKIE);
    expect(world.logs.filter((line) => line.includes("should be placed last"))).toEqual([]);
  },
);
