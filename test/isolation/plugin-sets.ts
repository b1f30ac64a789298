import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import type { BetterAuthPlugin } from "better-auth";
import {
  anonymous,
  bearer,
  captcha,
  customSession,
  deviceAuthorization,
  emailOTP,
  genericOAuth,
  haveIBeenPwned,
  jwt,
  lastLoginMethod,
  magicLink,
  multiSession,
  oneTap,
  oneTimeToken,
  openAPI,
  organization,
  phoneNumber,
  siwe,
  twoFactor,
  username,
} from "better-auth/plugins";
import { tenantInvitations } from "../../src/invitations/index";

interface PluginSet {
  plugins: BetterAuthPlugin[];
  scopedModels: string[];
}

/** On a slow machine a run takes longer than most codes are good for. */
const HOUR = 3600;

const never = async () => {
  throw new Error("the kit was to stand in for this sender");
};

/** Organizations and teams, and our own invitations beside theirs. */
const groups = (): PluginSet => ({
  plugins: [
    organization({ teams: { enabled: true } }),
    bearer(),
    tenantInvitations({ sendInvitationEmail: never }),
  ],
  scopedModels: ["organization", "member", "team", "teamMember", "invitation"],
});

/** Everything that is sent to people. */
const codes = (): PluginSet => ({
  plugins: [
    twoFactor({
      otpOptions: { period: HOUR / 60, sendOTP: never },
      twoFactorCookieMaxAge: HOUR,
    }),
    emailOTP({
      expiresIn: HOUR,
      changeEmail: { enabled: true },
      sendVerificationOTP: async () => {},
    }),
    magicLink({ expiresIn: HOUR, sendMagicLink: never }),
    phoneNumber({
      expiresIn: HOUR,
      sendOTP: async () => {},
      sendPasswordResetOTP: async () => {},
    }),
    oneTimeToken({ expiresIn: HOUR / 60 }),
  ],
  scopedModels: ["twoFactor"],
});

/** Everything that people and machines keep. */
const keys = (inStorage: boolean): PluginSet => ({
  plugins: [
    passkey(),
    apiKey({
      enableSessionForAPIKeys: true,
      rateLimit: { enabled: false },
      storage: inStorage ? "secondary-storage" : "database",
    }),
    deviceAuthorization({ interval: "1s", expiresIn: "1h" }),
    siwe({ domain: "localhost:3000", getNonce: nonce, verifyMessage: async () => false }),
    jwt(),
    bearer(),
    multiSession(),
  ],
  scopedModels: ["passkey", "apikey", "deviceCode", "walletAddress"],
});

const nonce = async () => `nonce${Math.random().toString(36).slice(2)}`;

/** Those that have little to do with tenants, or so one would think. */
const others = (): PluginSet => ({
  plugins: [
    username(),
    anonymous(),
    captcha({ provider: "cloudflare-turnstile", secretKey: "key" }),
    customSession(async ({ user, session }) => ({ user, session, custom: true })),
    genericOAuth({ config: [] }),
    haveIBeenPwned(),
    lastLoginMethod(),
    oneTap(),
    openAPI(),
  ],
  scopedModels: [],
});

export const PLUGIN_SETS = {
  none: (): PluginSet => ({ plugins: [], scopedModels: [] }),
  groups,
  codes,
  keys,
  others,
  /** With the admin plugin, which every test instance has, all 23 official ones that we know of, and ours. */
  all: (inStorage: boolean): PluginSet => {
    const sets = [groups(), codes(), keys(inStorage), others()];
    const plugins = new Map(sets.flatMap(({ plugins }) => plugins.map((one) => [one.id, one])));
    return {
      plugins: [...plugins.values()],
      scopedModels: sets.flatMap(({ scopedModels }) => scopedModels),
    };
  },
} satisfies Record<string, (inStorage: boolean) => PluginSet>;
