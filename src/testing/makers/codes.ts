import { isSwitchedOff } from "../instance/switched-off";
import type { Values } from "../options";
import { ok } from "../sides/browser";
import { issueSession, PASSWORD } from "../sides/people";
import type { Maker } from "./maker";
import { totpFrom } from "./totp";

export const phoneMaker = (name: string, start: string, home: string): Maker => ({
  name,
  paths: [start, home],
  isOn: (options) => !isSwitchedOff(start, options),
  async make(side) {
    const { phoneNumber } = side.things;
    await ok(side.fresh().post(start, { phoneNumber }));
    const { value = "" } = side.workshop.watch.lastVerification;
    const code = /(?:^|\n)(\d{4,10}):\d+/.exec(value)?.[1];
    if (!code) throw new Error("the code could not be found");
    side.oneTimes.push({ name, values: { code, otp: code }, home });
  },
});

/** A change of the address by code: it is made for both addresses together. */
export const emailChangeOtp: Maker = {
  name: "e-mail OTP (change-email)",
  paths: ["/email-otp/request-email-change", "/email-otp/change-email"],
  isOn: (options) => !isSwitchedOff("/email-otp/change-email", options),
  async make(side) {
    const newEmail = `otp-${side.name}-${side.workshop.mark}@example.com`;
    await ok(side.main.browser.post("/email-otp/request-email-change", { newEmail }));
    const { value = "" } = side.workshop.watch.lastVerification;
    const otp = /(?:^|\n)(\d{4,10}):\d+/.exec(value)?.[1];
    if (!otp) throw new Error("the code could not be found");
    const home = "/email-otp/change-email";
    side.oneTimes.push({
      name: this.name,
      values: { otp, newEmail },
      home,
      homeNeedsSession: true,
    });
  },
};

export const twoFactor: Maker = {
  name: "two-factor codes",
  paths: ["/two-factor/enable", "/two-factor/verify-backup-code", "/sign-in/email"],
  async make(side) {
    const { second, workshop } = side;
    const { raw } = workshop.subject;
    const { backupCodes, totpURI } = await ok<{ backupCodes: string[]; totpURI?: string }>(
      second.browser.post("/two-factor/enable", { password: PASSWORD }),
    );
    const where = (field: string) => [{ field, value: second.userId }];
    await raw.update({ model: "user", where: where("id"), update: { twoFactorEnabled: true } });
    await raw.update({ model: "twoFactor", where: where("userId"), update: { verified: true } });
    // Sessions that are kept outside of the database know the person as it was before.
    const proved = side.fresh();
    await issueSession(workshop.subject, side.place, second.userId, proved);
    const name = "session with a second factor";
    side.sessions.push({ name, userId: second.userId, cookies: proved.cookies });
    const halfway = side.fresh();
    await ok(halfway.post("/sign-in/email", { email: second.email, password: PASSWORD }));
    const { cookies } = halfway;
    const home = "/two-factor/verify-backup-code";
    const code = backupCodes[0];
    side.oneTimes.push({ name: "backup code", values: { code }, cookies, home });
    if (totpURI) {
      const values: Values = {};
      const refresh = async () => void Object.assign(values, { code: await totpFrom(totpURI) });
      await refresh();
      const home = "/two-factor/verify-totp";
      side.oneTimes.push({ name: "authenticator code", values, cookies, home, refresh });
    }
    await workshop.takeMails();
    const { status } = await halfway.post("/two-factor/send-otp");
    const otp = (await workshop.takeMails()).at(-1)?.data.otp;
    if (status === 200 && typeof otp === "string") {
      const values = { code: otp };
      side.oneTimes.push({
        name: "two-factor OTP",
        values,
        cookies,
        home: "/two-factor/verify-otp",
      });
    }
  },
};
