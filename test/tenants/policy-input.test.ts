import { magicLink } from "better-auth/plugins";
import { describe, expect, it, vi } from "vitest";
import type { TenantPolicy } from "../../src/index";
import { PASSWORD } from "../support/instance";
import { shareInstance } from "../support/shared";
import { createWays, STORES } from "./ways-in";

const shared = shareInstance({
  plugins: [magicLink({ sendMagicLink: async () => {} })],
  auth: {
    socialProviders: { google: { clientId: "id", clientSecret: "secret" } },
    session: { expiresIn: 3600 },
  },
});

const GOOD: TenantPolicy[] = [
  { signUp: "open" },
  { signUp: "invited", emailDomains: ["acme.com", "acme.co.uk"] },
  { methods: ["password", "social", "social:google", "magic-link"] },
  { password: { minLength: 12 }, session: { expiresIn: 600 } },
];

const BAD: [policy: unknown, message: RegExp][] = [
  [{ signup: "closed" }, /\[body\.policy\] Unrecognized key: "signup"/],
  [{ password: { minLenght: 12 } }, /\[body\.policy\.password\] Unrecognized key: "minLenght"/],
  [{ session: { expiresin: 60 } }, /Unrecognized key/],
  [{ signUp: "never" }, /policy\.signUp/],
  [{ emailDomains: [] }, /policy\.emailDomains/],
  [{ emailDomains: ["@acme.com"] }, /policy\.emailDomains\.0/],
  [{ emailDomains: ["acme"] }, /expected a domain/],
  [{ emailDomains: ["*.acme.com"] }, /expected a domain/],
  [{ emailDomains: "acme.com" }, /policy\.emailDomains/],
  [{ methods: [] }, /policy\.methods/],
  [{ methods: ["passwort"] }, /unknown method/],
  [{ methods: ["social:"] }, /unknown method/],
  [{ methods: ["toString"] }, /unknown method/],
  [{ methods: ["passkey"] }, /passkey is not set up/],
  [{ methods: ["sso"] }, /sso is not set up/],
  [{ methods: ["social:github"] }, /social:github is not set up/],
  [{ password: { minLength: 7 } }, /policy\.password\.minLength/],
  [{ password: { minLength: 129 } }, /policy\.password\.minLength/],
  [{ session: { expiresIn: 3601 } }, /policy\.session\.expiresIn/],
  [{ session: { expiresIn: 0 } }, /policy\.session\.expiresIn/],
  ["closed", /policy/],
  [["closed"], /policy/],
];

describe("what a policy may say", () => {
  it.each(GOOD.map((policy) => [JSON.stringify(policy), policy] as const))(
    "%s",
    async (_, policy) => {
      const { instance, operator } = shared;
      const { id: tenantId } = await instance.createTenant();
      const updated = await operator.post("/tenant/update", { tenantId, policy });
      expect([updated.status, updated.data.policy]).toEqual([200, policy]);
      const got = await operator.get("/tenant/get", { query: { id: tenantId } });
      expect(got.data.policy).toEqual(policy);
      const name = crypto.randomUUID();
      const created = await operator.post("/tenant/create", { name, slug: name, policy });
      expect([created.status, created.data.policy]).toEqual([200, policy]);
      const cleared = await operator.post("/tenant/update", { tenantId, policy: null });
      expect([cleared.status, cleared.data.policy]).toEqual([200, null]);
    },
  );

  it.each(BAD.map(([policy, message]) => [JSON.stringify(policy), policy, message] as const))(
    "not %s",
    async (_, policy, message) => {
      const { instance, operator } = shared;
      const { id: tenantId } = await instance.createTenant();
      const slug = crypto.randomUUID();
      for (const answer of [
        await operator.post("/tenant/update", { tenantId, policy }),
        await operator.post("/tenant/create", { name: slug, slug, policy }),
      ]) {
        expect([answer.status, answer.code]).toEqual([400, "VALIDATION_ERROR"]);
        expect(answer.data.message).toMatch(message);
      }
      expect((await instance.api.getTenant({ query: { id: tenantId } })).policy).toBeNull();
      expect(await instance.rows("tenant", "slug = ?", [slug])).toBe(0);
    },
  );

  it("domains in lower case, each once; nothing at all is no policy", async () => {
    const { instance } = shared;
    const { id: tenantId } = await instance.createTenant();
    const policy: TenantPolicy = { emailDomains: ["Acme.com", "acme.COM"] };
    const changed = await instance.api.updateTenant({ body: { tenantId, policy } });
    expect(changed.policy).toEqual({ emailDomains: ["acme.com"] });
    expect((await instance.api.updateTenant({ body: { tenantId, policy: {} } })).policy).toBeNull();
  });

  it("a provider that the tenant has set up itself is there", async () => {
    const { instance } = shared;
    const { id: tenantId } = await instance.createTenant();
    const client = { providerId: "github", clientId: "id", clientSecret: "secret" };
    await instance.api.registerTenantOAuthConfig({ body: { tenantId, ...client } });
    const policy: TenantPolicy = { methods: ["social:github"] };
    const changed = await instance.api.updateTenant({ body: { tenantId, policy } });
    expect(changed.policy).toEqual(policy);
  });

  it("one that the tenant has switched off is not", async () => {
    const { instance } = shared;
    const { id: tenantId } = await instance.createTenant();
    const client = { providerId: "github", clientId: "id", clientSecret: "secret" };
    await instance.api.registerTenantOAuthConfig({ body: { tenantId, ...client, enabled: false } });
    const policy: TenantPolicy = { methods: ["social:github"] };
    const change = instance.api.updateTenant({ body: { tenantId, policy } });
    await expect(change).rejects.toMatchObject({ body: { code: "VALIDATION_ERROR" } });
  });
});

describe("what a policy does besides", () => {
  it("sign-in-methods answers what it allows, and not the policy", async () => {
    const { at, setPolicy, tenantId } = await createWays("the database");
    const methods = async () =>
      (await at().get<object>("/tenant/sign-in-methods", { query: { tenantId } })).data;
    expect(await methods()).toMatchObject({ emailAndPassword: { enabled: true, signUp: true } });
    await setPolicy({ methods: ["social:gitlab"] });
    expect(await methods()).toMatchObject({
      emailAndPassword: { enabled: false, signUp: false },
      providers: [{ id: "gitlab" }],
    });
    await setPolicy({ signUp: "invited", methods: ["password"] });
    expect(await methods()).toMatchObject({
      emailAndPassword: { enabled: true, signUp: false },
      providers: [],
    });
    expect(JSON.stringify(await methods())).not.toContain("polic");
  });

  it("a password has the length that it says, wherever one is set", async () => {
    const { at, setPolicy, person } = await createWays("the database");
    await setPolicy({ password: { minLength: 30 } });
    const body = { name: "New", email: "new@example.com", password: PASSWORD };
    const signUp = await at().post("/sign-up/email", body);
    expect([signUp.status, signUp.code]).toEqual([400, "PASSWORD_TOO_SHORT"]);
    const change = { currentPassword: PASSWORD, newPassword: "short of thirty" };
    const changed = await person.browser.post("/change-password", change);
    expect([changed.status, changed.code]).toEqual([400, "PASSWORD_TOO_SHORT"]);
    const unnamed = await person.browser.fork({}).post("/change-password", change);
    expect([unnamed.status, unnamed.code]).toEqual([400, "PASSWORD_TOO_SHORT"]);
    // Whoever has a shorter one still signs in.
    expect((await at().post("/sign-in/email", person)).status).toBe(200);
    const long = "a password of more than thirty characters";
    expect((await at().post("/sign-up/email", { ...body, password: long })).status).toBe(200);
  });

  it.each(STORES)("a session ends when it says: sessions in %s", async (store) => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
    try {
      const { at, setPolicy, person } = await createWays(store, { updateAge: 60 });
      await setPolicy({ session: { expiresIn: 600 } });
      const browser = at();
      await browser.post("/sign-in/email", person);
      const left = async () => {
        const { data } = await browser.get<{ session: { expiresAt: string } } | null>(
          "/get-session",
        );
        return data && (new Date(data.session.expiresAt).getTime() - Date.now()) / 1000;
      };
      expect(await left()).toBeLessThanOrEqual(600);
      vi.setSystemTime(Date.now() + 300_000);
      // Prolonged, as better-auth does, and no further than the policy says.
      const later = await left();
      if (store !== "stateless") expect(later).toBeGreaterThan(590);
      expect(later).toBeLessThanOrEqual(600);
      vi.setSystemTime(Date.now() + 601_000);
      expect(await left()).toBeNull();
    } finally {
      vi.useRealTimers();
    }
  });

  it.each(["the database", "secondary storage"] as const)(
    "sessions stay when it changes, unless the update ends them: %s",
    async (store) => {
      const { setPolicy, person, api, tenantId, settle } = await createWays(store);
      const other = await settle();
      const isIn = async ({ browser }: typeof other) =>
        (await browser.get<object | null>("/get-session")).data !== null;
      await setPolicy({ methods: ["passkey"], signUp: "closed" });
      expect([await isIn(person), await isIn(other)]).toEqual([true, true]);
      await api.updateTenant({ body: { tenantId, policy: null, endSessions: true } });
      expect([await isIn(person), await isIn(other)]).toEqual([false, false]);
    },
  );

  it("counts at once in this process, and within ten seconds in another", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
    try {
      const { at, setPolicy, person, database, tenantId } = await createWays("the database");
      const signIn = async () => (await at().post("/sign-in/email", person)).status;
      expect(await signIn()).toBe(200);
      await setPolicy({ methods: ["passkey"] });
      expect(await signIn()).toBe(403);
      await database.query("update tenant set policy = null where id = ?", [tenantId]);
      expect(await signIn()).toBe(403);
      vi.setSystemTime(Date.now() + 10_001);
      expect(await signIn()).toBe(200);
    } finally {
      vi.useRealTimers();
    }
  });
});
