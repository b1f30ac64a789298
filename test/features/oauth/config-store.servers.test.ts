import { inspect } from "node:util";
import type { BetterAuthOptions } from "better-auth";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import type { StoredOAuthConfig } from "../../../src/features/oauth/config-store";
import { runInTenant } from "../../../src/index";
import type { Answer } from "../../support/browser";
import {
  createDatabase,
  type DatabaseKind,
  databases,
  idKindsOn,
  type TestDatabase,
} from "../../support/database";
import { startIdentityProvider } from "../../support/identity-provider";
import { createInstance, type Instance } from "../../support/instance";
import { sample } from "../../support/matrix";
import { expectRefused, outcome, queryOf, shareWorld } from "../../support/world";
import { createOAuthTenant, tenantOfEachTest } from "./tenant";

const SECRET = "a test secret that is long enough for everybody";
const GLOBAL = { clientId: "global-client", clientSecret: "global-client-secret" };
const GOOGLE = { providerId: "google", clientId: "tenant-client", clientSecret: "tenant-secret" };
const GITHUB = { ...GOOGLE, providerId: "github", clientId: "tenant-github" };
const FAILED = "OAUTH_CREDENTIAL_DECRYPT_FAILED";

describe.each(databases)("on %s", (kind) => {
  const world = shareWorld({ auth: { socialProviders: { google: GLOBAL } } }, kind);
  const acme = tenantOfEachTest(world);
  const clientOf = ({ data }: Answer<{ url: string }>) => queryOf(data.url).client_id;
  const states = () => world.rows("verification");

  it("at rest there is cipher text only, which the auth secret decrypts, another one each time", async () => {
    const options = { hd: "acme.example", additionalClientIds: ["acme-phone"] };
    const { clientId } = GOOGLE;
    await acme.register({ ...GOOGLE, clientSecret: clientId, options });
    const [first] = await acme.stored();
    await acme.register({ ...GOOGLE, options });
    const [row] = await acme.stored();
    for (const column of ["clientId", "clientSecret", "options"]) {
      expect(row?.[column]).toMatch(/^[0-9a-f]{80,}$/);
      expect(row?.[column]).not.toBe(first?.[column]);
    }
    expect(first?.clientId).not.toBe(first?.clientSecret);
    // Nowhere else either, whatever the other columns are.
    expect(JSON.stringify(row)).not.toMatch(/tenant-client|acme\.example|acme-phone|\bhd\b/);
    const open = (column: string, key = SECRET) =>
      symmetricDecrypt({ key, data: String(row?.[column]) });
    expect(await open("clientId")).toBe(clientId);
    expect(await open("clientSecret")).toBe(GOOGLE.clientSecret);
    expect(JSON.parse(await open("options"))).toEqual(options);
    await expect(open("clientSecret", "another secret")).rejects.toThrow();
  });

  describe("threat: fail-open on bad config: credentials that cannot be decrypted", () => {
    /** As they were encrypted with a secret that is lost now. */
    async function loseSecret() {
      await acme.register(GOOGLE);
      const data = "tenant-client";
      const lost = await symmetricEncrypt({ key: "a secret that is lost", data });
      await acme.spoil("clientId", lost);
      await acme.spoil("clientSecret", lost);
    }

    it("stop the sign-in on every path, and the global credentials do not step in", async () => {
      await loseSecret();
      const before = await states();
      const named = world.at(acme.id);
      const person = await world.signUp(acme.id);
      const answers: Answer<unknown>[] = [
        await acme.start("google"),
        await named.post("/sign-in/social", { provider: "google" }),
        await person.post("/link-social", { provider: "google", callbackURL: "/" }),
      ];
      for (const answer of answers) {
        expectRefused(answer, 500, FAILED);
        expect(answer.location).toBeNull();
        expect(JSON.stringify(answer.data)).not.toContain("global");
      }
      expect(await states()).toBe(before);
      // They harm no other provider and no other tenant.
      await acme.register(GITHUB);
      expect(clientOf(await acme.start("github"))).toBe("tenant-github");
      const globex = await createOAuthTenant(world);
      expect(clientOf(await globex.start("google"))).toBe("global-client");
    });

    it.each(["clientId", "clientSecret"])("stop it when only the %s is broken", async (column) => {
      await acme.register(GOOGLE);
      for (const broken of ["", "not cipher text", "$ba$9$00ff"]) {
        await acme.spoil(column, broken);
        expect(outcome(await acme.start("google"))).toEqual([500, FAILED]);
      }
    });

    it("are not needed while the config is disabled, can be registered again, and deleted", async () => {
      await loseSecret();
      await acme.update({ providerId: "google", enabled: false });
      expect(clientOf(await acme.start("google"))).toBe("global-client");
      expect((await acme.register(GOOGLE)).data.clientId).toBe("tenant-client");
      expect(clientOf(await acme.start("google"))).toBe("tenant-client");
      await acme.spoil("clientSecret", "broken");
      expect((await acme.remove("google")).status).toBe(200);
      expect(await acme.list()).toEqual([]);
    });
  });

  it("is stored although it is deleted between its creation and the read after it", async () => {
    // As on MySQL, which reads a row again that it has created.
    const { adapter } = world.context;
    const { create } = adapter;
    adapter.create = async (call) => {
      adapter.create = create;
      const row = await create<Record<string, unknown>, { id: string }>(call as never);
      await adapter.delete({ model: call.model, where: [{ field: "id", value: row.id }] });
      return null as never;
    };
    await acme.register(GOOGLE);
    expect(await acme.stored()).toHaveLength(1);
  });

  it("a new client is used by the next call of every server, also inside of one request", async () => {
    const auth = { socialProviders: { google: GLOBAL } };
    const other = await createInstance({ database: world.database, auth });
    const body = { tenantId: acme.id, provider: "google" };
    const clientAt = async ({ api }: Pick<Instance, "api">) =>
      queryOf((await api.signInSocialTenant({ body })).url ?? "").client_id;
    for (const clientId of ["first-client", "second-client"]) {
      await acme.register({ ...GOOGLE, clientId });
      for (const server of [world, other]) expect(await clientAt(server)).toBe(clientId);
    }
    const seen = await runInTenant(acme.id, async () => {
      const before = await clientAt(world);
      const next = { ...GOOGLE, tenantId: acme.id, clientId: "third-client" };
      await world.api.registerTenantOAuthConfig({ body: next });
      return [before, await clientAt(world)];
    });
    expect(seen).toEqual(["second-client", "third-client"]);
  });

  it("only the server's own code can rotate", async () => {
    const operator = await world.operator();
    expect(world.api.rotateTenantOAuthSecrets).not.toHaveProperty("path", expect.anything());
    for (const path of ["/tenant/oauth-config/rotate", "/rotateTenantOAuthSecrets", "/undefined"]) {
      expect([path, (await operator.post(path)).status]).toEqual([path, 404]);
    }
  });

  // Every test has a spy for secrets and cipher text in answers, logs and on the console. These
  // give it much to listen to, and look where it does not.
  describe("threat: secrets leak", () => {
    /** What is thrown, with everything that a serializer of errors would dig out of it. */
    const thrownBy = async (call: Promise<unknown>) => {
      const thrown = await call.catch((error: unknown) => error);
      expect(thrown).toBeInstanceOf(Error);
      return inspect(thrown, { depth: 9, showHidden: true });
    };

    it("no state of a flow holds one", async () => {
      await acme.register(GOOGLE);
      await acme.start("google");
      const [row] = await acme.stored();
      const rows = JSON.stringify(await world.rowsIn(acme.id, "verification"));
      expect(rows).toContain("google");
      for (const secret of [GOOGLE.clientSecret, row?.clientId, row?.clientSecret]) {
        expect(rows.includes(String(secret))).toBe(false);
      }
    });

    it("credentials that cannot be decrypted stay out of answers, errors and the log", async () => {
      await acme.register(GOOGLE);
      const broken = "00ff00ff00ff00ff-broken-cipher-text";
      await acme.spoil("clientId", broken);
      await acme.spoil("clientSecret", broken);
      const body = { tenantId: acme.id, provider: "google" };
      const told = [
        JSON.stringify(await acme.list()),
        JSON.stringify((await acme.check({ providerId: "google" })).data),
        JSON.stringify((await acme.start("google")).data),
        await thrownBy(world.api.signInSocialTenant({ body })),
        world.logs.join("\n"),
      ];
      expect(told.map((text) => text.includes(broken))).toEqual(told.map(() => false));
      expect(told.at(-1)).toContain(`tenant ${acme.id} for google cannot be decrypted`);
    });

    it("a write that the database refuses shows no cipher text", async () => {
      const mend = await breakWrites(world.database);
      const answer = await acme.register(GITHUB);
      expectRefused(answer, 500, "OAUTH_CONFIG_NOT_SAVED");
      const body = { tenantId: acme.id, ...GITHUB };
      const thrown = await thrownBy(world.api.registerTenantOAuthConfig({ body }));
      await mend();
      // These were never stored, so they are known by their form, as is the beginning of one:
      // databases quote no more than that.
      const told = [JSON.stringify(answer.data), thrown, world.logs.join("\n")];
      expect(told.map((text) => /[0-9a-f]{40}/.test(text))).toEqual([false, false, false]);
    });
  });
});

/** Lets every write for GitHub fail, with as many words as the database has. */
async function breakWrites({ kind, quote, query }: TestDatabase) {
  const [table, provider] = [quote("tenantOauthConfig"), quote("providerId")];
  if (kind !== "sqlite") {
    await query(`delete from ${table} where ${provider} = 'github'`);
    await query(`alter table ${table} add constraint broken check (${provider} <> 'github')`);
    return () => query(`alter table ${table} drop constraint broken`);
  }
  await query(
    `create trigger broken before insert on ${table} when new.${provider} = 'github'
     begin select raise(abort, 'broken'); end`,
  );
  return () => query("drop trigger broken");
}

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

const register = ({ api }: Instance, tenantId: string, config: object = {}) => {
  const client = { clientId: "acme-client", clientSecret: "acme-client-secret" };
  const body = { tenantId, providerId: "google", ...client, ...config };
  return api.registerTenantOAuthConfig({ body });
};
const update = ({ api }: Instance, tenantId: string, changes: object) =>
  api.updateTenantOAuthConfig({ body: { tenantId, providerId: "google", ...changes } });
/** By their names: copies are of the same age. */
const list = async ({ api }: Instance, tenantId: string) => {
  const configs = await api.listTenantOAuthConfigs({ query: { tenantId } });
  return configs.sort((a, b) => (a.providerId < b.providerId ? -1 : 1));
};
const rotate = ({ api }: Instance) => api.rotateTenantOAuthSecrets();

const PROVIDERS = ["google", "github", "gitlab", "discord", "slack", "zoom"];

/** A tenant with some configs, half of them with options. */
async function createFullTenant(instance: Instance): Promise<string> {
  const { id } = await instance.createTenant();
  for (const [index, providerId] of PROVIDERS.entries()) {
    const options = index % 2 ? null : { prompt: "login" };
    await register(instance, id, { providerId, options, clientSecret: `secret-at-${providerId}` });
  }
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
  it.each(sample(idKindsOn(kind), 1))(
    "encrypts everything anew, a batch at a time, and the old secret can go (%s ids)",
    async (ids) => {
      const generateId = ids === "text" ? undefined : ids;
      const { open, read, versions } = await createHistory(kind, { database: { generateId } });
      const before = await open(secrets(1));
      const tenantId = await createFullTenant(before);
      const model = "tenantOauthConfig";
      const { adapter } = before.context;
      const [row] = await adapter.findMany<StoredOAuthConfig>({ model, limit: 1 });
      const { id: _, ...copied } = row as StoredOAuthConfig;
      for (let count = 0; count < 100; count++) {
        await adapter.create({ model, data: { ...copied, providerId: `copy-${count}` } });
      }
      const rows = PROVIDERS.length + 100;
      const after = await open(secrets(3, 1));
      // Some are of the newest version already: registered, or changed in part.
      for (const providerId of ["google", "github"])
        await register(after, tenantId, { providerId });
      await update(after, tenantId, { providerId: "discord", clientSecret: "secret-at-discord" });
      const clear = await read(after);
      expect(clear).toContain('acme-client,secret-at-gitlab,{"prompt":"login"}');
      const shown = await list(after, tenantId);
      expect(shown.every(({ readable }) => readable)).toBe(true);

      expect(await rotate(after)).toEqual({ rotated: rows - 2, upToDate: 2, unreadable: 0 });
      expect(await versions()).toEqual(["3"]);
      expect(await rotate(after)).toEqual({ rotated: 0, upToDate: rows, unreadable: 0 });

      // Nothing that anybody sees has changed, no time either.
      const later = await open(secrets(3));
      expect(await read(later)).toEqual(clear);
      expect(await list(later, tenantId)).toEqual(shown);
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
      if (row === 3) throw new Error("the database went away with acme-client-secret");
    });
    await expect(rotate(after)).rejects.toMatchObject({
      statusCode: 500,
      body: { code: "OAUTH_CONFIG_NOT_SAVED" },
    });
    expect(await versions()).toEqual(["1", "2"]);
    expect(await list(after, tenantId)).toEqual(shown);
    const rotated = PROVIDERS.length - 2;
    expect(await rotate(after)).toEqual({ rotated, upToDate: 2, unreadable: 0 });
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
    await register(before, id, { providerId: "github", clientSecret: "another-secret" });
    await register(before, id, { options: { hd: "old.example" } });
    const after = await open(secrets(2, 1));
    // Before either of the two, whichever is the first.
    beforeRotation(after, async (row) => {
      if (row <= 2) await ("clientId" in changes ? register : update)(after, id, changes);
    });
    expect((await rotate(after)).unreadable).toBe(0);
    // All of it, and not only what was changed, is of the newest version.
    const later = await open(secrets(2));
    const clear = changes === ANOTHER ? expected : `acme-client,acme-client-secret,${expected}`;
    expect(await read(later)).toEqual([clear, "acme-client,another-secret"].sort());
    const { clientSecret: __, ...visible } = { clientSecret: "", ...changes };
    expect(await list(later, id)).toMatchObject([
      { providerId: "github", readable: true },
      { providerId: "google", readable: true, ...visible },
    ]);
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
    const { quote, query } = database;
    const spoil = (providerId: string, column: string, value: string) => {
      const set = `update ${quote("tenantOauthConfig")} set ${quote(column)} = ?`;
      return query(`${set} where ${quote("providerId")} = ?`, [value, providerId]);
    };
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

  it("does not disturb a sign-in on its way", async () => {
    const { open } = await createHistory(kind);
    const idp = await startIdentityProvider();
    idp.registerClient("acme-client", "acme-client-secret");
    idp.addPerson("alice");
    const global = { clientId: "global", clientSecret: "global", issuer: idp.issuer };
    const socialProviders = { gitlab: global };
    const before = await open({ ...secrets(1), socialProviders });
    const { id: tenantId } = await before.createTenant();
    await register(before, tenantId, { providerId: "gitlab" });
    const { api, browser } = await open({ ...secrets(2, 1), socialProviders });
    const comeBack = async (onTheWay: () => Promise<unknown>) => {
      const person = browser();
      const start = { tenantId, provider: "gitlab", callbackURL: "/welcome" };
      const { data } = await person.post<{ url: string }>("/tenant/sign-in/social", start);
      const way = await idp.authorize(data.url, "alice");
      await onTheWay();
      return (await person.get(way)).location;
    };
    expect(await comeBack(() => api.rotateTenantOAuthSecrets())).toBe("/welcome");
    // Control: a change of the config does.
    const body = { tenantId, providerId: "gitlab", scopes: ["api"] };
    const location = await comeBack(() => api.updateTenantOAuthConfig({ body }));
    expect(queryOf(location).error).toBe("state_mismatch");
  });
});
