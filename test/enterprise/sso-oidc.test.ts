import { describe, expect, it } from "vitest";
import { bySubdomain } from "../../src/index";
import { createSSOWorld, named, type SSOWorld, type SSOWorldOptions, whoIs } from "./sso-world";

/** Acme and Globex with a provider each, for one and the same domain. */
async function withProviders(options: SSOWorldOptions = {}) {
  const world = await createSSOWorld(options);
  for (const { slug, admin } of [world.acme, world.globex]) {
    const answer = await admin.browser.post(
      "/sso/register",
      world.oidc(`${slug}-okta`, { domain: "corp.example" }),
    );
    expect(answer.status).toBe(200);
  }
  world.provider.addPerson("ada", { email: "ada@corp.example" });
  return world;
}

/** What an application writes down for a provider that it has for everybody. */
async function providerForEverybody() {
  const { oidc, provider } = await createSSOWorld();
  const { oidcConfig, issuer } = oidc("everybodys");
  provider.addPerson("ada");
  const discoveryEndpoint = `${issuer}/none`;
  return { issuer, provider, oidcConfig: { ...oidcConfig, issuer, discoveryEndpoint } };
}

describe("OpenID Connect in a tenant", () => {
  it.each([
    ["by provider", (slug: string) => ({ providerId: `${slug}-okta` })],
    ["by domain", () => ({ domain: "corp.example" })],
    ["by e-mail", () => ({ email: "ada@corp.example" })],
  ])("signs people in %s, and the callback names no tenant", async (_, by) => {
    const world = await withProviders();
    const people = [];
    for (const { id, slug } of [world.acme, world.globex]) {
      const { started, answer, browser } = await world.signIn(id, by(slug), "ada");
      expect(new URL(started.data.url).searchParams.get("client_id")).toBe(
        `client-of-${slug}-okta`,
      );
      expect(answer.location).toBe("/welcome");
      const user = await whoIs(browser);
      expect(user).toMatchObject({ email: "ada@corp.example", tenantId: id });
      people.push(user?.id);
    }
    expect(new Set(people).size).toBe(2);
  });

  it("signs the same person in again", async () => {
    const world = await withProviders();
    const by = { providerId: "acme-okta" };
    const first = await world.signIn(world.acme.id, by, "ada");
    const second = await world.signIn(world.acme.id, by, "ada");
    expect((await whoIs(second.browser))?.id).toBe((await whoIs(first.browser))?.id);
  });

  it("runs in its tenant in a browser that is signed in elsewhere", async () => {
    const world = await withProviders();
    const { browser } = world.globex.member;
    const { answer } = await world.signIn(
      world.acme.id,
      { providerId: "acme-okta" },
      "ada",
      browser,
    );
    expect(answer.location).toBe("/welcome");
    expect(await whoIs(browser)).toMatchObject({ tenantId: world.acme.id });
  });

  it("does not know a provider of another tenant, nor of the platform", async () => {
    const world = await withProviders();
    const registered = await world.operator.post("/sso/register", world.oidc("platform-okta"));
    expect(registered.status).toBe(200);
    for (const [tenantId, providerId] of [
      [world.globex.id, "acme-okta"],
      [world.globex.id, "platform-okta"],
      [null, "acme-okta"],
    ] as const) {
      const { answer } = await world.signIn(tenantId, { providerId }, "ada");
      expect(answer.status).toBe(404);
    }
    const { browser } = await world.signIn(null, { providerId: "platform-okta" }, "ada");
    expect(await whoIs(browser)).toMatchObject({ tenantId: null });
  });

  it("works with a host for each tenant, and a callback on the platform's", async () => {
    const resolve = bySubdomain({ baseDomain: "localhost" });
    let isBuilt = false;
    const world = await createSSOWorld({
      tenant: { resolveTenantId: (ctx) => (isBuilt ? resolve(ctx) : undefined) },
      trustedOrigins: ["http://*.localhost:3000"],
    });
    isBuilt = true;
    const acme = "http://acme.localhost:3000/api/auth";
    world.provider.addPerson("ada");
    const admin = world.acme.admin.browser;
    const registered = await admin.post(`${acme}/sso/register`, world.oidc("acme-okta"));
    expect(registered.data).toMatchObject({ providerId: "acme-okta" });
    const browser = world.browser();
    const started = await browser.post<{ url: string }>(`${acme}/sign-in/sso`, {
      callbackURL: "/welcome",
      providerId: "acme-okta",
    });
    expect(started.status).toBe(200);
    const back = await world.provider.authorize(started.data.url, "ada");
    expect(new URL(back).host).toBe("localhost:3000");
    expect((await browser.get(back)).location).toBe("/welcome");
    const { data } = await browser.get<{ user: object } | null>(`${acme}/get-session`);
    expect(data?.user).toMatchObject({ tenantId: world.acme.id });
  });

  describe("a provider whose endpoints are at several hosts", () => {
    /** As Google has it: the issuer is at one host, and most of the rest at another. */
    async function register(
      resolve?: (host: string | null | undefined, world: SSOWorld) => unknown,
    ) {
      const built: { world?: SSOWorld } = {};
      const resolveTenantId = ({ headers }: { headers?: Headers | undefined }) =>
        built.world && (resolve?.(headers?.get("host"), built.world) as undefined);
      const world = await createSSOWorld({
        tenant: { ...(resolve && { resolveTenantId }) },
        trustedOrigins: ["http://localhost:*"],
      });
      built.world = world;
      const { issuer, rules } = world.provider;
      const elsewhere = elsewhereOf(world);
      rules.discovery = {
        issuer,
        authorization_endpoint: `${issuer}/oauth/authorize`,
        token_endpoint: `${elsewhere}/oauth/token`,
        token_endpoint_auth_methods_supported: ["client_secret_post"],
        userinfo_endpoint: `${elsewhere}/api/v4/user`,
        jwks_uri: `${elsewhere}/jwks`,
      };
      const { clientId, clientSecret } = world.oidc("acme-google").oidcConfig;
      const registered = await world.acme.admin.browser.post("/sso/register", {
        providerId: "acme-google",
        issuer,
        domain: "acme.example",
        oidcConfig: { clientId, clientSecret, pkce: true },
      });
      return { world, registered };
    }

    const elsewhereOf = ({ provider }: SSOWorld) =>
      provider.issuer.replace("127.0.0.1", "localhost");

    it.each([
      ["without a resolver", undefined],
      ["with a resolver", () => undefined],
    ])("signs people in, %s", async (_, resolve) => {
      const { world, registered } = await register(resolve);
      expect(registered.data).toMatchObject({ providerId: "acme-google" });
      world.provider.addPerson("ada");
      const { browser } = await world.signIn(world.acme.id, { providerId: "acme-google" }, "ada");
      expect(await whoIs(browser)).toMatchObject({ tenantId: world.acme.id });
    });

    it("is refused if one of them belongs to another tenant", async () => {
      const { registered } = await register((host, world) =>
        host === new URL(elsewhereOf(world)).host ? world.globex.id : undefined,
      );
      expect(registered.data).toMatchObject({ code: "discovery_untrusted_origin" });
    });

    it("is not asked for its endpoints at an address that is not trusted", async () => {
      const world = await createSSOWorld({ tenant: { resolveTenantId: () => undefined } });
      const registered = await world.acme.admin.browser.post("/sso/register", {
        ...world.oidc("acme-google", { issuer: elsewhereOf(world) }),
        oidcConfig: { clientId: "a", clientSecret: "b" },
      });
      expect(registered.data).toMatchObject({ code: "discovery_untrusted_origin" });
      expect(world.provider.requests).toEqual([]);
    });
  });

  it("works with one callback for all providers", async () => {
    const world = await withProviders({ sso: { redirectURI: "/sso/callback" } });
    for (const { id, slug } of [world.acme, world.globex]) {
      const by = { providerId: `${slug}-okta` };
      const { answer, browser, back } = await world.signIn(id, by, "ada");
      expect(new URL(back ?? "").pathname).toBe("/api/auth/sso/callback");
      expect(answer.location).toBe("/welcome");
      expect(await whoIs(browser)).toMatchObject({ tenantId: id });
    }
  });

  it("works with a provider that the application has for everybody", async () => {
    const { oidcConfig, issuer, provider } = await providerForEverybody();
    const shared = await createSSOWorld({
      sso: { defaultSSO: [{ providerId: "everybodys", domain: "corp.example", oidcConfig }] },
      trustedOrigins: [issuer],
    });
    for (const tenantId of [shared.acme.id, shared.globex.id, null]) {
      const browser = shared.browser();
      const started = await shared.start(tenantId, { providerId: "everybodys" }, browser);
      const back = await provider.authorize(started.data.url, "ada");
      expect((await browser.get(back)).location).toBe("/welcome");
      expect(await whoIs(browser)).toMatchObject({ tenantId });
    }
  });

  it("of everybody ends where it has begun, also with the state in a cookie and no label", async () => {
    const { oidcConfig, issuer, provider } = await providerForEverybody();
    const shared = await createSSOWorld({
      sso: { defaultSSO: [{ providerId: "everybodys", domain: "corp.example", oidcConfig }] },
      trustedOrigins: [issuer],
      auth: { account: { storeStateStrategy: "cookie" } },
    });
    const { acme, globex } = shared;
    for (const [from, to] of [
      [acme.id, globex.id],
      [acme.id, null],
      [null, acme.id],
    ] as const) {
      const browser = shared.browser();
      const started = await shared.start(from, { providerId: "everybodys" }, browser);
      const back = new URL(await provider.authorize(started.data.url, "ada"));
      const labelled = back.searchParams.get("state") ?? "";
      back.searchParams.set("state", labelled.slice(-32));
      const stripped = await browser.fork().get(back.href, { headers: named(to) });
      expect(stripped.location).toContain("error=");
      expect(await whoIs(browser)).toBeUndefined();
      const again = await shared.start(from, { providerId: "everybodys" }, browser);
      const right = await provider.authorize(again.data.url, "ada");
      expect((await browser.get(right)).location).toBe("/welcome");
      expect(await whoIs(browser)).toMatchObject({ tenantId: from });
    }
  });

  it.each(["database", "cookie"] as const)("works with states in the %s", async (strategy) => {
    const world = await withProviders({ auth: { account: { storeStateStrategy: strategy } } });
    const { browser } = await world.signIn(world.acme.id, { providerId: "acme-okta" }, "ada");
    expect(await whoIs(browser)).toMatchObject({ tenantId: world.acme.id });
  });
});

describe("R6: a state of a tenant", () => {
  let world: SSOWorld;
  /** Ada has agreed at the provider, and is about to come back. */
  async function underWay() {
    const browser = world.browser();
    const started = await world.start(world.acme.id, { providerId: "acme-okta" }, browser);
    const back = new URL(await world.provider.authorize(started.data.url, "ada"));
    return { browser, back };
  }

  async function expectRefused(browser: SSOWorld["operator"], back: URL, tenantId?: string) {
    const sessions = await world.rows("session");
    const answer = await browser.get(back.href, { headers: named(tenantId ?? null) });
    expect(answer.location ?? answer.status).not.toBe("/welcome");
    expect(await whoIs(browser)).toBeUndefined();
    expect(await world.rows("session")).toBe(sessions);
  }

  it("is no state at another tenant, be it named or by its provider", async () => {
    world = await withProviders();
    const { browser, back } = await underWay();
    await expectRefused(browser, back, world.globex.id);
    const another = await underWay();
    another.back.pathname = another.back.pathname.replace("acme-okta", "globex-okta");
    await expectRefused(another.browser, another.back);
  });

  it("is none without its label, with the label of another tenant, or altered", async () => {
    world = await withProviders();
    const theirs = await world.start(
      world.globex.id,
      { providerId: "globex-okta" },
      world.browser(),
    );
    const label = new URL(theirs.data.url).searchParams.get("state") ?? "";
    for (const alter of [
      (state: string) => state.slice(-32),
      (state: string) => label.slice(0, -32) + state.slice(-32),
      (state: string) => `${state.startsWith("A") ? "B" : "A"}${state.slice(1)}`,
    ]) {
      const { browser, back } = await underWay();
      const altered = alter(back.searchParams.get("state") ?? "");
      back.searchParams.set("state", altered);
      back.pathname = back.pathname.replace("acme-okta", "globex-okta");
      await expectRefused(browser, back);
    }
  });

  it("is good once, also when it comes back twice at the same time", async () => {
    world = await withProviders();
    const { browser, back } = await underWay();
    world.provider.rules.codesAreGoodOnce = false;
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => browser.fork().get(back.href)),
    );
    world.provider.rules.codesAreGoodOnce = true;
    expect(answers.filter(({ location }) => location === "/welcome")).toHaveLength(1);
    await expectRefused(browser, back);
  });

  it("is none in another browser, and stays good in its own", async () => {
    world = await withProviders();
    const { browser, back } = await underWay();
    await expectRefused(world.browser(), back);
    expect((await browser.get(back.href)).location).toBe("/welcome");
  });

  it("is none after its provider was changed or deleted", async () => {
    world = await withProviders();
    const admin = world.acme.admin.browser;
    await admin.post("/sso/register", world.oidc("acme-short-lived"));
    for (const [path, body] of [
      ["/sso/update-provider", { oidcConfig: { clientId: "another" } }],
      ["/sso/delete-provider", {}],
    ] as const) {
      const browser = world.browser();
      const by = { providerId: "acme-short-lived" };
      const started = await world.start(world.acme.id, by, browser);
      world.provider.registerClient("another", "x");
      const back = new URL(await world.provider.authorize(started.data.url, "ada"));
      const changed = await admin.post(path, { providerId: "acme-short-lived", ...body });
      expect(changed.status).toBe(200);
      await expectRefused(browser, back);
    }
  });
});

describe("a tenant that is", () => {
  it("suspended lets nobody in by its provider", async () => {
    const world = await withProviders();
    const browser = world.browser();
    const started = await world.start(world.acme.id, { providerId: "acme-okta" }, browser);
    const back = await world.provider.authorize(started.data.url, "ada");
    await world.api.updateTenant({ body: { tenantId: world.acme.id, status: "suspended" } });
    expect((await browser.get(back)).status).toBe(403);
    expect(await whoIs(browser)).toBeUndefined();
  });

  it("deleted takes its providers along", async () => {
    const world = await withProviders();
    await world.api.deleteTenant({ body: { tenantId: world.acme.id } });
    expect(await world.rows("ssoProvider")).toBe(1);
    const again = await world.operator.post("/sso/register", world.oidc("acme-okta"));
    expect(again.status).toBe(200);
  });
});
