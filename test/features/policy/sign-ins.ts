import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
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
import { policyOptions } from "../../../src/features/policy/options";
import { runInTenant, type SignInMethod, type TenantPolicy } from "../../../src/index";
import { createAuthenticator } from "../../../src/testing/makers/authenticator";
import type { Answer, Browser } from "../../support/browser";
import { startIdentityProvider } from "../../support/identity-provider";
import { type InstanceOptions, PASSWORD } from "../../support/instance";
import { fakeGoogleAndGitHub } from "../../support/providers";
import { mapStorage } from "../../support/stores";
import { approveDevice, createWorld, type Person, type WorldOptions } from "../../support/world";

export const STORES = ["the database", "secondary storage"] as const;
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
      const { how } = ctx.query as { how: "createUser" | "createOAuthUser" | "adapter" };
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
      const { internalAdapter } = ctx.context;
      const found = await internalAdapter.findUserByEmail(ctx.query?.email as string);
      if (!found) throw new Error("nobody");
      const session = await internalAdapter.createSession(found.user.id);
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

const makePlugins =
  (issuer: string, more: BetterAuthPlugin[]): NonNullable<WorldOptions["plugins"]> =>
  (send) => {
    let count = 100_000;
    return [
      ...more,
      twoFactor(),
      emailOTP({ generateOTP: () => String(++count), sendVerificationOTP: send("otp") }),
      magicLink({ sendMagicLink: send("magic") }),
      username(),
      phoneNumber({
        sendOTP: send("phone"),
        signUpOnVerification: { getTempEmail: (number) => `p${number.slice(1)}@phone.example.com` },
      }),
      anonymous(),
      deviceAuthorization({ interval: "1s" }),
      wallets(),
      passkey({ rpID: "localhost" }),
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
  };

type WaysOptions = Pick<InstanceOptions, "tenant" | "auth" | "arrange"> & {
  updateAge?: number;
  plugins?: BetterAuthPlugin[];
  place?: "acme" | "platform";
};

/** A world with every official plugin that makes sessions, and all ways into Acme, or the platform. */
export async function createWays(store: Store, options: WaysOptions = {}) {
  const { tenant, auth, arrange, updateAge = 24 * 3600, plugins = [], place = "acme" } = options;
  const { storage, entries } = mapStorage();
  const stored: Record<Store, Partial<BetterAuthOptions>> = {
    "the database": { session: { updateAge } },
    "secondary storage": { secondaryStorage: storage, session: { updateAge } },
  };
  const { googleIdToken } = fakeGoogleAndGitHub();
  const idp = await startIdentityProvider();
  idp.registerClient(CLIENT.clientId, CLIENT.clientSecret);
  const world = await createWorld({
    plugins: makePlugins(idp.issuer, plugins),
    tenant: { scopedModels: ["deviceCode", "passkey", "walletAddress"], ...tenant },
    ...(arrange && { arrange }),
    auth: {
      ...stored[store],
      account: { storeStateStrategy: "cookie" },
      emailVerification: { autoSignInAfterVerification: true },
      socialProviders: { google: CLIENT, gitlab: { ...CLIENT, issuer: idp.issuer } },
      ...auth,
    },
  });
  const adapter = world.context.adapter as unknown as DBAdapter;
  const inside = <T>(run: () => Promise<T>) =>
    place === "acme" ? runInTenant(world.ids.acme, run) : run();
  let count = 0;
  let called: string | undefined;
  const unique = () => called ?? `person-${++count}`;

  /** Somebody who is there already: with a password, a username and a session. */
  async function settle() {
    const name = unique();
    const username = name.replace("-", "_");
    const person = await world.signUp(place, `${name}@example.com`, { username });
    const { updateUser } = world.context.internalAdapter;
    await inside(() => updateUser(person.id, { emailVerified: true }));
    return person;
  }

  const person = await settle();
  const parts = { world, adapter, inside, idp, googleIdToken, person, unique, next: () => ++count };
  const ways = [...directWays(parts), ...mailedWays(parts), ...otherWays(parts)].map(asWay);
  return {
    ...world,
    idp,
    googleIdToken,
    person,
    settle,
    /** Somebody at the place, who is nobody yet. */
    visitor: (headers: Record<string, string> = {}) =>
      world.browser({ ...world.naming(place), ...headers }),
    /** Whoever is new meanwhile has this name, and the address that goes with it. */
    async calling<T>(name: string, run: () => Promise<T>): Promise<T> {
      called = name;
      return run().finally(() => {
        called = undefined;
      });
    },
    ways,
    setPolicy: async (policy: TenantPolicy | null) => {
      if (place === "acme") return void (await world.change("acme", { policy }));
      // An application sets it when it starts, and other processes are still without.
      const options = policyOptions(world.context as never);
      if (policy) options.platformPolicy = policy;
      else delete options.platformPolicy;
    },
    /** How many users and sessions the place has. */
    people: async () => {
      const of = (model: string) => inside(() => adapter.count({ model }));
      const isSession = (text: string) => text.includes("userId") && text.includes("expiresAt");
      const isStored = store === "secondary storage";
      const sessions = isStored ? [...entries.values()].filter(isSession).length : of("session");
      return { users: await of("user"), sessions: await sessions };
    },
  };
}

interface Parts {
  world: Awaited<ReturnType<typeof createWorld>>;
  adapter: DBAdapter;
  inside: <T>(run: () => Promise<T>) => Promise<T>;
  idp: Awaited<ReturnType<typeof startIdentityProvider>>;
  googleIdToken: ReturnType<typeof fakeGoogleAndGitHub>["googleIdToken"];
  person: Person;
  unique: () => string;
  next: () => number;
}

type Step = (browser: Browser) => Promise<Answer<unknown>>;

/**
 * Does all of a way in but for the last request, which it answers with; or with an answer, where one
 * of the requests before was refused.
 */
type Prepare = (browser: Browser) => Promise<Answer<unknown> | Step>;
type Way = [name: string, method: SignInMethod | null, makesUser: boolean, prepare: Prepare];

const asWay = ([name, method, makesUser, prepare]: Way): WayIn => ({
  name,
  method,
  makesUser,
  run: async (browser, beforeLast) => {
    const last = await prepare(browser);
    if (typeof last !== "function") return last;
    await beforeLast?.();
    return last(browser);
  },
});

function directWays({ person: { email }, unique, googleIdToken }: Parts): Way[] {
  const password = PASSWORD;
  const newEmail = () => `${unique()}@example.com`;
  const token = () => {
    const address = newEmail();
    return googleIdToken({ aud: CLIENT.clientId, sub: address, email: address });
  };
  const signUp = () => ({ name: "New", email: newEmail(), password });
  const signIn = () => ({ email, password, username: "person_1" });
  const social = () => ({ provider: "google", idToken: { token: token() } });
  const unknown = `/unknown/session?email=${email}`;
  const post =
    (path: string, bodyOf = (): object => ({})): Prepare =>
    async () =>
    (browser) =>
      browser.post(path, bodyOf());
  const tap = post("/one-tap/callback", () => ({ idToken: token() }));
  return [
    ["sign-up with a password", "password", true, post("/sign-up/email", signUp)],
    ["sign-in with a password", "password", false, post("/sign-in/email", signIn)],
    ["sign-in with a username", "password", false, post("/sign-in/username", signIn)],
    ["an id token", "social:google", true, post("/sign-in/social", social)],
    ["one tap", "social:google", true, tap],
    ["nobody in particular", "anonymous", true, post("/sign-in/anonymous")],
    ["a plugin that nobody knows", null, false, post(unknown)],
  ];
}

function mailedWays({ world, person, unique, next }: Parts): Way[] {
  const newEmail = () => `${unique()}@example.com`;
  const known = () => person.email;
  const magic = (address: () => string) => async (browser: Browser) => {
    const answer = await browser.post("/sign-in/magic-link", { email: address() });
    if (answer.status >= 400) return answer;
    const { token } = world.lastMail("magic");
    return (browser: Browser) => browser.get("/magic-link/verify", { query: { token } });
  };
  const code = (address: () => string) => async (browser: Browser) => {
    const body = { email: address(), type: "sign-in" };
    const answer = await browser.post("/email-otp/send-verification-otp", body);
    if (answer.status >= 400) return answer;
    const { code: otp } = world.lastMail("otp");
    return (browser: Browser) => browser.post("/sign-in/email-otp", { email: body.email, otp });
  };
  const phone: Prepare = async (browser) => {
    const phoneNumber = `+1555${String(next()).padStart(7, "0")}`;
    await browser.post("/phone-number/send-otp", { phoneNumber });
    const body = { phoneNumber, code: world.lastMail("phone").code };
    return (browser) => browser.post("/phone-number/verify", body);
  };
  return [
    ["a magic link, new", "magic-link", true, magic(newEmail)],
    ["a magic link", "magic-link", false, magic(known)],
    ["a code by mail, new", "email-otp", true, code(newEmail)],
    ["a code by mail", "email-otp", false, code(known)],
    ["a phone, new", "phone", true, phone],
  ];
}

let nonces = 1000;
/** siwe(), with a server that takes every signature. */
export const wallets = (options: Partial<Parameters<typeof siwe>[0]> = {}) =>
  siwe({
    domain: "localhost:3000",
    getNonce: async () => `nonce${++nonces}`,
    verifyMessage: async () => true,
    ...options,
  });

export async function signInByWallet(browser: Browser, address: string, more: object = {}) {
  const { nonce } = (await browser.post<{ nonce: string }>("/siwe/nonce")).data;
  return browser.post("/siwe/verify", { ...walletProof(address, nonce), ...more });
}

/** What a wallet signs. */
function walletProof(address: string, nonce: string) {
  const asks = "localhost:3000 wants you to sign in with your Ethereum account:";
  const facts = `URI: http://localhost:3000\nVersion: 1\nChain ID: 1\nNonce: ${nonce}`;
  return { message: `${asks}\n${address}\n\n${facts}`, signature: `0x${"ab".repeat(65)}` };
}

function otherWays({ adapter, inside, idp, person, unique, next }: Parts): Way[] {
  const social = (provider: string) => async (browser: Browser) => {
    const name = unique();
    idp.addPerson(name);
    const body = { provider, callbackURL: "/in", errorCallbackURL: "/failed" };
    const answer = await browser.post<{ url: string }>("/sign-in/social", body);
    if (answer.status >= 400) return answer;
    const back = await idp.authorize(answer.data.url, name);
    return (browser: Browser) => browser.fork({}).get(back);
  };
  const byPasskey: Prepare = async (browser) => {
    const { publicKey, id: credentialID, assert } = await createAuthenticator("localhost");
    const key = { name: "key", userId: person.id, publicKey, credentialID, counter: 0 };
    const data = { ...key, deviceType: "singleDevice", backedUp: false, createdAt: new Date() };
    await inside(() => adapter.create({ model: "passkey", data }));
    const path = "/passkey/generate-authenticate-options";
    const { challenge } = (await browser.get<{ challenge: string }>(path)).data;
    const response = await assert(challenge, "http://localhost:3000");
    return (browser) => browser.post("/passkey/verify-authentication", { response });
  };
  const wallet: Prepare = async (browser) => {
    const address = `0x${String(next()).padStart(40, "0")}`;
    const { nonce } = (await browser.post<{ nonce: string }>("/siwe/nonce")).data;
    return (browser) => browser.post("/siwe/verify", walletProof(address, nonce));
  };
  const device: Prepare = async (browser) => {
    const body = await approveDevice(browser, person);
    return (browser) => browser.post("/device/token", body);
  };
  return [
    ["a social callback", "social:gitlab", true, social("gitlab")],
    ["generic OAuth", "social:corp", true, social("corp")],
    ["a passkey", "passkey", false, byPasskey],
    ["a wallet, new", "siwe", true, wallet],
    ["a device", "device", false, device],
  ];
}

/** The code of a refusal, in the body or in the redirect. */
export function codeOf({ code, location }: Answer<unknown>): string | undefined {
  if (!location) return code;
  return new URL(location, "http://localhost").searchParams.get("error") ?? undefined;
}

const ENDPOINT = /createAuthEndpoint\("([^"]+)"/g;

const PACKAGES = "passkey api-key electron expo i18n mcp oauth-provider stripe".split(" ");

/** The code of better-auth and of plugins that are packages of their own. */
const sources = (packages: string[]): { name: string; code: string }[] =>
  ["better-auth", ...packages.map((name) => `@better-auth/${name}`)]
    .map((name) => dirname(fileURLToPath(import.meta.resolve(name))))
    .flatMap((root) =>
      readdirSync(root, { recursive: true, encoding: "utf8" }).map((file) => join(root, file)),
    )
    .filter((name) => /\.m?js$/.test(name))
    .map((name) => ({ name, code: readFileSync(name, "utf8") }));

/**
 * Every endpoint of better-auth and its official plugins whose code has a call in it, by itself or
 * in a function above the endpoints of its file: then the file is named. `helpers` are files that
 * do it for whichever endpoint asks, and have no path of their own.
 */
export function endpointsThatCall(calls: RegExp, helpers: string[], packages = PACKAGES): string[] {
  return sources(packages).flatMap(({ name, code }) => {
    const isHelper = helpers.some((helper) => name.includes(helper)) || name.includes("/client");
    if (isHelper || !calls.test(code)) return [];
    const starts = [...code.matchAll(ENDPOINT)];
    const found = starts.flatMap((start, index) => {
      const text = code.slice(start.index, starts[index + 1]?.index);
      return calls.test(text) ? [start[1] ?? ""] : [];
    });
    const before = code.slice(0, starts[0]?.index);
    // A helper above the endpoints of its file does it for one of them.
    const inHelper = calls.test(before.replace(/^(async )?function|import .*$/gm, ""));
    return inHelper && !found.length ? [name] : found;
  });
}
