import { magicLink } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
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

describe("what a sign-in page is told", () => {
  it("is that the tenant has SSO, and nothing else about it", async () => {
    const world = await worldWithProvider();
    expect((await methodsOf(world, world.acme.id)).sso).toEqual([{ id: "acme-okta" }]);
    expect((await methodsOf(world, world.globex.id)).sso).toEqual([]);
  });

  it("has no provider whose domain is not verified, where that is asked for", async () => {
    const world = await worldWithProvider({ sso: { domainVerification: { enabled: true } } });
    expect((await methodsOf(world, world.acme.id)).sso).toEqual([]);
    await world.database.query("update ssoProvider set domainVerified = 1");
    expect((await methodsOf(world, world.acme.id)).sso).toEqual([{ id: "acme-okta" }]);
  });

  it("has none where the policy does not allow it", async () => {
    const world = await worldWithProvider();
    const { id: tenantId } = world.acme;
    await world.api.updateTenant({ body: { tenantId, policy: { methods: ["password"] } } });
    expect((await methodsOf(world, tenantId)).sso).toEqual([]);
    const { answer } = await world.signIn(tenantId, { providerId: "acme-okta" }, "ada");
    expect([answer.status, answer.code]).toEqual([403, "SIGN_IN_METHOD_NOT_ALLOWED"]);
  });
});

describe('the policy methods: ["sso"]', () => {
  it("lets nobody in by anything else", async () => {
    const links: string[] = [];
    const world = await worldWithProvider({
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
    const world = await worldWithProvider();
    const { id: tenantId } = world.acme;
    const policy = { methods: ["sso" as const], signUp: "closed" as const };
    await world.api.updateTenant({ body: { tenantId, policy } });
    const users = await world.rows("user");
    const { answer, browser } = await world.signIn(tenantId, { providerId: "acme-okta" }, "ada");
    expect(answer.location).toContain("/failed?error=");
    expect(await whoIs(browser)).toBeUndefined();
    expect(await world.rows("user")).toBe(users);
  });
});
