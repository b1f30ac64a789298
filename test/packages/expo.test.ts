import { expo } from "@better-auth/expo";
import { describe, expect, it } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import { createSocialWorld, GLOBAL, type SocialWorldOptions } from "../support/social";
import { queryOf, type Where } from "../support/world";

const APP = "myapp://";
// The test's provider has no certificate, and the proxy leads to https only.
const secure = (address: string) => address.replace("http://", "https://");
const plain = (address: string) => address.replace("https://", "http://");

/** Acme has a client of its own, and an app trusts its own scheme. */
async function createApp(
  stateStrategy: SocialWorldOptions["stateStrategy"] = "database",
  tenant: TenantAuthOptions = {},
) {
  const auth = { trustedOrigins: [APP] };
  const world = await createSocialWorld({ stateStrategy, tenant, plugins: [expo()], auth });
  await world.configure("acme");

  /**
   * As the client of the package does it: the app asks for the address, and a browser that shares
   * nothing with the app opens it through the proxy.
   */
  async function start(where: Where) {
    const phone = world.browser({ "expo-origin": APP });
    const { data, status } = await world.start(phone, where, { callbackURL: `${APP}in` });
    expect(status, JSON.stringify(data)).toBe(200);
    const stored = [...phone.cookies].find(([name]) => name.endsWith("oauth_state"))?.[1];
    const browser = world.at("platform");
    const opened = await browser.get("/expo-authorization-proxy", {
      query: {
        authorizationURL: secure(data.url),
        ...(stored && { oauthState: decodeURIComponent(stored) }),
      },
    });
    expect([opened.status, opened.location]).toEqual([302, secure(data.url)]);
    const back = new URL(await world.idp.authorize(plain(opened.location ?? ""), "alice"));
    return { browser, client: queryOf(data.url).client_id, back };
  }

  /** Who the app is at a place, with the cookie that came in the address that opens it. */
  async function whoHas(location: string | null, where: Where) {
    const phone = world.at(where);
    const headers = new Headers();
    for (const cookie of (queryOf(location).cookie ?? "").split(/, (?=[\w.-]+=)/)) {
      headers.append("set-cookie", cookie);
    }
    phone.keepCookies(headers);
    return world.whoIs(phone);
  }

  return { ...world, start, whoHas };
}

const KINDS = (["database", "cookie"] as const).flatMap((state) =>
  (["shared", "per-tenant"] as const).map((cookies) => [state, cookies] as const),
);

describe.each(KINDS)("expo, state in the %s, %s cookies", (state, sessionCookies) => {
  it("R5: signs people in at their tenant, with its own client, and nowhere else", async () => {
    const app = await createApp(state, { sessionCookies });
    const { browser, client, back } = await app.start("acme");
    expect(client).toBe(`client-${app.ids.acme}`);
    const { location } = await browser.get(back.href);
    expect(location).toMatch(/^myapp:\/\/in\?/);
    expect(queryOf(location)).not.toHaveProperty("error");
    expect(await app.whoHas(location, "acme")).toMatchObject({ tenantId: app.ids.acme });
    expect(await app.whoHas(location, "globex")).toBe(null);
    if (sessionCookies === "per-tenant") expect(await app.whoHas(location, "platform")).toBe(null);
    expect(await app.rows("user", '"tenantId" <> ?', [app.ids.acme])).toBe(0);
  });

  it("R6: a flow of a tenant does not come back on the platform, nor with another's state", async () => {
    const app = await createApp(state, { sessionCookies });
    const other = await app.start("globex");
    for (const path of ["/callback/gitlab", "/tenant/callback/gitlab"]) {
      const { browser, back } = await app.start("acme");
      const query = queryOf(back.href);
      if (path.startsWith("/tenant")) query.state = queryOf(other.back.href).state ?? "";
      const answer = await browser.get(path, { query });
      expect(queryOf(answer.location)).toHaveProperty("error");
      expect(answer.location).not.toContain("session_token");
    }
    expect(await app.rows("session")).toBe(0);
  });

  it("works on the platform as without tenants", async () => {
    const app = await createApp(state, { sessionCookies });
    const { browser, client, back } = await app.start("platform");
    expect(client).toBe(GLOBAL.clientId);
    const { location } = await browser.get(back.href);
    expect(await app.whoHas(location, "platform")).toMatchObject({ tenantId: null });
  });
});
