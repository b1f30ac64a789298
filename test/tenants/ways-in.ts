import { passkey } from "@better-auth/passkey";
import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { setSessionCookie } from "better-auth/cookies";
import {
  anonymous,
  deviceAuthorization,
  emailOTP,
  genericOAuth,
  magicLink,
  oneTap,
  phoneNumber,
  siwe,
  twoFactor,
  username,
} from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { runInTenant, type SignInMethod, type TenantPolicy } from "../../src/index";
import { createAuthenticator } from "../../src/testing/authenticator";
import { mapStorage } from "../sessions/stores";
import type { Answer, Browser } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { createInstance, type InstanceOptions, PASSWORD } from "../support/instance";
import { fakeGoogleAndGitHub } from "../support/providers";

/** What passkeys are made for. */
const RP_ID = "localhost";

export const STORES = ["the database", "secondary storage", "stateless"] as const;
export type Store = (typeof STORES)[number];

const CLIENT = { clientId: "global-client", clientSecret: "global-secret" };

/** A plugin that nobody has heard of, which makes users and sessions in every way there is. */
const unknownPlugin = {
  id: "unknown",
  endpoints: {
    unknownUser: createAuthEndpoint("/unknown/user", { method: "POST" }, async (ctx) => {
      const { internalAdapter, adapter } = ctx.context;
      const email = `${crypto.randomUUID()}@example.com`;
      const user = { email, name: "Unknown", emailVerified: false };
      const how = ctx.query?.how as "createUser" | "createOAuthUser" | "adapter";
      if (how === "createUser") await internalAdapter.createUser(user, { method: "other" });
      else if (how === "createOAuthUser") {
        await internalAdapter.createOAuthUser(user, { providerId: "x", accountId: email });
      } else {
        const dates = { createdAt: new Date(), updatedAt: new Date() };
        await adapter.create({ model: "user", data: { ...user, ...dates } });
      }
      return ctx.json({ ok: true });
    }),
    unknownSession: createAuthEndpoint("/unknown/session", { method: "POST" }, async (ctx) => {
      const found = await ctx.context.internalAdapter.findUserByEmail(ctx.query?.email as string);
      if (!found) throw new Error("nobody");
      if (ctx.query?.how === "adapter") {
        const now = new Date();
        const data = { token: crypto.randomUUID(), userId: found.user.id, expiresAt: now };
        await ctx.context.adapter.create({
          model: "session",
          data: { ...data, createdAt: now, updatedAt: now },
        });
        return ctx.json({ ok: true });
      }
      const session = await ctx.context.internalAdapter.createSession(found.user.id);
      await setSessionCookie(ctx, { session, user: found.user });
      return ctx.json({ ok: true });
    }),
  },
} satisfies BetterAuthPlugin;

/** A way to get a session at a tenant. */
export interface WayIn {
  name: string;
  /** Null for a way that no policy can name. */
  method: SignInMethod | null;
  /** Somebody who is new: it makes a user. */
  makesUser: boolean;
  /** Does all of it. The last request is the one that makes the session: `beforeLast` comes before. */
  run(browser: Browser, beforeLast?: () => Promise<unknown>): Promise<Answer<unknown>>;
}

type Mails = Map<string, string>;

function plugins(mails: Mails, issuer: string): BetterAuthPlugin[] {
  let otp = 100_000;
  return [
    twoFactor(),
    emailOTP({
      generateOTP: () => String(++otp),
      sendVerificationOTP: async ({ otp, type }) => void mails.set(type, otp),
    }),
    magicLink({ sendMagicLink: async ({ token }) => void mails.set("magic", token) }),
    username(),
    phoneNumber({
      sendOTP: async ({ code }) => void mails.set("phone", code),
      signUpOnVerification: { getTempEmail: (number) => `p${number.slice(1)}@phone.example.com` },
    }),
    anonymous(),
    deviceAuthorization({ interval: "1s" }),
    siwe({
      domain: "localhost:3000",
      getNonce: async () => `nonce${++otp}`,
      verifyMessage: async () => true,
    }),
    passkey({ rpID: RP_ID }),
    oneTap(),
    genericOAuth({
      config: [
        {
          ...CLIENT,
          providerId: "corp",
          authorizationUrl: `${issuer}/oauth/authorize`,
          tokenUrl: `${issuer}/oauth/token`,
          userInfoUrl: `${issuer}/api/v4/user`,
          accountSubject: ({ profile }) => String(profile.id),
        },
      ],
    }),
    unknownPlugin,
  ];
}

function storeOptions(
  store: Store,
  storage: BetterAuthOptions["secondaryStorage"],
  updateAge = 24 * 3600,
): Partial<BetterAuthOptions> {
  if (store === "the database") return { session: { updateAge } };
  if (storage) return { secondaryStorage: storage, session: { updateAge } };
  const cookieCache = { enabled: true, strategy: "jwe", refreshCache: true } as const;
  return { database: undefined as never, session: { cookieCache } };
}

/** A tenant, on an instance with every official plugin that makes sessions, and all ways into it. */
export async function createWays(
  store: Store,
  {
    tenant,
    auth,
    arrange,
    updateAge,
  }: Pick<InstanceOptions, "tenant" | "auth" | "arrange"> & { updateAge?: number } = {},
) {
  const mails: Mails = new Map();
  const { storage, entries } = mapStorage();
  const { googleIdToken } = fakeGoogleAndGitHub();
  const idp = await startIdentityProvider();
  idp.registerClient(CLIENT.clientId, CLIENT.clientSecret);
  const instance = await createInstance({
    plugins: plugins(mails, idp.issuer),
    tenant: { scopedModels: ["deviceCode", "passkey", "walletAddress"], ...tenant },
    migrate: store !== "stateless",
    ...(arrange && { arrange }),
    auth: {
      ...storeOptions(store, store === "secondary storage" ? storage : undefined, updateAge),
      account: { storeStateStrategy: "cookie" },
      emailVerification: {
        autoSignInAfterVerification: true,
        sendVerificationEmail: async ({ token }) => void mails.set("verification", token),
      },
      socialProviders: { google: CLIENT, gitlab: { ...CLIENT, issuer: idp.issuer } },
      ...auth,
    },
  });
  const { id: tenantId } = await instance.createTenant("aa");
  const at = (headers: Record<string, string> = {}) =>
    instance.browser({ "x-tenant-id": tenantId, ...headers });
  const adapter = instance.context.adapter as unknown as DBAdapter;
  let count = 0;
  let named: string | undefined;
  const unique = () => named ?? `person-${++count}`;

  /** Somebody who is there already: with a password, a username, a passkey and a session. */
  async function settle() {
    const name = unique();
    const email = `${name}@example.com`;
    const browser = at();
    const body = { name, email, password: PASSWORD, username: name.replace("-", "_") };
    const { status, data } = await browser.post<{ user: { id: string } }>("/sign-up/email", body);
    if (status !== 200) throw new Error(JSON.stringify(data));
    await runInTenant(tenantId, () =>
      adapter.update({
        model: "user",
        where: [{ field: "id", value: data.user.id }],
        update: { emailVerified: true },
      }),
    );
    return { ...body, browser, id: data.user.id };
  }

  async function social(browser: Browser, provider: string) {
    const person = unique();
    idp.addPerson(person);
    const body = { provider, callbackURL: "/in", errorCallbackURL: "/failed" };
    const answer = await browser.post<{ url: string }>("/sign-in/social", body);
    if (answer.status >= 400) return answer;
    const back = await idp.authorize(answer.data.url, person);
    return (browser: Browser) => browser.fork({}).get(back);
  }

  const person = await settle();
  const { email, password } = person;

  const newEmail = () => `${unique()}@example.com`;
  const magicLinkFor = async (browser: Browser, address: string) => {
    const answer = await browser.post("/sign-in/magic-link", { email: address });
    if (answer.status >= 400) return answer;
    const query = { token: mails.get("magic") ?? "" };
    return (browser: Browser) => browser.get("/magic-link/verify", { query });
  };
  const otpFor = async (browser: Browser, address: string, type: string, path: string) => {
    const body = { email: address, type };
    const answer = await browser.post("/email-otp/send-verification-otp", body);
    if (answer.status >= 400) return answer;
    const otp = mails.get(type);
    return (browser: Browser) => browser.post(path, { email: address, otp });
  };

  const ways: WayIn[] = [
    way("sign-up with a password", "password", true, (browser) =>
      browser.post("/sign-up/email", { name: "New", email: newEmail(), password }),
    ),
    way("sign-in with a password", "password", false, (browser) =>
      browser.post("/sign-in/email", { email, password }),
    ),
    way("sign-in with a username", "password", false, (browser) =>
      browser.post("/sign-in/username", { username: person.username, password }),
    ),
    way("an id token", "social:google", true, (browser) =>
      browser.post("/sign-in/social", {
        provider: "google",
        idToken: {
          token: googleIdToken({ aud: CLIENT.clientId, sub: unique(), email: newEmail() }),
        },
      }),
    ),
    way("one tap", "social:google", true, (browser) =>
      browser.post("/one-tap/callback", {
        idToken: googleIdToken({ aud: CLIENT.clientId, sub: unique(), email: newEmail() }),
      }),
    ),
    way("a social callback", "social:gitlab", true, undefined, (browser) =>
      social(browser, "gitlab"),
    ),
    way("generic OAuth", "social:corp", true, undefined, (browser) => social(browser, "corp")),
    way("a magic link, new", "magic-link", true, undefined, (browser) =>
      magicLinkFor(browser, newEmail()),
    ),
    way("a magic link", "magic-link", false, undefined, (browser) => magicLinkFor(browser, email)),
    way("a code by mail, new", "email-otp", true, undefined, (browser) =>
      otpFor(browser, newEmail(), "sign-in", "/sign-in/email-otp"),
    ),
    way("a code by mail", "email-otp", false, undefined, (browser) =>
      otpFor(browser, email, "sign-in", "/sign-in/email-otp"),
    ),
    way("a phone, new", "phone", true, undefined, async (browser) => {
      const number = `+1555${String(++count).padStart(7, "0")}`;
      await browser.post("/phone-number/send-otp", { phoneNumber: number });
      const body = { phoneNumber: number, code: mails.get("phone") };
      return (browser: Browser) => browser.post("/phone-number/verify", body);
    }),
    way("a passkey", "passkey", false, undefined, async (browser) => {
      const authenticator = await createAuthenticator(RP_ID);
      await runInTenant(tenantId, () =>
        adapter.create({
          model: "passkey",
          data: {
            name: "key",
            userId: person.id,
            publicKey: authenticator.publicKey,
            credentialID: authenticator.id,
            counter: 0,
            deviceType: "singleDevice",
            backedUp: false,
            createdAt: new Date(),
          },
        }),
      );
      const path = "/passkey/generate-authenticate-options";
      const { data } = await browser.get<{ challenge: string }>(path);
      const response = await authenticator.assert(data.challenge, "http://localhost:3000");
      return (browser: Browser) => browser.post("/passkey/verify-authentication", { response });
    }),
    way("a wallet, new", "siwe", true, undefined, async (browser) => {
      const wallet = `0x${String(++count).padStart(40, "0")}`;
      const { data } = await browser.post<{ nonce: string }>("/siwe/nonce");
      return (browser: Browser) =>
        browser.post("/siwe/verify", {
          message: `localhost:3000 wants you to sign in with your Ethereum account:\n${wallet}\n\nURI: http://localhost:3000\nVersion: 1\nChain ID: 1\nNonce: ${data.nonce}`,
          signature: `0x${"ab".repeat(65)}`,
        });
    }),
    way("nobody in particular", "anonymous", true, (browser) => browser.post("/sign-in/anonymous")),
    way("a device", "device", false, undefined, async (browser) => {
      const { data } = await browser.post<{ device_code: string; user_code: string }>(
        "/device/code",
        { client_id: "tv" },
      );
      const { device_code, user_code } = data;
      await person.browser.get("/device", { query: { user_code } });
      await person.browser.post("/device/approve", { userCode: user_code });
      const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
      return (browser: Browser) =>
        browser.post("/device/token", { grant_type, device_code, client_id: "tv" });
    }),
    way("a plugin that nobody knows", null, false, (browser) =>
      browser.post(`/unknown/session?email=${email}`),
    ),
    way("a row that such a plugin writes itself", null, false, (browser) =>
      browser.post(`/unknown/session?how=adapter&email=${email}`),
    ),
  ];

  return {
    ...instance,
    tenantId,
    at,
    mails,
    idp,
    googleIdToken,
    person,
    settle,
    /** Whoever is new meanwhile has this name, and the address that goes with it. */
    async as<T>(name: string, run: () => Promise<T>): Promise<T> {
      named = name;
      return run().finally(() => {
        named = undefined;
      });
    },
    // Where there is no table, nobody can write a row into it.
    ways: ways.filter(({ name }) => store !== "secondary storage" || !name.startsWith("a row")),
    setStatus: (status: "active" | "suspended") =>
      instance.api.updateTenant({ body: { tenantId, status } }),
    setPolicy: (policy: TenantPolicy | null) =>
      instance.api.updateTenant({ body: { tenantId, policy } }),
    /** How many rows of the tenant there are. */
    count: async (model: string) => {
      const isStored = store === "secondary storage" && model === "session";
      if (isStored) return [...entries.values()].filter(isSession).length;
      return runInTenant(tenantId, () => adapter.count({ model }));
    },
  };
}

const isSession = (stored: string) => stored.includes("userId") && stored.includes("expiresAt");

type Step = (browser: Browser) => Promise<Answer<unknown>>;
type Prepared = Answer<unknown> | Step;

/** A way in by one request, or by a last one that others come before. */
const way = (
  name: string,
  method: SignInMethod | null,
  makesUser: boolean,
  last: Step | undefined,
  prepare?: (browser: Browser) => Promise<Prepared>,
): WayIn => ({
  name,
  method,
  makesUser,
  run: async (browser, beforeLast) => {
    const step = prepare ? await prepare(browser) : (last as Step);
    // Refused on the way already.
    if (typeof step !== "function") return step;
    await beforeLast?.();
    return step(browser);
  },
});

/** The code of a refusal, in the body or in the redirect. */
export function codeOf({ code, location }: Answer<unknown>): string | undefined {
  if (!location) return code;
  return new URL(location, "http://localhost").searchParams.get("error") ?? undefined;
}
