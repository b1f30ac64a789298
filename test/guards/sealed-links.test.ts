import type { BetterAuthOptions } from "better-auth";
import { magicLink, oneTimeToken } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { createInstance, PASSWORD } from "../support/instance";
import { queryOf } from "../support/social";
import { bySubdomains } from "./hosts";

type Kind = "reset" | "verification" | "change" | "deletion" | "magic link";

interface SentMail {
  kind: Kind;
  url: string;
  token: string;
}

/** Options that put every mail into a list. */
function mailing(mails: SentMail[]) {
  const put =
    (kind: Kind) =>
    async ({ url, token }: Omit<SentMail, "kind">) =>
      void mails.push({ kind, url, token });
  const auth = {
    emailAndPassword: { enabled: true, sendResetPassword: put("reset") },
    emailVerification: { sendVerificationEmail: put("verification") },
    user: {
      changeEmail: { enabled: true, sendChangeEmailConfirmation: put("change") },
      deleteUser: { enabled: true, sendDeleteAccountVerification: put("deletion") },
    },
  } satisfies Partial<BetterAuthOptions>;
  return { auth, plugins: [magicLink({ sendMagicLink: put("magic link") }), oneTimeToken()] };
}

const EMAIL = "same@example.com";

/** How each kind of mail is asked for. */
const ASKED: Record<Kind, [path: string, body: object]> = {
  reset: ["/request-password-reset", { email: EMAIL, redirectTo: "/page" }],
  verification: ["/send-verification-email", { email: EMAIL, callbackURL: "/page" }],
  change: ["/change-email", { newEmail: "new@example.com", callbackURL: "/page" }],
  deletion: ["/delete-user", { callbackURL: "/page" }],
  "magic link": ["/sign-in/magic-link", { email: EMAIL, callbackURL: "/page" }],
};

const ACME_HOST = "acme.example.com";

/** Acme and Globex with the same person in each, and all the mails that are sent. */
async function createLinks(how: "names" | "hosts" = "names") {
  const mails: SentMail[] = [];
  const { auth, plugins } = mailing(mails);
  const byHost = how === "hosts";
  const base = { baseURL: "http://example.com", trustedOrigins: ["http://*.example.com"] };
  const instance = await createInstance({
    tenant: byHost ? { resolveTenantId: bySubdomains.resolveTenantId } : {},
    auth: { ...auth, ...(byHost && base) },
    plugins,
  });
  const acme = (await instance.createTenant("acme")).id;
  const globex = (await instance.createTenant("globex")).id;
  const person = { name: "Same", email: EMAIL, password: PASSWORD };
  for (const tenantId of [acme, globex]) {
    await instance.api.signUpEmailTenant({ body: { ...person, tenantId } });
  }

  /** A mail of a kind, asked for at Acme by its own person. */
  async function mailFor(kind: Kind) {
    const browser = instance.browser(byHost ? { host: ACME_HOST } : { "x-tenant-id": acme });
    const post = (path: string, body: object) =>
      browser.post(byHost ? `http://${ACME_HOST}/api/auth${path}` : path, body);
    await post("/sign-in/email", { email: EMAIL, password: PASSWORD });
    mails.length = 0;
    const { status, data } = await post(...ASKED[kind]);
    expect(status, JSON.stringify(data)).toBe(200);
    const mail = mails.find((sent) => sent.kind === kind) ?? mails.at(-1);
    if (!mail) throw new Error(`no ${kind} mail`);
    return { ...mail, browser };
  }
  return { instance, acme, globex, email: EMAIL, mails, mailFor };
}

type Links = Awaited<ReturnType<typeof createLinks>>;

/** Endpoints that have no use for such a token, with it in their body or query. */
const MISUSES: [what: string, send: (browser: Browser, token: string) => Promise<unknown>][] = [
  [
    "a sign-up with it in the body",
    (browser, token) =>
      browser.post("/sign-up/email", { name: "X", email: "x@x.com", password: PASSWORD, token }),
  ],
  [
    "a sign-up with it in the query",
    (browser, token) =>
      browser.post(
        "/sign-up/email",
        { name: "X", email: "x@x.com", password: PASSWORD },
        { query: { token } },
      ),
  ],
  [
    "a reset that is asked for with it",
    (browser, token) =>
      browser.post("/request-password-reset", {
        email: "same@example.com",
        redirectTo: "/page",
        token,
      }),
  ],
  [
    "a magic link that is asked for with it",
    (browser, token) =>
      browser.post("/sign-in/magic-link", { email: "x@x.com" }, { query: { token } }),
  ],
];

describe("root 17: a sealed token names its tenant only where it belongs", () => {
  it.each(MISUSES)("%s stays on the platform", async (_, send) => {
    const { instance, acme, mailFor } = await createLinks();
    const { token } = await mailFor("reset");
    const rows = async () => [
      await instance.rows("user", '"tenantId" = ?', [acme]),
      await instance.rows("verification", '"tenantId" = ?', [acme]),
      await instance.rows("session", '"tenantId" = ?', [acme]),
    ];
    const before = await rows();
    await send(instance.browser(), token);
    expect(await rows()).toEqual(before);
  });

  it("a sign-in with it in the body or query knows nobody of its tenant", async () => {
    const { instance, email, mailFor } = await createLinks();
    const { token } = await mailFor("reset");
    const sessions = await instance.rows("session");
    const body = { email, password: PASSWORD };
    for (const answer of [
      await instance.browser().post("/sign-in/email", { ...body, token }),
      await instance.browser().post("/sign-in/email", body, { query: { token } }),
    ]) {
      expect([answer.status, answer.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
      expect(answer.headers.getSetCookie()).toEqual([]);
    }
    expect(await instance.rows("session")).toBe(sessions);
  });

  it("a session with it in the query is where it is", async () => {
    const { instance, mailFor } = await createLinks();
    const { token } = await mailFor("reset");
    const platform = await instance.signUp(null);
    const { data } = await platform.browser.get("/get-session", { query: { token } });
    expect(data).toMatchObject({ user: { id: platform.user.id } });
    const list = await platform.browser.get("/list-sessions", { query: { token } });
    expect(list.status).toBe(200);
  });

  it("a one-time token that is a sealed reset token is none", async () => {
    const { instance, mailFor } = await createLinks();
    const { token } = await mailFor("reset");
    const sessions = await instance.rows("session");
    const answer = await instance.browser().post("/one-time-token/verify", { token });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(await instance.rows("session")).toBe(sessions);
  });

  const WRONG: [kind: Kind, path: string, method: "GET" | "POST"][] = [
    ["magic link", "/reset-password", "POST"],
    ["reset", "/magic-link/verify", "GET"],
    ["reset", "/delete-user/callback", "GET"],
    ["reset", "/verify-email", "GET"],
    ["verification", "/reset-password", "POST"],
    ["deletion", "/reset-password", "POST"],
    ["deletion", "/magic-link/verify", "GET"],
  ];

  it.each(WRONG)("a token of a %s link is none at %s", async (kind, path, method) => {
    const { instance, mailFor } = await createLinks();
    const { token } = await mailFor(kind);
    const users = await instance.rows("user");
    const sessions = await instance.rows("session");
    const answer =
      method === "GET"
        ? await instance.browser().get(path, { query: { token } })
        : await instance.browser().post(path, { token, newPassword: "another password" });
    if (answer.status === 302) expect(queryOf(answer.location)).toHaveProperty("error");
    else expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
    expect([await instance.rows("user"), await instance.rows("session")]).toEqual([
      users,
      sessions,
    ]);
  });
});

/** What a link does when it is followed, and whether it worked. */
const WAYS: [kind: Kind, follow: (links: Links) => Promise<void>][] = [
  [
    "reset",
    async ({ instance, email, acme, mailFor }) => {
      const { url } = await mailFor("reset");
      const browser = instance.browser();
      const { token } = queryOf((await browser.get(url)).location);
      const newPassword = "another password";
      expect((await browser.post("/reset-password", { token, newPassword })).status).toBe(200);
      const body = { email, password: newPassword, tenantId: acme };
      expect((await browser.post("/tenant/sign-in/email", body)).status).toBe(200);
    },
  ],
  [
    "verification",
    async ({ instance, acme, mailFor }) => {
      const { url } = await mailFor("verification");
      expect((await instance.browser().get(url)).location).toBe("/page");
      const verified = '"emailVerified" = 1 and "tenantId" = ?';
      expect(await instance.rows("user", verified, [acme])).toBe(1);
      expect(await instance.rows("user", '"emailVerified" = 1')).toBe(1);
    },
  ],
  [
    "deletion",
    async ({ instance, acme, globex, mailFor }) => {
      const { url, browser } = await mailFor("deletion");
      expect((await browser.fork({}).get(url)).location).toBe("/page");
      expect(await instance.rows("user", '"tenantId" = ?', [acme])).toBe(0);
      expect(await instance.rows("user", '"tenantId" = ?', [globex])).toBe(1);
    },
  ],
  [
    "change",
    async ({ instance, acme, mailFor }) => {
      const { url, browser } = await mailFor("change");
      await browser.fork({}).get(url);
      expect(
        await instance.rows("user", `email = 'new@example.com' and "tenantId" = ?`, [acme]),
      ).toBe(1);
    },
  ],
  [
    "magic link",
    async ({ instance, acme, mailFor }) => {
      const { url } = await mailFor("magic link");
      const browser = instance.browser();
      expect((await browser.get(url)).location).toMatch(/\/page$/);
      const { data } = await browser.get("/get-session");
      expect(data).toMatchObject({ session: { tenantId: acme } });
    },
  ],
];

describe("root 17: where it belongs", () => {
  it.each(WAYS)(
    "control: a %s link works from a browser that names no tenant",
    async (_, follow) => {
      await follow(await createLinks());
    },
  );

  it.each(["reset", "verification", "deletion", "magic link"] as const)(
    "R2: a %s link of a tenant that was deleted is a 404",
    async (kind) => {
      const { instance, acme, mailFor } = await createLinks();
      const { url, browser } = await mailFor(kind);
      await instance.api.deleteTenant({ body: { tenantId: acme } });
      const answer = await browser.fork({}).get(url);
      expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
    },
  );

  it("R2: and so is the POST with a reset token", async () => {
    const { instance, acme, mailFor } = await createLinks();
    const { token } = await mailFor("reset");
    await instance.api.deleteTenant({ body: { tenantId: acme } });
    const body = { token, newPassword: "another password" };
    const answer = await instance.browser().post("/reset-password", body);
    expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
  });
});

describe("root 17: past a resolver that names another tenant", () => {
  const at = (url: string, host: string) => {
    const moved = new URL(url);
    moved.host = host;
    return moved.href;
  };

  it.each(["reset", "verification", "deletion", "magic link"] as const)(
    "a %s link of Acme is none at Globex's host, and works at Acme's",
    async (kind) => {
      const { instance, mailFor } = await createLinks("hosts");
      const { url, browser } = await mailFor(kind);
      const users = await instance.rows("user");
      const stranger = browser.fork({ host: "globex.example.com" });
      const answer = await stranger.get(at(url, "globex.example.com"));
      if (answer.status === 302) expect(queryOf(answer.location)).toHaveProperty("error");
      else expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
      expect(await instance.rows("user")).toBe(users);
      expect(await instance.rows("user", '"emailVerified" = 1')).toBe(0);
      const home = await browser.get(at(url, "acme.example.com"));
      expect([home.status, home.location?.split("?")[0]]).toEqual([
        302,
        expect.stringMatching(/\/page$/),
      ]);
    },
  );

  it("a reset token of Acme in a POST at Globex's host changes nobody's password", async () => {
    const { instance, email, mailFor } = await createLinks("hosts");
    const { token } = await mailFor("reset");
    const post = (host: string, path: string, body: object) =>
      instance.browser({ host }).post(`http://${host}/api/auth${path}`, body);
    const body = { token, newPassword: "another password" };
    const refused = await post("globex.example.com", "/reset-password", body);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    for (const host of ["acme.example.com", "globex.example.com"]) {
      const signIn = { email, password: PASSWORD };
      expect((await post(host, "/sign-in/email", signIn)).status, host).toBe(200);
    }
    expect((await post("acme.example.com", "/reset-password", body)).status).toBe(200);
  });

  it("nor is a tenant named at the platform's host by a token in a sign-up", async () => {
    const { instance, acme, mailFor } = await createLinks("hosts");
    const { token } = await mailFor("reset");
    const before = await instance.rows("user", '"tenantId" = ?', [acme]);
    await instance
      .browser({ host: "example.com" })
      .post("http://example.com/api/auth/sign-up/email", {
        name: "X",
        email: "x@x.com",
        password: PASSWORD,
        token,
      });
    expect(await instance.rows("user", '"tenantId" = ?', [acme])).toBe(before);
  });
});
