import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import {
  anonymous,
  bearer,
  deviceAuthorization,
  emailOTP,
  jwt,
  magicLink,
  multiSession,
  oneTimeToken,
  openAPI,
  organization,
  phoneNumber,
  siwe,
  twoFactor,
  username,
} from "better-auth/plugins";
import type { ResolveTenant } from "../../src/index";
import { createStorage, type StorageKind } from "../configurations/storages";
import { Browser } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { createInstance, type InstanceOptions } from "../support/instance";
import { fakeGoogleAndGitHub } from "../support/providers";
import { RP_ID } from "./authenticator";
import { type Address, addressOf, manyHosts, resolveByHost, SHARED_ADDRESS } from "./hosts";

/** What an application may have that the border has to hold with. */
export interface Variant {
  /** How sessions are kept in a cookie, if they are. */
  cookieCache?: "compact" | "jwt" | "jwe";
  /** Where sessions, one-time tokens and API keys live in place of the database. */
  storage?: StorageKind;
  /** Tenants are named by their host, and by nothing else. */
  hosts?: boolean;
  /** The order of the plugins. */
  arrange?: InstanceOptions["arrange"];
}

/** The tables of plugins that are looked up by more than the id of their user. */
const scopedModels = [
  "organization",
  "member",
  "team",
  "teamMember",
  "invitation",
  "deviceCode",
  "passkey",
  "apikey",
  "twoFactor",
  "walletAddress",
];

/** What a tenant can be named by in the matrix when the application resolves it. */
export const RESOLVED_HEADER = "x-resolved-tenant";

interface Mail {
  kind: string;
  secret: string;
}

type Send = (kind: string, secret: string) => void;

/** better-auth with nearly all of its official plugins, and a box that all its mails go to. */
export async function createFullInstance(variant: Variant) {
  const mails: Mail[] = [];
  const send: Send = (kind, secret) => void mails.push({ kind, secret });
  const google = fakeGoogleAndGitHub();
  const idp = await startIdentityProvider();
  // The state of the database is put back after each request; the provider has to play along.
  idp.rules.codesAreGoodOnce = false;
  idp.registerClient("gitlab-platform", "gitlab-secret-platform");
  /** All that is in secondary storage. */
  const entries = new Map<string, string>();

  const instance = await createInstance({
    plugins: nearlyAllPlugins(variant, send),
    tenant: { scopedModels, resolveTenantId: variant.hosts ? resolveByHost : resolveByHeader },
    auth: { ...authOptions(send, idp.issuer), ...variantOptions(variant, entries) },
    ...(variant.arrange && { arrange: variant.arrange }),
  });

  return {
    ...instance,
    google,
    idp,
    entries,

    addressOf: (slug: string | null) => (variant.hosts ? addressOf(slug) : SHARED_ADDRESS),

    browserAt: ({ origin, host }: Address, headers: Record<string, string> = {}) =>
      new Browser(instance.auth.handler, `${origin}/api/auth`, {
        ...(host && { host }),
        ...headers,
      }),

    /** The secret in the newest mail of a kind. */
    lastMail(kind: string): string {
      const mail = mails.findLast((candidate) => candidate.kind === kind);
      if (!mail) throw new Error(`no mail: ${kind}`);
      return mail.secret;
    },
  };
}

export type FullInstance = Awaited<ReturnType<typeof createFullInstance>>;

const resolveByHeader: ResolveTenant = ({ headers, request }) =>
  (headers ?? request?.headers)?.get(RESOLVED_HEADER);

/** On a slow machine a run takes longer than most codes are good for. */
const HOUR = 3600;

function nearlyAllPlugins({ storage }: Variant, send: Send): BetterAuthPlugin[] {
  let otp = 100_000;
  // Codes of six digits would be the same on two sides now and then.
  const nextOtp = () => String(++otp);
  return [
    organization({ teams: { enabled: true } }),
    twoFactor({
      otpOptions: { period: HOUR / 60, sendOTP: async (data) => send("two-factor", data.otp) },
      twoFactorCookieMaxAge: HOUR,
    }),
    emailOTP({
      expiresIn: HOUR,
      generateOTP: nextOtp,
      sendVerificationOTP: async (data) => send(`otp ${data.type}`, data.otp),
    }),
    magicLink({ expiresIn: HOUR, sendMagicLink: async ({ token }) => send("magic link", token) }),
    username(),
    phoneNumber({ expiresIn: HOUR, sendOTP: async ({ code }) => send("phone", code) }),
    anonymous(),
    multiSession(),
    bearer(),
    jwt(),
    oneTimeToken({ expiresIn: HOUR / 60 }),
    deviceAuthorization({ interval: "1s" }),
    siwe({
      domain: "localhost:3000",
      getNonce: async () => `nonce${nextOtp()}`,
      verifyMessage: async () => true,
    }),
    openAPI(),
    passkey({ rpID: RP_ID }),
    apiKey({
      enableSessionForAPIKeys: true,
      rateLimit: { enabled: false },
      storage: storage ? "secondary-storage" : "database",
    }),
  ];
}

function authOptions(send: Send, issuer: string) {
  return {
    emailAndPassword: {
      enabled: true,
      sendResetPassword: async ({ token }) => send("reset", token),
    },
    emailVerification: {
      autoSignInAfterVerification: true,
      sendVerificationEmail: async ({ token }) => send("verification", token),
    },
    user: {
      changeEmail: { enabled: true },
      deleteUser: {
        enabled: true,
        sendDeleteAccountVerification: async ({ token }) => send("deletion", token),
      },
    },
    account: { storeStateStrategy: "database" },
    socialProviders: {
      google: { clientId: "google-platform", clientSecret: "google-secret-platform" },
      gitlab: { clientId: "gitlab-platform", clientSecret: "gitlab-secret-platform", issuer },
    },
  } satisfies BetterAuthOptions;
}

function variantOptions(
  { cookieCache: strategy, storage, hosts }: Variant,
  entries: Map<string, string>,
): BetterAuthOptions {
  return {
    ...(strategy && { session: { cookieCache: { enabled: true, strategy, maxAge: HOUR } } }),
    ...(storage && { secondaryStorage: createStorage(storage, entries) }),
    ...(hosts && { baseURL: manyHosts }),
  };
}
