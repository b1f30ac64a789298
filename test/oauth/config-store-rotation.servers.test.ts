import type { BetterAuthOptions } from "better-auth";
import { symmetricDecrypt } from "better-auth/crypto";
import { socialProviderList } from "better-auth/social-providers";
import { describe, expect, it, onTestFinished } from "vitest";
import type { StoredOAuthConfig } from "../../src/oauth/config-store";
import { createDatabase, type DatabaseKind, databases } from "../support/database";
import { startIdentityProvider } from "../support/identity-provider";
import { createInstance, type Instance } from "../support/instance";
import { providerAnswers } from "../support/provider-answers";
import { queryOf } from "../support/world";

const SECRETS = ["", "first", "second", "third"].map((word) => `${word} secret `.repeat(4));
/** The framework's secrets, the newest first. */
const secrets = (...versions: number[]) => ({
  secrets: versions.map((version) => ({ version, value: SECRETS[version] ?? "" })),
});

/** A database that several servers share, side by side or one after the other. */
async function createHistory(kind: DatabaseKind, advanced?: BetterAuthOptions["advanced"]) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());

  /** Every config as the database has it: client id, secret and options. */
  const stored = async () => {
    const rows = await database.query(`select * from ${database.quote("tenantOauthConfig")}`);
    return rows.map(({ clientId, clientSecret, options }) =>
      [clientId, clientSecret, options].flatMap((text) => (text ? [String(text)] : [])),
    );
  };
  return {
    database,
    stored,
    open: (auth: Partial<BetterAuthOptions>) =>
      createInstance({ database, auth: { secret: undefined, advanced, ...auth } }),
    /** The versions that there are cipher texts of; 0 is for a single secret. */
    versions: async () => {
      const found = (await stored()).flat().map((text) => /^\$ba\$(\d)\$/.exec(text)?.[1] ?? "0");
      return [...new Set(found)].sort();
    },
    /** What is stored, in clear. */
    read: async ({ context }: Instance) => {
      const key = context.secretConfig;
      const open = (ciphers: string[]) =>
        Promise.all(ciphers.map((data) => symmetricDecrypt({ key, data })));
      return (await Promise.all((await stored()).map(open))).map(String).sort();
    },
  };
}

const CONFIGS = socialProviderList.map((providerId) => ({
  providerId,
  clientId: `client-at-${providerId}`,
  clientSecret: `secret-at-${providerId}`,
  options: providerAnswers[providerId].options ?? (providerId < "l" ? { prompt: "login" } : null),
}));

const register = ({ api }: Instance, tenantId: string, config: object = {}) => {
  const client = { clientId: "acme-client", clientSecret: "acme-client-secret" };
  const body = { tenantId, providerId: "google", ...client, ...config };
  return api.registerTenantOAuthConfig({ body });
};
const update = ({ api }: Instance, tenantId: string, changes: object) =>
  api.updateTenantOAuthConfig({ body: { tenantId, providerId: "google", ...changes } });
const list = ({ api }: Instance, tenantId: string) =>
  api.listTenantOAuthConfigs({ query: { tenantId } });
const rotate = ({ api }: Instance) => api.rotateTenantOAuthSecrets();

/** A tenant with a config for every provider. */
async function createFullTenant(instance: Instance): Promise<string> {
  const { id } = await instance.createTenant();
  for (const config of CONFIGS) await register(instance, id, config);
  return id;
}

/** Something that happens right before a row is encrypted anew. */
function beforeRotation({ context: { adapter } }: Instance, run: (row: number) => unknown) {
  let count = 0;
  const updateMany = adapter.updateMany.bind(adapter);
  adapter.updateMany = async (call) => {
    if (call.model === "tenantOauthConfig") await run(++count);
    return updateMany(call);
  };
}

describe.each(databases)("rotateTenantOAuthSecrets() on %s", (kind) => {
  it.each(["usual", "uuid", "serial"] as const)(
    "encrypts everything anew, a batch at a time, and the old secret can go (%s ids)",
    async (ids) => {
      const generateId = ids === "usual" ? undefined : ids;
      const { open, read, versions } = await createHistory(kind, { database: { generateId } });
      const before = await open(secrets(1));
      const tenants = [await createFullTenant(before)];
      const model = "tenantOauthConfig";
      const { adapter } = before.context;
      const copied = await adapter.findMany<StoredOAuthConfig>({ model });
      for (const { id: tenantId } of [await before.createTenant(), await before.createTenant()]) {
        tenants.push(tenantId);
        for (const { id: _, ...row } of copied) {
          await adapter.create({ model, data: { ...row, tenantId } });
        }
      }
      const rows = tenants.length * CONFIGS.length;
      expect(rows).toBeGreaterThan(100);
      const after = await open(secrets(3, 1));
      // Some are of the newest version already: registered, or changed in part.
      const [first = ""] = tenants;
      for (const providerId of ["google", "github"]) await register(after, first, { providerId });
      const discord = { providerId: "discord", clientSecret: "secret-at-discord" };
      await update(after, first, discord);
      const clear = await read(after);
      const google = { prompt: "login" };
      expect(clear).toContain(`client-at-google,secret-at-google,${JSON.stringify(google)}`);
      const shown = await Promise.all(tenants.map((id) => list(after, id)));
      expect(shown.flat().every(({ readable }) => readable)).toBe(true);

      expect(await rotate(after)).toEqual({ rotated: rows - 2, upToDate: 2, unreadable: 0 });
      expect(await versions()).toEqual(["3"]);
      expect(await rotate(after)).toEqual({ rotated: 0, upToDate: rows, unreadable: 0 });

      // Nothing that anybody sees has changed, no time either.
      const later = await open(secrets(3));
      expect(await read(later)).toEqual(clear);
      expect(await Promise.all(tenants.map((id) => list(later, id)))).toEqual(shown);
    },
  );

  it("takes rows from the time of a single secret along, which are good before it as well", async () => {
    const { open, versions } = await createHistory(kind);
    const before = await open({ secret: SECRETS[1] });
    const { id } = await before.createTenant();
    const options = { hd: "acme.example" };
    await register(before, id, { options });
    expect(await versions()).toEqual(["0"]);
    expect(await rotate(before)).toMatchObject({ rotated: 0, upToDate: 1 });
    const after = await open({ ...secrets(2), secret: SECRETS[1] });
    expect(await list(after, id)).toMatchObject([{ clientId: "acme-client", options }]);
    const start = { tenantId: id, provider: "google" };
    const { url } = await after.api.signInSocialTenant({ body: start });
    expect(queryOf(url ?? "").client_id).toBe("acme-client");
    expect(await rotate(after)).toMatchObject({ rotated: 1 });
    expect(await versions()).toEqual(["2"]);
    const [config] = await list(await open(secrets(2)), id);
    expect(config).toMatchObject({ clientId: "acme-client", options });
  });

  it("can be interrupted at any row, and goes on where it was", async () => {
    const { open, versions } = await createHistory(kind);
    const before = await open(secrets(1));
    const tenantId = await createFullTenant(before);
    const shown = await list(before, tenantId);
    const after = await open(secrets(2, 1));
    beforeRotation(after, (row) => {
      if (row === 10) throw new Error("the database went away with acme-client-secret");
    });
    await expect(rotate(after)).rejects.toMatchObject({
      statusCode: 500,
      body: { code: "OAUTH_CONFIG_NOT_SAVED" },
    });
    expect(await versions()).toEqual(["1", "2"]);
    expect(await list(after, tenantId)).toEqual(shown);
    const rotated = CONFIGS.length - 9;
    expect(await rotate(after)).toEqual({ rotated, upToDate: 9, unreadable: 0 });
    expect(await list(await open(secrets(2)), tenantId)).toEqual(shown);
  });

  const ANOTHER = { clientId: "new-client", clientSecret: "new-client-secret", options: null };

  it.each<[string, object, string]>([
    ["another client", ANOTHER, "new-client,new-client-secret"],
    ["other options", { options: { hd: "new.example" } }, '{"hd":"new.example"}'],
    ["other scopes", { scopes: ["new"] }, '{"hd":"old.example"}'],
  ])("races: %s that come in between are never undone", async (_, changes, expected) => {
    const { open, read } = await createHistory(kind);
    const before = await open(secrets(1));
    const { id } = await before.createTenant();
    await register(before, id, { options: { hd: "old.example" } });
    const after = await open(secrets(2, 1));
    beforeRotation(after, async (row) => {
      if (row === 1) await ("clientId" in changes ? register : update)(after, id, changes);
    });
    expect((await rotate(after)).unreadable).toBe(0);
    // All of it, and not only what was changed, is of the newest version.
    const later = await open(secrets(2));
    const clear = changes === ANOTHER ? expected : `acme-client,acme-client-secret,${expected}`;
    expect(await read(later)).toEqual([clear]);
    const { clientSecret: __, ...visible } = { clientSecret: "", ...changes };
    expect(await list(later, id)).toMatchObject([{ readable: true, ...visible }]);
  });

  it("races: two rotations beside registrations and updates leave what was written last", async () => {
    const { open, read, versions } = await createHistory(kind);
    const before = await open(secrets(1));
    const tenantId = await createFullTenant(before);
    const after = await open(secrets(2, 1));
    const next = (providerId: string) => ({ providerId, clientSecret: `next-${providerId}` });
    const changed = ["google", "github", "gitlab", "discord", "slack", "twitch"];
    const replaced = ["zoom", "vk", "kick", "figma"];
    const [one, two] = await Promise.all([
      rotate(after),
      rotate(after),
      ...changed.map((id) => update(after, tenantId, { ...next(id), scopes: ["next"] })),
      ...replaced.map((id) => register(after, tenantId, next(id))),
    ]);
    expect([one, two]).toMatchObject([{ unreadable: 0 }, { unreadable: 0 }]);
    expect(one.rotated + two.rotated).toBeLessThanOrEqual(CONFIGS.length);
    expect(await versions()).toEqual(["2"]);
    const found = (await read(await open(secrets(2)))).map((clear) => clear.split(",")[1]);
    const expected = socialProviderList.map((id) =>
      [...changed, ...replaced].includes(id) ? `next-${id}` : `secret-at-${id}`,
    );
    expect(found.sort()).toEqual(expected.sort());
  });

  it("counts rows that cannot be read, and leaves them as they are", async () => {
    const { database, open, stored } = await createHistory(kind);
    const before = await open(secrets(1));
    const { id } = await before.createTenant();
    const options = { prompt: "login" };
    await register(before, id);
    for (const providerId of ["github", "gitlab"]) {
      await register(before, id, { providerId, options });
    }
    const { quote } = database;
    const spoil = (providerId: string, column: string, value: string) =>
      database.query(
        `update ${quote("tenantOauthConfig")} set ${quote(column)} = ? where ${quote("providerId")} = ?`,
        [value, providerId],
      );
    await spoil("github", "clientSecret", `$ba$1$${"00".repeat(60)}`);
    await spoil("gitlab", "options", "nothing that could be read");
    const rows = (await stored()).map(String);
    const after = await open(secrets(2, 1));
    expect(await rotate(after)).toEqual({ rotated: 1, upToDate: 0, unreadable: 2 });
    expect((await stored()).filter((row) => rows.includes(String(row)))).toHaveLength(2);
    expect(await rotate(after)).toEqual({ rotated: 0, upToDate: 1, unreadable: 2 });
    // A secret that is gone for good: everything is counted, nothing is touched.
    expect(await rotate(await open(secrets(3)))).toMatchObject({ rotated: 0, unreadable: 3 });
    expect(after.logs.join()).not.toMatch(/[0-9a-f]{40}/);
  });

  it("does not disturb a sign-in on its way, and a new secret is used by every server at once", async () => {
    const { open } = await createHistory(kind);
    const idp = await startIdentityProvider();
    idp.registerClient("acme-client", "acme-client-secret");
    idp.addPerson("alice");
    const global = { clientId: "global", clientSecret: "global", issuer: idp.issuer };
    const socialProviders = { gitlab: global };
    const before = await open({ ...secrets(1), socialProviders });
    const { id: tenantId } = await before.createTenant();
    await register(before, tenantId, { providerId: "gitlab" });
    const auth = { ...secrets(2, 1), socialProviders };
    const [one, two] = [await open(auth), await open(auth)];
    const signIn = async ({ browser }: Instance, onTheWay?: () => Promise<unknown>) => {
      const person = browser();
      const start = { tenantId, provider: "gitlab", callbackURL: "/welcome" };
      const { data } = await person.post<{ url: string }>("/tenant/sign-in/social", start);
      const way = await idp.authorize(data.url, "alice");
      await onTheWay?.();
      return (await person.get(way)).location;
    };
    expect(await signIn(one, () => rotate(one))).toBe("/welcome");
    for (const [change, clientSecret] of [
      [register, "secret-of-summer"],
      [update, "secret-of-autumn"],
    ] as const) {
      idp.registerClient("acme-client", clientSecret);
      await change(one, tenantId, { providerId: "gitlab", clientSecret });
      expect([await signIn(one), await signIn(two)]).toEqual(["/welcome", "/welcome"]);
      const used = idp.exchanges().slice(-2);
      expect(used.map(({ params }) => params.client_secret)).toEqual([clientSecret, clientSecret]);
    }
  });
});
