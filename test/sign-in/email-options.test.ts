import type { BetterAuthOptions } from "better-auth";
import { describe, expect, it } from "vitest";
import { createInstance, PASSWORD } from "../support/instance";

type Options = Partial<BetterAuthOptions>;
type Password = Partial<NonNullable<Options["emailAndPassword"]>>;
interface Unsigned {
  token: null;
  user: Record<string, unknown>;
  session: null;
}

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const ANN = { name: "Ann", email: "ann@example.com", password: PASSWORD };

/** What the admin plugin's documentation tells people to do, so that made-up users look real. */
const customSyntheticUser: Password["customSyntheticUser"] = ({
  coreFields,
  additionalFields,
  id,
}) => ({
  ...coreFields,
  role: "user",
  banned: false,
  banReason: null,
  banExpires: null,
  ...additionalFields,
  id,
});

interface Mail {
  url: string;
  email: string;
  tenantId: unknown;
  body: unknown;
}

async function setUp(password: Password = {}, options: Options = {}) {
  const mails: Mail[] = [];
  const instance = await createInstance({
    auth: {
      emailVerification: {
        sendVerificationEmail: async ({ user, url }, request) => {
          const { tenantId } = user as { tenantId?: unknown };
          const body = await request?.json().catch(() => "unreadable");
          mails.push({ url, email: user.email, tenantId, body });
        },
      },
      ...options,
      emailAndPassword: { enabled: true, ...password },
    },
  });
  const { id: tenantId } = await instance.createTenant();
  const signUp = (body: Record<string, unknown> = {}) =>
    instance.browser().post<Unsigned>(SIGN_UP, { ...ANN, tenantId, ...body });
  const signIn = (body: Record<string, unknown> = {}) =>
    instance.browser().post<Unsigned>(SIGN_IN, { ...ANN, tenantId, ...body });
  return { instance, tenantId, mails, signUp, signIn };
}

/** Everything but the values that are new for each user. */
function alike(user: Record<string, unknown>): Record<string, unknown> {
  const { id, createdAt, updatedAt, ...rest } = user;
  const form = { id: `${typeof id} ${String(id).length}` };
  return { ...rest, ...form, times: [createdAt, updatedAt].map((at) => String(at).length) };
}

describe("verification required", () => {
  const required = { requireEmailVerification: true };

  it("sign-up answers { token: null, user, session: null } and sends the mail", async () => {
    const { instance, tenantId, mails, signUp } = await setUp(required);
    const { status, data, headers } = await signUp({ callbackURL: "/welcome" });
    expect(status).toBe(200);
    expect(Object.keys(data).sort()).toEqual(["session", "token", "user"]);
    expect(data).toMatchObject({ token: null, session: null, user: { tenantId } });
    expect(headers.getSetCookie()).toEqual([]);
    expect(await instance.rows("session")).toBe(0);
    expect(mails).toHaveLength(1);
    expect(mails[0]).toMatchObject({ email: ANN.email, tenantId });
    expect(new URL(mails[0]?.url ?? "").searchParams.get("callbackURL")).toContain("/welcome");
  });

  it("the mail sender can read the request, body included, as in better-auth", async () => {
    const { instance, mails, signUp } = await setUp(required);
    await instance.browser().post("/sign-up/email", { ...ANN, locale: "en" });
    await signUp({ locale: "de" });
    expect(mails.map(({ body }) => body)).toMatchObject([{ locale: "en" }, { locale: "de" }]);
  });

  it("sign-in before verification is 403", async () => {
    const { instance, signUp, signIn } = await setUp(required);
    await signUp();
    const answer = await signIn();
    expect([answer.status, answer.code]).toEqual([403, "EMAIL_NOT_VERIFIED"]);
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(await instance.rows("session")).toBe(0);
  });

  it("sign-in before verification with a wrong password is 401, not 403", async () => {
    const { signUp, signIn } = await setUp(required);
    await signUp();
    const answer = await signIn({ password: "a wrong password" });
    expect([answer.status, answer.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
  });

  it("R6: the link in the mail verifies this user, here and nowhere else", async () => {
    const { instance, tenantId, mails, signUp, signIn } = await setUp(required);
    const other = await instance.createTenant();
    await signUp();
    await signUp({ tenantId: other.id });
    await instance.browser().post("/sign-up/email", ANN);
    const link = mails.find((mail) => mail.tenantId === tenantId)?.url ?? "";
    const opened = await instance.browser().get(link);
    expect(opened.status).toBe(302);
    expect(opened.location).not.toContain("error");
    expect((await signIn()).status).toBe(200);
    const elsewhere = await signIn({ tenantId: other.id });
    expect([elsewhere.status, elsewhere.code]).toEqual([403, "EMAIL_NOT_VERIFIED"]);
    const platform = await instance.browser().post("/sign-in/email", ANN);
    expect([platform.status, platform.code]).toEqual([403, "EMAIL_NOT_VERIFIED"]);
  });

  it("a sign-in that sends the mail again sends it for this tenant's user", async () => {
    const sender = async ({ user }: { user: object }) => void sent.push(user);
    const sent: object[] = [];
    const { tenantId, signUp, signIn } = await setUp(required, {
      emailVerification: {
        sendOnSignUp: false,
        sendOnSignIn: true,
        sendVerificationEmail: sender,
      },
    });
    await signUp();
    expect(sent).toEqual([]);
    expect((await signIn()).code).toBe("EMAIL_NOT_VERIFIED");
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatchObject({ email: ANN.email, tenantId });
  });

  it("threat: accounts can be probed: an e-mail that exists is answered alike", async () => {
    const { instance, mails, tenantId, signUp } = await setUp(required);
    const created = await signUp();
    const taken = await signUp({ password: "another password" });
    expect(taken.status).toBe(created.status);
    expect(Object.keys(taken.data)).toEqual(Object.keys(created.data));
    expect(Object.keys(taken.data.user)).toEqual(Object.keys(created.data.user));
    expect(taken.data.user.tenantId).toBe(tenantId);
    expect(taken.data.user.id).not.toBe(created.data.user.id);
    // The role is better-auth's own gap: the admin plugin fills it in when it stores the user.
    const { role: _, ...madeUp } = alike(taken.data.user);
    const { role: __, ...real } = alike(created.data.user);
    expect(madeUp).toEqual(real);
    expect([...taken.headers.keys()]).toEqual([...created.headers.keys()]);
    expect(await instance.rows("user")).toBe(1);
    expect(await instance.rows("account")).toBe(1);
    expect(mails).toHaveLength(1);
  });

  it("threat: accounts can be probed: with customSyntheticUser the answers are equal", async () => {
    const { tenantId, signUp } = await setUp({ ...required, customSyntheticUser });
    const created = await signUp({ image: "https://example.com/a.png" });
    const taken = await signUp({ image: "https://example.com/a.png" });
    expect(alike(taken.data.user)).toEqual(alike(created.data.user));
    expect(taken.data).toMatchObject({ token: null, session: null, user: { tenantId } });
  });

  it("onExistingUserSignUp hears of this tenant's user only", async () => {
    const heard: object[] = [];
    const { instance, tenantId, signUp } = await setUp({
      ...required,
      onExistingUserSignUp: async ({ user }) => void heard.push(user),
    });
    const other = await instance.createTenant();
    await signUp({ tenantId: other.id });
    await signUp();
    expect(heard).toEqual([]);
    const created = await instance.rows("user");
    await signUp();
    expect(heard).toHaveLength(1);
    expect(heard[0]).toMatchObject({ email: ANN.email, tenantId });
    expect(await instance.rows("user")).toBe(created);
  });
});

describe("autoSignIn: false", () => {
  it("sign-up makes the user and no session", async () => {
    const { instance, tenantId, signUp, signIn } = await setUp({ autoSignIn: false });
    const { status, data, headers } = await signUp();
    expect(status).toBe(200);
    expect(data).toMatchObject({ token: null, session: null, user: { tenantId } });
    expect(headers.getSetCookie()).toEqual([]);
    expect(await instance.rows("user")).toBe(1);
    expect(await instance.rows("session")).toBe(0);
    expect((await signIn()).status).toBe(200);
  });

  it("threat: accounts can be probed: an e-mail that exists is answered alike", async () => {
    const { instance, signUp } = await setUp({ autoSignIn: false, customSyntheticUser });
    const created = await signUp();
    const taken = await signUp();
    expect(taken.status).toBe(200);
    expect(alike(taken.data.user)).toEqual(alike(created.data.user));
    expect(await instance.rows("user")).toBe(1);
  });
});

describe("switched off", () => {
  it("disableSignUp: sign-up is 400, sign-in still works", async () => {
    const { instance, tenantId, signUp, signIn } = await setUp({ disableSignUp: true });
    const answer = await signUp();
    expect([answer.status, answer.code]).toEqual([400, "EMAIL_PASSWORD_SIGN_UP_DISABLED"]);
    expect(await instance.rows("user")).toBe(0);
    const wrong = await signIn();
    expect([wrong.status, wrong.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
    const api = instance.api.signUpEmailTenant({ body: { ...ANN, tenantId } });
    await expect(api).rejects.toMatchObject({ body: { code: "EMAIL_PASSWORD_SIGN_UP_DISABLED" } });
  });

  it("e-mail and password disabled: neither way in", async () => {
    const { instance, signUp, signIn } = await setUp({ enabled: false });
    const up = await signUp();
    expect([up.status, up.code]).toEqual([400, "EMAIL_PASSWORD_SIGN_UP_DISABLED"]);
    const signedIn = await signIn();
    expect([signedIn.status, signedIn.code]).toEqual([400, "EMAIL_PASSWORD_DISABLED"]);
    expect(await instance.rows("user")).toBe(0);
  });

  it("better-auth's limits on the password hold", async () => {
    const limits = { minPasswordLength: 10, maxPasswordLength: 12 };
    const { instance, signUp, signIn } = await setUp(limits);
    const short = await signUp({ password: "short" });
    expect([short.status, short.code]).toEqual([400, "PASSWORD_TOO_SHORT"]);
    const long = await signUp({ password: "much too long for this" });
    expect([long.status, long.code]).toEqual([400, "PASSWORD_TOO_LONG"]);
    const longIn = await signIn({ password: "much too long for this" });
    expect([longIn.status, longIn.code]).toEqual([400, "PASSWORD_TOO_LONG"]);
    expect(await instance.rows("user")).toBe(0);
    expect((await signUp({ password: "eleven chrs" })).status).toBe(200);
  });
});

describe("additional user fields of the application", () => {
  const withFields: Options = {
    user: {
      additionalFields: {
        department: { type: "string", required: true },
        plan: { type: "string", required: false, defaultValue: "free", input: false },
        credit: { type: "number", required: false, input: false },
        locale: { type: "string", required: false, defaultValue: "en" },
        secretNote: { type: "string", required: false, returned: false },
      },
    },
  };

  it("are taken, filled in and answered", async () => {
    const { instance, signUp } = await setUp({}, withFields);
    const { status, data } = await signUp({ department: "sales", secretNote: "hush" });
    expect(status).toBe(200);
    expect(data.user).toMatchObject({ department: "sales", plan: "free", locale: "en" });
    expect(data.user).not.toHaveProperty("secretNote");
    expect(await instance.rows("user", `"secretNote" = 'hush' and credit is null`)).toBe(1);
  });

  it("a required one that is missing is 400", async () => {
    const { instance, signUp } = await setUp({}, withFields);
    const answer = await signUp();
    expect([answer.status, answer.code]).toEqual([400, "MISSING_FIELD"]);
    expect(await instance.rows("user")).toBe(0);
  });

  it("input: false with a default: what the client says is ignored", async () => {
    const { signUp } = await setUp({}, withFields);
    const { data } = await signUp({ department: "sales", plan: "enterprise" });
    expect(data.user.plan).toBe("free");
  });

  it("input: false without a default: what the client says is refused", async () => {
    const { instance, signUp } = await setUp({}, withFields);
    const answer = await signUp({ department: "sales", credit: 100 });
    expect([answer.status, answer.code]).toEqual([400, "FIELD_NOT_ALLOWED"]);
    expect(await instance.rows("user")).toBe(0);
  });

  it("threat: accounts can be probed: they look the same on an e-mail that exists", async () => {
    const required = { requireEmailVerification: true, customSyntheticUser };
    const { signUp } = await setUp(required, withFields);
    const created = await signUp({ department: "sales" });
    const taken = await signUp({ department: "sales" });
    expect(alike(taken.data.user)).toEqual(alike(created.data.user));
  });
});
