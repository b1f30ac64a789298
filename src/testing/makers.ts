import type { BetterAuthOptions } from "better-auth";
import { unseal } from "../border/seal";
import { ok } from "./browser";
import { PASSWORD } from "./inputs";
import { deviceCodes, passkey, wallet } from "./maker-keys";
import { idToken, oauthState } from "./maker-oauth";
import type { Mail } from "./outbox";
import { type Person, signIn } from "./people";
import type { OneTime, Side } from "./side";
import { isSwitchedOff } from "./switched-off";

/** Makes things or credentials that an installed plugin can make, the way that people get them. */
export interface Maker {
  name: string;
  /** The endpoints that it takes. */
  paths: string[];
  make(side: Side): Promise<void>;
  /** Whether the application has it switched on, where that is an option. */
  isOn?(options: BetterAuthOptions): boolean;
  /** What to give where it does not work. */
  give?: string;
}

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
    const otp = await side.inside(async () => createVerificationOTP?.({ body: { email, type } }));
    if (typeof otp !== "string") throw new Error("no code was made");
    side.oneTimes.push({ name: this.name, values: { otp, type, email }, home });
  },
});

type Organization = { id: string; slug: string; members: { id: string }[] };

/** An organization of the main person with the second one in it, and one that invites the main person. */
const organization: Maker = {
  name: "organization",
  paths: ["/organization/create", "/organization/invite-member"],
  async make(side) {
    const { main, second, workshop, things, name } = side;
    const { mark, paths, subject } = workshop;
    const create = ({ browser }: Person, word: string) =>
      ok<Organization>(
        browser.post("/organization/create", {
          name: `${word} ${mark} of ${name}`,
          slug: `${word}-${mark}-${name}`,
        }),
      );
    const own = await create(main, "organization");
    const organizationId = own.id;
    Object.assign(things, { organizationId, organizationSlug: own.slug });
    const member = { organizationId, userId: second.userId, role: "member" };
    const added = await side.inside(async () => subject.api.addMember?.({ body: member }));
    things.memberId = (added as { id?: string } | undefined)?.id;
    things.memberIdOrEmail = things.memberId;
    if (paths.has("/organization/create-team")) {
      const team = { name: `team ${mark} of ${name}`, organizationId };
      const { id } = await ok<{ id: string }>(main.browser.post("/organization/create-team", team));
      things.teamId = id;
      const ofTeam = { teamId: id, userId: main.userId };
      await main.browser.post("/organization/add-team-member", ofTeam);
    }
    const other = await create(second, "other-organization");
    const invite = async ({ browser }: Person, email: string, of: string) => {
      const invitation = { email, role: "member", organizationId: of };
      return (await ok<{ id: string }>(browser.post("/organization/invite-member", invitation))).id;
    };
    things.invitationId = await invite(second, main.email, other.id);
    things.ownInvitationId = await invite(main, side.newcomerEmail, organizationId);
  },
};

/** An account at a provider beside the password, as a social sign-in leaves it. */
const account: Maker = {
  name: "account",
  paths: ["/list-accounts"],
  async make(side) {
    const { main, things, workshop, name } = side;
    const { adapter } = workshop.subject.ctx;
    const accountId = `account-${workshop.mark}-${name}`;
    const data = {
      userId: main.userId,
      providerId: "google",
      accountId,
      accessToken: `access-${accountId}`,
      refreshToken: `refresh-${accountId}`,
      idToken: await workshop.providers.googleIdToken({
        aud: accountId,
        sub: accountId,
        email: main.email,
      }),
      accessTokenExpiresAt: new Date(Date.now() + 3_600_000),
      createdAt: new Date(),
      updatedAt: new Date(),
    };
    const { id } = await side.inside(() =>
      adapter.create<typeof data, { id: string }>({ model: "account", data }),
    );
    things.accountId = id;
  },
};

const impersonation: Maker = {
  name: "impersonated session",
  paths: ["/admin/impersonate-user", "/admin/stop-impersonating"],
  async make(side) {
    if (side.place.tenantId === null) return;
    const { subject } = side.workshop;
    const { browser } = await signIn(subject, side.place, side.main.userId, side.main.email);
    await ok(browser.post("/admin/impersonate-user", { userId: side.second.userId }));
    side.impersonation = browser.cookies;
  },
};

const apiKey: Maker = {
  name: "API key",
  paths: ["/api-key/create"],
  async make(side) {
    const { mark } = side.workshop;
    const body = { name: `key ${mark} of ${side.name}` };
    const made = await ok<{ id: string; key: string }>(
      side.main.browser.post("/api-key/create", body),
    );
    side.things.keyId = made.id;
    side.apiKey = made.key;
    side.secrets.push(made.key);
  },
};

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

const phoneOtp: Maker = {
  name: "phone OTP",
  paths: ["/phone-number/send-otp", "/phone-number/verify"],
  async make(side) {
    const { watch } = side.workshop;
    const { phoneNumber } = side.things;
    await ok(side.fresh().post("/phone-number/send-otp", { phoneNumber }));
    const code = /(?:^|\n)(\d{4,10}):\d+/.exec(watch.lastVerification.value ?? "")?.[1];
    if (!code) throw new Error("the code could not be found");
    side.oneTimes.push({
      name: this.name,
      values: { code, otp: code },
      home: "/phone-number/verify",
    });
  },
};

const twoFactor: Maker = {
  name: "two-factor codes",
  paths: ["/two-factor/enable", "/two-factor/verify-backup-code", "/sign-in/email"],
  give: OUTBOX,
  async make(side) {
    const { second, workshop } = side;
    const { raw } = workshop.subject;
    const { backupCodes } = await ok<{ backupCodes: string[] }>(
      second.browser.post("/two-factor/enable", { password: PASSWORD }),
    );
    const where = (field: string) => [{ field, value: second.userId }];
    await raw.update({ model: "user", where: where("id"), update: { twoFactorEnabled: true } });
    await raw.update({ model: "twoFactor", where: where("userId"), update: { verified: true } });
    const halfway = side.fresh();
    await ok(halfway.post("/sign-in/email", { email: second.email, password: PASSWORD }));
    const { cookies } = halfway;
    const home = "/two-factor/verify-backup-code";
    const code = backupCodes[0];
    side.oneTimes.push({ name: "backup code", values: { code }, cookies, home });
    await workshop.takeMails();
    const { status } = await halfway.post("/two-factor/send-otp");
    const otp = (await workshop.takeMails()).at(-1)?.data.otp;
    if (status === 200 && typeof otp === "string") {
      const values = { code: otp };
      side.oneTimes.push({
        name: "two-factor OTP",
        values,
        cookies,
        home: "/two-factor/verify-otp",
      });
    }
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

/** Things first: the credentials of a second factor keep the second person from signing in. */
export const MAKERS: Maker[] = [
  account,
  organization,
  impersonation,
  apiKey,
  passkey,
  deviceCodes,
  wallet,
  ...MAILS,
  oneTimeToken,
  sessionToken,
  otpMaker("sign-in", "/sign-in/email-otp"),
  otpMaker("email-verification", "/email-otp/verify-email"),
  otpMaker("forget-password", "/email-otp/reset-password"),
  phoneOtp,
  oauthState,
  idToken,
  twoFactor,
];
