import { symmetricDecrypt } from "better-auth/crypto";
import { describe, expect, it } from "vitest";
import { crowdOn, databases } from "../../support/database";
import { BASE_URL } from "../../support/instance";
import { outcome, shareWorld } from "../../support/world";
import { type ConfigAnswer, createOAuthTenant, tenantOfEachTest } from "./tenant";

const GOOGLE = { providerId: "google", clientId: "acme-client", clientSecret: "acme-secret" };
const FULL = {
  ...GOOGLE,
  scopes: ["openid", "https://www.googleapis.com/auth/drive.file", 'a "quoted, one"'],
  redirectURI: "https://acme.example/back?from=google",
  options: { hd: "acme.example", prompt: "login" },
};
const CALLBACK = `${BASE_URL}/tenant/callback/google`;
const NOT_FOUND = [404, "OAUTH_CONFIG_NOT_FOUND"];

describe.each(databases)("on %s", (kind) => {
  const world = shareWorld({}, kind);
  const acme = tenantOfEachTest(world);
  const open = async (column: "clientId" | "clientSecret") => {
    const [row] = await acme.stored();
    return symmetricDecrypt({ key: world.context.secretConfig, data: String(row?.[column]) });
  };
  const statusesOf = (answers: { status: number }[]) => new Set(answers.map((one) => one.status));

  describe("register", () => {
    it("answers the config, with defaults, with exactly its fields and without the secret", async () => {
      const before = Date.now() - 1000;
      const { status, data } = await acme.register(GOOGLE);
      const { createdAt } = data;
      expect(status).toBe(200);
      expect(data).toEqual({
        id: expect.stringMatching(/\S/),
        tenantId: acme.id,
        providerId: "google",
        clientId: "acme-client",
        scopes: null,
        redirectURI: null,
        callbackURL: CALLBACK,
        enabled: true,
        options: null,
        readable: true,
        secretChangedAt: createdAt,
        createdAt,
        updatedAt: createdAt,
      });
      expect(Date.parse(createdAt)).toBeGreaterThan(before);
      expect(await acme.list()).toEqual([data]);
    });

    it("keeps every field, and replaces the config of the same pair as a whole", async () => {
      const { data: first } = await acme.register({ ...FULL, enabled: false });
      const { clientSecret: _, ...visible } = FULL;
      expect(first).toMatchObject({ ...visible, enabled: false });
      expect(await acme.list()).toEqual([first]);
      const { data: second } = await acme.register({ ...GOOGLE, clientId: "another-client" });
      const { updatedAt } = second;
      const usual = { scopes: null, redirectURI: null, callbackURL: CALLBACK, options: null };
      const changed = { clientId: "another-client", enabled: true, ...usual };
      expect(second).toEqual({ ...first, ...changed, updatedAt });
      expect(Date.parse(updatedAt)).toBeGreaterThanOrEqual(Date.parse(first.updatedAt));
      expect(await acme.list()).toEqual([second]);
      // An empty list of scopes is not none.
      expect((await acme.register({ ...GOOGLE, scopes: [] })).data.scopes).toEqual([]);
      expect((await acme.list())[0]?.scopes).toEqual([]);
    });

    it("takes any built-in provider, and lists the oldest first", async () => {
      const given = [];
      for (const providerId of ["zoom", "vercel", "google", "github", "atlassian"]) {
        given.push((await acme.register({ ...GOOGLE, providerId })).data);
      }
      const byTime = (a: ConfigAnswer, b: ConfigAnswer) => a.createdAt.localeCompare(b.createdAt);
      const listed = await acme.list();
      expect(listed).toEqual(listed.toSorted(byTime));
      expect(listed).toEqual(expect.arrayContaining(given));
    });
  });

  it("delete deletes one config and no other, once, and the pair can be registered again", async () => {
    const globex = await createOAuthTenant(world);
    await acme.register(GOOGLE);
    const github = await acme.register({ ...GOOGLE, providerId: "github" });
    const theirs = await globex.register(GOOGLE);
    expect(await acme.remove("google")).toMatchObject({ status: 200, data: { success: true } });
    expect([await acme.list(), await globex.list()]).toEqual([[github.data], [theirs.data]]);
    expect(outcome(await acme.remove("google"))).toEqual(NOT_FOUND);
    expect((await acme.register(GOOGLE)).status).toBe(200);
    await (await world.operator()).post("/tenant/delete", { tenantId: acme.id });
    expect([await acme.stored(), await globex.list()]).toEqual([[], [theirs.data]]);
  });

  describe("update", () => {
    const update = (changes: object) => acme.update({ providerId: "google", ...changes });

    it.each<Partial<ConfigAnswer>>([
      { redirectURI: "https://acme.example/other" },
      { redirectURI: null, options: null, scopes: null },
      { options: {}, scopes: [] },
      { enabled: false, scopes: ["openid"], options: { accessType: "offline" } },
      {},
    ])("changes %j, and leaves the rest, the secret and other configs too", async (changes) => {
      const globex = await createOAuthTenant(world);
      const others = [
        await globex.register(FULL),
        await acme.register({ ...GOOGLE, providerId: "github" }),
      ];
      const { data: before } = await acme.register(FULL);
      const cipher = (await acme.stored()).map(({ clientSecret }) => clientSecret);
      const { status, data } = await update(changes);
      expect(status).toBe(200);
      const { redirectURI = before.redirectURI } = changes;
      const callbackURL = redirectURI ?? CALLBACK;
      expect(data).toEqual({ ...before, ...changes, callbackURL, updatedAt: data.updatedAt });
      expect(Date.parse(data.updatedAt)).toBeGreaterThanOrEqual(Date.parse(before.updatedAt));
      expect((await acme.stored()).map(({ clientSecret }) => clientSecret)).toEqual(cipher);
      const listed = [...(await globex.list()), ...(await acme.list())];
      expect(listed).toEqual(expect.arrayContaining([data, ...others.map((other) => other.data)]));
    });

    it("takes a new secret alone, and notes when, as register does", async () => {
      const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
      const { data: first } = await acme.register(FULL);
      await pause();
      const clientSecret = "the-next-secret";
      const { data } = await update({ clientSecret });
      const { secretChangedAt, updatedAt } = data;
      expect(data).toEqual({ ...first, secretChangedAt, updatedAt });
      expect(Date.parse(secretChangedAt)).toBeGreaterThan(Date.parse(first.secretChangedAt));
      expect(await open("clientSecret")).toBe(clientSecret);
      expect(await open("clientId")).toBe(GOOGLE.clientId);
      // The same secret once more, and whatever else is changed, is no change of it.
      await pause();
      await update({ clientSecret });
      await update({ enabled: false, options: null });
      await acme.register({ ...GOOGLE, clientSecret, clientId: "another", scopes: ["openid"] });
      expect((await acme.list())[0]?.secretChangedAt).toBe(secretChangedAt);
      const { data: last } = await acme.register({ ...GOOGLE, clientSecret: "the-last-secret" });
      expect(Date.parse(last.secretChangedAt)).toBeGreaterThan(Date.parse(secretChangedAt));
    });
  });

  describe("what cannot be read any more", () => {
    it.each(["clientId", "clientSecret", "options"])(
      "in the %s is listed as such, beside the others, and can be switched off",
      async (column) => {
        await acme.register(FULL);
        await acme.spoil(column, "broken");
        const { data: github } = await acme.register({ ...GOOGLE, providerId: "github" });
        const unreadable = { readable: false, clientId: null, options: null };
        const google = { providerId: "google", scopes: FULL.scopes, ...unreadable };
        expect(await acme.list()).toMatchObject([google, github]);
        const { status, data } = await acme.update({ providerId: "google", enabled: false });
        expect([status, data]).toMatchObject([200, { enabled: false, ...unreadable }]);
      },
    );

    it("a row from before the change of a secret was noted has an answer", async () => {
      const { data } = await acme.register(GOOGLE);
      const { query, quote } = world.database;
      const table = quote("tenantOauthConfig");
      await query(`update ${table} set ${quote("secretChangedAt")} = null`);
      expect((await acme.list())[0]?.secretChangedAt).toBe(data.createdAt);
    });
  });

  describe("races:", () => {
    const atOnce = <T>(count: number, run: (index: number) => Promise<T>) =>
      Promise.all(Array.from({ length: count }, (_, index) => run(index)));

    it("threat: many registrations of one pair leave one config, and a whole one", async () => {
      const answers = await atOnce(crowdOn(kind), (i) =>
        acme.register({
          ...GOOGLE,
          clientId: `client-${i}`,
          clientSecret: `secret-of-client-${i}`,
          scopes: [`scope-${i}`],
          redirectURI: `https://example.com/${i}`,
          enabled: i % 2 === 0,
        }),
      );
      expect(statusesOf(answers)).toEqual(new Set([200]));
      expect(new Set(answers.map(({ data }) => data.id)).size).toBe(1);
      const configs = await acme.list();
      const i = Number(configs[0]?.clientId?.slice("client-".length));
      const redirectURI = `https://example.com/${i}`;
      expect(configs).toMatchObject([
        { scopes: [`scope-${i}`], redirectURI, enabled: i % 2 === 0 },
      ]);
      expect(await open("clientSecret")).toBe(`secret-of-client-${i}`);
    }, 60_000);

    it("of many deletions one says it did it; an update is done or finds nothing", async () => {
      await acme.register(GOOGLE);
      const [deletions, updates] = await Promise.all([
        atOnce(6, () => acme.remove("google")),
        atOnce(6, () => acme.update({ providerId: "google", options: { hd: "*" } })),
      ]);
      const done = deletions.filter(({ status }) => status === 200);
      expect(done).toHaveLength(1);
      for (const answer of [...deletions, ...updates]) {
        if (answer.status !== 200) expect(outcome(answer)).toEqual(NOT_FOUND);
      }
      expect(await acme.list()).toEqual([]);
    });
  });
});
