import { describe, expect, it } from "vitest";
import { bySubdomain } from "../../src/index";
import { databases } from "../support/servers";
import { createSamlProvider, requestIn, type SamlResponse } from "./saml-provider";
import {
  acmeProvider,
  acsOf,
  audienceOf,
  createSamlWorld,
  expectRefused,
  globexProvider,
  post,
  register,
  underWay,
} from "./saml-world";
import { createSSOWorld, named, whoIs } from "./sso-world";

describe.each(databases)("SAML in a tenant, on %s", (database) => {
  it("signs people in who started there; the response names no tenant", async () => {
    const world = await createSamlWorld({ database });
    const { browser, relayState, response } = await underWay(world);
    const answer = await post(browser, acsOf("acme-saml"), response, relayState);
    expect(answer.location).toBe("/welcome");
    expect(await whoIs(browser)).toMatchObject({
      email: "ada@acme.example",
      tenantId: world.acme.id,
    });
  });

  it("finds the provider by the domain of an address, in its own tenant", async () => {
    const world = await createSamlWorld({ database });
    const email = "ada@acme.example";
    const started = await world.start(world.acme.id, { email }, world.browser());
    expect(started.data.url).toContain(acmeProvider.entryPoint);
    expect((await world.start(world.globex.id, { email }, world.browser())).status).toBe(404);
  });

  it("signs people in whom the provider sends, where the application allows that", async () => {
    const world = await createSamlWorld({ database, sso: { saml: { allowIdpInitiated: true } } });
    // Signed in at Globex: the row of the provider counts, not the session.
    const { browser } = world.globex.member;
    const response = await acmeProvider.respond({
      acs: acsOf("acme-saml"),
      audience: audienceOf("acme-saml"),
      email: "ada@acme.example",
    });
    const answer = await post(browser, acsOf("acme-saml"), response);
    expect(answer.location).toBe("/welcome");
    expect(await whoIs(browser)).toMatchObject({ tenantId: world.acme.id });
  });

  it("is not started by the provider otherwise", async () => {
    const world = await createSamlWorld({ database });
    const browser = world.browser();
    const response = await acmeProvider.respond({
      acs: acsOf("acme-saml"),
      audience: audienceOf("acme-saml"),
      email: "ada@acme.example",
    });
    await expectRefused(world, browser, async () => {
      const answer = await post(browser, acsOf("acme-saml"), response);
      expect(answer.location).toContain("unsolicited_response");
    });
  });

  it("publishes its metadata without a tenant being named", async () => {
    const world = await createSamlWorld({ database });
    const query = { providerId: "acme-saml" };
    const { data, status } = await world.browser().get("/sso/saml2/sp/metadata", { query });
    expect(status).toBe(200);
    expect(JSON.stringify(data)).toContain(acsOf("acme-saml"));
    const headers = named(world.globex.id);
    const elsewhere = await world.browser().get("/sso/saml2/sp/metadata", { query, headers });
    expect(elsewhere.status).toBe(404);
  });

  it("comes back where the resolver does not know the host of the provider, and throws", async () => {
    let isBuilt = false;
    const resolve = bySubdomain({ baseDomain: "localhost" });
    const world = await createSamlWorld({
      database,
      trustedOrigins: ["http://*.localhost:3000"],
      tenant: {
        resolveTenantId: (ctx) => {
          if (!isBuilt) return undefined;
          if (ctx.request?.url.includes("idp.example")) throw new Error("Who is that?");
          return resolve(ctx);
        },
      },
    });
    isBuilt = true;
    const browser = world.browser();
    const body = { callbackURL: "/in", providerId: "acme-saml" };
    const started = await browser.post<{ url: string }>(
      "http://acme.localhost:3000/api/auth/sign-in/sso",
      body,
    );
    const { id, relayState } = requestIn(started.data.url);
    const response = await acmeProvider.respond({
      acs: acsOf("acme-saml"),
      audience: audienceOf("acme-saml"),
      inResponseTo: id,
      email: "ada@acme.example",
    });
    const answer = await post(browser, acsOf("acme-saml"), response, relayState);
    expect(answer.location).toBe("/in");
  });

  it("ends the session here, and then at the provider", async () => {
    const world = await createSSOWorld({ database, sso: { saml: { enableSingleLogout: true } } });
    const { entityID, entryPoint } = acmeProvider;
    const singleLogoutService = [
      { Binding: "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect", Location: entryPoint },
    ];
    await register(world.acme.admin.browser, "acme-saml", acmeProvider, {
      idpMetadata: { entityID, singleLogoutService },
    });
    const { browser, relayState, response } = await underWay(world);
    await post(browser, acsOf("acme-saml"), response, relayState);
    expect(await whoIs(browser)).toMatchObject({ tenantId: world.acme.id });
    const sessions = await world.rows("session");
    const answer = await browser.post("/sso/saml2/logout/acme-saml", { callbackURL: "/bye" });
    expect(answer.location).toContain(entryPoint);
    expect(await world.rows("session")).toBe(sessions - 1);
    expect(await whoIs(browser)).toBeUndefined();
  });

  it("makes nobody the administrator of another tenant or of the platform", async () => {
    const world = await createSamlWorld({
      database,
      sso: { trustEmailVerified: true, saml: { allowIdpInitiated: true } },
    });
    for (const email of [world.globex.admin.email, world.operatorUser.email]) {
      const browser = world.browser();
      const response = await acmeProvider.respond({
        acs: acsOf("acme-saml"),
        audience: audienceOf("acme-saml"),
        email,
        emailVerified: true,
      });
      await post(browser, acsOf("acme-saml"), response);
      // Somebody new at Acme, who has nothing but the address in common with the victim.
      const somebody = await whoIs(browser);
      expect(somebody).toMatchObject({ email, tenantId: world.acme.id });
      expect([world.globex.admin.user.id, world.operatorUser.id]).not.toContain(somebody?.id);
    }
  });
});

describe.each(databases)("a SAML response is refused, on %s", (database) => {
  const ACS = acsOf("acme-saml");

  it.each<[string, Partial<SamlResponse>]>([
    ["for another audience", { audience: "https://app.example/somebody-else" }],
    ["for another recipient", { acs: acsOf("globex-saml") }],
    ["without a signature", { isSigned: false }],
    ["signed by another tenant's provider", { signedBy: globexProvider }],
    ["to a request that nobody has made", { inResponseTo: "_invented" }],
  ])("%s", async (_, wrong) => {
    const world = await createSamlWorld({ database });
    const { browser, relayState, response } = await underWay(world, wrong);
    await expectRefused(world, browser, async () => {
      const { location, status } = await post(browser, ACS, response, relayState);
      expect(location ?? status).toMatch(/error=/);
    });
  });

  it("at another tenant's address, and where another tenant is named", async () => {
    const world = await createSamlWorld({ database });
    for (const [acs, headers] of [
      [acsOf("globex-saml"), {}],
      [acsOf("globex-saml"), named(world.acme.id)],
      [ACS, named(world.globex.id)],
    ] as const) {
      const { browser, relayState, response } = await underWay(world);
      await expectRefused(world, browser, () => post(browser, acs, response, relayState, headers));
    }
  });

  it("that answers a request of another tenant", async () => {
    const world = await createSamlWorld({ database });
    const started = await world.start(
      world.globex.id,
      { providerId: "globex-saml" },
      world.browser(),
    );
    const theirs = requestIn(started.data.url);
    const { browser, relayState, response } = await underWay(world, { inResponseTo: theirs.id });
    await expectRefused(world, browser, () => post(browser, ACS, response, relayState));
    // And with the relay state of another tenant.
    const another = await underWay(world);
    await expectRefused(world, another.browser, () =>
      post(another.browser, ACS, another.response, theirs.relayState),
    );
  });

  it("the second time, also when it comes twice at once", async () => {
    const world = await createSamlWorld({
      database,
      sso: { saml: { enableInResponseToValidation: false } },
    });
    const { browser, response } = await underWay(world);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => post(world.browser(), ACS, response)),
    );
    expect(answers.filter(({ location }) => location === "/welcome")).toHaveLength(1);
    await expectRefused(world, browser, async () => {
      const { location } = await post(browser, ACS, response);
      expect(location).toContain("replay_detected");
    });
  });

  it.each(["text", "serial", "uuid"] as const)("the second time, with %s ids", async (ids) => {
    const world = await createSamlWorld({
      database,
      sso: { saml: { allowIdpInitiated: true } },
      ...(ids !== "text" && { auth: { advanced: { database: { generateId: ids } } } }),
    });
    const response = await acmeProvider.respond({
      acs: ACS,
      audience: audienceOf("acme-saml"),
      email: "ada@acme.example",
    });
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => post(world.browser(), ACS, response)),
    );
    expect(answers.filter(({ location }) => location === "/welcome")).toHaveLength(1);
    const browser = world.browser();
    await expectRefused(world, browser, async () => {
      expect((await post(browser, ACS, response)).location).toContain("replay_detected");
    });
  });

  it("for what it was used for, and not because another tenant's provider says the same id", async () => {
    const sso = { saml: { allowIdpInitiated: true } };
    const world = await createSamlWorld({ database, sso });
    for (const provider of [globexProvider, acmeProvider]) {
      const providerId = `${provider.name}-saml`;
      const browser = world.browser();
      const response = await provider.respond({
        acs: acsOf(providerId),
        audience: audienceOf(providerId),
        email: "ada@corp.example",
        assertionId: "_the-same-at-both",
      });
      expect((await post(browser, acsOf(providerId), response)).location).toBe("/welcome");
      expect(await whoIs(browser)).toMatchObject({ email: "ada@corp.example" });
    }
  });

  it("after its provider was changed or deleted", async () => {
    const world = await createSamlWorld({ database });
    const admin = world.acme.admin.browser;
    const changed = await underWay(world);
    const renewed = await createSamlProvider("renewed");
    const update = { samlConfig: { cert: renewed.keys.certificate } };
    const body = { providerId: "acme-saml", ...update };
    expect((await admin.post("/sso/update-provider", body)).status).toBe(200);
    await expectRefused(world, changed.browser, () =>
      post(changed.browser, ACS, changed.response, changed.relayState),
    );
    // Signed with the new certificate, but for a request from before.
    const late = await underWay(world, { signedBy: renewed });
    const again = { providerId: "acme-saml", domain: "moved.example" };
    expect((await admin.post("/sso/update-provider", again)).status).toBe(200);
    await admin.post("/sso/delete-provider", { providerId: "acme-saml" });
    await expectRefused(world, late.browser, () =>
      post(late.browser, ACS, late.response, late.relayState),
    );
  });
});
