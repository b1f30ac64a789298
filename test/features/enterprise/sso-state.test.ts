import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { INVITATION_HEADER } from "../../../src/features/invitations/error-codes";
import { bySubdomain } from "../../../src/index";
import { createSamlProvider } from "../../../src/testing/makers/saml";
import type { Browser } from "../../support/browser";
import { createDatabase } from "../../support/database";
import { makeDiscovery, startIdentityProvider } from "../../support/identity-provider";
import { BASE_URL } from "../../support/instance";
import type { Where } from "../../support/world";
import { invitationsWithMailbox, tokenIn } from "../invitations/world";
import {
  ADA,
  acsOf,
  createSSOWorld,
  hostOf,
  oidc,
  post,
  type SSOWorld,
  type SSOWorldOptions,
  samlRegistration,
  samlUnderWay,
  sharedOidc,
  shareSSOWorld,
} from "./world";

const everybodys: Extract<SSOWorldOptions["sso"], (...given: never[]) => unknown> = (provider) => {
  provider.addPerson("bob");
  return { defaultSSO: [{ ...sharedOidc(provider, "everybodys"), domain: "everybody.example" }] };
};

const world = shareSSOWorld({ sso: everybodys });
// Acme and Globex have a provider each, for one and the same domain.
beforeAll(async () => {
  for (const place of ["acme", "globex"]) await world.register(place, `${place}-okta`);
});

describe("OpenID Connect in a tenant", () => {
  it("finds the provider by id, domain and email, and the callback names no tenant", async () => {
    const people = new Set<string | undefined>();
    for (const [place, by] of [
      ["acme", "acme-okta"],
      ["acme", { domain: "acme.example" }],
      ["globex", { email: ADA }],
    ] as const) {
      const { browser, back, url } = await world.underWay(place, by);
      expect(new URL(url).searchParams.get("client_id")).toBe(`client-of-${place}-okta`);
      expect((await browser.get(back.href)).location).toBe("/welcome");
      const who = await world.whoIs(browser);
      expect(who).toMatchObject({ email: ADA, tenantId: world.ids[place] });
      people.add(who?.id);
    }
    expect(people.size).toBe(2);
  });

  it("runs in its tenant in a browser that is signed in elsewhere", async () => {
    const browser = world.at("platform", await world.as("jane", "globex"));
    const { location, who } = await world.ssoSignIn("acme", "acme-okta", "ada", browser);
    expect([location, who?.tenantId]).toEqual(["/welcome", world.ids.acme]);
  });

  it("does not know a provider of another tenant, nor of the platform", async () => {
    await world.register("platform", "platform-okta");
    for (const [where, providerId] of [
      ["globex", "acme-okta"],
      ["globex", "platform-okta"],
      ["platform", "acme-okta"],
    ] as const) {
      expect((await world.start(where, providerId)).status).toBe(404);
    }
    const { who } = await world.ssoSignIn("platform", "platform-okta");
    expect(who).toMatchObject({ tenantId: null });
  });

  it("works with a provider of everybody's", async () => {
    for (const place of ["acme", "platform"] as const) {
      const { location, who } = await world.ssoSignIn(place, "everybodys", "bob");
      expect([location, who?.tenantId]).toEqual(["/welcome", world.ids[place]]);
    }
  });

  it("works with a host for each tenant, and a callback on the platform's", async () => {
    const atHosts = await createSSOWorld({
      auth: { baseURL: "http://localhost:3000", trustedOrigins: ["http://*.localhost:3000"] },
      hosts: {
        names: { acme: "acme.localhost:3000", globex: "", platform: "localhost:3000" },
        resolveTenantId: bySubdomain({ baseDomain: "localhost" }),
      },
    });
    await atHosts.register("acme", "acme-okta");
    const { browser, back } = await atHosts.underWay("acme", "acme-okta");
    expect(back.host).toBe("localhost:3000");
    expect((await browser.get(back.href)).location).toBe("/welcome");
    expect(await atHosts.whoIs(browser, "acme")).toMatchObject({ tenantId: atHosts.ids.acme });
    // What a provider posts comes from anywhere, and nothing else does.
    const headers = { origin: "http://globex.localhost:3000" };
    const rename = await browser.post("/update-user", { name: "Changed" }, { headers });
    expect(rename.code).toBe("INVALID_ORIGIN");
  });

  it("ends where it has begun, also with the state in a cookie and no label", async () => {
    const inCookie = await createSSOWorld({
      sso: everybodys,
      auth: { account: { storeStateStrategy: "cookie" } },
    });
    await inCookie.register("acme", "acme-okta");
    for (const [from, to, providerId, who] of [
      ["acme", "globex", "everybodys", "bob"],
      ["platform", "acme", "everybodys", "bob"],
      ["acme", "globex", "acme-okta", "ada"],
    ] as const) {
      const { browser, back } = await inCookie.underWay(from, providerId);
      back.searchParams.set("state", back.searchParams.get("state")?.slice(-32) ?? "");
      const headers = inCookie.naming(to);
      const stripped = await browser.fork().get(back.href, { headers });
      expect(stripped.location).toContain("error=");
      expect(await inCookie.whoIs(browser)).toBe(null);
      const { location, who: somebody } = await inCookie.ssoSignIn(from, providerId, who, browser);
      expect([location, somebody?.tenantId]).toEqual(["/welcome", inCookie.ids[from]]);
    }
  });
});

describe("R6: a state of a tenant", () => {
  async function expectRefused(browser: Browser, back: URL, where: Where = "platform") {
    const sessions = await world.rows("session");
    const { location, status } = await browser.get(back.href, { headers: world.naming(where) });
    expect(location ?? status).not.toBe("/welcome");
    expect(await world.whoIs(browser)).toBe(null);
    expect(await world.rows("session")).toBe(sessions);
  }

  const atGlobex = ({ pathname }: URL) => pathname.replace("acme-okta", "globex-okta");

  it("is no state at another tenant, be it named or by its provider", async () => {
    const { browser, back } = await world.underWay("acme", "acme-okta");
    await expectRefused(browser, back, "globex");
    const another = await world.underWay("acme", "acme-okta");
    another.back.pathname = atGlobex(another.back);
    await expectRefused(another.browser, another.back);
  });

  it("is none without its label, with the label of another tenant, or altered", async () => {
    const theirs = await world.start("globex", "globex-okta");
    const label = new URL(theirs.data.url).searchParams.get("state") ?? "";
    // "s", the signature, the tenant, and what better-auth has made.
    const flipped = (state: string) =>
      `${state.slice(0, 5)}${state[5] === "A" ? "B" : "A"}${state.slice(6)}`;
    for (const [alter, path] of [
      [(state: string) => state.slice(-32), atGlobex],
      [(state: string) => label.slice(0, -32) + state.slice(-32), atGlobex],
      [flipped, atGlobex],
      [flipped, ({ pathname }: URL) => pathname],
    ] as const) {
      const { browser, back } = await world.underWay("acme", "acme-okta");
      back.searchParams.set("state", alter(back.searchParams.get("state") ?? ""));
      back.pathname = path(back);
      await expectRefused(browser, back);
    }
  });

  it("is good once, also when it comes back twice at the same time", async () => {
    const { browser, back } = await world.underWay("acme", "acme-okta");
    world.provider.rules.codesAreGoodOnce = false;
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => browser.fork().get(back.href)),
    );
    world.provider.rules.codesAreGoodOnce = true;
    expect(answers.filter(({ location }) => location === "/welcome")).toHaveLength(1);
    await expectRefused(browser, back);
  });

  it("is none after its provider was changed or deleted", async () => {
    const { id, providerId, admin } = await world.newTenant();
    world.provider.registerClient("another", "x");
    for (const [path, body] of [
      ["/sso/update-provider", { oidcConfig: { clientId: "another" } }],
      ["/sso/delete-provider", {}],
    ] as const) {
      const { browser, back } = await world.underWay(id, providerId);
      expect((await admin.post(path, { providerId, ...body })).status).toBe(200);
      await expectRefused(browser, back);
    }
  });
});

it("threat: mix-up: a hostile provider that redirects to a provider of another tenant gets no code of it", async () => {
  const [provider, hostile] = [await startIdentityProvider(), await startIdentityProvider()];
  const tenant = { trustedProviderHosts: [provider, hostile].map(hostOf) };
  const world = await createSSOWorld({ provider, sso: everybodys, tenant });
  await world.register("acme", "acme-okta");
  await world.register("globex", oidc(hostile, "globex-idp"));
  for (const [place, providerId] of [
    ["acme", "acme-okta"],
    ["platform", "everybodys"],
  ] as const) {
    // Its own address, and the one for all providers, which it may know from before.
    for (const path of [`/sso/callback/${providerId}`, "/sso/callback"]) {
      const victim = world.at("platform");
      const { data: theirs } = await world.start("globex", "globex-idp", victim);
      const lure = new URL((await world.start(place, providerId)).data.url);
      lure.searchParams.set("state", new URL(theirs.url).searchParams.get("state") ?? "");
      lure.searchParams.set("redirect_uri", BASE_URL + path);
      const back = new URL(await world.provider.authorize(lure.href, "ada"));
      expect(back.href).toContain(`${BASE_URL}${path}?`);
      await victim.get(back.href);
      expect(hostile.exchanges(), path).toEqual([]);
      expect(await world.whoIs(victim)).toBe(null);
    }
  }
});

it("a suspended tenant admits no user through its provider", async () => {
  const { id, providerId } = await world.newTenant();
  const { browser, back } = await world.underWay(id, providerId);
  await world.change(id, { status: "suspended" });
  expect((await browser.get(back.href)).status).toBe(403);
  expect(await world.whoIs(browser)).toBe(null);
});

describe("R14: without transactions", () => {
  const updateUserInfoOnLink = true;
  const without = async (options: SSOWorldOptions = {}) => {
    const database = await createDatabase("sqlite");
    onTestFinished(() => database.close());
    database.option.transaction = false;
    return createSSOWorld({
      auth: { account: { accountLinking: { updateUserInfoOnLink } } },
      ...options,
      database,
    });
  };
  const people = (own: SSOWorld) =>
    Promise.all(["user", "account", "session"].map((table) => own.rowsIn("acme", table)));

  it.each([
    ["OIDC", "linked"],
    ["OIDC", "unknown to the provider"],
    ["OIDC of everybody's", "linked"],
    ["SAML", "linked"],
    ["SAML", "unknown to the provider"],
  ])("%s that the policy has come to forbid leaves nothing behind: %s", async (by, who) => {
    const idp = await createSamlProvider("https://acme.idp.example");
    const own = await without({
      sso: (provider) => ({ ...everybodys(provider), domainVerification: { enabled: true } }),
    });
    const providerId = by === "OIDC of everybody's" ? "everybodys" : "acme-idp";
    const isSaml = by === "SAML";
    await own.register("acme", isSaml ? samlRegistration("acme-idp", idp) : "acme-idp");
    await own.write("ssoProvider", { domainVerified: true });
    const underWay = async () => {
      if (!isSaml) {
        const { browser, back } = await own.underWay("acme", providerId);
        return () => browser.get(back.href);
      }
      const { browser, form } = await samlUnderWay(own, "acme", providerId, idp);
      return () => post(browser, acsOf(providerId), form);
    };
    if (who === "linked") expect((await (await underWay())()).location).toBe("/welcome");
    else await own.signUp("acme", ADA);
    await own.write("user", { emailVerified: true });
    own.provider.addPerson("ada", { email: ADA, name: "Another Name" });
    const comeBack = await underWay();
    await own.change("acme", { policy: { methods: ["password"] } });
    const before = await people(own);
    const answer = await comeBack();
    expect(answer.location).toContain("/failed?error=SIGN_IN_METHOD_NOT_ALLOWED");
    expect(await people(own)).toEqual(before);
  });

  it("an unverified address uses no invitation up", async () => {
    const { plugin } = invitationsWithMailbox();
    const own = await without({ plugins: [plugin] });
    await own.register("acme", "acme-okta");
    await own.change("acme", { policy: { signUp: "invited", emailDomains: ["acme.example"] } });
    const body = { tenantId: own.ids.acme, email: ADA, send: false };
    const operator = await own.operator();
    const { data } = await operator.post<{ url: string }>("/tenant/invitation/create", body);
    const browser = own.browser({ [INVITATION_HEADER]: tokenIn(data.url) });
    const { back } = await own.underWay("acme", "acme-okta", browser);
    const { location } = await browser.get(back.href);
    expect(location).toContain("/failed?error=EMAIL_NOT_VERIFIED");
    expect(await own.rowsIn("acme", "tenantInvitation")).toMatchObject([{ status: "pending" }]);
    expect((await own.rowsIn("acme", "user")).map(({ email }) => email)).not.toContain(ADA);
  });
});

it("R9: a provider with endpoints at several hosts, like Google, signs users in", async () => {
  const provider = await startIdentityProvider();
  const { issuer, rules } = provider;
  const elsewhere = issuer.replace("127.0.0.1", "localhost");
  const trustedProviderHosts = [issuer, elsewhere].map((address) => new URL(address).host);
  const resolveTenantId = () => undefined;
  const own = await createSSOWorld({ provider, tenant: { resolveTenantId, trustedProviderHosts } });
  rules.discovery = makeDiscovery(issuer, elsewhere);
  const { clientId, clientSecret } = own.oidc("acme-google").oidcConfig;
  const oidcConfig = { clientId, clientSecret, pkce: true };
  await own.register("acme", own.oidc("acme-google", { oidcConfig }));
  const { who } = await own.ssoSignIn("acme", "acme-google");
  expect(who).toMatchObject({ tenantId: own.ids.acme });
});

it("a configuration that is registered is answered, however deep it is", async () => {
  const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  const admin = await world.as("admin", "acme");
  expect((await admin.post("/sso/register", `{"samlConfig":${deep}}`)).status).toBe(400);
});

it("SAML comes back where the resolver does not know the host of the provider, and throws", async () => {
  const idp = await createSamlProvider("https://acme.idp.example");
  const asked: string[] = [];
  const world = await createSSOWorld({
    tenant: {
      resolveTenantId: ({ request }) => {
        if (!request?.url.includes("idp.example")) return undefined;
        asked.push(request.url);
        throw new Error("Who is that?");
      },
    },
  });
  await world.register("acme", samlRegistration("acme-saml", idp));
  const { browser, form } = await samlUnderWay(world, "acme", "acme-saml", idp);
  expect((await post(browser, acsOf("acme-saml"), form)).location).toBe("/welcome");
  expect(await world.whoIs(browser)).toMatchObject({ email: ADA, tenantId: world.ids.acme });
  expect(asked).not.toEqual([]);
});
