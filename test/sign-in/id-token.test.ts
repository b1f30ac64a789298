import { describe, expect, it } from "vitest";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createSocialInstance, GLOBAL } from "../support/social";

/** Tenants A and B with their own Google clients, and C, which shares the application's. */
async function createTenants(google: Record<string, unknown> = {}) {
  const internet = fakeGoogleAndGitHub();
  const app = await createSocialInstance({
    socialProviders: { google: { ...GLOBAL, ...google } },
  });
  const [a, b, c] = [await app.createTenant(), await app.createTenant(), await app.createTenant()];
  await app.configure(a.id, { providerId: "google", clientId: "client-a" });
  await app.configure(b.id, { providerId: "google", clientId: "client-b" });

  /** Signs in with a token that Google issued to the given client. */
  async function signIn(
    tenantId: string | null,
    audience: string,
    {
      nonce,
      sent = nonce,
      ...body
    }: { nonce?: string; sent?: string; requestSignUp?: boolean } = {},
  ) {
    const browser = app.browser();
    const token = internet.googleIdToken({ aud: audience, ...(nonce ? { nonce } : {}) });
    const answer = await app.start(browser, tenantId, {
      provider: "google",
      idToken: { token, ...(sent ? { nonce: sent } : {}) },
      ...body,
    });
    return { answer, browser };
  }
  return { app, a, b, c, internet, signIn };
}

describe("sign-in with an id token", () => {
  it("signs in at the tenant whose client the token was issued to", async () => {
    const { app, a, signIn } = await createTenants();
    const { answer, browser } = await signIn(a.id, "client-a");
    expect(answer.status).toBe(200);
    expect(answer.data).toMatchObject({
      redirect: false,
      token: expect.any(String),
      user: { email: "alice@example.com", tenantId: a.id },
    });
    expect(answer.data.url).toBeUndefined();
    expect((await app.whoIs(browser, a.id))?.session.tenantId).toBe(a.id);
    expect(await app.rows("user")).toBe(1);
  });

  it("signs in with the application's client where the tenant has none", async () => {
    const { app, c, signIn } = await createTenants();
    const { answer, browser } = await signIn(c.id, GLOBAL.clientId);
    expect(answer.status).toBe(200);
    expect((await app.whoIs(browser, c.id))?.user.tenantId).toBe(c.id);
  });

  it.each([
    ["A's client at B", "b", "client-a"],
    ["A's client at C, which has no config", "c", "client-a"],
    ["the application's client at A", "a", GLOBAL.clientId],
    ["A's client on the platform", "platform", "client-a"],
  ] as const)("threat: audience confusion: refuses a token of %s", async (_, where, audience) => {
    const world = await createTenants();
    const tenantId = where === "platform" ? null : world[where].id;
    const { answer, browser } = await world.signIn(tenantId, audience);
    expect([answer.status, answer.code]).toEqual([401, "INVALID_TOKEN"]);
    expect(await world.app.whoIs(browser, tenantId)).toBeNull();
    expect([await world.app.rows("user"), await world.app.rows("session")]).toEqual([0, 0]);
  });

  it("threat: audience confusion: who is at A already does not get into B with A's token", async () => {
    const { app, a, b, signIn } = await createTenants();
    await signIn(a.id, "client-a");
    const { answer } = await signIn(b.id, "client-a");
    expect([answer.status, answer.code]).toEqual([401, "INVALID_TOKEN"]);
    expect(await app.rows("session", `${app.database.quote("tenantId")} = ?`, [b.id])).toBe(0);
  });

  it("threat: identity collision: one Google account at A and at B is two users", async () => {
    const { app, a, b, signIn } = await createTenants();
    const atA = await signIn(a.id, "client-a");
    const atB = await signIn(b.id, "client-b");
    const [first, second] = [
      await app.whoIs(atA.browser, a.id),
      await app.whoIs(atB.browser, b.id),
    ];
    expect([first?.user.tenantId, second?.user.tenantId]).toEqual([a.id, b.id]);
    expect(first?.user.id).not.toBe(second?.user.id);
  });

  it("checks the nonce", async () => {
    const { a, signIn } = await createTenants();
    expect((await signIn(a.id, "client-a", { nonce: "mine" })).answer.status).toBe(200);
    const { answer } = await signIn(a.id, "client-a", { nonce: "mine", sent: "other" });
    expect([answer.status, answer.code]).toEqual([401, "INVALID_TOKEN"]);
  });

  it("refuses a token that somebody changed", async () => {
    const { app, a, internet } = await createTenants();
    const [header, , signature] = internet.googleIdToken({ aud: "client-a" }).split(".");
    const [, payload] = internet.googleIdToken({ aud: "client-a", sub: "the-victim" }).split(".");
    const answer = await app.start(app.browser(), a.id, {
      provider: "google",
      idToken: { token: [header, payload, signature].join(".") },
    });
    expect([answer.status, answer.code]).toEqual([401, "INVALID_TOKEN"]);
    expect(await app.rows("user")).toBe(0);
  });

  it("disableIdTokenSignIn of the global provider is taken over", async () => {
    const { a, signIn } = await createTenants({ disableIdTokenSignIn: true });
    const { answer } = await signIn(a.id, "client-a");
    expect([answer.status, answer.code]).toEqual([404, "ID_TOKEN_NOT_SUPPORTED"]);
  });

  it("disableImplicitSignUp of the global provider is taken over", async () => {
    const { app, a, signIn } = await createTenants({ disableImplicitSignUp: true });
    const { answer } = await signIn(a.id, "client-a");
    expect([answer.status, answer.code]).toEqual([401, "OAUTH_LINK_ERROR"]);
    expect(await app.rows("user")).toBe(0);
    const asked = await signIn(a.id, "client-a", { requestSignUp: true });
    expect(asked.answer.status).toBe(200);
  });

  it("a provider without id tokens says so", async () => {
    const { app, a } = await createTenants();
    const answer = await app.start(app.browser(), a.id, { idToken: { token: "a.b.c" } });
    expect([answer.status, answer.code]).toEqual([404, "ID_TOKEN_NOT_SUPPORTED"]);
  });
});
