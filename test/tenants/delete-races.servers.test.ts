import { createAuthMiddleware } from "better-auth/api";
import { describe, expect, it } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { crowdOn, databases } from "../support/database";
import { PASSWORD } from "../support/instance";
import { createWorld, EMAIL, gate, outcome, type WorldOptions } from "../support/world";

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
    const body = (email: string) => ({ tenantId, name: "Late", email, password: PASSWORD });
    const send = (path: string, email = EMAIL) => {
      const browser = world.browser();
      return { browser, answer: browser.post(path, body(email)) };
    };
    /** Nobody is left behind: no row in the tables, and no cookie that works. */
    const expectNothingLeft = async (browsers: Browser[] = []) => {
      const { tenant, ...left } = await world.everythingIn("acme");
      expect(Object.values(left).flat()).toEqual([]);
      expect(await world.rows("tenant", "id = ?", [tenantId])).toBe(0);
      // Those who were refused have no cookie to try.
      for (const browser of browsers.filter(({ cookies }) => cookies.size > 0)) {
        for (const where of [null, "acme"]) expect(await world.whoIs(browser, where)).toBeNull();
        const used = await world.at(null, browser).post("/update-user", { name: "Still here" });
        expect(outcome(used)).toEqual([401, "UNAUTHORIZED"]);
      }
      expect(await world.whoIs(neighbour)).toMatchObject({ id: neighbour.id });
    };
    const signUpAt = (email?: string) => send("/tenant/sign-up/email", email);
    const signInAt = (email?: string) => send("/tenant/sign-in/email", email);
    return { world, operator, remove, signUpAt, signInAt, expectNothingLeft };
  }

  it("while many people sign up", async () => {
    const { remove, signUpAt, expectNothingLeft } = await start();
    const people = Array.from({ length: crowdOn(database) }, (_, index) =>
      signUpAt(`racer-${index}@example.com`),
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
    expectTimely(answers);
  });

  it("after somebody's sign-up has found it, and before anything is written", async () => {
    const { pass, open, reached } = gate();
    const { remove, signUpAt, expectNothingLeft } = await start({
      hooks: {
        before: createAuthMiddleware(async ({ body }) => {
          if (body?.email === "late@example.com") await pass();
        }),
      },
    });
    const { browser, answer } = signUpAt("late@example.com");
    await reached;
    expect(await remove()).toEqual(DONE);
    open();
    expect(outcome(await answer)).toEqual([404, "TENANT_NOT_FOUND"]);
    expect((await answer).headers.getSetCookie()).toEqual([]);
    await expectNothingLeft([browser]);
  });

  it("while somebody's sign-up has written the user and not committed yet", async () => {
    const { pass, open, reached } = gate();
    let armed = false;
    const { remove, signUpAt, expectNothingLeft } = await start({
      databaseHooks: { account: { create: { before: async () => (armed ? pass() : undefined) } } },
    });
    armed = true;
    const { browser, answer } = signUpAt("late@example.com");
    await reached;
    const removal = remove();
    // PostgreSQL deletes past the open transaction; the other two wait for it to end, so the test
    // cannot wait for them.
    await Promise.race([removal, new Promise((resolve) => setTimeout(resolve, 100))]);
    open();
    const answered = await answer;
    expect(await removal).toEqual(DONE);
    await expectNothingLeft([browser]);
    expectTimely([answered]);
  });

  it("while somebody's password is being checked", async () => {
    const { pass, open, reached } = gate();
    const hash = async (password: string) => password;
    let armed = false;
    const verify = async (given: { hash: string; password: string }) => {
      if (armed) await pass();
      return given.hash === given.password;
    };
    const { world, remove, signInAt, expectNothingLeft } = await start({
      emailAndPassword: { enabled: true, password: { hash, verify } },
    });
    await world.signUp("acme", "member@example.com");
    armed = true;
    const people = Array.from({ length: 10 }, () => signInAt("member@example.com"));
    await reached;
    expect(await remove()).toEqual(DONE);
    open();
    for (const { answer } of people) expect((await answer).status).not.toBe(200);
    await expectNothingLeft(people.map(({ browser }) => browser));
  });
});
