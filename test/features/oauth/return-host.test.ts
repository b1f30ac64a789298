import { describe, expect, it } from "vitest";
import { prefixState, readState } from "../../../src/features/oauth/state-prefix";
import { byDomain, bySubdomain, firstOf, type ResolveTenant, tenantAuth } from "../../../src/index";
import { Browser } from "../../support/browser";
import {
  createSocialWorld,
  GLOBAL,
  type SocialWorldOptions,
  STATE_STRATEGIES,
} from "../../support/social";
import { createWorld, DOMAINS, queryOf, SUBDOMAINS } from "../../support/world";

const BASE = "http://example.com";
const CALLBACK = `${BASE}/api/auth/tenant/callback/gitlab`;
const CUSTOM = "login.acme.com";

/** Hosts that change hands: two subdomains, and a custom domain of Acme. */
async function createHosts(options: SocialWorldOptions = {}) {
  const domains = new Map<string, string>([
    ["acme.example.com", "acme"],
    ["globex.example.com", "globex"],
    [CUSTOM, "acme"],
  ]);
  const resolveTenantId = byDomain((host) => {
    const slug = domains.get(host);
    return slug ? { slug } : false;
  });
  const allowedHosts = [...domains.keys(), "example.com"];
  const world = await createSocialWorld({
    hosts: { names: SUBDOMAINS.names, resolveTenantId },
    ...options,
    tenant: { redirectBaseURL: BASE, ...options.tenant },
    auth: {
      baseURL: { allowedHosts, protocol: "http", fallback: BASE },
      ...options.auth,
    },
  });

  /** A browser at a host, with the cookies of that host. */
  const atHost = (host: string) =>
    new Browser(world.auth.handler, `http://${host}/api/auth`, { host });

  /** Starts at a host and agrees at the provider: where the provider sends the browser. */
  async function agree(browser: Browser, username = "alice") {
    const pages = { callbackURL: "/welcome", errorCallbackURL: "/failed" };
    const body = { provider: "gitlab", ...pages };
    const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
    return world.idp.authorize(data.url, username);
  }
  return { ...world, domains, atHost, agree };
}

describe.each(STATE_STRATEGIES)("with redirectBaseURL, and states in the %s", (stateStrategy) => {
  it.each([
    ["acme.example.com", "acme"],
    ["globex.example.com", "globex"],
    [CUSTOM, "acme"],
  ] as const)("a flow that was started at %s ends there, in %s", async (host, place) => {
    const { atHost, agree, whoIs, ids, idp } = await createHosts({ stateStrategy });
    const browser = atHost(host);
    const back = await agree(browser);
    expect(back.startsWith(`${CALLBACK}?`)).toBe(true);
    // The base host has no cookies of the flow, and sets none.
    const forwarded = await atHost("example.com").get(back);
    expect(forwarded.status).toBe(302);
    expect(forwarded.headers.getSetCookie()).toEqual([]);
    const onward = forwarded.location ?? "";
    expect(onward.startsWith(`http://${host}/api/auth/tenant/callback/gitlab?`)).toBe(true);
    expect(queryOf(onward).state).toBe(queryOf(back).state);
    // The code is for the server alone.
    expect(onward).not.toContain(queryOf(back).code);
    const end = await browser.get(onward);
    expect(end.location).toBe("/welcome");
    expect(await whoIs(browser)).toMatchObject({
      tenantId: ids[place],
      email: "alice@example.com",
    });
    expect(idp.exchanges().map(({ params }) => params.redirect_uri)).toEqual([CALLBACK]);
    // Once: neither the callback nor the redirect can be replayed.
    for (const again of [onward, (await atHost("example.com").get(back)).location ?? ""]) {
      expect(queryOf((await browser.get(again)).location).error).toBe("state_mismatch");
    }
  });

  it("a user who declines comes back to their host as well", async () => {
    const { atHost, agree } = await createHosts({ stateStrategy });
    const browser = atHost("acme.example.com");
    const { state = "" } = queryOf(await agree(browser));
    const query = { error: "access_denied", error_description: "No, thanks & bye", state };
    // A provider may send more, which stays at the base host.
    const sent = { ...query, id_token: "secret" };
    const { location } = await atHost("example.com").get(CALLBACK, { query: sent });
    expect(queryOf(location)).toEqual(query);
    const end = await browser.get(location ?? "");
    expect(end.location).toMatch(/^\/failed\?error=access_denied&error_description=No/);
  });

  it("a form post becomes a GET, and goes the same way", async () => {
    const { atHost, agree, whoIs, ids } = await createHosts({
      stateStrategy,
      auth: {
        baseURL: {
          allowedHosts: ["*.example.com", "example.com"],
          protocol: "http",
          fallback: BASE,
        },
        trustedOrigins: ["https://provider.example"],
      },
    });
    const browser = atHost("acme.example.com");
    const back = await agree(browser);
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      origin: "https://provider.example",
    };
    const body = new URL(back).search.slice(1);
    const posted = await atHost("example.com").post(CALLBACK, body, { headers });
    expect(posted.status).toBe(302);
    const forwarded = await atHost("example.com").get(posted.location ?? "");
    expect(forwarded.location).toMatch(/^http:\/\/acme\.example\.com\//);
    await browser.get(forwarded.location ?? "");
    expect(await whoIs(browser)).toMatchObject({ tenantId: ids.acme });
  });

  it("a changed state leads to no other host, and signs no user in", async () => {
    const { atHost, agree, whoIs, idp, database } = await createHosts({ stateStrategy });
    const browser = atHost("acme.example.com");
    const back = new URL(await agree(browser));
    const read = readState(back.searchParams.get("state"));
    if (!read) throw new Error("no state");
    const { state, tenantId, signature } = read;
    const other = readState(queryOf(await agree(atHost("globex.example.com"))).state);
    for (const [why, changed] of Object.entries({
      "another host of Acme": prefixState(state, tenantId, signature, CUSTOM),
      "a host of nobody": prefixState(state, tenantId, signature, "evil.example"),
      "a host with a path": prefixState(state, tenantId, signature, "acme.example.com/x"),
      "another tenant": prefixState(state, other?.tenantId ?? "", signature, "globex.example.com"),
      "another flow": prefixState(other?.state ?? "", tenantId, signature, "acme.example.com"),
      "another signature": prefixState(state, tenantId, other?.signature, "acme.example.com"),
      "no signature": prefixState(state, tenantId, undefined, "acme.example.com"),
      "no host": prefixState(state, tenantId, signature),
      neither: prefixState(state, tenantId),
    })) {
      back.searchParams.set("state", changed);
      const { location } = await atHost("example.com").get(back.href);
      const { host } = new URL(location ?? "", BASE);
      expect([why, host, queryOf(location).error]).toEqual([why, "example.com", "state_mismatch"]);
    }
    expect(idp.exchanges()).toEqual([]);
    expect(await whoIs(browser)).toBeNull();
    expect(await database.query("select id from account")).toEqual([]);
  });

  it("R9: the host has to be the tenant's when the callback arrives", async () => {
    const { atHost, agree, domains, logs, idp } = await createHosts({ stateStrategy });
    for (const [host, owner] of [
      [CUSTOM, "globex"],
      ["acme.example.com", undefined],
    ] as const) {
      const back = await agree(atHost(host));
      if (owner) domains.set(host, owner);
      else domains.delete(host);
      const { location } = await atHost("example.com").get(back);
      expect(new URL(location ?? "", BASE).host).toBe("example.com");
      expect(queryOf(location).error).toBe("state_mismatch");
      expect(logs.join()).toContain(`http://${host}, which is not of tenant`);
    }
    expect(idp.exchanges()).toEqual([]);
  });

  it("threat: a code that was sent to one host is worth nothing in another flow", async () => {
    const { atHost, agree, idp, whoIs } = await createHosts({ stateStrategy });
    // Bob is lured into a flow of Globex, whose host the attacker runs.
    const lure = await agree(atHost("globex.example.com"), "bob");
    const taken = new URL((await atHost("example.com").get(lure)).location ?? "");
    const attacker = atHost("acme.example.com");
    const own = new URL(await agree(attacker));
    const value = taken.searchParams.get("sealed_code") ?? "";
    for (const name of ["sealed_code", "code"]) {
      for (const host of ["example.com", "acme.example.com"]) {
        const url = new URL(own);
        url.host = host;
        url.searchParams.delete("code");
        url.searchParams.set(name, value);
        let { location } = await attacker.fork({ host }).get(url.href);
        if (location?.includes("/tenant/callback/")) ({ location } = await attacker.get(location));
        expect(queryOf(location).error).toMatch(/state_mismatch|invalid_code|no_code/);
      }
    }
    expect(await whoIs(attacker)).toBeNull();
    // What was sent to the provider as a code is not Bob's.
    const { code = "" } = queryOf(lure);
    expect(JSON.stringify(idp.exchanges())).not.toContain(code);
  });
});

it("a flow that is started at the base host stays there", async () => {
  const { api, ids, atHost, idp, whoIs } = await createHosts({
    tenant: {
      // As an application with pages at /t/acme: the header counts at its own address.
      resolveTenantId: ({ headers }) =>
        headers?.get("host") === "acme.example.com" ? { slug: "acme" } : undefined,
    },
  });
  const browser = atHost("example.com");
  Object.assign(browser.headers, { "x-tenant-id": ids.acme });
  const body = { provider: "gitlab", callbackURL: "/welcome" };
  const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
  const back = await idp.authorize(data.url, "alice");
  expect((await browser.get(back)).location).toBe("/welcome");
  expect(await whoIs(browser)).toMatchObject({ tenantId: ids.acme });
  // Server code has no host: the callback stays at the base host.
  const { url } = await api.signInSocialTenant({ body: { ...body, tenantId: ids.acme } });
  const { state, redirect_uri } = queryOf(url ?? "");
  expect([readState(state)?.host, redirect_uri]).toEqual([undefined, CALLBACK]);
});

it("a host that the application does not trust is not in the state", async () => {
  const { agree, atHost } = await createHosts({
    tenant: { resolveTenantId: () => ({ slug: "acme" }) },
    auth: { baseURL: BASE, trustedOrigins: ["http://*.example.com"] },
  });
  const hostIn = async (host: string) => {
    const browser = atHost(host);
    Object.assign(browser.headers, { origin: BASE });
    return readState(queryOf(await agree(browser)).state)?.host;
  };
  expect(await hostIn("acme.example.com")).toBe("acme.example.com");
  expect(await hostIn("evil.org")).toBeUndefined();
});

it("a tenant's own redirectURI wins, and a provider at a host of its own keeps its query", async () => {
  const { configure, agree, atHost, idp } = await createHosts();
  await configure("acme", { redirectURI: "http://localhost:3000/proxy" });
  const browser = atHost("acme.example.com");
  const back = new URL(await agree(browser));
  expect(back.origin + back.pathname).toBe("http://localhost:3000/proxy");
  // The proxy leads to the tenant's host, or to the base host.
  const direct = `http://acme.example.com/api/auth/tenant/callback/gitlab${back.search}`;
  expect((await browser.get(direct)).location).toBe("/welcome");
  expect(idp.exchanges().at(-1)?.params.redirect_uri).toBe("http://localhost:3000/proxy");

  const options = { issuer: idp.issuer };
  const { host } = new URL(idp.issuer);
  const own = await createHosts({ tenant: { trustedProviderHosts: [host] } });
  own.idp.registerClient("own", "secret");
  const config = { providerId: "gitlab", clientId: "own", clientSecret: "secret", options };
  await own.api.registerTenantOAuthConfig({ body: { tenantId: own.ids.acme, ...config } });
  idp.registerClient("own", "secret");
  const window = own.atHost("acme.example.com");
  const authorize = async () => {
    const body = { provider: "gitlab", callbackURL: "/welcome" };
    const { data } = await window.post<{ url: string }>("/sign-in/social", body);
    expect(queryOf(data.url).redirect_uri).toBe(`${CALLBACK}?tenant=${own.ids.acme}`);
    return idp.authorize(data.url, "alice");
  };
  const returned = await authorize();
  const onward = (await own.atHost("example.com").get(returned)).location ?? "";
  expect(queryOf(onward).tenant).toBe(own.ids.acme);
  expect((await window.get(onward)).location).toBe("/welcome");
  // Without its query it is a callback of another provider.
  const without = new URL(await authorize());
  without.searchParams.delete("tenant");
  const other = (await own.atHost("example.com").get(without.href)).location ?? "";
  expect(queryOf((await window.get(other)).location).error).toBe("state_mismatch");
});

it("links an account, from the host of the tenant", async () => {
  const { atHost, idp, database } = await createHosts();
  const browser = atHost("acme.example.com");
  const jane = { name: "Alice", email: "alice@example.com", password: "correct horse battery" };
  await browser.post("/sign-up/email", jane);
  const body = { provider: "gitlab", callbackURL: "/linked" };
  const { data } = await browser.post<{ url: string }>("/link-social", body);
  const back = await idp.authorize(data.url, "alice");
  const { location } = await atHost("example.com").get(back);
  expect((await browser.get(location ?? "")).location).toBe("/linked");
  expect(await database.query("select id from account")).toHaveLength(2);
});

describe("list, check and register return the tenant's redirect URI", () => {
  const CONFIG = { providerId: "google", clientId: "id", clientSecret: "secret" };
  const PATH = "/api/auth/tenant/callback/google";
  const trustedOrigins = ["http://localhost:3000", BASE];
  const STATIC = { baseURL: "https://app.example", trustedOrigins };
  const { resolveTenantId } = SUBDOMAINS;
  // Acme's subdomain is the application's own.
  const RESERVED = bySubdomain({ baseDomain: "example.com", reserved: ["acme"] });
  const first = (...resolvers: ResolveTenant[]) => ({
    hosts: { ...SUBDOMAINS, resolveTenantId: firstOf(...resolvers) },
  });

  it.each([
    ["subdomains", { hosts: SUBDOMAINS }, "http://acme.example.com"],
    ["custom domains", { hosts: DOMAINS }, "http://login.acme.com"],
    ["both", first(resolveTenantId, DOMAINS.resolveTenantId), "http://acme.example.com"],
    ["a reserved slug", first(RESERVED, DOMAINS.resolveTenantId), "http://login.acme.com"],
    ["redirectBaseURL", { hosts: SUBDOMAINS, tenant: { redirectBaseURL: BASE } }, BASE],
    ["one base URL", { auth: STATIC }, "https://app.example"],
    ["one base URL and hosts", { hosts: SUBDOMAINS, auth: STATIC }, "https://app.example"],
  ])("with %s, from a script and from every host", async (_, options, origin) => {
    const { api, ids, operator } = await createWorld(options);
    const body = { tenantId: ids.acme, ...CONFIG };
    const query = { tenantId: ids.acme };
    const target = { tenantId: ids.acme, providerId: "google" };
    const found = [
      (await api.registerTenantOAuthConfig({ body })).callbackURL,
      (await api.updateTenantOAuthConfig({ body: { ...target, enabled: false } })).callbackURL,
      (await api.listTenantOAuthConfigs({ query }))[0]?.callbackURL,
      (await api.checkTenantOAuthConfig({ body: { ...target, scopes: [] } })).redirectURI,
    ];
    const window = await operator();
    const listed = await window.get<{ callbackURL: string }[]>("/tenant/oauth-config/list", {
      query,
    });
    found.push(listed.data[0]?.callbackURL);
    expect(found).toEqual(found.map(() => origin + PATH));
  });

  it("that of the call where the resolver cannot tell", async () => {
    const { api, ids } = await createWorld({
      hosts: {
        ...SUBDOMAINS,
        resolveTenantId: byDomain((host) => (host.startsWith("acme.") ? { slug: "acme" } : false)),
      },
    });
    const body = { tenantId: ids.acme, ...CONFIG };
    expect((await api.registerTenantOAuthConfig({ body })).callbackURL).toBe(BASE + PATH);
  });
});

it.each([
  "example.com",
  "https://example.com/",
  "https://example.com/auth",
  "ftp://example.com",
  "",
])("%j is no redirectBaseURL", (redirectBaseURL) => {
  expect(() => tenantAuth({ redirectBaseURL })).toThrow(
    /expected an origin without a path: "https:\/\/example\.com"\s+→ at redirectBaseURL/,
  );
});

it("without it, states and redirect URIs are as before", async () => {
  const { authorize, at } = await createSocialWorld({
    hosts: SUBDOMAINS,
    socialProviders: { google: GLOBAL },
  });
  const back = new URL(await authorize(at("acme"), "acme"));
  expect(back.host).toBe("acme.example.com");
  expect(readState(back.searchParams.get("state"))).toMatchObject({
    host: undefined,
    signature: undefined,
  });
});

it("threat: tokens in the fragment of a callback do not follow to a tenant's host", async () => {
  const { atHost, agree } = await createHosts();
  // Globex starts a flow of its own, and lures Bob to the provider with response_type=token.
  const back = await agree(atHost("globex.example.com"), "bob");
  const { location } = await atHost("example.com").get(back);
  expect(location).toMatch(/^http:\/\/globex\.example\.com\//);
  // A browser keeps the fragment, unless the redirect has one of its own.
  expect(location).toMatch(/#$/);
});
