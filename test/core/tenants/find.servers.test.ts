import { runWithTransaction } from "@better-auth/core/context";
import { createAuthMiddleware } from "better-auth/api";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { bySlug, runInTenant } from "../../../src/index";
import { createDatabase, databases } from "../../support/database";
import {
  createInstance,
  type Instance,
  type InstanceOptions,
  PASSWORD,
} from "../../support/instance";
import { createWorld, EMAIL, gate, outcome } from "../../support/world";

const later = (ms: number) => vi.setSystemTime(Date.now() + ms);
const person = { name: "Somebody", email: EMAIL, password: PASSWORD };

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: new Date() }));
afterEach(() => void vi.useRealTimers());

/** A world is one, too. */
type Server = Pick<Instance, "api" | "browser" | "context" | "database">;

/** A world, and another server on its database. */
async function createServers(options: InstanceOptions = {}) {
  const here = await createWorld(options as object);
  const { database } = here;
  const elsewhere = await createInstance({ ...options, database, migrate: false });
  return { here, elsewhere, tenantId: here.ids.acme };
}

const lookUps = ({ database: { statements } }: Server) =>
  statements.splice(0).filter((sql) => /from\s+"tenant"/i.test(sql)).length;

/** The next look at a tenant has its answer, and waits with it. */
function slowLook({ context: { adapter } }: Server, meanwhile: () => Promise<unknown>) {
  const { findOne } = adapter;
  adapter.findOne = async (input) => {
    const row = await findOne<never>(input);
    if (input.model !== "tenant") return row;
    adapter.findOne = findOne;
    await meanwhile();
    return row;
  };
}

describe("a tenant that was there a moment ago", () => {
  async function createSeen() {
    const servers = await createServers();
    const post = (server: Server, path: string) =>
      server.browser(servers.here.naming("acme")).post(path, person);
    const signIn = async (server: Server) => (await post(server, "/sign-in/email")).code;
    const signUp = (server: Server) => post(server, "/sign-up/email");
    for (const server of [servers.here, servers.elsewhere]) await signIn(server);
    return { ...servers, signIn, signUp };
  }

  it("is not looked up again, until it is ten seconds later", async () => {
    const { here, signIn } = await createSeen();
    lookUps(here);
    await signIn(here);
    expect(lookUps(here)).toBe(0);
    later(10_001);
    await signIn(here);
    await signIn(here);
    expect(lookUps(here)).toBe(1);
    const stranger = here.browser({ "x-tenant-id": "nobody" });
    expect((await stranger.post("/sign-in/email", person)).code).toBe("TENANT_NOT_FOUND");
  });

  it("stays gone when it was being looked up while it was deleted", async () => {
    const { here, tenantId, signIn } = await createSeen();
    later(10_001);
    slowLook(here, () => here.api.deleteTenant({ body: { tenantId } }));
    await signIn(here);
    expect(await signIn(here)).toBe("TENANT_NOT_FOUND");
  });

  it("has no users where it was deleted elsewhere, and what is made there is purged", async () => {
    const { here, elsewhere, tenantId, signIn, signUp } = await createSeen();
    const jane = await here.as("jane", "acme");
    await elsewhere.api.deleteTenant({ body: { tenantId } });
    expect(await here.whoIs(jane)).toBeNull();
    expect(await signIn(here)).toBe("INVALID_EMAIL_OR_PASSWORD");
    const late = here.browser(here.naming("acme"));
    expect((await late.post("/sign-up/email", person)).status).toBe(200);
    later(10_001);
    expect(await here.whoIs(late)).toBeNull();
    expect((await signUp(here)).code).toBe("TENANT_NOT_FOUND");
    expect(await signIn(here)).toBe("TENANT_NOT_FOUND");
    expect(await here.rows("user")).toBe(1);
    await here.api.purgeTenants();
    for (const table of ["user", "account", "session"]) expect(await here.rows(table)).toBe(0);
  });

  it("counts with its policy: at once in this process, within ten seconds in another", async () => {
    const { here, elsewhere, signIn, signUp } = await createSeen();
    await signUp(here);
    await here.change("acme", { policy: { signUp: "closed", emailDomains: ["acme.com"] } });
    const signUpCode = async (server: Server) => (await signUp(server)).code;
    expect(await signUpCode(here)).toBe("SIGN_UP_CLOSED");
    expect(await signUpCode(elsewhere)).not.toBe("SIGN_UP_CLOSED");
    expect(await signIn(elsewhere)).toBeUndefined();
    later(10_001);
    expect(await signUpCode(elsewhere)).toBe("SIGN_UP_CLOSED");
  });
});

describe("a slug", () => {
  const ask = (server: Server, slug: string, path: string) =>
    server.browser({ "x-tenant-slug": slug }).get<{ tenant: { name: string } }>(path);
  const session = (server: Server, slug = "acme") => ask(server, slug, "/get-session");
  /** Which tenant a slug leads to: the sign-in page says its name. */
  async function landing(server: Server, slug = "acme"): Promise<string> {
    const { data, code } = await ask(server, slug, "/tenant/sign-in-methods");
    return code ?? data.tenant.name;
  }

  async function createSeen() {
    const servers = await createServers({ tenant: { resolveTenantId: bySlug() } });
    const { here, elsewhere } = servers;
    for (const server of [here, elsewhere]) expect(await landing(server)).toBe("ACME");
    /** Somebody else gets the slug of Acme. */
    const giveAway = (server: Server = here) =>
      server.api.createTenant({ body: { name: "Impostor", slug: "acme" } });
    return { ...servers, giveAway };
  }

  it("is looked up once in ten seconds, and each time where no tenant has it", async () => {
    const { here, elsewhere } = await createSeen();
    lookUps(here);
    expect((await session(here)).status).toBe(200);
    expect(lookUps(here)).toBe(0);
    later(10_001);
    await session(here);
    await session(here);
    expect(lookUps(here)).toBe(1);
    await landing(here, "new");
    lookUps(here);
    expect(await landing(here, "new")).toBe("TENANT_NOT_FOUND");
    expect(lookUps(here)).toBe(1);
    await elsewhere.createTenant("new");
    expect(await landing(here, "new")).toBe("NEW");
  });

  it("that is changed and given away counts here at once, and elsewhere within ten seconds", async () => {
    const { here, elsewhere, giveAway } = await createSeen();
    await here.change("acme", { slug: "acme-corp" });
    expect(await landing(here)).toBe("TENANT_NOT_FOUND");
    await giveAway();
    expect(await landing(here)).toBe("Impostor");
    later(9_999);
    // Whoever goes there all the time does not prolong it.
    expect(await landing(elsewhere)).toBe("ACME");
    // Where it is read again under its new slug, the old one is forgotten with that.
    expect(await landing(elsewhere, "acme-corp")).toBe("ACME");
    expect(await landing(elsewhere)).toBe("Impostor");
  });

  it("that another process has freed and this one gives away leads to the new tenant at once", async () => {
    const { here, elsewhere, giveAway } = await createSeen();
    await here.change("acme", { slug: "acme-corp" });
    await giveAway(elsewhere);
    expect(await landing(elsewhere)).toBe("Impostor");
  });

  it("that is looked up while it is given away is not remembered, nor for longer elsewhere", async () => {
    const { here, elsewhere, giveAway } = await createSeen();
    later(10_001);
    const answered = [gate(), gate()];
    const slow = [here, elsewhere].map((server, index) => {
      slowLook(server, () => answered[index]?.pass() ?? Promise.resolve());
      return session(server);
    });
    await Promise.all(answered.map(({ reached }) => reached));
    await here.change("acme", { slug: "acme-corp" });
    await giveAway();
    answered[0]?.open();
    await slow[0];
    expect(await landing(here)).toBe("Impostor");
    later(10_001);
    answered[1]?.open();
    await slow[1];
    expect(await landing(elsewhere)).toBe("Impostor");
  });
});

it.each([
  ["22P02", 404],
  ["P2023", 404],
  ["57P01", 500],
])("what the database says to an id, %s, is %i", async (code, status) => {
  const { browser, context } = await createInstance();
  const { findOne } = context.adapter;
  vi.spyOn(context.adapter, "findOne").mockImplementation(async (call) => {
    if (call.model !== "tenant") return findOne(call);
    // Drizzle puts the driver's error into one of its own.
    throw new Error("query failed", { cause: Object.assign(new Error("refused"), { code }) });
  });
  expect((await browser().get("/list-sessions?tenantId=abc")).status).toBe(status);
});

describe("a policy that a request has seen", () => {
  /** Somebody at Acme has asked for a new password, which is to be shorter than the policy says. */
  async function createReset(hooks = {}) {
    const world = await createWorld({ auth: { hooks } });
    await world.as("jane", "acme");
    await world.change("acme", { policy: { password: { minLength: 30 } } });
    await world.at("acme").post("/request-password-reset", { email: EMAIL });
    const { token } = world.lastMail("reset");
    const reset = async () =>
      outcome(await world.at("acme").post("/reset-password", { token, newPassword: "too short" }));
    return { ...world, reset };
  }
  const TOO_SHORT = [400, "PASSWORD_TOO_SHORT"];

  it("holds for the rest of it, though the tenant is changed meanwhile", async () => {
    const hold = gate();
    const before = createAuthMiddleware(async ({ path }) => {
      if (path === "/reset-password") await hold.pass();
    });
    const { reset, change } = await createReset({ before });
    const slow = reset();
    await hold.reached;
    await change("acme", { name: "Acme Ltd" });
    hold.open();
    expect(await slow).toEqual(TOO_SHORT);
  });

  it("is there, though the tenant is changed while it is looked up", async () => {
    const world = await createReset();
    await world.change("acme", { name: "Acme Ltd" });
    slowLook(world, () => world.change("acme", { name: "Another" }));
    const newcomer = { name: "New", email: "new@example.com", password: "too short" };
    expect(outcome(await world.at("acme").post("/sign-up/email", newcomer))).toEqual(TOO_SHORT);
  });
});

it("a policy that another process has set holds inside of a transaction, too", async () => {
  const { here, elsewhere, tenantId } = await createServers();
  await here.as("jane", "acme");
  await here.at("acme").post("/request-password-reset", { email: EMAIL });
  const { token } = here.lastMail("reset");
  const policy = { password: { minLength: 30 } };
  await elsewhere.api.updateTenant({ body: { tenantId, policy } });
  later(10_001);
  const headers = new Headers(here.naming("acme"));
  const resetting = runWithTransaction(here.context.adapter, () =>
    here.api.resetPassword({ body: { token, newPassword: "too short" }, headers }),
  );
  await expect(resetting).rejects.toMatchObject({ body: { code: "PASSWORD_TOO_SHORT" } });
});

describe("what a transaction sees stays in it", () => {
  const failing = (world: Pick<Instance, "context">, run: () => Promise<unknown>) =>
    expect(
      runWithTransaction(world.context.adapter, async () => {
        await run();
        throw new Error("rolled back");
      }),
    ).rejects.toThrow("rolled back");

  it.each(databases)(
    "where it is rolled back: slugs, status, policy, deletion, on %s",
    async (kind) => {
      const database = await createDatabase(kind);
      const world = await createWorld({ database, tenant: { resolveTenantId: bySlug() } });
      const { api, ids, change } = world;
      await world.janes();
      const signUp = (slug: string, email: string) =>
        world
          .browser({ "x-tenant-slug": slug })
          .post<{ user: { tenantId: string } }>("/sign-up/email", { ...person, email });
      const look = () =>
        runInTenant(ids.acme, () => api.signInEmail({ body: person })).catch(() => {});
      const byName = (slug: string) =>
        api.getSession({ headers: new Headers({ "x-tenant-slug": slug }) });
      await failing(world, async () => {
        await change("acme", { slug: "in-between" });
        await change("globex", { slug: "acme" });
        await change("acme", { slug: "globex" });
        for (const slug of ["acme", "globex"]) await byName(slug);
      });
      const { data } = await signUp("globex", "new@example.com");
      expect(data.user.tenantId).toBe(ids.globex);

      await change("acme", { policy: { signUp: "invited" } });
      await failing(world, async () => {
        await change("acme", { policy: null });
        await look();
      });
      expect((await signUp("acme", "new@example.com")).code).toBe("INVITATION_REQUIRED");

      await change("acme", { status: "suspended" });
      await failing(world, async () => {
        await change("acme", { status: "active" });
        await look();
      });
      expect((await world.signIn("acme")).code).toBe("TENANT_SUSPENDED");

      await change("acme", { status: "active" });
      await failing(world, () => api.deleteTenant({ body: { tenantId: ids.acme } }));
      expect((await world.signIn("acme")).status).toBe(200);
      await runWithTransaction(world.context.adapter, () =>
        api.deleteTenant({ body: { tenantId: ids.acme } }),
      );
      expect((await world.signIn("acme")).code).toBe("TENANT_NOT_FOUND");
    },
  );

  it("where it is one of the adapter alone", async () => {
    const world = await createWorld();
    await world.janes();
    await world.change("acme", { status: "suspended" });
    const { adapter } = world.context;
    const failed = runInTenant(world.ids.acme, () =>
      adapter.transaction(async (inner) => {
        const where = [{ field: "id", value: world.ids.acme }];
        await inner.update({ model: "tenant", where, update: { status: "active" } });
        const data = { name: "New", email: "new@example.com", emailVerified: false };
        await inner.create({ model: "user", data });
        throw new Error("rolled back");
      }),
    );
    await expect(failed).rejects.toThrow("rolled back");
    expect((await world.signIn("acme")).code).toBe("TENANT_SUSPENDED");
  });

  it.each(databases)("where it is from before a change, on %s", async (kind) => {
    const hold = gate();
    const before = async ({ email }: { email: string }) => {
      if (email === "slow@example.com") await hold.pass();
    };
    const database = await createDatabase(kind);
    const auth = { databaseHooks: { user: { create: { before } } } };
    const world = await createWorld({ database, auth });
    await world.janes();
    // On SQLite nobody writes beside a transaction.
    if (kind === "sqlite") hold.open();
    const slow = world.at("acme").post("/sign-up/email", { ...person, email: "slow@example.com" });
    await (kind === "sqlite" ? slow : hold.reached);
    await world.change("acme", { status: "suspended" });
    hold.open();
    await slow;
    expect((await world.signIn("acme")).code).toBe("TENANT_SUSPENDED");
  });
});
