import type { BetterAuthOptions } from "better-auth";
import { describe, expect, it } from "vitest";
import { getTenantId, runInTenant } from "../../src/index";
import { createWorld, PLACES, passwordOf, shareWorld, type World } from "../support/world";

const NEW_PASSWORD = "a brand new password";
const world = shareWorld();

const inAcme = <T>(run: () => Promise<T>) => runInTenant(world.ids.acme, run);
const inGlobex = <T>(run: () => Promise<T>) => runInTenant(world.ids.globex, run);
const newcomer = () => ({
  name: "New",
  email: `${crypto.randomUUID()}@example.com`,
  password: PASSWORD,
});
const PASSWORD = "another password";

const expectRejected = (call: Promise<unknown>, code: string) =>
  expect(call).rejects.toMatchObject({ body: { code } });

describe("runInTenant()", () => {
  it("auth.api.signUpEmail signs up there, and nowhere else", async () => {
    const body = newcomer();
    const signUp = () => inAcme(() => world.api.signUpEmail({ body }));
    const { user } = await world.touchesOnly("acme", signUp);
    expect(user).toMatchObject({ email: body.email, tenantId: world.ids.acme });
    expect((await world.signIn("acme", body.email, PASSWORD)).status).toBe(200);
    expect((await world.signIn("platform", body.email, PASSWORD)).status).toBe(401);
  });

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

  it("R5, R8: somebody of elsewhere has no session there, and gets none", async () => {
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

  it("answers what the function answers, and throws what it throws", async () => {
    expect(await inAcme(async () => getTenantId())).toBe(world.ids.acme);
    const boom = new Error("boom");
    await expect(inAcme(() => Promise.reject(boom))).rejects.toBe(boom);
    expect(getTenantId()).toBeNull();
  });

  it("nested calls stay apart, and the outer one goes on where it was", async () => {
    const { email, acme, globex } = await world.namesakes();
    const find = async () => {
      const found = await world.context.internalAdapter.findUserByEmail(email);
      return [getTenantId(), found?.user.id];
    };
    const seen = await inAcme(async () => [await find(), await inGlobex(find), await find()]);
    const [a, b] = [
      [world.ids.acme, acme.id],
      [world.ids.globex, globex.id],
    ];
    expect(seen).toEqual([a, b, a]);
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

  it("refuses a call that names another tenant", async () => {
    const headers = new Headers({ "x-tenant-id": world.ids.globex });
    const call = () => inAcme(() => world.api.signUpEmail({ body: newcomer(), headers }));
    await world.unchanged(() => expectRejected(call(), "TENANT_SCOPE_CONFLICT"));
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
const note = (name: string) => async () => void called.push([name, getTenantId()]);
const auth = {
  emailAndPassword: {
    enabled: true,
    onPasswordReset: note("onPasswordReset"),
    onExistingUserSignUp: note("onExistingUserSignUp"),
  },
  emailVerification: {
    sendOnSignUp: true,
    beforeEmailVerification: note("beforeEmailVerification"),
    afterEmailVerification: note("afterEmailVerification"),
  },
  user: {
    deleteUser: {
      enabled: true,
      beforeDelete: note("beforeDelete"),
      afterDelete: note("afterDelete"),
    },
  },
} satisfies Partial<BetterAuthOptions>;

describe.each(["acme", "platform"] as const)("getTenantId() at %s, in callbacks", (place) => {
  const calling = shareWorld({ auth });
  const mailing = shareWorld({ auth, deletionByMail: true });

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

  it("of a sign-up, also of somebody who is there already", async () => {
    const emailAndPassword = { ...auth.emailAndPassword, requireEmailVerification: true };
    const verifying = await createWorld({ auth: { ...auth, emailAndPassword } });
    const body = newcomer();
    const signUp = () => observe(verifying, () => verifying.at(place).post("/sign-up/email", body));
    expect(await signUp()).toEqual(["verification"]);
    expect(await verifying.unchanged(signUp)).toEqual(["onExistingUserSignUp"]);
  });

  it("of a verification, by the link alone", async () => {
    const { email, window } = await calling.namesakes();
    await window(place).post("/send-verification-email", { email });
    const { url } = calling.lastMail("verification");
    const both = ["beforeEmailVerification", "afterEmailVerification"];
    expect(await observe(calling, () => calling.browser().get(url))).toEqual(both);
  });

  it("of a change of the address, behind the first link and behind the second", async () => {
    const { email, window } = await calling.namesakes();
    await calling.database.query(`update "user" set "emailVerified" = 1 where email = ?`, [email]);
    const ask = () => window(place).post("/change-email", { newEmail: `new-${email}` });
    expect(await observe(calling, ask)).toEqual(["change"]);
    const first = calling.lastMail("change").url;
    expect(await observe(calling, () => calling.browser().get(first))).toEqual(["verification"]);
    const { url } = calling.lastMail("verification");
    const click = () => calling.browser().get(url);
    expect(await observe(calling, click)).toEqual(["afterEmailVerification"]);
  });

  it("of a deletion, by password and by link", async () => {
    const both = ["beforeDelete", "afterDelete"];
    const me = (await calling.namesakes()).window(place);
    const leave = () => me.post("/delete-user", { password: passwordOf(place) });
    expect(await observe(calling, leave)).toEqual(both);

    const other = (await mailing.namesakes()).window(place);
    expect(await observe(mailing, () => other.post("/delete-user"))).toEqual(["deletion"]);
    const { url } = mailing.lastMail("deletion");
    expect(await observe(mailing, () => other.get(url))).toEqual(both);
  });

  it("of a password reset, by the token alone", async () => {
    const { email } = await calling.namesakes();
    const ask = () => calling.at(place).post("/request-password-reset", { email });
    expect(await observe(calling, ask)).toEqual(["reset"]);
    const body = { token: calling.lastMail("reset").token, newPassword: NEW_PASSWORD };
    const reset = () => calling.browser().post("/reset-password", body);
    expect(await observe(calling, reset)).toEqual(["onPasswordReset"]);
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
