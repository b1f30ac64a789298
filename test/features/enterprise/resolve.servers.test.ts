import { beforeAll, describe, expect, it, vi } from "vitest";
import { createSamlProvider } from "../../../src/testing/makers/saml";
import type { Browser } from "../../support/browser";
import { databases, idKindsOn } from "../../support/database";
import { BASE_URL } from "../../support/instance";
import { mapStorage } from "../../support/stores";
import type { Where, WorldOptions } from "../../support/world";
import {
  ADA,
  acsOf,
  createSSOWorld,
  post,
  type SSOWorld,
  samlRegistration,
  samlUnderWay,
  sharedOidc,
  sharedSaml,
  shareSSOWorld,
  unasked,
} from "./world";

/*
 * Requests that come from SAML providers name no tenant, and may come in a browser that is signed in
 * elsewhere: what the provider is registered for names it.
 */

const idps = {
  acme: await createSamlProvider("https://acme.idp.example"),
  globex: await createSamlProvider("https://globex.idp.example"),
  platform: await createSamlProvider("https://platform.idp.example"),
  everybodys: await createSamlProvider("https://everybodys.idp.example"),
};
const ACS = acsOf("acme-saml");

async function registerBoth({ register }: SSOWorld) {
  for (const place of ["acme", "globex"] as const) {
    await register(place, samlRegistration(`${place}-saml`, idps[place]));
  }
}

/** The provider sends somebody who has not asked for it. */
async function sendTo(browser: Browser, place: keyof typeof idps, email?: string) {
  const providerId = `${place}-saml`;
  const SAMLResponse = await unasked(idps[place], providerId, email);
  return post(browser, acsOf(providerId), { SAMLResponse });
}

async function expectRefused(world: SSOWorld, browser: Browser, send: () => Promise<unknown>) {
  const before = [await world.rows("session"), await world.rows("user")];
  await send();
  expect([await world.rows("session"), await world.rows("user")]).toEqual(before);
  expect(await world.whoIs(browser)).toBe(null);
}

describe.each(databases)("SAML in a tenant, on %s", (database) => {
  const world = shareSSOWorld({}, database);
  beforeAll(() => registerBoth(world));
  const atAcme = (more = {}) => samlUnderWay(world, "acme", "acme-saml", idps.acme, more);

  it("signs in users who started there, and publishes its metadata, without a tenant in the request", async () => {
    const { browser, form } = await atAcme();
    expect((await post(browser, ACS, form)).location).toBe("/welcome");
    expect(await world.whoIs(browser)).toMatchObject({ email: ADA, tenantId: world.ids.acme });
    const query = { providerId: "acme-saml" };
    const { data, status } = await world.at("platform").get("/sso/saml2/sp/metadata", { query });
    expect([status, JSON.stringify(data)]).toEqual([200, expect.stringContaining(ACS)]);
    const elsewhere = await world.at("globex").get("/sso/saml2/sp/metadata", { query });
    expect(elsewhere.status).toBe(404);
  });

  it("refuses one of another tenant: by address, name, request or relay state", async () => {
    const theirs = await samlUnderWay(world, "globex", "globex-saml", idps.globex);
    for (const [acs, where, more, form] of [
      [acsOf("globex-saml"), "platform", {}, {}],
      [acsOf("globex-saml"), "acme", {}, {}],
      [ACS, "globex", {}, {}],
      [ACS, "platform", { inResponseTo: theirs.inResponseTo }, {}],
      [ACS, "platform", {}, { RelayState: theirs.form.RelayState }],
    ] as const) {
      const { browser, form: own } = await atAcme(more);
      const send = () => post(browser, acs, { ...own, ...form }, world.naming(where));
      await expectRefused(world, browser, send);
    }
  });
});

describe.each(databases)("SAML that the provider starts, where allowed, on %s", (database) => {
  const sso = { trustEmailVerified: true, saml: { allowIdpInitiated: true } };
  const world = shareSSOWorld({ sso }, database);
  beforeAll(() => registerBoth(world));

  it("signs users in, wherever their browser is signed in", async () => {
    const browser = world.at("platform", await world.as("jane", "globex"));
    expect((await sendTo(browser, "acme")).location).toBe("/welcome");
    expect(await world.whoIs(browser)).toMatchObject({ email: ADA, tenantId: world.ids.acme });
  });

  it("takeover: makes no user the administrator of another tenant or of the platform", async () => {
    for (const place of ["globex", "platform"] as const) {
      const email = `boss-${place}@example.com`;
      const victim = await world.join(place, "admin", email);
      const stranger = world.at("platform");
      await sendTo(stranger, "acme", email);
      // Somebody new at Acme, who has nothing but the address in common with the victim.
      const somebody = await world.whoIs(stranger);
      expect(somebody).toMatchObject({ email, tenantId: world.ids.acme });
      expect(somebody?.id).not.toBe(victim.id);
    }
  });

  it("takes an assertion for what it is, whatever id another tenant's provider gives it", async () => {
    for (const place of ["globex", "acme"] as const) {
      const browser = world.at("platform");
      vi.spyOn(crypto, "randomUUID").mockReturnValueOnce("0-0-0-0-0");
      const answer = await sendTo(browser, place);
      vi.restoreAllMocks();
      expect(answer.location).toBe("/welcome");
      expect(await world.whoIs(browser)).toMatchObject({ tenantId: world.ids[place] });
    }
  });
});

const IDS = databases.flatMap((database) =>
  idKindsOn(database).map((ids) => [database, ids] as const),
);

describe.each(IDS)("a SAML response the second time, on %s with %s ids", (database, ids) => {
  const world = shareSSOWorld(
    {
      sso: {
        saml: { allowIdpInitiated: true },
        defaultSSO: [sharedSaml("everybodys-saml", idps.everybodys)],
      },
      ...(ids !== "text" && { auth: { advanced: { database: { generateId: ids } } } }),
    },
    database,
  );
  beforeAll(async () => {
    await registerBoth(world);
    await world.register("platform", samlRegistration("platform-saml", idps.platform));
  });

  it.each<[whose: keyof typeof idps, places: Where[]]>([
    ["acme", ["platform"]],
    ["everybodys", ["acme", "globex", "platform"]],
    ["platform", ["platform"]],
  ])("is refused, also when it comes several times at once: %s, at %j", async (whose, places) => {
    const providerId = `${whose}-saml`;
    const SAMLResponse = await unasked(idps[whose], providerId, `${whose}@acme.example`);
    const send = (where: Where, browser = world.at("platform")) =>
      post(browser, acsOf(providerId), { SAMLResponse }, world.naming(where));
    const answers = await Promise.all([...places, ...places, ...places].map((at) => send(at)));
    const welcome = answers.filter(({ location }) => location === "/welcome");
    // With numeric ids, attempts at the same time may all fail.
    expect(ids === "serial" ? [0, 1] : [1]).toContain(welcome.length);
    for (const where of places) {
      const browser = world.at("platform");
      await expectRefused(world, browser, async () => {
        expect((await send(where, browser)).location).toContain("replay_detected");
      });
    }
  });
});

const sloOf = (providerId: string) => `${BASE_URL}/sso/saml2/sp/slo/${providerId}`;

function requestLogout(browser: Browser, place: keyof typeof idps) {
  const address = sloOf(`${place}-saml`);
  return post(browser, address, { SAMLRequest: idps[place].logout(address, ADA).posted });
}

function confirmLogout(browser: Browser) {
  const names = ["protocol", "assertion"].map((name) => `urn:oasis:names:tc:SAML:2.0:${name}`);
  const xml = `<p:LogoutResponse xmlns:p="${names[0]}" xmlns:a="${names[1]}" ID="_confirmed" Version="2.0" IssueInstant="${new Date().toISOString()}" Destination="${sloOf("acme-saml")}"><a:Issuer>${idps.acme.entityID}</a:Issuer><p:Status><p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></p:Status></p:LogoutResponse>`;
  return post(browser, sloOf("acme-saml"), { SAMLResponse: btoa(xml) });
}

const inStorage = (): WorldOptions => ({
  auth: { secondaryStorage: mapStorage().storage, verification: { storeInDatabase: true } },
});

describe.each<[name: string, database: (typeof databases)[number], options: WorldOptions]>([
  ...databases.map((kind) => [kind, kind, {}] as [string, typeof kind, WorldOptions]),
  ["secondary storage", "sqlite", inStorage()],
])("single logout, with sessions in %s", (_, database, options) => {
  const saml = { enableSingleLogout: true, allowIdpInitiated: true };
  const world = shareSSOWorld({ sso: { saml }, ...options }, database);
  beforeAll(() => registerBoth(world));

  /** Ada of Acme or of Globex, who have the same address, in a browser that was given or a new one. */
  async function signInAt(place: "acme" | "globex", browser = world.at("platform")) {
    await sendTo(browser, place);
    expect(await world.whoIs(browser)).toMatchObject({ email: ADA, tenantId: world.ids[place] });
    return browser;
  }

  it("that the provider starts ends the session there, and no other", async () => {
    const ours = await signInAt("acme");
    const theirs = await signInAt("globex");

    await requestLogout(ours.fork(), "globex");
    expect(await world.whoIs(ours)).toMatchObject({ tenantId: world.ids.acme });
    expect(await world.whoIs(theirs)).toBe(null);

    // In a browser that is signed in at Globex, and stays so.
    await signInAt("globex", theirs);
    const answer = await requestLogout(theirs, "acme");
    expect(JSON.stringify(answer.data)).toContain("SAMLResponse");
    expect(await world.whoIs(ours)).toBe(null);
    expect(await world.whoIs(theirs)).toMatchObject({ tenantId: world.ids.globex });
  });

  it("is confirmed without ending sessions elsewhere", async () => {
    const theirs = await signInAt("globex");
    const operator = await world.operator();
    for (const [browser, tenantId] of [
      [theirs, world.ids.globex],
      [operator, null],
    ] as const) {
      expect((await confirmLogout(browser)).status).toBe(302);
      expect(await world.whoIs(browser)).toMatchObject({ tenantId });
    }
    const ours = await signInAt("acme");
    await confirmLogout(ours);
    expect(await world.whoIs(ours)).toBe(null);
  });
});

describe.each(databases)("a provider of everybody's, on %s", (database) => {
  // threat: to MySQL, a tenant's "EVERYBODYS" is the application's "everybodys".
  it("is no other provider's, whatever ids are like its own", async () => {
    const world = await createSSOWorld({
      database,
      sso: (provider) => ({
        defaultSSO: ["everybodys", "Corp"].map((id) => sharedOidc(provider, id)),
      }),
    });
    await world.register("acme", "acme-okta");
    await world.write("ssoProvider", { providerId: "EVERYBODYS" });
    expect((await world.ssoSignIn("platform", "everybodys")).who).toMatchObject({ tenantId: null });
    const admin = await world.as("admin", "globex");
    const reserved = await admin.post("/sso/register", world.oidc("corp"));
    expect([reserved.status, reserved.code]).toEqual([422, "VALUE_TAKEN"]);
  });

  it("has no NUL in its id, and neither has any other", async () => {
    const world = await createSSOWorld({ database });
    const providerId = "a\0b";
    const { status } = await world.at("platform").get("/sso/saml2/sp/metadata", {
      query: { providerId: "unknown" },
    });
    for (const [path, query] of [
      ["/sso/saml2/sp/metadata", { providerId }],
      ["/sso/callback/%00", { code: "c", state: "s" }],
    ] as const) {
      const answer = await world.at("platform").get(path, { query });
      expect(answer.status, path).toBeLessThan(500);
      if (path.endsWith("metadata")) expect(answer.status).toBe(status);
    }
    for (const by of [{ providerId }, { domain: "a\0b" }] as Record<string, string>[]) {
      expect((await world.start("acme", by)).status, JSON.stringify(by)).toBe(404);
    }
    const admin = await world.as("admin", "acme");
    const query = { providerId };
    expect((await admin.get("/sso/get-provider", { query })).status).toBe(404);
    expect((await admin.post("/sso/delete-provider", query)).status).toBe(404);
  });
});
