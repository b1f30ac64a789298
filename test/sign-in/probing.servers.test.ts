import type { BetterAuthOptions } from "better-auth";
import { describe, expect, it } from "vitest";
import { createInstance, PASSWORD } from "../support/instance";
import { databases } from "../support/servers";

type Password = Partial<NonNullable<BetterAuthOptions["emailAndPassword"]>>;

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";

/** Where somebody with this e-mail exists, seen from the tenant that is asked. */
const WHEREABOUTS = ["here", "another", "platform", "nowhere"] as const;
const emailOf = (whereabouts: string) => `${whereabouts.padEnd(8, "x")}@example.com`;

async function setUp(options: Password = {}) {
  const hashed: string[] = [];
  const mails: object[] = [];
  const sendMail = async ({ user }: { user: object }) => void mails.push(user);
  const instance = await createInstance({
    auth: {
      emailVerification: { sendVerificationEmail: sendMail },
      emailAndPassword: {
        enabled: true,
        sendResetPassword: sendMail,
        password: {
          hash: async (password) => {
            hashed.push("hash");
            return `hashed:${password}`;
          },
          verify: async ({ hash, password }) => {
            hashed.push("verify");
            return hash === `hashed:${password}`;
          },
        },
        ...options,
      },
    },
  });
  const { id: tenantId } = await instance.createTenant();
  const other = await instance.createTenant();
  const asked = { name: "Somebody", password: PASSWORD };
  const signUp = (email: string, tenantId: string) =>
    instance
      .browser()
      .post<{ user: Record<string, unknown> }>(SIGN_UP, { ...asked, email, tenantId });
  await signUp(emailOf("here"), tenantId);
  await signUp(emailOf("another"), other.id);
  await instance.browser().post("/sign-up/email", { ...asked, email: emailOf("platform") });
  mails.length = 0;

  /** Asks about the e-mail of each of them, and tells all that can be seen from outside. */
  async function ask(path: string, body: (email: string) => object, browser = instance.browser()) {
    const seen: Record<string, { answer: string; hashed: number; statements: string[] }> = {};
    for (const whereabouts of WHEREABOUTS) {
      hashed.length = 0;
      instance.database.statements.length = 0;
      const { status, headers, data } = await browser.fork().post(path, body(emailOf(whereabouts)));
      const answer = JSON.stringify([status, [...headers], data]);
      const statements = [...instance.database.statements];
      seen[whereabouts] = { answer, hashed: hashed.length, statements };
    }
    return seen;
  }

  return { instance, tenantId, mails, ask, signUp };
}

describe("threat: accounts can be probed", () => {
  it("sign-in: same bytes, one hash, wherever the e-mail exists", async () => {
    const { instance, tenantId, ask } = await setUp();
    const sessions = await instance.rows("session");
    const password = "not the password of anybody";
    const seen = await ask(SIGN_IN, (email) => ({ email, password, tenantId }));
    const [first, ...others] = Object.values(seen);
    expect(first?.answer).toContain("INVALID_EMAIL_OR_PASSWORD");
    for (const { answer } of others) expect(answer).toBe(first?.answer);
    expect(Object.values(seen).map(({ hashed }) => hashed)).toEqual([1, 1, 1, 1]);
    expect(await instance.rows("session")).toBe(sessions);
  });

  it("sign-in: the right password of another tenant is worth nothing", async () => {
    const { tenantId, ask } = await setUp();
    const { here, another, platform, nowhere } = await ask(SIGN_IN, (email) => ({
      email,
      password: PASSWORD,
      tenantId,
    }));
    expect(here?.answer).toMatch(/^\[200/);
    expect(nowhere?.answer).toMatch(/^\[401/);
    expect(another).toEqual(nowhere);
    expect(platform).toEqual(nowhere);
  });

  it("sign-in: somebody without a password is answered like nobody", async () => {
    const { instance, tenantId, ask } = await setUp();
    await instance.database.query("delete from account");
    const { here, nowhere } = await ask(SIGN_IN, (email) => ({
      email,
      password: PASSWORD,
      tenantId,
    }));
    expect(here?.answer).toBe(nowhere?.answer);
    expect(here?.hashed).toBe(1);
  });

  it("sign-in: the database is asked the same for another tenant's people as for nobody", async () => {
    const { tenantId, ask } = await setUp();
    const seen = await ask(SIGN_IN, (email) => ({ email, password: PASSWORD, tenantId }));
    expect(seen.nowhere?.statements).not.toEqual([]);
    expect(seen.another?.statements).toEqual(seen.nowhere?.statements);
    expect(seen.platform?.statements).toEqual(seen.nowhere?.statements);
  });

  it.each(["/request-password-reset", "/send-verification-email"])(
    "%s: same bytes; mail goes to this tenant's user only",
    async (path) => {
      const { instance, tenantId, mails, ask } = await setUp();
      const browser = instance.browser({ "x-tenant-id": tenantId });
      const seen = await ask(path, (email) => ({ email }), browser);
      const [first, ...others] = Object.values(seen);
      expect(first?.answer).toMatch(/^\[200/);
      for (const { answer } of others) expect(answer).toBe(first?.answer);
      expect(seen.another?.statements).toEqual(seen.nowhere?.statements);
      expect(seen.platform?.statements).toEqual(seen.nowhere?.statements);
      expect(mails).toHaveLength(1);
      expect(mails[0]).toMatchObject({ email: emailOf("here"), tenantId });
    },
  );

  describe("sign-up with verification required", () => {
    const required: Password = {
      requireEmailVerification: true,
      // What the admin plugin needs for its own fields, by its documentation.
      customSyntheticUser: ({ coreFields, additionalFields, id }) => ({
        ...coreFields,
        role: "user",
        banned: false,
        banReason: null,
        banExpires: null,
        ...additionalFields,
        id,
      }),
    };
    /** What is new for each user, and the e-mail that was asked for, made equal. */
    const blur = (answer = "") =>
      answer
        .replace(/"id":"\w{32}"/, '"id":"…"')
        .replace(/"(created|updated)At":"[\d:.TZ-]{24}"/g, '"$1At":"…"')
        // Without customSyntheticUser better-auth itself gets the admin plugin's field wrong.
        .replace(/"role":("user"|null)/, '"role":"…"')
        .replace(/\w{8}@example.com/, "…");
    const body = (email: string) => ({ name: "Somebody", email, password: PASSWORD });

    it("same bytes, one hash, and only new people are written", async () => {
      const { instance, tenantId, ask } = await setUp(required);
      const users = await instance.rows("user");
      const seen = await ask(SIGN_UP, (email) => ({ ...body(email), tenantId }));
      expect(blur(seen.nowhere?.answer)).toContain(`"tenantId":"${tenantId}"`);
      for (const { answer, hashed } of Object.values(seen)) {
        expect(blur(answer)).toBe(blur(seen.nowhere?.answer));
        expect(hashed).toBe(1);
      }
      expect(await instance.rows("user")).toBe(users + 3);
    });

    it("the same on better-auth's own path with the tenant header", async () => {
      const { instance, tenantId, ask } = await setUp(required);
      const browser = instance.browser({ "x-tenant-id": tenantId });
      const seen = await ask("/sign-up/email", body, browser);
      expect(blur(seen.nowhere?.answer)).toContain(`"tenantId":"${tenantId}"`);
      for (const { answer } of Object.values(seen)) {
        expect(blur(answer)).toBe(blur(seen.nowhere?.answer));
      }
    });

    it.each([
      ["with", required],
      ["without", { requireEmailVerification: true }],
    ])(
      "R4: nothing but the session names the tenant, %s customSyntheticUser",
      async (_, options) => {
        const { instance, tenantId, ask } = await setUp(options);
        await instance.database.query(`update "user" set "emailVerified" = 1`);
        const browser = instance.browser();
        const credentials = { email: emailOf("here"), password: PASSWORD, tenantId };
        expect((await browser.post(SIGN_IN, credentials)).status).toBe(200);
        const seen = await ask("/sign-up/email", body, browser);
        expect(blur(seen.nowhere?.answer)).toContain(`"tenantId":"${tenantId}"`);
        for (const { answer } of Object.values(seen)) {
          expect(blur(answer)).toBe(blur(seen.nowhere?.answer));
        }
      },
    );
  });

  it("sign-up without verification: only an e-mail of this tenant is taken", async () => {
    const { instance, tenantId, signUp } = await setUp();
    const statuses = await Promise.all(
      WHEREABOUTS.map(async (whereabouts) => (await signUp(emailOf(whereabouts), tenantId)).status),
    );
    expect(statuses).toEqual([422, 200, 200, 200]);
    expect(await instance.rows("user", `"tenantId" = ?`, [tenantId])).toBe(4);
  });
});

describe.each(databases)("threat: e-mail normalised in two ways, on %s", (database) => {
  async function tenantOn() {
    const mails: { email: string }[] = [];
    const instance = await createInstance({
      database,
      auth: {
        emailAndPassword: {
          enabled: true,
          sendResetPassword: async ({ user }) => void mails.push(user),
        },
      },
    });
    const { id: tenantId } = await instance.createTenant();
    const headers = { headers: { "x-tenant-id": tenantId } };
    /** All ways in with an e-mail: the tenant's paths, and better-auth's own in the tenant. */
    const ways = (email: string) => {
      const body = { name: "Al", email, password: PASSWORD };
      const post = (path: string) => instance.browser().post(path, body, headers);
      return {
        signUp: () => post(SIGN_UP),
        coreSignUp: () => post("/sign-up/email"),
        signIn: () => post(SIGN_IN),
        coreSignIn: () => post("/sign-in/email"),
        reset: () => post("/request-password-reset"),
      };
    };
    return { instance, mails, ways };
  }

  it("upper and lower case are one person everywhere", async () => {
    const { instance, mails, ways } = await tenantOn();
    const first = await ways("Al@X.com").signUp();
    expect(first.data.user).toMatchObject({ email: "al@x.com" });
    for (const email of ["Al@X.com", "al@x.com", "AL@X.COM", "aL@x.cOm"]) {
      const { signUp, coreSignUp, signIn, coreSignIn, reset } = ways(email);
      expect((await signUp()).code).toBe("USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
      expect((await coreSignUp()).code).toBe("USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
      for (const answer of [await signIn(), await coreSignIn()]) {
        expect(answer.status).toBe(200);
        expect(answer.data.user).toMatchObject({ email: "al@x.com" });
      }
      mails.length = 0;
      expect((await reset()).status).toBe(200);
      expect(mails).toMatchObject([{ email: "al@x.com" }]);
    }
    expect(await instance.rows("user")).toBe(1);
  });

  it.each([
    ["a leading space", " kil@x.com"],
    ["a trailing space", "kil@x.com "],
    ["a trailing line feed", "kil@x.com\n"],
    ["a NUL", "kil@x.com\0"],
    ["a Kelvin sign", "\u212Ail@x.com"],
    ["a dotless i", "k\u0131l@x.com"],
    ["a dotted capital I", "k\u0130l@x.com"],
    ["full width letters", "\uFF4B\uFF49\uFF4C@x.com"],
    ["a full width at", "kil\uFF20x.com"],
    ["a Cyrillic letter in the domain", "kil@\u0445.com"],
    ["an accent", "k\u00EDl@x.com"],
    ["a zero width joiner", "k\u200Dil@x.com"],
  ])("%s is nobody's e-mail, and is refused everywhere", async (_, email) => {
    const { instance, mails, ways } = await tenantOn();
    expect((await ways("kil@x.com").signUp()).status).toBe(200);
    const sessions = await instance.rows("session");
    for (const [way, send] of Object.entries(ways(email))) {
      const answer = await send();
      const refused = ["VALIDATION_ERROR", "INVALID_EMAIL"];
      expect([way, answer.status, refused.includes(answer.code ?? "")]).toEqual([way, 400, true]);
    }
    expect(mails).toEqual([]);
    expect(await instance.rows("user")).toBe(1);
    expect(await instance.rows("session")).toBe(sessions);
  });
});
