import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { symmetricDecrypt } from "better-auth/crypto";
import { socialProviderList } from "better-auth/social-providers";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInTenant } from "../../src/index";
import { createDatabase, type DatabaseKind } from "../support/database";
import { startIdentityProvider } from "../support/identity-provider";
import { createInstance, type Instance } from "../support/instance";
import { databases } from "../support/servers";
import { queryOf } from "../support/social";

const SECRETS = ["", "first", "second", "third"].map((word) => `${word} secret `.repeat(4));
/** The framework's secrets, the newest first. */
const secrets = (...versions: number[]) => ({
  secrets: versions.map((version) => ({ version, value: SECRETS[version] ?? "" })),
});

interface OpenOptions {
  auth: Partial<BetterAuthOptions>;
  plugins?: BetterAuthPlugin[];
}

/** A database that several servers share, side by side or one after the other. */
async function createHistory(kind: DatabaseKind, advanced?: BetterAuthOptions["advanced"]) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  const { quote } = database;
  const open = ({ auth, plugins }: OpenOptions) =>
    createInstance({ database, plugins, auth: { secret: undefined, advanced, ...auth } });

  /** Every config as the database has it. */
  const stored = async () => {
    const rows = await database.query(`select * from ${quote("tenantOauthConfig")}`);
    return rows.map(({ id, clientId, clientSecret, options }) => ({
      id: String(id),
      ciphers: [clientId, clientSecret, options].flatMap((text) => (text ? [String(text)] : [])),
    }));
  };
  /** How many cipher texts there are of each version; 0 is for a single secret. */
  const versions = async () => {
    const counts: Record<string, number> = {};
    for (const cipher of (await stored()).flatMap(({ ciphers }) => ciphers)) {
      const version = /^\$ba\$(\d+)\$/.exec(cipher)?.[1] ?? "0";
      counts[version] = (counts[version] ?? 0) + 1;
    }
    return counts;
  };
  return { database, open, stored, versions };
}

const POOL = {
  domain: "acme.auth.eu-west-1.amazoncognito.com",
  region: "eu-west-1",
  userPoolId: "eu-west-1_Acme",
};
const CONFIGS = socialProviderList.map((providerId) => ({
  providerId,
  clientId: `client-at-${providerId}`,
  clientSecret: `secret-at-${providerId}`,
  options: providerId === "cognito" ? POOL : providerId < "l" ? { prompt: "login" as const } : null,
}));

const register = (instance: Instance, tenantId: string, config: object = {}) =>
  instance.api.registerTenantOAuthConfig({
    body: {
      tenantId,
      providerId: "google",
      clientId: "acme-client",
      clientSecret: "acme-client-secret",
      ...config,
    },
  });

/** A tenant with a config for every provider. */
async function createFullTenant(instance: Instance): Promise<string> {
  const { id } = await instance.createTenant();
  for (const config of CONFIGS) await register(instance, id, config);
  return id;
}

const list = (instance: Instance, tenantId: string) =>
  instance.api.listTenantOAuthConfigs({ query: { tenantId } });

/** Something that happens right before a row is encrypted anew. */
function beforeRotation(run: (row: number) => unknown): BetterAuthPlugin {
  let count = 0;
  return {
    id: "before-rotation",
    init({ adapter }) {
      const updateMany = adapter.updateMany.bind(adapter);
      adapter.updateMany = async (call) => {
        if (call.model === "tenantOauthConfig") await run(++count);
        return updateMany(call);
      };
    },
  };
}

describe.each(databases)("rotateTenantOAuthSecrets() on %s", (kind) => {
  it("encrypts everything anew, says how much, and the old secret can go", async () => {
    const { open, versions } = await createHistory(kind);
    const before = await open({ auth: secrets(1) });
    const tenants = [];
    for (let count = 0; count < 3; count++) tenants.push(await createFullTenant(before));
    const rows = tenants.length * CONFIGS.length;
    expect(rows).toBeGreaterThan(100);
    const after = await open({ auth: secrets(2, 1) });
    // Some are of the newest version already: registered, or changed in part.
    const [first = ""] = tenants;
    await register(after, first);
    await register(after, first, { providerId: "github" });
    await after.api.updateTenantOAuthConfig({
      body: { tenantId: first, providerId: "discord", clientSecret: "secret-at-discord" },
    });
    const shown = await Promise.all(tenants.map((id) => list(after, id)));
    expect(shown.flat().every(({ readable }) => readable)).toBe(true);

    const touched = await after.api.rotateTenantOAuthSecrets();
    expect(touched).toEqual({ rotated: rows - 2, upToDate: 2, unreadable: 0 });
    expect(Object.keys(await versions())).toEqual(["2"]);
    // Nothing that anybody sees has changed, no time either.
    expect(await Promise.all(tenants.map((id) => list(after, id)))).toEqual(shown);
    expect(await after.api.rotateTenantOAuthSecrets()).toEqual({
      rotated: 0,
      upToDate: rows,
      unreadable: 0,
    });

    const later = await open({ auth: secrets(2) });
    expect(await Promise.all(tenants.map((id) => list(later, id)))).toEqual(shown);
    const { data } = await later
      .browser()
      .post("/tenant/sign-in/social", { tenantId: tenants[1], provider: "google" });
    expect(queryOf(String(data.url)).client_id).toBe("client-at-google");
  });

  it("what is stored stays what it was", async () => {
    const { open, stored } = await createHistory(kind);
    const before = await open({ auth: secrets(1) });
    await createFullTenant(before);
    const read = async ({ context }: Instance) => {
      const rows = await stored();
      const key = context.secretConfig;
      const clear = rows.map(({ ciphers }) =>
        Promise.all(ciphers.map((data) => symmetricDecrypt({ key, data }))),
      );
      return (await Promise.all(clear)).map(String).sort();
    };
    const clear = await read(before);
    const after = await open({ auth: secrets(3, 1) });
    await after.api.rotateTenantOAuthSecrets();
    expect(await read(await open({ auth: secrets(3) }))).toEqual(clear);
    expect(clear).toContain(
      `client-at-google,secret-at-google,${JSON.stringify({ prompt: "login" })}`,
    );
  });

  it("takes rows from the time of a single secret along", async () => {
    const { open, versions } = await createHistory(kind);
    const before = await open({ auth: { secret: SECRETS[1] } });
    const { id } = await before.createTenant();
    await register(before, id, { options: { hd: "acme.example" } });
    expect(await versions()).toEqual({ 0: 3 });
    expect(await before.api.rotateTenantOAuthSecrets()).toMatchObject({ rotated: 0, upToDate: 1 });
    const after = await open({ auth: { ...secrets(2), secret: SECRETS[1] } });
    expect(await after.api.rotateTenantOAuthSecrets()).toMatchObject({ rotated: 1 });
    expect(await versions()).toEqual({ 2: 3 });
    const [config] = await list(await open({ auth: secrets(2) }), id);
    expect(config).toMatchObject({ clientId: "acme-client", options: { hd: "acme.example" } });
  });

  it.each(["uuid", "serial"] as const)("goes through more than a batch of %s ids", async (ids) => {
    const { open, versions } = await createHistory(kind, { database: { generateId: ids } });
    const before = await open({ auth: secrets(1) });
    for (let count = 0; count < 3; count++) await createFullTenant(before);
    const after = await open({ auth: secrets(2, 1) });
    const rows = 3 * CONFIGS.length;
    expect(await after.api.rotateTenantOAuthSecrets()).toMatchObject({ rotated: rows });
    expect(Object.keys(await versions())).toEqual(["2"]);
  });

  it("can be interrupted at any row, and goes on where it was", async () => {
    const { open, versions } = await createHistory(kind);
    const before = await open({ auth: secrets(1) });
    const tenantId = await createFullTenant(before);
    const shown = await list(before, tenantId);
    const ciphers = Object.values(await versions())[0] ?? 0;
    const plugins = [
      beforeRotation((row) => {
        if (row === 10) throw new Error("the database went away with acme-client-secret");
      }),
    ];
    const after = await open({ auth: secrets(2, 1), plugins });
    await expect(after.api.rotateTenantOAuthSecrets()).rejects.toMatchObject({
      statusCode: 500,
      body: { code: "OAUTH_CONFIG_NOT_SAVED" },
    });
    const half = await versions();
    expect(half[1]).toBeGreaterThan(0);
    expect(half[2]).toBeGreaterThan(0);
    expect((half[1] ?? 0) + (half[2] ?? 0)).toBe(ciphers);
    expect(await list(after, tenantId)).toEqual(shown);

    expect(await after.api.rotateTenantOAuthSecrets()).toEqual({
      rotated: CONFIGS.length - 9,
      upToDate: 9,
      unreadable: 0,
    });
    expect(await list(await open({ auth: secrets(2) }), tenantId)).toEqual(shown);
  });

  it.each<[string, object, object]>([
    [
      "another secret and another client",
      { clientId: "new-client", clientSecret: "new-client-secret", options: null },
      { clientId: "new-client", options: null },
    ],
    ["other options", { options: { hd: "new.example" } }, { options: { hd: "new.example" } }],
    ["other scopes", { scopes: ["new"] }, { scopes: ["new"] }],
  ])("races: %s that come in between are never undone", async (_, changes, expected) => {
    const { open, stored } = await createHistory(kind);
    const before = await open({ auth: secrets(1) });
    const { id: tenantId } = await before.createTenant();
    await register(before, tenantId, { options: { hd: "old.example" } });
    const plugins = [
      beforeRotation(async (row) => {
        if (row > 1) return;
        if ("clientId" in changes) await register(after, tenantId, changes);
        else {
          const body = { tenantId, providerId: "google", ...changes };
          await after.api.updateTenantOAuthConfig({ body });
        }
      }),
    ];
    const after = await open({ auth: secrets(2, 1), plugins });
    const { unreadable } = await after.api.rotateTenantOAuthSecrets();
    expect(unreadable).toBe(0);
    // All of it, and not only what was changed, is of the newest version.
    const later = await open({ auth: secrets(2) });
    expect(await list(later, tenantId)).toMatchObject([{ readable: true, ...expected }]);
    const [row] = await stored();
    const key = later.context.secretConfig;
    const secret = await symmetricDecrypt({ key, data: row?.ciphers[1] ?? "" });
    expect(secret).toBe("clientId" in changes ? "new-client-secret" : "acme-client-secret");
  });

  it("races: two rotations beside registrations and updates leave what was written last", async () => {
    const { open, stored, versions } = await createHistory(kind);
    const before = await open({ auth: secrets(1) });
    const tenantId = await createFullTenant(before);
    const after = await open({ auth: secrets(2, 1) });
    const change = (providerId: string) =>
      after.api.updateTenantOAuthConfig({
        body: { tenantId, providerId, clientSecret: `next-${providerId}`, scopes: ["next"] },
      });
    const changed = ["google", "github", "gitlab", "discord", "slack", "twitch"];
    const replaced = ["zoom", "vk", "kick", "figma"];
    const [one, two] = await Promise.all([
      after.api.rotateTenantOAuthSecrets(),
      after.api.rotateTenantOAuthSecrets(),
      ...changed.map(change),
      ...replaced.map((providerId) =>
        register(after, tenantId, { providerId, clientSecret: `next-${providerId}` }),
      ),
    ]);
    expect([one, two]).toMatchObject([{ unreadable: 0 }, { unreadable: 0 }]);
    expect(one.rotated + two.rotated).toBeLessThanOrEqual(CONFIGS.length);
    expect(Object.keys(await versions())).toEqual(["2"]);
    const key = (await open({ auth: secrets(2) })).context.secretConfig;
    const found = await Promise.all(
      (await stored()).map(({ ciphers }) => symmetricDecrypt({ key, data: ciphers[1] ?? "" })),
    );
    const expected = socialProviderList.map((id) =>
      [...changed, ...replaced].includes(id) ? `next-${id}` : `secret-at-${id}`,
    );
    expect(found.sort()).toEqual(expected.sort());
  });

  it("counts rows that cannot be read, and leaves them as they are", async () => {
    const { database, open, stored } = await createHistory(kind);
    const before = await open({ auth: secrets(1) });
    const { id } = await before.createTenant();
    await register(before, id);
    await register(before, id, { providerId: "github" });
    await register(before, id, { providerId: "gitlab", options: { prompt: "login" } });
    const { quote } = database;
    const spoil = (providerId: string, column: string, value: string) =>
      database.query(
        `update ${quote("tenantOauthConfig")} set ${quote(column)} = ? where ${quote("providerId")} = ?`,
        [value, providerId],
      );
    await spoil("github", "clientSecret", `$ba$1$${"00".repeat(60)}`);
    await spoil("gitlab", "options", "nothing that could be read");
    const rows = await stored();
    const after = await open({ auth: secrets(2, 1) });
    const expected = { rotated: 1, upToDate: 0, unreadable: 2 };
    expect(await after.api.rotateTenantOAuthSecrets()).toEqual(expected);
    const unchanged = (await stored()).filter(({ ciphers }) =>
      rows.some((row) => String(row.ciphers) === String(ciphers)),
    );
    expect(unchanged).toHaveLength(2);
    expect(await after.api.rotateTenantOAuthSecrets()).toEqual({
      ...expected,
      rotated: 0,
      upToDate: 1,
    });
    // A secret that is gone for good: everything is counted, nothing is touched.
    const lost = await open({ auth: secrets(3) });
    expect(await lost.api.rotateTenantOAuthSecrets()).toMatchObject({ rotated: 0, unreadable: 3 });
    expect(after.logs.join()).not.toMatch(/[0-9a-f]{40}/);
  });

  it("does not disturb a sign-in that is on its way", async () => {
    const { open } = await createHistory(kind);
    const idp = await startIdentityProvider();
    idp.registerClient("acme-client", "acme-client-secret");
    idp.addPerson("alice");
    const gitlab = { clientId: "global", clientSecret: "global", issuer: idp.issuer };
    const before = await open({ auth: { ...secrets(1), socialProviders: { gitlab } } });
    const { id: tenantId } = await before.createTenant();
    await register(before, tenantId, { providerId: "gitlab" });
    const after = await open({ auth: { ...secrets(2, 1), socialProviders: { gitlab } } });
    const browser = after.browser();
    const start = { tenantId, provider: "gitlab", callbackURL: "/welcome" };
    const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", start);
    const way = await idp.authorize(data.url, "alice");
    expect(await after.api.rotateTenantOAuthSecrets()).toMatchObject({ rotated: 1 });
    expect((await browser.get(way)).location).toBe("/welcome");
  });
});

it("nobody can rotate from outside", async () => {
  const instance = await createInstance();
  const { browser } = await instance.operator();
  expect(instance.api.rotateTenantOAuthSecrets).not.toHaveProperty("path", expect.anything());
  for (const path of [
    "/tenant/oauth-config/rotate",
    "/tenant/oauth-config/rotate-secrets",
    "/tenant/rotate-oauth-secrets",
    "/rotate-tenant-oauth-secrets",
    "/rotateTenantOAuthSecrets",
    "/tenant/rotate",
    "/undefined",
    "/",
    "",
  ]) {
    expect([path, (await browser.post(path)).status]).toEqual([path, 404]);
    expect([path, (await browser.get(path)).status]).toEqual([path, 404]);
  }
});

describe("a new client secret", () => {
  it("is used by the next sign-in on every server, without a restart", async () => {
    const { open } = await createHistory("sqlite");
    const idp = await startIdentityProvider();
    idp.addPerson("alice");
    const gitlab = { clientId: "global", clientSecret: "global", issuer: idp.issuer };
    const auth = { ...secrets(1), socialProviders: { gitlab } };
    const [one, two] = [await open({ auth }), await open({ auth })];
    const { id: tenantId } = await one.createTenant();
    const signIn = async ({ browser }: Instance) => {
      const person = browser();
      const start = { tenantId, provider: "gitlab", callbackURL: "/welcome" };
      const { data } = await person.post<{ url: string }>("/tenant/sign-in/social", start);
      return (await person.get(await idp.authorize(data.url, "alice"))).location;
    };
    for (const clientSecret of ["secret-of-spring", "secret-of-summer"]) {
      idp.registerClient("acme-client", clientSecret);
      await register(one, tenantId, { providerId: "gitlab", clientSecret });
      expect([await signIn(one), await signIn(two)]).toEqual(["/welcome", "/welcome"]);
      const used = idp.exchanges().slice(-2);
      expect(used.map(({ params }) => params.client_secret)).toEqual([clientSecret, clientSecret]);
    }
    idp.registerClient("acme-client", "secret-of-autumn");
    const body = { tenantId, providerId: "gitlab", clientSecret: "secret-of-autumn" };
    await two.api.updateTenantOAuthConfig({ body });
    expect([await signIn(one), await signIn(two)]).toEqual(["/welcome", "/welcome"]);
  });
});

it("a new client is used by the next call of the server's own code, wherever it comes from", async () => {
  const instance = await createInstance();
  const { id: tenantId } = await instance.createTenant();
  const body = { tenantId, provider: "google" };
  const start = async () =>
    queryOf((await instance.api.signInSocialTenant({ body })).url ?? "").client_id;
  await register(instance, tenantId, { clientId: "first-client" });
  expect([await start(), await start()]).toEqual(["first-client", "first-client"]);
  await register(instance, tenantId, { clientId: "second-client" });
  expect(await start()).toBe("second-client");
  // Inside of one request as well.
  const seen = await runInTenant(tenantId, async () => {
    const before = await start();
    await register(instance, tenantId, { clientId: "third-client" });
    return [before, await start()];
  });
  expect(seen).toEqual(["second-client", "third-client"]);
});

describe("the list", () => {
  it("says when the secret was changed, and not when anything else was", async () => {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    const changed = async () => (await list(instance, tenantId))[0]?.secretChangedAt.getTime();
    const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
    const first = await register(instance, tenantId);
    expect(first.secretChangedAt).toEqual(first.createdAt);
    await pause();
    const body = { tenantId, providerId: "google" };
    await instance.api.updateTenantOAuthConfig({ body: { ...body, enabled: false } });
    await register(instance, tenantId, { clientId: "another-client", scopes: ["openid"] });
    await register(instance, tenantId, { options: { hd: "acme.example" } });
    expect(await changed()).toBe(first.createdAt.getTime());
    await register(instance, tenantId, { clientSecret: "the-next-secret" });
    const second = await changed();
    expect(second).toBeGreaterThan(first.createdAt.getTime());
    await pause();
    const clientSecret = "the-last-secret";
    await instance.api.updateTenantOAuthConfig({ body: { ...body, clientSecret } });
    expect(await changed()).toBeGreaterThan(second ?? 0);
  });

  it("has an answer for rows from before this was noted", async () => {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    const { createdAt } = await register(instance, tenantId);
    await instance.database.query("update tenantOauthConfig set secretChangedAt = null");
    expect((await list(instance, tenantId))[0]?.secretChangedAt).toEqual(createdAt);
  });

  it.each(["clientId", "clientSecret", "options"])(
    "shows a row whose %s cannot be read as such, and the others as they are",
    async (column) => {
      const instance = await createInstance();
      const { id: tenantId } = await instance.createTenant();
      const options = { prompt: "login" };
      for (const providerId of ["google", "github", "gitlab"]) {
        await register(instance, tenantId, { providerId, options });
      }
      const [google, github, gitlab] = await list(instance, tenantId);
      await instance.database.query(
        `update tenantOauthConfig set ${column} = 'broken' where providerId = 'github'`,
      );
      expect(await list(instance, tenantId)).toEqual([
        google,
        { ...github, readable: false, clientId: null, options: null },
        gitlab,
      ]);
    },
  );
});
