import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import { tenantInvitations } from "../../src/invitations/index";
import { databases } from "../support/database";
import { PASSWORD } from "../support/instance";
import { expectRefused, outcome } from "../support/world";
import { ADA, CLIENT_SECRET, type SSOWorld, shareSSOWorld } from "./sso-world";

interface Methods {
  emailAndPassword: { enabled: boolean };
  sso: { id: string }[];
}

const methodsOf = async (world: SSOWorld, tenantId: string) =>
  (await world.at("platform").get<Methods>("/tenant/sign-in-methods", { query: { tenantId } }))
    .data;

describe.each(databases)("identity providers in the database, on %s", (database) => {
  const tenantRoles = { admin: ["sso:*" as const, "policy:update" as const] };
  const world = shareSSOWorld(
    {
      plugins: (send) => [magicLink({ sendMagicLink: send("link") })],
      tenant: { scopedModels: ["ssoProvider"], tenantRoles },
    },
    database,
  );

  it("have ids that are unique across all tenants, and the answer says what to do", async () => {
    await world.register("acme", "okta");
    for (const place of ["globex", "platform"]) {
      const admin = await world.as("admin", place);
      const taken = await admin.post("/sso/register", world.oidc("okta"));
      expectRefused(taken, 422, "VALUE_TAKEN");
      expect(taken.data.message).toContain('as in "acme-okta"');
    }
  });

  it("are made once when two tenants ask for the same id at the same time", async () => {
    const admins = [await world.as("admin", "acme"), await world.as("admin", "globex")];
    const body = world.oidc("raced");
    const answers = await Promise.all(admins.map((admin) => admin.post("/sso/register", body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422]);
    const made = await Promise.all(
      ["acme", "globex"].map((place) => world.rowsIn(place, "ssoProvider")),
    );
    expect(made.flat().filter(({ providerId }) => providerId === "raced")).toHaveLength(1);
  });

  it("are encrypted, rotated, changed and deleted", async () => {
    const { id, providerId, admin } = await world.newTenant();
    expect(JSON.stringify(await world.everything())).not.toContain(CLIENT_SECRET);
    const plain = JSON.stringify({ clientId: "x", clientSecret: CLIENT_SECRET });
    const { quote } = world.database;
    await world.database.query(
      `update ${quote("ssoProvider")} set ${quote("oidcConfig")} = ? where ${quote("providerId")} = ?`,
      [plain, providerId],
    );
    expect(await world.api.rotateTenantOAuthSecrets()).toMatchObject({ rotated: 1, unreadable: 0 });
    expect(await world.api.rotateTenantOAuthSecrets()).toMatchObject({ rotated: 0, unreadable: 0 });
    expect(JSON.stringify(await world.everything())).not.toContain(CLIENT_SECRET);
    const update = { providerId, domain: "new.example" };
    const changed = await admin.post("/sso/update-provider", update);
    expect(changed.data).toMatchObject({ domain: "new.example" });
    expect((await admin.post("/sso/delete-provider", { providerId })).status).toBe(200);
    expect(await world.rowsIn(id, "ssoProvider")).toEqual([]);
  });

  it("are told to sign-in pages of their tenant, if the policy allows it", async () => {
    const { id, providerId } = await world.newTenant();
    const { id: other } = await world.createTenant();
    expect((await methodsOf(world, id)).sso).toEqual([{ id: providerId }]);
    expect((await methodsOf(world, other)).sso).toEqual([]);
    await world.change(id, { policy: { methods: ["password"] } });
    expect((await methodsOf(world, id)).sso).toEqual([]);
    const refused = await world.start(id, providerId);
    expect(outcome(refused)).toEqual([403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
  });

  it('let nobody in by anything else where the policy says methods: ["sso"]', async () => {
    const { id, providerId } = await world.newTenant();
    const { email } = await world.signUp(id);
    await world.at(id).post("/sign-in/magic-link", { email });
    const { url } = world.lastMail("link");
    await world.change(id, { policy: { methods: ["sso"] } });
    expect((await methodsOf(world, id)).emailAndPassword.enabled).toBe(false);
    for (const [path, body] of [
      ["/sign-in/email", { email, password: PASSWORD }],
      ["/sign-up/email", { email: "new@acme.example", password: PASSWORD, name: "New" }],
      ["/sign-in/magic-link", { email }],
    ] as const) {
      const refused = await world.at(id).post(path, body);
      expectRefused(refused, 403, "SIGN_IN_METHOD_NOT_ALLOWED");
    }
    expect(world.lastMail("link").url).toBe(url);
    const late = world.at("platform");
    await late.get(url);
    expect(await world.whoIs(late)).toBe(null);
    const { who } = await world.ssoSignIn(id, providerId);
    expect(who).toMatchObject({ tenantId: id });
  });

  it("let no stranger in where nobody may sign up", async () => {
    const { id, providerId } = await world.newTenant();
    await world.change(id, { policy: { methods: ["sso"], signUp: "closed" } });
    const users = await world.rowsIn(id, "user");
    const { location, who } = await world.ssoSignIn(id, providerId);
    expect([location, who]).toEqual([expect.stringContaining("/failed?error="), null]);
    expect(await world.rowsIn(id, "user")).toEqual(users);
  });

  it("prove no address where domains are not verified", async () => {
    const { id, providerId } = await world.newTenant();
    await world.change(id, { policy: { methods: ["sso"], emailDomains: ["acme.example"] } });
    const { location, who } = await world.ssoSignIn(id, providerId);
    expect([location, who]).toEqual([expect.stringContaining("error=EMAIL_NOT_VERIFIED"), null]);
  });

  it("lock out an administrator who has an account of a provider that is gone", async () => {
    const { id: tenantId, providerId, admin } = await world.newTenant();
    const body = { tenantId, policy: { methods: ["sso"] } };
    const account = (provider: string) =>
      runInTenant(tenantId, () =>
        world.context.internalAdapter.createAccount({
          accountId: "1",
          providerId: provider,
          userId: admin.id,
        }),
      );
    await account("github");
    const refused = await admin.post("/tenant/update", body);
    expect(outcome(refused)).toEqual([409, "POLICY_LOCKS_OUT"]);
    await account(providerId);
    expect((await admin.post("/tenant/update", body)).status).toBe(200);
  });
});

describe.each(databases)("the domain of a provider has to be verified, on %s", (database) => {
  const invitations = tenantInvitations({ sendInvitationEmail: async () => {} });
  const sso = { domainVerification: { enabled: true } } as const;
  const world = shareSSOWorld({ sso, plugins: [invitations] }, database);

  async function newTenant(domain = "acme.example") {
    const made = await world.newTenant({ domain });
    const { quote, query } = world.database;
    const verify = () =>
      query(
        `update ${quote("ssoProvider")} set ${quote("domainVerified")} = true where ${quote("providerId")} = ?`,
        [made.providerId],
      );
    return { ...made, verify };
  }

  it("before sign-in pages are told of it", async () => {
    const { id, providerId, verify } = await newTenant();
    expect((await methodsOf(world, id)).sso).toEqual([]);
    await verify();
    expect((await methodsOf(world, id)).sso).toEqual([{ id: providerId }]);
  });

  it.each([
    ["acme.example", true],
    ["other.example", false],
  ])("and proves an address if it is the same one: %s", async (domain, isProven) => {
    const { id, providerId, verify } = await newTenant(domain);
    await verify();
    await world.change(id, { policy: { methods: ["sso"], emailDomains: ["acme.example"] } });
    const { location, who } = await world.ssoSignIn(id, providerId);
    expect(location).toContain(isProven ? "/welcome" : "error=EMAIL_NOT_VERIFIED");
    expect(Boolean(who)).toBe(isProven);
  });

  it.each([
    ["acme.example", true],
    ["other.example", false],
  ])("and takes an invitation if it is the same one: %s", async (domain, isTaken) => {
    const { id, providerId, verify } = await newTenant(domain);
    await verify();
    await world.change(id, { policy: { signUp: "invited" } });
    const stranger = await world.ssoSignIn(id, providerId);
    expect(stranger.location).toContain("error=INVITATION_REQUIRED");
    const operator = await world.operator();
    const body = { tenantId: id, email: ADA };
    const invited = await operator.post("/tenant/invitation/create", body);
    expect(invited.status, JSON.stringify(invited.data)).toBe(200);
    const { who } = await world.ssoSignIn(id, providerId);
    expect(Boolean(who)).toBe(isTaken);
  });
});
