import type { AuthContext, BetterAuthOptions } from "better-auth";

type IsOn = (options: BetterAuthOptions) => unknown;

const resets: IsOn = ({ emailAndPassword }) => emailAndPassword?.sendResetPassword;
const verifies: IsOn = ({ emailVerification }) => emailVerification?.sendVerificationEmail;
const deletes: IsOn = ({ user }) => user?.deleteUser?.enabled;
const confirmsDeletion: IsOn = ({ user }) => user?.deleteUser?.sendDeleteAccountVerification;
const passwords: IsOn = ({ emailAndPassword }) => emailAndPassword?.enabled;
const signsUp: IsOn = ({ emailAndPassword }) =>
  emailAndPassword?.enabled && !emailAndPassword.disableSignUp;

/** An option of a plugin. */
const pluginOption =
  (id: string, option: string): IsOn =>
  ({ plugins = [] }) => {
    const options = plugins.find((plugin) => plugin.id === id)?.options as
      | Record<string, unknown>
      | undefined;
    return options?.[option];
  };

const changesByOtp = pluginOption("email-otp", "changeEmail");
const resetsByPhone = pluginOption("phone-number", "sendPasswordResetOTP");
const logsOutBySaml: IsOn = (options) => {
  const saml = pluginOption("sso", "saml")(options) as { enableSingleLogout?: boolean } | undefined;
  return saml?.enableSingleLogout;
};

const sendsSecondFactor: IsOn = (options) => {
  const otp = pluginOption("two-factor", "otpOptions")(options) as
    | { sendOTP?: unknown }
    | undefined;
  return otp?.sendOTP;
};

/** Endpoints of better-auth that are there in any case, and refuse everybody until an option is set. */
const NEEDS: Record<string, IsOn> = {
  "/sign-up/email": signsUp,
  "/tenant/sign-up/email": signsUp,
  "/tenant/invitation/accept": (options) =>
    signsUp(options) && !options.disabledPaths?.includes("/sign-up/email"),
  "/sign-in/email": passwords,
  "/tenant/sign-in/email": passwords,
  "/change-password": passwords,
  "/verify-password": passwords,
  "/request-password-reset": resets,
  "/reset-password": resets,
  "/reset-password/:token": resets,
  "/send-verification-email": verifies,
  "/verify-email": verifies,
  "/change-email": ({ user }) => user?.changeEmail?.enabled,
  "/update-session": ({ session }) => session?.additionalFields,
  "/email-otp/request-email-change": changesByOtp,
  "/email-otp/change-email": changesByOtp,
  "/phone-number/request-password-reset": resetsByPhone,
  "/phone-number/reset-password": resetsByPhone,
  "/two-factor/send-otp": sendsSecondFactor,
  "/two-factor/verify-otp": sendsSecondFactor,
  "/sso/saml2/sp/slo/:providerId": logsOutBySaml,
  "/sso/saml2/logout/:providerId": logsOutBySaml,
  "/delete-user": deletes,
  "/delete-user/callback": (options) => deletes(options) && confirmsDeletion(options),
};

export function isSwitchedOff(path: string, options: BetterAuthOptions, method = ""): boolean {
  // A session is asked for by POST only where reading and prolonging it are two things.
  if (path === "/get-session" && method === "POST") return !options.session?.deferSessionRefresh;
  const isOn = NEEDS[path];
  return isOn !== undefined && !isOn(options);
}

/** better-auth's own callback is good for nothing without a provider on the platform. */
export const hasNoCallback = (path: string, { socialProviders }: AuthContext) =>
  path === "/callback/:id" && socialProviders.length === 0;
