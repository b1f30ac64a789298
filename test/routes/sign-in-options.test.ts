import type { BetterAuthOptions } from "better-auth";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { createWorld, EMAIL, expectRefused, outcome } from "../support/world";

type Options = Partial<BetterAuthOptions>;
type Password = Partial<NonNullable<Options["emailAndPassword"]>>;
interface Unsigned {
  token: null;
  user: Record<string, unknown>;
  session: null;
}

const JANE = { name: "Jane", email: EMAIL, password: PASSWORD };
const UNVERIFIED = [403, "EMAIL_NOT_VERIFIED"];

/** A world where Jane signs up and in at a tenant, which is Acme unless told. */
async function open(password: Password = {}, options: Options = {}) {
  const auth = { ...options, emailAndPassword: { enabled: true, ...password } };
  const world = await createWorld({ auth });
  const post = (path: string) => (body?: object) =>
    world
      .browser()
      .post<Unsigned>(path, { ...JANE, tenantId: world.ids.acme, ...(body as object) });
  return { world, up: post("/tenant/sign-up/email"), in: post("/tenant/sign-in/email") };
}

describe("verification required", () => {
  const required = { requireEmailVerification: true };

  it("sign-up answers { token: null, user, session: null } and sends the mail", async () => {
    const { world, ...sign } = await open(required);
    const { status, data, headers } = await sign.up({ callbackURL: "/welcome" });
    const user = { tenantId: world.ids.acme };
    expect([status, Object.keys(data).sort()]).toEqual([200, ["session", "token", "user"]]);
    expect(data).toMatchObject({ token: null, session: null, user });
    expect([headers.getSetCookie(), await world.rows("session")]).toEqual([[], 0]);
    expect(world.mails).toMatchObject([{ to: EMAIL, sentIn: world.ids.acme }]);
    const { url } = world.lastMail("verification");
    expect(new URL(url).searchParams.get("callbackURL")).toContain("/welcome");
  });

  it("the mail sender can read the request, body included, as in better-auth", async () => {
    const bodies: unknown[] = [];
    const sendVerificationEmail = async (_: unknown, request?: Request) =>
      void bodies.push(await request?.json().catch(() => "unreadable"));
    const { world, ...sign } = await open(required, {
      emailVerification: { sendVerificationEmail },
    });
    await world.browser().post("/sign-up/email", { ...JANE, locale: "en" });
    await sign.up({ locale: "de" });
    expect(bodies).toMatchObject([{ locale: "en" }, { locale: "de" }]);
  });

  it("R6: sign-in is 403 until the link verifies this user, here and nowhere else", async () => {
    const { world, ...sign } = await open(required);
    const globex = { tenantId: world.ids.globex };
    await world.browser().post("/sign-up/email", JANE);
    await sign.up(globex);
    await sign.up();
    const { url } = world.lastMail("verification");
    expectRefused(await sign.in(), 403, "EMAIL_NOT_VERIFIED");
    const wrong = await sign.in({ password: "a wrong password" });
    expectRefused(wrong, 401, "INVALID_EMAIL_OR_PASSWORD");
    expect(await world.rows("session")).toBe(0);
    const opened = await world.browser().get(url);
    expect([opened.status, opened.location?.includes("error")]).toEqual([302, false]);
    expect((await sign.in()).status).toBe(200);
    expect(outcome(await sign.in(globex))).toEqual(UNVERIFIED);
    expect(outcome(await world.browser().post("/sign-in/email", JANE))).toEqual(UNVERIFIED);
  });

  it("a sign-in that sends the mail again sends it for this tenant's user", async () => {
    const emailVerification = { sendOnSignUp: false, sendOnSignIn: true };
    const { world, ...sign } = await open(required, { emailVerification });
    const { id } = (await sign.up()).data.user;
    expect(world.mails).toEqual([]);
    expect(outcome(await sign.in())).toEqual(UNVERIFIED);
    expect(world.mails).toMatchObject([{ to: EMAIL, userId: id, sentIn: world.ids.acme }]);
  });

  it("onExistingUserSignUp hears of this tenant's user only", async () => {
    const heard: object[] = [];
    const onExistingUserSignUp = async ({ user }: { user: object }) => void heard.push(user);
    const { world, ...sign } = await open({ ...required, onExistingUserSignUp });
    await sign.up({ tenantId: world.ids.globex });
    await sign.up();
    expect(heard).toEqual([]);
    await world.unchanged(() => sign.up());
    expect(heard).toMatchObject([{ email: EMAIL, tenantId: world.ids.acme }]);
  });
});

const FIELDS: Options["user"] = {
  additionalFields: {
    department: { type: "string", required: true },
    plan: { type: "string", required: false, defaultValue: "free", input: false },
    credit: { type: "number", required: false, input: false },
    locale: { type: "string", required: false, defaultValue: "en" },
    secretNote: { type: "string", required: false, returned: false },
  },
};

describe("e-mail and password", () => {
  it("autoSignIn: false: sign-up makes the user and no session", async () => {
    const { world, ...sign } = await open({ autoSignIn: false });
    const { data, headers } = await sign.up();
    const user = { tenantId: world.ids.acme };
    expect(data).toMatchObject({ token: null, session: null, user });
    expect(headers.getSetCookie()).toEqual([]);
    expect([await world.rows("user"), await world.rows("session")]).toEqual([1, 0]);
    expect((await sign.in()).status).toBe(200);
  });

  it.each([
    ["disableSignUp", { disableSignUp: true }, [401, "INVALID_EMAIL_OR_PASSWORD"]],
    ["enabled: false", { enabled: false }, [400, "EMAIL_PASSWORD_DISABLED"]],
  ])("%s: nobody signs up", async (_, password, atSignIn) => {
    const { world, ...sign } = await open(password);
    const code = "EMAIL_PASSWORD_SIGN_UP_DISABLED";
    await world.unchanged(async () => {
      expect(outcome(await sign.up())).toEqual([400, code]);
      expect(outcome(await sign.in())).toEqual(atSignIn);
      const call = world.api.signUpEmailTenant({ body: { ...JANE, tenantId: world.ids.acme } });
      await expect(call).rejects.toMatchObject({ body: { code } });
    });
  });

  it("better-auth's limits on the password hold", async () => {
    const { world, ...sign } = await open({ minPasswordLength: 10, maxPasswordLength: 12 });
    const long = { password: "much too long for this" };
    await world.unchanged(async () => {
      expect(outcome(await sign.up({ password: "short" }))).toEqual([400, "PASSWORD_TOO_SHORT"]);
      expect(outcome(await sign.up(long))).toEqual([400, "PASSWORD_TOO_LONG"]);
      expect(outcome(await sign.in(long))).toEqual([400, "PASSWORD_TOO_LONG"]);
    });
    expect((await sign.up({ password: "eleven chrs" })).status).toBe(200);
  });

  it("additional user fields are taken or refused, filled in and answered", async () => {
    const { world, ...sign } = await open({}, { user: FIELDS });
    await world.unchanged(async () => {
      expect(outcome(await sign.up())).toEqual([400, "MISSING_FIELD"]);
      const refused = await sign.up({ department: "sales", credit: 100 });
      expect(outcome(refused)).toEqual([400, "FIELD_NOT_ALLOWED"]);
    });
    // What has a default and is no input is ignored.
    const sent = { department: "sales", plan: "enterprise", secretNote: "hush" };
    const { data } = await sign.up(sent);
    expect(data.user).toMatchObject({ department: "sales", plan: "free", locale: "en" });
    expect(data.user).not.toHaveProperty("secretNote");
    expect(await world.rows("user", `"secretNote" = 'hush' and credit is null`)).toBe(1);
  });
});
