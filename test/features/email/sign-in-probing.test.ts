import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { admin, lastLoginMethod, phoneNumber, username } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { CLEANS_UP_ALWAYS, SIGN_UP_TAKES_PHONE } from "../../support/differences";
import { PASSWORD } from "../../support/instance";
import { createWorld } from "../../support/world";

type Password = Partial<NonNullable<BetterAuthOptions["emailAndPassword"]>>;

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";

/** Where somebody with this e-mail exists, seen from the tenant that is asked. */
const WHEREABOUTS = ["acme", "globex", "platform", "nowhere"] as const;
type Whereabouts = (typeof WHEREABOUTS)[number];
const emailOf = (whereabouts: Whereabouts) => `${whereabouts.padEnd(8, "x")}@example.com`;
const somebody = (email: string) => ({ name: "Somebody", email, password: PASSWORD });

async function open(options: Password = {}) {
  let hashed = 0;
  const password = {
    hash: async (text: string) => {
      hashed++;
      return `hashed:${text}`;
    },
    verify: async ({ hash, password }: { hash: string; password: string }) => {
      hashed++;
      return hash === `hashed:${password}`;
    },
  };
  const emailAndPassword = { enabled: true, password, ...options };
  const world = await createWorld({ auth: { emailAndPassword } });
  for (const place of ["acme", "globex", "platform"] as const) {
    await world.at(place).post("/sign-up/email", somebody(emailOf(place)));
  }
  world.mails.length = 0;

  /** Asks Acme about the e-mail of each of them, and tells all that can be seen from outside. */
  async function ask(path: string, more: object = {}, browser = world.at("acme")) {
    type Seen = { answer: string; hashed: number; statements: string[] };
    const seen = {} as Record<Whereabouts, Seen>;
    for (const whereabouts of WHEREABOUTS) {
      hashed = 0;
      world.database.statements.length = 0;
      const body = { ...somebody(emailOf(whereabouts)), ...more };
      const { status, headers, data } = await browser.fork().post(path, body);
      const answer = JSON.stringify([status, [...headers], data]);
      seen[whereabouts] = { answer, hashed, statements: [...world.database.statements] };
    }
    return seen;
  }
  return { world, ask };
}

/** What is new for each user, and the e-mail that was asked for, made equal. */
const blur = (answer: string) =>
  answer
    .replace(/"id":"\w{32}"/, '"id":"…"')
    .replace(/"(created|updated)At":"[\d:.TZ-]{24}"/g, '"$1At":"…"')
    .replace(/\w{8}@example.com/, "…");

const isCleanUp = (sql: string) => /"verification"\."expiresAt" </.test(sql);

describe("threat: accounts can be probed", () => {
  it("sign-in: same bytes, one hash, wherever the e-mail exists", async () => {
    const { world, ask } = await open();
    const wrong = await world.unchanged(() => ask(SIGN_IN, { password: "nobody's password" }));
    expect(wrong.nowhere.answer).toContain("INVALID_EMAIL_OR_PASSWORD");
    for (const { answer, hashed } of Object.values(wrong)) {
      expect([answer, hashed]).toEqual([wrong.nowhere.answer, 1]);
    }
    // The right password of elsewhere is worth nothing, and costs the same.
    const { acme, globex, platform, nowhere } = await ask(SIGN_IN);
    expect(acme.answer).toMatch(/^\[200/);
    expect(nowhere.statements).not.toEqual([]);
    expect([globex, platform]).toEqual([nowhere, nowhere]);
    // Somebody without a password is answered like nobody.
    await world.database.query("delete from account");
    const { acme: bare } = await ask(SIGN_IN);
    expect([bare.answer, bare.hashed]).toEqual([nowhere.answer, 1]);
  });

  it("mail goes to this tenant's user only, and the answers are the same", async () => {
    for (const path of ["/request-password-reset", "/send-verification-email"]) {
      const { world, ask } = await open();
      const seen = await ask(path);
      expect(seen.nowhere.answer).toMatch(/^\[200/);
      for (const { answer } of Object.values(seen)) expect(answer).toBe(seen.nowhere.answer);
      const [globex, platform, nowhere] = [seen.globex, seen.platform, seen.nowhere].map(
        ({ statements }) => statements.filter((sql) => CLEANS_UP_ALWAYS || !isCleanUp(sql)),
      );
      expect([globex, platform]).toEqual([nowhere, nowhere]);
      expect(world.mails).toMatchObject([{ to: emailOf("acme"), sentIn: world.ids.acme }]);
    }
  });

  const alone: Password = { requireEmailVerification: true };
  // What the admin plugin needs for its own fields, by its documentation.
  const fields = { role: "user", banned: false, banReason: null, banExpires: null };
  const filled: Password = {
    ...alone,
    customSyntheticUser: ({ coreFields, additionalFields, id }) => ({
      ...coreFields,
      ...fields,
      ...additionalFields,
      id,
    }),
  };

  it.each<[string, string, Password]>([
    ["the header", "with", filled],
    ["R4: the session", "with", filled],
    ["R4: the session", "without", alone],
  ])(
    "sign-up, named by %s, %s customSyntheticUser: same bytes, one hash",
    async (way, _, options) => {
      const { world, ask } = await open(options);
      await world.database.query(`update "user" set "emailVerified" = 1`);
      const { person } = await world.signIn("acme", emailOf("acme"));
      const seen =
        way === "the header"
          ? await ask(SIGN_UP)
          : await ask("/sign-up/email", {}, person.fork({}));
      const answers = new Set(Object.values(seen).map(({ answer }) => blur(answer)));
      expect([...answers]).toEqual([expect.stringContaining(`"tenantId":"${world.ids.acme}"`)]);
      expect(Object.values(seen).map(({ hashed }) => hashed)).toEqual([1, 1, 1, 1]);
      // Only new people are written, and mails go to those alone.
      expect(await world.rows("user")).toBe(6);
      const [, ...others] = WHEREABOUTS.map(emailOf);
      expect(world.mails.map(({ to }) => to)).toEqual(others);
    },
  );

  // What the hooks of official plugins write into a new user, and what people say of themselves.
  it.each<[string, BetterAuthPlugin, (own: string) => object, object]>([
    ["a role", admin(), () => ({}), { role: "user" }],
    ["a role of the application's", admin({ defaultRole: "guest" }), () => ({}), { role: "guest" }],
    ["no role", { id: "nobody" }, () => ({}), {}],
    [
      "a login method",
      lastLoginMethod({ storeInDatabase: true }),
      () => ({}),
      { lastLoginMethod: "email" },
    ],
    ["a login method that is not stored", lastLoginMethod(), () => ({}), {}],
    ["a name", username(), (own) => ({ username: own }), { username: "fresh" }],
    ["a phone", phoneNumber(), (own) => ({ phoneNumber: own }), { phoneNumber: "fresh" }],
    ["a field", { id: "nobody" }, () => ({ plan: "big" }), { plan: "big", size: 7 }],
  ])("sign-up with a policy for domains, and %s: same bytes", async (_, plugin, more, known) => {
    const { at, ids, api } = await createWorld({
      arrange: (ours) => [plugin, ours],
      auth: {
        user: {
          additionalFields: {
            plan: { type: "string", required: false },
            size: { type: "number", required: false, input: false, defaultValue: 7 },
          },
        },
      },
    });
    const policy = { emailDomains: ["example.com"] };
    await api.updateTenant({ body: { tenantId: ids.acme, policy } });
    // A name or a number has to be another one each time.
    const ask = async (own: string) => {
      const body = { ...somebody("somebody@example.com"), ...more(own) };
      const { status, headers, data } = await at("acme").post(SIGN_UP, body);
      const isTaken = SIGN_UP_TAKES_PHONE || !("phoneNumber" in body);
      if (own === "fresh" && isTaken) expect(data).toMatchObject({ token: null, user: known });
      return blur(JSON.stringify([status, [...headers], data])).replaceAll(own, "own");
    };
    const fresh = await ask("fresh");
    expect(await ask("taken")).toBe(fresh);
  });
});
