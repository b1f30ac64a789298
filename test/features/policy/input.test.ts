import { magicLink, oneTap } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { TenantPolicy } from "../../../src/index";
import { fakeGoogleAndGitHub, googleIdToken } from "../../support/providers";
import { createWorld, outcome, shareWorld } from "../../support/world";

const client = { clientId: "id", clientSecret: "secret" };
const world = shareWorld({
  plugins: [magicLink({ sendMagicLink: async () => {} })],
  auth: { socialProviders: { google: client }, session: { expiresIn: 3600 } },
  tenant: { tenantRoles: { admin: ["policy:update"] } },
});

const GOOD: TenantPolicy[] = [
  { signUp: "open" },
  { signUp: "invited", emailDomains: ["acme.com", "acme.co.uk"] },
  { methods: ["password", "social", "social:google", "magic-link"] },
  { password: { minLength: 12 }, session: { expiresIn: 600 } },
];

const BAD: [message: RegExp, ...policies: unknown[]][] = [
  [/\[body\.policy\] Unrecognized key: "signup"/, { signup: "closed" }],
  [/policy\.password\] Unrecognized key: "minLenght"/, { password: { minLenght: 12 } }],
  [/Unrecognized key/, { session: { expiresin: 60 } }],
  [/policy\.signUp/, { signUp: "never" }],
  [/policy\.emailDomains/, { emailDomains: [] }, { emailDomains: "acme.com" }],
  [/policy\.emailDomains\.0/, { emailDomains: ["@acme.com"] }],
  [/expected a domain/, { emailDomains: ["acme"] }, { emailDomains: ["*.acme.com"] }],
  [/policy\.methods/, { methods: [] }],
  [/unknown method/, { methods: ["passwort"] }, { methods: ["social:"] }],
  [/unknown method/, { methods: ["toString"] }],
  [/(passkey|sso) is not set up/, { methods: ["passkey"] }, { methods: ["sso"] }],
  [/social:github is not set up/, { methods: ["social:github"] }],
  [/policy\.password\.minLength/, { password: { minLength: 7 } }, { password: { minLength: 129 } }],
  [/policy\.session\.expiresIn/, { session: { expiresIn: 3601 } }, { session: { expiresIn: 0 } }],
  [
    /expected a duration in seconds/,
    { session: { expiresIn: "1d" } },
    { session: { expiresIn: 1.5 } },
  ],
  [/policy/, "closed", ["closed"]],
];

describe("what a policy may say", () => {
  it.each(GOOD.map((policy) => ({ policy })))("$policy", async ({ policy }) => {
    const { id: tenantId } = await world.createTenant();
    const operator = await world.operator();
    const slug = crypto.randomUUID();
    const answers = [
      await operator.post("/tenant/update", { tenantId, policy }),
      await operator.get("/tenant/get", { query: { id: tenantId } }),
      await operator.post("/tenant/create", { name: slug, slug, policy }),
    ];
    for (const { status, data } of answers) expect([status, data.policy]).toEqual([200, policy]);
    const cleared = await operator.post("/tenant/update", { tenantId, policy: null });
    expect([cleared.status, cleared.data.policy]).toEqual([200, null]);
  });

  it.each(BAD)("not what is answered with %s", async (message, ...policies) => {
    const operator = await world.operator();
    await world.unchanged(async () => {
      for (const policy of policies) {
        for (const answer of [
          await operator.post("/tenant/update", { tenantId: world.ids.acme, policy }),
          await operator.post("/tenant/create", { name: "New", slug: "new", policy }),
        ]) {
          expect(outcome(answer)).toEqual([400, "VALIDATION_ERROR"]);
          expect(answer.data.message).toMatch(message);
        }
      }
    });
  });

  it("domains in lower case, each once; nothing at all is no policy", async () => {
    const { id } = await world.createTenant();
    const changed = await world.change(id, { policy: { emailDomains: ["Acme.com", "acme.COM"] } });
    expect(changed.policy).toEqual({ emailDomains: ["acme.com"] });
    expect((await world.change(id, { policy: {} })).policy).toBeNull();
  });

  it("a provider that the tenant has set up itself, unless it is switched off", async () => {
    const { id: tenantId } = await world.createTenant();
    const config = { tenantId, providerId: "github", ...client };
    await world.api.registerTenantOAuthConfig({ body: { ...config, enabled: false } });
    const policy: TenantPolicy = { methods: ["social:github"] };
    const early = world.change(tenantId, { policy });
    await expect(early).rejects.toMatchObject({ body: { code: "VALIDATION_ERROR" } });
    await world.api.registerTenantOAuthConfig({ body: { ...config, enabled: true } });
    expect((await world.change(tenantId, { policy })).policy).toEqual(policy);
  });
});

it("a tenant's administrator loosens a policy down to the application's limits", async () => {
  const tenant = await world.createTenant();
  const admin = await world.join(tenant.id, "admin");
  const set = async (minLength: number, expiresIn: number) => {
    const policy = { password: { minLength }, session: { expiresIn } };
    return (await admin.post("/tenant/update", { policy })).status;
  };
  expect(await set(20, 600)).toBe(200);
  expect(await set(8, 3600)).toBe(200);
  expect([await set(7, 3600), await set(8, 3601)]).toEqual([400, 400]);
});

it("warns of domains whose addresses users with a password cannot verify", async () => {
  const warnings = async (sendVerificationEmail: undefined | (() => Promise<void>)) => {
    const { change, logs } = await createWorld({
      auth: { emailVerification: { sendVerificationEmail } },
    });
    await change("acme", { policy: { emailDomains: ["acme.com"] } });
    return logs.filter((line) => /^warn.*emailDomains/.test(line)).length;
  };
  expect([await warnings(undefined), await warnings(async () => {})]).toEqual([1, 0]);
});

it("an administrator who comes by One Tap, with a client of its own, comes by Google", async () => {
  fakeGoogleAndGitHub();
  const { at, ids, setRole, ...own } = await createWorld({
    tenant: { tenantRoles: { admin: ["policy:update"] } },
    auth: { socialProviders: { github: client } },
    plugins: [oneTap({ clientId: "one-tap" })],
  });
  const admin = at("acme");
  await admin.post("/one-tap/callback", { idToken: googleIdToken({ aud: "one-tap" }) });
  await setRole(String((await own.whoIs(admin))?.id), "admin");
  for (const methods of [["social"], ["social:google"]]) {
    const { status } = await admin.post("/tenant/update", {
      tenantId: ids.acme,
      policy: { methods },
    });
    expect([methods, status]).toEqual([methods, 200]);
  }
});

it("POLICY_LOCKS_OUT: not a policy under which they could not sign in again themselves", async () => {
  const { ids, database } = world;
  const admin = await world.join("acme", "admin");
  const set = async (policy: object) =>
    (await admin.post("/tenant/update", { policy })).code ?? "set";
  expect(await set({ methods: ["social:google"] })).toBe("POLICY_LOCKS_OUT");
  expect(await set({ emailDomains: ["example.com"] })).toBe("POLICY_LOCKS_OUT");
  expect((await world.api.getTenant({ query: { slug: "acme" } })).policy).toBeNull();
  expect(await set({ methods: ["password", "social:google"] })).toBe("set");
  // Nobody knows whether they read the mails of that address: a phone's is made up, for one.
  expect(await set({ methods: ["magic-link"] })).toBe("POLICY_LOCKS_OUT");
  expect(await set({ emailDomains: ["elsewhere.com"] })).toBe("set");
  const link = (providerId: string) =>
    database.query(
      `insert into account (id, "accountId", "providerId", "userId", "tenantId", "createdAt", "updatedAt") values (?, 'g', ?, ?, ?, 1, 1)`,
      [providerId, providerId, admin.id, ids.acme],
    );
  // Of a provider that the application does not have any more, and the tenant has switched off.
  await link("gitlab");
  const config = { tenantId: ids.acme, providerId: "gitlab", ...client };
  for (const enabled of [false, true]) {
    await world.api.registerTenantOAuthConfig({ body: { ...config, enabled } });
    expect(await set({ methods: ["social"] })).toBe(enabled ? "set" : "POLICY_LOCKS_OUT");
  }
  await link("google");
  expect(await set({ methods: ["social:google"] })).toBe("set");
  await database.query('update "user" set "emailVerified" = 1 where id = ?', [admin.id]);
  expect(await set({ methods: ["magic-link"] })).toBe("set");
  expect(await set({ methods: ["password"], emailDomains: ["example.com"] })).toBe("set");
  expect((await world.signIn("acme", admin.email)).status).toBe(200);
  // Operators and the server have their own way in.
  const policy = { methods: ["social:google"] };
  const operator = await world.operator();
  const forced = await operator.post("/tenant/update", { tenantId: ids.acme, policy });
  expect(forced.status).toBe(200);
});
