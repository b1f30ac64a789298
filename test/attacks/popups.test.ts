import { bearer, oauthPopup } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { bySubdomain } from "../../src/index";
import { Browser } from "../support/browser";
import { createSocialInstance } from "../support/social";

const GLOBEX = "globex.example.com";
const POPUP = {
  provider: "gitlab",
  popupOrigin: `http://${GLOBEX}`,
  popupNonce: "a-nonce",
  callbackURL: "/in",
};

/** Acme and Globex at hosts of one domain, whose cookies may be the whole domain's. */
async function createHosts(crossSubDomain: boolean) {
  const crossSubDomainCookies = { enabled: crossSubDomain, domain: "example.com" };
  const app = await createSocialInstance({
    plugins: [bearer(), oauthPopup()],
    tenant: { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
    auth: {
      baseURL: {
        allowedHosts: ["example.com", "*.example.com"],
        fallback: "http://example.com",
        protocol: "http",
      },
      advanced: { disableOriginCheck: false, crossSubDomainCookies },
    },
  });
  await app.createTenant("acme");
  await app.createTenant("globex");
  const at = (host: string) => new Browser(app.auth.handler, `http://${host}/api/auth`, { host });

  /** Goes to the provider, takes on cookies on the way, and comes back. */
  async function signIn(browser: Browser, path: string, tossed: Browser["cookies"]) {
    const body = { provider: "gitlab", callbackURL: "/in" };
    const { data } = await browser.post<{ url: string }>(path, body);
    for (const [name, value] of tossed) browser.cookies.set(name, value);
    return browser.get(await app.idp.authorize(data.url, "alice"));
  }
  return { at, signIn };
}

type Hosts = Awaited<ReturnType<typeof createHosts>>;

/** The marker of a popup that Globex's page opens at its own host, which it may. */
async function markerOfGlobex({ at }: Hosts, popupNonce = "a-nonce") {
  const attacker = at(GLOBEX);
  const query = { ...POPUP, popupNonce };
  expect((await attacker.get("/oauth-popup/start", { query })).status).toBe(302);
  const marker = [...attacker.cookies].filter(([name]) => name.includes("popup"));
  expect(marker).toHaveLength(1);
  return new Map(marker);
}

describe("the marker of a popup of Globex's", () => {
  it.each(["acme.example.com", "example.com"])(
    "R9: hands it no token of %s, with cookies of the whole domain",
    async (host) => {
      const hosts = await createHosts(true);
      const victim = hosts.at(host);
      for (const cookie of await markerOfGlobex(hosts)) victim.cookies.set(...cookie);
      const answer = await hosts.signIn(victim, "/sign-in/social", new Map());
      expect([answer.status, answer.location]).toEqual([302, "/in"]);
      expect(JSON.stringify(answer.data)).not.toContain(GLOBEX);
    },
  );

  // document.cookie = "better-auth.oauth_popup=...; domain=example.com", by a script of Globex's.
  it("R9: hands it no token of Acme when somebody puts it into the browser midway", async () => {
    const hosts = await createHosts(false);
    const marker = await markerOfGlobex(hosts);
    const victim = hosts.at("acme.example.com");
    const answer = await hosts.signIn(victim, "/tenant/sign-in/social", marker);
    expect([answer.status, answer.location]).toEqual([302, "/in"]);
    expect(JSON.stringify(answer.data)).not.toContain(GLOBEX);
  });

  // Two cookies of one name: "path=/" and "path=/api/auth". A browser sends both.
  it("R9: hands it no token of Acme when there are two of it", async () => {
    const hosts = await createHosts(false);
    const markers = [
      ...(await markerOfGlobex(hosts, "one")),
      ...(await markerOfGlobex(hosts, "two")),
    ];
    const victim = hosts.at("acme.example.com");
    const [first = ["", ""], second = ["", ""]] = markers;
    // The jar has one cookie of a name: the other one goes along in its value.
    const tossed = new Map([[first[0], `${first[1]}; ${second.join("=")}`]]);
    const answer = await hosts.signIn(victim, "/tenant/sign-in/social", tossed);
    expect([answer.status, answer.location]).toEqual([302, "/in"]);
    expect(JSON.stringify(answer.data)).not.toContain(GLOBEX);
  });

  it("control: is not to be had at Acme's host, where a sign-in without it redirects", async () => {
    const { at, signIn } = await createHosts(true);
    const browser = at("acme.example.com");
    expect((await browser.get("/oauth-popup/start", { query: POPUP })).status).toBe(403);
    expect((await signIn(browser, "/sign-in/social", new Map())).location).toBe("/in");
  });
});
