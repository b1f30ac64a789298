import { createAuthMiddleware } from "better-auth/api";
import { describe, expect, it } from "vitest";
import type { Answer, Browser } from "../../support/browser";
import { crowdOn, databases } from "../../support/database";
import { createInstance, PASSWORD } from "../../support/instance";
import { createMemory } from "../../support/stores";
import { createWorld, gate, outcome, type WorldOptions } from "../../support/world";

const DONE = [200, undefined];

/** Late is late: the request worked before the deletion, or there is no such tenant (any more). */
function expectTimely(answers: Answer<unknown>[]) {
  const late = answers.map(outcome).filter(([status]) => status !== 200);
  expect(late).toEqual(late.map(() => [404, "TENANT_NOT_FOUND"]));
}

describe.each(databases)("threat: races. A tenant that is deleted on %s", (database) => {
  async function start(auth: WorldOptions["auth"] = {}) {
    const world = await createWorld({ database, auth });
    const operator = await world.operator();
    const neighbour = await world.as("jane", "globex");
    const tenantId = world.ids.acme;
    const remove = async () => outcome(await operator.post("/tenant/delete", { tenantId }));
    const send = (path: string, email: string) => {
      const browser = world.browser();
      const body = { tenantId, name: "Late", email, password: PASSWORD };
      return { browser, answer: browser.post(path, body) };
    };
    /** No cookie works, and the next purge leaves no row. */
    const expectNothingLeft = async (browsers: Browser[] = []) => {
      // Those who were refused have no cookie to try.
      for (const browser of browsers.filter(({ cookies }) => cookies.size > 0)) {
        for (const where of [null, "acme"]) expect(await world.whoIs(browser, where)).toBeNull();
        const used = await world.at(null, browser).post("/update-user", { name: "Still here" });
        expect(outcome(used)).toEqual([401, "UNAUTHORIZED"]);
      }
      expect(await world.rows("tenant", "id = ?", [tenantId])).toBe(0);
      await world.api.purgeTenants();
      const { tenant, ...left } = await world.everythingIn("acme");
      expect(Object.values(left).flat()).toEqual([]);
      expect(await world.whoIs(neighbour)).toMatchObject({ id: neighbour.id });
    };
    return { world, operator, remove, send, expectNothingLeft };
  }

  it("while many users sign up", async () => {
    const { remove, send, expectNothingLeft } = await start();
    const people = Array.from({ length: crowdOn(database) }, (_, index) =>
      send("/tenant/sign-up/email", `racer-${index}@example.com`),
    );
    await Promise.any(people.map(({ answer }) => answer));
    const removed = await remove();
    const answers = await Promise.all(people.map(({ answer }) => answer));
    expect(removed).toEqual(DONE);
    await expectNothingLeft(people.map(({ browser }) => browser));
    expectTimely(answers);
  }, 60_000);

  it("while 20 OAuth configs are registered", async () => {
    const { world, operator, remove, expectNothingLeft } = await start();
    const registrations = Array.from({ length: 20 }, (_, index) =>
      operator.post("/tenant/oauth-config/register", {
        tenantId: world.ids.acme,
        providerId: ["google", "github", "apple", "discord"][index % 4],
        clientId: `id-${index}`,
        clientSecret: "secret",
      }),
    );
    const removed = await remove();
    const answers = await Promise.all(registrations);
    expect(removed).toEqual(DONE);
    await expectNothingLeft();
    // A foreign key may refuse the row.
    expectTimely(answers.filter(({ code }) => code !== "OAUTH_CONFIG_NOT_SAVED"));
  });

  /** Where somebody's request waits while the tenant is deleted. */
  const MOMENTS: [string, (pass: () => Promise<void>) => WorldOptions["auth"]][] = [
    [
      "sign-up has found it, and has written nothing",
      (pass) => ({
        hooks: {
          before: createAuthMiddleware(async ({ path }) => {
            if (path === "/sign-up/email") await pass();
          }),
        },
      }),
    ],
    [
      "sign-up has written the user, and not committed",
      (pass) => ({ databaseHooks: { account: { create: { before: pass } } } }),
    ],
    [
      "password is being checked",
      (pass) => ({
        emailAndPassword: {
          enabled: true,
          password: {
            hash: async (text) => text,
            verify: async (given) => pass().then(() => given.hash === given.password),
          },
        },
      }),
    ],
  ];
  it.each(MOMENTS)("while a user's %s", async (moment, waiting) => {
    const { pass, open, reached } = gate();
    let armed = false;
    const { world, remove, send, expectNothingLeft } = await start(
      waiting(async () => (armed ? pass() : undefined)),
    );
    await world.signUp("acme", "member@example.com");
    armed = true;
    const isSignIn = moment.startsWith("password");
    const people = isSignIn
      ? Array.from({ length: 10 }, () => send("/tenant/sign-in/email", "member@example.com"))
      : [send("/tenant/sign-up/email", "late@example.com")];
    await reached;
    const removal = remove();
    // PostgreSQL deletes past an open transaction; the other two wait for it to end, so the test
    // cannot wait for them.
    const isOpen = moment.includes("not committed");
    await (isOpen
      ? Promise.race([removal, new Promise((resolve) => setTimeout(resolve, 100))])
      : removal);
    open();
    const answers = await Promise.all(people.map(({ answer }) => answer));
    expect(await removal).toEqual(DONE);
    await expectNothingLeft(people.map(({ browser }) => browser));
    if (!isSignIn) expectTimely(answers);
    if (!isOpen) {
      for (const answer of answers) expect(answer.status).not.toBe(200);
      expect(answers.flatMap(({ headers }) => headers.getSetCookie())).toEqual([]);
    }
  });
});

it("a session that is written after its tenant was deleted is none, also without foreign keys", async () => {
  const { database } = createMemory((inner) => ({
    ...inner,
    create: async (call) => {
      if (call.model === "session" && isDoomed)
        await world.api.deleteTenant({ body: { tenantId } });
      return inner.create(call);
    },
  }));
  let isDoomed = false;
  const world = await createInstance({ database, migrate: false });
  const { id: tenantId } = await world.createTenant();
  const { email, browser } = await world.signUp(tenantId);
  isDoomed = true;
  await browser.post("/tenant/sign-in/email", { tenantId, email, password: PASSWORD });
  isDoomed = false;
  for (const headers of [{}, { "x-tenant-id": tenantId }] as Record<string, string>[]) {
    const window = browser.fork(headers);
    expect((await window.get("/get-session")).data).toBe(null);
    const changed = await window.post("/update-user", { name: "Still here" });
    expect(changed.status).toBe("x-tenant-id" in headers ? 404 : 401);
  }
});
