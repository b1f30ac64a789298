import type { BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { getTenantId, runInTenant } from "../../src/index";
import { BASE_URL, newcomer } from "../support/instance";
import { createWorld, PLACES, passwordOf, shareWorld, type World } from "../support/world";

const world = shareWorld();

const inAcme = <T>(run: () => Promise<T>) => runInTenant(world.ids.acme, run);
const inGlobex = <T>(run: () => Promise<T>) => runInTenant(world.ids.globex, run);
const PASSWORD = "another password";

const expectRejected = (call: Promise<unknown>, code: string) =>
  expect(call).rejects.toMatchObject({ body: { code } });

describe("runInTenant()", () => {
  it("R3: the internal adapter sees that tenant only", async () => {
    const { email, acme, globex, platform, rowsOf } = await world.namesakes();
    const { internalAdapter } = world.context;
    await world.touchesOnly("acme", () =>
      inAcme(async () => {
        expect((await internalAdapter.findUserByEmail(email))?.user.id).toBe(acme.id);
        for (const { id } of [globex, platform]) {
          expect(await internalAdapter.findUserById(id)).toBeNull();
        }
        const users = await internalAdapter.listUsers();
        expect(users).toHaveLength((await world.rowsIn("acme", "user")).length);
        await internalAdapter.updateUserByEmail(email, { name: "Renamed" });
        await internalAdapter.deleteUserSessions(globex.id);
        await internalAdapter.deleteUser(platform.id);
      }),
    );
    expect(await rowsOf("acme", "user")).toMatchObject([{ name: "Renamed" }]);
    const session = await inGlobex(() => internalAdapter.createSession(globex.id));
    expect(session).toMatchObject({ userId: globex.id, tenantId: world.ids.globex });
  });

  it("R5, R8: a user of another tenant has no session in the tenant, and gets none", async () => {
    const { acme, globex, platform } = await world.namesakes();
    const { createSession } = world.context.internalAdapter;
    await world.unchanged(async () => {
      for (const { id } of [globex, platform]) {
        await expectRejected(
          inAcme(() => createSession(id)),
          "USER_NOT_IN_TENANT",
        );
      }
    });
    const headers = new Headers({ cookie: acme.cookieHeader() });
    expect((await inAcme(() => world.api.getSession({ headers })))?.user.id).toBe(acme.id);
    expect(await inGlobex(() => world.api.getSession({ headers }))).toBeNull();
  });

  it("answers what the function answers, and throws what it throws; nested calls stay apart", async () => {
    const { email, acme, globex } = await world.namesakes();
    const find = async () => {
      const found = await world.context.internalAdapter.findUserByEmail(email);
      return [getTenantId(), found?.user.id];
    };
    const seen = await inAcme(async () => [await find(), await inGlobex(find), await find()]);
    const home = [world.ids.acme, acme.id];
    expect(seen).toEqual([home, [world.ids.globex, globex.id], home]);
    const boom = new Error("boom");
    await expect(inAcme(() => Promise.reject(boom))).rejects.toBe(boom);
    expect(getTenantId()).toBeNull();
  });

  it("R13: threat: no endpoint trusts a call that a hook makes in a visitor's request", async () => {
    const refused: unknown[] = [];
    const refusing = async (call: Promise<unknown>) =>
      refused.push(await call.catch(({ body }) => body.code));
    const before = createAuthMiddleware(async ({ path }) => {
      if (path !== "/ok") return;
      await refusing(api.signUpEmail({ body: newcomer() }));
      await refusing(api.signUpEmailTenant({ body: { ...newcomer(), tenantId: ids.acme } }));
    });
    const { api, ids, at, change } = await createWorld({ auth: { hooks: { before } } });
    await change("acme", { policy: { signUp: "closed" } });
    await at("acme").get("/ok");
    expect(refused).toEqual(["SIGN_UP_CLOSED", "SIGN_UP_CLOSED"]);
  });

  it("R13: threat: a call of the server's own makes no visitor trusted who comes after it", async () => {
    let asked: Promise<unknown> | undefined;
    const after = createAuthMiddleware(async ({ path, request }) => {
      if (path !== "/ok" || !request) return;
      asked = api.signUpEmail({ body: newcomer() });
      await asked.catch(() => {});
    });
    const { api, auth, change, ids } = await createWorld({ auth: { hooks: { after } } });
    await change("acme", { policy: { signUp: "closed" } });
    const visit = (path: string, init: RequestInit) =>
      auth.handler(new Request(`${BASE_URL}${path}`, init));
    const headers = { "content-type": "application/json" };
    await runInTenant(ids.acme, async () => {
      expect(await api.signUpEmail({ body: newcomer() })).toHaveProperty("user");
      const body = JSON.stringify(newcomer());
      const answer = await visit("/sign-up/email", { method: "POST", headers, body });
      expect(await answer.json()).toMatchObject({ code: "SIGN_UP_CLOSED" });
    });
    await runInTenant(ids.acme, async () => {
      await api.ok();
      const call = { body: newcomer(), headers: new Headers() };
      await expectRejected(api.signUpEmail(call), "SIGN_UP_CLOSED");
    });
    // Nor what a hook of theirs calls.
    await runInTenant(ids.acme, async () => {
      await api.ok();
      await visit("/ok", {});
      await expectRejected(Promise.resolve(asked), "SIGN_UP_CLOSED");
    });
  });

  it("parallel calls stay apart", async () => {
    const people = await world.namesakes();
    const counts = () => Promise.all(PLACES.map((place) => world.rowsIn(place, "user")));
    const before = await counts();
    const runs = Array.from({ length: 20 }, (_, index) => {
      const place = index % 2 ? "acme" : "globex";
      return runInTenant(world.ids[place], async () => {
        const body = { email: people.email, password: passwordOf(place) };
        const { user } = await world.api.signInEmail({ body });
        await world.api.signUpEmail({ body: newcomer() });
        expect([getTenantId(), user.id]).toEqual([world.ids[place], people[place].id]);
      });
    });
    await Promise.all(runs);
    const more = (await counts()).map((users, n) => users.length - (before[n]?.length ?? 0));
    expect(more).toEqual([10, 10, 0]);
  });

  it("R2: leaves nothing behind in a tenant that does not exist", async () => {
    const { email, ...people } = await world.namesakes();
    const { createUser, findUserById } = world.context.internalAdapter;
    const nowhere = <T>(run: () => Promise<T>) => runInTenant("nowhere", run);
    const user = { name: "New", email: newcomer().email, emailVerified: false };
    await world.unchanged(async () => {
      const signUp = nowhere(() => world.api.signUpEmail({ body: newcomer() }));
      await expectRejected(signUp, "TENANT_NOT_FOUND");
      const create = nowhere(() => createUser(user, { method: "email-password" }));
      await expectRejected(create, "TENANT_NOT_FOUND");
      const body = { email, password: passwordOf("platform") };
      const signIn = nowhere(() => world.api.signInEmail({ body }));
      await expect(signIn).rejects.toMatchObject({ statusCode: expect.any(Number) });
      for (const place of PLACES) {
        expect(await nowhere(() => findUserById(people[place].id))).toBeNull();
      }
    });
  });
});

/** Callbacks of the application, which write down where they run. */
const called: [name: string, tenantId: string | null][] = [];
const note = (...names: string[]) =>
  Object.fromEntries(
    names.map((name) => [name, async () => void called.push([name, getTenantId()])]),
  );
const auth = {
  emailAndPassword: { enabled: true, ...note("onPasswordReset", "onExistingUserSignUp") },
  emailVerification: note("beforeEmailVerification", "afterEmailVerification"),
  user: { deleteUser: { enabled: true, ...note("beforeDelete", "afterDelete") } },
} satisfies Partial<BetterAuthOptions>;

describe.each(["acme", "platform"] as const)("getTenantId() at %s, in callbacks", (place) => {
  const calling = shareWorld({ auth });

  /** Runs a step and answers which callbacks ran, each of which has to have run in the place. */
  async function observe({ mails, ids }: World, step: () => Promise<unknown>) {
    called.length = 0;
    mails.length = 0;
    await step();
    const sent = mails.map(({ kind, sentIn }) => [kind, sentIn] as const);
    const all = [...sent, ...called];
    expect(all.map(([, tenantId]) => tenantId)).toEqual(all.map(() => ids[place]));
    return all.map(([name]) => name);
  }

  it("of a sign-up, also with the email of an existing user", async () => {
    const emailAndPassword = { ...auth.emailAndPassword, requireEmailVerification: true };
    const emailVerification = { ...auth.emailVerification, sendOnSignUp: true };
    const verifying = await createWorld({ auth: { emailAndPassword, emailVerification } });
    const body = newcomer();
    const signUp = () => observe(verifying, () => verifying.at(place).post("/sign-up/email", body));
    expect(await signUp()).toEqual(["verification"]);
    expect(await verifying.unchanged(signUp)).toEqual(["onExistingUserSignUp"]);
  });

  it("of a verification, a change of the address and a reset, by their links alone, and of a deletion", async () => {
    const { email, window } = await calling.namesakes();
    const observed = (step: () => Promise<unknown>) => observe(calling, step);
    const click = (kind: string) => {
      const { url } = calling.lastMail(kind);
      return observed(() => calling.browser().get(url));
    };
    const me = window(place);
    await me.post("/send-verification-email", { email });
    const both = ["beforeEmailVerification", "afterEmailVerification"];
    expect(await click("verification")).toEqual(both);
    const newEmail = `new-${email}`;
    expect(await observed(() => me.post("/change-email", { newEmail }))).toEqual(["change"]);
    expect(await click("change")).toEqual(["verification"]);
    expect(await click("verification")).toEqual(["afterEmailVerification"]);
    const ask = () => calling.at(place).post("/request-password-reset", { email: newEmail });
    expect(await observed(ask)).toEqual(["reset"]);
    const body = { token: calling.lastMail("reset").token, newPassword: PASSWORD };
    const reset = () => calling.browser().post("/reset-password", body);
    expect(await observed(reset)).toEqual(["onPasswordReset"]);
    const leave = () => me.post("/delete-user", { password: PASSWORD });
    expect(await observed(leave)).toEqual(["beforeDelete", "afterDelete"]);
  });
});

it("senders can look the tenant up: a call from the server's own code is trusted", async () => {
  const names: string[] = [];
  const sendResetPassword = async () => {
    const id = getTenantId();
    const tenant = id ? await world.api.getTenant({ query: { id } }) : null;
    names.push(tenant?.name ?? "the platform");
  };
  const options = { emailAndPassword: { enabled: true, sendResetPassword } };
  const world: World = await createWorld({ auth: options });
  for (const place of ["acme", "platform"] as const) {
    const { email } = await world.as("jane", place);
    await world.at(place).post("/request-password-reset", { email });
  }
  expect(names).toEqual(["ACME", "the platform"]);
});
