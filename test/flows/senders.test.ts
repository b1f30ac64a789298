import type { BetterAuthOptions } from "better-auth";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { createInstance } from "../support/instance";
import { createPeople, EMAIL, type People, PLACES, passwordOf } from "./people";

type Called = [name: string, tenantId: string | null];

/** Options whose callbacks write down where they run. */
function createWitness(emailAndPassword: Partial<BetterAuthOptions["emailAndPassword"]> = {}) {
  const called: Called[] = [];
  const note = (name: string) => async () => void called.push([name, getTenantId()]);
  const auth = {
    emailAndPassword: {
      enabled: true,
      ...emailAndPassword,
      sendResetPassword: note("sendResetPassword"),
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
  return { called, auth };
}

const SETS: [name: string, Partial<BetterAuthOptions["emailAndPassword"]>][] = [
  ["signed in at once", {}],
  ["signed in after verification", { requireEmailVerification: true }],
];

describe.each(PLACES)("getTenantId() at %s", (place) => {
  /** Runs a step and answers which callbacks ran, each of which has to have run in the place. */
  async function createObserved(emailAndPassword = {}, deletionByMail = false) {
    const { called, auth } = createWitness(emailAndPassword);
    const people = await createPeople({ auth, deletionByMail });
    const observe = async (step: () => Promise<unknown>) => {
      called.length = 0;
      people.mails.length = 0;
      await step();
      expect(called.map(([, tenantId]) => tenantId)).toEqual(called.map(() => people.ids[place]));
      expect(people.mails.every(({ sentIn }) => sentIn === people.ids[place])).toBe(true);
      return [...people.mails.map(({ kind }) => kind), ...called.map(([name]) => name)];
    };
    return { ...people, observe };
  }

  it.each(SETS)("in sendOnSignUp, where people are %s", async (_, emailAndPassword) => {
    const { observe, stranger } = await createObserved(emailAndPassword);
    const body = { name: "New", email: "new@example.com", password: "another password" };
    expect(await observe(() => stranger(place).post("/sign-up/email", body))).toEqual([
      "verification",
    ]);
  });

  it("in onExistingUserSignUp", async () => {
    const { observe, stranger, changesNothing } = await createObserved({
      requireEmailVerification: true,
    });
    const body = { name: "Again", email: EMAIL, password: "another password" };
    const called = await changesNothing(() =>
      observe(() => stranger(place).post("/sign-up/email", body)),
    );
    expect(called).toEqual(["onExistingUserSignUp"]);
  });

  it("in beforeEmailVerification and afterEmailVerification, by the link alone", async () => {
    const { observe, window, lastMail, stranger } = await createObserved();
    const me = window(place, "its session alone");
    await me.post("/send-verification-email", { email: EMAIL });
    const { url } = lastMail("verification");
    expect(await observe(() => stranger("platform").get(url))).toEqual([
      "beforeEmailVerification",
      "afterEmailVerification",
    ]);
  });

  it("in the mail for the new address that follows a confirmation link, and behind that", async () => {
    const people = await createObserved();
    const { observe, window, lastMail, stranger, instance } = people;
    const { quote, query } = instance.database;
    await query(`update ${quote("user")} set ${quote("emailVerified")} = 1`);
    const change = { newEmail: "new@example.com" };
    const ask = () => window(place, "its session alone").post("/change-email", change);
    expect(await observe(ask)).toEqual(["change"]);
    const first = lastMail("change").url;
    expect(await observe(() => stranger("platform").get(first))).toEqual(["verification"]);
    const second = lastMail("verification").url;
    const click = () => stranger("platform").get(second);
    expect(await observe(click)).toEqual(["afterEmailVerification"]);
  });

  it("in beforeDelete and afterDelete, by password and by link", async () => {
    const direct = await createObserved();
    const me = direct.window(place, "its session alone");
    const leave = () => me.post("/delete-user", { password: passwordOf(place) });
    expect(await direct.observe(leave)).toEqual(["beforeDelete", "afterDelete"]);

    const byMail = await createObserved({}, true);
    const other = byMail.window(place, "its session alone");
    expect(await byMail.observe(() => other.post("/delete-user"))).toEqual(["deletion"]);
    const { url } = byMail.lastMail("deletion");
    expect(await byMail.observe(() => other.get(url))).toEqual(["beforeDelete", "afterDelete"]);
  });

  it("in onPasswordReset, by the token alone", async () => {
    const { called, auth } = createWitness();
    const tokens: string[] = [];
    const people: People = await createPeople({
      auth: {
        ...auth,
        emailAndPassword: {
          ...auth.emailAndPassword,
          sendResetPassword: async ({ token }) => {
            called.push(["sendResetPassword", getTenantId()]);
            tokens.push(token);
          },
        },
      },
    });
    await people.stranger(place).post("/request-password-reset", { email: EMAIL });
    const body = { token: tokens[0], newPassword: "a brand new password" };
    expect((await people.stranger("platform").post("/reset-password", body)).status).toBe(200);
    expect(called).toEqual([
      ["sendResetPassword", people.ids[place]],
      ["onPasswordReset", people.ids[place]],
    ]);
  });
});

describe("what senders are given in a tenant", () => {
  it.each(["a", "platform"] as const)("at %s a token that is in its link", async (place) => {
    const people = await createPeople({ deletionByMail: true });
    const me = people.window(place, "its session alone");
    await me.post("/request-password-reset", { email: EMAIL });
    await me.post("/send-verification-email", { email: EMAIL });
    await me.post("/change-email", { newEmail: "new@example.com" });
    await me.post("/delete-user");
    const kinds = people.mails.map(({ kind }) => kind);
    expect(kinds).toEqual(["reset", "verification", "verification", "deletion"]);
    for (const { url, token } of people.mails) {
      expect(url).toContain(token);
      // Nothing in it has to be escaped, so it survives whatever a mail template does to it.
      expect(encodeURIComponent(token)).toBe(token);
    }
  });

  it("a way to look the tenant up: a call from the server's own code is trusted", async () => {
    const names: string[] = [];
    const instance = await createInstance({
      auth: {
        emailAndPassword: {
          enabled: true,
          sendResetPassword: async () => {
            const id = getTenantId();
            const tenant = id ? await instance.api.getTenant({ query: { id } }) : null;
            names.push(tenant?.name ?? "the platform");
          },
        },
      },
    });
    const { id } = await instance.createTenant("acme");
    for (const tenantId of [id, null]) {
      const { browser, email } = await instance.signUp(tenantId);
      await browser.post("/request-password-reset", { email });
    }
    expect(names).toEqual(["ACME", "the platform"]);
  });
});
