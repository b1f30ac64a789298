import { unseal } from "../../isolation/links";
import { isSwitchedOff } from "../instance/switched-off";
import type { Mail } from "../options";
import { ok } from "../sides/browser";
import type { OneTime, Side } from "../sides/side";
import { emailChangeOtp, phoneMaker, twoFactor } from "./codes";
import { tenantInvitation } from "./invitation";
import { deviceCodes, newPasskey, passkey, wallet } from "./keys";
import type { Maker } from "./maker";
import { idToken, oauthState, oneTap } from "./oauth";
import { account, anonymous, apiKey, impersonation, organization } from "./things";

const OUTBOX =
  "an `outbox`, or an instance whose mail sender is an option that is read when it is needed";

/** A token that is sent by mail, as it is in the mail and taken out of its seal. */
async function mailed(
  side: Side,
  credential: Pick<OneTime, "name" | "home" | "homeNeedsSession">,
  send: () => Promise<unknown>,
): Promise<void> {
  const { takeMails, subject } = side.workshop;
  await takeMails();
  await send();
  const token = tokenIn(await takeMails());
  if (!token) throw new Error("no mail came with a token");
  const opened = (await unseal(subject.ctx, token))?.token;
  const { name } = credential;
  // No row stands behind it: in a tenant it is good in its seal only.
  const needsSeal = opened !== undefined && credential.home === "/verify-email";
  side.oneTimes.push({ ...credential, values: { token: opened ?? token }, needsSeal });
  if (opened) {
    side.oneTimes.push({ ...credential, name: `sealed ${name}`, values: { token }, sealed: true });
  }
}

function tokenIn(mails: Mail[]): string | undefined {
  const { token, url } = (mails.at(-1)?.data ?? {}) as { token?: string; url?: string };
  if (typeof token === "string") return token;
  return url && URL.canParse(url)
    ? (new URL(url).searchParams.get("token") ?? undefined)
    : undefined;
}

const mailMaker = (
  name: string,
  paths: [start: string, home: string],
  send: (side: Side) => Promise<unknown>,
  homeNeedsSession = false,
): Maker => ({
  name,
  paths,
  isOn: (options) => paths.every((path) => !isSwitchedOff(path, options)),
  give: OUTBOX,
  make: (side) => mailed(side, { name, home: paths[1], homeNeedsSession }, () => send(side)),
});

const otpMaker = (type: string, home: string): Maker => ({
  name: `e-mail OTP (${type})`,
  paths: [home],
  async make(side) {
    const { createVerificationOTP } = side.workshop.subject.api;
    const email = type === "email-verification" ? side.newcomerEmail : side.main.email;
    const otp = await side.inside(async () =>
      createVerificationOTP?.({ body: { email, type }, ...side.serverCall() }),
    );
    if (typeof otp !== "string") throw new Error("no code was made");
    side.oneTimes.push({ name: this.name, values: { otp, type, email }, home });
  },
});

const oneTimeToken: Maker = {
  name: "one-time token",
  paths: ["/one-time-token/generate", "/one-time-token/verify"],
  async make({ main, oneTimes }) {
    const { token } = await ok<{ token: string }>(main.browser.get("/one-time-token/generate"));
    oneTimes.push({ name: this.name, values: { token }, home: "/one-time-token/verify" });
  },
};

const sessionToken: Maker = {
  name: "session token as a token",
  paths: ["/revoke-session"],
  async make({ main: { token }, oneTimes }) {
    const values = { token, sessionToken: token };
    oneTimes.push({ name: this.name, values, home: "/revoke-session", homeNeedsSession: true });
  },
};

const MAILS: Maker[] = [
  mailMaker("reset token", ["/request-password-reset", "/reset-password"], (side) => {
    const body = { email: side.main.email, redirectTo: "/reset" };
    return ok(side.fresh().post("/request-password-reset", body));
  }),
  mailMaker("verification token", ["/send-verification-email", "/verify-email"], (side) =>
    ok(side.fresh().post("/send-verification-email", { email: side.newcomerEmail })),
  ),
  mailMaker("e-mail change token", ["/change-email", "/verify-email"], ({ main, name, workshop }) =>
    ok(
      main.browser.post("/change-email", { newEmail: `new-${name}-${workshop.mark}@example.com` }),
    ),
  ),
  mailMaker("magic link", ["/sign-in/magic-link", "/magic-link/verify"], (side) =>
    ok(side.fresh().post("/sign-in/magic-link", { email: side.main.email })),
  ),
  mailMaker(
    "deletion token",
    ["/delete-user", "/delete-user/callback"],
    ({ main }) => ok(main.browser.post("/delete-user")),
    true,
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

/** Things first: the credentials of a second factor keep the second person from signing in. */
export const makersFor = async (paths: Set<string>): Promise<Maker[]> => [
  account,
  organization,
  impersonation,
  anonymous,
  apiKey,
  ...(await enterpriseMakers(paths)),
  passkey,
  newPasskey,
  deviceCodes,
  wallet,
  ...MAILS,
  tenantInvitation,
  oneTimeToken,
  sessionToken,
  otpMaker("sign-in", "/sign-in/email-otp"),
  otpMaker("email-verification", "/email-otp/verify-email"),
  otpMaker("forget-password", "/email-otp/reset-password"),
  emailChangeOtp,
  phoneMaker("phone OTP", "/phone-number/send-otp", "/phone-number/verify"),
  phoneMaker(
    "phone OTP (reset)",
    "/phone-number/request-password-reset",
    "/phone-number/reset-password",
  ),
  oauthState,
  idToken,
  oneTap,
  twoFactor,
];
