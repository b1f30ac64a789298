import { generateKeyPairSync } from "node:crypto";
import { genericOAuth, magicLink } from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { tenantInvitations } from "../../../src/features/invitations/index";
import { runInTenant } from "../../../src/index";
import { createSamlProvider } from "../../../src/testing/makers/saml";
import { createDatabase, databases } from "../../support/database";
import { createInstance, PASSWORD } from "../../support/instance";
import { expectRefused, outcome } from "../../support/world";
import {
  ADA,
  CLIENT_SECRET,
  createSSOWorld,
  type SSOWorld,
  samlRegistration,
  shareSSOWorld,
  withSSO,
} from "./world";

interface Methods {
  methods: string[];
  emailAndPassword: { enabled: boolean };
  sso: { id: string }[];
}

const methodsOf = async (world: SSOWorld, tenantId: string) =>
  (await world.at("platform").get<Methods>("/tenant/sign-in-methods", { query: { tenantId } }))
    .data;

const storedIn = async (world: SSOWorld, tenantId: string) =>
  JSON.stringify(await world.rowsIn(tenantId, "ssoProvider"));

describe.each(databases)("identity providers in the database, on %s", (database) => {
  const tenantRoles = { admin: ["sso:*" as const, "policy:update" as const] };
  const world = shareSSOWorld(
    {
      plugins: (send) => [magicLink({ sendMagicLink: send("link") })],
      tenant: { scopedModels: ["ssoProvider"], tenantRoles },
    },
    database,
  );

  it.each([
    "other.example/ acme.example",
    "https://acme.example",
    "acme.example other.example",
    "acme.example, *.acme.example",
    "münchen.example",
    "acme",
    " , ",
  ])("are for plain domain names, not for %j", async (domain) => {
    const { providerId, admin } = await world.newTenant({ domain: "Acme.example, other.example" });
    await world.unchanged(async () => {
      const update = await admin.post("/sso/update-provider", { providerId, domain });
      expectRefused(update, 400, "INVALID_DOMAIN");
      const body = world.oidc(`${providerId}-2`, { domain });
      expectRefused(await admin.post("/sso/register", body), 400, "INVALID_DOMAIN");
    });
  });

  it("have ids that are unique across all tenants, also when two ask at once", async () => {
    await world.register("acme", "okta");
    for (const place of ["globex", "platform"]) {
      const admin = await world.as("admin", place);
      const taken = await admin.post("/sso/register", world.oidc("okta"));
      expectRefused(taken, 422, "VALUE_TAKEN");
      // It says what to do.
      expect(taken.data.message).toContain('as in "acme-okta"');
    }
    const admins = [await world.as("admin", "acme"), await world.as("admin", "globex")];
    const body = world.oidc("raced");
    const answers = await Promise.all(admins.map((admin) => admin.post("/sso/register", body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422]);
    const { quote } = world.database;
    expect(await world.rows("ssoProvider", `${quote("providerId")} = 'raced'`)).toBe(1);
  });

  // threat: to MySQL all of these are ids that somebody else has, or "credential".
  it.each([
    "CREDENTIAL",
    "Okta",
    "ökta",
    "okta ",
    "ok ta",
    "okta/",
    "okta.evil",
    "-okta",
    "ｏkta",
    "",
  ])("have plain ids, not %j", async (providerId) => {
    const admin = await world.as("admin", "acme");
    await world.unchanged(async () => {
      const refused = await admin.post("/sso/register", world.oidc(providerId));
      expectRefused(refused, 400, "INVALID_PROVIDER_ID");
    });
  });

  it("from before with other ids stay, and are found by that very id alone", async () => {
    const { id, slug, providerId, admin } = await world.newTenant();
    const old = `${slug}-OKTA`;
    await world.write("ssoProvider", { providerId: old }, { providerId });
    const { who } = await world.ssoSignIn(id, old);
    expect(who).toMatchObject({ tenantId: id });
    // Once more, with the account that is there now.
    expect((await world.ssoSignIn(id, old)).who).toEqual(who);
    const query = { providerId: old.toLowerCase() };
    expect((await world.start(id, query)).status).toBe(404);
    expect((await admin.get("/sso/get-provider", { query })).status).toBe(404);
    expect((await admin.post("/sso/delete-provider", query)).status).toBe(404);
    const update = { providerId: old, domain: "new.example" };
    expect((await admin.post("/sso/update-provider", update)).status).toBe(200);
    expect((await admin.post("/sso/delete-provider", { providerId: old })).status).toBe(200);
  });

  it("takeover: from before with an id like another's sign no user in by that one's accounts", async () => {
    const { id, providerId, admin } = await world.newTenant();
    await world.write("ssoProvider", { providerId: "CREDENTIAL" }, { providerId });
    world.provider.addPerson("mallory", { sub: admin.id, email: "mallory@acme.example" });
    const { who } = await world.ssoSignIn(id, "CREDENTIAL", "mallory");
    expect(who).toMatchObject({ email: "mallory@acme.example", tenantId: id });
    await world.write("ssoProvider", { providerId }, { providerId: "CREDENTIAL" });
  });

  it("have secrets from before the plugin, which are read as they are and encrypted by a rotation", async () => {
    const { id, providerId, admin } = await world.newTenant();
    expect(await storedIn(world, id)).not.toContain(CLIENT_SECRET);
    const { oidcConfig, issuer } = world.oidc(providerId);
    const config = { ...oidcConfig, issuer, discoveryEndpoint: `${issuer}/none` };
    await world.write("ssoProvider", { oidcConfig: JSON.stringify(config) }, { providerId });
    expect((await world.ssoSignIn(id, providerId)).who).toMatchObject({ tenantId: id });
    for (const rotated of [1, 0]) {
      const touched = await world.api.rotateTenantOAuthSecrets();
      expect(touched).toMatchObject({ rotated, unreadable: 0 });
    }
    expect(await storedIn(world, id)).not.toContain(CLIENT_SECRET);
    expect((await world.ssoSignIn(id, providerId)).who).toMatchObject({ tenantId: id });
    const update = { providerId, domain: "new.example" };
    const changed = await admin.post("/sso/update-provider", update);
    expect(changed.data).toMatchObject({ domain: "new.example" });
    expect((await admin.post("/sso/delete-provider", { providerId })).status).toBe(200);
    expect(await world.rowsIn(id, "ssoProvider")).toEqual([]);
  });

  it("are told to sign-in pages of their tenant, if the policy allows it", async () => {
    const { id, providerId } = await world.newTenant();
    const told = async (tenantId: string) => {
      const { sso, methods } = await methodsOf(world, tenantId);
      return [sso, methods.sort()];
    };
    const all = ["magic-link", "password", "sso"];
    expect(await told(id)).toEqual([[{ id: providerId }], all]);
    // Without a provider, nobody can sign in that way.
    expect(await told((await world.createTenant()).id)).toEqual([[], ["magic-link", "password"]]);
    await world.change(id, { policy: { methods: ["password"] } });
    expect(await told(id)).toEqual([[], ["password"]]);
    const refused = await world.start(id, providerId);
    expect(outcome(refused)).toEqual([403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
  });

  it('are the only sign-in where the policy says methods: ["sso"]', async () => {
    const { id, providerId } = await world.newTenant();
    const { email } = await world.signUp(id);
    await world.at(id).post("/sign-in/magic-link", { email });
    const { url } = world.lastMail("link");
    await world.change(id, { policy: { methods: ["sso"] } });
    expect((await methodsOf(world, id)).emailAndPassword.enabled).toBe(false);
    const refused = await world.at(id).post("/sign-in/email", { email, password: PASSWORD });
    expectRefused(refused, 403, "SIGN_IN_METHOD_NOT_ALLOWED");
    const late = world.at("platform");
    await late.get(url);
    expect(await world.whoIs(late)).toBe(null);
    const { who } = await world.ssoSignIn(id, providerId);
    expect(who).toMatchObject({ tenantId: id });
  });

  it("prove no address where domains are not verified", async () => {
    const { id, providerId } = await world.newTenant();
    await world.change(id, { policy: { methods: ["sso"], emailDomains: ["acme.example"] } });
    const { location, who } = await world.ssoSignIn(id, providerId);
    expect([location, who]).toEqual([expect.stringContaining("error=EMAIL_NOT_VERIFIED"), null]);
  });

  it("lock out an administrator who has an account of a provider that is gone", async () => {
    const { id: tenantId, providerId, admin } = await world.newTenant();
    const body = { tenantId, policy: { methods: ["sso"] } };
    const { createAccount } = world.context.internalAdapter;
    const account = (provider: string) =>
      runInTenant(tenantId, () =>
        createAccount({ accountId: "1", providerId: provider, userId: admin.id }),
      );
    await account("github");
    const refused = await admin.post("/tenant/update", body);
    expect(outcome(refused)).toEqual([409, "POLICY_LOCKS_OUT"]);
    await account(providerId);
    expect((await admin.post("/tenant/update", body)).status).toBe(200);
  });
});

describe.each(databases)("the domain of a provider has to be verified, on %s", (database) => {
  const invitations = tenantInvitations({ sendInvitationEmail: async () => {} });
  const sso = { domainVerification: { enabled: true } } as const;
  const world = shareSSOWorld({ sso, plugins: [invitations] }, database);

  it.each([
    ["acme.example", true],
    ["other.example, Acme.example", true],
    ["other.example", false],
    // Stored before it was refused: better-auth verifies other.example alone.
    ["other.example/ acme.example", false],
    ["https://other.example/x\tacme.example", false],
  ])("and proves an address if it is the same one: %s", async (domain, isProven) => {
    const verified = async () => {
      const { id, providerId } = await world.newTenant();
      expect((await methodsOf(world, id)).sso).toEqual([]);
      await world.write("ssoProvider", { domain, domainVerified: true }, { providerId });
      expect((await methodsOf(world, id)).sso).toEqual([{ id: providerId }]);
      return { id, signIn: () => world.ssoSignIn(id, providerId) };
    };
    const closed = await verified();
    await world.change(closed.id, { policy: { methods: ["sso"], emailDomains: ["acme.example"] } });
    const { location, who } = await closed.signIn();
    expect(location).toContain(isProven ? "/welcome" : "error=EMAIL_NOT_VERIFIED");
    expect(Boolean(who)).toBe(isProven);
    // An invitation is for whoever has proven the address.
    const invited = await verified();
    await world.change(invited.id, { policy: { signUp: "invited" } });
    expect((await invited.signIn()).location).toContain("error=INVITATION_REQUIRED");
    const body = { tenantId: invited.id, email: ADA };
    await (await world.operator()).post("/tenant/invitation/create", body);
    expect(Boolean((await invited.signIn()).who)).toBe(isProven);
  });

  // threat: the record of "okta.evil" for co.uk is in the zone of evil.co.uk.
  it.each([".", "。"])("and never is by a record of an id with a dot: %s", async (dot) => {
    const { id, slug, providerId, admin } = await world.newTenant();
    const stored = { providerId: `${slug}${dot}evil` };
    await world.write("ssoProvider", stored, { providerId });
    for (const path of ["/sso/request-domain-verification", "/sso/verify-domain"]) {
      expectRefused(await admin.post(path, stored), 400, "INVALID_PROVIDER_ID");
    }
    // Verified before that was refused.
    await world.write("ssoProvider", { domainVerified: true }, stored);
    expect((await methodsOf(world, id)).sso).toEqual([]);
    expect((await world.start(id, stored)).status).toBe(401);
  });
});

const idp = await createSamlProvider("https://acme.idp.example");
const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});
/** The middle of a key: JSON writes its line breaks in another way. */
const KEY_PART = privateKey.split("\n")[3] ?? "";
const PASS = "a pass phrase";

/** A tenant with an OIDC and a SAML provider, and what was answered about them. */
async function furnish(world: SSOWorld) {
  const { id, slug } = await world.createTenant();
  const [okta, saml] = [`${slug}-okta`, `${slug}-saml`];
  const spMetadata = { privateKey, privateKeyPass: PASS };
  const config = { privateKey, authnRequestsSigned: true, spMetadata };
  const answers: unknown[] = [
    (await world.register(id, okta)).data,
    (await world.register(id, samlRegistration(saml, idp, config))).data,
  ];
  return { id, okta, saml, admin: await world.as("admin", id), answers };
}

describe("the secrets of a tenant's identity providers", () => {
  const world = shareSSOWorld();

  it("are encrypted at rest, in no answer or log line, and good after a change", async () => {
    const { id, okta, saml, admin, answers } = await furnish(world);
    for (const providerId of [okta, saml]) {
      answers.push((await admin.get("/sso/get-provider", { query: { providerId } })).data);
      const body = { providerId, domain: "new.example" };
      answers.push((await admin.post("/sso/update-provider", body)).data);
    }
    const scopes = { providerId: okta, oidcConfig: { scopes: ["openid"] } };
    answers.push((await admin.post("/sso/update-provider", scopes)).data);
    answers.push((await admin.get("/sso/providers")).data);
    const stored = await storedIn(world, id);
    for (const secret of [CLIENT_SECRET, KEY_PART, PASS]) {
      for (const text of [stored, JSON.stringify(answers), world.logs.join("\n")]) {
        expect(text).not.toContain(secret);
      }
    }
    expect(JSON.stringify(answers)).not.toContain("encrypted");
    // What is no secret can still be read by whoever looks into the database.
    expect(stored).toContain(`client-of-${okta}`);
    expect((await world.ssoSignIn(id, okta)).who).toMatchObject({ tenantId: id });
    const signed = await world.start(id, saml);
    expect(new URL(signed.data.url).searchParams.get("Signature")).toBeTruthy();
  });

  it("are not sent to an address set by a caller who does not know them", async () => {
    const { id, okta: providerId, admin } = await furnish(world);
    const before = await storedIn(world, id);
    const elsewhere = `${world.provider.issuer}/elsewhere`;
    const update = (body: object) => admin.post("/sso/update-provider", { providerId, ...body });
    for (const body of [
      { oidcConfig: { tokenEndpoint: elsewhere } },
      { oidcConfig: { discoveryEndpoint: elsewhere } },
      { oidcConfig: { tokenEndpointAuthentication: "client_secret_basic" } },
      { issuer: "https://elsewhere.example", oidcConfig: { scopes: ["openid"] } },
    ]) {
      expect((await update(body)).status).toBe(400);
    }
    expect(await storedIn(world, id)).toBe(before);
    const oidcConfig = { tokenEndpoint: elsewhere, clientSecret: "another secret" };
    expect((await update({ oidcConfig })).status).toBe(200);
  });
});

it("secrets depend on the auth secret, and cannot be read without it", async () => {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  const first = { version: 1, value: "the first secret of this application, long enough" };
  const second = { version: 2, value: "the second secret of this application, long enough" };
  const before = await createSSOWorld({ database, auth: { secrets: [first] } });
  const { id, okta, saml } = await furnish(before);

  /** Another process over the same database. */
  async function resume(secrets: (typeof first)[]) {
    const options = withSSO(before.provider, { database, auth: { secrets } });
    const plugins = options.plugins(() => async () => {});
    const instance = await createInstance({ ...options, plugins });
    const browser = instance.browser(before.naming(id));
    const start = (providerId: string) =>
      browser.post("/sign-in/sso", { callbackURL: "/", providerId });
    return { ...instance, rotate: () => instance.api.rotateTenantOAuthSecrets(), start };
  }

  const after = await resume([second, first]);
  expect(await after.rotate()).toEqual({ rotated: 2, upToDate: 0, unreadable: 0 });
  expect(await after.rotate()).toEqual({ rotated: 0, upToDate: 2, unreadable: 0 });
  expect((await after.start(saml)).status).toBe(200);

  const late = await resume([first]);
  expectRefused(await late.start(okta), 500, "OAUTH_CREDENTIAL_DECRYPT_FAILED");
  expect(await late.rotate()).toMatchObject({ unreadable: 2 });
  // Whoever manages it can still see it, and delete it.
  const { browser, user } = await late.signUp(id, "late@acme.example");
  await before.setRole(user.id, "admin");
  const query = { providerId: okta };
  expect((await browser.get("/sso/get-provider", { query })).status).toBe(200);
  expect((await browser.post("/sso/delete-provider", query)).status).toBe(200);
});

it("have no id of a provider of the application, also if that one was away at startup", async () => {
  const client = { clientId: "corp-client", clientSecret: "corp-secret" };
  const config = [{ providerId: "corp", discoveryUrl: "http://127.0.0.1:1/none", ...client }];
  const world = await createSSOWorld({ plugins: [genericOAuth({ config })] });
  const admin = await world.as("admin", "acme");
  expectRefused(await admin.post("/sso/register", world.oidc("corp")), 422, "VALUE_TAKEN");
});
