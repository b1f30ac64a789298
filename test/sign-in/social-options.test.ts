import { getOAuthState } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { BASE_URL } from "../support/instance";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createSocialInstance, GLOBAL, queryOf } from "../support/social";

describe("the options of a sign-in", () => {
  async function startWith(body: Record<string, unknown>) {
    const app = await createSocialInstance();
    const tenant = await app.createTenant();
    await app.configure(tenant.id);
    return app.start(app.browser(), tenant.id, body);
  }

  it("disableRedirect leaves the way to the caller", async () => {
    const answer = await startWith({ disableRedirect: true });
    expect(answer.status).toBe(200);
    expect(answer.data).toEqual({ url: expect.any(String), redirect: false });
    expect(answer.location).toBeNull();
  });

  it("scopes, loginHint and additionalParams go to the provider", async () => {
    const { data } = await startWith({
      scopes: ["api"],
      loginHint: "alice@example.com",
      additionalParams: { audience: "everybody" },
    });
    expect(queryOf(data.url)).toMatchObject({
      scope: "read_user api",
      login_hint: "alice@example.com",
      audience: "everybody",
    });
  });

  it("additionalParams cannot replace what the flow depends on", async () => {
    const answer = await startWith({ additionalParams: { redirect_uri: "https://evil.example" } });
    expect([answer.status, answer.code]).toEqual([400, "VALIDATION_ERROR"]);
  });

  it("newUserCallbackURL is where new users go", async () => {
    const app = await createSocialInstance();
    const tenant = await app.createTenant();
    const back = await app.signIn(app.browser(), tenant.id, { newUserCallbackURL: "/first-time" });
    expect(back.location).toBe("/first-time");
  });

  it("additionalData arrives in the callback", async () => {
    let invitation: unknown;
    const app = await createSocialInstance({
      auth: {
        databaseHooks: {
          user: {
            create: {
              before: async () => {
                invitation = (await getOAuthState())?.invitation;
              },
            },
          },
        },
      },
    });
    const tenant = await app.createTenant();
    await app.signIn(app.browser(), tenant.id, { additionalData: { invitation: "from Bob" } });
    expect(invitation).toBe("from Bob");
  });

  it("without a callbackURL it leads to the application", async () => {
    const app = await createSocialInstance();
    const tenant = await app.createTenant();
    const back = await app.signIn(app.browser(), tenant.id, { callbackURL: undefined });
    expect(back.location).toBe("http://localhost:3000");
  });

  it("the config's scopes are asked for, in place of the global provider's", async () => {
    const app = await createSocialInstance({ gitlab: { scope: ["global_scope"] } });
    const [own, shared] = [await app.createTenant(), await app.createTenant()];
    await app.configure(own.id, { scopes: ["api", "email"] });
    const scopeOf = async (tenantId: string) =>
      queryOf((await app.start(app.browser(), tenantId)).data.url).scope;
    expect(await scopeOf(own.id)).toBe("read_user api email");
    expect(await scopeOf(shared.id)).toBe("read_user global_scope");
  });
});

describe.each(["the tenant's config", "the global provider"])("with %s", (whose) => {
  type Options = Parameters<typeof createSocialInstance>[0];

  async function createTenantWith(options: Options) {
    const app = await createSocialInstance(options);
    const tenant = await app.createTenant();
    if (whose === "the tenant's config") await app.configure(tenant.id);
    return { app, tenantId: tenant.id };
  }

  it("mapProfileToUser of the global provider is used", async () => {
    const { app, tenantId } = await createTenantWith({
      gitlab: { mapProfileToUser: ({ username }) => ({ name: `Mapped ${username}` }) },
    });
    const browser = app.browser();
    await app.signIn(browser, tenantId);
    expect((await app.whoIs(browser, tenantId))?.user.name).toBe("Mapped alice");
  });

  it("disableSignUp lets nobody in who is not there", async () => {
    const { app, tenantId } = await createTenantWith({ gitlab: { disableSignUp: true } });
    const back = await app.signIn(app.browser(), tenantId, { requestSignUp: true });
    expect(back.location).toBe("/failed?error=signup_disabled");
    expect([await app.rows("user"), await app.rows("session")]).toEqual([0, 0]);
  });

  it("disableImplicitSignUp wants requestSignUp", async () => {
    const { app, tenantId } = await createTenantWith({ gitlab: { disableImplicitSignUp: true } });
    const refused = await app.signIn(app.browser(), tenantId);
    expect(refused.location).toBe("/failed?error=signup_disabled");
    expect(await app.rows("user")).toBe(0);
    const asked = await app.signIn(app.browser(), tenantId, { requestSignUp: true });
    expect(asked.location).toBe("/welcome");
    expect(await app.rows("user")).toBe(1);
    const again = await app.signIn(app.browser(), tenantId);
    expect(again.location).toBe("/welcome");
  });

  it("requireEmailVerification holds back a session, and the mail leads into the tenant", async () => {
    const mails: string[] = [];
    const { app, tenantId } = await createTenantWith({
      gitlab: { requireEmailVerification: true },
      auth: {
        emailVerification: {
          sendVerificationEmail: async ({ url }) => {
            mails.push(url);
          },
        },
      },
    });
    app.idp.addPerson("alice", { email_verified: false });
    const browser = app.browser();
    const back = await app.signIn(browser, tenantId);
    expect(back.location).toBe("/failed?error=email_not_verified");
    expect(await app.rows("session")).toBe(0);
    expect(mails).toHaveLength(1);
    // R6: the link is opened in a browser that knows nothing about the tenant.
    await app.browser().get(mails[0] ?? "");
    expect(await app.rows("user", `${app.database.quote("emailVerified")} = 1`)).toBe(1);
    expect((await app.signIn(browser, tenantId)).location).toBe("/welcome");
  });

  it("overrideUserInfoOnSignIn brings the profile up to date", async () => {
    const { app, tenantId } = await createTenantWith({
      gitlab: { overrideUserInfoOnSignIn: true },
    });
    await app.signIn(app.browser(), tenantId);
    app.idp.addPerson("alice", { name: "Alice Renamed" });
    const browser = app.browser();
    await app.signIn(browser, tenantId);
    expect((await app.whoIs(browser, tenantId))?.user.name).toBe("Alice Renamed");
    expect(await app.rows("user")).toBe(1);
  });

  it("disableDefaultScope is taken over", async () => {
    const { app, tenantId } = await createTenantWith({ gitlab: { disableDefaultScope: true } });
    const { data } = await app.start(app.browser(), tenantId, { scopes: ["only_this"] });
    expect(queryOf(data.url).scope).toBe("only_this");
  });
});

describe.each(["google", "github"] as const)("%s", (provider) => {
  async function createWith(behaviour: { prompt?: "consent" } = {}) {
    const internet = fakeGoogleAndGitHub();
    const app = await createSocialInstance({
      socialProviders: { [provider]: { ...GLOBAL, ...behaviour } },
    });
    const tenant = await app.createTenant();
    return { app, tenantId: tenant.id, internet };
  }

  it("signs in with the tenant's credentials", async () => {
    const { app, tenantId, internet } = await createWith();
    const config = await app.configure(tenantId, { providerId: provider });
    const browser = app.browser();
    const { data } = await app.start(browser, tenantId, { provider });
    const { state = "", client_id } = queryOf(data.url);
    expect(client_id).toBe(config.clientId);
    const back = await browser.get(`/tenant/callback/${provider}`, {
      query: { code: "any", state },
    });
    expect(back.location).toBe("/welcome");
    expect(internet.exchanges()).toEqual([
      expect.objectContaining({
        client_id: config.clientId,
        client_secret: config.clientSecret,
        redirect_uri: `${BASE_URL}/tenant/callback/${provider}`,
      }),
    ]);
    const session = await app.whoIs(browser, tenantId);
    expect(session?.user).toMatchObject({ email: "alice@example.com", tenantId });
  });

  it("prompt of the global provider is taken over", async () => {
    const { app, tenantId } = await createWith({ prompt: "consent" });
    const shared = await app.start(app.browser(), tenantId, { provider });
    await app.configure(tenantId, { providerId: provider });
    const own = await app.start(app.browser(), tenantId, { provider });
    expect(queryOf(shared.data.url)).toMatchObject({
      prompt: "consent",
      client_id: "global-client",
    });
    expect(queryOf(own.data.url)).toMatchObject({
      prompt: "consent",
      client_id: `client-${tenantId}`,
    });
  });
});
