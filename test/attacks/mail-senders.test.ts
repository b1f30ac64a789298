import type { BetterAuthOptions } from "better-auth";
import { magicLink } from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInTenant } from "../../src/index";
import { Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import { createInstance, createPlainInstance, type Instance, PASSWORD } from "../support/instance";

interface Mail {
  url: string;
  token: string;
}

const EMAIL = "al@example.com";

/** Where people are whose address is verified. */
async function verifiedIn({ database }: Instance): Promise<unknown[]> {
  const users = await database.query(`select "tenantId" from "user" where "emailVerified" = 1`);
  return users.map(({ tenantId }) => tenantId);
}

class Mailer {
  readonly mails: Mail[] = [];
  async sendMagicLink(mail: Mail) {
    this.mails.push(mail);
  }
  async sendVerificationEmail(mail: Mail) {
    this.mails.push(mail);
  }
}

/** The same senders, as methods of a class or as properties of the options themselves. */
const SENDERS: Record<string, (mailer: Mailer) => Omit<Mailer, "mails">> = {
  "an own property": (mailer) => ({
    sendMagicLink: (mail) => mailer.sendMagicLink(mail),
    sendVerificationEmail: (mail) => mailer.sendVerificationEmail(mail),
  }),
  "a method of a class": (mailer) => mailer,
};

describe.each(Object.entries(SENDERS))("R6: where the sender is %s", (_, sendersOf) => {
  it("a magic link is sealed", async () => {
    const mailer = new Mailer();
    const app = await createInstance({ plugins: [magicLink(sendersOf(mailer))] });
    const { id } = await app.createTenant();
    await app.browser({ "x-tenant-id": id }).post("/sign-in/magic-link", { email: EMAIL });
    expect(mailer.mails).toEqual([expect.objectContaining({ token: SEALED })]);
  });

  it("a verification link leads back into its tenant", async () => {
    const mailer = new Mailer();
    const app = await createInstance({ auth: { emailVerification: sendersOf(mailer) } });
    const { id } = await app.createTenant();
    await app.signUp(id, EMAIL);
    await app.signUp(null, EMAIL);
    await app.browser({ "x-tenant-id": id }).post("/send-verification-email", { email: EMAIL });
    await app.browser().get(mailer.mails[0]?.url ?? "");
    expect(await verifiedIn(app)).toEqual([id]);
  });
});

const SEALED = expect.stringMatching(/^tenant~/);

/** Options with a sender that looks at the options that it is a method of. */
function selfish() {
  const sent: unknown[] = [];
  const emailAndPassword = {
    enabled: true,
    minPasswordLength: 9,
    async sendResetPassword(this: { minPasswordLength?: number } | undefined) {
      sent.push(this?.minPasswordLength);
    },
  };
  return { sent, auth: { emailAndPassword } satisfies Partial<BetterAuthOptions> };
}

async function askForReset(browser: Browser) {
  await browser.post("/sign-up/email", { name: "Al", email: EMAIL, password: PASSWORD });
  await browser.post("/request-password-reset", { email: EMAIL });
}

describe("a sender is called as a method of its options", () => {
  it("control: by better-auth alone", async () => {
    const database = await createDatabase("sqlite");
    onTestFinished(() => database.close());
    const { sent, auth } = selfish();
    await askForReset((await createPlainInstance(database, auth)).browser());
    expect(sent).toEqual([9]);
  });

  it("with the plugin", async () => {
    const { sent, auth } = selfish();
    await askForReset((await createInstance({ auth })).browser());
    expect(sent).toEqual([9]);
  });
});

/** The same person in a tenant and on the platform, and all mails to them. */
async function createNamesakes(auth: Partial<BetterAuthOptions>, base = "/api/auth") {
  const mails: Mail[] = [];
  const keep = async (mail: Mail) => void mails.push(mail);
  const app = await createInstance({
    auth: {
      ...auth,
      emailAndPassword: { enabled: true, sendResetPassword: keep },
      emailVerification: { sendVerificationEmail: keep, autoSignInAfterVerification: true },
    },
  });
  const { id } = await app.createTenant();
  const browser = (headers?: Record<string, string>) =>
    new Browser(app.auth.handler, `http://localhost:3000${base}`, headers);
  const person = { name: "Al", email: EMAIL, password: PASSWORD };
  await browser().post("/tenant/sign-up/email", { ...person, tenantId: id });
  await browser().post("/sign-up/email", person);
  return { app, id, browser, mails };
}

describe.each([
  ["/api/auth", "/api/auth"],
  ["/", ""],
])("R6: with the base path %s", (basePath, base) => {
  it("a verification link leads back into its tenant", async () => {
    const { app, id, browser, mails } = await createNamesakes({ basePath }, base);
    await browser({ "x-tenant-id": id }).post("/send-verification-email", { email: EMAIL });
    const visitor = browser();
    await visitor.get(mails[0]?.url ?? "");
    expect(await verifiedIn(app)).toEqual([id]);
    const { data } = await visitor.get("/get-session");
    expect(data).toMatchObject({ session: { tenantId: id } });
  });

  it("a reset link works in a browser that names no tenant", async () => {
    const { id, browser, mails } = await createNamesakes({ basePath }, base);
    const body = { email: EMAIL, redirectTo: "/reset" };
    await browser({ "x-tenant-id": id }).post("/request-password-reset", body);
    const { location } = await browser().get(mails[0]?.url ?? "");
    expect(location).toMatch(/\/reset\?token=tenant~/);
  });
});

describe("R6: from a job of the application's", () => {
  it.each(["http://localhost:3000", undefined])(
    "the token is sealed, with the base URL %s",
    async (baseURL) => {
      const { app, id, mails } = await createNamesakes({ baseURL });
      const body = { email: EMAIL };
      await runInTenant(id, () => app.api.sendVerificationEmail({ body }));
      expect(mails).toEqual([expect.objectContaining({ token: SEALED })]);
    },
  );
});
