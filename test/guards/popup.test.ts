// What somebody who knows better-auth would expect of oauthPopup() and of allowIdpInitiated inside
// a tenant. Neither the specification nor the design says more than that they work there.
import { bearer, genericOAuth, oauthPopup } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { createInstance } from "../support/instance";
import { createSocialInstance, GLOBAL, queryOf } from "../support/social";
import { bySubdomains } from "./hosts";

const ORIGIN = "http://localhost:3000";
const POPUP = {
  provider: "gitlab",
  popupOrigin: ORIGIN,
  popupNonce: "a-nonce",
  callbackURL: "/in",
};

/** What the page of a popup hands to the window that opened it. */
function messageIn({ data }: Answer): Record<string, unknown> {
  const { text = "" } = data as { text?: string };
  const [, json = "{}"] = /<script type="application\/json"[^>]*>(.*?)<\/script>/s.exec(text) ?? [];
  return JSON.parse(json);
}

async function createPopups(stateStrategy: "database" | "cookie" = "database") {
  const app = await createSocialInstance({ stateStrategy, plugins: [bearer(), oauthPopup()] });
  const { id: a } = await app.createTenant();
  const { id: b } = await app.createTenant();
  await app.configure(a);

  /** Opens a popup at a tenant, which a navigation can name in its query only; agrees, comes back. */
  async function open(browser: Browser, tenantId: string | null, query = {}) {
    const named: Record<string, string> = tenantId === null ? {} : { tenantId };
    const started = await browser.get("/oauth-popup/start", {
      query: { ...POPUP, ...named, ...query },
    });
    expect(started.status, JSON.stringify(started.data)).toBe(302);
    return { started, back: await app.idp.authorize(started.location ?? "", "alice") };
  }
  return { app, a, b, open };
}

describe.each(["database", "cookie"] as const)(
  "oauthPopup in a tenant, state in the %s",
  (state) => {
    it("goes to the tenant's own client, and comes back to the tenants' callback", async () => {
      const { app, a, open } = await createPopups(state);
      const { started, back } = await open(app.browser(), a);
      expect(queryOf(started.location).client_id).toBe(`client-${a}`);
      expect(new URL(back).pathname).toBe("/api/auth/tenant/callback/gitlab");
    });

    it("hands over a token of a session in the tenant", async () => {
      const { app, a, open } = await createPopups(state);
      const browser = app.browser();
      const { back } = await open(browser, a);
      const page = await browser.get(back);
      expect([page.status, page.headers.get("content-type")]).toEqual([
        200,
        expect.stringContaining("text/html"),
      ]);
      const message = messageIn(page);
      expect(message).toMatchObject({
        type: "better-auth:oauth-popup",
        targetOrigin: ORIGIN,
        nonce: "a-nonce",
        redirectTo: "/in",
        token: expect.any(String),
      });
      const authorization = `Bearer ${message.token}`;
      const embedded = app.browser({ authorization, "x-tenant-id": a });
      expect((await app.whoIs(embedded, a))?.session.tenantId).toBe(a);
      expect(app.idp.exchanges().map(({ params }) => params.client_id)).toEqual([`client-${a}`]);
    });

    it("hands over what went wrong", async () => {
      const { app, a, open } = await createPopups(state);
      const browser = app.browser();
      const { back } = await open(browser, a);
      const { state: sent = "" } = queryOf(back);
      const query = { state: sent, error: "access_denied" };
      const page = await browser.get("/tenant/callback/gitlab", { query });
      expect(messageIn(page)).toMatchObject({ nonce: "a-nonce", error: { code: "access_denied" } });
    });

    it("shares the application's client where the tenant has none", async () => {
      const { app, b, open } = await createPopups(state);
      const browser = app.browser();
      const { started, back } = await open(browser, b);
      expect(queryOf(started.location).client_id).toBe(GLOBAL.clientId);
      expect(messageIn(await browser.get(back))).toHaveProperty("token");
      expect((await app.whoIs(browser, b))?.session.tenantId).toBe(b);
    });

    it("R6: a popup of A is refused at better-auth's own callback", async () => {
      const { app, a, open } = await createPopups(state);
      const browser = app.browser();
      const { back } = await open(browser, a);
      const page = await browser.get("/callback/gitlab", { query: queryOf(back) });
      expect(messageIn(page)).not.toHaveProperty("token");
      expect(page.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
      expect(await app.rows("session")).toBe(0);
    });

    it("R6: nor does one that shares the platform's client sign anybody in on the platform", async () => {
      const { app, b, open } = await createPopups(state);
      const browser = app.browser();
      const { back } = await open(browser, b);
      const page = await browser.get("/callback/gitlab", { query: queryOf(back) });
      expect(messageIn(page)).not.toHaveProperty("token");
      expect(await app.rows("user", '"tenantId" <> ?', [b])).toBe(0);
      expect(await app.whoIs(browser, null)).toBeNull();
    });

    it("R6: a popup of the platform is refused at the tenants' callback", async () => {
      const { app, a, open } = await createPopups(state);
      const browser = app.browser();
      const { back } = await open(browser, null);
      const query = { ...queryOf(back), tenantId: a };
      const page = await browser.get("/tenant/callback/gitlab", { query });
      expect(messageIn(page)).not.toHaveProperty("token");
      expect(await app.rows("session")).toBe(0);
    });

    it("control: works on the platform", async () => {
      const { app, open } = await createPopups(state);
      const browser = app.browser();
      const { started, back } = await open(browser, null);
      expect(queryOf(started.location).client_id).toBe(GLOBAL.clientId);
      expect(messageIn(await browser.get(back))).toMatchObject({ token: expect.any(String) });
      expect((await app.whoIs(browser, null))?.session.tenantId).toBeNull();
    });
  },
);

/** A company's own provider, from whose portal people come with a code that nobody asked for. */
async function createPortal(by: "query" | "host") {
  const idp = await startIdentityProvider();
  idp.registerClient("corp-client", "corp-secret");
  idp.addPerson("alice");
  const corp = {
    providerId: "corp",
    clientId: "corp-client",
    clientSecret: "corp-secret",
    authorizationUrl: `${idp.issuer}/oauth/authorize`,
    tokenUrl: `${idp.issuer}/oauth/token`,
    userInfoUrl: `${idp.issuer}/api/v4/user`,
    accountSubject: ({ profile }: { profile: Record<string, unknown> }) => String(profile.id),
    allowIdpInitiated: true,
  };
  const instance = await createInstance({
    plugins: [genericOAuth({ config: [corp] })],
    ...(by === "host" && {
      tenant: { resolveTenantId: bySubdomains.resolveTenantId },
      auth: { baseURL: "http://example.com", trustedOrigins: ["http://*.example.com"] },
    }),
  });
  const acme = (await instance.createTenant("acme")).id;
  const origin = by === "host" ? "http://acme.example.com" : "http://localhost:3000";
  const query: Record<string, string> = by === "host" ? {} : { tenantId: acme };
  const browser = instance.browser(by === "host" ? { host: "acme.example.com" } : {});
  /** Comes from the portal to a callback, with a code and without a state. */
  const arrive = (path: string) =>
    browser.get(`${origin}/api/auth${path}`, { query: { ...query, code: "from-the-portal" } });
  return { instance, idp, acme, origin, browser, arrive };
}

describe.each(["query", "host"] as const)("allowIdpInitiated in a tenant named by %s", (by) => {
  it("starts a flow of its own, which ends in the tenant", async () => {
    const { instance, idp, acme, browser, arrive } = await createPortal(by);
    const started = await arrive("/tenant/callback/corp");
    expect(started.status).toBe(302);
    expect(started.location?.startsWith(`${idp.issuer}/oauth/authorize`)).toBe(true);
    const back = new URL(await idp.authorize(started.location ?? "", "alice"));
    expect(back.pathname).toBe("/api/auth/tenant/callback/corp");
    const answer = await browser.get(back.href);
    expect(queryOf(answer.location)).not.toHaveProperty("error");
    expect(await instance.rows("session", '"tenantId" = ?', [acme])).toBe(1);
    expect(await instance.rows("user", '"tenantId" = ?', [acme])).toBe(1);
    expect(await instance.rows("user")).toBe(1);
  });

  it("never takes the code that came along", async () => {
    const { idp, arrive } = await createPortal(by);
    await arrive("/tenant/callback/corp");
    expect(idp.exchanges()).toEqual([]);
  });

  it("control: better-auth's own callback does the same for the platform", async () => {
    const { instance, idp, browser } = await createPortal(by);
    const platform = by === "host" ? "http://example.com" : "http://localhost:3000";
    const guest = browser.fork(by === "host" ? { host: "example.com" } : {});
    const query = { code: "from-the-portal" };
    const started = await guest.get(`${platform}/api/auth/callback/corp`, { query });
    const back = await idp.authorize(started.location ?? "", "alice");
    await guest.get(back);
    expect(await instance.rows("session", `"tenantId" is null or "tenantId" = ''`)).toBe(1);
  });
});

describe("allowIdpInitiated where nothing names a tenant", () => {
  it("is an error at the tenants' callback, and starts nothing", async () => {
    const { instance, idp } = await createPortal("query");
    const query = { code: "from-the-portal" };
    const answer = await instance.browser().get("/tenant/callback/corp", { query });
    expect(
      answer.status === 302 ? queryOf(answer.location) : { error: answer.status },
    ).toHaveProperty("error");
    expect(idp.requests).toEqual([]);
    expect(await instance.rows("verification")).toBe(0);
  });
});
