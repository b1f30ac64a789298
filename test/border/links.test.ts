import { magicLink, oneTimeToken } from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInTenant } from "../../src/index";
import { type Answer, Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import {
  createInstance,
  createPlainInstance,
  type InstanceOptions,
  PASSWORD,
} from "../support/instance";
import {
  createWorld,
  EMAIL,
  expectRefused,
  type Mail,
  type Person,
  queryOf,
  SUBDOMAINS,
  shareWorld,
  type Where,
  type World,
  type WorldOptions,
} from "../support/world";

const MAILING: WorldOptions = {
  deletionByMail: true,
  plugins: (send) => [magicLink({ sendMagicLink: send("magic link") }), oneTimeToken()],
};
const NEW_PASSWORD = "another long password";

/** How each kind of mail is asked for. */
const ASKED: Record<string, [path: string, body: (email: string) => object]> = {
  reset: ["/request-password-reset", (email) => ({ email, redirectTo: "/page" })],
  verification: ["/send-verification-email", (email) => ({ email, callbackURL: "/page" })],
  change: ["/change-email", (email) => ({ newEmail: `new-${email}`, callbackURL: "/page" })],
  deletion: ["/delete-user", () => ({ callbackURL: "/page" })],
  "magic link": ["/sign-in/magic-link", (email) => ({ email, callbackURL: "/page" })],
};

let count = 0;

/** Somebody new at a place, with a namesake at Globex, and a mail that they asked for. */
async function mailFor(world: World, kind: string, where: Where = "acme") {
  const email = `same-${++count}@example.com`;
  const person = await world.signUp(where, email);
  await world.signUp("globex", email);
  world.mails.length = 0;
  const [path, body] = ASKED[kind] ?? [];
  const { status, data } = await person.post(path ?? "", body?.(email));
  expect(status, JSON.stringify(data)).toBe(200);
  const [mail] = world.mails;
  if (!mail) throw new Error(`no ${kind} mail`);
  return { ...mail, email, person };
}

/** An error, in the answer or in the address that it leads to, and nobody signed in. */
function expectNoUse(answer: Answer) {
  if (answer.status === 302) expect(queryOf(answer.location)).toHaveProperty("error");
  else expect(answer.status).toBeGreaterThanOrEqual(400);
  expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
}

describe("root 17: a sealed token names its tenant only where it belongs", () => {
  const world = shareWorld(MAILING);
  const stranger = { name: "X", email: "x@example.com", password: PASSWORD };
  const asked = { email: "same-1@example.com", redirectTo: "/page" };

  it.each<[string, string, object, "body" | "query"]>([
    ["a sign-up with it in the body", "/sign-up/email", stranger, "body"],
    ["a sign-up with it in the query", "/sign-up/email", stranger, "query"],
    ["a reset that is asked for with it", "/request-password-reset", asked, "body"],
    ["a magic link that is asked for with it", "/sign-in/magic-link", stranger, "query"],
  ])("%s stays on the platform", async (_, path, body, place) => {
    const { token } = await mailFor(world, "reset");
    const sent = place === "body" ? { ...body, token } : body;
    const options = place === "query" ? { query: { token } } : {};
    await world.touchesOnly("platform", () => world.at(null).post(path, sent, options));
  });

  it("a sign-in with it in the body or query knows nobody of its tenant", async () => {
    const { email, token } = await mailFor(world, "reset");
    const body = { email, password: PASSWORD };
    for (const answer of [
      await world.at(null).post("/sign-in/email", { ...body, token }),
      await world.at(null).post("/sign-in/email", body, { query: { token } }),
    ]) {
      expectRefused(answer, 401, "INVALID_EMAIL_OR_PASSWORD");
    }
  });

  it("a session with it in the query is where it is", async () => {
    const { token } = await mailFor(world, "reset");
    const jane = await world.as("jane", "platform");
    const { data } = await jane.get("/get-session", { query: { token } });
    expect(data).toMatchObject({ user: { id: jane.id } });
    expect((await jane.get("/list-sessions", { query: { token } })).status).toBe(200);
  });

  it.each([
    ["reset", "/one-time-token/verify", "POST"],
    ["magic link", "/reset-password", "POST"],
    ["reset", "/magic-link/verify", "GET"],
    ["reset", "/delete-user/callback", "GET"],
    ["reset", "/verify-email", "GET"],
    ["verification", "/reset-password", "POST"],
    ["deletion", "/reset-password", "POST"],
    ["deletion", "/magic-link/verify", "GET"],
  ])("a token of a %s link is none at %s", async (kind, path, method) => {
    const { token } = await mailFor(world, kind);
    const body = { token, newPassword: NEW_PASSWORD };
    const options = method === "GET" ? { query: { token } } : { method, body };
    const users = await world.rows("user");
    const sessions = await world.rows("session");
    expectNoUse(await world.at(null).send(path, options));
    expect([await world.rows("user"), await world.rows("session")]).toEqual([users, sessions]);
  });
});

/** Where people are whose address is verified. */
async function verifiedIn(
  { database }: Pick<World, "database">,
  email = EMAIL,
): Promise<unknown[]> {
  const users = await database.query(
    `select "tenantId" from "user" where "emailVerified" = 1 and email = ?`,
    [email],
  );
  return users.map(({ tenantId }) => tenantId);
}

describe("root 17: where it belongs", () => {
  const world = shareWorld(MAILING);

  /** With which password and which address somebody signs in, and whether it is verified. */
  const stateAt = async (place: "acme" | "globex", email: string) => ({
    old: (await world.signIn(place, email)).status,
    reset: (await world.signIn(place, email, NEW_PASSWORD)).status,
    changed: (await world.signIn(place, `new-${email}`)).status,
    verified: (await verifiedIn(world, email)).includes(world.ids[place]),
  });
  const AS_BEFORE = { old: 200, reset: 401, changed: 401, verified: false };

  it.each<[string, Partial<typeof AS_BEFORE>]>([
    ["reset", { old: 401, reset: 200 }],
    ["verification", { verified: true }],
    ["deletion", { old: 401 }],
    ["change", { old: 401, changed: 200 }],
    // better-auth takes the password of whoever had not verified the address before.
    ["magic link", { old: 401, verified: true }],
  ])("control: a %s link works from a browser that names no tenant", async (kind, changes) => {
    const { url, email, person } = await mailFor(world, kind);
    const browser = kind === "magic link" ? world.at(null) : world.at(null, person);
    const { location } = await browser.get(url);
    expect(location).toMatch(/(^|:3000)\/page(\?token=tenant~|$)/);
    if (kind === "magic link") expect(await world.whoIs(browser)).toMatchObject({ id: person.id });
    if (kind === "reset") {
      const body = { token: queryOf(location).token, newPassword: NEW_PASSWORD };
      expect((await world.at(null).post("/reset-password", body)).status).toBe(200);
    }
    expect(await stateAt("acme", email)).toEqual({ ...AS_BEFORE, ...changes });
    expect(await stateAt("globex", email)).toEqual(AS_BEFORE);
  });

  it("R2: links of a tenant that was deleted, and the POST with a reset token, are a 404", async () => {
    const { id } = await world.createTenant();
    const links: { url: string; token: string; person: Person }[] = [];
    for (const kind of ["reset", "verification", "deletion", "magic link"]) {
      links.push(await mailFor(world, kind, id));
    }
    await world.api.deleteTenant({ body: { tenantId: id } });
    for (const { url, person } of links) {
      expectRefused(await world.at(null, person).get(url), 404, "TENANT_NOT_FOUND");
    }
    const body = { token: links[0]?.token, newPassword: NEW_PASSWORD };
    expectRefused(await world.at(null).post("/reset-password", body), 404, "TENANT_NOT_FOUND");
  });
});

describe("root 17: past a resolver that names another tenant", () => {
  const world = shareWorld({ ...MAILING, hosts: SUBDOMAINS });
  const linkAt = (url: string, place: "acme" | "globex") => {
    const moved = new URL(url);
    moved.host = SUBDOMAINS.names[place];
    return moved.href;
  };

  it.each(["reset", "verification", "deletion", "magic link"])(
    "a %s link of Acme is none at Globex's host, and works at Acme's",
    async (kind) => {
      const { url, person, email } = await mailFor(world, kind);
      const users = await world.rows("user");
      expectNoUse(await world.at("globex", person).get(linkAt(url, "globex")));
      expect([await world.rows("user"), await verifiedIn(world, email)]).toEqual([users, []]);
      const home = await person.get(linkAt(url, "acme"));
      expect([home.status, home.location]).toEqual([302, expect.stringMatching(/\/page(\?|$)/)]);
      expect(queryOf(home.location)).not.toHaveProperty("error");
    },
  );

  it("a reset token of Acme in a POST at Globex's host changes nobody's password", async () => {
    const { token, email } = await mailFor(world, "reset");
    const body = { token, newPassword: NEW_PASSWORD };
    expectNoUse(await world.at("globex").post("/reset-password", body));
    for (const place of ["acme", "globex"]) {
      expect((await world.signIn(place, email)).status, place).toBe(200);
    }
    expect((await world.at("acme").post("/reset-password", body)).status).toBe(200);
  });

  it("nor is a tenant named at the platform's host by a token in a sign-up", async () => {
    const { token } = await mailFor(world, "reset");
    const body = { name: "X", email: "x@example.com", password: PASSWORD, token };
    await world.touchesOnly("platform", () => world.at("platform").post("/sign-up/email", body));
  });
});

class Mailer {
  readonly mails: Pick<Mail, "url" | "token">[] = [];
  async sendMagicLink(mail: Mailer["mails"][number]) {
    this.mails.push(mail);
  }
  async sendVerificationEmail(mail: Mailer["mails"][number]) {
    this.mails.push(mail);
  }
}

/** The world's own mailbox copies options; here it matters whose methods the senders are. */
async function createNamesakes(options: InstanceOptions, base = "/api/auth") {
  const instance = await createInstance(options);
  const { id } = await instance.createTenant();
  const at = (headers = {}) =>
    new Browser(instance.auth.handler, `http://localhost:3000${base}`, headers);
  const body = { name: "Al", email: EMAIL, password: PASSWORD };
  const tenant = at({ "x-tenant-id": id });
  for (const browser of [tenant, at()]) await browser.post("/sign-up/email", body);
  return { instance, id, at, tenant };
}

const sendersOf = (mailer: Mailer): Omit<Mailer, "mails"> => ({
  sendMagicLink: (mail) => mailer.sendMagicLink(mail),
  sendVerificationEmail: (mail) => mailer.sendVerificationEmail(mail),
});

it.each<[string, (mailer: Mailer) => Omit<Mailer, "mails">]>([
  ["an own property", sendersOf],
  ["a method of a class", (mailer) => mailer],
])("R6: where the sender is %s, links are sealed and lead back", async (_, senderOf) => {
  const mailer = new Mailer();
  const senders = senderOf(mailer);
  const options = { plugins: [magicLink(senders)], auth: { emailVerification: senders } };
  const { instance, id, at, tenant } = await createNamesakes(options);
  await tenant.post("/sign-in/magic-link", { email: EMAIL });
  await tenant.post("/send-verification-email", { email: EMAIL });
  const sealed = { token: expect.stringMatching(/^tenant~/) };
  expect(mailer.mails).toMatchObject([sealed, sealed]);
  await at().get(mailer.mails[1]?.url ?? "");
  expect(await verifiedIn(instance)).toEqual([id]);
});

it.each(["better-auth alone (control)", "the plugin"])(
  "with %s, a sender is called as a method of its options",
  async (by) => {
    const sent: unknown[] = [];
    const emailAndPassword = {
      enabled: true,
      minPasswordLength: 9,
      async sendResetPassword(this: { minPasswordLength?: number } | undefined) {
        sent.push(this?.minPasswordLength);
      },
    };
    const database = await createDatabase("sqlite");
    onTestFinished(() => database.close());
    const auth = { emailAndPassword };
    const { browser } =
      by === "the plugin"
        ? await createInstance({ database, auth })
        : await createPlainInstance(database, auth);
    const body = { name: "Al", email: EMAIL, password: PASSWORD };
    await browser().post("/sign-up/email", body);
    await browser().post("/request-password-reset", body);
    expect(sent).toEqual([9]);
  },
);

it.each([
  ["/api/auth", "/api/auth"],
  ["/", ""],
])("R6: with the base path %s links lead back into their tenant", async (basePath, base) => {
  const mailer = new Mailer();
  const { sendVerificationEmail } = sendersOf(mailer);
  const auth = {
    basePath,
    emailAndPassword: { enabled: true, sendResetPassword: sendVerificationEmail },
    emailVerification: { sendVerificationEmail, autoSignInAfterVerification: true },
  };
  const { instance, id, at, tenant } = await createNamesakes({ auth }, base);
  await tenant.post("/send-verification-email", { email: EMAIL });
  await tenant.post("/request-password-reset", { email: EMAIL, redirectTo: "/reset" });
  const [verification, reset] = mailer.mails;
  const visitor = at();
  await visitor.get(verification?.url ?? "");
  expect(await verifiedIn(instance)).toEqual([id]);
  const { data } = await visitor.get("/get-session");
  expect(data).toMatchObject({ session: { tenantId: id } });
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
