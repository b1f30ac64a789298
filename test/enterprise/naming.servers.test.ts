import { beforeAll, describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { databases } from "../support/database";
import { mapStorage } from "../support/stores";
import type { WorldOptions } from "../support/world";
import {
  ADA,
  acsOf,
  createSamlProvider,
  filledWith,
  parties,
  post,
  requestIn,
  respond,
  type SamlProvider,
  type SamlResponse,
  type SSOWorld,
  samlRegistration,
  shareSSOWorld,
  sloOf,
} from "./world";

/*
 * Requests that come from SAML providers name no tenant, and may come in a browser that is signed in
 * elsewhere: what the provider is registered for names it.
 */

const idps = { acme: await createSamlProvider("acme"), globex: await createSamlProvider("globex") };
const ACS = acsOf("acme-saml");

async function registerBoth({ register }: SSOWorld) {
  for (const place of ["acme", "globex"] as const) {
    await register(place, samlRegistration(`${place}-saml`, idps[place]));
  }
}

/** Somebody has started at Acme, and the provider is about to answer. */
async function underWay(world: SSOWorld, more: Partial<SamlResponse> = {}) {
  const providerId = "acme-saml";
  const browser = world.at("platform");
  const started = await world.start("acme", providerId, browser);
  expect(started.status, JSON.stringify(started.data)).toBe(200);
  const { id, relayState } = requestIn(started.data.url);
  const answer = { providerId, inResponseTo: id, ...more };
  const form = { SAMLResponse: await respond(idps.acme, answer), RelayState: relayState };
  return { browser, form };
}

/** The provider sends somebody who has not asked for it. */
async function sendTo(
  browser: Browser,
  place: keyof typeof idps,
  more: Partial<SamlResponse> = {},
) {
  const providerId = `${place}-saml`;
  const SAMLResponse = await respond(idps[place], { providerId, ...more });
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

  it("signs people in who started there; the response names no tenant", async () => {
    const { browser, form } = await underWay(world);
    expect((await post(browser, ACS, form)).location).toBe("/welcome");
    expect(await world.whoIs(browser)).toMatchObject({ email: ADA, tenantId: world.ids.acme });
  });

  it("publishes its metadata without a tenant being named", async () => {
    const query = { providerId: "acme-saml" };
    const { data, status } = await world.at("platform").get("/sso/saml2/sp/metadata", { query });
    expect([status, JSON.stringify(data)]).toEqual([200, expect.stringContaining(ACS)]);
    const elsewhere = await world.at("globex").get("/sso/saml2/sp/metadata", { query });
    expect(elsewhere.status).toBe(404);
  });

  it("refuses a response that is signed by another tenant's provider", async () => {
    const { browser, form } = await underWay(world, { signedBy: idps.globex });
    await expectRefused(world, browser, async () => {
      expect((await post(browser, ACS, form)).location).toMatch(/error=/);
    });
  });

  it("refuses one at another tenant's address, and where another tenant is named", async () => {
    for (const [acs, where] of [
      [acsOf("globex-saml"), "platform"],
      [acsOf("globex-saml"), "acme"],
      [ACS, "globex"],
    ] as const) {
      const { browser, form } = await underWay(world);
      await expectRefused(world, browser, () => post(browser, acs, form, world.naming(where)));
    }
  });

  it("refuses one that answers a request of another tenant, or has its relay state", async () => {
    const started = await world.start("globex", "globex-saml");
    const { id, relayState } = requestIn(started.data.url);
    const answering = await underWay(world, { inResponseTo: id });
    await expectRefused(world, answering.browser, () =>
      post(answering.browser, ACS, answering.form),
    );
    const { browser, form } = await underWay(world);
    await expectRefused(world, browser, () =>
      post(browser, ACS, { ...form, RelayState: relayState }),
    );
  });
});

describe.each(databases)("SAML that the provider starts, where allowed, on %s", (database) => {
  const sso = { trustEmailVerified: true, saml: { allowIdpInitiated: true } };
  const world = shareSSOWorld({ sso }, database);
  beforeAll(() => registerBoth(world));

  it("signs people in, wherever their browser is signed in", async () => {
    const browser = world.at("platform", await world.as("jane", "globex"));
    expect((await sendTo(browser, "acme")).location).toBe("/welcome");
    expect(await world.whoIs(browser)).toMatchObject({ email: ADA, tenantId: world.ids.acme });
  });

  it("takeover: makes nobody the administrator of another tenant or of the platform", async () => {
    for (const place of ["globex", "platform"] as const) {
      const email = `boss-${place}@example.com`;
      const victim = await world.join(place, "admin", email);
      const stranger = world.at("platform");
      await sendTo(stranger, "acme", { email, emailVerified: true });
      // Somebody new at Acme, who has nothing but the address in common with the victim.
      const somebody = await world.whoIs(stranger);
      expect(somebody).toMatchObject({ email, tenantId: world.ids.acme });
      expect(somebody?.id).not.toBe(victim.id);
    }
  });

  it("takes an assertion for what it is, whatever id another tenant's provider gives it", async () => {
    for (const place of ["globex", "acme"] as const) {
      const browser = world.at("platform");
      const answer = await sendTo(browser, place, { assertionId: "_the-same-at-both" });
      expect(answer.location).toBe("/welcome");
      expect(await world.whoIs(browser)).toMatchObject({ tenantId: world.ids[place] });
    }
  });
});

const IDS = databases.flatMap((database) =>
  (["text", "serial", "uuid"] as const).map((ids) => [database, ids] as const),
);

describe.each(IDS)("a SAML response the second time, on %s with %s ids", (database, ids) => {
  const world = shareSSOWorld(
    {
      sso: { saml: { allowIdpInitiated: true } },
      ...(ids !== "text" && { auth: { advanced: { database: { generateId: ids } } } }),
    },
    database,
  );

  it("is refused, also when it comes several times at once", async () => {
    await registerBoth(world);
    const SAMLResponse = await respond(idps.acme, { providerId: "acme-saml" });
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => post(world.at("platform"), ACS, { SAMLResponse })),
    );
    expect(answers.filter(({ location }) => location === "/welcome")).toHaveLength(1);
    const browser = world.at("platform");
    await expectRefused(world, browser, async () => {
      expect((await post(browser, ACS, { SAMLResponse })).location).toContain("replay_detected");
    });
  });
});

function requestLogout(browser: Browser, providerId: string, provider: SamlProvider) {
  const { idp, sp } = parties(provider, providerId, provider.keys);
  const { context } = idp.createLogoutRequest(sp, "post", { logoutNameID: ADA } as never, "");
  return post(browser, sloOf(providerId), { SAMLRequest: context });
}

function confirmLogout(browser: Browser) {
  const { idp, sp } = parties(idps.acme, "acme-saml", idps.acme.keys);
  const fill = filledWith({
    ID: "_confirmed",
    Destination: sloOf("acme-saml"),
    Issuer: idps.acme.entityID,
    IssueInstant: new Date().toISOString(),
    StatusCode: "urn:oasis:names:tc:SAML:2.0:status:Success",
    InResponseTo: "",
  });
  const { context } = idp.createLogoutResponse(sp, null as never, "post", "", fill as never);
  return post(browser, sloOf("acme-saml"), { SAMLResponse: context });
}

const inStorage = (): WorldOptions => ({
  auth: { secondaryStorage: mapStorage().storage, verification: { storeInDatabase: true } },
});

describe.each<[name: string, database: (typeof databases)[number], options: WorldOptions]>([
  ...databases.map((kind) => [kind, kind, {}] as [string, typeof kind, WorldOptions]),
  ["secondary storage", "sqlite", inStorage()],
])("single logout, with sessions in %s", (_, database, options) => {
  const saml = {
    enableSingleLogout: true,
    wantLogoutRequestSigned: true,
    allowIdpInitiated: true,
  };
  const world = shareSSOWorld({ sso: { saml }, ...options }, database);
  beforeAll(() => registerBoth(world));

  /** Ada of Acme or of Globex, who have the same address, in a browser that was given or a new one. */
  async function signInAt(place: keyof typeof idps, browser = world.at("platform")) {
    await sendTo(browser, place);
    expect(await world.whoIs(browser)).toMatchObject({ email: ADA, tenantId: world.ids[place] });
    return browser;
  }

  it("that the provider starts ends the session there, and no other", async () => {
    const ours = await signInAt("acme");
    const theirs = await signInAt("globex");

    // Signed by somebody else's provider, or about somebody else's people.
    const forged = await requestLogout(world.at("platform"), "acme-saml", idps.globex);
    expect(forged.status).toBe(400);
    await requestLogout(ours.fork(), "globex-saml", idps.globex);
    expect(await world.whoIs(ours)).toMatchObject({ tenantId: world.ids.acme });
    expect(await world.whoIs(theirs)).toBe(null);

    // In a browser that is signed in at Globex, and stays so.
    await signInAt("globex", theirs);
    const answer = await requestLogout(theirs, "acme-saml", idps.acme);
    expect(JSON.stringify(answer.data)).toContain("SAMLResponse");
    expect(await world.whoIs(ours)).toBe(null);
    expect(await world.whoIs(theirs)).toMatchObject({ tenantId: world.ids.globex });
  });

  it("is confirmed without signing anybody out elsewhere", async () => {
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
