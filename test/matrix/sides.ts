import type { AuthContext } from "better-auth";
import type { DBAdapter } from "better-auth/types";
import { unseal } from "../../src/border/seal";
import { runInTenant } from "../../src/index";
import type { Answer, Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { createAuthenticator } from "./authenticator";
import type { Address } from "./hosts";
import type { FullInstance } from "./instance";

/** The three sides of the border: two tenants, and the platform. */
export const SIDES = ["a", "b", "platform"] as const;
export type SideName = (typeof SIDES)[number];

/** Everybody has the same e-mail addresses on every side. */
const EMAIL = "everywhere@example.com";
const SECOND_EMAIL = "second@example.com";

/** Something that is shown once, together with what better-auth expects beside it. */
export interface OneTime {
  name: string;
  /** Input fields that it goes into. */
  values: Record<string, unknown>;
  cookies?: Map<string, string>;
  /** Where it is good, and whether somebody has to be signed in there. */
  home: string;
  homeNeedsSession?: boolean;
  /** Carries its tenant in a seal, and leads there where no tenant is named. */
  sealed?: boolean;
  /** Taken out of its seal it is good for nothing, at home neither. */
  needsSeal?: boolean;
}

/**
 * One side of the border, with a person that has everything one can have there: sessions, an
 * organization, keys, and one of each kind of one-time credential on its way.
 */
export async function settleSide(
  instance: FullInstance,
  name: SideName,
  tenantId: string | null,
  address: Address,
) {
  const isNamed = tenantId !== null && address.host === undefined;
  const named: Record<string, string> = isNamed ? { "x-tenant-id": tenantId } : {};
  const number = SIDES.indexOf(name) + 1;
  const fresh = () => instance.browserAt(address, named);
  const inside = <T>(run: () => Promise<T>) =>
    tenantId === null ? run() : runInTenant(tenantId, run);

  const { userId } = await signUp(fresh(), EMAIL, `main-person-${name}`, `username_${name}`);
  const second = await signUp(fresh(), SECOND_EMAIL, `second-person-${name}`, `second_${name}`);
  const phoneNumber = `+1555000${number}${number}${number}`;
  const { quote, query } = instance.database;
  await query(
    `update ${quote("user")} set ${quote("phoneNumber")} = ?, role = ? where ${quote("id")} = ?`,
    // The operators of the platform may see all. Ordinary people of the platform may not.
    [phoneNumber, name === "platform" ? "user" : "admin", userId],
  );
  // A session that is kept outside the database knows the role from when it was made.
  const main = await signIn(fresh(), EMAIL);

  const organization = await ok<{ id: string; slug: string; members: { id: string }[] }>(
    main.browser.post("/organization/create", {
      name: `Organization of ${name}`,
      slug: `organization-${name}`,
    }),
  );
  const team = await ok<{ id: string }>(
    main.browser.post("/organization/create-team", {
      name: `team-${name}`,
      organizationId: organization.id,
    }),
  );
  const other = await ok<{ id: string }>(
    second.browser.post("/organization/create", {
      name: `Other organization of ${name}`,
      slug: `other-organization-${name}`,
    }),
  );
  const invitation = await ok<{ id: string }>(
    second.browser.post("/organization/invite-member", {
      email: EMAIL,
      role: "member",
      organizationId: other.id,
    }),
  );
  const apiKey = await ok<{ id: string; key: string }>(
    main.browser.post("/api-key/create", { name: `key-of-${name}` }),
  );
  const authenticator = createAuthenticator();
  // The type in the context says which options it was made with, and fits no other adapter.
  const adapter = instance.context.adapter as unknown as DBAdapter;
  const passkey = await inside(() =>
    adapter.create<Record<string, unknown>, { id: string }>({
      model: "passkey",
      data: {
        name: `passkey-of-${name}`,
        userId: main.userId,
        publicKey: authenticator.publicKey,
        credentialID: authenticator.id,
        counter: 0,
        deviceType: "singleDevice",
        backedUp: false,
        createdAt: new Date(),
      },
    }),
  );
  const [account] = await ok<{ id: string }[]>(main.browser.get("/list-accounts"));
  const client_id = `device-client-${name}`;
  const startDevice = () =>
    ok<{ device_code: string; user_code: string }>(fresh().post("/device/code", { client_id }));
  const approved = await startDevice();
  await ok(main.browser.get("/device", { query: { user_code: approved.user_code } }));
  await ok(main.browser.post("/device/approve", { userCode: approved.user_code }));
  const pending = await startDevice();

  const passkeyChallenge = async () => {
    const browser = fresh();
    const { challenge } = await ok<{ challenge: string }>(
      browser.get("/passkey/generate-authenticate-options"),
    );
    return { challenge, cookies: browser.cookies };
  };
  const siweNonce = async () => (await ok<{ nonce: string }>(fresh().post("/siwe/nonce"))).nonce;
  const wallet = `0x${String(number).repeat(40)}`;
  const siweMessage = (nonce: string) => ({
    message: `localhost:3000 wants you to sign in with your Ethereum account:\n${wallet}\n\nURI: http://localhost:3000\nVersion: 1\nChain ID: 1\nNonce: ${nonce}`,
    signature: `0x${"ab".repeat(65)}`,
  });
  await ok(fresh().post("/siwe/verify", siweMessage(await siweNonce())));

  /** Values that a request about this side's people and things would carry. */
  const things = {
    userId: main.userId,
    user_id: main.userId,
    email: EMAIL,
    username: `username_${name}`,
    phoneNumber,
    accountId: account?.id,
    sessionToken: main.token,
    organizationId: organization.id,
    organizationSlug: organization.slug,
    teamId: team.id,
    memberId: organization.members[0]?.id,
    memberIdOrEmail: organization.members[0]?.id,
    invitationId: invitation.id,
    keyId: apiKey.id,
    passkeyId: passkey.id,
    client_id,
    userCode: pending.user_code,
    user_code: pending.user_code,
    device_code: approved.device_code,
    tenantId: tenantId ?? undefined,
    token: main.token,
  };

  /** One of each kind, made the way that people get them. */
  async function oneTimeCredentials(): Promise<OneTime[]> {
    const list: OneTime[] = [];
    const mailed = async (kind: string, mail: string, home: string, homeNeedsSession = false) => {
      const token = instance.lastMail(mail);
      const opened = (await unseal(instance.context as unknown as AuthContext, token))?.token;
      const common = { home, homeNeedsSession };
      list.push({ name: kind, values: { token: opened ?? token }, ...common });
      // No row stands behind it: in a tenant it is good in its seal only.
      if (opened && home === "/verify-email") Object.assign(list.at(-1) ?? {}, { needsSeal: true });
      if (opened) list.push({ name: `sealed ${kind}`, values: { token }, ...common, sealed: true });
    };

    await ok(fresh().post("/request-password-reset", { email: EMAIL, redirectTo: "/reset" }));
    await mailed("reset token", "reset", "/reset-password");
    await ok(fresh().post("/send-verification-email", { email: EMAIL }));
    await mailed("verification token", "verification", "/verify-email");
    await ok(main.browser.post("/change-email", { newEmail: `new-${name}@example.com` }));
    await mailed("e-mail change token", "verification", "/verify-email");
    await ok(fresh().post("/sign-in/magic-link", { email: EMAIL }));
    await mailed("magic link", "magic link", "/magic-link/verify");
    await ok(main.browser.post("/delete-user", {}));
    await mailed("deletion token", "deletion", "/delete-user/callback", true);
    const { token } = await ok<{ token: string }>(main.browser.get("/one-time-token/generate"));
    list.push({ name: "one-time token", values: { token }, home: "/one-time-token/verify" });
    list.push({
      name: "session token as a token",
      values: { token: main.token, sessionToken: main.token },
      home: "/revoke-session",
      homeNeedsSession: true,
    });

    for (const [type, home] of [
      ["sign-in", "/sign-in/email-otp"],
      ["email-verification", "/email-otp/verify-email"],
      ["forget-password", "/email-otp/reset-password"],
    ] as const) {
      await ok(fresh().post("/email-otp/send-verification-otp", { email: EMAIL, type }));
      const otp = instance.lastMail(`otp ${type}`);
      list.push({ name: `e-mail OTP (${type})`, values: { otp, type }, home });
    }
    await ok(fresh().post("/phone-number/send-otp", { phoneNumber }));
    const code = instance.lastMail("phone");
    list.push({ name: "phone OTP", values: { code, otp: code }, home: "/phone-number/verify" });

    const { backupCodes } = await ok<{ backupCodes: string[] }>(
      second.browser.post("/two-factor/enable", { password: PASSWORD }),
    );
    await query(
      `update ${quote("user")} set ${quote("twoFactorEnabled")} = 1 where ${quote("id")} = ?`,
      [second.userId],
    );
    await query(`update ${quote("twoFactor")} set verified = 1 where ${quote("userId")} = ?`, [
      second.userId,
    ]);
    const halfway = fresh();
    await ok(halfway.post("/sign-in/email", { email: SECOND_EMAIL, password: PASSWORD }));
    await ok(halfway.post("/two-factor/send-otp"));
    const { cookies } = halfway;
    list.push(
      {
        name: "backup code",
        values: { code: backupCodes[0] },
        cookies,
        home: "/two-factor/verify-backup-code",
      },
      {
        name: "two-factor OTP",
        values: { code: instance.lastMail("two-factor") },
        cookies,
        home: "/two-factor/verify-otp",
      },
    );

    const flow = fresh();
    const { url } = await ok<{ url: string }>(
      flow.post("/sign-in/social", { provider: "gitlab", callbackURL: "/welcome" }),
    );
    const back = new URL(await instance.idp.authorize(url, "alice"));
    list.push({
      name: "OAuth state",
      values: {
        id: "gitlab",
        state: back.searchParams.get("state"),
        code: back.searchParams.get("code"),
      },
      cookies: flow.cookies,
      home: tenantId === null ? "/callback/:id" : "/tenant/callback/:id",
    });
    list.push({
      name: "id token",
      values: {
        provider: "google",
        idToken: {
          token: instance.google.googleIdToken({
            aud: `google-${name}`,
            sub: `google-person-${name}`,
            email: `google-person-${name}@example.com`,
          }),
        },
      },
      home: tenantId === null ? "/sign-in/social" : "/tenant/sign-in/social",
    });

    list.push({
      name: "device code",
      values: { device_code: approved.device_code, client_id },
      home: "/device/token",
    });
    list.push({
      name: "user code",
      values: { user_code: pending.user_code, userCode: pending.user_code },
      home: "/device",
      homeNeedsSession: true,
    });
    const { challenge, cookies: challengeCookies } = await passkeyChallenge();
    list.push({
      name: "passkey",
      values: { response: authenticator.assert(challenge, address.origin) },
      cookies: challengeCookies,
      home: "/passkey/verify-authentication",
    });
    list.push({ name: "wallet", values: siweMessage(await siweNonce()), home: "/siwe/verify" });
    return list;
  }

  /** The keys that people keep, used on a challenge of another side. */
  async function keysAtSide(host: {
    passkeyChallenge: typeof passkeyChallenge;
    address: Address;
  }): Promise<OneTime[]> {
    const { challenge, cookies } = await host.passkeyChallenge();
    return [
      {
        name: "passkey on a challenge of the other side",
        values: { response: authenticator.assert(challenge, host.address.origin) },
        cookies,
        home: "/passkey/verify-authentication",
      },
    ];
  }

  const oneTime = await oneTimeCredentials();
  const cookies = new Map(main.browser.cookies);
  const everyCookie = new Map([...oneTime.flatMap((one) => [...(one.cookies ?? [])]), ...cookies]);

  return {
    name,
    tenantId,
    address,
    userId: main.userId,
    things,
    oneTime,
    keysAtSide,
    passkeyChallenge,
    credentials: { cookies, everyCookie, token: main.token, apiKey: apiKey.key },
  };
}

export type Side = Awaited<ReturnType<typeof settleSide>>;

async function signIn(browser: Browser, email: string) {
  const { token, user } = await ok<{ token: string; user: { id: string } }>(
    browser.post("/sign-in/email", { email, password: PASSWORD }),
  );
  return { browser, token, userId: user.id };
}

async function signUp(browser: Browser, email: string, name: string, username: string) {
  const { token, user } = await ok<{ token: string; user: { id: string } }>(
    browser.post("/sign-up/email", { name, email, username, password: PASSWORD }),
  );
  return { browser, token, userId: user.id };
}

async function ok<T>(sent: Promise<Answer>): Promise<T> {
  const { status, data } = await sent;
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(data)}`);
  return data as T;
}
