import { describe, expect, it } from "vitest";
import { createDatabase } from "../support/database";
import { createInstance } from "../support/instance";
import {
  CLIENT_SECRET,
  createSamlProvider,
  createSSOWorld,
  type SSOWorld,
  samlRegistration,
  shareSSOWorld,
  withSSO,
} from "./sso-world";

const idp = await createSamlProvider("stand-in");
const { privateKey } = idp.keys;
/** The middle of a key: JSON writes its line breaks in another way. */
const KEY_PART = privateKey.split("\n")[3] ?? "";
const PASS = "a pass phrase";

const everything = async (world: SSOWorld, tenantId: string) =>
  JSON.stringify(await world.rowsIn(tenantId, "ssoProvider"));

/** A tenant with an OIDC and a SAML provider, and what was answered about them. */
async function furnish(world: SSOWorld) {
  const tenant = await world.createTenant();
  const [okta, saml] = [`${tenant.slug}-okta`, `${tenant.slug}-saml`];
  const config = {
    privateKey,
    authnRequestsSigned: true,
    spMetadata: { privateKey, privateKeyPass: PASS },
  };
  const answers: unknown[] = [
    (await world.register(tenant.id, okta)).data,
    (await world.register(tenant.id, samlRegistration(saml, idp, config))).data,
  ];
  return { id: tenant.id, okta, saml, admin: await world.as("admin", tenant.id), answers };
}

describe("the secrets of a tenant's identity providers", () => {
  const world = shareSSOWorld();

  it("are encrypted at rest, and in no answer or log line", async () => {
    const { id, okta, saml, admin, answers } = await furnish(world);
    for (const providerId of [okta, saml]) {
      answers.push((await admin.get("/sso/get-provider", { query: { providerId } })).data);
      const body = { providerId, domain: "new.example" };
      answers.push((await admin.post("/sso/update-provider", body)).data);
    }
    answers.push((await admin.get("/sso/providers")).data);
    const stored = await everything(world, id);
    for (const secret of [CLIENT_SECRET, KEY_PART, PASS]) {
      for (const text of [stored, JSON.stringify(answers), world.logs.join("\n")]) {
        expect(text).not.toContain(secret);
      }
    }
    expect(JSON.stringify(answers)).not.toContain("encrypted");
    // What is no secret can still be read by whoever looks into the database.
    expect(stored).toContain(`client-of-${okta}`);
  });

  it("are good: people sign in, also after the rest of the config was changed", async () => {
    const { id, okta, saml, admin } = await furnish(world);
    expect((await world.ssoSignIn(id, okta)).who).toMatchObject({ tenantId: id });
    const body = { providerId: okta, oidcConfig: { scopes: ["openid"] } };
    expect((await admin.post("/sso/update-provider", body)).status).toBe(200);
    expect(await everything(world, id)).not.toContain(CLIENT_SECRET);
    expect((await world.ssoSignIn(id, okta)).who).toMatchObject({ tenantId: id });
    const signed = await world.start(id, saml);
    expect(new URL(signed.data.url).searchParams.get("Signature")).toBeTruthy();
  });

  it("are not sent to an address that somebody sets who does not know them", async () => {
    const { id, okta: providerId, admin } = await furnish(world);
    const before = await everything(world, id);
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
    expect(await everything(world, id)).toBe(before);
    const oidcConfig = { tokenEndpoint: elsewhere, clientSecret: "another secret" };
    expect((await update({ oidcConfig })).status).toBe(200);
  });

  it("from before the plugin are read as they are, and encrypted by a rotation", async () => {
    const { id, okta } = await furnish(world);
    const { oidcConfig, issuer } = world.oidc(okta);
    const plain = JSON.stringify({ ...oidcConfig, issuer, discoveryEndpoint: `${issuer}/none` });
    await world.database.query("update ssoProvider set oidcConfig = ? where providerId = ?", [
      plain,
      okta,
    ]);
    expect((await world.ssoSignIn(id, okta)).who).toMatchObject({ tenantId: id });
    expect(await everything(world, id)).toContain(CLIENT_SECRET);
    const touched = await world.api.rotateTenantOAuthSecrets();
    expect(touched).toMatchObject({ rotated: 1, unreadable: 0 });
    expect(await everything(world, id)).not.toContain(CLIENT_SECRET);
    expect((await world.ssoSignIn(id, okta)).who).toMatchObject({ tenantId: id });
  });
});

it("secrets go along with the auth secret, and without it are nobody's", async () => {
  const database = await createDatabase("sqlite");
  const first = { version: 1, value: "the first secret of this application, long enough" };
  const second = { version: 2, value: "the second secret of this application, long enough" };
  const before = await createSSOWorld({ database, auth: { secrets: [first] } });
  const { id, okta, saml } = await furnish(before);

  /** Another process over the same database. */
  async function resume(secrets: (typeof first)[]) {
    const options = withSSO(before.provider, { database, auth: { secrets } });
    const instance = await createInstance({
      ...options,
      plugins: options.plugins(() => async () => {}),
    });
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
  const failed = await late.start(okta);
  expect([failed.status, failed.code]).toEqual([500, "OAUTH_CREDENTIAL_DECRYPT_FAILED"]);
  expect(await late.rotate()).toMatchObject({ unreadable: 2 });
  // Whoever manages it can still see it, and delete it.
  const { browser, user } = await late.signUp(id, "late@acme.example");
  await before.setRole(user.id, "admin");
  const query = { providerId: okta };
  expect((await browser.get("/sso/get-provider", { query })).status).toBe(200);
  expect((await browser.post("/sso/delete-provider", query)).status).toBe(200);
  await database.close();
});
