import { emailOTP } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../src/index";
import { createInstance, PASSWORD } from "./support/instance";
import { databases } from "./support/servers";

const EMAIL = "everybody@example.com";

const times = <T>(count: number, run: () => Promise<T>) =>
  Promise.all(Array.from({ length: count }, run));

const successes = (answers: { status: number }[]) =>
  answers.filter(({ status }) => status === 200).length;

describe.each(databases)("threat: races on %s", (database) => {
  it("of 200 sign-ups with one e-mail at once, one gets it", async () => {
    const instance = await createInstance({ database });
    const { id: tenantId } = await instance.createTenant();
    const body = { tenantId, name: "Somebody", email: EMAIL, password: PASSWORD };
    const answers = await times(200, () => instance.browser().post("/tenant/sign-up/email", body));
    expect(successes(answers)).toBe(1);
    // better-auth's answers to an e-mail that is taken, and to one that is taken a moment later.
    const losers = answers.filter(({ status }) => status !== 200);
    for (const { status, code } of losers) {
      expect(`${status} ${code}`).toMatch(
        /^422 (USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL|FAILED_TO_CREATE_USER)$/,
      );
    }
    for (const table of ["user", "account", "session"]) expect(await instance.rows(table)).toBe(1);
  }, 60_000);

  it("one reset token and one code, each redeemed 50 times at once, are good once", async () => {
    const sent: string[] = [];
    const instance = await createInstance({
      database,
      auth: {
        emailAndPassword: {
          enabled: true,
          sendResetPassword: async ({ token }) => void sent.push(token),
        },
      },
      plugins: [emailOTP({ sendVerificationOTP: async ({ otp }) => void sent.push(otp) })],
    });
    const { id } = await instance.createTenant();
    await instance.signUp(id, EMAIL);
    // better-auth locks an unverified user with an id that is too long for its column on MySQL.
    const verified = { emailVerified: true };
    await runInTenant(id, () =>
      instance.context.internalAdapter.updateUserByEmail(EMAIL, verified),
    );
    const tenant = instance.browser({ "x-tenant-id": id });

    await tenant.post("/request-password-reset", { email: EMAIL });
    const reset = { token: sent.pop(), newPassword: "another long password" };
    const resets = await times(50, () => instance.browser().post("/reset-password", reset));
    expect(successes(resets)).toBe(1);

    await tenant.post("/email-otp/send-verification-otp", { email: EMAIL, type: "sign-in" });
    const code = { email: EMAIL, otp: sent.pop() };
    const signIns = await times(50, () =>
      instance.browser({ "x-tenant-id": id }).post("/sign-in/email-otp", code),
    );
    expect(successes(signIns)).toBe(1);
  });
});
