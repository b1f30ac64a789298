import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { databases } from "../support/servers";
import { createSocialInstance, type SocialOptions } from "../support/social";

type App = Awaited<ReturnType<typeof createSocialInstance>>;

const ALICE = "alice@example.com";

/** Where Alice's accounts at the provider lead to, by user. */
async function linkedUsers({ database }: App): Promise<unknown[]> {
  const { quote } = database;
  const rows = await database.query(
    `select ${quote("userId")} as owner from account where ${quote("providerId")} = 'gitlab'`,
  );
  return rows.map(({ owner }) => owner);
}

/** Somebody with Alice's e-mail and a password, in a tenant or on the platform. */
async function passwordUser(
  app: App,
  tenantId: string | null,
  { verified }: { verified: boolean },
) {
  const person = await app.signUp(tenantId, ALICE);
  if (verified) {
    const { quote, query } = app.database;
    await query(`update ${quote("user")} set ${quote("emailVerified")} = true where id = ?`, [
      person.user.id,
    ]);
  }
  return person.user;
}

describe.each(databases)("linking on %s", (database) => {
  it("threat: link onto an unverified local user: not linked, not taken over", async () => {
    const app = await createSocialInstance({ database });
    const tenant = await app.createTenant();
    await passwordUser(app, tenant.id, { verified: false });

    const victim = app.browser();
    const back = await app.signIn(victim, tenant.id);
    expect(back.location).toBe("/failed?error=account_not_linked");
    expect(await app.whoIs(victim, tenant.id)).toBeNull();
    expect(await linkedUsers(app)).toEqual([]);
    expect(await app.rows("user")).toBe(1);
    expect(await app.rows("user", `${app.database.quote("emailVerified")} = true`)).toBe(0);
  });

  it("threat: identity collision: one account at A, at B and on the platform is three users", async () => {
    const app = await createSocialInstance({ database });
    const [a, b] = [await app.createTenant(), await app.createTenant()];
    await app.configure(a.id);
    const places = [a.id, b.id, null];
    const idsOfVisit = async () => {
      const ids: (string | undefined)[] = [];
      for (const tenantId of places) {
        const browser = app.browser();
        expect((await app.signIn(browser, tenantId)).location).toBe("/welcome");
        const session = await app.whoIs(browser, tenantId);
        expect(session?.user.tenantId).toBe(tenantId);
        ids.push(session?.user.id);
      }
      return ids;
    };
    const first = await idsOfVisit();
    expect(new Set(first).size).toBe(3);
    // Whoever comes back is who they were.
    expect(await idsOfVisit()).toEqual(first);
    expect([await app.rows("user"), await app.rows("account")]).toEqual([3, 3]);
  });

  it("R3: links to the tenant's user, not to the others of that e-mail", async () => {
    const app = await createSocialInstance({ database });
    const [a, b] = [await app.createTenant(), await app.createTenant()];
    await passwordUser(app, null, { verified: true });
    await passwordUser(app, b.id, { verified: true });
    const alice = await passwordUser(app, a.id, { verified: true });

    const browser = app.browser();
    expect((await app.signIn(browser, a.id)).location).toBe("/welcome");
    expect((await app.whoIs(browser, a.id))?.user.id).toBe(alice.id);
    expect(await linkedUsers(app)).toEqual([alice.id]);
    expect(await app.rows("user")).toBe(3);
  });

  it("R3: does not link to a user of that e-mail elsewhere", async () => {
    const app = await createSocialInstance({ database });
    const [a, b] = [await app.createTenant(), await app.createTenant()];
    const elsewhere = [
      await passwordUser(app, null, { verified: true }),
      await passwordUser(app, b.id, { verified: true }),
    ];
    const browser = app.browser();
    await app.signIn(browser, a.id);
    const session = await app.whoIs(browser, a.id);
    expect(session?.user).toMatchObject({ email: ALICE, tenantId: a.id });
    expect(elsewhere.map(({ id }) => id)).not.toContain(session?.user.id);
    expect(await linkedUsers(app)).toEqual([session?.user.id]);
  });

  it("R3: the platform does not link to a tenant's user", async () => {
    const app = await createSocialInstance({ database });
    const tenant = await app.createTenant();
    const inTenant = await passwordUser(app, tenant.id, { verified: true });
    const browser = app.browser();
    await app.signIn(browser, null);
    const session = await app.whoIs(browser, null);
    expect(session?.user.tenantId).toBeNull();
    expect(session?.user.id).not.toBe(inTenant.id);
  });
});

describe("account linking options inside a tenant", () => {
  type Linking = NonNullable<NonNullable<SocialOptions["auth"]>["account"]>["accountLinking"];

  /** Alice comes by OAuth, and somebody with her e-mail is there. */
  async function visit(accountLinking: Linking, here: { verified: boolean }, atProvider: boolean) {
    const app = await createSocialInstance({ auth: { account: { accountLinking } } });
    const tenant = await app.createTenant();
    await app.configure(tenant.id);
    const local = await passwordUser(app, tenant.id, here);
    app.idp.addPerson("alice", { email_verified: atProvider });
    const back = await app.signIn(app.browser(), tenant.id);
    expect(await app.rows("user")).toBe(1);
    const [owner] = await linkedUsers(app);
    return { location: back.location, linked: owner === local.id };
  }

  const refused = { location: "/failed?error=account_not_linked", linked: false };
  const linked = { location: "/welcome", linked: true };

  it("a provider that has not verified the e-mail is not believed", async () => {
    expect(await visit({}, { verified: true }, false)).toEqual(refused);
  });

  it.each<[string, Linking]>([
    ["a list", { trustedProviders: ["gitlab"] }],
    ["a function", { trustedProviders: async () => ["gitlab"] }],
  ])("a trusted provider is, by %s", async (_, linking) => {
    expect(await visit(linking, { verified: true }, false)).toEqual(linked);
  });

  it("another provider that is trusted changes nothing", async () => {
    expect(await visit({ trustedProviders: ["google"] }, { verified: true }, false)).toEqual(
      refused,
    );
  });

  it("threat: a trusted provider does not link onto an unverified local user either", async () => {
    expect(await visit({ trustedProviders: ["gitlab"] }, { verified: false }, true)).toEqual(
      refused,
    );
  });

  it.each<[string, Linking]>([
    ["enabled: false", { enabled: false }],
    ["disableImplicitLinking", { disableImplicitLinking: true }],
  ])("%s links nobody", async (_, linking) => {
    expect(await visit(linking, { verified: true }, true)).toEqual(refused);
  });
});

describe("/link-social of a tenant's user", () => {
  /** Somebody signed in at a tenant starts to link their account at the provider. */
  async function startLinking(app: App, tenantId: string) {
    const person = await app.signUp(tenantId, ALICE);
    const { data } = await person.browser.post<{ url: string }>("/link-social", {
      provider: "gitlab",
      callbackURL: "/linked",
      errorCallbackURL: "/failed",
    });
    return { ...person, url: data.url };
  }

  it("links inside the tenant, with the tenant's credentials", async () => {
    const app = await createSocialInstance();
    const tenant = await app.createTenant();
    const { clientId } = await app.configure(tenant.id);
    const { browser, url, user } = await startLinking(app, tenant.id);
    const back = await browser.get(await app.idp.authorize(url, "alice"));
    expect(back.location).toBe("/linked");
    expect(app.idp.exchanges()[0]?.params.client_id).toBe(clientId);
    expect(await linkedUsers(app)).toEqual([user.id]);
    expect(await app.rows("account", `${app.database.quote("tenantId")} = ?`, [tenant.id])).toBe(2);
    // From now on both ways lead to the same user.
    const again = app.browser();
    await app.signIn(again, tenant.id);
    expect((await app.whoIs(again, tenant.id))?.user.id).toBe(user.id);
    const password = await app
      .browser()
      .post("/tenant/sign-in/email", { tenantId: tenant.id, email: ALICE, password: PASSWORD });
    expect(password.data.user).toMatchObject({ id: user.id });
  });

  it("threat: identity collision: an account linked at B can still be linked at A", async () => {
    const app = await createSocialInstance();
    const [a, b] = [await app.createTenant(), await app.createTenant()];
    await app.signIn(app.browser(), b.id);
    const { browser, url, user } = await startLinking(app, a.id);
    const back = await browser.get(await app.idp.authorize(url, "alice"));
    expect(back.location).toBe("/linked");
    expect(await linkedUsers(app)).toContain(user.id);
    expect(await app.rows("account", `${app.database.quote("tenantId")} = ?`, [b.id])).toBe(1);
  });
});
