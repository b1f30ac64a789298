import { symmetricEncrypt } from "better-auth/crypto";
import { magicLink, oneTimeToken } from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInTenant } from "../../../src/index";
import { type Answer, Browser } from "../../support/browser";
import { createDatabase } from "../../support/database";
import { createInstance, PASSWORD } from "../../support/instance";
import {
  createWorld,
  EMAIL,
  expectRefused,
  outcome,
  queryOf,
  SUBDOMAINS,
  shareWorld,
  type Where,
  type World,
  type WorldOptions,
} from "../../support/world";

let nextToken: string | undefined;
const MAILING: WorldOptions = {
  plugins: (send) => [
    magicLink({
      sendMagicLink: send("magic link"),
      generateToken: () => nextToken ?? crypto.randomUUID(),
    }),
    oneTimeToken(),
  ],
};
const NEW_PASSWORD = "another long password";

/** How each kind of mail is asked for. */
const ASKED: Record<string, [path: string, page: string]> = {
  reset: ["/request-password-reset", "redirectTo"],
  verification: ["/send-verification-email", "callbackURL"],
  "magic link": ["/sign-in/magic-link", "callbackURL"],
};

let count = 0;

/** Somebody new at a place, with a namesake at Globex, and a mail that they asked for. */
async function mailFor(world: World, kind: string, where: Where = "acme") {
  const email = `same-${++count}@example.com`;
  const person = await world.signUp(where, email);
  await world.signUp("globex", email);
  world.mails.length = 0;
  const [path = "", page = ""] = ASKED[kind] ?? [];
  expect((await person.post(path, { email, [page]: "/page" })).status).toBe(200);
  return { ...world.lastMail(kind), email, person };
}

/** An error, in the answer or in the address that it leads to, and nobody signed in. */
function expectNoUse(answer: Answer) {
  if (answer.status === 302) expect(queryOf(answer.location)).toHaveProperty("error");
  else expect(answer.status).toBeGreaterThanOrEqual(400);
  expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
}

/** Where people are whose address is verified. */
async function verifiedIn({ database }: Pick<World, "database">, email = EMAIL) {
  const users = await database.query(
    `select "tenantId" from "user" where "emailVerified" = 1 and email = ?`,
    [email],
  );
  return users.map(({ tenantId }) => tenantId);
}

describe("R6: a sealed token", () => {
  const world = shareWorld(MAILING);

  it("in the body or the query of a sign-up, or of what is mailed, names no tenant", async () => {
    const { token, email } = await mailFor(world, "reset");
    world.mails.length = 0;
    const body = (email: string) => ({ name: "X", email, password: PASSWORD });
    for (const signUp of [
      () => world.at(null).post("/sign-up/email", { ...body("a@example.com"), token }),
      () => world.at(null).post("/sign-up/email", body("b@example.com"), { query: { token } }),
    ]) {
      expect((await world.touchesOnly("platform", signUp)).status).toBe(200);
    }
    for (const [body, query] of [
      [{ email, token }, {}],
      [{ email }, { token }],
    ] as const) {
      await world.at(null).post("/request-password-reset", body, { query });
    }
    expect(world.mails).toEqual([]);
  });

  it("beside another one is none", async () => {
    const [one, other] = [await mailFor(world, "reset"), await mailFor(world, "reset")];
    const body = { token: one.token, newPassword: NEW_PASSWORD };
    const options = { query: { token: other.token } };
    const both = () => world.at(null).post("/reset-password", body, options);
    expectNoUse(await world.unchanged(both));
  });

  it.each([
    ["magic link", "/reset-password", "POST"],
    ["reset", "/magic-link/verify", "GET"],
    ["reset", "/verify-email", "GET"],
    ["verification", "/reset-password", "POST"],
  ])("of a %s link is none at %s", async (kind, path, method) => {
    const { token } = await mailFor(world, kind);
    const body = { token, newPassword: NEW_PASSWORD };
    const options = method === "GET" ? { query: { token } } : { method, body };
    await world.unchanged(async () => expectNoUse(await world.at(null).send(path, options)));
  });

  it.each(["/#/reset", "http://localhost:3000/app#/reset", "/reset?x=1#y", "/#/reset?x=1"])(
    "of a reset link goes on sealed to %s, and resets a password from there",
    async (redirectTo) => {
      const { email } = await world.signUp("acme", `hash-${++count}@example.com`);
      await world.at("acme").post("/request-password-reset", { email, redirectTo });
      const { url, token } = world.lastMail("reset");
      const page = new URL((await world.at(null).get(url)).location ?? "");
      expect(page.searchParams.get("token")).toBe(token);
      page.searchParams.delete("token");
      expect(page.href).toBe(new URL(redirectTo, page).href);
      const body = { token, newPassword: NEW_PASSWORD };
      expect((await world.at(null).post("/reset-password", body)).status).toBe(200);
    },
  );

  it("R2: of a tenant that was deleted is a 404, in a link and in a POST", async () => {
    const { id } = await world.createTenant();
    const { url, token } = await mailFor(world, "reset", id);
    await world.api.deleteTenant({ body: { tenantId: id } });
    expectRefused(await world.at(null).get(url), 404, "TENANT_NOT_FOUND");
    const body = { token, newPassword: NEW_PASSWORD };
    expectRefused(await world.at(null).post("/reset-password", body), 404, "TENANT_NOT_FOUND");
  });

  /** Characters that no link has as they are, and letters that stand in every link. */
  it.each(["a+b/c=d&e f%g#h?i", "ünïcödé 🔑", "api", "/"])(
    "may stand for the token %j of the application, and replaces nothing else",
    async (token) => {
      nextToken = token;
      const { id } = await world.as("jane", "acme");
      const callbackURL = "/after?next=/api/auth/done&token=none";
      await world.at("acme").post("/sign-in/magic-link", { email: EMAIL, callbackURL });
      nextToken = undefined;
      const mail = world.lastMail("magic link");
      const { origin, pathname, searchParams } = new URL(mail.url);
      expect(origin + pathname).toBe("http://localhost:3000/api/auth/magic-link/verify");
      expect([...searchParams]).toEqual([
        ["token", mail.token],
        ["callbackURL", callbackURL],
      ]);
      const stranger = world.at("platform");
      await stranger.get(mail.url);
      expect(await world.whoIs(stranger)).toMatchObject({ id, tenantId: world.ids.acme });
    },
  );
});

describe("R6: where hosts name tenants", () => {
  const world = shareWorld({ ...MAILING, hosts: SUBDOMAINS });

  it.each(["reset", "verification", "magic link"])(
    "a %s link of Acme is none at Globex's host, and works at Acme's and at the platform's",
    async (kind) => {
      for (const host of ["acme", "platform"] as const) {
        const { url, person, email } = await mailFor(world, kind);
        const linkAt = (place: keyof typeof SUBDOMAINS.names) =>
          Object.assign(new URL(url), { host: SUBDOMAINS.names[place] }).href;
        expectNoUse(await world.at("globex", person).get(linkAt("globex")));
        expect(await verifiedIn(world, email)).toEqual([]);
        const home = await world.at(host, person).get(linkAt(host));
        expect([home.status, home.location]).toEqual([302, expect.stringMatching(/\/page(\?|$)/)]);
        expect(queryOf(home.location)).not.toHaveProperty("error");
      }
    },
  );
});

it("R6: with the base path / links lead back into their tenant", async () => {
  const world = await createWorld({
    auth: { basePath: "/", emailVerification: { autoSignInAfterVerification: true } },
  });
  const at = (headers = {}) => new Browser(world.auth.handler, "http://localhost:3000", headers);
  const tenant = at(world.naming("acme"));
  const body = { name: "Al", email: EMAIL, password: PASSWORD };
  for (const browser of [tenant, at()]) await browser.post("/sign-up/email", body);
  await tenant.post("/send-verification-email", { email: EMAIL });
  await tenant.post("/request-password-reset", { email: EMAIL, redirectTo: "/reset" });
  const [verification, reset] = world.mails;
  const visitor = at();
  await visitor.get(verification?.url ?? "");
  const session = { tenantId: world.ids.acme };
  expect((await visitor.get("/get-session")).data).toMatchObject({ session });
  const { location } = await at().get(reset?.url ?? "");
  expect(location).toMatch(/\/reset\?token=tenant~/);
});

it.each(["http://localhost:3000", undefined])(
  "R6: from a job of the application's a token is sealed, with the base URL %s",
  async (baseURL) => {
    const world = await createWorld({ auth: { baseURL } });
    await world.as("jane", "acme");
    const body = { email: EMAIL };
    await runInTenant(world.ids.acme, () => world.api.sendVerificationEmail({ body }));
    expect(world.lastMail("verification").token).toMatch(/^tenant~/);
  },
);

describe("a mailed link that is refused tells the page why", () => {
  async function start() {
    const world = await createWorld({
      ...MAILING,
      tenant: { resolveTenantId: ({ request }) => request?.headers.get("x-resolved") },
      auth: {
        user: { changeEmail: { enabled: true, sendChangeEmailConfirmation: undefined as never } },
        trustedOrigins: ["https://pages.example.com"],
      },
    });
    const jane = await world.as("jane", "acme");
    /** The link that somebody gets, who is there already. */
    const magic = async (pages: object) => {
      await world.at("acme").post("/sign-in/magic-link", { email: EMAIL, ...pages });
      return world.lastMail("magic link").url;
    };
    const follow = async (url: string, headers = {}) => {
      const { status, location } = await world.browser(headers).get(url);
      return [status, location];
    };
    return { ...world, jane, magic, follow };
  }
  const IN = [302, "http://localhost:3000/in"];

  it("by a policy that was set meanwhile", async () => {
    const { browser, magic, follow, change, jane, rows } = await start();
    const page = "https://pages.example.com/in";
    const links = [
      [await magic({ callbackURL: "/in", errorCallbackURL: "/failed" }), "/failed"],
      [await magic({ callbackURL: page }), page],
    ] as const;
    const plain = await magic({ callbackURL: "/in" });
    await change("acme", { policy: { methods: ["password"] } });
    for (const [link, page] of links) {
      expect(await follow(link)).toEqual([302, `${page}?error=SIGN_IN_METHOD_NOT_ALLOWED`]);
    }
    // A program that asks without a page gets an answer.
    const answer = await browser().get(plain.replace(/&callbackURL=[^&]*/, ""));
    expect(outcome(answer)).toEqual([403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
    // Nothing has come of it, and nothing has gone.
    expect(await rows("session", '"userId" = ?', [jane.id])).toBe(1);
    await change("acme", { policy: null });
    expect(await follow(await magic({ callbackURL: "/in" }))).toEqual(IN);
  });

  it("a changed address, too", async () => {
    const { jane, change, changeUser, lastMail, whoIs } = await start();
    // An application that does not say otherwise has each new one confirmed.
    await jane.post("/change-email", { newEmail: "y@example.com" });
    expect(await whoIs(jane)).toMatchObject({ email: EMAIL });
    await changeUser(jane.id, { emailVerified: true });
    await jane.post("/change-email", { newEmail: "x@elsewhere.com", callbackURL: "/settings" });
    await change("acme", { policy: { emailDomains: ["example.com"] } });
    const { status, location } = await jane.get(lastMail("verification").url);
    expect([status, location]).toEqual([302, "/settings?error=EMAIL_DOMAIN_NOT_ALLOWED"]);
  });

  it("because its tenant is suspended, at the tenant's own host or elsewhere", async () => {
    const { ids, at, naming, magic, follow, change } = await start();
    const link = await magic({ callbackURL: "/in", errorCallbackURL: "/failed" });
    const foreign = link.replace("%2Ffailed", encodeURIComponent("https://evil.example.com/"));
    await change("acme", { status: "suspended" });
    for (const headers of [{}, { "x-resolved": ids.acme }, naming("acme")]) {
      expect(await follow(link, headers)).toEqual([302, "/failed?error=TENANT_SUSPENDED"]);
      // Never to a page that is not trusted.
      expect(await follow(foreign, headers)).toEqual([403, null]);
    }
    // What no link asked for is an answer, whichever page it names.
    const body = { email: EMAIL, password: "x", callbackURL: "/in" };
    const answer = await at("acme").post("/tenant/sign-in/email?callbackURL=/in", body);
    expect(outcome(answer)).toEqual([403, "TENANT_SUSPENDED"]);
    await change("acme", { status: "active" });
    expect(await follow(link)).toEqual(IN);
  });
});

it("frozen options of a plugin are refused with a sentence", async () => {
  const options = Object.freeze({ sendMagicLink: async () => {} });
  const start = createInstance({ plugins: [magicLink(options)] });
  await expect(start).rejects.toThrow("cannot seal the links of magic-link");
});

describe("secrets", () => {
  const [first, second] = ["first secret ".repeat(4), "second secret ".repeat(4)];
  const versions = (...values: string[]) => ({
    secret: undefined,
    secrets: values.map((value) => ({ version: value === first ? 1 : 2, value })),
  });

  it.each([{ secret: first }, versions(first)])(
    "links outlive a new secret while the old one is among the secrets: %j",
    async (before) => {
      const database = await createDatabase("sqlite");
      onTestFinished(() => database.close());
      const world = await createWorld({ ...MAILING, database, auth: before });
      const body = { token: (await mailFor(world, "reset")).token, newPassword: NEW_PASSWORD };
      const rotated = { ...versions(second, first), secret: first };
      for (const [auth, status] of [
        [versions(second), 400],
        [rotated, 200],
      ] as const) {
        const { browser } = await createInstance({ database, auth, migrate: false });
        expect((await browser().post("/reset-password", body)).status).toBe(status);
      }
    },
  );

  it("threat: what better-auth encrypts for a caller is no link", async () => {
    const world = await createWorld({ ...MAILING, auth: versions(second, first) });
    const { email } = await mailFor(world, "magic link");
    nextToken = "known";
    await world.at("acme").post("/sign-in/magic-link", { email });
    nextToken = undefined;
    const contents = { token: "known", tenantId: world.ids.acme, path: "/magic-link/verify" };
    const key = world.context.secretConfig;
    const cipher = await symmetricEncrypt({ key, data: JSON.stringify(contents) });
    const token = `tenant~${cipher.replaceAll("$", "~")}`;
    const forged = await world.at(null).get("/magic-link/verify", { query: { token } });
    expectNoUse(forged);
    // Control: the link that was sent.
    const { url } = world.lastMail("magic link");
    expect((await world.at(null).get(url)).headers.getSetCookie().join()).toContain(
      "session_token",
    );
  });
});
