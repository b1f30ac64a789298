import { symmetricDecrypt } from "better-auth/crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Answer } from "../support/browser";
import { createDatabase } from "../support/database";
import { createInstance, type Instance, type InstanceOptions } from "../support/instance";

const FIRST_SECRET = "the first secret of this application, long enough";
const SECOND_SECRET = "another secret of this application, which is newer";
const GLOBAL = { google: { clientId: "global-client", clientSecret: "global-secret" } };
const GOOGLE = { providerId: "google", clientId: "tenant-client", clientSecret: "tenant-secret" };
const GITHUB = { ...GOOGLE, providerId: "github", clientId: "tenant-github" };

/** A database that several instances share, one after the other. */
async function sharedDatabase() {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  return (auth: InstanceOptions["auth"]) =>
    createInstance({ database, auth: { secret: undefined, socialProviders: GLOBAL, ...auth } });
}

async function stored(instance: Instance, providerId = "google") {
  const [row] = await instance.database.query(
    "select * from tenantOauthConfig where providerId = ?",
    [providerId],
  );
  return { clientId: String(row?.clientId), clientSecret: String(row?.clientSecret) };
}

const register = (instance: Instance, tenantId: string, config: typeof GOOGLE = GOOGLE) =>
  instance.api.registerTenantOAuthConfig({ body: { tenantId, ...config } });

const startSignIn = (instance: Instance, tenantId: string, provider = "google") =>
  instance.browser().post("/tenant/sign-in/social", { tenantId, provider, callbackURL: "/" });

const clientIdOf = (start: Answer) => new URL(String(start.data.url)).searchParams.get("client_id");

describe("at rest", () => {
  it("there is cipher text only, which the auth secret decrypts", async () => {
    const instance = await createInstance({ auth: { secret: FIRST_SECRET } });
    const tenant = await instance.createTenant();
    await register(instance, tenant.id);
    const row = await stored(instance);
    expect(row.clientId).not.toContain("tenant-client");
    expect(row.clientSecret).not.toContain("tenant-secret");
    expect(await symmetricDecrypt({ key: FIRST_SECRET, data: row.clientId })).toBe("tenant-client");
    expect(await symmetricDecrypt({ key: FIRST_SECRET, data: row.clientSecret })).toBe(
      "tenant-secret",
    );
    await expect(
      symmetricDecrypt({ key: SECOND_SECRET, data: row.clientSecret }),
    ).rejects.toThrow();
    // Nowhere else either, whatever the other columns are.
    const [whole] = await instance.database.query("select * from tenantOauthConfig");
    expect(JSON.stringify(whole)).not.toMatch(/tenant-client|tenant-secret/);
  });

  it("the same credentials give other cipher text each time", async () => {
    const instance = await createInstance();
    const tenant = await instance.createTenant();
    await register(instance, tenant.id, { ...GOOGLE, clientSecret: GOOGLE.clientId });
    const first = await stored(instance);
    await register(instance, tenant.id);
    const second = await stored(instance);
    expect(first.clientId).not.toBe(first.clientSecret);
    expect(second.clientId).not.toBe(first.clientId);
  });
});

describe("with a rotated secret", () => {
  const rotated = {
    secrets: [
      { version: 2, value: SECOND_SECRET },
      { version: 1, value: FIRST_SECRET },
    ],
  };

  it.each<[string, InstanceOptions["auth"], InstanceOptions["auth"]]>([
    ["a list of one", { secrets: [{ version: 1, value: FIRST_SECRET }] }, rotated],
    ["a single secret", { secret: FIRST_SECRET }, { ...rotated, secret: FIRST_SECRET }],
  ])("old configs stay good after %s became a longer list", async (_, old, current) => {
    const open = await sharedDatabase();
    const before = await open(old);
    const tenant = await before.createTenant();
    await register(before, tenant.id);
    const after = await open(current);
    const [config] = await after.api.listTenantOAuthConfigs({ query: { tenantId: tenant.id } });
    expect(config?.clientId).toBe("tenant-client");
    expect(clientIdOf(await startSignIn(after, tenant.id))).toBe("tenant-client");
  });

  it("new registrations use the newest secret", async () => {
    const open = await sharedDatabase();
    const before = await open({ secrets: [{ version: 1, value: FIRST_SECRET }] });
    const tenant = await before.createTenant();
    await register(before, tenant.id);
    expect((await stored(before)).clientSecret).toMatch(/^\$ba\$1\$/);
    const after = await open(rotated);
    await register(after, tenant.id);
    const row = await stored(after);
    expect(row.clientId).toMatch(/^\$ba\$2\$/);
    expect(row.clientSecret).toMatch(/^\$ba\$2\$/);
    const key = { keys: new Map([[2, SECOND_SECRET]]), currentVersion: 2 };
    expect(await symmetricDecrypt({ key, data: row.clientSecret })).toBe("tenant-secret");
  });
});

describe("threat: fail-open on bad config: credentials that cannot be decrypted", () => {
  const FAILED = [500, "OAUTH_CREDENTIAL_DECRYPT_FAILED"];

  /** A tenant whose config was encrypted with a secret that is lost now. */
  async function lostSecret(auth?: InstanceOptions["auth"]) {
    const open = await sharedDatabase();
    const before = await open({ secret: FIRST_SECRET });
    const { id: tenantId } = await before.createTenant();
    await register(before, tenantId);
    const instance = await open({ secret: SECOND_SECRET, ...auth });
    return { instance, tenantId, operator: (await instance.operator()).browser };
  }

  it("are listed as what they are: not readable", async () => {
    const { operator, instance, tenantId } = await lostSecret();
    await register(instance, tenantId, GITHUB);
    const answer = await operator.get("/tenant/oauth-config/list", { query: { tenantId } });
    expect(answer.status).toBe(200);
    expect(answer.data).toMatchObject([
      { providerId: "google", readable: false, clientId: null, options: null, enabled: true },
      { providerId: "github", readable: true, clientId: "tenant-github" },
    ]);
  });

  it("stop the sign-in, and the global credentials do not step in", async () => {
    const { instance, tenantId } = await lostSecret();
    const answer = await startSignIn(instance, tenantId);
    expect([answer.status, answer.code]).toEqual(FAILED);
    expect(answer.location).toBeNull();
    expect(JSON.stringify(answer.data)).not.toContain("global");
    expect(await instance.rows("verification")).toBe(0);
  });

  it("stop the sign-in through better-auth's own endpoint as well", async () => {
    const { instance, tenantId } = await lostSecret();
    const answer = await instance
      .browser({ "x-tenant-id": tenantId })
      .post("/sign-in/social", { provider: "google" });
    expect([answer.status, answer.code]).toEqual(FAILED);
    expect(await instance.rows("verification")).toBe(0);
  });

  it.each(["clientId", "clientSecret"])(
    "stop the sign-in when only the %s is broken",
    async (column) => {
      const instance = await createInstance({ auth: { socialProviders: GLOBAL } });
      const tenant = await instance.createTenant();
      await register(instance, tenant.id);
      for (const broken of ["", "not cipher text", "00ff", "$ba$9$00ff"]) {
        await instance.database.query(`update tenantOauthConfig set ${column} = ?`, [broken]);
        const answer = await startSignIn(instance, tenant.id);
        expect([answer.status, answer.code]).toEqual(FAILED);
      }
      expect(await instance.rows("verification")).toBe(0);
    },
  );

  it("harm no other provider, no other tenant and not the platform", async () => {
    const { instance, tenantId } = await lostSecret();
    await register(instance, tenantId, GITHUB);
    expect(clientIdOf(await startSignIn(instance, tenantId, "github"))).toBe("tenant-github");
    const other = await instance.createTenant();
    expect(clientIdOf(await startSignIn(instance, other.id))).toBe("global-client");
    const platform = await instance.browser().post("/sign-in/social", { provider: "google" });
    expect(clientIdOf(platform)).toBe("global-client");
  });

  it("are not needed while the config is disabled: the global provider serves", async () => {
    const { instance, tenantId } = await lostSecret();
    await instance.database.query("update tenantOauthConfig set enabled = 0");
    expect(clientIdOf(await startSignIn(instance, tenantId))).toBe("global-client");
  });

  it("can be registered again, and deleted", async () => {
    const { instance, tenantId, operator } = await lostSecret();
    const again = await operator.post("/tenant/oauth-config/register", { tenantId, ...GOOGLE });
    expect([again.status, again.data.clientId]).toEqual([200, "tenant-client"]);
    expect(clientIdOf(await startSignIn(instance, tenantId))).toBe("tenant-client");

    const lost = await lostSecret();
    const body = { tenantId: lost.tenantId, providerId: "google" };
    expect((await lost.operator.post("/tenant/oauth-config/delete", body)).status).toBe(200);
    expect(await lost.instance.rows("tenantOauthConfig")).toBe(0);
  });
});
