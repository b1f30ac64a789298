import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import type { Answer } from "../support/browser";
import { databases, type TestDatabase } from "../support/database";
import { PASSWORD } from "../support/instance";
import { expectRefused, type OAuthTenant, outcome, queryOf, shareWorld } from "../support/world";

const SECRET = "a test secret that is long enough for everybody";
const GLOBAL = { clientId: "global-client", clientSecret: "global-client-secret" };
const GOOGLE = { providerId: "google", clientId: "tenant-client", clientSecret: "tenant-secret" };
const GITHUB = { ...GOOGLE, providerId: "github", clientId: "tenant-github" };
const FAILED = "OAUTH_CREDENTIAL_DECRYPT_FAILED";

describe.each(databases)("on %s", (kind) => {
  const world = shareWorld({ auth: { socialProviders: { google: GLOBAL } } }, kind);
  let acme: OAuthTenant;

  beforeEach(async () => {
    acme = await world.oauthTenant();
  });

  const clientOf = ({ data }: Answer<{ url: string }>) => queryOf(data.url).client_id;
  const states = () => world.rows("verification");

  describe("at rest", () => {
    it("there is cipher text only, which the auth secret decrypts, another one each time", async () => {
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
      expect(JSON.stringify(row)).not.toMatch(/tenant-client|acme\.example|acme-phone|hd/);
      const open = (column: string, key = SECRET) =>
        symmetricDecrypt({ key, data: String(row?.[column]) });
      expect(await open("clientId")).toBe(clientId);
      expect(await open("clientSecret")).toBe(GOOGLE.clientSecret);
      expect(JSON.parse(await open("options"))).toEqual(options);
      await expect(open("clientSecret", "another secret")).rejects.toThrow();
    });
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
    });

    it.each(["clientId", "clientSecret"])("stop it when only the %s is broken", async (column) => {
      await acme.register(GOOGLE);
      for (const broken of ["", "not cipher text", "00ff", "$ba$9$00ff"]) {
        await acme.spoil(column, broken);
        expect(outcome(await acme.start("google"))).toEqual([500, FAILED]);
      }
    });

    it("harm no other provider, no other tenant and not the platform", async () => {
      await loseSecret();
      await acme.register(GITHUB);
      expect(clientOf(await acme.start("github"))).toBe("tenant-github");
      const globex = await world.oauthTenant();
      expect(clientOf(await globex.start("google"))).toBe("global-client");
      const body = { provider: "google" };
      const platform = await world.browser().post<{ url: string }>("/sign-in/social", body);
      expect(clientOf(platform)).toBe("global-client");
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

  it("a new client is used by the next call of the server's own code, wherever it comes from", async () => {
    const body = { tenantId: acme.id, provider: "google" };
    const start = async () =>
      queryOf((await world.api.signInSocialTenant({ body })).url ?? "").client_id;
    await acme.register({ ...GOOGLE, clientId: "first-client" });
    expect([await start(), await start()]).toEqual(["first-client", "first-client"]);
    await acme.register({ ...GOOGLE, clientId: "second-client" });
    // Inside of one request as well.
    const seen = await runInTenant(acme.id, async () => {
      const before = await start();
      const next = { ...GOOGLE, tenantId: acme.id, clientId: "third-client" };
      await world.api.registerTenantOAuthConfig({ body: next });
      return [before, await start()];
    });
    expect(seen).toEqual(["second-client", "third-client"]);
  });

  // Every test has a spy for secrets and cipher text in answers, logs and on the console. These
  // give it much to listen to, and look where it does not.
  describe("threat: secrets leak", () => {
    /** A value with everything that a serializer of errors would dig out of it. */
    function everything(value: unknown): string {
      if (!(value instanceof Error)) return JSON.stringify(value) ?? String(value);
      const own = Object.getOwnPropertyNames(value).map((name) =>
        everything((value as unknown as Record<string, unknown>)[name]),
      );
      return [value.name, ...own].join(" ");
    }
    const thrownBy = async (call: Promise<unknown>) => {
      const thrown = await call.catch((error: unknown) => error);
      expect(thrown).toBeInstanceOf(Error);
      return everything(thrown);
    };

    it("no endpoint shows one when all goes well, and no state of a flow", async () => {
      await acme.register(GOOGLE);
      await acme.register({ ...GOOGLE, clientSecret: `${GOOGLE.clientSecret}-2` });
      const operator = await world.operator();
      const tenantId = acme.id;
      const email = { email: "a@example.com", password: PASSWORD, name: "A", tenantId };
      const person = world.browser();
      const link = { provider: "google", callbackURL: "/" };
      const answers: Answer<unknown>[] = [
        await operator.get("/tenant/oauth-config/list", { query: { tenantId } }),
        await operator.get("/tenant/get", { query: { id: tenantId } }),
        await operator.get("/tenant/list"),
        await operator.post("/tenant/update", { tenantId, name: "New" }),
        await person.post("/tenant/sign-up/email", email),
        await person.get("/get-session"),
        await person.post("/tenant/sign-in/email", email),
        await acme.start("google"),
        await person.post("/link-social", link),
      ];
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
      const [row] = await acme.stored();
      const rows = JSON.stringify(await world.rowsIn(acme.id, "verification"));
      expect(rows).toContain("google");
      for (const secret of [GOOGLE.clientSecret, row?.clientId, row?.clientSecret]) {
        expect(rows.includes(String(secret))).toBe(false);
      }
      answers.push(
        await acme.remove("google"),
        await operator.post("/tenant/delete", { tenantId }),
      );
      expect(answers.slice(-2).map(({ status }) => status)).toEqual([200, 200]);
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
