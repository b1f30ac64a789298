import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant, type TenantAuthOptions } from "../../src/index";
import { tenantInvitations } from "../../src/invitations/index";
import { PASSWORD } from "../support/instance";
import { databases } from "../support/servers";
import { createSSOWorld, named, type SSOWorld, whoIs } from "./sso-world";

interface Methods {
  emailAndPassword: { enabled: boolean };
  sso: { id: string }[];
}

const methodsOf = async (world: SSOWorld, tenantId: string) =>
  (await world.browser().get<Methods>("/tenant/sign-in-methods", { query: { tenantId } })).data;

async function worldWithProvider(options: Parameters<typeof createSSOWorld>[0] = {}) {
  const world = await createSSOWorld(options);
  await world.acme.admin.browser.post("/sso/register", world.oidc("acme-okta"));
  world.provider.addPerson("ada", { email: "ada@acme.example" });
  return world;
}

const DNS = { domainVerification: { enabled: true } } as const;

const verifyDomain = ({ database }: SSOWorld) =>
  database.query(
    `update ${database.quote("ssoProvider")} set ${database.quote("domainVerified")} = true`,
  );

describe.each(databases)("what a sign-in page is told, on %s", (database) => {
  it("is that the tenant has SSO, and nothing else about it", async () => {
    const world = await worldWithProvider({ database });
    expect((await methodsOf(world, world.acme.id)).sso).toEqual([{ id: "acme-okta" }]);
    expect((await methodsOf(world, world.globex.id)).sso).toEqual([]);
  });

  it("has no provider whose domain is not verified, where that is asked for", async () => {
    const world = await worldWithProvider({ database, sso: DNS });
    expect((await methodsOf(world, world.acme.id)).sso).toEqual([]);
    await verifyDomain(world);
    expect((await methodsOf(world, world.acme.id)).sso).toEqual([{ id: "acme-okta" }]);
  });

  it("has none where the policy does not allow it", async () => {
    const world = await worldWithProvider({ database });
    const { id: tenantId } = world.acme;
    await world.api.updateTenant({ body: { tenantId, policy: { methods: ["password"] } } });
    expect((await methodsOf(world, tenantId)).sso).toEqual([]);
    const { answer } = await world.signIn(tenantId, { providerId: "acme-okta" }, "ada");
    expect([answer.status, answer.code]).toEqual([403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
  });
});

describe.each(databases)('the policy methods: ["sso"], on %s', (database) => {
  it("lets nobody in by anything else", async () => {
    const links: string[] = [];
    const world = await worldWithProvider({
      database,
      plugins: [magicLink({ sendMagicLink: ({ url }) => void links.push(url) })],
    });
    const { id: tenantId, member } = world.acme;
    const headers = named(tenantId);
    await world.browser().post("/sign-in/magic-link", { email: member.email }, { headers });
    const body = { tenantId, policy: { methods: ["sso" as const] } };
    await world.api.updateTenant({ body });
    expect((await methodsOf(world, tenantId)).emailAndPassword.enabled).toBe(false);
    const refused = [];
    for (const [path, sent] of [
      ["/sign-in/email", { email: member.email, password: PASSWORD }],
      ["/sign-up/email", { email: "new@acme.example", password: PASSWORD, name: "New" }],
      ["/sign-in/magic-link", { email: member.email }],
    ] as const) {
      refused.push((await world.browser().post(path, sent, { headers })).code);
    }
    expect(new Set(refused)).toEqual(new Set(["SIGN_IN_METHOD_NOT_ALLOWED"]));
    expect(links).toHaveLength(1);
    const late = world.browser();
    await late.get(links[0] ?? "");
    expect(await whoIs(late)).toBeUndefined();
    const { browser } = await world.signIn(tenantId, { providerId: "acme-okta" }, "ada");
    expect(await whoIs(browser)).toMatchObject({ tenantId });
  });

  it("still lets no stranger in where nobody may sign up", async () => {
    const world = await worldWithProvider({ database });
    const { id: tenantId } = world.acme;
    const policy = { methods: ["sso" as const], signUp: "closed" as const };
    await world.api.updateTenant({ body: { tenantId, policy } });
    const users = await world.rows("user");
    const { answer, browser } = await world.signIn(tenantId, { providerId: "acme-okta" }, "ada");
    expect(answer.location).toContain("/failed?error=");
    expect(await whoIs(browser)).toBeUndefined();
    expect(await world.rows("user")).toBe(users);
  });

  it("locks out an administrator who has an account of a provider that is gone", async () => {
    const tenantRoles = {
      admin: ["sso:*", "policy:update"],
    } satisfies TenantAuthOptions["tenantRoles"];
    const world = await worldWithProvider({
      database,
      tenant: { scopedModels: ["ssoProvider"], tenantRoles },
    });
    const { id: tenantId, admin } = world.acme;
    const body = { tenantId, policy: { methods: ["sso"] } };
    const account = (providerId: string) =>
      runInTenant(tenantId, () =>
        world.context.internalAdapter.createAccount({
          accountId: "1",
          providerId,
          userId: admin.user.id,
        }),
      );
    await account("github");
    const refused = await admin.browser.post("/tenant/update", body);
    expect([refused.status, refused.code]).toEqual([409, "POLICY_LOCKS_OUT"]);
    await account("acme-okta");
    expect((await admin.browser.post("/tenant/update", body)).status).toBe(200);
  });
});

describe.each(databases)("an address that a tenant's provider says, on %s", (database) => {
  it.each([
    ["is proven", "acme.example", true],
    ["is not proven", "other.example", false],
  ])("%s by the verified domain %s", async (_, domain, isProven) => {
    const world = await worldWithProvider({ database, sso: DNS });
    const { id: tenantId } = world.acme;
    const update = { providerId: "acme-okta", domain };
    await world.acme.admin.browser.post("/sso/update-provider", update);
    await verifyDomain(world);
    const policy = { methods: ["sso" as const], emailDomains: ["acme.example"] };
    await world.api.updateTenant({ body: { tenantId, policy } });
    const { answer, browser } = await world.signIn(tenantId, { providerId: "acme-okta" }, "ada");
    expect(answer.location).toContain(isProven ? "/welcome" : "error=EMAIL_NOT_VERIFIED");
    expect(Boolean(await whoIs(browser))).toBe(isProven);
  });

  it.each([
    ["acme.example", true],
    ["other.example", false],
  ])("takes an invitation where the verified domain is %s", async (domain, isTaken) => {
    const world = await worldWithProvider({
      database,
      sso: DNS,
      plugins: [tenantInvitations({ sendInvitationEmail: async () => {} })],
    });
    const { id: tenantId } = world.acme;
    const update = { providerId: "acme-okta", domain };
    await world.acme.admin.browser.post("/sso/update-provider", update);
    await verifyDomain(world);
    await world.api.updateTenant({ body: { tenantId, policy: { signUp: "invited" } } });
    const by = { providerId: "acme-okta" };
    const stranger = await world.signIn(tenantId, by, "ada");
    expect(stranger.answer.location).toContain("error=INVITATION_REQUIRED");
    const invitation = { tenantId, email: "ada@acme.example" };
    const invited = await world.operator.post("/tenant/invitation/create", invitation);
    expect(invited.status, JSON.stringify(invited.data)).toBe(200);
    const { browser } = await world.signIn(tenantId, by, "ada");
    expect(Boolean(await whoIs(browser))).toBe(isTaken);
  });
});
