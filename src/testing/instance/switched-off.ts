import type { AuthContext, BetterAuthOptions } from "better-auth";

type IsOn = (options: BetterAuthOptions) => unknown;

const signsUp: IsOn = ({ emailAndPassword }) =>
  emailAndPassword?.enabled && !emailAndPassword.disableSignUp;

/** An option of a plugin, perhaps a nested one. */
const pluginOption =
  (id: string, ...path: string[]): IsOn =>
  ({ plugins = [] }) => {
    const options: unknown = plugins.find((plugin) => plugin.id === id)?.options;
    return path.reduce((value, name) => Object(value)[name], options);
  };

/** Endpoints of better-auth that always exist, and refuse every caller until an option is set. */
const NEEDS: [isOn: IsOn, paths: string[]][] = [
  [signsUp, ["/sign-up/email", "/tenant/sign-up/email"]],
  [
    (options) => signsUp(options) && !options.disabledPaths?.includes("/sign-up/email"),
    ["/tenant/invitation/accept"],
  ],
  [
    ({ emailAndPassword }) => emailAndPassword?.enabled,
    ["/sign-in/email", "/tenant/sign-in/email", "/change-password", "/verify-password"],
  ],
  [
    ({ emailAndPassword }) => emailAndPassword?.sendResetPassword,
    ["/request-password-reset", "/reset-password", "/reset-password/:token"],
  ],
  [
    ({ emailVerification }) => emailVerification?.sendVerificationEmail,
    ["/send-verification-email", "/verify-email"],
  ],
  [({ user }) => user?.changeEmail?.enabled, ["/change-email"]],
  [({ user }) => user?.deleteUser?.enabled, ["/delete-user", "/delete-user/callback"]],
  [({ user }) => user?.deleteUser?.sendDeleteAccountVerification, ["/delete-user/callback"]],
  [({ session }) => session?.additionalFields, ["/update-session"]],
  [
    pluginOption("email-otp", "changeEmail"),
    ["/email-otp/request-email-change", "/email-otp/change-email"],
  ],
  [
    pluginOption("phone-number", "sendPasswordResetOTP"),
    ["/phone-number/request-password-reset", "/phone-number/reset-password"],
  ],
  [
    pluginOption("two-factor", "otpOptions", "sendOTP"),
    ["/two-factor/send-otp", "/two-factor/verify-otp"],
  ],
  [
    pluginOption("sso", "saml", "enableSingleLogout"),
    ["/sso/saml2/sp/slo/:providerId", "/sso/saml2/logout/:providerId"],
  ],
];

export function isSwitchedOff(path: string, options: BetterAuthOptions, method = ""): boolean {
  // Sessions are read with POST only if reading and refreshing them are two calls.
  if (path === "/get-session" && method === "POST") return !options.session?.deferSessionRefresh;
  return NEEDS.some(([isOn, paths]) => paths.includes(path) && !isOn(options));
}

/** better-auth's own callback does nothing without a provider on the platform. */
export const hasNoCallback = (path: string, { socialProviders }: AuthContext) =>
  path === "/callback/:id" && socialProviders.length === 0;
