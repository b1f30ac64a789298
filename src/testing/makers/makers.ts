import { unseal } from "../../core/isolate/links";
import { isSwitchedOff } from "../instance/switched-off";
import { ok } from "../sides/browser";
import type { Side } from "../sides/side";
import { emailChangeOtp, phoneMaker, twoFactor } from "./codes";
import { tenantInvitation } from "./invitation";
import { deviceCodes, newPasskey, passkey, wallet } from "./keys";
import { type Maker, maker } from "./maker";
import { idToken, oauthState, oneTap } from "./oauth";
import { account, anonymous, apiKey, domain, impersonation, organization } from "./things";

const OUTBOX =
  "an `outbox`, or an instance whose mail sender is an option that is read when it is needed";

/** A token that is sent by mail, as it is in the mail and taken out of its seal. */
const mailMaker = (
  name: string,
  paths: [start: string, home: string],
  send: (side: Side) => Promise<unknown>,
): Maker =>
  maker(
    name,
    paths,
    async (side) => {
      const { takeMails, subject } = side.workshop;
      const homeNeedsSession = paths[1] === "/delete-user/callback";
      await takeMails();
      await send(side);
      const { token: plain, url } = Object((await takeMails()).at(-1)?.data) as Mailed;
      const inLink = url && URL.canParse(url) ? new URL(url).searchParams.get("token") : undefined;
      const token = typeof plain === "string" ? plain : inLink;
      if (!token) throw new Error("no mail came with a token");
      const seal = await unseal(subject.ctx, token);
      if (!seal) return { values: { token }, homeNeedsSession };
      const { token: opened, tenantId } = seal;
      // It has no row: in a tenant it is valid in its seal only.
      const needsSeal = paths[1] === "/verify-email" && tenantId !== "";
      return [
        { values: { token: opened }, needsSeal, homeNeedsSession },
        { name: `sealed ${name}`, values: { token }, sealed: true, homeNeedsSession },
      ];
    },
    { give: OUTBOX, isOn: (options) => paths.every((path) => !isSwitchedOff(path, options)) },
  );

type Mailed = { token?: string; url?: string };

const otpMaker = (type: string, home: string): Maker =>
  maker(`e-mail OTP (${type})`, [home], async (side) => {
    const { createVerificationOTP } = side.workshop.subject.api;
    const email = type === "email-verification" ? side.newcomerEmail : side.main.email;
    const otp = await side.inside(async () =>
      createVerificationOTP?.({ body: { email, type }, ...side.serverCall() }),
    );
    if (typeof otp !== "string") throw new Error("no code was made");
    return { values: { otp, type, email } };
  });

const oneTimeToken = maker(
  "one-time token",
  ["/one-time-token/generate", "/one-time-token/verify"],
  async ({ main }) => ({
    values: await ok<{ token: string }>(main.browser.get("/one-time-token/generate")),
  }),
);

const sessionToken = maker(
  "session token as a token",
  ["/revoke-session"],
  async ({ main: { token } }) => ({
    values: { token, sessionToken: token },
    homeNeedsSession: true,
  }),
);

const MAILS: Maker[] = [
  mailMaker("reset token", ["/request-password-reset", "/reset-password"], (side) => {
    const body = { email: side.main.email, redirectTo: "/reset" };
    return ok(side.fresh().post("/request-password-reset", body));
  }),
  mailMaker("verification token", ["/send-verification-email", "/verify-email"], (side) =>
    ok(side.fresh().post("/send-verification-email", { email: side.newcomerEmail })),
  ),
  mailMaker("e-mail change token", ["/change-email", "/verify-email"], (side) => {
    const newEmail = `new-${side.name}-${side.workshop.mark}@example.com`;
    return ok(side.main.browser.post("/change-email", { newEmail }));
  }),
  mailMaker("magic link", ["/sign-in/magic-link", "/magic-link/verify"], (side) =>
    ok(side.fresh().post("/sign-in/magic-link", { email: side.main.email })),
  ),
  mailMaker("deletion token", ["/delete-user", "/delete-user/callback"], ({ main }) =>
    ok(main.browser.post("/delete-user")),
  ),
];

/** Single sign-on and directories, if they are installed: most applications have neither. */
async function enterpriseMakers(paths: Set<string>): Promise<Maker[]> {
  const sso = paths.has("/sso/register") ? await import("./sso") : undefined;
  const scim = paths.has("/scim/v2/Users") ? await import("./scim") : undefined;
  return [
    ...(sso ? [sso.oidcProvider, sso.unverifiedProvider, sso.samlProvider] : []),
    ...(scim ? [scim.directory] : []),
  ];
}

/** Things first: the credentials of a second factor keep the second user from signing in. */
export const makersFor = async (paths: Set<string>): Promise<Maker[]> => [
  ...[account, organization, impersonation, anonymous, apiKey],
  ...(await enterpriseMakers(paths)),
  ...[passkey, newPasskey, deviceCodes, wallet],
  ...MAILS,
  ...[tenantInvitation, domain, oneTimeToken, sessionToken],
  otpMaker("sign-in", "/sign-in/email-otp"),
  otpMaker("email-verification", "/email-otp/verify-email"),
  otpMaker("forget-password", "/email-otp/reset-password"),
  emailChangeOtp,
  phoneMaker("phone OTP", "send-otp", "verify"),
  phoneMaker("phone OTP (reset)", "request-password-reset", "reset-password"),
  ...[oauthState, idToken, oneTap, twoFactor],
];
