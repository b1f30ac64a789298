import { symmetricDecrypt } from "better-auth/crypto";
import { isSwitchedOff } from "../instance/switched-off";
import type { Row, Values } from "../options";
import { ok } from "../sides/browser";
import { issueSession, PASSWORD } from "../sides/people";
import type { OneTime, Side } from "../sides/side";
import { maker } from "./maker";

/** The code that was stored last. */
function storedCode({ workshop }: Side): string {
  const code = /(?:^|\n)(\d{4,10}):\d+/.exec(workshop.watch.lastVerification)?.[1];
  if (!code) throw new Error("the code could not be found");
  return code;
}

export function phoneMaker(name: string, ...ends: [start: string, home: string]) {
  const paths = ends.map((end) => `/phone-number/${end}`);
  const [start = ""] = paths;
  const make = async (side: Side) => {
    await ok(side.fresh().post(start, { phoneNumber: side.things.phoneNumber }));
    const code = storedCode(side);
    return { values: { code, otp: code } };
  };
  return maker(name, paths, make, { isOn: (options) => !isSwitchedOff(start, options) });
}

/** A change of the address by code: it is made for both addresses together. */
export const emailChangeOtp = maker(
  "e-mail OTP (change-email)",
  ["/email-otp/request-email-change", "/email-otp/change-email"],
  async (side) => {
    const newEmail = `otp-${side.name}-${side.workshop.mark}@example.com`;
    await ok(side.main.browser.post("/email-otp/request-email-change", { newEmail }));
    return { values: { otp: storedCode(side), newEmail }, homeNeedsSession: true };
  },
  { isOn: (options) => !isSwitchedOff("/email-otp/change-email", options) },
);

export const twoFactor = maker(
  "two-factor codes",
  ["/two-factor/enable", "/two-factor/verify-backup-code", "/sign-in/email"],
  async (side) => {
    const { second, workshop } = side;
    const { userId, email, browser } = second;
    const { raw, ctx, api } = workshop.subject;
    type Enabled = { backupCodes: string[]; totpURI?: string };
    const password = PASSWORD;
    const enabled = ok<Enabled>(browser.post("/two-factor/enable", { password }));
    const { backupCodes, totpURI } = await enabled;
    const where = (field: string) => [{ field, value: userId }];
    await raw.update({ model: "user", where: where("id"), update: { twoFactorEnabled: true } });
    await raw.update({ model: "twoFactor", where: where("userId"), update: { verified: true } });
    // Sessions that are stored outside of the database know the user as it was before.
    const proved = side.fresh();
    await issueSession(proved, userId);
    const name = "session with a second factor";
    side.sessions.push({ name, userId, cookies: proved.cookies });
    const halfway = side.fresh();
    await ok(halfway.post("/sign-in/email", { email, password }));
    const { cookies } = halfway;
    const made = (name: string, path: string, values: Values): OneTime => {
      return { name, values, cookies, home: `/two-factor/${path}` };
    };
    const codes = [made("backup code", "verify-backup-code", { code: backupCodes[0] })];
    if (totpURI) {
      const row = await raw.findOne<Row>({ model: "twoFactor", where: where("userId") });
      const data = String(row?.secret);
      const secret = await symmetricDecrypt({ key: ctx.secretConfig, data });
      const code = made("authenticator code", "verify-totp", {});
      const generate = async () => api.generateTOTP?.({ body: { secret }, ...side.serverCall() });
      code.refresh = async () => void Object.assign(code.values, await generate());
      await code.refresh();
      codes.push(code);
    }
    await workshop.takeMails();
    const { status } = await halfway.post("/two-factor/send-otp");
    const otp = (await workshop.takeMails()).at(-1)?.data.otp;
    if (status === 200 && typeof otp === "string") {
      codes.push(made("two-factor OTP", "verify-otp", { code: otp }));
    }
    return codes;
  },
);
