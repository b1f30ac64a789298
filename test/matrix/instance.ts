import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import type { BetterAuthPlugin } from "better-auth";
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
import { startIdentityProvider } from "../support/identity-provider";
import { createInstance } from "../support/instance";
import { fakeGoogleAndGitHub } from "../support/providers";

export interface Variant {
  cookieCache: boolean;
  scopedModels: string[];
}

/** What a tenant can be named by in the matrix when the application resolves it. */
export const RESOLVED_HEADER = "x-resolved-tenant";

interface Mail {
  kind: string;
  secret: string;
}

/** better-auth with nearly all of its official plugins, and a box that all its mails go to. */
export async function createFullInstance({ cookieCache, scopedModels }: Variant) {
  const mails: Mail[] = [];
  let otp = 100_000;
  // Codes of six digits would be the same on two sides now and then.
  const nextOtp = () => String(++otp);
  const send = (kind: string, secret: string) => void mails.push({ kind, secret });
  const google = fakeGoogleAndGitHub();
  const idp = await startIdentityProvider();
  // The state of the database is put back after each request; the provider has to play along.
  idp.rules.codesAreGoodOnce = false;
  idp.registerClient("gitlab-platform", "gitlab-secret-platform");

  const plugins: BetterAuthPlugin[] = [
    organization({ teams: { enabled: true } }),
    twoFactor({ otpOptions: { sendOTP: async (data) => send("two-factor", data.otp) } }),
    emailOTP({
      generateOTP: nextOtp,
      sendVerificationOTP: async (data) => send(`otp ${data.type}`, data.otp),
    }),
    magicLink({ sendMagicLink: async ({ token }) => send("magic link", token) }),
    username(),
    phoneNumber({ sendOTP: async ({ code }) => send("phone", code) }),
    anonymous(),
    multiSession(),
    bearer(),
    jwt(),
    oneTimeToken(),
    deviceAuthorization({ interval: "1s" }),
    siwe({
      domain: "localhost:3000",
      getNonce: async () => `nonce${nextOtp()}`,
      verifyMessage: async () => true,
    }),
    openAPI(),
    passkey(),
    apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } }),
  ];

  const instance = await createInstance({
    plugins,
    tenant: {
      scopedModels,
      resolveTenantId: ({ headers, request }) =>
        (headers ?? request?.headers)?.get(RESOLVED_HEADER),
    },
    auth: {
      session: { cookieCache: { enabled: cookieCache } },
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
        gitlab: {
          clientId: "gitlab-platform",
          clientSecret: "gitlab-secret-platform",
          issuer: idp.issuer,
        },
      },
    },
  });

  return {
    ...instance,
    google,
    idp,

    /** The secret in the newest mail of a kind. */
    lastMail(kind: string): string {
      const mail = mails.findLast((candidate) => candidate.kind === kind);
      if (!mail) throw new Error(`no mail: ${kind}`);
      return mail.secret;
    },
  };
}

export type FullInstance = Awaited<ReturnType<typeof createFullInstance>>;
