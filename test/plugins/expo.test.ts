import { expo } from "@better-auth/expo";
import { describe, expect, it } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import type { Browser } from "../support/browser";
import { createSocialInstance, GLOBAL, queryOf, type SocialOptions } from "../support/social";

const APP = "myapp://";

/** Two tenants, one of them with a client of its own, and an app that trusts its own scheme. */
async function createApp(
  stateStrategy: SocialOptions["stateStrategy"] = "database",
  tenant: TenantAuthOptions = {},
) {
  const app = await createSocialInstance({
    stateStrategy,
    tenant,
    plugins: [expo()],
    auth: { trustedOrigins: [APP] },
  });
  const { id: a } = await app.createTenant("aa");
  const { id: b } = await app.createTenant("bb");
  await app.configure(a);

  /**
   * As the client of the package does it: the app asks for the address, and a browser that shares
   * nothing with the app opens it through the proxy.
   */
  async function start(tenantId: string | null) {
    const phone = app.browser({ "expo-origin": APP });
    const { data, status } = await app.start(phone, tenantId, { callbackURL: `${APP}in` });
    expect(status, JSON.stringify(data)).toBe(200);
    const stored = [...phone.cookies].find(([name]) => name.endsWith("oauth_state"))?.[1];
    const browser = app.browser();
    const opened = await browser.get("/expo-authorization-proxy", {
      query: {
        // The test's provider has no certificate, and the proxy leads to https only.
        authorizationURL: data.url.replace("http://", "https://"),
        ...(stored && { oauthState: decodeURIComponent(stored) }),
      },
    });
    expect(opened.status, JSON.stringify(opened.data)).toBe(302);
    const address = opened.location ?? "";
    return { browser, address, sent: data.url.replace("http://", "https://") };
  }

  const agree = (address: string) =>
    app.idp.authorize(address.replace("https://", "http://"), "alice");

  /** Who the app is, with the cookie that came in the address that opens it. */
  async function whoHas(location: string | null, tenantId: string | null) {
    const phone = app.browser();
    const headers = new Headers();
    for (const cookie of (queryOf(location).cookie ?? "").split(/, (?=[\w.-]+=)/)) {
      headers.append("set-cookie", cookie);
    }
    phone.keepCookies(headers);
    return app.whoIs(phone, tenantId);
  }

  async function comeBack(browser: Browser, address: string) {
    const answer = await browser.get(await agree(address));
    return answer.location;
  }
  return { app, a, b, start, agree, comeBack, whoHas };
}

const COOKIES = ["shared", "per-tenant"] as const;
const STATES = ["database", "cookie"] as const;
const KINDS = STATES.flatMap((state) => COOKIES.map((cookies) => [state, cookies] as const));

describe.each(KINDS)("expo, state in the %s, %s cookies", (state, sessionCookies) => {
  it("signs people in at their tenant, with its own client", async () => {
    const { app, a, start, comeBack, whoHas } = await createApp(state, { sessionCookies });
    const { browser, address, sent } = await start(a);
    expect(address).toBe(sent);
    expect(queryOf(address).client_id).toBe(`client-${a}`);
    const location = await comeBack(browser, address);
    expect(location).toMatch(/^myapp:\/\/in\?/);
    expect(queryOf(location)).not.toHaveProperty("error");
    expect((await whoHas(location, a))?.session.tenantId).toBe(a);
    expect(await app.rows("user", '"tenantId" <> ?', [a])).toBe(0);
  });

  it("R5: what the app gets is no session at another tenant, nor on the platform", async () => {
    const { a, b, start, comeBack, whoHas } = await createApp(state, { sessionCookies });
    const { browser, address } = await start(a);
    const location = await comeBack(browser, address);
    expect((await whoHas(location, a))?.session.tenantId).toBe(a);
    expect(await whoHas(location, b)).toBeNull();
    if (sessionCookies === "per-tenant") expect(await whoHas(location, null)).toBeNull();
  });

  it("R6: a flow of A does not come back on the platform", async () => {
    const { app, a, start, agree } = await createApp(state, { sessionCookies });
    const { browser, address } = await start(a);
    const query = queryOf(await agree(address));
    const answer = await browser.get("/callback/gitlab", { query });
    expect(queryOf(answer.location)).toHaveProperty("error");
    expect(answer.location).not.toContain("session_token");
    expect(await app.rows("session")).toBe(0);
  });

  it("works on the platform as without tenants", async () => {
    const { start, comeBack, whoHas } = await createApp(state, { sessionCookies });
    const { browser, address } = await start(null);
    expect(queryOf(address).client_id).toBe(GLOBAL.clientId);
    const location = await comeBack(browser, address);
    expect((await whoHas(location, null))?.session.tenantId).toBeNull();
  });
});

describe("expo-authorization-proxy", () => {
  it("threat: a state that was altered on the way signs nobody in", async () => {
    const { app, a, b, start, agree } = await createApp();
    const { browser, address } = await start(a);
    const other = await start(b);
    const back = new URL(await agree(address));
    back.searchParams.set("state", queryOf(other.address).state ?? "");
    const answer = await browser.get(back.href);
    expect(queryOf(answer.location)).toHaveProperty("error");
    expect(await app.rows("session")).toBe(0);
  });
});
