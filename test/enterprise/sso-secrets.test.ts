import { describe, expect, it } from "vitest";
import { createDatabase } from "../support/database";
import { PRIVATE_KEY, samlConfig } from "./saml-provider";
import { CLIENT_SECRET, createSSOWorld, type SSOWorld, whoIs } from "./sso-world";

const everything = async ({ database }: SSOWorld) =>
  JSON.stringify(await database.query("select * from ssoProvider"));

async function register(world: SSOWorld) {
  const admin = world.acme.admin.browser;
  const oidc = await admin.post("/sso/register", world.oidc("acme-okta"));
  const saml = await admin.post("/sso/register", {
    providerId: "acme-saml",
    issuer: "https://idp.example",
    domain: "acme.example",
    samlConfig: samlConfig({
      privateKey: PRIVATE_KEY,
      authnRequestsSigned: true,
      spMetadata: { privateKey: PRIVATE_KEY, privateKeyPass: "a pass phrase" },
    }),
  });
  expect([oidc.status, saml.status], JSON.stringify(saml.data)).toEqual([200, 200]);
  return [oidc, saml];
}

/** The middle of a key: JSON writes its line breaks in another way. */
const KEY_PART = PRIVATE_KEY.split("\n")[3] ?? "";
const SECRETS = [CLIENT_SECRET, KEY_PART, "a pass phrase"];

describe("the secrets of a tenant's identity providers", () => {
  it("are encrypted at rest, and in no answer or log line", async () => {
    const world = await createSSOWorld();
    const answers: unknown[] = (await register(world)).map(({ data }) => data);
    const admin = world.acme.admin.browser;
    for (const providerId of ["acme-okta", "acme-saml"]) {
      answers.push((await admin.get("/sso/get-provider", { query: { providerId } })).data);
      const body = { providerId, domain: "new.example" };
      answers.push((await admin.post("/sso/update-provider", body)).data);
    }
    answers.push((await admin.get("/sso/providers")).data);
    const stored = await everything(world);
    for (const secret of SECRETS) {
      expect(stored).not.toContain(secret);
      expect(JSON.stringify(answers)).not.toContain(secret);
      expect(world.logs.join("\n")).not.toContain(secret);
    }
    expect(JSON.stringify(answers)).not.toContain("encrypted");
    // What is no secret can still be read by whoever looks into the database.
    expect(stored).toContain("client-of-acme-okta");
  });

  it("are good: people sign in, also after the rest of the config was changed", async () => {
    const world = await createSSOWorld();
    await register(world);
    world.provider.addPerson("ada");
    const by = { providerId: "acme-okta" };
    const { browser } = await world.signIn(world.acme.id, by, "ada");
    expect(await whoIs(browser)).toMatchObject({ tenantId: world.acme.id });
    const admin = world.acme.admin.browser;
    const body = { ...by, oidcConfig: { scopes: ["openid"] } };
    expect((await admin.post("/sso/update-provider", body)).status).toBe(200);
    expect(await everything(world)).not.toContain(CLIENT_SECRET);
    const again = await world.signIn(world.acme.id, by, "ada");
    expect(await whoIs(again.browser)).toMatchObject({ tenantId: world.acme.id });
    const signed = await world.start(world.acme.id, { providerId: "acme-saml" }, world.browser());
    expect(new URL(signed.data.url).searchParams.get("Signature")).toBeTruthy();
  });

  it("are not sent to an address that somebody sets who does not know them", async () => {
    const world = await createSSOWorld();
    await register(world);
    const admin = world.acme.admin.browser;
    const providerId = "acme-okta";
    const before = await everything(world);
    for (const body of [
      { oidcConfig: { tokenEndpoint: `${world.provider.issuer}/elsewhere` } },
      { oidcConfig: { discoveryEndpoint: `${world.provider.issuer}/elsewhere` } },
      { oidcConfig: { tokenEndpointAuthentication: "client_secret_basic" } },
      { issuer: "https://elsewhere.example", oidcConfig: { scopes: ["openid"] } },
    ]) {
      const { status } = await admin.post("/sso/update-provider", { providerId, ...body });
      expect(status).toBe(400);
    }
    expect(await everything(world)).toBe(before);
    const tokenEndpoint = `${world.provider.issuer}/elsewhere`;
    const oidcConfig = { tokenEndpoint, clientSecret: "another secret" };
    const { status } = await admin.post("/sso/update-provider", { providerId, oidcConfig });
    expect(status).toBe(200);
  });

  it("from before the plugin are read as they are, and encrypted by a rotation", async () => {
    const world = await createSSOWorld();
    await register(world);
    const { oidcConfig, issuer } = world.oidc("acme-okta");
    const plain = JSON.stringify({ ...oidcConfig, issuer, discoveryEndpoint: `${issuer}/none` });
    await world.database.query("update ssoProvider set oidcConfig = ? where providerId = ?", [
      plain,
      "acme-okta",
    ]);
    world.provider.addPerson("ada");
    const by = { providerId: "acme-okta" };
    const { browser } = await world.signIn(world.acme.id, by, "ada");
    expect(await whoIs(browser)).toMatchObject({ tenantId: world.acme.id });
    expect(await everything(world)).toContain(CLIENT_SECRET);
    const touched = await world.api.rotateTenantOAuthSecrets();
    expect(touched).toEqual({ rotated: 1, upToDate: 1, unreadable: 0 });
    expect(await everything(world)).not.toContain(CLIENT_SECRET);
    const again = await world.signIn(world.acme.id, by, "ada");
    expect(await whoIs(again.browser)).toMatchObject({ tenantId: world.acme.id });
  });

  it("go along with the auth secret, and without it are nobody's", async () => {
    const database = await createDatabase("sqlite");
    const first = { version: 1, value: "the first secret of this application, long enough" };
    const second = { version: 2, value: "the second secret of this application, long enough" };
    const before = await createSSOWorld({ database, auth: { secrets: [first] } });
    await register(before);
    const { id } = before.acme;
    const resume = (secrets: (typeof first)[]) =>
      createSSOWorld({ database, auth: { secrets }, existing: before });
    const after = await resume([second, first]);
    expect(await after.api.rotateTenantOAuthSecrets()).toEqual({
      rotated: 2,
      upToDate: 0,
      unreadable: 0,
    });
    expect(await after.api.rotateTenantOAuthSecrets()).toMatchObject({ rotated: 0, upToDate: 2 });
    const signed = await after.start(id, { providerId: "acme-saml" }, after.browser());
    expect(signed.status).toBe(200);

    const late = await resume([first]);
    const failed = await late.start(id, { providerId: "acme-okta" }, late.browser());
    expect([failed.status, failed.code]).toEqual([500, "OAUTH_CREDENTIAL_DECRYPT_FAILED"]);
    expect(await late.api.rotateTenantOAuthSecrets()).toMatchObject({ unreadable: 2 });
    // Whoever manages it can still see it, and delete it.
    const admin = await late.signUp(id, "late@acme.example");
    await late.makeAdmin(admin.user.id);
    const query = { providerId: "acme-okta" };
    expect((await admin.browser.get("/sso/get-provider", { query })).status).toBe(200);
    expect((await admin.browser.post("/sso/delete-provider", query)).status).toBe(200);
    await database.close();
  });
});
