import { APIError } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { BASE_URL } from "../support/instance";
import { createSocialInstance, queryOf, STATE_STRATEGIES } from "../support/social";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

describe.each(STATE_STRATEGIES)("the callback, state in the %s", (stateStrategy) => {
  async function createTenant(auth: Parameters<typeof createSocialInstance>[0] = {}) {
    const app = await createSocialInstance({ stateStrategy, ...auth });
    const tenant = await app.createTenant();
    await app.configure(tenant.id);
    return { app, tenantId: tenant.id };
  }

  /** What a provider sends when the person says no. */
  async function refusal(
    { app, tenantId }: Awaited<ReturnType<typeof createTenant>>,
    body?: Record<string, unknown>,
  ) {
    const browser = app.browser();
    const { data } = await app.start(browser, tenantId, body);
    const { state = "" } = queryOf(data.url);
    const query = { state, error: "access_denied", error_description: "Alice said no" };
    return browser.get("/tenant/callback/gitlab", { query });
  }

  it("signs in, and the session carries the tenant", async () => {
    const { app, tenantId } = await createTenant();
    const browser = app.browser();
    const back = await app.signIn(browser, tenantId);
    expect([back.status, back.location]).toEqual([302, "/welcome"]);
    expect((await app.whoIs(browser, tenantId))?.session.tenantId).toBe(tenantId);
    expect(await app.whoIs(browser.fork(), null)).toMatchObject({ user: { tenantId } });
  });

  it("a form_post comes without cookies and goes on as a GET on the same path", async () => {
    const { app, tenantId } = await createTenant();
    const browser = app.browser();
    const params = queryOf(await app.authorize(browser, tenantId));
    const posted = await app
      .browser({ origin: app.idp.issuer })
      .post("/tenant/callback/gitlab", `${new URLSearchParams(params)}`, { headers: FORM });
    expect(posted.status).toBe(302);
    expect(posted.location?.startsWith(`${BASE_URL}/tenant/callback/gitlab?`)).toBe(true);
    expect(queryOf(posted.location)).toEqual(params);
    expect(app.idp.exchanges()).toEqual([]);

    const back = await browser.get(posted.location ?? "");
    expect(back.location).toBe("/welcome");
    expect((await app.whoIs(browser, tenantId))?.user.tenantId).toBe(tenantId);
  });

  it("a form_post cannot leave its path", async () => {
    const { app } = await createTenant();
    const posted = await app
      .browser()
      .post("/tenant/callback/..%2f..%2f..%2fevil", "code=1", { headers: FORM });
    const { href } = new URL(posted.location ?? "");
    expect(href.startsWith(`${BASE_URL}/tenant/callback/`)).toBe(true);
  });

  it("a refusal goes to errorCallbackURL, with the provider's words", async () => {
    const world = await createTenant();
    const back = await refusal(world, { errorCallbackURL: "/failed?from=gitlab" });
    expect(back.status).toBe(302);
    expect(back.location?.startsWith("/failed?")).toBe(true);
    expect(queryOf(back.location)).toEqual({
      from: "gitlab",
      error: "access_denied",
      error_description: "Alice said no",
    });
    expect(world.app.idp.exchanges()).toEqual([]);
    expect(await world.app.rows("user")).toBe(0);
  });

  it("a refusal without errorCallbackURL goes to better-auth's error page", async () => {
    const back = await refusal(await createTenant(), { errorCallbackURL: undefined });
    expect(back.location?.startsWith(`${BASE_URL}/error?`)).toBe(true);
    expect(queryOf(back.location)).toEqual({
      error: "access_denied",
      error_description: "Alice said no",
    });
  });

  it("a refusal goes to the application's errorURL if it has one", async () => {
    const world = await createTenant({ auth: { onAPIError: { errorURL: "/oops" } } });
    const back = await refusal(world, { errorCallbackURL: undefined });
    expect(back.location?.startsWith("/oops?error=access_denied")).toBe(true);
  });

  it.each([
    ["no code", { code: "" }, "no_code", 0],
    ["a code of somebody else's making", { code: "made-up" }, "invalid_code", 1],
  ])("%s is an error", async (_, change, error, exchanges) => {
    const { app, tenantId } = await createTenant();
    const browser = app.browser();
    const params = { ...queryOf(await app.authorize(browser, tenantId)), ...change };
    const back = await browser.get("/tenant/callback/gitlab", { query: params });
    expect(back.location).toBe(`/failed?error=${error}`);
    expect(app.idp.exchanges()).toHaveLength(exchanges);
    expect([await app.rows("user"), await app.rows("session")]).toEqual([0, 0]);
  });

  it("somebody the provider has blocked does not get in", async () => {
    const { app, tenantId } = await createTenant();
    app.idp.addPerson("alice", { state: "blocked" });
    const back = await app.signIn(app.browser(), tenantId);
    expect(back.location).toBe("/failed?error=unable_to_get_user_info");
    expect(await app.rows("user")).toBe(0);
  });

  it("an error of the application's hook arrives with its code", async () => {
    const { app, tenantId } = await createTenant({
      auth: {
        databaseHooks: {
          user: {
            create: {
              before: async () => {
                throw new APIError("FORBIDDEN", { code: "NOT_INVITED", message: "Not invited" });
              },
            },
          },
        },
      },
    });
    const back = await app.signIn(app.browser(), tenantId);
    expect(queryOf(back.location)).toEqual({
      error: "NOT_INVITED",
      error_description: "Not invited",
    });
    expect([await app.rows("user"), await app.rows("session")]).toEqual([0, 0]);
  });

  it("leaves no state behind in the browser", async () => {
    const { app, tenantId } = await createTenant();
    const browser = app.browser();
    await app.signIn(browser, tenantId);
    expect([...browser.cookies.keys()].filter((name) => /state/.test(name))).toEqual([]);
  });
});
